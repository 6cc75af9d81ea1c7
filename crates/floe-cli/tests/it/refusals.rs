//! Every command, called wrongly and in the wrong place: one line, the right exit code, nothing changed.
//!
//! Which commands there are is asked of the program itself, so that none can be forgotten here.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use crate::world::{Ended, Store, run};

const KEY: &str = r#"{"id":"a"}"#;

/// Where a command finds the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    /// In a directory, or behind a server; an empty one lacks what it asks for.
    Store,
    /// The same, and there is something to do in an empty store.
    AnyStore,
    /// In a directory alone.
    Directory,
    /// It takes no store, or makes one.
    Alone,
}

/// A command, with what it must be given besides the place.
struct Case {
    words: &'static [&'static str],
    place: Where,
}

const fn case(place: Where, words: &'static [&'static str]) -> Case {
    Case { words, place }
}

/// Every command.
const CASES: &[Case] = &[
    case(Where::Alone, &["demo", "--no-serve"]),
    case(Where::Alone, &["serve", "--listen", "0"]),
    case(Where::AnyStore, &["table", "list"]),
    case(Where::Store, &["table", "describe", "nothing"]),
    case(
        Where::AnyStore,
        &["table", "create", "made", "--key", "id:S"],
    ),
    case(Where::Store, &["table", "delete", "nothing", "--yes"]),
    case(Where::Store, &["item", "get", "nothing", "--key", KEY]),
    case(Where::Store, &["item", "put", "nothing", "--item", KEY]),
    case(
        Where::Store,
        &[
            "item", "update", "nothing", "--key", KEY, "--update", "REMOVE a",
        ],
    ),
    case(Where::Store, &["item", "delete", "nothing", "--key", KEY]),
    case(
        Where::Store,
        &[
            "query",
            "nothing",
            "--key-condition",
            "id = :i",
            "--values",
            r#"{":i":"a"}"#,
        ],
    ),
    case(Where::Store, &["scan", "nothing"]),
    case(Where::Store, &["events", "read", "Cart-1"]),
    case(
        Where::Store,
        &["events", "append", "Cart-1", "--type", "Added"],
    ),
    case(Where::Store, &["events", "stats"]),
    case(
        Where::Store,
        &["events", "prune", "Cart-1", "--before", "1", "--yes"],
    ),
    case(Where::Store, &["feed", "status"]),
    case(Where::Store, &["feed", "checkpoint", "--group", "g"]),
    case(Where::Store, &["feed", "parked"]),
    case(Where::Store, &["feed", "read"]),
    case(Where::Store, &["feed", "tail"]),
    case(Where::Store, &["feed", "lag"]),
    case(Where::Store, &["feed", "verify"]),
    case(Where::Store, &["indexer", "--once"]),
    case(Where::Store, &["graph", "get", "s", "t", "i"]),
    case(Where::Store, &["graph", "related", "s", "t", "i"]),
    case(Where::Store, &["graph", "referrers", "s", "t", "i"]),
    case(Where::Store, &["graph", "lookup", "s", "by_x", "k"]),
    case(Where::Store, &["graph", "check"]),
    case(Where::AnyStore, &["registry", "list"]),
    case(Where::Store, &["registry", "describe", "None"]),
    case(Where::Store, &["registry", "latest", "None", "a=b"]),
    case(Where::Store, &["registry", "deployed", "None", "a=b"]),
    case(
        Where::Store,
        &["registry", "get", "None", "a=b", "--version", "1"],
    ),
    case(Where::Store, &["registry", "history", "None", "a=b"]),
    case(
        Where::Store,
        &["registry", "publish", "None", "--item", KEY],
    ),
    case(
        Where::Store,
        &["registry", "retire", "None", "a=b", "--version", "1"],
    ),
    case(
        Where::Store,
        &["registry", "pin", "None", "a=b", "--version", "1"],
    ),
    case(
        Where::Store,
        &["registry", "unpin", "None", "a=b", "--version", "1"],
    ),
    case(
        Where::Store,
        &[
            "registry",
            "alias",
            "None",
            "a=b",
            "--alias",
            "x",
            "--version",
            "1",
        ],
    ),
    case(Where::Store, &["changes", "tail", "nothing"]),
    case(Where::Store, &["changes", "parked", "nobody"]),
    case(Where::Store, &["changes", "replay", "nobody", "--all"]),
    case(Where::Store, &["changes", "discard", "nobody", "t/i/1"]),
    case(Where::AnyStore, &["tables", "--format", "json"]),
    case(Where::Store, &["export", "nothing"]),
    case(
        Where::AnyStore,
        &["import", "--from", "/dev/null", "--table", "nothing"],
    ),
    case(Where::Directory, &["backup", "/dev/null/copy"]),
    case(Where::Alone, &["restore", "/nowhere/at/all"]),
    case(Where::Directory, &["doctor"]),
    case(Where::Alone, &["bench", "--seconds", "1"]),
    case(Where::Alone, &["completions", "bash"]),
    case(Where::Alone, &["man", "/nowhere/at/all"]),
];

/// Commands whose result is a text of its own, or goes on: they know no `--json`.
const WITHOUT_JSON: &[&str] = &["demo", "serve", "indexer", "tables", "completions", "man"];

fn on_stores() -> impl Iterator<Item = &'static Case> {
    let is_on_store = |case: &&Case| matches!(case.place, Where::Store | Where::AnyStore);
    CASES.iter().filter(is_on_store)
}

/// The names of all commands that do something, by the pages of the manual.
fn commands() -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    run(&["man", folder.path().to_str().unwrap()]).succeeded();
    let pages = std::fs::read_dir(folder.path()).unwrap();
    let names: BTreeSet<String> = pages
        .map(|page| page.unwrap().file_name().into_string().unwrap())
        .map(|name| name.trim_end_matches(".1").replace('-', " "))
        .collect();
    let is_parent = |name: &str| {
        names
            .iter()
            .any(|other| other.starts_with(&format!("{name} ")))
    };
    let leaves = names.iter().filter(|name| !is_parent(name));
    let leaves = leaves.filter_map(|name| name.strip_prefix("floe "));
    leaves
        .filter(|name| *name != "help" && !name.contains(" help"))
        .map(str::to_owned)
        .collect()
}

/// The name of the command that words begin with.
fn name<'c>(commands: &'c BTreeSet<String>, words: &[&str]) -> &'c str {
    let (one, two) = (words[0].to_owned(), words[..2.min(words.len())].join(" "));
    let known = commands.get(&two).or_else(|| commands.get(&one));
    known.unwrap_or_else(|| panic!("there is no such command: {words:?}"))
}

#[track_caller]
fn one_line(ended: &Ended, code: i32, words: &[&str]) {
    ended.failed(code, words);
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.starts_with("floe: "), "{ended:?}");
}

#[test]
fn every_command_is_refused_somewhere_here() {
    let commands = commands();
    let cases: BTreeSet<String> = CASES
        .iter()
        .map(|case| name(&commands, case.words).to_owned())
        .collect();
    assert_eq!(cases, commands, "add what is missing to CASES");
}

#[test]
fn a_wrong_option_is_told_with_where_help_is() {
    for case in CASES {
        let ended = run(&[case.words, &["--wrong"]].concat());
        let words = ["unexpected argument '--wrong'", "; see floe ", "--help"];
        one_line(&ended, 2, &words);
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
            &["--key is not JSON: at=1", "an example is"][..],
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
            &["item", "put", "orders", "--item", "[]"],
            &["--item is not JSON"],
        ),
        (
            &["item", "delete", "orders", "--key", "x"],
            &["--key is not JSON"],
        ),
        (
            &[
                "item", "update", "orders", "--key", "{}}", "--update", "REMOVE a",
            ],
            &["--key: something follows behind the JSON"],
        ),
        (
            &[
                "query",
                "orders",
                "--key-condition",
                "customer = :c",
                "--values",
                "{:c}",
            ],
            &["--values is not JSON"],
        ),
        (
            &["scan", "orders", "--names", "7"],
            &["--names is not JSON"],
        ),
        (
            &["registry", "publish", "None", "--item", "{"],
            &["--item is not JSON"],
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
    assert_eq!(store.prints(&["scan", "orders", "--count"]), "3\n");
}

#[test]
fn a_directory_without_a_store_is_refused_and_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note"), "mine").unwrap();
    let path = folder.path().to_str().unwrap();
    let (missing, file) = (format!("{path}/missing"), format!("{path}/note"));
    let empty = format!("{path}/empty");
    std::fs::create_dir(&empty).unwrap();
    let before = files(folder.path());
    let is_asked = |case: &&Case| case.place != Where::Alone;
    for Case { words, .. } in CASES.iter().filter(is_asked) {
        for (data, told) in [
            (missing.as_str(), "there is no such directory: path="),
            (path, "there is no store in the directory: path="),
            (&empty, "found=nothing; "),
            (&file, "this is a file, and a store is a directory: path="),
        ] {
            let ended = run(&[words, &["--data", data][..]].concat());
            one_line(&ended, 1, &[told, "; `floe serve --data`"]);
        }
    }
    for (words, told) in [
        (
            &["demo", "--no-serve", "--data", path][..],
            "the directory is not empty",
        ),
        (&["demo", "--no-serve", "--data", &file], "this is a file"),
        (
            &["serve", "--listen", "0", "--data", &file],
            "not a directory",
        ),
        (
            &["restore", &missing, "--data", "/nowhere/at/all"],
            "there is no such directory: path=",
        ),
        (
            &["restore", &file, "--data", "/nowhere/at/all"],
            "this is a file",
        ),
        (&["man", &missing], "there is no such directory: path="),
        (&["man", &file], "there is no such directory: path="),
        (
            &["bench", "--seconds", "1", "--data", &missing],
            "there is no such directory: path=",
        ),
        (
            &["bench", "--seconds", "1", "--data", &file],
            "there is no such directory: path=",
        ),
        (
            &["import", "--new", "--from", "/dev/null", "--data", &file],
            "this is a file",
        ),
        (
            &[
                "table", "create", "made", "--key", "id:S", "--new", "--data", &file,
            ],
            "this is a file",
        ),
    ] {
        one_line(&run(words), 1, &[told, "; "]);
    }
    assert_eq!(files(folder.path()), before);
}

#[test]
fn lost_format_file_is_told_with_the_way_to_salvage() {
    let store = Store::directory().with_orders();
    let [_, data] = store.option();
    std::fs::remove_file(Path::new(data).join("FORMAT")).unwrap();
    let before = files(Path::new(data));
    let salvage = format!("`floe doctor --data {data} --salvage TARGET`");
    for words in [
        &["table", "list", "--data", data][..],
        &["doctor", "--data", data],
        &["backup", "/nowhere/at/all", "--data", data],
        &["restore", data, "--data", "/nowhere/at/all"],
    ] {
        let ended = run(words);
        ended.failed(1, &["found=data missing=FORMAT", &salvage]);
        assert_eq!(ended.stderr.matches("`floe ").count(), 1, "{ended:?}");
    }
    assert_eq!(files(Path::new(data)), before);
}

#[test]
fn a_server_that_cannot_be_reached_is_told_with_a_hint() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let endpoint = format!("http://127.0.0.1:{port}");
    for Case { words, .. } in on_stores() {
        let ended = run(&[words, &["--endpoint", &endpoint][..]].concat());
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
fn a_server_that_is_no_dynamodb_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut request = [0; 4096];
            let answer =
                b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
            if connection.read(&mut request).unwrap() > 0 {
                connection.write_all(answer).unwrap();
            }
        }
    });
    for words in [
        &["table", "list"][..],
        &["events", "stats"],
        &["registry", "list"],
    ] {
        let ended = run(&[words, &["--endpoint", &endpoint]].concat());
        let told =
            "what answers there does not speak DynamoDB's protocol: status=404; see --endpoint";
        one_line(&ended, 1, &[told]);
    }
}

#[test]
fn what_is_not_in_the_store_is_told_and_nothing_is_made() {
    for store in Store::both() {
        for Case { words, .. } in on_stores().filter(|case| case.place == Where::Store) {
            let ended = store.run(words);
            one_line(&ended, 1, &["there is no", "; "]);
        }
        assert_eq!(store.prints(&["table", "list", "--names"]), "");
    }
}

#[test]
fn no_place_at_all_is_told_with_how_to_name_one() {
    for Case { words, .. } in on_stores() {
        one_line(&run(words), 1, &["--data or --endpoint"]);
    }
}

#[test]
fn every_command_has_help_worth_reading() {
    let commands = commands();
    for Case { words, place } in CASES {
        let name = name(&commands, words);
        let words: Vec<&str> = name.split(' ').collect();
        let help = run(&[&words[..], &["--help"]].concat()).succeeded().stdout;
        let (_, examples) = help.split_once("Examples:\n").unwrap();
        let (examples, _) = examples.split_once("\n\n").unwrap_or((examples, ""));
        assert!(examples.contains("  floe "), "{name} {help}");
        let is_wide = |line: &&str| line.chars().count() > 80;
        let wide = examples.lines().find(is_wide);
        assert!(
            wide.is_none() || matches!(name, "serve" | "indexer"),
            "{name} {wide:?}"
        );
        let first = help.lines().next().unwrap();
        assert!(first.len() > 10 && !first.ends_with('.'), "{name}: {first}");
        assert_eq!(
            help.contains("--json"),
            !WITHOUT_JSON.contains(&name),
            "{name}: {help}"
        );
        assert_eq!(
            help.contains("JSON is plain"),
            matches!(words[0], "item" | "query" | "scan") || name == "registry publish",
            "{name}"
        );
        let is_on_store = matches!(place, Where::Store | Where::AnyStore | Where::Directory);
        assert!(
            !is_on_store || help.contains("--data <DIR>"),
            "{name} {help}"
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
