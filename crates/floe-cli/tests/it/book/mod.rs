//! The book in `docs/` and the README: runs every command, except those listed here with a reason; checks that every link has
//! a target and that every page is in the table of contents.
//!
//! Rust code is run as doc tests of `floe` (`crates/floe/src/book.rs`). Programs of the repository
//! (`cargo run -p floe-examples --bin ..`) are run by `examples/tests/it/book.rs`, and `xtask/tests/book.rs` checks that every
//! named check exists.

mod page;
mod session;
mod stage;
#[expect(clippy::print_stdout, reason = "it is a program of the book")]
mod ten_minutes;

use std::collections::BTreeSet;

use page::{Page, docs};
use session::{Session, run_reader_program};

/// Pages whose commands another test runs.
const PAGES_ELSEWHERE: [(&str, &str); 1] = [(
    "docs/using-with-aws-sdks.md",
    "needs the AWS CLI, python and node, which `cargo xtask verify clients` installs",
)];

/// Commands that are not run here, by prefix, with the reason.
const ELSEWHERE: [(&str, &str); 9] = [
    (
        "cargo install --path floe/crates/floe-cli",
        "the program is built already",
    ),
    (
        "cargo new shop",
        "the project is a temporary directory of the test",
    ),
    (
        "cargo add ",
        "needs the package index; the program is compiled here",
    ),
    ("cargo test --workspace", "it runs this test"),
    ("cargo run", "examples/tests/it/book.rs runs the program"),
    (
        "cargo xtask ",
        "takes minutes; xtask/tests/book.rs checks that the check exists",
    ),
    (
        "aws dynamodb list-tables --endpoint-url ",
        "`cargo xtask verify clients` installs the AWS CLI",
    ),
    (
        "cargo build --release -p floe-cli --target ",
        "needs a cross linker",
    ),
    (
        "cp target/aarch64-unknown-linux-gnu/",
        "needs a cross-compiled program",
    ),
];

#[test]
fn every_command_prints_what_the_page_shows() {
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
                .find(|(prefix, _)| command.line.starts_with(prefix));
            let location = format!("{}: {}", page.name, command.line);
            match (session.run(&command), known) {
                (Some(Ok(())), _) => run += 1,
                (Some(Err(error)), _) => panic!("{location}: {error}"),
                (None, Some((prefix, _))) => _ = used.insert(*prefix),
                (None, None) => panic!(
                    "{location}: no test runs this command: add it to {}/tests/it/book/mod.rs",
                    env!("CARGO_PKG_NAME")
                ),
            }
        }
    }
    assert!(run >= 15, "only {run} commands were found");
    let unused: Vec<_> = ELSEWHERE
        .iter()
        .filter(|(prefix, _)| !used.contains(prefix))
        .collect();
    assert!(unused.is_empty(), "no longer in the book: {unused:?}");
}

#[test]
fn ten_minutes_program_equals_the_page() {
    let source = include_str!("ten_minutes.rs");
    let shown = source.replace("pub(crate) async fn main", "async fn main");
    let chapter = page::named("docs/ten-minutes.md").text;
    assert!(chapter.contains(&format!("```rust,no_run\n{shown}```")));
}

#[test]
fn ten_minutes_program_can_be_run_twice() {
    if session::is_reader_program() {
        return ten_minutes::main().unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        assert_eq!(
            run_reader_program(folder.path()),
            Ok("tea left: 8".to_owned())
        );
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
fn every_link_has_a_target() {
    let mut broken = Vec::new();
    for page in page::all() {
        for link in page.links() {
            let (path, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = page.resolve_link(path);
            let exists = match heading {
                "" => target.exists(),
                _ => std::fs::read_to_string(&target)
                    .is_ok_and(|text| page::headings(&text).any(|slug| slug == heading)),
            };
            if !exists {
                broken.push(format!("{}: {link}", page.name));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(docs().join("book.toml").exists());
}
