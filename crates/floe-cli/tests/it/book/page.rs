//! Markdown pages: their commands with the shown output, and their links.

use std::fs;
use std::path::{Path, PathBuf};

/// The README, or a page of the book.
#[derive(Debug)]
pub(crate) struct Page {
    /// The path in the repository.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// A command on a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) line: String,
    /// The shown output. Empty if the page shows none.
    pub(crate) printed: Vec<String>,
    /// Whether the shown output includes standard error, as on a terminal.
    pub(crate) is_console: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The directory of the book.
pub(crate) fn docs() -> PathBuf {
    root().join("docs")
}

pub(crate) fn named(name: &str) -> Page {
    let text = fs::read_to_string(root().join(name));
    Page {
        name: name.to_owned(),
        text: text.unwrap_or_else(|error| panic!("{name}: {error}")),
    }
}

/// The README and all pages of the book.
pub(crate) fn all() -> Vec<Page> {
    let mut names = vec!["README.md".to_owned()];
    let mut unvisited = vec!["docs".to_owned()];
    while let Some(folder) = unvisited.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                unvisited.push(name);
            } else if name.ends_with(".md") {
                names.push(name);
            }
        }
    }
    names.sort();
    names.iter().map(|name| named(name)).collect()
}

/// The anchors of the headings of a page.
pub(crate) fn headings(text: &str) -> impl Iterator<Item = String> {
    let titles = text.lines().filter(|line| line.starts_with('#'));
    titles.map(|title| {
        let title = title.trim_start_matches('#').trim().to_lowercase();
        let anchor = title
            .chars()
            .filter(|c| c.is_alphanumeric() || "- _".contains(*c));
        anchor.collect::<String>().replace(' ', "-")
    })
}

impl Page {
    /// The commands of the page, in order.
    pub(crate) fn commands(&self) -> Vec<Command> {
        let mut found: Vec<Command> = Vec::new();
        let mut lines = self.text.lines();
        // Whether the next block can be the output of the last command.
        let mut is_after_command = false;
        while let Some(line) = lines.next() {
            let Some(language) = line.strip_prefix("```") else {
                continue;
            };
            let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            match language {
                "sh" => found.extend(in_shell(&inside)),
                "console" => found.extend(in_console(&inside)),
                "text" if is_after_command => {
                    let last = found.last_mut().unwrap();
                    last.printed = inside.iter().map(|line| (*line).to_owned()).collect();
                }
                _ => {}
            }
            is_after_command = language == "sh";
        }
        found
    }

    /// The links to files, with their anchors.
    pub(crate) fn links(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut is_code = false;
        for line in self.text.lines() {
            is_code ^= line.starts_with("```");
            if is_code {
                continue;
            }
            let targets = line.split("](").skip(1);
            let targets = targets.filter_map(|rest| rest.split_once(')'));
            let files = targets.filter(|(target, _)| !target.contains("://"));
            found.extend(files.map(|(target, _)| target.to_owned()));
        }
        found
    }

    /// The target of a link from this page. An empty path is the page itself.
    pub(crate) fn resolve_link(&self, path: &str) -> PathBuf {
        let page = root().join(&self.name);
        match path {
            "" => page,
            _ => page.parent().unwrap().join(path),
        }
    }
}

/// The commands of a shell block: one per line, without comments.
fn in_shell(lines: &[&str]) -> Vec<Command> {
    let joined = lines.join("\n").replace("\\\n", "");
    let commands = joined.lines().map(|line| {
        let line = line.split_once(" #").map_or(line, |(command, _)| command);
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    let commands = commands.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let command = |line| Command {
        line,
        ..Command::default()
    };
    commands.map(command).collect()
}

/// The commands of a console block, with their output.
fn in_console(lines: &[&str]) -> Vec<Command> {
    let mut found: Vec<Command> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push(Command {
                line: command.to_owned(),
                printed: Vec::new(),
                is_console: true,
            }),
            (None, Some(last)) => last.printed.push((*line).to_owned()),
            (None, None) => panic!("a console block must begin with a command: {line}"),
        }
    }
    found
}

#[test]
fn commands_are_parsed_with_their_output() {
    let text = "```sh\na \\\n  b   # why\n\n# a note\nc\n```\nText\n\n```text\n1\n```\n\n```rust\nx\n```\n\n```text\n2\n```\n\
                ```console\n$ d\n3\n$ e\n```\n";
    let page = Page {
        name: String::new(),
        text: text.to_owned(),
    };
    let command = |line: &str, printed: &[&str], is_console| Command {
        line: line.to_owned(),
        printed: printed.iter().map(|line| (*line).to_owned()).collect(),
        is_console,
    };
    let expected = [
        command("a b", &[], false),
        command("c", &["1"], false),
        command("d", &["3"], true),
        command("e", &[], true),
    ];
    assert_eq!(page.commands(), expected);
}
