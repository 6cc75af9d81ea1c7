//! The names after `cargo xtask` in the README and the book.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn pages(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        fs::read_dir(path)
            .unwrap()
            .flat_map(|entry| pages(&entry.unwrap().path()))
            .collect()
    } else {
        vec![path.to_owned()]
    }
}

/// Returns what follows `cargo xtask` in the README and the book: the command, and the name if there is one.
pub(crate) fn named() -> BTreeSet<(String, Option<String>)> {
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

/// Returns the output of a program with `--help`.
pub(crate) fn help(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .arg("--help")
        .output()
        .unwrap();
    assert!(output.status.success(), "{program} {arguments:?} --help");
    String::from_utf8(output.stdout).unwrap()
}

/// Checks that the help of a program lists these names.
pub(crate) fn check_names(
    place: &str,
    names: impl IntoIterator<Item = String>,
    program: &str,
    arguments: &[&str],
) {
    let help = help(program, arguments);
    for name in names {
        let is_listed = help
            .lines()
            .any(|line| line.trim_start().split(' ').next() == Some(&*name));
        assert!(is_listed, "{place} {name}:\n{help}");
    }
}

/// Checks that the help of a program lists every name that follows a command.
pub(crate) fn check_listed(command: &str, program: &str, arguments: &[&str]) {
    let named = named().into_iter().filter(|(known, _)| known == command);
    let names: Vec<_> = named.filter_map(|(_, names)| names).collect();
    // Several may be given at once: `bench engine|models`.
    let names = names.iter().flat_map(|names| names.split('|'));
    check_names(command, names.map(str::to_owned), program, arguments);
}
