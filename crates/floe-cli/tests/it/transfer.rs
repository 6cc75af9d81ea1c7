//! `floe export`, `floe import`, `floe backup`, `floe restore`, `floe doctor` and `floe tables`.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use serde_json::json;

use crate::support::{Store, floe, run, spawn};

/// A store with one table of `items` items of a kilobyte, imported from a file of JSON lines. Returns the path of the file.
fn filled(folder: &Path, items: usize) -> (Store, String) {
    let store = Store::directory().with_orders();
    let file = folder.join("lines").to_str().unwrap().to_owned();
    let text = "x".repeat(1000);
    let lines: String = (0..items)
        .map(|at| format!(r#"{{"Item":{{"customer":{{"S":"bulk"}},"placed":{{"N":"{at}"}},"text":{{"S":"{text}"}}}}}}"#) + "\n")
        .collect();
    std::fs::write(&file, lines).unwrap();
    store.prints(&["import", "--from", &file, "--table", "orders"]);
    (store, file)
}

/// Starts a command, and kills it as soon as it has created a file or directory.
fn kill_when_created(arguments: &[&str], created: &Path) {
    let mut child = spawn(floe(arguments));
    while !created.exists() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn interrupted_restore_is_detected_and_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = filled(folder.path(), 3000);
    let [_, source] = store.option();
    let (target, unfinished) = (folder.path().join("again"), folder.path().join("again.tmp"));
    let data = target.to_str().unwrap();
    let restore = ["restore", source, "--data", data];
    kill_when_created(&restore, &unfinished);
    let count = ["scan", "orders", "--count", "--data", data];
    if unfinished.exists() {
        assert!(!target.exists());
        run(&count).assert_failure(
            1,
            &[
                "a copy to this directory was interrupted",
                "again.tmp",
                "floe restore",
            ],
        );
        run(&["scan", "orders", "--data", unfinished.to_str().unwrap()])
            .assert_failure(1, &["there is no store in the directory"]);
        run(&restore).assert_success();
    }
    assert_eq!(run(&count).assert_success().stdout, "3,003\n");
    assert!(!unfinished.exists());
    // Nothing is overwritten: neither a store nor other files.
    run(&restore).assert_failure(1, &["exists and is not empty"]);
    let other = folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("note"), "mine").unwrap();
    run(&["restore", source, "--data", other.to_str().unwrap()])
        .assert_failure(1, &["exists and is not empty"]);
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 1);
}

#[test]
fn interrupted_export_leaves_a_part_file_and_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = filled(folder.path(), 3000);
    let [_, source] = store.option();
    let (target, part) = (folder.path().join("out"), folder.path().join("out.part"));
    let to = target.to_str().unwrap();
    let export = ["export", "orders", "--to", to, "--data", source];
    kill_when_created(&export, &part);
    if part.exists() {
        assert!(!target.exists());
        // The part file may be something else, so it is never removed.
        run(&export).assert_failure(1, &["out.part first"]);
        std::fs::remove_file(&part).unwrap();
        run(&export).assert_success();
    }
    assert!(!part.exists());
    let lines = std::fs::read_to_string(&target).unwrap();
    assert_eq!(lines.lines().count(), 3003 + 2);
    run(&export).assert_failure(1, &["the file cannot be created, it already exists"]);
}

#[test]
fn interrupted_import_can_be_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let (_, file) = filled(folder.path(), 300);
    let lines = std::fs::read_to_string(&file).unwrap();
    let target = Store::directory().with_orders();
    let [_, data] = target.option();
    let mut command = floe(&["import", "--table", "orders", "--data", data]);
    command.stdin(Stdio::piped());
    let mut child = spawn(command);
    let half = &lines.as_bytes()[..lines.len() / 2];
    child.stdin.as_mut().unwrap().write_all(half).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    target.prints(&["import", "--from", &file, "--table", "orders"]);
    assert_eq!(target.prints(&["scan", "orders", "--count"]), "303\n");
}

#[test]
fn truncated_export_is_rejected_by_import() {
    let store = Store::directory().with_orders();
    let lines = store.prints(&["export", "orders"]);
    let cut = lines.lines().take(3).collect::<Vec<_>>().join("\n") + "\n";
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), cut).unwrap();
    for target in Store::both() {
        let import = ["import", "--from", file.path().to_str().unwrap()];
        target
            .run(&import)
            .assert_failure(2, &["the input is truncated", "table=orders"]);
    }
}

#[test]
fn only_a_summary_is_printed_to_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let (store, file) = filled(folder.path(), 200);
    let [_, data] = store.option();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let exported =
        run(&["export", "orders", "--to", &path("out"), "--data", data]).assert_success();
    assert_eq!(exported.stdout, "");
    assert!(
        exported
            .stderr
            .starts_with("floe: exported: orders, 203 items, "),
        "{exported:?}"
    );
    let (copy, again) = (path("copy"), path("again"));
    for (words, printed) in [
        (&["backup", &copy, "--data", data][..], "backup: 1 tables, "),
        (
            &["restore", &copy, "--data", &again],
            "restored: 1 tables, ",
        ),
        (
            &[
                "import", "--from", &file, "--table", "orders", "--data", data,
            ],
            "imported: 200 items",
        ),
    ] {
        let output = run(words).assert_success();
        assert!(output.stdout.starts_with(printed), "{output:?}");
        assert_eq!(
            (output.stderr.as_str(), output.stdout.lines().count()),
            ("", 1)
        );
    }
}

#[test]
fn table_is_copied_between_directories_and_servers() {
    let folder = tempfile::tempdir().unwrap();
    for (number, source) in Store::both().into_iter().enumerate() {
        let source = source.with_orders();
        let file = folder.path().join(format!("{number}.jsonl"));
        let file = file.to_str().unwrap();
        let exported = source.json(&["export", "orders", "--to", file]);
        assert_eq!(exported[0]["items"], 3);
        source
            .run(&["export", "orders", "--to", file])
            .assert_failure(1, &["the file cannot be created"]);
        source
            .run(&["export", "orders", "--json"])
            .assert_failure(2, &["--to"]);
        let streamed = source.prints(&["export", "orders"]);
        assert_eq!(streamed, std::fs::read_to_string(file).unwrap());
        assert_eq!(
            source
                .prints(&["export", "orders", "--items-only"])
                .lines()
                .count(),
            3
        );

        for target in Store::both() {
            let imported = target.json(&["import", "--from", file]);
            assert_eq!(
                (&imported[0]["items"], &imported[0]["tables_created"]),
                (&json!(3), &json!(["orders"]))
            );
            assert_eq!(
                target.prints(&["scan", "orders"]),
                source.prints(&["scan", "orders"])
            );
            let imported = target.prints(&["import", "--from", file]);
            assert!(
                imported.starts_with("imported: 3 items of 5 lines, "),
                "{imported}"
            );
            let other = target.json(&["import", "--from", file, "--table", "copy"]);
            assert_eq!(other[0]["tables_created"], json!(["copy"]));
        }
    }
}

#[test]
fn invalid_input_is_reported_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines");
    for store in Store::both() {
        let store = store.with_orders();
        for (lines, words) in [
            (
                "{\"Item\":{\"customer\":{\"S\":\"x\"},\"placed\":{\"N\":\"1\"}}}\nnonsense\n",
                "line",
            ),
            ("{\"Other\":1}\n", "key"),
            ("[]\n", "line"),
            ("{\"Item\":{\"id\":{\"S\":\"x\"}}}\n", "key"),
        ] {
            std::fs::write(&file, lines).unwrap();
            let output = store.run(&[
                "import",
                "--from",
                file.to_str().unwrap(),
                "--table",
                "orders",
            ]);
            assert!(matches!(output.code, Some(1 | 2)), "{output:?}");
            assert!(
                output.stderr.lines().last().unwrap().contains(words),
                "{output:?}"
            );
        }
        std::fs::write(&file, "{\"Item\":{\"id\":{\"S\":\"x\"}}}\n").unwrap();
        let output = store.run(&["import", "--from", file.to_str().unwrap()]);
        assert!(output.stderr.contains("belongs to no table"), "{output:?}");
    }
}

#[test]
fn backup_is_restored_as_a_store() {
    let store = Store::directory().with_orders();
    let folder = tempfile::tempdir().unwrap();
    let (copy, again) = (folder.path().join("copy"), folder.path().join("again"));
    let (copy, again) = (copy.to_str().unwrap(), again.to_str().unwrap());
    let done = store.prints(&["backup", copy]);
    assert!(done.starts_with("backup: 1 tables, "), "{done}");
    store
        .run(&["backup", copy])
        .assert_failure(1, &["exists and is not empty"]);
    store.prints(&["table", "delete", "orders", "--yes"]);
    let restored = run(&["restore", copy, "--data", again, "--json"]).assert_success();
    let restored: serde_json::Value = serde_json::from_str(&restored.stdout).unwrap();
    assert_eq!(
        (&restored["tables"], restored["restored"].as_str()),
        (&json!(1), Some(again))
    );
    let counted = run(&["scan", "orders", "--count", "--data", again]).assert_success();
    assert_eq!(counted.stdout, "3\n");
    let overwritten = run(&["restore", copy, "--data", again]);
    overwritten.assert_failure(1, &["exists and is not empty"]);
}

#[test]
fn doctor_prints_what_it_checked() {
    let store = Store::directory().with_orders();
    let printed = store.run(&["doctor"]).assert_success();
    assert!(
        printed
            .stdout
            .starts_with("tables          1\nitems           3\n"),
        "{printed:?}"
    );
    assert!(
        printed.stdout.ends_with("findings        0\n"),
        "{printed:?}"
    );
    assert!(
        printed.stderr.contains("floe: reading the table orders\n"),
        "{printed:?}"
    );
    let json = store.json(&["doctor", "--repair"]);
    assert_eq!(
        (&json[0]["items"], &json[0]["findings"]),
        (&json!(3), &json!([]))
    );
}

#[test]
fn doctor_reports_its_result_even_if_the_store_cannot_be_sealed() {
    let store = Store::directory().with_orders();
    let [_, data] = store.option();
    std::fs::create_dir_all(Path::new(data).join("SEAL.new/full")).unwrap();
    let printed = store.run(&["doctor"]).assert_success();
    assert!(
        printed.stdout.ends_with("findings        0\n"),
        "{printed:?}"
    );
    assert!(
        printed.stderr.contains("could not be sealed"),
        "{printed:?}"
    );
}

/// Damages a store as a crash in the middle of a commit does.
fn tear_journal(store: &Path) {
    std::fs::remove_file(store.join("SEAL")).unwrap();
    let entries = std::fs::read_dir(store.join("data")).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    let journal = paths.find(|path| path.extension().is_some_and(|end| end == "jnl"));
    let mut bytes = std::fs::read(journal.as_ref().unwrap()).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    bytes.truncate(used);
    bytes.extend([1, 9, 9, 9, 9, 9, 9]);
    std::fs::write(journal.unwrap(), bytes).unwrap();
}

#[test]
fn every_command_reports_a_torn_journal() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let export = folder.path().join("lines");
    for words in [
        &["doctor"][..],
        &["doctor", "--json"],
        &["doctor", "--repair"],
        &["table", "list"],
        &["scan", "orders"],
        &["backup", copy.to_str().unwrap()],
        &["export", "orders", "--to", export.to_str().unwrap()],
    ] {
        let store = Store::directory().with_orders();
        let [_, data] = store.option();
        tear_journal(Path::new(data));
        let output = store.run(words).assert_success();
        assert!(
            output
                .stderr
                .contains("unacknowledged end of its journal: bytes=7\n"),
            "{output:?}"
        );
        assert!(
            words[0] != "doctor" || output.stdout.contains("dropped"),
            "{output:?}"
        );
        let again = store.run(&["doctor"]).assert_success();
        assert!(!again.stderr.contains("unacknowledged"), "{again:?}");
    }
}

#[test]
fn doctor_fails_on_damaged_files() {
    let store = Store::directory().with_orders();
    let [_, path] = store.option();
    let marker = std::path::Path::new(path).join("data");
    let mut files: Vec<_> = std::fs::read_dir(&marker)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    for file in files.iter().filter(|file| file.is_file()) {
        let mut bytes = std::fs::read(file).unwrap();
        bytes.iter_mut().for_each(|byte| *byte ^= 0x5a);
        std::fs::write(file, bytes).unwrap();
    }
    let output = store.run(&["doctor", "--json"]);
    assert_eq!(output.code, Some(1), "{output:?}");
}

#[test]
fn tables_are_printed_in_three_formats() {
    for store in Store::both() {
        let store = store.with_orders();
        let create = [
            "table",
            "create",
            "sized",
            "--key",
            "id:S",
            "--sort",
            "at:N",
            "--local-index",
            "by_size=size:N",
        ];
        store.prints(&create);
        let template = store.prints(&["tables", "--format", "cloudformation"]);
        let template: serde_json::Value = serde_json::from_str(&template).unwrap();
        let names: Vec<_> = template["Resources"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect();
        assert_eq!(names.len(), 2, "{names:?}");
        let inputs = store.prints(&["tables", "--format", "json", "sized"]);
        let inputs: serde_json::Value = serde_json::from_str(&inputs).unwrap();
        let create = &inputs[0]["CreateTable"];
        assert_eq!(create["LocalSecondaryIndexes"][0]["IndexName"], "by_size");
        assert_eq!(create["GlobalSecondaryIndexes"], json!(null));
        let terraform = store.prints(&["tables", "--format", "terraform"]);
        assert!(
            terraform.contains("resource \"aws_dynamodb_table\" \"orders\" {"),
            "{terraform}"
        );
        assert!(
            terraform.contains("  local_secondary_index {"),
            "{terraform}"
        );
        assert!(
            terraform.contains("  global_secondary_index {"),
            "{terraform}"
        );
        store
            .run(&["tables", "--format", "json", "none"])
            .assert_failure(1, &["there is no such table: table=none"]);
        assert!(store.is_directory() || store.option()[0] == "--endpoint");
    }
}

#[test]
fn doctor_salvages_a_store_that_cannot_be_opened() {
    let store = Store::directory().with_orders();
    let [_, data] = store.option();
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("salvaged");
    let target = target.to_str().unwrap();
    let items = |data: &str| {
        let scanned = run(&["scan", "orders", "--data", data, "--json"]);
        scanned.assert_success().stdout
    };
    let before = items(data);
    std::fs::remove_file(std::path::Path::new(data).join("FORMAT")).unwrap();
    let printed = run(&["doctor", "--data", data, "--salvage", target]);
    let printed = printed.assert_success().stdout;
    assert!(
        printed.contains("new store") && printed.contains(target),
        "{printed}"
    );
    assert_eq!(items(target), before);
    run(&["doctor", "--data", data, "--salvage", target]).assert_failure(1, &["not empty"]);
    run(&["doctor", "--data", data, "--salvage", target, "--repair"])
        .assert_failure(2, &["--repair"]);
    run(&["doctor", "--data", "/nowhere", "--salvage", "/nowhere/else"])
        .assert_failure(1, &["contains no store"]);
}
