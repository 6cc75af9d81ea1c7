//! Tests that the commands and fuzz targets named in the README and the book exist. The packages that `cargo xtask`
//! starts test the names after their commands.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod named;

use named::{check_listed, named};

const XTASK: &str = env!("CARGO_BIN_EXE_xtask");

#[test]
fn named_commands_exist() {
    let named = named();
    assert!(named.contains(&("verify".to_owned(), Some("kill".to_owned()))));
    let commands = named.into_iter().map(|(command, _)| command);
    named::check_names("cargo xtask", commands, XTASK, &[]);
}

#[test]
fn named_fuzz_targets_exist() {
    check_listed("fuzz", XTASK, &["fuzz"]);
}
