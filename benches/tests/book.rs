//! Tests that the benchmarks named in the README and the book exist and describe themselves.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../xtask/tests/named/mod.rs"]
mod named;

#[test]
fn every_named_benchmark_exists() {
    named::check_listed("bench", env!("CARGO_BIN_EXE_floe-bench"), &[]);
}

#[test]
fn every_benchmark_describes_itself() {
    for name in ["changes", "engine", "events", "graph", "models", "wire"] {
        let help = named::help(env!("CARGO_BIN_EXE_floe-bench"), &[name]);
        assert!(!help.starts_with("The flags"), "{name}: {help}");
        for part in ["Usage: cargo xtask bench", "--quick", "key=value"] {
            assert!(help.contains(part), "{name}: {help}");
        }
    }
}
