//! Tests of the checks of `cargo xtask verify`: each must find its planted bugs, and nothing without a planted bug.
//!
//! The sizes are small, so that the tests are fast in a debug build; they prove that a check can fail.

use std::process::{Command, Output};

fn verify(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_floe-verify"))
        .arg("verify")
        .args(arguments.split(' '))
        .output()
        .unwrap()
}

fn line(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        stdout.lines().count(),
        1,
        "one line of figures: {stdout}{stderr}"
    );
    format!("{}\n{stderr}", stdout.trim_end())
}

/// Tests that the check passes without a planted bug, and finds each planted bug.
fn check(sizes: &str, bugs: &[&str]) {
    let clean = verify(sizes);
    assert!(clean.status.success(), "{}", line(&clean));
    check_planted(sizes, bugs);
}

fn check_planted(sizes: &str, bugs: &[&str]) {
    for bug in bugs {
        let planted = verify(&format!("{sizes} --planted {bug}"));
        let line = line(&planted);
        assert!(
            planted.status.success() && line.contains(" found=true"),
            "{bug}: {line}"
        );
    }
}

#[test]
fn kill_finds_planted_bugs() {
    check("kill --quick --seed 1 --cycles 4 --items 200", &[]);
    // A kill must hit the moment between the report and the write. The run ends after the bug was found.
    check_planted(
        "kill --quick --seed 1 --cycles 100 --items 200",
        &["early-ack", "split-transaction", "skipped-index", "log-gap"],
    );
}

#[test]
fn linear_finds_planted_bugs() {
    check(
        "linear --seed 1 --operations 3000 --keys 20",
        &["stale-read"],
    );
}

#[test]
fn isolation_finds_planted_bugs() {
    check(
        "isolation --seed 1 --operations 3000",
        &["split-transaction"],
    );
}

#[test]
fn model_finds_planted_bugs() {
    let clean = verify("model --seed 1 --seeds 4 --operations 400");
    assert!(clean.status.success(), "{}", line(&clean));
    let planted = verify("model --seed 1 --planted wrong-answer");
    let line = line(&planted);
    assert!(
        planted.status.success() && line.contains(" missed=0 found=true"),
        "{line}"
    );
}

#[test]
fn contention_finds_planted_bugs() {
    check(
        "contention --seed 1 --seconds 2 --tasks 24",
        &["dropped-condition", "false-conflict"],
    );
    check_planted(
        "contention --seed 1 --seconds 2 --tasks 24 --stall 1",
        &["no-answer"],
    );
}

#[test]
fn io_errors_finds_planted_bugs() {
    check(
        "io-errors --quick --seed 1 --points 2 --operations 40",
        &["ack-failed"],
    );
}

#[test]
fn power_cut_finds_planted_bugs() {
    check(
        "power-cut --quick --seed 1 --cuts 16 --operations 150",
        &["relaxed"],
    );
}

#[test]
fn hostile_finds_planted_bugs() {
    // Latency is not tested, because a debug build next to other tests is slow.
    let inside = "hostile --inside --p99-ms 10000";
    let bodies = "--kind huge_bodies --connections 200 --seconds 2 --memory-mb 250";
    check(&format!("{inside} {bodies}"), &["no-limits"]);
    check_planted(
        &format!("{inside} --kind idle --connections 20 --seconds 1"),
        &["no-answer"],
    );
}

#[test]
fn feed_finds_planted_bugs() {
    check(
        "feed --seed 1 --events 1500 --kills 8 --streams 200",
        &[
            "early-checkpoint",
            "early-position",
            "split-view",
            "dropped-condition",
        ],
    );
}

#[test]
fn graph_finds_planted_bugs() {
    check("graph --seed 1 --kills 4 --moves 1200 --hub 600", &[]);
    // A kill or another task must hit the right moment. The run ends after the bug was found.
    check_planted(
        "graph --seed 1 --kills 60 --moves 18000",
        &["split-transaction", "dropped-condition", "early-ack"],
    );
}

#[test]
fn expiry_finds_planted_bugs() {
    check(
        "expiry --seed 1 --versions 300 --kills 4 --groups 20",
        &["early-tombstone", "early-checkpoint"],
    );
}

#[test]
fn foreign_finds_planted_bugs() {
    check("foreign --inside", &["clears-foreign"]);
}

#[test]
fn tables_finds_planted_bugs() {
    check("tables --seed 1 --cycles 60 --empty 20", &["leaked-tables"]);
}

#[test]
fn full_disk_finds_planted_bugs() {
    check("full-disk --inside --seed 1 --rounds 3", &["ack-failed"]);
}

#[test]
fn bit_rot_finds_planted_bugs() {
    check(
        "bit-rot --seed 1 --trials 24",
        &["wrong-answer", "hidden-damage"],
    );
}

#[test]
fn soak_finds_planted_bugs() {
    check("soak --quick --seed 1 --seconds 16", &["leak"]);
}

#[test]
fn usage_errors_are_reported() {
    let cases = [
        ("nothing", "unrecognized subcommand 'nothing'"),
        ("kill --fast", "unexpected argument '--fast' found"),
        ("kill --cycles many", "'--cycles <N>': invalid digit"),
        (
            "kill --planted stale-read",
            "not a bug of this check: stale-read",
        ),
        ("linear --planted nonsense", "unknown planted bug"),
    ];
    for (arguments, message) in cases {
        let output = verify(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {stderr}");
        assert!(stderr.contains(message), "{arguments}: {stderr}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn every_check_has_a_complete_help() {
    for check in [
        "kill",
        "linear",
        "isolation",
        "model",
        "contention",
        "io-errors",
        "power-cut",
        "infrastructure",
        "clients",
        "hostile",
        "feed",
        "graph",
        "expiry",
        "foreign",
        "tables",
        "full-disk",
        "bit-rot",
        "soak",
    ] {
        let output = verify(&format!("{check} --help"));
        let help = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success());
        for part in ["Usage:", "--quick", "--seed <N>", "Bugs to plant:"] {
            assert!(help.contains(part), "{check}: {help}");
        }
        // The help starts with the description of the check, not of its flags.
        assert!(help.lines().count() > 16, "{check}: {help}");
        assert!(!help.starts_with("The flags"), "{check}: {help}");
    }
}
