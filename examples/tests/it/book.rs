//! Runs the programs that the README and the book name. Each program fails if one of its claims does not hold.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All programs, with their paths.
const PROGRAMS: [(&str, &str); 12] = [
    ("cart", env!("CARGO_BIN_EXE_cart")),
    ("guestbook", env!("CARGO_BIN_EXE_guestbook")),
    ("http_api", env!("CARGO_BIN_EXE_http_api")),
    ("inventory", env!("CARGO_BIN_EXE_inventory")),
    ("layers", env!("CARGO_BIN_EXE_layers")),
    ("library", env!("CARGO_BIN_EXE_library")),
    ("orders", env!("CARGO_BIN_EXE_orders")),
    ("projection", env!("CARGO_BIN_EXE_projection")),
    ("router", env!("CARGO_BIN_EXE_router")),
    ("ski_resort", env!("CARGO_BIN_EXE_ski_resort")),
    ("tail", env!("CARGO_BIN_EXE_tail")),
    ("tour", env!("CARGO_BIN_EXE_tour")),
];

fn pages(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    fs::read_dir(path)
        .unwrap()
        .flat_map(|entry| pages(&entry.unwrap().path()))
        .collect()
}

/// The names after `cargo run -p floe-examples --bin` in the README and the book.
fn named() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let pages = ["README.md", "docs"].map(|name| pages(&root.join(name)));
    let mut names = BTreeSet::new();
    for page in pages.concat() {
        let text = fs::read_to_string(&page).unwrap();
        for rest in text.split("cargo run -p floe-examples --bin ").skip(1) {
            let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            names.extend(
                rest.split(|letter| !is_name(letter))
                    .next()
                    .map(str::to_owned),
            );
        }
    }
    names
}

#[test]
fn every_named_program_exists() {
    let known: BTreeSet<String> = PROGRAMS
        .iter()
        .map(|(name, _)| (*name).to_owned())
        .collect();
    let named = named();
    assert!(named.contains("tour"), "{named:?}");
    let unknown: Vec<_> = named.difference(&known).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// A program that is missing from the list would not be run.
#[test]
fn every_program_is_in_the_list() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let sources = pages(&sources).into_iter();
    let names = sources.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned());
    let programs: BTreeSet<String> = names.filter(|name| name != "lib").collect();
    let known = PROGRAMS.map(|(name, _)| name.to_owned());
    assert_eq!(programs, known.into());
}

#[test]
fn every_program_succeeds() {
    for (name, program) in PROGRAMS {
        let output = Command::new(program).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {stderr}");
        assert!(!output.stdout.is_empty(), "{name} prints its results");
    }
}
