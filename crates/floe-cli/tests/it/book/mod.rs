//! The book in `docs/` and the README: every command in them is run, or it is named here why not; every link leads
//! somewhere; and every page is in the table of contents.
//!
//! Programs in Rust are doc tests of `floe` (`crates/floe/src/book.rs`). Programs of the repository (`cargo run -p floe-examples --bin ..`)
//! are run by `examples/tests/it/book.rs`, and `xtask/tests/book.rs` sees that there is every check that is named.

mod page;
mod session;
mod stage;
#[expect(clippy::print_stdout, reason = "it is a program of the book")]
mod ten_minutes;

use std::collections::BTreeSet;

use page::{Page, docs};
use session::{Session, played};

/// Pages that others run from top to bottom.
const PAGES_ELSEWHERE: [(&str, &str); 1] = [(
    "docs/using-with-aws-sdks.md",
    "needs the AWS CLI, python and node, which `cargo xtask verify clients` brings",
)];

/// Commands that are not run here, by how they begin, and why.
const ELSEWHERE: [(&str, &str); 9] = [
    (
        "cargo install --path floe/crates/floe-cli",
        "it is built already, and is what the other commands run",
    ),
    ("cargo new shop", "the project is a folder of the test"),
    (
        "cargo add ",
        "needs the package index; the program is compiled here",
    ),
    ("cargo test --workspace", "it is what runs this test"),
    ("cargo run", "examples/tests/it/book.rs runs the program"),
    (
        "cargo xtask ",
        "takes minutes; xtask/tests/book.rs sees that there is such a check",
    ),
    (
        "aws dynamodb list-tables --endpoint-url ",
        "`cargo xtask verify clients` brings the AWS CLI",
    ),
    (
        "cargo build --release -p floe-cli --target ",
        "needs a linker for another machine",
    ),
    (
        "cp target/aarch64-unknown-linux-gnu/",
        "needs what was built for another machine",
    ),
];

#[test]
fn every_command_does_what_it_says() {
    let elsewhere = |page: &Page| PAGES_ELSEWHERE.iter().any(|(name, _)| *name == page.name);
    let (mut run, mut used) = (0, BTreeSet::new());
    for page in page::all() {
        if elsewhere(&page) {
            continue;
        }
        let mut session = Session::new(&page.name);
        for command in page.commands() {
            let known = ELSEWHERE
                .iter()
                .find(|(begins, _)| command.line.starts_with(begins));
            let place = format!("{}: {}", page.name, command.line);
            match (session.run(&command), known) {
                (Some(Ok(())), _) => run += 1,
                (Some(Err(why)), _) => panic!("{place}: {why}"),
                (None, Some((begins, _))) => _ = used.insert(*begins),
                (None, None) => panic!(
                    "{place}: nobody knows how to run it; see {}/tests/it/book/mod.rs",
                    env!("CARGO_PKG_NAME")
                ),
            }
        }
    }
    assert!(run >= 15, "only {run} commands were found");
    let unused: Vec<_> = ELSEWHERE
        .iter()
        .filter(|(begins, _)| !used.contains(begins))
        .collect();
    assert!(unused.is_empty(), "no longer in the book: {unused:?}");
}

#[test]
fn the_program_of_ten_minutes_is_the_one_that_is_shown() {
    let source = include_str!("ten_minutes.rs");
    let shown = source.replace("pub(crate) async fn main", "async fn main");
    let chapter = page::named("docs/ten-minutes.md").text;
    assert!(chapter.contains(&format!("```rust,no_run\n{shown}```")));
}

#[test]
fn the_program_of_ten_minutes_can_be_run_twice() {
    if session::is_played() {
        return ten_minutes::main().unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        assert_eq!(played(folder.path()), Ok("tea left: 8".to_owned()));
    }
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let contents: BTreeSet<String> = page::named("docs/SUMMARY.md")
        .links()
        .into_iter()
        .map(|link| format!("docs/{link}"))
        .collect();
    let pages: BTreeSet<String> = page::all()
        .into_iter()
        .map(|page| page.name)
        .filter(|name| name.starts_with("docs/") && name != "docs/SUMMARY.md")
        .collect();
    let missing: Vec<_> = pages.difference(&contents).collect();
    assert!(missing.is_empty(), "add to docs/SUMMARY.md: {missing:?}");
}

#[test]
fn every_link_leads_somewhere() {
    let mut faults = Vec::new();
    for page in page::all() {
        for link in page.links() {
            let (path, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = page.beside(path);
            let is_there = match heading {
                "" => target.exists(),
                _ => std::fs::read_to_string(&target)
                    .is_ok_and(|text| page::headings(&text).any(|slug| slug == heading)),
            };
            if !is_there {
                faults.push(format!("{}: {link}", page.name));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(docs().join("book.toml").exists());
}
