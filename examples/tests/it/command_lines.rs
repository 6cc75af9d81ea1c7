//! Every program tells its usage when asked, and refuses what it does not take, before it does anything.

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
fn usage_is_told_when_asked() {
    for program in PROGRAMS {
        let output = run(program, "--help");
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{program}");
        assert!(told.starts_with("Usage: cargo run"), "{program}: {told}");
    }
}

#[test]
fn unknown_flags_are_refused() {
    for program in PROGRAMS {
        let output = run(program, "--fast");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{program}");
        assert!(
            told.contains("unknown argument: --fast"),
            "{program}: {told}"
        );
        assert!(output.stdout.is_empty(), "{program}: nothing was begun");
    }
}
