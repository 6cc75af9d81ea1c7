//! The benchmarks that the README and the book name are there, and explain themselves.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../xtask/tests/named/mod.rs"]
mod named;

#[test]
fn every_benchmark_that_is_named_is_there() {
    named::check_listed("bench", env!("CARGO_BIN_EXE_floe-bench"), &[]);
}
