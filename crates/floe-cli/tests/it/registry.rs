//! `floe registry`, on registries that a program with the structs has published.

use floe::db::ConnectOptions;
use floe::{Db, Registry};
use serde_json::{Value, json};

use crate::support::{Store, block_on, run, with_db};

/// A registry in which each group is a partition.
#[derive(Clone, Debug, PartialEq, Registry)]
#[registry(
    table = "klayers",
    pk = "lyr#{region}.{package}",
    sk = "lyrVrsn#v{version}",
    latest = "lyrVrsn0#",
    status = "dplySts",
    expires = "exDt",
    retention = "30d",
    index(name = "package-status", key = package)
)]
struct Layer {
    #[registry(rename = "rgn")]
    region: String,
    #[registry(rename = "pckg")]
    package: String,
    arn: String,
    size: Option<u32>,
}

/// A registry in which each version is a partition.
#[derive(Clone, Debug, PartialEq, Registry)]
#[registry(
    table = "klayers",
    pk = "bld#v{version}",
    sk = "bld#{line}",
    latest = "bldVrsn0#"
)]
struct Build {
    line: u32,
    #[registry(hash)]
    digest: String,
}

fn layer(region: &str, arn: &str) -> Layer {
    Layer {
        region: region.to_owned(),
        package: "numpy".to_owned(),
        arn: arn.to_owned(),
        size: None,
    }
}

/// Runs a closure on the store, as a program with the structs.
fn with_program<T>(store: &Store, run: impl AsyncFnOnce(Db) -> T) -> T {
    match store.option() {
        ["--data", path] => with_db(path.as_ref(), run),
        [_, endpoint] => block_on(async {
            run(Db::connect(ConnectOptions::local(endpoint)).await.unwrap()).await
        }),
    }
}

/// A store with two published layers in one region, and one in another.
fn published(store: Store) -> Store {
    with_program(&store, async |db| {
        let schemas = [Layer::SCHEMA, Build::SCHEMA];
        db.ensure_registries(&schemas).await.unwrap();
        let layers = db.registry::<Layer>();
        for (region, arn) in [("eu", "arn:1"), ("eu", "arn:2"), ("us", "arn:9")] {
            layers.publish(&layer(region, arn)).await.unwrap();
        }
    });
    store
}

const EU: [&str; 2] = ["region=eu", "package=numpy"];

fn arguments<'a>(command: &'a str, key: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    [&["registry", command, "Layer"], key, rest].concat()
}

#[test]
fn registry_is_found_by_its_stored_description() {
    for store in Store::both().map(published) {
        assert_eq!(
            store.prints(&["registry", "list"]),
            "registry  table    group            retention  indexes\n\
             Build     klayers  line\n\
             Layer     klayers  region, package  30d        package-status\n"
        );
        let listed = store.json(&["registry", "list", "--table", "klayers"]);
        assert_eq!(
            listed[0],
            json!({"registry": "Build", "table": "klayers", "group": ["line"], "indexes": []})
        );
        let printed = store.prints(&["registry", "describe", "Layer"]);
        assert!(
            printed.contains("\ngroup      lyr#{region}.{package}\n"),
            "{printed}"
        );
        assert!(
            printed.contains("\nsize     size       number  optional\n"),
            "{printed}"
        );
        let described = store.prints(&["registry", "describe", "Layer", "--json"]);
        assert_eq!(described, Layer::SCHEMA.describe());
    }
}

#[test]
fn versions_are_printed_as_text_and_json() {
    let store = published(Store::directory());
    let latest = store.prints(&arguments("latest", &EU, &[]));
    let lines: Vec<&str> = latest.lines().collect();
    assert_eq!(lines[0], "version    2");
    assert_eq!(lines[1], "status     latest");
    assert_eq!(lines[lines.len() - 1], "arn        arn:2");
    let json = &store.json(&arguments("latest", &EU, &[]))[0];
    assert_eq!(
        (&json["version"], &json["status"]),
        (&json!(2), &json!("latest"))
    );
    assert_eq!(json["item"]["arn"], json!("arn:2"));
    assert_eq!(json["hash"].as_str().unwrap().len(), 64);
    let regions = store.prints(&arguments("latest", &["package=numpy"], &[]));
    let lines: Vec<&str> = regions.lines().collect();
    assert!(
        lines[0].starts_with("region  package  version  status  published"),
        "{regions}"
    );
    assert_eq!(lines.len(), 3, "{regions}");
    let deployed = store.json(&arguments("deployed", &["package=numpy"], &[]));
    assert_eq!(deployed.len(), 3);
    let history = store.json(&arguments("history", &EU, &["--newest-first"]));
    let numbers: Vec<_> = history.iter().map(|version| &version["version"]).collect();
    assert_eq!(numbers, [2, 1]);
    assert!(history[1]["expires_ms"].is_u64());
    let one = store
        .run(&arguments("history", &EU, &["--max", "1"]))
        .assert_success();
    assert_eq!(one.stdout.lines().count(), 2);
    assert!(one.stderr.contains("there are more versions"), "{one:?}");
    let first = store.prints(&arguments("get", &EU, &["--version", "1"]));
    assert!(
        first.starts_with("version    1\nstatus     deprecated\n"),
        "{first}"
    );

    store
        .run(&arguments("get", &EU, &["--version", "7"]))
        .assert_failure(
            3,
            &["there is no such version", "group=lyr#eu.numpy version=7"],
        );
    let nowhere = ["region=cn", "package=numpy"];
    store
        .run(&arguments("latest", &nowhere, &[]))
        .assert_failure(3, &["there is no latest version"]);
    store
        .run(&arguments("history", &nowhere, &[]))
        .assert_failure(3, &["no version was published"]);
}

/// The same content is the same version, from the command line or from a program.
#[test]
fn command_and_program_publish_equal_versions() {
    for store in Store::both().map(published) {
        let same = r#"{"rgn":"eu","pckg":"numpy","arn":"arn:2"}"#;
        let publish = |names: &[&'static str], item: &str, rest: &[&'static str]| -> Value {
            let words = [
                &["registry", "publish", "Layer"],
                names,
                &["--item", item],
                rest,
            ];
            store.json(&words.concat())[0].clone()
        };
        assert_eq!(
            publish(&[], same, &["--if-changed"]),
            json!({"version": 2, "published": false})
        );
        assert_eq!(
            publish(&EU, r#"{"arn":"arn:3","size":7}"#, &["--if-changed"]),
            json!({"version": 3, "published": true})
        );
        with_program(&store, async |db| {
            let layers = db.registry::<Layer>();
            let third = Layer {
                size: Some(7),
                ..layer("eu", "arn:3")
            };
            let latest = layers.latest(("eu", "numpy")).await.unwrap().unwrap();
            assert_eq!((latest.number, &latest.value), (3, &third));
            assert!(!layers.publish_if_changed(&third).await.unwrap().is_new());
            let before = layers.version(("eu", "numpy"), 2).await.unwrap().unwrap();
            assert!(
                before.expires.is_some(),
                "expiry follows from the registry's retention"
            );
            let builds = db.registry::<Build>();
            let digest = "d1".to_owned();
            builds.publish(&Build { line: 7, digest }).await.unwrap();
        });
        let words = ["registry", "publish", "Build", "line=7", "--item"];
        let words = [&words[..], &[r#"{"digest":"d1"}"#, "--if-changed"]].concat();
        assert_eq!(store.prints(&words), "unchanged: version 1\n");
        assert_eq!(store.json(&["registry", "latest", "Build"]).len(), 1);
        assert_eq!(
            store.json(&["registry", "latest", "Build", "line=7.0"])[0]["version"],
            1
        );
    }
}

#[test]
fn versions_are_retired_pinned_and_aliased() {
    let store = published(Store::directory());
    let two = ["--version", "2"];
    let one = ["--version", "1"];
    assert_eq!(
        store.prints(&arguments("pin", &EU, &one)),
        "pinned: version 1\n"
    );
    assert_eq!(
        store.prints(&arguments("pin", &EU, &one)),
        "unchanged: version 1\n"
    );
    let history = store.prints(&arguments("history", &EU, &[]));
    assert!(
        history.lines().nth(1).unwrap().contains("  pin      arn:1"),
        "{history}"
    );
    assert_eq!(
        store.json(&arguments("unpin", &EU, &one)),
        [json!({"changed": true})]
    );
    let lts = ["--alias", "lts", "--version", "2"];
    assert_eq!(
        store.prints(&arguments("alias", &EU, &lts)),
        "set: alias lts to version 2\n"
    );
    let aliased = store.json(&arguments("get", &EU, &["--alias", "lts"]));
    assert_eq!(
        (&aliased[0]["version"], &aliased[0]["aliases"]),
        (&json!(2), &json!(["lts"]))
    );
    store
        .run(&arguments("retire", &EU, &two))
        .assert_failure(3, &["aliases refer to the version"]);
    let removed = ["--alias", "lts", "--remove"];
    assert_eq!(
        store.prints(&arguments("alias", &EU, &removed)),
        "removed: alias lts\n"
    );
    store
        .run(&arguments("get", &EU, &["--alias", "lts"]))
        .assert_failure(3, &["alias=lts"]);
    assert_eq!(
        store.prints(&arguments("retire", &EU, &two)),
        "retired: version 2; the latest is version 1\n"
    );
    assert_eq!(
        store.json(&arguments("retire", &EU, &two)),
        [json!({"version": 2, "retired": false, "latest": 1})]
    );
    assert_eq!(
        store.prints(&arguments("retire", &EU, &one)),
        "retired: version 1; there is no latest version\n"
    );
    store
        .run(&arguments("retire", &EU, &["--version", "9"]))
        .assert_failure(3, &["the version does not exist"]);
}

#[test]
fn wrong_arguments_are_rejected_and_nothing_is_published() {
    let store = published(Store::directory());
    let item = ["--item", r#"{"arn":"arn:3"}"#];
    for (words, message) in [
        (
            arguments("publish", &EU, &["--item", "{"]),
            "--item is not valid JSON",
        ),
        (
            arguments("publish", &["region=eu"], &item),
            "the attribute is missing",
        ),
        (
            arguments("publish", &["region=eu", "region=us"], &item),
            "the field is also in --item: field=region",
        ),
        (
            arguments("publish", &["arn=x"], &item),
            "the field does not belong to the group: name=arn",
        ),
        (
            arguments("publish", &EU, &["--item", r#"{"arn":7}"#]),
            "expected=S actual=N",
        ),
        (
            arguments("publish", &EU, &["--item", r#"{"arn":"a","exDt":7}"#]),
            "no field with this attribute",
        ),
        (
            arguments("latest", &["region=eu"], &[]),
            "no index is on any of the given fields",
        ),
        (
            arguments("latest", &["region"], &[]),
            "expected a field and its value, such as region=eu",
        ),
        (
            arguments("history", &["region=eu"], &[]),
            "the attribute is missing",
        ),
        (arguments("get", &EU, &[]), "--version"),
        (arguments("alias", &EU, &["--alias", "x"]), "--version"),
        (
            arguments("alias", &EU, &["--alias", "", "--version", "2"]),
            "cannot be empty",
        ),
        (
            vec!["registry", "latest", "Build", "line=x"],
            "the field is a number",
        ),
    ] {
        store.run(&words).assert_failure(2, &[message]);
    }
    store.run(&["registry", "latest", "Layers"]).assert_failure(
        1,
        &[
            "there is no description of the registry",
            "known=Build,Layer",
            "--schema",
        ],
    );
    assert_eq!(store.json(&arguments("history", &EU, &[])).len(), 2);
}

#[test]
fn schema_file_replaces_the_stored_description() {
    let store = published(Store::directory());
    let path = tempfile::tempdir().unwrap();
    let file = path.path().join("layer.json");
    let file = file.to_str().unwrap();
    std::fs::write(file, Layer::SCHEMA.describe()).unwrap();
    let key = r#"{"pk":"_registry#","sk":"_registry#Layer#"}"#;
    store.prints(&["item", "delete", "klayers", "--key", key]);
    store
        .run(&arguments("latest", &EU, &[]))
        .assert_failure(1, &["there is no description", "known=Build"]);
    let by_file = arguments("latest", &EU, &["--schema", file]);
    assert_eq!(store.json(&by_file)[0]["version"], 2);
    store
        .run(&[&by_file[..], &["--table", "other"]].concat())
        .assert_failure(1, &["there is no such table: table=other"]);
    store
        .run(&["registry", "latest", "Build", "--schema", file])
        .assert_failure(2, &["--schema describes another registry"]);
    std::fs::write(file, "{\"name\":\"Layer\"}").unwrap();
    store.run(&by_file).assert_failure(2, &["property=table"]);
    std::fs::write(file, "{").unwrap();
    store.run(&by_file).assert_failure(2, &["not JSON"]);
    store
        .run(&arguments("latest", &EU, &["--schema", "/nowhere"]))
        .assert_failure(1, &["--schema cannot be read"]);
}

#[test]
fn table_option_selects_between_registries_of_one_name() {
    let store = published(Store::directory());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("klayers.jsonl");
    let file = file.to_str().unwrap();
    let [_, data] = store.option();
    run(&["export", "klayers", "--to", file, "--data", data]).assert_success();
    let copied = std::fs::read_to_string(file)
        .unwrap()
        .replace("\"klayers\"", "\"copy\"");
    std::fs::write(file, copied).unwrap();
    run(&["import", "--from", file, "--data", data]).assert_success();
    store
        .run(&arguments("latest", &EU, &[]))
        .assert_failure(2, &["two tables have a registry of this name", "--table"]);
    let copy = ["--table", "copy"];
    store.prints(&arguments(
        "retire",
        &EU,
        &["--version", "2", "--table", "copy"],
    ));
    assert_eq!(
        store.json(&arguments("latest", &EU, &copy))[0]["version"],
        1
    );
    assert_eq!(
        store.json(&arguments("latest", &EU, &["--table", "klayers"]))[0]["version"],
        2
    );
}
