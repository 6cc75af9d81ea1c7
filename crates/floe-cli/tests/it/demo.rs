//! `floe demo`, the commands that it prints, `floe events`, `floe bench`, completions and man pages.

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Running, Store, run};

/// A store filled by the demo.
fn shop() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop").to_str().unwrap().to_owned();
    let printed = run(&["demo", "--no-serve", "--data", &path])
        .assert_success()
        .stdout;
    assert!(printed.starts_with("Filled a shop in "), "{printed}");
    assert!(
        printed.contains("\nmodels      5 products, 8 purchases"),
        "{printed}"
    );
    assert!(
        printed.contains("rejected    buying 100 tents: "),
        "{printed}"
    );
    assert!(
        printed.contains("\nregistry    2 versions of the price list"),
        "{printed}"
    );
    assert!(
        printed.contains("floe registry history PriceList market=north --data "),
        "{printed}"
    );
    (folder, path)
}

fn prints(path: &str, arguments: &[&str]) -> String {
    run(&[arguments, &["--data", path]].concat())
        .assert_success()
        .stdout
}

#[test]
fn demo_store_can_be_read_with_every_command() {
    let (_folder, path) = shop();
    assert_eq!(
        prints(
            &path,
            &[
                "query",
                "Purchase",
                "--key-condition",
                "#c = :c",
                "--names",
                r##"{"#c":"_id"}"##,
                "--values",
                r#"{":c":"fridtjof"}"#,
                "--projection",
                "sku, pieces"
            ]
        ),
        "pieces  sku\n     1  tent\n     1  lamp\n"
    );
    assert_eq!(
        prints(&path, &["events", "stats"]),
        "category  streams  events  longest\nAccount         3      11        4\n"
    );
    let read = prints(
        &path,
        &[
            "events",
            "read",
            "Account-ada",
            "--backward",
            "--max",
            "1",
            "--json",
        ],
    );
    let read: serde_json::Value = serde_json::from_str(&read).unwrap();
    assert_eq!((&read["index"], &read["type"]), (&json!(3), &json!("Paid")));
    assert_eq!(
        prints(&path, &["feed", "verify"]),
        "streams  3\nevents   11\nbehind   0\nfaults   0\n"
    );
    assert_eq!(
        prints(&path, &["feed", "tail", "--last", "5", "--once"])
            .lines()
            .count(),
        5
    );
    assert_eq!(
        prints(&path, &["graph", "related", "shop", "customer", "ada"]),
        "predicate  type     id    edge  attributes\n\
         bought     product  sled        {\"name\":\"Sled of ash wood\"}\n\
         bought     product  tea         {\"name\":\"Black tea, 500 g\"}\n\
         bought     product  lamp        {\"name\":\"Storm lamp\"}\n"
    );
    let referrers = prints(
        &path,
        &["graph", "referrers", "shop", "product", "tent", "--json"],
    );
    assert_eq!(referrers.lines().count(), 2, "{referrers}");
    assert_eq!(
        prints(&path, &["graph", "lookup", "shop", "by_city", "Oslo"]),
        "key   type      id     attributes\nOslo  customer  ada\nOslo  customer  roald\n"
    );
    let lookup = ["graph", "lookup", "shop"];
    let oslo = run(&[&lookup[..], &["by_city", "Rome", "--data", &path]].concat());
    assert_eq!(oslo.assert_success().stdout, "key  type  id  attributes\n");
    run(&[&lookup[..], &["by_town", "Oslo", "--data", &path]].concat()).assert_failure(
        3,
        &["there is no such index, or it has no entries: scope=shop index=by_town"],
    );
    let got = prints(&path, &["graph", "get", "shop", "customer", "ada"]);
    assert!(
        got.starts_with("type     customer\nid       ada\n"),
        "{got}"
    );
    let none = run(&[
        "graph", "get", "shop", "customer", "missing", "--data", &path,
    ]);
    none.assert_failure(
        3,
        &["there is no such entity: scope=shop type=customer id=missing"],
    );
    prints(&path, &["graph", "check"]);
    let latest = prints(&path, &["registry", "latest", "PriceList", "market=north"]);
    assert!(
        latest.starts_with("version    2\nstatus     latest\n"),
        "{latest}"
    );
    assert!(latest.contains("\nreason     a bad harvest\n"), "{latest}");
    assert!(latest.contains("\"tea\":1100"), "{latest}");
    let tea = [
        "item",
        "get",
        "Product",
        "--key",
        r#"{"_id":"tea"}"#,
        "--json",
    ];
    assert!(
        prints(&path, &tea).contains(r#""cents":1100"#),
        "one commit"
    );
    let history = prints(&path, &["registry", "history", "PriceList", "market=north"]);
    assert_eq!(history.lines().count(), 3, "{history}");
    let again = run(&["demo", "--no-serve", "--data", &path]);
    again.assert_failure(1, &["the directory is not empty"]);
}

#[test]
fn demo_serves_the_filled_store() {
    let mut demo = Running::start(&["demo", "--listen", "0"]);
    let mut endpoint = String::new();
    while !demo.line.starts_with("floe: serving DynamoDB on ") {
        demo.line = demo.next_line();
        assert!(!demo.line.is_empty(), "the demo exited");
        if let Some((_, rest)) = demo.line.split_once("--endpoint ") {
            endpoint = rest.split_whitespace().next().unwrap().to_owned();
        }
    }
    let listed = run(&["scan", "Product", "--count", "--endpoint", &endpoint]).assert_success();
    assert_eq!(listed.stdout, "5\n");
    assert_eq!(demo.stop(Signal::INT).code, Some(0));
}

#[test]
fn demo_does_nothing_if_its_port_is_in_use() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("shop");
    let words = ["demo", "--listen", &address, "--data"];
    let output = run(&[&words[..], &[data.to_str().unwrap()]].concat());
    output.assert_failure(
        1,
        &[
            "cannot listen on the address",
            &address,
            "choose another with --listen",
        ],
    );
    assert!(!data.exists());
}

#[test]
fn event_tables_are_created_with_stream_and_index() {
    for store in Store::both() {
        let create = ["events", "create", "--table", "shop"];
        assert_eq!(
            store.prints(&create),
            "created: table=shop stream=NEW_IMAGE\ncreated: table=shop-index\n"
        );
        assert_eq!(
            store.json(&create),
            [
                json!({"table": "shop", "created": false, "stream": "NEW_IMAGE", "index": "shop-index",
                "index_created": false})
            ]
        );
        let append = [
            "events", "append", "Cart-1", "--type", "Added", "--table", "shop",
        ];
        store.prints(&append);
        assert_eq!(
            store.prints(&["indexer", "--once", "--table", "shop"]),
            "floe: caught up: events=1 records=1\n"
        );
        // A table without a change stream gets one.
        let key = ["--key", "p:S", "--sort", "i:N"];
        store.prints(&[&["table", "create", "plain"][..], &key].concat());
        assert_eq!(
            store.prints(&["events", "create", "--table", "plain"]),
            "unchanged: table=plain stream=NEW_IMAGE\ncreated: table=plain-index\n"
        );
        store.prints(&["table", "create", "models", "--key", "id:S"]);
        let other = store.run(&["events", "create", "--table", "models"]);
        assert_eq!(
            (other.code, other.stdout.as_str()),
            (Some(1), ""),
            "{other:?}"
        );
        let names = store.prints(&["table", "list", "--names"]);
        assert_eq!(names, "models\nplain\nplain-index\nshop\nshop-index\n");
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("new");
    let create = ["events", "create", "--data", data.to_str().unwrap()];
    run(&create).assert_failure(
        1,
        &["there is no such directory", "; --new creates a store"],
    );
    run(&[&create[..], &["--new"]].concat()).assert_success();
}

#[test]
fn events_are_appended_read_and_pruned() {
    for store in Store::both() {
        let append = ["events", "append", "Cart-1", "--type"];
        store
            .run(&[&append[..], &["Added"]].concat())
            .assert_failure(1, &["there is no such table: table=events"]);
        let body = r#"{"sku":"tea"}"#;
        assert_eq!(
            store.prints(
                &[
                    &append[..],
                    &["Added", "--body", body, "--expect", "new", "--create-table"]
                ]
                .concat()
            ),
            "appended: stream=Cart-1 version=1\n"
        );
        let again = store.run(&[&append[..], &["Added", "--expect", "new"]].concat());
        again.assert_failure(3, &["the stream is at another version", "actual=1"]);
        assert_eq!(
            store.json(&[&append[..], &["Paid", "--expect", "1"]].concat()),
            [json!({"stream": "Cart-1", "version": 2})]
        );
        let read = store.prints(&["events", "read", "Cart-1"]);
        let lines: Vec<&str> = read.lines().collect();
        assert_eq!(lines[0], "index  time                 type   data");
        assert!(lines[1].ends_with("  Added  {\"sku\":\"tea\"}"), "{read}");
        assert!(lines[2].ends_with("  Paid"), "{read}");
        assert_eq!(
            store.json(&["events", "read", "Cart-1"])[0]["data"],
            json!({"sku": "tea"})
        );
        let prune = ["events", "prune", "Cart-1", "--before", "1"];
        store
            .run(&prune)
            .assert_failure(2, &["nothing was deleted"]);
        assert_eq!(
            store.prints(&[&prune[..], &["--yes"]].concat()),
            "pruned: stream=Cart-1 deleted=1 deferred=0 lowest=1\n"
        );
        store
            .run(&["events", "read", "Cart-2"])
            .assert_failure(3, &["there is no such stream"]);
        // A feed created after pruning has no pruned events, and later events are behind until they are indexed.
        store.prints(&["indexer", "--once"]);
        assert_eq!(store.json(&["feed", "verify"])[0]["faults_total"], 0);
        store.prints(&[&append[..], &["Sent"]].concat());
        store.run(&["feed", "verify", "--json"]).assert_behind();
        store
            .run(&["feed", "lag", "--group", "none"])
            .assert_failure(3, &["there is no such group"]);
    }
}

impl crate::support::ProgramOutput {
    /// The feed is one event behind and has no faults.
    #[track_caller]
    fn assert_behind(self) {
        assert_eq!(self.code, Some(3), "{self:?}");
        let printed: serde_json::Value = serde_json::from_str(&self.stdout).unwrap();
        assert_eq!(
            (&printed["behind"], &printed["faults_total"]),
            (&json!(1), &json!(0))
        );
    }
}

#[test]
fn bench_removes_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let measured = run(&[
        "bench",
        "--data",
        path,
        "--seconds",
        "1",
        "--tasks",
        "4",
        "--json",
    ])
    .assert_success();
    let lines: Vec<serde_json::Value> = measured
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let names: Vec<_> = lines
        .iter()
        .map(|line| line["request"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["put", "get", "query of 20", "transaction of 3"]);
    for line in &lines {
        assert!(line["per_second"].as_u64() > Some(0), "{line}");
        assert!(line["p50_us"].as_u64() <= line["p99_us"].as_u64(), "{line}");
    }
    assert_eq!(std::fs::read_dir(path).unwrap().count(), 0);
}

#[test]
fn completions_and_man_pages_are_written() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let text = run(&["completions", shell]).assert_success().stdout;
        assert!(text.contains("checkpoint"), "{shell}");
        if shell == "bash" {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            let bash = std::process::Command::new("bash")
                .arg("-n")
                .arg(file.path())
                .status();
            assert!(bash.unwrap().success());
        }
    }
    let folder = tempfile::tempdir().unwrap();
    run(&["man", folder.path().to_str().unwrap()]).assert_success();
    for page in std::fs::read_dir(folder.path()).unwrap() {
        let page = page.unwrap().path();
        let text = std::fs::read_to_string(&page).unwrap();
        let is_first = page.ends_with("floe.1");
        assert!(text.contains("Examples:") || is_first, "{page:?}");
        assert!(text.contains("Exit codes:") || !is_first, "{page:?}");
    }
    assert!(folder.path().join("floe-registry-publish.1").exists());
}
