//! `floe indexer`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};

use floe::events::StreamName;
use floe_store::op::CreateTable;
use floe_store::table::{KeyKind, StreamView, TableDef};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Running, append, block_on, connected, floe, run, spawn, with_db, with_store};

#[test]
fn once_catches_up_and_exits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    with_store(folder.path(), async |store| {
        append(&store, "Cart-1", &["{}", "{}"]).await;
        append(&store, "Cart-2", &["{}"]).await;
    });
    let index = ["indexer", "--data", path, "--table", "shop", "--once"];
    let first = run(&index).assert_success();
    assert_eq!(first.stdout, "floe: caught up: events=3 records=2\n");
    let (lines, lag) = first.stderr.trim_end().rsplit_once(" lag=").unwrap();
    assert!(lag.ends_with('s'), "{lag}");
    let expected = "floe: creating the index table: table=shop-index\n\
                    floe: indexed events=3 records=2 at=0@1";
    assert_eq!(lines, expected);
    let again = run(&index).assert_success();
    assert_eq!(again.stdout, "floe: caught up: events=0 records=0\n");
    assert_eq!(again.stderr, "");
}

#[test]
fn indexer_follows_a_server_until_stopped() {
    let (_server, endpoint) = Running::server();
    let arguments = ["--endpoint", &endpoint, "--table", "shop"];
    for signal in [Signal::TERM, Signal::INT] {
        block_on(async {
            let store = connected(&endpoint).await;
            append(&store, "Cart-1", &["{}"]).await;
        });
        let more = ["indexer", "--poll", "10ms", "--partitions", "2"];
        let indexer = Running::start(&[&more[..], &arguments].concat());
        assert_eq!(
            indexer.line,
            format!("floe: indexing shop into shop-index (name: 0, endpoint: {endpoint})\n")
        );
        block_on(async {
            let store = connected(&endpoint).await;
            append(&store, "Cart-2", &["{}", "{}"]).await;
            let version = store
                .version(&StreamName::parse("Cart-2").unwrap())
                .await
                .unwrap();
            let read = format!(r#""index":{},"types""#, version - 2);
            let is_in_feed = || {
                let spans = ["0", "1"].map(|partition| {
                    let read = ["feed", "read", "--json", "--partition", partition];
                    run(&[&read[..], &arguments].concat())
                        .assert_success()
                        .stdout
                });
                spans.concat().contains(&read)
            };
            while !is_in_feed() {}
        });
        let output = indexer.stop(signal).assert_success();
        let last = output.stderr.lines().last().unwrap();
        assert!(last.starts_with("floe: stopped: events="), "{output:?}");
    }
}

#[test]
fn concurrent_indexers_do_not_duplicate_events() {
    let (_server, endpoint) = Running::server();
    let arguments = ["--endpoint", &endpoint, "--table", "shop"];
    block_on(async {
        let store = connected(&endpoint).await;
        for _ in 0..20 {
            append(&store, "Cart-1", &["{}"]).await;
            append(&store, "Cart-2", &["{}"]).await;
        }
    });
    let once = |name| [&["indexer", "--once", "--name", name][..], &arguments].concat();
    let running: Vec<Running> = ["0", "0", "other"]
        .iter()
        .map(|name| Running::start(&once(name)))
        .collect();
    for running in running {
        assert!(
            running.line.starts_with("floe: caught up: "),
            "{}",
            running.line
        );
        running.end().assert_success();
    }
    let read = [
        &["feed", "read", "--json", "--events", "--max", "1000"][..],
        &arguments,
    ]
    .concat();
    let events = run(&read).assert_success().stdout;
    assert_eq!(events.lines().count(), 40, "{events}");
}

/// Creates a table, with a change stream if `view` is given.
fn create_table(path: &std::path::Path, name: &str, key: &str, view: Option<StreamView>) {
    with_db(path, async |db| {
        let mut table = TableDef::builder(name, key, KeyKind::S).sort_key("i", KeyKind::N);
        if let Some(view) = view {
            table = table.stream(view);
        }
        let create = CreateTable::from(table.build().unwrap());
        db.engine().create_table(create).await.unwrap();
    });
}

#[test]
fn table_that_cannot_be_indexed_is_rejected_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    create_table(folder.path(), "unwatched", "p", None);
    create_table(folder.path(), "keys", "p", Some(StreamView::KeysOnly));
    create_table(folder.path(), "models", "id", Some(StreamView::NewImage));
    let index = |table| run(&["indexer", "--data", path, "--table", table, "--once"]);
    index("nothing").assert_failure(1, &["there is no such table: table=nothing; check --table"]);
    index("unwatched").assert_failure(
        1,
        &[
            "the table has no change stream: table=unwatched",
            "NEW_IMAGE",
        ],
    );
    index("keys").assert_failure(1, &["has no new images: table=keys view=KEYS_ONLY"]);
    index("models").assert_failure(1, &["not an event table", "table=models"]);
    index("a b").assert_failure(2, &["a b"]);
    // No index table was created.
    with_db(folder.path(), async |db| {
        let tables = db.engine().list_tables(Default::default()).await.unwrap();
        assert_eq!(tables.table_names, ["keys", "models", "unwatched"]);
    });
    let missing = ["indexer", "--data", "/nowhere/at/all", "--once"];
    run(&missing).assert_failure(1, &["there is no such directory: path=/nowhere/at/all"]);
}

#[test]
fn directory_in_use_is_reported_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let _server = Running::start(&["serve", "--data", path, "--listen", "0"]);
    let output = run(&["indexer", "--data", path, "--once"]);
    output.assert_failure(1, &["use --endpoint instead of --data"]);
}

#[test]
fn number_of_partitions_cannot_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    with_store(folder.path(), async |store| {
        append(&store, "Cart-1", &["{}"]).await;
    });
    let index = ["indexer", "--data", path, "--table", "shop", "--once"];
    run(&[&index[..], &["--partitions", "3"]].concat()).assert_success();
    let other = run(&[&index[..], &["--partitions", "2"]].concat());
    other.assert_failure(2, &["partitions=3 requested=2", "omit --partitions"]);
    run(&index).assert_success();
    run(&[&index[..], &["--partitions", "3"]].concat()).assert_success();
}

#[test]
fn usage_error_is_reported_in_one_line() {
    for (arguments, words) in [
        (&["--batch-max", "0"][..], "1..=10000"),
        (&["--batch-max", "10001"], "1..=10000"),
        (&["--poll", "soon"], "not a duration, such as 500ms"),
        (&["--partitions", "0"], "0"),
        (&["--name", "a_b"], "cannot be empty or contain _"),
        (
            &["--endpoint", "here"],
            "expected a URL, such as http://127.0.0.1:8000",
        ),
        (
            &["--data", ".", "--endpoint", "http://x"],
            "cannot be used with",
        ),
        (&["--data", ".", "--region", "x"], "cannot be used with"),
    ] {
        let output = run(&[&["indexer"][..], arguments].concat());
        output.assert_failure(2, &[words, "see floe indexer --help"]);
        assert_eq!(output.stderr.lines().count(), 1, "{output:?}");
    }
    let help = run(&["indexer", "--help"]).assert_success().stdout;
    for word in [
        "--accept-trimmed",
        "--table-prefix",
        "bootstrap",
        "Exit codes",
    ] {
        assert!(help.contains(word), "{help}");
    }
}

#[test]
fn indexer_waits_for_its_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    with_store(folder.path(), async |store| {
        append(&store, "Cart-1", &["{}"]).await;
    });
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let address = address.unwrap().to_string();
    let endpoint = format!("http://{address}");
    let mut command = floe(&["indexer", "--table", "shop", "--endpoint", &endpoint]);
    command.stderr(Stdio::piped());
    let mut indexer = Waiting(spawn(command));
    let mut notes = BufReader::new(indexer.0.stderr.take().unwrap());
    let mut note = String::new();
    notes.read_line(&mut note).unwrap();
    assert!(
        note.starts_with("floe: waiting for the store: the store cannot be reached, "),
        "{note}"
    );
    let _server = Running::start(&["serve", "--data", path, "--listen", &address]);
    let mut line = String::new();
    let mut stdout = BufReader::new(indexer.0.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert!(
        line.starts_with("floe: indexing shop into shop-index"),
        "{line}"
    );
    kill_process(Pid::from_child(&indexer.0), Signal::TERM).unwrap();
    assert_eq!(indexer.0.wait().unwrap().code(), Some(0));
}

#[test]
fn indexer_that_waits_can_be_stopped() {
    let mut indexer = Waiting(spawn(floe(&[
        "indexer",
        "--endpoint",
        "http://127.0.0.1:9",
    ])));
    let mut notes = BufReader::new(indexer.0.stderr.take().unwrap());
    let mut note = String::new();
    notes.read_line(&mut note).unwrap();
    kill_process(Pid::from_child(&indexer.0), Signal::INT).unwrap();
    notes.read_to_string(&mut note).unwrap();
    assert!(
        note.ends_with("floe: stopped before the store could be reached\n"),
        "{note}"
    );
    assert_eq!(indexer.0.wait().unwrap().code(), Some(0));
}

/// An indexer that waits for its server; killed when dropped.
struct Waiting(Child);

impl Drop for Waiting {
    fn drop(&mut self) {
        // It may have exited already.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn unreachable_server_is_reported() {
    let output = run(&["indexer", "--endpoint", "http://127.0.0.1:9", "--once"]);
    output.assert_failure(1, &["127.0.0.1:9"]);
}

#[test]
fn metrics_are_exposed_to_prometheus_but_not_to_web_pages() {
    let (_server, endpoint) = Running::server();
    block_on(async {
        let store = connected(&endpoint).await;
        append(&store, "Cart-1", &["{}", "{}"]).await;
        append(&store, "Cart-2", &["{}"]).await;
    });
    let arguments = ["indexer", "--endpoint", &endpoint, "--table", "shop"];
    let metrics = ["--metrics", "0", "--poll", "10ms"];
    let mut indexer = Running::start(&[&arguments[..], &metrics].concat());
    let address = indexer
        .line
        .strip_prefix("floe: metrics on http://")
        .unwrap();
    let address = address.strip_suffix("/metrics\n").unwrap().to_owned();
    assert!(
        indexer
            .next_line()
            .starts_with("floe: indexing shop into shop-index")
    );
    let get_metrics = |host: &str| {
        let mut connection = TcpStream::connect(&address).unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).unwrap();
        response
    };
    let has_line = |line: &str| {
        let response = get_metrics(&address);
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        response.lines().any(|printed| printed == line)
    };
    while !has_line(r#"floe_indexer_events_total{table="shop",indexer="0"} 3"#) {}
    assert!(has_line(
        r#"floe_indexer_records_total{table="shop",indexer="0"} 2"#
    ));
    assert!(has_line(
        r#"floe_indexer_failures_total{table="shop",indexer="0"} 0"#
    ));
    assert!(has_line(
        r#"floe_indexer_epoch{table="shop",indexer="0",partition="0"} 0"#
    ));
    assert!(get_metrics(&address).contains("floe_indexer_lag_seconds{"));
    let page = get_metrics("evil.example.com");
    assert!(page.starts_with("HTTP/1.1 403"), "{page}");
    indexer.stop(Signal::TERM).assert_success();
}
