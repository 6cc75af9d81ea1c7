//! `floe indexer`.

use std::io::{Read, Write};
use std::net::TcpStream;

use floe::events::StreamName;
use floe_store::op::CreateTable;
use floe_store::table::{KeyKind, StreamView, TableDef};
use rustix::process::Signal;

use crate::world::{Running, append, block_on, connected, run, with_db, with_store};

#[test]
fn it_catches_up_with_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    with_store(folder.path(), async |store| {
        append(&store, "Cart-1", &["{}", "{}"]).await;
        append(&store, "Cart-2", &["{}"]).await;
    });
    let index = ["indexer", "--data", path, "--table", "shop", "--once"];
    let first = run(&index).succeeded();
    assert_eq!(first.stdout, "floe: caught up: events=3 records=2\n");
    let (lines, lag) = first.stderr.trim_end().rsplit_once(" lag=").unwrap();
    assert!(lag.ends_with('s'), "{lag}");
    let expected = "floe: there is no index table yet, it is made: table=shop-index\n\
                    floe: indexed events=3 records=2 at=0@1";
    assert_eq!(lines, expected);
    let again = run(&index).succeeded();
    assert_eq!(again.stdout, "floe: caught up: events=0 records=0\n");
    assert_eq!(again.stderr, "");
}

#[test]
fn it_keeps_up_with_a_server_until_it_is_told_to_stop() {
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
            let is_told = || {
                let spans = ["0", "1"].map(|partition| {
                    let read = ["feed", "read", "--json", "--partition", partition];
                    run(&[&read[..], &arguments].concat()).succeeded().stdout
                });
                spans.concat().contains(&read)
            };
            while !is_told() {}
        });
        let ended = indexer.stop(signal).succeeded();
        let last = ended.stderr.lines().last().unwrap();
        assert!(last.starts_with("floe: stopped: events="), "{ended:?}");
    }
}

#[test]
fn two_may_run_at_once_under_any_name() {
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
        running.end().succeeded();
    }
    let read = [
        &["feed", "read", "--json", "--events", "--max", "1000"][..],
        &arguments,
    ]
    .concat();
    let events = run(&read).succeeded().stdout;
    assert_eq!(events.lines().count(), 40, "{events}");
}

/// Makes a table, with a change stream of this view if there is one.
fn make_table(path: &std::path::Path, name: &str, key: &str, view: Option<StreamView>) {
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
fn what_cannot_be_indexed_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    make_table(folder.path(), "unwatched", "p", None);
    make_table(folder.path(), "keys", "p", Some(StreamView::KeysOnly));
    make_table(folder.path(), "models", "id", Some(StreamView::NewImage));
    let index = |table| run(&["indexer", "--data", path, "--table", table, "--once"]);
    index("nothing").failed(1, &["there is no such table: table=nothing; see --table"]);
    index("unwatched").failed(
        1,
        &[
            "the table has no change stream: table=unwatched",
            "NEW_IMAGE",
        ],
    );
    index("keys").failed(1, &["has no new images: table=keys view=KEYS_ONLY"]);
    index("models").failed(1, &["the table is none of events", "table=models"]);
    index("a b").failed(2, &["a b"]);
    // Nothing was made on the way.
    with_db(folder.path(), async |db| {
        let tables = db.engine().list_tables(Default::default()).await.unwrap();
        assert_eq!(tables.table_names, ["keys", "models", "unwatched"]);
    });
    let missing = ["indexer", "--data", "/nowhere/at/all", "--once"];
    run(&missing).failed(1, &["there is no such directory: path=/nowhere/at/all"]);
}

#[test]
fn a_directory_in_use_is_told_with_the_way_around() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let _server = Running::start(&["serve", "--data", path, "--listen", "0"]);
    let ended = run(&["indexer", "--data", path, "--once"]);
    ended.failed(1, &["say --endpoint instead of --data"]);
}

#[test]
fn the_number_of_partitions_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    with_store(folder.path(), async |store| {
        append(&store, "Cart-1", &["{}"]).await;
    });
    let index = ["indexer", "--data", path, "--table", "shop", "--once"];
    run(&[&index[..], &["--partitions", "3"]].concat()).succeeded();
    let other = run(&[&index[..], &["--partitions", "2"]].concat());
    other.failed(2, &["partitions=3 asked=2", "leave --partitions out"]);
    run(&index).succeeded();
    run(&[&index[..], &["--partitions", "3"]].concat()).succeeded();
}

#[test]
fn wrong_arguments_are_told_in_a_line() {
    for (arguments, words) in [
        (&["--batch-max", "0"][..], "1..=10000"),
        (&["--batch-max", "10001"], "1..=10000"),
        (&["--poll", "soon"], "not a duration, such as 500ms"),
        (&["--partitions", "0"], "0"),
        (&["--name", "a_b"], "it has no _"),
        (
            &["--endpoint", "here"],
            "not an address, such as http://127.0.0.1:8000",
        ),
        (
            &["--data", ".", "--endpoint", "http://x"],
            "cannot be used with",
        ),
        (&["--data", ".", "--region", "x"], "cannot be used with"),
    ] {
        let ended = run(&[&["indexer"][..], arguments].concat());
        ended.failed(2, &[words, "see floe indexer --help"]);
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    }
    let help = run(&["indexer", "--help"]).succeeded().stdout;
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
fn a_server_that_is_not_there_is_told() {
    let ended = run(&["indexer", "--endpoint", "http://127.0.0.1:9", "--once"]);
    ended.failed(1, &["127.0.0.1:9"]);
}

#[test]
fn it_tells_figures_to_prometheus_and_to_no_page() {
    let (_server, endpoint) = Running::server();
    block_on(async {
        let store = connected(&endpoint).await;
        append(&store, "Cart-1", &["{}", "{}"]).await;
        append(&store, "Cart-2", &["{}"]).await;
    });
    let arguments = ["indexer", "--endpoint", &endpoint, "--table", "shop"];
    let figures = ["--metrics", "0", "--poll", "10ms"];
    let mut indexer = Running::start(&[&arguments[..], &figures].concat());
    let address = indexer
        .line
        .strip_prefix("floe: figures on http://")
        .unwrap();
    let address = address.strip_suffix("/metrics\n").unwrap().to_owned();
    assert!(
        indexer
            .next_line()
            .starts_with("floe: indexing shop into shop-index")
    );
    let ask = |host: &str| {
        let mut connection = TcpStream::connect(&address).unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    };
    let is_told = |line: &str| {
        let answer = ask(&address);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer.lines().any(|told| told == line)
    };
    while !is_told(r#"floe_indexer_events_total{table="shop",indexer="0"} 3"#) {}
    assert!(is_told(
        r#"floe_indexer_records_total{table="shop",indexer="0"} 2"#
    ));
    assert!(is_told(
        r#"floe_indexer_failures_total{table="shop",indexer="0"} 0"#
    ));
    assert!(is_told(
        r#"floe_indexer_epoch{table="shop",indexer="0",partition="0"} 0"#
    ));
    assert!(ask(&address).contains("floe_indexer_lag_seconds{"));
    let page = ask("evil.example.com");
    assert!(page.starts_with("HTTP/1.1 403"), "{page}");
    indexer.stop(Signal::TERM).succeeded();
}
