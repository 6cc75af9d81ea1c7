//! `floe registry`, on what a program with the struct has made.

use floe::db::ConnectOptions;
use floe::{Db, Registry};
use serde_json::{Value, json};

use crate::world::{Store, block_on, run, with_db};

/// Layers, of which each group is a partition.
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

/// Builds, of which each version is a partition.
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

/// Does something as a program with the structs does.
fn with_program<T>(store: &Store, work: impl AsyncFnOnce(Db) -> T) -> T {
    match store.option() {
        ["--data", path] => with_db(path.as_ref(), work),
        [_, endpoint] => block_on(async {
            work(Db::connect(ConnectOptions::local(endpoint)).await.unwrap()).await
        }),
    }
}

/// A store in which a program has published two layers in a region, and one in another.
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

fn call<'a>(command: &'a str, names: &[&'a str], rest: &[&'a str]) -> Vec<&'a str> {
    [&["registry", command, "Layer"], names, rest].concat()
}

#[test]
fn a_registry_is_found_by_what_its_program_has_left() {
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
        let told = store.prints(&["registry", "describe", "Layer"]);
        assert!(
            told.contains("\ngroup      lyr#{region}.{package}\n"),
            "{told}"
        );
        assert!(
            told.contains("\nsize     size       number  optional\n"),
            "{told}"
        );
        let described = store.prints(&["registry", "describe", "Layer", "--json"]);
        assert_eq!(described, Layer::SCHEMA.describe());
    }
}

#[test]
fn versions_are_told_to_people_and_to_programs() {
    let store = published(Store::directory());
    let latest = store.prints(&call("latest", &EU, &[]));
    let lines: Vec<&str> = latest.lines().collect();
    assert_eq!(lines[0], "version    2");
    assert_eq!(lines[1], "status     latest");
    assert_eq!(lines[lines.len() - 1], "arn        arn:2");
    let json = &store.json(&call("latest", &EU, &[]))[0];
    assert_eq!(
        (&json["version"], &json["status"]),
        (&json!(2), &json!("latest"))
    );
    assert_eq!(json["item"]["arn"], json!({"S": "arn:2"}));
    assert_eq!(json["hash"].as_str().unwrap().len(), 64);
    let regions = store.prints(&call("latest", &["package=numpy"], &[]));
    let lines: Vec<&str> = regions.lines().collect();
    assert!(
        lines[0].starts_with("region  package  version  status  published"),
        "{regions}"
    );
    assert_eq!(lines.len(), 3, "{regions}");
    let deployed = store.json(&call("deployed", &["package=numpy"], &[]));
    assert_eq!(deployed.len(), 3);
    let history = store.json(&call("history", &EU, &["--newest-first"]));
    let numbers: Vec<_> = history.iter().map(|version| &version["version"]).collect();
    assert_eq!(numbers, [2, 1]);
    assert!(history[1]["expires_ms"].is_u64());
    let one = store
        .run(&call("history", &EU, &["--max", "1"]))
        .succeeded();
    assert_eq!(one.stdout.lines().count(), 2);
    assert!(one.stderr.contains("there are more"), "{one:?}");
    let first = store.prints(&call("get", &EU, &["--version", "1"]));
    assert!(
        first.starts_with("version    1\nstatus     deprecated\n"),
        "{first}"
    );

    store.run(&call("get", &EU, &["--version", "7"])).failed(
        3,
        &["there is no such version", "group=lyr#eu.numpy version=7"],
    );
    let nowhere = ["region=cn", "package=numpy"];
    store
        .run(&call("latest", &nowhere, &[]))
        .failed(3, &["there is no latest version"]);
    store
        .run(&call("history", &nowhere, &[]))
        .failed(3, &["nothing was published"]);
}

/// The same content is the same version, whoever publishes it.
#[test]
fn what_the_command_publishes_is_what_the_program_publishes() {
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
            assert!(before.expires.is_some(), "the retention is the registry's");
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
    assert_eq!(store.prints(&call("pin", &EU, &one)), "pinned: version 1\n");
    assert_eq!(
        store.prints(&call("pin", &EU, &one)),
        "so already: version 1\n"
    );
    let history = store.prints(&call("history", &EU, &[]));
    assert!(
        history.lines().nth(1).unwrap().contains("  pin      arn:1"),
        "{history}"
    );
    assert_eq!(
        store.json(&call("unpin", &EU, &one)),
        [json!({"changed": true})]
    );
    let lts = ["--alias", "lts", "--version", "2"];
    assert_eq!(
        store.prints(&call("alias", &EU, &lts)),
        "done: alias lts to version 2\n"
    );
    let led = store.json(&call("get", &EU, &["--alias", "lts"]));
    assert_eq!(
        (&led[0]["version"], &led[0]["aliases"]),
        (&json!(2), &json!(["lts"]))
    );
    store
        .run(&call("retire", &EU, &two))
        .failed(3, &["aliases lead to the version"]);
    let removed = ["--alias", "lts", "--remove"];
    assert_eq!(
        store.prints(&call("alias", &EU, &removed)),
        "done: no alias lts\n"
    );
    store
        .run(&call("get", &EU, &["--alias", "lts"]))
        .failed(3, &["alias=lts"]);
    assert_eq!(
        store.prints(&call("retire", &EU, &two)),
        "retired: version 2; the latest is version 1\n"
    );
    assert_eq!(
        store.json(&call("retire", &EU, &two)),
        [json!({"version": 2, "retired": false, "latest": 1})]
    );
    assert_eq!(
        store.prints(&call("retire", &EU, &one)),
        "retired: version 1; there is no latest version\n"
    );
    store
        .run(&call("retire", &EU, &["--version", "9"]))
        .failed(3, &["the version is not there"]);
}

#[test]
fn wrong_calls_are_told_and_nothing_is_published() {
    let store = published(Store::directory());
    let item = ["--item", r#"{"arn":"arn:3"}"#];
    for (words, told) in [
        (call("publish", &EU, &["--item", "{"]), "--item is not JSON"),
        (
            call("publish", &["region=eu"], &item),
            "the attribute is missing",
        ),
        (
            call("publish", &["region=eu", "region=us"], &item),
            "stands in --item as well: name=region",
        ),
        (
            call("publish", &["arn=x"], &item),
            "the name is none of the group: name=arn",
        ),
        (
            call("publish", &EU, &["--item", r#"{"arn":7}"#]),
            "expected=S actual=N",
        ),
        (
            call("publish", &EU, &["--item", r#"{"arn":"a","exDt":7}"#]),
            "no field of this attribute",
        ),
        (
            call("latest", &["region=eu"], &[]),
            "there is no index by any of the names",
        ),
        (
            call("latest", &["region"], &[]),
            "not a field and a name, such as region=eu",
        ),
        (
            call("history", &["region=eu"], &[]),
            "the attribute is missing",
        ),
        (call("get", &EU, &[]), "--version"),
        (call("alias", &EU, &["--alias", "x"]), "--version"),
        (
            call("alias", &EU, &["--alias", "", "--version", "2"]),
            "cannot be empty",
        ),
        (
            vec!["registry", "latest", "Build", "line=x"],
            "the name is a number",
        ),
    ] {
        store.run(&words).failed(2, &[told]);
    }
    store.run(&["registry", "latest", "Layers"]).failed(
        1,
        &[
            "there is no description of such a registry",
            "known=Build,Layer",
            "--schema",
        ],
    );
    assert_eq!(store.json(&call("history", &EU, &[])).len(), 2);
}

#[test]
fn a_table_that_was_made_elsewhere_is_read_by_a_file() {
    let store = published(Store::directory());
    let path = tempfile::tempdir().unwrap();
    let file = path.path().join("layer.json");
    let file = file.to_str().unwrap();
    std::fs::write(file, Layer::SCHEMA.describe()).unwrap();
    let key = r#"{"pk":"_registry#","sk":"_registry#Layer#"}"#;
    store.prints(&["item", "delete", "klayers", "--key", key]);
    store
        .run(&call("latest", &EU, &[]))
        .failed(1, &["there is no description", "known=Build"]);
    let by_file = call("latest", &EU, &["--schema", file]);
    assert_eq!(store.json(&by_file)[0]["version"], 2);
    store
        .run(&[&by_file[..], &["--table", "other"]].concat())
        .failed(1, &["there is no such table: table=other"]);
    store
        .run(&["registry", "latest", "Build", "--schema", file])
        .failed(2, &["--schema describes another registry"]);
    std::fs::write(file, "{\"name\":\"Layer\"}").unwrap();
    store.run(&by_file).failed(2, &["word=table"]);
    std::fs::write(file, "{").unwrap();
    store.run(&by_file).failed(2, &["it is no JSON"]);
    store
        .run(&call("latest", &EU, &["--schema", "/nowhere"]))
        .failed(1, &["--schema cannot be read"]);
}

#[test]
fn two_tables_with_a_registry_of_one_name_are_told_apart() {
    let store = published(Store::directory());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("klayers.jsonl");
    let file = file.to_str().unwrap();
    let [_, data] = store.option();
    run(&["export", "klayers", "--to", file, "--data", data]).succeeded();
    let copied = std::fs::read_to_string(file)
        .unwrap()
        .replace("\"klayers\"", "\"copy\"");
    std::fs::write(file, copied).unwrap();
    run(&["import", "--from", file, "--data", data]).succeeded();
    store
        .run(&call("latest", &EU, &[]))
        .failed(2, &["two tables have a registry of this name", "--table"]);
    let copy = ["--table", "copy"];
    store.prints(&call("retire", &EU, &["--version", "2", "--table", "copy"]));
    assert_eq!(store.json(&call("latest", &EU, &copy))[0]["version"], 1);
    assert_eq!(
        store.json(&call("latest", &EU, &["--table", "klayers"]))[0]["version"],
        2
    );
}
