//! The invariants of ARCHITECTURE.md, held as tests over the source tree.
//!
//! Most of them say what is absent: a dependency that must not be there, a name that may stand in one
//! file only. A failure names the file and the line.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Every file below `folder` (relative to the root) with this extension.
fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(at) = open.pop() {
        let Ok(entries) = fs::read_dir(&at) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if name != "target" && !name.starts_with('.') {
                    open.push(path);
                }
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root())
        .unwrap()
        .to_string_lossy()
        .into_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The code of a file: without comments and without what follows `#[cfg(test)]`.
fn code(path: &Path) -> Vec<(usize, String)> {
    let text = read(path);
    text.lines()
        .enumerate()
        .take_while(|(_, line)| !line.trim_start().starts_with("#[cfg(test)]"))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(n, line)| (n + 1, line.to_owned()))
        .collect()
}

fn is_test_code(path: &Path) -> bool {
    let path = relative(path);
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.contains("_tests.rs")
}

/// Fails if a word stands in code below `folders` outside of the `allowed` files.
fn check_only_in(words: &[&str], folders: &[&str], allowed: &[&str]) {
    let mut faults = Vec::new();
    for path in folders.iter().flat_map(|folder| files(folder, "rs")) {
        let name = relative(&path);
        if is_test_code(&path) || allowed.iter().any(|a| name.contains(a)) {
            continue;
        }
        for (line, text) in code(&path) {
            if let Some(word) = words.iter().find(|word| text.contains(*word)) {
                faults.push(format!("{name}:{line}: {word}: {}", text.trim()));
            }
        }
    }
    assert!(
        faults.is_empty(),
        "only in {allowed:?}:\n{}",
        faults.join("\n")
    );
}

/// The names in the `[dependencies]` table of a crate.
fn dependencies(manifest: &str) -> Vec<String> {
    let text = read(&root().join(manifest));
    text.lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['=', '.', ' ']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_vocabulary_depends_on_no_runtime_storage_or_sdk() {
    assert_eq!(
        dependencies("crates/floe-store/Cargo.toml"),
        ["base64", "smol_str"]
    );
}

#[test]
fn engines_know_the_vocabulary_only() {
    for engine in ["floe-local", "floe-aws"] {
        let ours: Vec<_> = dependencies(&format!("crates/{engine}/Cargo.toml"))
            .into_iter()
            .filter(|name| name.starts_with("floe"))
            .collect();
        assert_eq!(ours, ["floe-store"], "{engine}");
    }
}

#[test]
fn the_key_value_store_is_named_in_one_file() {
    check_only_in(
        &["fjall", "imbl", "lsm_tree", "sfa::"],
        &["crates"],
        &[
            "floe-local/src/kv.rs",
            "floe-local/src/kv/",
            // Checks its files before it opens them.
            "floe-local/src/files",
        ],
    );
}

#[test]
fn the_layout_of_bytes_is_in_one_file() {
    check_only_in(
        &["_be_bytes", "_le_bytes", "encode_ordered", "encode_compact"],
        &["crates/floe-local/src"],
        &[
            "src/layout",
            // The formats of the store below, and the id of a table in front of its keys.
            "src/journal",
            "src/files",
            "src/kv",
            "src/fuzzing.rs",
        ],
    );
}

#[test]
fn clock_and_randomness_come_through_one_door() {
    check_only_in(
        &[
            "SystemTime::now",
            "Instant::now",
            "RandomState",
            "getrandom::",
        ],
        &["crates"],
        &["floe-store/src/env.rs"],
    );
}

#[test]
fn sdk_and_wire_formats_stay_outside() {
    // `aws_s` is the SDK and its parts: `aws_sdk_*`, `aws_smithy_*`.
    check_only_in(
        &["aws_s", "aws_config", "aws_credential_types"],
        &["crates"],
        &["floe-aws/src/convert/"],
    );
    // Exports, JSON fields, JSON Schema, the bodies of events, the descriptions of registries and the events of Lambda are
    // text by nature, and not the wire.
    check_only_in(
        &["serde_json"],
        &["crates"],
        &[
            "floe-local/src/export",
            "floe/src/changes/",
            "floe/src/delivery/stream/",
            "floe/src/model/",
            "floe/src/model.rs",
            "floe/src/events/support.rs",
            "floe/src/events/feed/",
            "floe/src/registry/describe",
        ],
    );
}

#[test]
fn patterns_name_no_engine() {
    let engines = ["floe_local", "floe_aws"];
    check_only_in(&engines, &["crates/floe/src"], &["floe/src/db.rs"]);
}

#[test]
fn the_wire_knows_no_pattern() {
    check_only_in(&["floe::"], &["crates/floe-server/src"], &[]);
}

#[test]
fn nothing_is_left_undone_or_skipped() {
    let words = [
        "todo!(",
        "unimplemented!(",
        "#[ignore",
        "thread::sleep",
        "dbg!(",
    ];
    for path in ["crates", "verify", "xtask", "examples", "benches", "fuzz"]
        .iter()
        .flat_map(|folder| files(folder, "rs"))
    {
        if relative(&path) == "xtask/tests/architecture.rs" {
            continue;
        }
        for (n, line) in read(&path).lines().enumerate() {
            let found = words.iter().find(|word| {
                // The store below tells nobody when it has caught up, so waiting for it is asking.
                let waits =
                    **word == "thread::sleep" && path.ends_with("floe-local/src/kv/disk.rs");
                line.contains(*word) && !waits
            });
            assert!(found.is_none(), "{}:{}: {line}", relative(&path), n + 1);
        }
    }
}

#[test]
fn every_crate_takes_the_lint_table() {
    for path in ["crates", "verify", "xtask", "examples", "benches"]
        .iter()
        .flat_map(|folder| files(folder, "toml"))
        .filter(|path| path.ends_with("Cargo.toml"))
    {
        let text = read(&path);
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{}: no `[lints] workspace = true`",
            relative(&path)
        );
    }
}

#[test]
fn every_module_says_what_it_is_for() {
    for path in ["crates", "verify", "xtask", "examples", "benches"]
        .iter()
        .flat_map(|folder| files(folder, "rs"))
    {
        assert!(
            read(&path).starts_with("//!"),
            "{}: opens without a `//!`",
            relative(&path)
        );
    }
}

#[test]
fn files_stay_readable() {
    // Catalogues and tables of tests may be long.
    const LINES_MAX: usize = 600;
    let exempt = ["limits.rs", "reserved.rs"];
    let mut faults = Vec::new();
    for path in files("crates", "rs") {
        let lines = code(&path).len();
        let name = relative(&path);
        if lines > LINES_MAX && !is_test_code(&path) && !exempt.iter().any(|e| name.ends_with(e)) {
            faults.push(format!("{name}: {lines} lines"));
        }
    }
    assert!(
        faults.is_empty(),
        "over {LINES_MAX}:\n{}",
        faults.join("\n")
    );
}
