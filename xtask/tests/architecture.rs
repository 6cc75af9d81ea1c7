//! The invariants of ARCHITECTURE.md, held over the syntax tree of all code by the checker of
//! `cargo xtask tidy`. `tests/architecture_planted.rs` shows that it finds what it looks for.

use std::sync::LazyLock;

use xtask::tidy::check::SEEN;
use xtask::tidy::project::RULES;
use xtask::tidy::report::{CycleFound, Report};
use xtask::tidy::text::{DOCUMENTED, LINTED, READABLE};

/// What the checker found in this project.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn report() -> &'static Report {
    static REPORT: LazyLock<Report> = LazyLock::new(|| xtask::tidy::check_project().unwrap());
    &REPORT
}

/// Fails with the faults of a rule.
fn check(rule: &str) {
    let faults = report().faults_of(rule);
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Fails with the faults of a rule in the project's tables.
fn check_layer(rule: &str) {
    assert!(RULES.names().contains(&rule), "no such rule: {rule}");
    check(rule);
}

#[test]
fn modules_form_no_cycle() {
    let cycles = report().cycles.iter().map(CycleFound::ring_lines);
    let cycles: Vec<_> = cycles.collect();
    assert!(cycles.is_empty(), "\n{}", cycles.join("\n"));
}

#[test]
fn every_line_is_seen() {
    check(SEEN);
    assert_eq!(report().unseen_lines, 0);
    assert!(report().lines > 100_000, "{} lines", report().lines);
    check_layer("code is not included as text");
}

#[test]
fn the_kernel_names_no_pattern() {
    check_layer("the kernel names no pattern");
}

#[test]
fn patterns_name_no_other_pattern() {
    check_layer("patterns name no other pattern");
    check_layer("the router names models and the registry only");
}

#[test]
fn patterns_name_no_engine() {
    check_layer("only db names an engine");
}

#[test]
fn the_vocabulary_depends_on_no_runtime_storage_or_sdk() {
    check_layer("floe-store depends on no runtime, storage or SDK");
    check_layer("floe-store does no I/O");
}

#[test]
fn engines_know_the_vocabulary_only() {
    check_layer("engines know floe-store only");
}

#[test]
fn the_wire_knows_no_pattern() {
    check_layer("what serves the wire names no pattern");
}

#[test]
fn the_key_value_store_is_named_in_one_file() {
    check_layer("only kv names the key-value store");
}

#[test]
fn the_layout_of_bytes_is_in_one_file() {
    check_layer("only layout and the formats of files make bytes");
}

#[test]
fn clock_and_randomness_come_through_one_door() {
    check_layer("only env reads the clock and makes random numbers");
}

#[test]
fn sdk_and_wire_formats_stay_outside() {
    check_layer("only floe-aws/src/convert names the SDK");
    check_layer("serde_json is not the JSON of the wire");
}

#[test]
fn nothing_is_left_undone_or_skipped() {
    check_layer("nothing is left undone or ignored");
    check_layer("no thread sleeps");
}

#[test]
fn every_crate_takes_the_lint_table() {
    check(LINTED);
}

#[test]
fn every_module_says_what_it_is_for() {
    check(DOCUMENTED);
}

#[test]
fn files_stay_readable() {
    check(READABLE);
}

/// Also a rule that has no test of its own.
#[test]
fn nothing_else_is_at_fault() {
    let details = report().details();
    assert!(report().is_clean(), "\n{}", details.join("\n"));
}
