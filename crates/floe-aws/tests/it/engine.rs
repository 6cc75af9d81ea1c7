//! Behaviour of the engine beyond the contract: table prefixes, unprocessed batch items, transient errors, missing
//! capabilities, unknown keys.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use floe_aws::{AwsEngine, ConnectOptions};
use floe_local::LocalEngine;
use floe_server::{Keys, Server, ServerHandle, Service};
use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::env::Timer;
use floe_store::op::{
    BatchGetItem, BatchWriteItem, CreateTable, GetItem, ListStreams, ListTables, PutItem,
    TransactGetItems, TransactWriteItems, UpdateTable, UpdateTimeToLive, WriteItem,
};
use floe_store::table::{KeyKind, Projection, StreamView, TableStatus};
use floe_store::{BoxFuture, Engine, Error, Item, TableDef};
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Operation};

/// A timer that returns at once and counts pauses.
#[derive(Default)]
struct InstantTimer(AtomicUsize);

impl Timer for InstantTimer {
    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(tokio::task::yield_now())
    }
}

/// Serves an engine.
async fn serve(engine: Arc<dyn Engine>) -> ServerHandle {
    let options = floe_server::Options::new();
    let server = Server::bind(options, Service::new(engine)).await.unwrap();
    server.spawn()
}

fn memory() -> Arc<dyn Engine> {
    Arc::new(LocalEngine::memory().unwrap())
}

async fn connect(server: &ServerHandle, prefix: &str) -> AwsEngine {
    let options = ConnectOptions::local(server.url()).table_prefix(prefix);
    AwsEngine::connect(options).await.unwrap()
}

fn table(name: &str) -> CreateTable {
    let table = TableDef::builder(name, "id", KeyKind::S).stream(StreamView::KeysOnly);
    table.build().unwrap().into()
}

fn key(id: impl Into<String>) -> Item {
    Item::new().with("id", id.into())
}

fn list(start_after: Option<&str>, limit: Option<usize>) -> ListTables {
    ListTables {
        start_after: start_after.map(str::to_owned),
        limit,
    }
}

#[tokio::test]
async fn prefixes_separate_tables() {
    let server = serve(memory()).await;
    let everything = connect(&server, "").await;
    let (dev, prod) = (
        connect(&server, "dev-").await,
        connect(&server, "prod-").await,
    );
    everything.create_table(table("zebra")).await.unwrap();
    for engine in [&dev, &prod] {
        for name in ["Carts", "Orders", "Users"] {
            engine.create_table(table(name)).await.unwrap();
        }
    }
    let all = everything.list_tables(list(None, None)).await.unwrap();
    assert_eq!(
        all.table_names,
        [
            "dev-Carts",
            "dev-Orders",
            "dev-Users",
            "prod-Carts",
            "prod-Orders",
            "prod-Users",
            "zebra"
        ]
    );
    for engine in [&dev, &prod] {
        let own = engine.list_tables(list(None, None)).await.unwrap();
        assert_eq!(own.table_names, ["Carts", "Orders", "Users"]);
        assert_eq!(own.last_name, None);
        let first = engine.list_tables(list(None, Some(2))).await.unwrap();
        assert_eq!(first.table_names, ["Carts", "Orders"]);
        assert_eq!(first.last_name.as_deref(), Some("Orders"));
        let rest = list(first.last_name.as_deref(), Some(1));
        let rest = engine.list_tables(rest).await.unwrap();
        assert_eq!(rest.table_names, ["Users"]);
        assert_eq!(rest.last_name, None, "later tables have another prefix");
    }
    dev.write_item(PutItem::new("Orders", key("a")).into())
        .await
        .unwrap();
    let get = || GetItem::new("Orders", key("a"));
    assert!(dev.get_item(get()).await.unwrap().item.is_some());
    assert!(prod.get_item(get()).await.unwrap().item.is_none());
}

/// A prefix alone may be too short for the start of a listing.
#[tokio::test]
async fn short_prefixes_list_their_tables() {
    let server = serve(memory()).await;
    let everything = connect(&server, "").await;
    for name in ["aaa", "t.x", "zzz"] {
        everything.create_table(table(name)).await.unwrap();
    }
    let own = connect(&server, "t.").await;
    for n in 0..105 {
        own.create_table(table(&format!("Table{n:03}")))
            .await
            .unwrap();
    }
    let first = own.list_tables(list(None, None)).await.unwrap();
    assert_eq!(first.table_names.len(), 100);
    assert_eq!(first.table_names[0], "Table000");
    let rest = list(first.last_name.as_deref(), None);
    let rest = own.list_tables(rest).await.unwrap();
    assert_eq!(
        rest.table_names.len(),
        6,
        "including the table created without prefix"
    );
    assert_eq!(rest.table_names[5], "x");
    assert_eq!(rest.last_name, None);
}

#[tokio::test]
async fn streams_of_other_prefixes_are_not_listed() {
    let server = serve(memory()).await;
    let (dev, prod) = (
        connect(&server, "dev-").await,
        connect(&server, "prod-").await,
    );
    for engine in [&prod, &dev] {
        for name in ["Carts", "Orders"] {
            engine.create_table(table(name)).await.unwrap();
        }
    }
    let all = dev.list_streams(ListStreams::default()).await.unwrap();
    let mut names: Vec<_> = all.streams.iter().map(|s| s.table_name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["Carts", "Orders"]);
    assert!(all.streams.iter().all(|s| s.arn.contains("table/dev-")));
    let mut paged = Vec::new();
    let mut input = ListStreams {
        limit: Some(1),
        ..ListStreams::default()
    };
    loop {
        let page = dev.list_streams(input.clone()).await.unwrap();
        paged.extend(page.streams);
        match page.last_arn {
            Some(arn) => input.start_after = Some(arn),
            None => break,
        }
    }
    assert_eq!(paged, all.streams);
    let of = ListStreams {
        table_name: Some("Orders".to_owned()),
        ..ListStreams::default()
    };
    let one = prod.list_streams(of).await.unwrap();
    assert_eq!(one.streams.len(), 1);
    assert_eq!(one.streams[0].table_name, "Orders");
    assert!(one.streams[0].arn.contains("table/prod-Orders"));
}

#[tokio::test]
async fn capacity_and_errors_contain_names_without_prefix() {
    let server = serve(memory()).await;
    let dev = connect(&server, "dev-").await;
    dev.create_table(table("Orders")).await.unwrap();
    let mut put = PutItem::new("Orders", key("a"));
    put.return_capacity = ReturnConsumedCapacity::Total;
    let written = dev.write_item(put.into()).await.unwrap();
    assert_eq!(written.consumed.unwrap().table_name, "Orders");
    let again = dev.create_table(table("Orders")).await.unwrap_err();
    assert_eq!(
        again,
        Error::ResourceInUse("Table already exists: Orders".to_owned())
    );
    let missing = dev.describe_table("Nowhere".to_owned()).await.unwrap_err();
    let text = "Requested resource not found: Table: Nowhere not found";
    assert_eq!(missing, Error::ResourceNotFound(text.to_owned()));
}

/// A server with scripted faults, and a client.
struct Scripted {
    faults: Arc<FaultEngine>,
    engine: AwsEngine,
    pauses: Arc<InstantTimer>,
    _server: ServerHandle,
}

async fn scripted() -> Scripted {
    let faults = Arc::new(FaultEngine::new(memory(), Faults::seeded(1)));
    let server = serve(faults.clone()).await;
    let pauses = Arc::new(InstantTimer::default());
    let options = ConnectOptions::local(server.url()).timer(pauses.clone());
    let engine = AwsEngine::connect(options.table_prefix("dev-"))
        .await
        .unwrap();
    engine.create_table(table("Orders")).await.unwrap();
    Scripted {
        faults,
        engine,
        pauses,
        _server: server,
    }
}

impl Scripted {
    fn script(&self, operation: Operation, kind: FaultKind, times: usize) {
        for _ in 0..times {
            self.faults.script(operation, kind).unwrap();
        }
    }

    fn pauses(&self) -> usize {
        self.pauses.0.swap(0, Ordering::Relaxed)
    }
}

fn twenty_keys() -> impl Iterator<Item = Item> {
    (0..20).map(|n| key(format!("k{n}")))
}

fn puts() -> BatchWriteItem {
    twenty_keys().fold(BatchWriteItem::new(), |batch, key| batch.put("Orders", key))
}

#[tokio::test]
async fn unprocessed_batch_items_are_retried() {
    let world = scripted().await;
    world.script(Operation::BatchWriteItem, FaultKind::PartialBatch, 2);
    let mut write = puts();
    write.return_capacity = ReturnConsumedCapacity::Total;
    let written = world.engine.batch_write_item(write).await.unwrap();
    assert!(written.unprocessed.is_empty());
    assert_eq!(
        written.consumed.len(),
        1,
        "capacity is merged over all rounds"
    );
    assert_eq!(written.consumed[0].total().as_f64(), 20.0);
    assert_eq!(world.pauses(), 2);
    world.script(Operation::BatchGetItem, FaultKind::PartialBatch, 2);
    let get = BatchGetItem::new().keys("Orders", twenty_keys());
    let read = world.engine.batch_get_item(get).await.unwrap();
    assert!(read.unprocessed.is_empty());
    let mut found: Vec<_> = read.items["Orders"]
        .iter()
        .map(|i| format!("{i:?}"))
        .collect();
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 20);
    assert_eq!(world.pauses(), 2);
}

#[tokio::test]
async fn remaining_batch_items_are_returned() {
    let world = scripted().await;
    world.script(Operation::BatchWriteItem, FaultKind::PartialBatch, 4);
    let written = world.engine.batch_write_item(puts()).await.unwrap();
    let left = &written.unprocessed["Orders"];
    assert!(!left.is_empty(), "all four rounds leave something");
    assert_eq!(world.pauses(), 3);
    let get = || BatchGetItem::new().keys("Orders", twenty_keys());
    let read = world.engine.batch_get_item(get()).await.unwrap();
    assert_eq!(read.items["Orders"].len() + left.len(), 20);
    world.script(Operation::BatchGetItem, FaultKind::PartialBatch, 4);
    let partly = world.engine.batch_get_item(get()).await.unwrap();
    let unread = &partly.unprocessed["Orders"].keys;
    assert!(!unread.is_empty());
    assert!(partly.items["Orders"].len() < read.items["Orders"].len() + unread.len());
}

/// A partly written batch must not return an error that implies that nothing was written.
#[tokio::test]
async fn partly_written_batch_returns_the_rest() {
    let world = scripted().await;
    world.script(Operation::BatchWriteItem, FaultKind::PartialBatch, 1);
    world.script(Operation::BatchWriteItem, FaultKind::Throttle, 4);
    let written = world.engine.batch_write_item(puts()).await.unwrap();
    let left = written.unprocessed["Orders"].len();
    assert!((1..20).contains(&left));
    let get = BatchGetItem::new().keys("Orders", twenty_keys());
    let read = world.engine.batch_get_item(get).await.unwrap();
    assert_eq!(read.items["Orders"].len(), 20 - left);
}

#[tokio::test]
async fn throttling_is_retried_then_returned() {
    let world = scripted().await;
    let put = || WriteItem::from(PutItem::new("Orders", key("a")));
    world.script(Operation::WriteItem, FaultKind::Throttle, 3);
    world.engine.write_item(put()).await.unwrap();
    assert_eq!(world.pauses(), 3);
    world.script(Operation::WriteItem, FaultKind::Throttle, 4);
    let error = world.engine.write_item(put()).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::Throttling(_) | Error::ProvisionedThroughputExceeded(_)
        ),
        "{error:?}"
    );
    // Conflicts are returned: only the caller knows whether to retry.
    world.pauses();
    world.script(Operation::WriteItem, FaultKind::Conflict, 1);
    let error = world.engine.write_item(put()).await.unwrap_err();
    assert_eq!(error, Error::TransactionConflict);
    assert_eq!(world.pauses(), 0);
}

/// An engine with an endpoint on which nothing listens, so that results other than `Unreachable` are local.
async fn unreachable_engine(change: impl FnOnce(ConnectOptions) -> ConnectOptions) -> AwsEngine {
    let options = ConnectOptions::local("http://127.0.0.1:1").retries(0);
    AwsEngine::connect(change(options)).await.unwrap()
}

#[track_caller]
fn unsupported<T: std::fmt::Debug>(response: &floe_store::Result<T>) {
    assert!(
        matches!(response, Err(Error::Unsupported(_))),
        "{response:?}"
    );
}

#[tokio::test]
async fn operations_unsupported_by_alternator_are_rejected_locally() {
    let engine = unreachable_engine(ConnectOptions::alternator).await;
    assert!(!engine.capabilities().transactions);
    let write = TransactWriteItems::new([PutItem::new("Orders", key("a")).into()]);
    unsupported(&engine.transact_write_items(write).await);
    let get = floe_store::op::TransactGet::new("Orders", key("a"));
    unsupported(
        &engine
            .transact_get_items(TransactGetItems::new([get]))
            .await,
    );
    unsupported(&engine.create_table(table("Orders")).await);
    let mut stream = UpdateTable::new("Orders");
    stream.stream = Some(Some(StreamView::NewImage));
    unsupported(&engine.update_table(stream).await);
    unsupported(&engine.list_streams(ListStreams::default()).await);
    let wide = TableDef::builder("Orders", "id", KeyKind::S).global_index(
        "wide",
        [("a", KeyKind::S), ("b", KeyKind::S)],
        [("c", KeyKind::S)],
        Projection::All,
    );
    unsupported(&engine.create_table(wide.build().unwrap().into()).await);
    let plain = TableDef::builder("Orders", "id", KeyKind::S)
        .build()
        .unwrap();
    let response = engine.create_table(plain.into()).await;
    assert!(
        matches!(response, Err(Error::Unreachable(_))),
        "{response:?}"
    );
}

#[tokio::test]
async fn tokens_of_single_writes_are_unsupported() {
    let engine = unreachable_engine(|options| options).await;
    let put = PutItem::new("Orders", key("a")).token("token");
    unsupported(&engine.write_item(put.into()).await);
}

#[tokio::test]
async fn invalid_requests_are_rejected_locally() {
    let engine = unreachable_engine(|options| options).await;
    let put = PutItem::new("no good name", key("a"));
    let response = engine.write_item(put.into()).await;
    assert!(
        matches!(response, Err(Error::Validation(_))),
        "{response:?}"
    );
}

#[tokio::test]
async fn table_with_ttl_is_created_in_one_call() {
    let server = serve(memory()).await;
    let engine = connect(&server, "dev-").await;
    let sessions = TableDef::builder("Sessions", "id", KeyKind::S)
        .ttl("until")
        .tag("team", "ice");
    let definition = sessions.build().unwrap();
    let created = engine
        .create_table(definition.clone().into())
        .await
        .unwrap();
    assert_eq!(created.definition, definition);
    let described = engine.describe_table("Sessions".to_owned()).await.unwrap();
    assert_eq!(described.definition, definition);
    let off = UpdateTimeToLive::disable("Sessions", "until");
    let changed = engine.update_time_to_live(off).await.unwrap();
    assert_eq!(changed.definition.ttl_attribute, None);
    assert_eq!(changed.definition.tags, definition.tags);
    let deleted = engine.delete_table("Sessions".to_owned()).await.unwrap();
    assert_eq!(deleted.definition, changed.definition);
    assert_eq!(deleted.status, TableStatus::Deleting);
}

#[tokio::test]
async fn server_with_keys_rejects_unknown_keys() {
    let options = floe_server::Options::new().keys(Keys::one("AKIDEXAMPLE", "a secret"));
    let server = Server::bind(options, Service::new(memory())).await.unwrap();
    let server = server.spawn();
    let connect = async |access_key: &str, secret_key: &str| {
        let options = ConnectOptions::local(server.url()).credentials(access_key, secret_key);
        AwsEngine::connect(options).await.unwrap()
    };
    let known = connect("AKIDEXAMPLE", "a secret").await;
    known.create_table(table("Orders")).await.unwrap();
    for (access_key, secret_key, code) in [
        ("AKIDEXAMPLE", "another secret", "InvalidSignatureException"),
        ("UNKNOWN", "a secret", "UnrecognizedClientException"),
    ] {
        let unknown = connect(access_key, secret_key).await;
        let response = unknown.get_item(GetItem::new("Orders", key("a"))).await;
        let Err(Error::AccessDenied(message)) = response else {
            panic!("{response:?}");
        };
        assert!(message.starts_with(code), "{message}");
    }
}

/// TLS begins before any data is sent, so a server without TLS receives no request.
#[tokio::test]
async fn server_without_tls_is_unreachable() {
    let server = serve(memory()).await;
    let url = format!("https://{}", server.local_addr());
    let options = ConnectOptions::local(url).retries(0);
    let engine = AwsEngine::connect(options).await.unwrap();
    let put = PutItem::new("Orders", key("a"));
    let response = engine.write_item(put.into()).await;
    assert!(
        matches!(response, Err(Error::Unreachable(_))),
        "{response:?}"
    );
}
