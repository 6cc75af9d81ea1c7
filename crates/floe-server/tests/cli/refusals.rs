//! Every command, called wrongly and in the wrong place: one line, the right exit code, nothing changed.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;

use crate::world::{Ended, Store, run};

const KEY: &str = r#"{"id":"a"}"#;

/// Every command that works on a store, with what it must be given besides the place.
const COMMANDS: &[&[&str]] = &[
    &["table", "list"],
    &["table", "describe", "nothing"],
    &["table", "create", "made", "--key", "id:S"],
    &["table", "delete", "nothing", "--yes"],
    &["item", "get", "nothing", "--key", KEY],
    &["item", "put", "nothing", "--item", KEY],
    &[
        "item", "update", "nothing", "--key", KEY, "--update", "REMOVE a",
    ],
    &["item", "delete", "nothing", "--key", KEY],
    &[
        "query",
        "nothing",
        "--key-condition",
        "id = :i",
        "--values",
        r#"{":i":"a"}"#,
    ],
    &["scan", "nothing"],
    &["events", "read", "Cart-1"],
    &["events", "append", "Cart-1", "--type", "Added"],
    &["events", "stats"],
    &["events", "prune", "Cart-1", "--before", "1", "--yes"],
    &["feed", "status"],
    &["feed", "checkpoint", "--group", "g"],
    &["feed", "parked"],
    &["feed", "read"],
    &["feed", "tail"],
    &["feed", "lag"],
    &["feed", "verify"],
    &["indexer", "--once"],
    &["graph", "get", "s", "t", "i"],
    &["graph", "related", "s", "t", "i"],
    &["graph", "referrers", "s", "t", "i"],
    &["graph", "lookup", "s", "by_x", "k"],
    &["graph", "check"],
    &["changes", "tail", "nothing"],
    &["changes", "parked", "nobody"],
    &["changes", "replay", "nobody", "--all"],
    &["changes", "discard", "nobody", "t/i/1"],
    &["tables", "--format", "json"],
    &["export", "nothing"],
    &["import", "--from", "/dev/null", "--table", "nothing"],
];

/// Those that work on a directory alone.
const LOCAL: &[&[&str]] = &[&["backup", "/dev/null/copy"], &["doctor"], &["bench"]];

/// Those that do what they are asked to in an empty store.
const CONTENT: &[&str] = &["list", "create", "tables", "import"];

#[track_caller]
fn one_line(ended: &Ended, code: i32, words: &[&str]) {
    ended.failed(code, words);
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.starts_with("floe: "), "{ended:?}");
}

#[test]
fn a_wrong_option_is_told_with_where_help_is() {
    let alone: [&[&str]; 7] = [
        &["serve", "--memory"],
        &["demo"],
        &["restore", "/nowhere", "--data", "/nowhere"],
        &["completions", "bash"],
        &["man", "/nowhere"],
        &["backup", "/nowhere", "--data", "/nowhere"],
        &["doctor", "--data", "/nowhere"],
    ];
    for command in COMMANDS.iter().chain(&alone) {
        let ended = run(&[command, &["--wrong"][..]].concat());
        one_line(
            &ended,
            2,
            &["unexpected argument '--wrong'", "see floe ", "--help"],
        );
    }
    one_line(
        &run(&["tabel"]),
        2,
        &["unrecognized subcommand 'tabel'", "see floe --help"],
    );
}

#[test]
fn a_wrong_value_is_told_with_what_it_should_be() {
    let store = Store::directory().with_orders();
    let get = ["item", "get", "orders", "--key"];
    for (arguments, words) in [
        (
            &[&get[..], &["{"]].concat()[..],
            &["--key is not JSON: at=1"][..],
        ),
        (
            &[&get[..], &["@/nowhere"]].concat(),
            &["--key cannot be read", "given=@/nowhere"],
        ),
        (
            &[&get[..], &[r#"{"customer":1}"#]].concat(),
            &["key element does not match"],
        ),
        (
            &["scan", "orders", "--filter", "a ="],
            &["Invalid FilterExpression", "Syntax error"],
        ),
        (
            &["scan", "orders", "--cursor", "x"],
            &["--cursor is none that a page has ended with"],
        ),
        (&["scan", "orders", "--limit", "0"], &["invalid value '0'"]),
        (
            &["scan", "orders", "--index", "none"],
            &["does not have the specified index"],
        ),
        (
            &["table", "create", "x", "--key", "id"],
            &["not a name and a type"],
        ),
        (
            &["table", "create", "x", "--key", "id:S", "--index", "a:S"],
            &["not an index and its key"],
        ),
        (&["table", "create", "a b", "--key", "id:S"], &["tableName"]),
        (&["events", "read", "nodash"], &["not the name of a stream"]),
        (
            &["events", "append", "Cart-1", "--type", ""],
            &["an event has a type"],
        ),
        (&["tables", "--format", "yaml"], &["invalid value 'yaml'"]),
        (
            &["table", "list", "--endpoint", "http://here"],
            &["cannot be used with"],
        ),
    ] {
        let ended = store.run(arguments);
        let code = if words[0].contains("cannot be read") {
            1
        } else {
            2
        };
        one_line(&ended, code, words);
    }
    assert_eq!(store.prints(&["table", "list", "--names"]), "orders\n");
}

#[test]
fn a_directory_without_a_store_is_refused_and_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note"), "mine").unwrap();
    let (missing, path) = (folder.path().join("missing"), folder.path());
    let before = files(folder.path());
    for command in COMMANDS.iter().chain(LOCAL) {
        let ended = run(&[command, &["--data", missing.to_str().unwrap()][..]].concat());
        one_line(&ended, 1, &["there is no such directory: path=", "missing"]);
        if command[0] == "bench" {
            continue;
        }
        let ended = run(&[command, &["--data", path.to_str().unwrap()][..]].concat());
        one_line(&ended, 1, &["there is no store in the directory: path="]);
    }
    let ended = run(&[
        "restore",
        missing.to_str().unwrap(),
        "--data",
        "/nowhere/at/all",
    ]);
    one_line(&ended, 1, &["there is no such directory: path="]);
    one_line(
        &run(&["man", missing.to_str().unwrap()]),
        1,
        &["there is no such directory"],
    );
    let ended = run(&["demo", "--no-serve", "--data", path.to_str().unwrap()]);
    one_line(&ended, 1, &["the directory is not empty"]);
    assert_eq!(files(folder.path()), before);
}

#[test]
fn a_server_that_cannot_be_reached_is_told_with_a_hint() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let endpoint = format!("http://127.0.0.1:{port}");
    for command in COMMANDS {
        let ended = run(&[command, &["--endpoint", &endpoint][..]].concat());
        one_line(
            &ended,
            1,
            &[
                "the store cannot be reached, ",
                "Connection refused",
                "; see --endpoint",
            ],
        );
    }
}

#[test]
fn what_is_not_in_the_store_is_told_and_nothing_is_made() {
    for store in Store::both() {
        for command in COMMANDS {
            if command.iter().any(|word| CONTENT.contains(word)) {
                continue;
            }
            let ended = store.run(command);
            one_line(&ended, 1, &["there is no"]);
        }
        assert_eq!(store.prints(&["table", "list", "--names"]), "");
    }
}

#[test]
fn no_place_at_all_is_told_with_how_to_name_one() {
    let ended = run(&["table", "list"]);
    one_line(&ended, 1, &["--data or --endpoint"]);
}

#[test]
fn every_command_has_help_with_examples() {
    for command in COMMANDS.iter().chain(LOCAL) {
        let names = command.iter().take_while(|word| !word.starts_with('-'));
        let names: Vec<&str> = names.copied().take(2).collect();
        let is_pair = ["table", "item", "events", "feed", "graph", "changes"].contains(&names[0]);
        let names = if is_pair { &names[..] } else { &names[..1] };
        let help = run(&[names, &["--help"]].concat()).succeeded().stdout;
        assert!(help.contains("Examples:"), "{names:?} {help}");
        assert_eq!(
            help.contains("JSON is plain"),
            matches!(names[0], "item" | "query" | "scan"),
            "{names:?}"
        );
        assert!(
            names[0] == "bench" || help.contains("--data"),
            "{names:?} {help}"
        );
    }
}

/// All files below a directory, and what is in them.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap().path();
        match entry.is_dir() {
            true => found.extend(files(&entry)),
            false => _ = found.insert(entry.display().to_string(), std::fs::read(&entry).unwrap()),
        }
    }
    found
}
