//! The commands and the fuzz targets that the README and the book name are there. The packages that `cargo xtask` starts see
//! to the names behind their commands.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod named;

use named::{check_listed, named};

const XTASK: &str = env!("CARGO_BIN_EXE_xtask");

#[test]
fn every_command_that_is_named_is_there() {
    let named = named();
    assert!(named.contains(&("verify".to_owned(), Some("kill".to_owned()))));
    let commands = named.into_iter().map(|(command, _)| command);
    named::check_names("cargo xtask", commands, XTASK, &[]);
}

#[test]
fn every_fuzz_target_that_is_named_is_there() {
    check_listed("fuzz", XTASK, &["fuzz"]);
}
