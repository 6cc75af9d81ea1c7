//! Items as plain JSON and as DynamoDB JSON: printed, and read back.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{ProgramOutput, Store, floe, spawn};

/// An item with a value of every type.
const TYPES: &str = r#"{"id":{"S":"a"},"n":{"N":"12.5"},"long":{"N":"12345678901234567890123"},"b":{"B":"AQ=="},"ss":{"SS":["x","y"]},"ns":{"NS":["1","2"]},"bs":{"BS":["AQ=="]},"sizes":{"M":{"M":{"N":"3"}}},"m":{"M":{"flag":{"BOOL":true},"none":{"NULL":true},"bytes":{"B":"Ag=="}}},"l":{"L":[{"S":"z"},{"N":"1"}]}}"#;

const KEY: [&str; 2] = ["--key", r#"{"id":"a"}"#];

/// A store with the empty table `things`.
fn with_things(store: Store) -> Store {
    store.prints(&["table", "create", "things", "--key", "id:S"]);
    store
}

/// Runs a command with this standard input.
fn run_with_input(store: &Store, words: &[&str], input: &str) -> ProgramOutput {
    let mut command = floe(&[words, &store.option()].concat());
    command.stdin(Stdio::piped());
    let mut child = spawn(command);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    ProgramOutput {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn items_are_printed_in_both_formats() {
    for store in Store::both().map(with_things) {
        store.prints(&["item", "put", "things", "--item", TYPES]);
        let get = [&["item", "get", "things"][..], &KEY].concat();
        let prints = |format: &str| parsed(&store.prints(&[&get[..], &[format]].concat()));
        let plain = json!({
            "id": "a", "n": 12.5, "long": {"N": "12345678901234567890123"}, "b": {"B": "AQ=="},
            "ss": {"SS": ["x", "y"]}, "ns": {"NS": ["1", "2"]}, "bs": {"BS": ["AQ=="]},
            "sizes": {"M": {"M": {"N": "3"}}},
            "m": {"flag": true, "none": null, "bytes": {"B": "Ag=="}}, "l": ["z", 1]
        });
        assert_eq!(prints("--json"), plain);
        assert_eq!(prints("--json=plain"), plain);
        assert_eq!(prints("--json=dynamodb"), parsed(TYPES));
        let scanned = store.prints(&["scan", "things", "--json=dynamodb"]);
        assert_eq!(parsed(&scanned)["items"][0], parsed(TYPES));
        let scanned = store.prints(&["scan", "things", "--json"]);
        assert_eq!(parsed(&scanned)["items"][0], plain);
        let deleted = [
            &["item", "delete", "things", "--old", "--json=dynamodb"][..],
            &KEY,
        ];
        assert_eq!(
            parsed(&store.prints(&deleted.concat()))["item"],
            parsed(TYPES)
        );
        store
            .run(&[&get[..], &["--json=xml"]].concat())
            .assert_failure(2, &["invalid value 'xml'", "plain, dynamodb"]);
    }
}

#[test]
fn printed_items_are_read_back_or_rejected() {
    for (source, target) in Store::both()
        .map(with_things)
        .into_iter()
        .zip(Store::both())
    {
        let target = with_things(target);
        source.prints(&["item", "put", "things", "--item", TYPES]);
        let get = [&["item", "get", "things"][..], &KEY].concat();
        let print = |store: &Store, format: &str| store.prints(&[&get[..], &[format]].concat());
        let put = ["item", "put", "things", "--item", "-"];

        // Plain JSON of sets and bytes is ambiguous, also inside of values.
        let plain = print(&source, "--json");
        run_with_input(&target, &put, &plain)
            .assert_failure(2, &["--item mixes plain and DynamoDB JSON", "--input"]);
        let nested = r#"{"id":"a","m":{"bytes":{"B":"Ag=="},"n":1}}"#;
        run_with_input(&target, &put, nested).assert_failure(
            2,
            &[
                "--item: a value can be a map, or a value of DynamoDB JSON",
                "--json=dynamodb",
            ],
        );
        assert_eq!(target.prints(&["scan", "things", "--count"]), "0\n");

        let dynamodb = print(&source, "--json=dynamodb");
        run_with_input(&target, &put, &dynamodb).assert_success();
        assert_eq!(print(&target, "--json=dynamodb"), dynamodb);

        // A map that looks typed is printed with its type.
        let map = r#"{"id":{"S":"a"},"sizes":{"M":{"S":{"S":"x"}}}}"#;
        run_with_input(&source, &put, map).assert_success();
        assert_eq!(
            parsed(&print(&source, "--json")),
            json!({"id": "a", "sizes": {"M": {"S": {"S": "x"}}}})
        );

        // Without sets, bytes and long numbers, plain JSON is read back too.
        let simple = r#"{"id":"a","l":["z",1],"m":{"flag":true,"none":null},"n":12.5}"#;
        source.prints(&["item", "put", "things", "--item", simple]);
        assert_eq!(print(&source, "--json").trim_end(), simple);
        run_with_input(&target, &put, simple).assert_success();
        assert_eq!(
            print(&target, "--json=dynamodb"),
            print(&source, "--json=dynamodb")
        );
    }
}

#[test]
fn import_reads_both_formats() {
    for store in Store::both().map(with_things) {
        let import = ["import", "--table", "things", "--json"];
        let lines = concat!(
            r#"{"id":"plain","n":1,"m":{"x":[true,null]}}"#,
            "\n\n",
            r#"{"id":{"S":"typed"},"tags":{"SS":["x"]}}"#,
            "\r\n",
            r#"{"Item":{"id":{"S":"exported"},"n":{"N":"1"}}}"#,
            "\n",
            r#"{"Item":{"id":"wrapped","n":1}}"#,
        );
        let imported = run_with_input(&store, &import, lines).assert_success();
        let imported = parsed(&imported.stdout);
        assert_eq!(
            (&imported["items"], &imported["lines"], &imported["bytes"]),
            (&json!(4), &json!(5), &json!(lines.len()))
        );
        let item = |id: &str| {
            let key = format!(r#"{{"id":"{id}"}}"#);
            parsed(&store.prints(&["item", "get", "things", "--key", &key, "--json=dynamodb"]))
        };
        let map = json!({"M": {"x": {"L": [{"BOOL": true}, {"NULL": true}]}}});
        assert_eq!(
            item("plain"),
            json!({"id": {"S": "plain"}, "n": {"N": "1"}, "m": map})
        );
        assert_eq!(item("typed")["tags"], json!({"SS": ["x"]}));
        assert_eq!(item("exported")["n"], json!({"N": "1"}));
        assert_eq!(item("wrapped")["n"], json!({"N": "1"}));

        for (line, words) in [
            (
                r#"{"id":"b","v":{"S":"x"}}"#,
                "line 1 mixes plain and DynamoDB JSON: plain=1 dynamodb=1",
            ),
            (
                r#"{"id":"b","v":[{"B":"AQ=="}]}"#,
                "line 1: a value can be a map, or a value of DynamoDB JSON",
            ),
            (
                r#"{"id":"b","Item":{"x":1}}"#,
                "line 1 is ambiguous, it can be an item or a line of an export",
            ),
        ] {
            run_with_input(&store, &import, line).assert_failure(2, &[words, "--input"]);
            let plain = [&import[..], &["--input", "plain"]].concat();
            run_with_input(&store, &plain, line).assert_success();
        }
        assert_eq!(item("b")["Item"], json!({"M": {"x": {"N": "1"}}}));
        let dynamodb = [&import[..], &["--input", "dynamodb"]].concat();
        run_with_input(&store, &dynamodb, r#"{"id":"b"}"#)
            .assert_failure(2, &["line 1 is not valid DynamoDB JSON"]);
    }
}

#[test]
fn scanned_items_can_be_imported() {
    let source = with_things(Store::directory());
    source.prints(&["item", "put", "things", "--item", TYPES]);
    let page = parsed(&source.prints(&["scan", "things", "--all", "--json=dynamodb"]));
    let lines: String = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| format!("{item}\n"))
        .collect();
    let target = with_things(Store::directory());
    run_with_input(&target, &["import", "--table", "things"], &lines).assert_success();
    let export = ["export", "things", "--items-only"];
    assert_eq!(target.prints(&export), source.prints(&export));
}
