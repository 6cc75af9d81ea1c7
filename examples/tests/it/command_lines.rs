//! Every program prints its usage on request, and rejects unknown arguments before it does anything.

use std::process::{Command, Output};

const PROGRAMS: [&str; 7] = [
    env!("CARGO_BIN_EXE_guestbook"),
    env!("CARGO_BIN_EXE_inventory"),
    env!("CARGO_BIN_EXE_layers"),
    env!("CARGO_BIN_EXE_orders"),
    env!("CARGO_BIN_EXE_router"),
    env!("CARGO_BIN_EXE_ski_resort"),
    env!("CARGO_BIN_EXE_tour"),
];

fn run(program: &str, argument: &str) -> Output {
    Command::new(program).arg(argument).output().unwrap()
}

#[test]
fn help_prints_the_usage() {
    for program in PROGRAMS {
        let output = run(program, "--help");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{program}");
        assert!(
            printed.starts_with("Usage: cargo run"),
            "{program}: {printed}"
        );
    }
}

#[test]
fn unknown_flags_are_rejected() {
    for program in PROGRAMS {
        let output = run(program, "--fast");
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{program}");
        assert!(
            printed.contains("unknown argument: --fast"),
            "{program}: {printed}"
        );
        assert!(output.stdout.is_empty(), "{program}: nothing was started");
    }
}
