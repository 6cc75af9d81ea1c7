//! Tests of the invariants of ARCHITECTURE.md on all code, with the checker of `cargo xtask tidy`.
//! `tests/architecture_planted.rs` tests that the checker finds violations.

use std::sync::LazyLock;

use xtask::tidy::check::REACHED;
use xtask::tidy::project::RULES;
use xtask::tidy::report::{ModuleCycle, Report};
use xtask::tidy::text::{DOCUMENTED, LINTED, READABLE};

/// The report on this project.
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
fn report() -> &'static Report {
    static REPORT: LazyLock<Report> = LazyLock::new(|| xtask::tidy::check_project().unwrap());
    &REPORT
}

/// Asserts that a rule has no faults.
fn check(rule: &str) {
    let faults = report().faults_of(rule);
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Asserts that a rule in the project's tables has no faults.
fn check_layer(rule: &str) {
    assert!(RULES.names().contains(&rule), "unknown rule: {rule}");
    check(rule);
}

#[test]
fn modules_form_no_cycle() {
    let cycles = report().cycles.iter().map(ModuleCycle::summary);
    let cycles: Vec<_> = cycles.collect();
    assert!(cycles.is_empty(), "\n{}", cycles.join("\n"));
}

#[test]
fn every_file_is_reached_and_parsed() {
    check(REACHED);
    assert_eq!(report().unseen_lines, 0);
    assert!(report().lines > 100_000, "{} lines", report().lines);
    check_layer("code is not included as text");
}

#[test]
fn kernel_names_no_pattern() {
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
fn floe_store_depends_on_no_runtime_storage_or_sdk() {
    check_layer("floe-store depends on no runtime, storage or SDK");
    check_layer("floe-store does no I/O");
}

#[test]
fn engines_depend_on_floe_store_only() {
    check_layer("engines depend on floe-store only");
}

#[test]
fn protocol_server_names_no_pattern() {
    check_layer("the protocol server names no pattern");
}

#[test]
fn key_value_store_is_named_only_in_kv() {
    check_layer("only kv names the key-value store");
}

#[test]
fn bytes_are_encoded_only_in_layout() {
    check_layer("only layout and file formats encode bytes");
}

#[test]
fn clock_and_randomness_are_used_only_in_env() {
    check_layer("only env reads the clock and generates random numbers");
}

#[test]
fn sdk_and_serde_json_are_named_only_where_allowed() {
    check_layer("only floe-aws/src/convert names the SDK");
    check_layer("serde_json is not used for the wire protocol");
}

#[test]
fn no_code_is_unfinished_or_ignored() {
    check_layer("no code is unfinished or ignored");
    check_layer("no thread sleeps");
}

#[test]
fn every_package_uses_the_lint_table() {
    check(LINTED);
}

#[test]
fn every_file_starts_with_docs() {
    check(DOCUMENTED);
}

#[test]
fn files_have_a_limited_length() {
    check(READABLE);
}

/// Covers rules without their own test.
#[test]
fn project_has_no_other_faults() {
    let details = report().details();
    assert!(report().is_clean(), "\n{}", details.join("\n"));
}
