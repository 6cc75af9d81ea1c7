//! Tests of the program `floe-verify`, started like `cargo xtask` starts it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod book;
#[path = "../../../xtask/tests/named/mod.rs"]
mod named;
mod planted;
