//! Network faults: a proxy between the engine and the Floe server cuts connections before a request reaches the server,
//! after it was applied, and in the middle of the response. No acknowledged write is lost, and none is applied twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::world::Remote;
use floe_aws::{AwsEngine, ConnectOptions};
use floe_store::env::Timer;
use floe_store::expr::Update;
use floe_store::op::{
    BatchGetItem, BatchWriteItem, CreateTable, DeleteItem, GetItem, PutItem, Query, Scan,
    TransactGet, TransactGetItems, TransactWriteItems, UpdateItem, WriteItem,
};
use floe_store::table::KeyKind;
use floe_store::{BoxFuture, Engine, Error, Item, TableDef};
use floe_testkit::proxy::{Cut, Cuts, Proxy};

/// A timer that yields instead of waiting and counts pauses.
#[derive(Default)]
struct InstantTimer(AtomicUsize);

impl Timer for InstantTimer {
    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(tokio::task::yield_now())
    }
}

/// A server with a table, and a client behind a proxy.
struct World {
    /// The client behind the proxy.
    engine: AwsEngine,
    proxy: Proxy,
    /// The server, accessed without network.
    remote: Remote,
    timer: Arc<InstantTimer>,
}

/// Returns a client with a timeout that is long enough for a busy machine.
async fn world(cuts: Cuts) -> World {
    patient_world(cuts, Duration::from_secs(60)).await
}

/// Returns a client with this request timeout.
async fn patient_world(cuts: Cuts, patience: Duration) -> World {
    let remote = Remote::new().await;
    let table = TableDef::builder("Counters", "id", KeyKind::S).build();
    let table = CreateTable::from(table.unwrap());
    remote.local.create_table(table).await.unwrap();
    let proxy = Proxy::start(remote.server.local_addr(), cuts)
        .await
        .unwrap();
    let timer = Arc::new(InstantTimer::default());
    let options = ConnectOptions::local(proxy.url())
        .timer(timer.clone())
        .request_timeout(patience);
    World {
        engine: AwsEngine::connect(options).await.unwrap(),
        proxy,
        remote,
        timer,
    }
}

/// Faults that the client notices at once.
const SUDDEN: [Cut; 3] = [Cut::Before, Cut::After, Cut::Inside];
/// Faults that the client notices by its timeout: the response is held back until then.
const SILENT: [Cut; 2] = [Cut::Silence, Cut::Late];
const SOON: Duration = Duration::from_millis(300);

fn key(id: &str) -> Item {
    Item::new().with("id", id)
}

/// An update that adds one each time it is applied.
fn add(id: &str) -> UpdateItem {
    UpdateItem::new("Counters", key(id), Update::new().add("n", 1))
}

impl World {
    /// Returns the count stored by the server.
    async fn count(&self, id: &str) -> i64 {
        let get = GetItem::new("Counters", key(id));
        let item = self.remote.local.get_item(get).await.unwrap().item;
        let count = item.and_then(|item| item.get("n")?.as_n()?.to_i64());
        count.unwrap_or(0)
    }

    /// Returns the number of requests since `before`.
    fn sent(&self, before: u64) -> u64 {
        self.proxy.requests() - before
    }
}

#[tokio::test]
async fn single_write_with_lost_response_is_unknown_and_not_retried() {
    let world = world(Cuts::none()).await;
    for (at, cut) in SUDDEN.into_iter().enumerate() {
        let id = format!("c{at}");
        let before = world.proxy.requests();
        world.proxy.script("UpdateItem", cut);
        let response = world.engine.write_item(add(&id).into()).await;
        assert!(
            matches!(response, Err(Error::OutcomeUnknown(_))),
            "{cut:?}: {response:?}"
        );
        assert_eq!(world.sent(before), 1, "{cut:?}");
        let expected = i64::from(cut != Cut::Before);
        assert_eq!(world.count(&id).await, expected, "{cut:?}");
        // The next request succeeds.
        world.engine.write_item(add(&id).into()).await.unwrap();
        assert_eq!(world.count(&id).await, expected + 1, "{cut:?}");
    }
}

#[tokio::test]
async fn single_write_that_times_out_is_not_retried() {
    for cut in SILENT {
        let world = patient_world(Cuts::none(), SOON).await;
        world.proxy.script("UpdateItem", cut);
        let response = world.engine.write_item(add("a").into()).await;
        assert!(
            matches!(response, Err(Error::OutcomeUnknown(_))),
            "{cut:?}: {response:?}"
        );
        world.proxy.wait_until_delivered().await;
        assert_eq!(world.proxy.requests(), 1, "{cut:?}");
        assert_eq!(
            world.count("a").await,
            1,
            "{cut:?}: it was applied eventually"
        );
    }
}

#[tokio::test]
async fn puts_and_deletes_are_not_retried() {
    let world = world(Cuts::none()).await;
    let put = || WriteItem::from(PutItem::new("Counters", key("p").with("n", 1)));
    let delete = || WriteItem::from(DeleteItem::new("Counters", key("p")));
    for (operation, write, cut, expected) in [
        ("PutItem", put(), Cut::Before, 0),
        ("PutItem", put(), Cut::After, 1),
        ("DeleteItem", delete(), Cut::Before, 1),
        ("DeleteItem", delete(), Cut::Inside, 0),
    ] {
        world.proxy.script(operation, cut);
        let response = world.engine.write_item(write).await;
        assert!(
            matches!(response, Err(Error::OutcomeUnknown(_))),
            "{response:?}"
        );
        assert_eq!(world.count("p").await, expected, "{operation} {cut:?}");
    }
}

#[tokio::test]
async fn transaction_with_token_is_retried_and_applied_once() {
    let world = world(Cuts::none()).await;
    for (at, cut) in SUDDEN.into_iter().enumerate() {
        let id = format!("c{at}");
        let before = world.proxy.requests();
        world.proxy.script("TransactWriteItems", cut);
        let transaction = TransactWriteItems::new([add(&id).into()]).token(format!("token-{at}"));
        let response = world.engine.transact_write_items(transaction).await;
        response.unwrap();
        assert_eq!(world.sent(before), 2, "{cut:?}");
        assert_eq!(world.count(&id).await, 1, "{cut:?}");
    }
    let pauses = world.timer.0.load(Ordering::Relaxed);
    assert_eq!(pauses, SUDDEN.len(), "one pause for each retry");
}

#[tokio::test]
async fn transaction_with_token_that_times_out_is_applied_once() {
    for cut in SILENT {
        let world = patient_world(Cuts::none(), SOON).await;
        world.proxy.script("TransactWriteItems", cut);
        let transaction = TransactWriteItems::new([add("a").into()]).token("token");
        let response = world.engine.transact_write_items(transaction).await;
        response.unwrap();
        world.proxy.wait_until_delivered().await;
        assert!(world.proxy.requests() >= 2, "{cut:?}");
        assert_eq!(world.count("a").await, 1, "{cut:?}");
    }
}

#[tokio::test]
async fn transaction_without_token_is_not_retried() {
    let world = world(Cuts::none()).await;
    for (at, cut) in SUDDEN.into_iter().enumerate() {
        let id = format!("c{at}");
        let before = world.proxy.requests();
        world.proxy.script("TransactWriteItems", cut);
        let transaction = TransactWriteItems::new([add(&id).into()]);
        let response = world.engine.transact_write_items(transaction).await;
        assert!(
            matches!(response, Err(Error::OutcomeUnknown(_))),
            "{response:?}"
        );
        assert_eq!(world.sent(before), 1, "{cut:?}");
        assert_eq!(
            world.count(&id).await,
            i64::from(cut != Cut::Before),
            "{cut:?}"
        );
    }
}

#[tokio::test]
async fn batch_write_is_not_retried() {
    let world = world(Cuts::none()).await;
    for (at, cut) in SUDDEN.into_iter().enumerate() {
        let id = format!("c{at}");
        world.proxy.script("BatchWriteItem", cut);
        let batch = BatchWriteItem::new().put("Counters", key(&id).with("n", 1));
        let before = world.proxy.requests();
        let response = world.engine.batch_write_item(batch).await;
        assert!(
            matches!(response, Err(Error::OutcomeUnknown(_))),
            "{response:?}"
        );
        assert_eq!(world.sent(before), 1, "{cut:?}");
        assert_eq!(
            world.count(&id).await,
            i64::from(cut != Cut::Before),
            "{cut:?}"
        );
    }
}

#[tokio::test]
async fn reads_are_retried() {
    let world = world(Cuts::none()).await;
    world.engine.write_item(add("a").into()).await.unwrap();
    let item = key("a").with("n", 1);
    let only = [item.clone()];
    let engine = &world.engine;
    for cut in SUDDEN {
        let before = world.proxy.requests();
        for operation in [
            "GetItem",
            "BatchGetItem",
            "TransactGetItems",
            "Query",
            "Scan",
        ] {
            world.proxy.script(operation, cut);
        }
        let got = engine.get_item(GetItem::new("Counters", key("a"))).await;
        assert_eq!(got.unwrap().item, Some(item.clone()));
        let batch = BatchGetItem::new().keys("Counters", [key("a")]);
        let got = engine.batch_get_item(batch).await.unwrap();
        assert_eq!(got.items["Counters"], only);
        let gets = TransactGetItems::new([TransactGet::new("Counters", key("a"))]);
        let got = engine.transact_get_items(gets).await.unwrap();
        assert_eq!(got.items, [Some(item.clone())]);
        let condition = floe_store::expr::KeyCondition::partition("id", "a");
        let page = engine.query(Query::new("Counters", condition)).await;
        assert_eq!(page.unwrap().items, only);
        let page = engine.scan(Scan::new("Counters")).await;
        assert_eq!(page.unwrap().items, only);
        assert_eq!(world.sent(before), 10, "{cut:?}");
    }
}

#[tokio::test]
async fn unanswered_read_fails_after_the_last_retry() {
    let world = world(Cuts::seeded(1).rate(Cut::After, 1.0)).await;
    let get = GetItem::new("Counters", key("a"));
    let response = world.engine.get_item(get).await;
    assert!(
        matches!(response, Err(Error::Unreachable(_))),
        "{response:?}"
    );
    assert_eq!(world.proxy.requests(), 4, "one attempt and three retries");
}

#[tokio::test]
async fn refused_connection_is_retried_and_reported_as_unreachable() {
    // A port on which nothing listens any more.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let timer = Arc::new(InstantTimer::default());
    let options = ConnectOptions::local(format!("http://{address}")).timer(timer.clone());
    let engine = AwsEngine::connect(options.retries(5)).await.unwrap();
    let write = engine.write_item(add("a").into()).await;
    let error = write.unwrap_err();
    assert!(matches!(error, Error::Unreachable(_)), "{error:?}");
    assert!(error.is_retryable() && !error.may_have_applied());
    assert_eq!(timer.0.load(Ordering::Relaxed), 5);
    let transaction = TransactWriteItems::new([add("a").into()]);
    let write = engine.transact_write_items(transaction).await;
    assert!(matches!(write, Err(Error::Unreachable(_))), "{write:?}");
}

mod transactions;
