//! The checks and tools that the README and the book name are there.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn pages(path: &Path) -> Vec<PathBuf> {
    match path.is_dir() {
        false => vec![path.to_owned()],
        true => fs::read_dir(path)
            .unwrap()
            .flat_map(|entry| pages(&entry.unwrap().path()))
            .collect(),
    }
}

/// What stands after `cargo xtask` in the README and the book: the command, and the name if there is one.
fn named() -> BTreeSet<(String, Option<String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let pages = ["README.md", "docs"].map(|name| pages(&root.join(name)));
    let mut found = BTreeSet::new();
    for page in pages.concat() {
        let text = fs::read_to_string(&page).unwrap();
        for rest in text.split("cargo xtask ").skip(1) {
            let line = rest.lines().next().unwrap_or_default();
            let words = line.split('`').next().unwrap_or_default();
            let mut words = words.split_whitespace();
            let command = words.next().unwrap_or_default().to_owned();
            let is_name = |word: &&str| word.starts_with(|letter: char| letter.is_lowercase());
            found.insert((command, words.next().filter(is_name).map(str::to_owned)));
        }
    }
    found
}

/// What a command tells when it is asked for help.
fn help(command: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args([command, "--help"])
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo xtask {command} --help");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_check_that_is_named_is_there() {
    let named = named();
    assert!(named.contains(&("verify".to_owned(), Some("kill".to_owned()))));
    for (command, names) in named {
        let help = help(&command);
        // Several may be named at once: `bench engine|models`.
        for name in names.iter().flat_map(|names| names.split('|')) {
            let is_told = help
                .lines()
                .any(|line| line.trim_start().split(' ').next() == Some(name));
            assert!(is_told || name == "all", "{command} {name}:\n{help}");
        }
    }
}
