//! Every command with wrong arguments and on wrong stores: fails with one line and the right exit code, and changes nothing.
//!
//! The list of commands comes from the program itself, so that none can be missing here.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use crate::support::{ProgramOutput, Store, floe, run, run_command};

const KEY: &str = r#"{"id":"a"}"#;

/// The stores that a command accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreKind {
    /// A directory or a server. Fails on an empty store.
    Filled,
    /// A directory or a server. Succeeds on an empty store.
    Any,
    /// A directory only.
    Directory,
    /// No store, or a new one.
    None,
}

/// A command with its arguments, without the store.
struct Case {
    words: &'static [&'static str],
    store: StoreKind,
}

const fn case(store: StoreKind, words: &'static [&'static str]) -> Case {
    Case { words, store }
}

/// Every command.
const CASES: &[Case] = &[
    case(StoreKind::None, &["demo", "--no-serve"]),
    case(StoreKind::None, &["serve", "--listen", "0"]),
    case(StoreKind::Any, &["table", "list"]),
    case(StoreKind::Filled, &["table", "describe", "nothing"]),
    case(
        StoreKind::Any,
        &["table", "create", "made", "--key", "id:S"],
    ),
    case(StoreKind::Filled, &["table", "delete", "nothing", "--yes"]),
    case(StoreKind::Filled, &["item", "get", "nothing", "--key", KEY]),
    case(
        StoreKind::Filled,
        &["item", "put", "nothing", "--item", KEY],
    ),
    case(
        StoreKind::Filled,
        &[
            "item", "update", "nothing", "--key", KEY, "--update", "REMOVE a",
        ],
    ),
    case(
        StoreKind::Filled,
        &["item", "delete", "nothing", "--key", KEY],
    ),
    case(
        StoreKind::Filled,
        &[
            "query",
            "nothing",
            "--key-condition",
            "id = :i",
            "--values",
            r#"{":i":"a"}"#,
        ],
    ),
    case(StoreKind::Filled, &["scan", "nothing"]),
    case(StoreKind::Any, &["events", "create"]),
    case(StoreKind::Filled, &["events", "read", "Cart-1"]),
    case(
        StoreKind::Filled,
        &["events", "append", "Cart-1", "--type", "Added"],
    ),
    case(StoreKind::Filled, &["events", "stats"]),
    case(
        StoreKind::Filled,
        &["events", "prune", "Cart-1", "--before", "1", "--yes"],
    ),
    case(StoreKind::Filled, &["feed", "status"]),
    case(StoreKind::Filled, &["feed", "checkpoint", "--group", "g"]),
    case(StoreKind::Filled, &["feed", "parked"]),
    case(StoreKind::Filled, &["feed", "read"]),
    case(StoreKind::Filled, &["feed", "tail"]),
    case(StoreKind::Filled, &["feed", "lag"]),
    case(StoreKind::Filled, &["feed", "verify"]),
    case(StoreKind::Filled, &["indexer", "--once"]),
    case(StoreKind::Filled, &["graph", "get", "s", "t", "i"]),
    case(StoreKind::Filled, &["graph", "related", "s", "t", "i"]),
    case(StoreKind::Filled, &["graph", "referrers", "s", "t", "i"]),
    case(StoreKind::Filled, &["graph", "lookup", "s", "by_x", "k"]),
    case(StoreKind::Filled, &["graph", "check"]),
    case(StoreKind::Any, &["registry", "list"]),
    case(StoreKind::Filled, &["registry", "describe", "None"]),
    case(StoreKind::Filled, &["registry", "latest", "None", "a=b"]),
    case(StoreKind::Filled, &["registry", "deployed", "None", "a=b"]),
    case(
        StoreKind::Filled,
        &["registry", "get", "None", "a=b", "--version", "1"],
    ),
    case(StoreKind::Filled, &["registry", "history", "None", "a=b"]),
    case(
        StoreKind::Filled,
        &["registry", "publish", "None", "--item", KEY],
    ),
    case(
        StoreKind::Filled,
        &["registry", "retire", "None", "a=b", "--version", "1"],
    ),
    case(
        StoreKind::Filled,
        &["registry", "pin", "None", "a=b", "--version", "1"],
    ),
    case(
        StoreKind::Filled,
        &["registry", "unpin", "None", "a=b", "--version", "1"],
    ),
    case(
        StoreKind::Filled,
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
    case(StoreKind::Filled, &["changes", "tail", "nothing"]),
    case(StoreKind::Filled, &["changes", "parked", "other"]),
    case(StoreKind::Filled, &["changes", "replay", "other", "--all"]),
    case(StoreKind::Filled, &["changes", "discard", "other", "t/i/1"]),
    case(StoreKind::Any, &["tables", "--format", "json"]),
    case(StoreKind::Filled, &["export", "nothing"]),
    case(
        StoreKind::Any,
        &["import", "--from", "/dev/null", "--table", "nothing"],
    ),
    case(StoreKind::Directory, &["backup", "/dev/null/copy"]),
    case(StoreKind::None, &["restore", "/nowhere/at/all"]),
    case(StoreKind::Directory, &["doctor"]),
    case(StoreKind::None, &["bench", "--seconds", "1"]),
    case(StoreKind::None, &["completions", "bash"]),
    case(StoreKind::None, &["man", "/nowhere/at/all"]),
];

/// Commands without `--json`: their output has another format, or they run until stopped.
const WITHOUT_JSON: &[&str] = &["demo", "serve", "indexer", "tables", "completions", "man"];

fn on_stores() -> impl Iterator<Item = &'static Case> {
    let is_on_store = |case: &&Case| matches!(case.store, StoreKind::Filled | StoreKind::Any);
    CASES.iter().filter(is_on_store)
}

/// The names of all commands without subcommands, from the man pages.
fn commands() -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    run(&["man", folder.path().to_str().unwrap()]).assert_success();
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
fn assert_one_line(output: &ProgramOutput, code: i32, words: &[&str]) {
    output.assert_failure(code, words);
    assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    assert!(output.stderr.starts_with("floe: "), "{output:?}");
}

#[test]
fn cases_cover_every_command() {
    let commands = commands();
    let cases: BTreeSet<String> = CASES
        .iter()
        .map(|case| name(&commands, case.words).to_owned())
        .collect();
    assert_eq!(cases, commands, "add missing commands to CASES");
}

#[test]
fn unknown_option_is_reported_with_the_help_command() {
    for case in CASES {
        let output = run(&[case.words, &["--wrong"]].concat());
        let words = ["unexpected argument '--wrong'", "; see floe ", "--help"];
        assert_one_line(&output, 2, &words);
    }
    assert_one_line(
        &run(&["tabel"]),
        2,
        &["unrecognized subcommand 'tabel'", "see floe --help"],
    );
}

#[test]
fn invalid_value_is_reported_with_the_expected_form() {
    let store = Store::directory().with_orders();
    let get = ["item", "get", "orders", "--key"];
    for (arguments, words) in [
        (
            &[&get[..], &["{"]].concat()[..],
            &["--key is not valid JSON: offset=1", "example:"][..],
        ),
        (
            &[&get[..], &["@/nowhere"]].concat(),
            &["--key cannot be read", "argument=@/nowhere"],
        ),
        (
            &[&get[..], &[r#"{"customer":1}"#]].concat(),
            &["key element does not match"],
        ),
        (
            &["item", "put", "orders", "--item", "[]"],
            &["--item is not valid JSON"],
        ),
        (
            &["item", "delete", "orders", "--key", "x"],
            &["--key is not valid JSON"],
        ),
        (
            &[
                "item", "update", "orders", "--key", "{}}", "--update", "REMOVE a",
            ],
            &["--key: unexpected text after the JSON"],
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
            &["--values is not valid JSON"],
        ),
        (
            &["scan", "orders", "--names", "7"],
            &["--names is not valid JSON"],
        ),
        (
            &["registry", "publish", "None", "--item", "{"],
            &["--item is not valid JSON"],
        ),
        (
            &["scan", "orders", "--filter", "a ="],
            &["Invalid FilterExpression", "Syntax error"],
        ),
        (
            &["scan", "orders", "--cursor", "x"],
            &["--cursor is not a cursor of an earlier page"],
        ),
        (&["scan", "orders", "--limit", "0"], &["invalid value '0'"]),
        (
            &["table", "create", "x", "--key", "id"],
            &["expected a name and a type"],
        ),
        (
            &["table", "create", "x", "--key", "id:S", "--index", "a:S"],
            &["expected an index and its key"],
        ),
        (&["table", "create", "a b", "--key", "id:S"], &["tableName"]),
        (
            &["events", "read", "nodash"],
            &["expected the name of a stream"],
        ),
        (
            &["events", "append", "Cart-1", "--type", ""],
            &["--type cannot be empty"],
        ),
        (&["tables", "--format", "yaml"], &["invalid value 'yaml'"]),
        (
            &["table", "list", "--endpoint", "http://here"],
            &["cannot be used with"],
        ),
    ] {
        let output = store.run(arguments);
        let code = if words[0].contains("cannot be read") {
            1
        } else {
            2
        };
        assert_one_line(&output, code, words);
    }
    assert_eq!(store.prints(&["table", "list", "--names"]), "orders\n");
    assert_eq!(store.prints(&["scan", "orders", "--count"]), "3\n");
}

#[test]
fn directory_without_a_store_is_rejected_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("note"), "mine").unwrap();
    let path = folder.path().to_str().unwrap();
    let (missing, file) = (format!("{path}/missing"), format!("{path}/note"));
    let empty = format!("{path}/empty");
    std::fs::create_dir(&empty).unwrap();
    let before = files(folder.path());
    let needs_store = |case: &&Case| case.store != StoreKind::None;
    for Case { words, .. } in CASES.iter().filter(needs_store) {
        for (data, message) in [
            (missing.as_str(), "there is no such directory: path="),
            (path, "there is no store in the directory: path="),
            (&empty, "found=nothing; "),
            (&file, "a store is a directory, but this is a file: path="),
        ] {
            let output = run(&[words, &["--data", data][..]].concat());
            let hint = match words[..] {
                ["table" | "events", "create", ..] | ["import", ..] => "; --new creates a store",
                _ => "; `floe serve --data`",
            };
            assert_one_line(&output, 1, &[message, hint]);
        }
    }
    for (words, message) in [
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
        assert_one_line(&run(words), 1, &[message, "; "]);
    }
    assert_eq!(files(folder.path()), before);
}

#[test]
fn missing_format_file_is_reported_with_the_salvage_command() {
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
        let output = run(words);
        output.assert_failure(1, &["found=data missing=FORMAT", &salvage]);
        assert_eq!(output.stderr.matches("`floe ").count(), 1, "{output:?}");
    }
    assert_eq!(files(Path::new(data)), before);
}

#[test]
fn unreachable_server_is_reported_with_a_hint() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let endpoint = format!("http://127.0.0.1:{port}");
    for Case { words, .. } in on_stores() {
        let output = run(&[words, &["--endpoint", &endpoint][..]].concat());
        assert_one_line(
            &output,
            1,
            &[
                "the store cannot be reached, ",
                "Connection refused",
                "; check --endpoint",
            ],
        );
    }
}

#[test]
fn server_of_another_protocol_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut request = [0; 4096];
            let response =
                b"HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
            if connection.read(&mut request).unwrap() > 0 {
                connection.write_all(response).unwrap();
            }
        }
    });
    for words in [
        &["table", "list"][..],
        &["events", "stats"],
        &["registry", "list"],
    ] {
        let output = run(&[words, &["--endpoint", &endpoint]].concat());
        let message = "the server does not speak DynamoDB's protocol: status=404; check --endpoint";
        assert_one_line(&output, 1, &[message]);
    }
}

#[test]
fn missing_table_is_reported_and_not_created() {
    for store in Store::both() {
        for Case { words, .. } in on_stores().filter(|case| case.store == StoreKind::Filled) {
            let output = store.run(words);
            assert_one_line(&output, 1, &["there is no", "; "]);
        }
        assert_eq!(store.prints(&["table", "list", "--names"]), "");
    }
}

#[test]
fn missing_store_option_is_reported_with_a_hint() {
    for Case { words, .. } in on_stores() {
        // The environment alone never selects Amazon DynamoDB.
        let mut command = floe(words);
        command.envs([
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
        ]);
        let message =
            "no store is selected: set --data or --endpoint, or --aws for Amazon DynamoDB";
        assert_one_line(&run_command(command), 2, &[message]);
    }
}

#[test]
fn every_command_has_help_with_examples() {
    let commands = commands();
    for Case { words, store } in CASES {
        let name = name(&commands, words);
        let words: Vec<&str> = name.split(' ').collect();
        let help = run(&[&words[..], &["--help"]].concat())
            .assert_success()
            .stdout;
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
        let is_on_store = matches!(
            store,
            StoreKind::Filled | StoreKind::Any | StoreKind::Directory
        );
        assert!(
            !is_on_store || help.contains("--data <DIR>"),
            "{name} {help}"
        );
    }
}

/// All files below a directory, and their contents.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap().path();
        if entry.is_dir() {
            found.extend(files(&entry));
        } else {
            found.insert(entry.display().to_string(), std::fs::read(&entry).unwrap());
        }
    }
    found
}
