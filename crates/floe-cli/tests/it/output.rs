//! Standard output that cannot be written: on a full disk, and after its reader has closed the pipe.

use std::fs::File;
use std::process::Stdio;

use crate::support::{ProgramOutput, Store, floe, run_command};

/// Runs a command with this standard output.
fn run_with(stdout: impl Into<Stdio>, words: &[&str]) -> ProgramOutput {
    let mut command = floe(words);
    command.stdout(stdout);
    run_command(command)
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

/// A pipe whose reader is closed.
fn closed_pipe() -> std::io::PipeWriter {
    let (_, writer) = std::io::pipe().unwrap();
    writer
}

/// The directory of a demo store.
fn shop(folder: &tempfile::TempDir) -> String {
    let path = folder.path().join("shop").to_str().unwrap().to_owned();
    let words = ["demo", "--no-serve", "--data", &path];
    run_command(floe(&words)).assert_success();
    path
}

const ROPE: &str = r#"{"_id":"rope"}"#;

/// Commands on the demo store that print something.
const PRINTING: &[&[&str]] = &[
    &["table", "list"],
    &["table", "list", "--json"],
    &["table", "list", "--names"],
    &["table", "describe", "Product"],
    &["table", "create", "made", "--key", "id:S"],
    &["table", "delete", "made", "--yes"],
    &["item", "get", "Product", "--key", ROPE],
    &["item", "get", "Product", "--key", ROPE, "--json"],
    &["item", "put", "Product", "--item", ROPE],
    &["item", "delete", "Product", "--key", ROPE],
    &["scan", "Product"],
    &["scan", "Product", "--json"],
    &["scan", "Product", "--count"],
    &["events", "read", "Account-ada"],
    &["events", "stats", "--json"],
    &["events", "create"],
    &["events", "append", "Account-ada", "--type", "Deposited"],
    &["feed", "status"],
    &["feed", "read", "--events"],
    &["feed", "tail", "--last", "5", "--once"],
    &["feed", "verify"],
    &["indexer", "--once"],
    &["graph", "get", "shop", "customer", "ada"],
    &["graph", "related", "shop", "customer", "ada", "--json"],
    &["graph", "lookup", "shop", "by_city", "Oslo"],
    &["graph", "check"],
    &["registry", "list"],
    &["registry", "latest", "PriceList", "market=north"],
    &["registry", "history", "PriceList", "market=north", "--json"],
    &["registry", "describe", "PriceList"],
    &["changes", "tail", "events", "--from-start", "--once"],
    &["tables", "--format", "terraform"],
    &["export", "Product"],
    &["doctor"],
    &["doctor", "--json"],
];

/// Commands without a store.
const WITHOUT_STORE: &[&[&str]] = &[
    &["--help"],
    &["--version"],
    &["item", "put", "--help"],
    &["completions", "bash"],
    &["demo", "--no-serve"],
    &["demo", "--listen", "0"],
    &["serve", "--memory", "--listen", "0"],
    &["bench", "--memory", "--seconds", "1"],
];

#[track_caller]
fn assert_reported(output: &ProgramOutput) {
    assert_eq!(output.code, Some(1), "{output:?}");
    let last = output.stderr.lines().last().unwrap_or_default();
    let message = "floe: standard output cannot be written: No space left on device";
    assert!(last.starts_with(message), "{output:?}");
}

#[track_caller]
fn assert_quiet(output: &ProgramOutput) {
    assert_eq!(output.code, Some(0), "{output:?}");
    let is_about_output = |text: &str| text.contains("output") || text.contains("pipe");
    assert!(!is_about_output(&output.stderr), "{output:?}");
}

#[test]
fn full_disk_ends_every_command_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let data = shop(&folder);
    for words in PRINTING {
        assert_reported(&run_with(full(), &[words, &["--data", &data][..]].concat()));
    }
    for words in WITHOUT_STORE {
        assert_reported(&run_with(full(), words));
    }
    let copy = folder.path().join("copy").to_str().unwrap().to_owned();
    assert_reported(&run_with(full(), &["backup", &copy, "--data", &data]));
    // The work was done before its result could not be printed.
    let count = ["scan", "Product", "--count", "--data", &copy];
    assert_eq!(run_command(floe(&count)).assert_success().stdout, "4\n");
}

#[test]
fn closed_pipe_ends_every_command_quietly() {
    let folder = tempfile::tempdir().unwrap();
    let data = shop(&folder);
    for words in PRINTING {
        assert_quiet(&run_with(
            closed_pipe(),
            &[words, &["--data", &data][..]].concat(),
        ));
    }
    // Commands that follow something end as well.
    for words in [
        &["changes", "tail", "events", "--from-start"][..],
        &["feed", "read", "--follow"],
    ] {
        assert_quiet(&run_with(
            closed_pipe(),
            &[words, &["--data", &data]].concat(),
        ));
    }
    for words in WITHOUT_STORE {
        assert_quiet(&run_with(closed_pipe(), words));
    }
}

#[test]
fn export_from_a_server_reports_a_full_disk() {
    let store = Store::server().with_orders();
    let words = [&["export", "orders"][..], &store.option()].concat();
    assert_reported(&run_with(full(), &words));
    assert_quiet(&run_with(closed_pipe(), &words));
}
