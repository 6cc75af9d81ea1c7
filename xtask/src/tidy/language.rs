//! Checks the language of code and docs: banned words, and test names without a subject.

use std::collections::BTreeMap;

use super::facts::{Body, File};
use super::fault::Fault;
use super::layers::starts_with_any;
use super::workspace::Workspace;

/// The rule about banned words, as reported.
const WORDS: &str = "write the replacement in words.txt";
/// The rule about test names, as reported.
const TEST_NAMES: &str = "a test name states the behaviour under test";

/// The banned words, each with its replacement.
const LIST: &str = include_str!("words.txt");

/// Where banned words are counted: beginnings of paths.
const WITHIN: &[&str] = &["crates/", "xtask/", "docs/"];

/// First words of test names that name no subject.
const UNCLEAR_FIRST_WORDS: &[&str] = &[
    "anybody",
    "everybody",
    "nobody",
    "one",
    "others",
    "somebody",
    "what",
    "who",
    "whoever",
    "whose",
];

/// The results of the language check.
#[derive(Debug, Default)]
pub(crate) struct LanguageReport {
    pub(crate) banned_words: usize,
    pub(crate) riddle_tests: usize,
    pub(crate) faults: Vec<Fault>,
}

/// Counts banned words in all text, and test names without a subject.
pub(crate) fn find(workspace: &Workspace, files: &BTreeMap<String, File>) -> LanguageReport {
    let mut found = LanguageReport::default();
    let banned: BTreeMap<&str, &str> = banned().collect();
    let texts = workspace.files.iter().chain(&workspace.prose);
    for (path, text) in texts.filter(|(path, _)| starts_with_any(path, WITHIN)) {
        for (number, line) in (1..).zip(text.lines()) {
            for word in words(line) {
                let lower = word.to_lowercase();
                if let Some(instead) = banned.get(lower.as_str()) {
                    found.banned_words += 1;
                    let what = format!("`{lower}`: write {instead}");
                    found.faults.push(Fault::new(WORDS, path, number, what));
                }
            }
        }
    }
    for (path, file) in files {
        check_test_names(path, &file.body, &mut found);
    }
    found
}

fn banned() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(": "))
}

/// The words of a line; names in code are split at underscores.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let words = line.split(|c: char| !c.is_alphabetic());
    words.filter(|word| !word.is_empty())
}

fn check_test_names(path: &str, body: &Body, found: &mut LanguageReport) {
    for (name, line) in &body.tests {
        let first = name.split('_').next().unwrap_or_default();
        if UNCLEAR_FIRST_WORDS.contains(&first) {
            found.riddle_tests += 1;
            let what = format!("`{name}` begins with `{first}`");
            found.faults.push(Fault::new(TEST_NAMES, path, *line, what));
        }
    }
    let inline = body.modules.iter();
    for body in inline.filter_map(|module| module.inline.as_ref()) {
        check_test_names(path, body, found);
    }
}
