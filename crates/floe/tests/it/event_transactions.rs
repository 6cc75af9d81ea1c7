//! Streams in transactions with models and the outbox: all changes are one commit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use floe::changes::outbox::OutboxRecord;
use floe::db::Timer;
use floe::events::{Access, Decider, Event, EventData, EventStoreOptions, Expected, StreamName};
use floe::{Db, Error, ErrorKind, Model, Tx};
use floe_local::{LocalEngine, Options};
use floe_store::{BoxFuture, Capabilities, Engine};
use floe_testkit::fault::{FaultEngine, Faults, Operation};
use floe_testkit::record::RecordingEngine;
use floe_testkit::time::TestEnv;

#[derive(Clone, Debug, PartialEq)]
enum Moved {
    In(u32),
    Out(u32),
    /// The stock: a snapshot.
    Total(u32),
}

impl Event for Moved {
    fn event_type(&self) -> &'static str {
        match self {
            Self::In(_) => "In",
            Self::Out(_) => "Out",
            Self::Total(_) => "Total",
        }
    }

    fn encode(&self) -> floe::Result<Vec<u8>> {
        let (Self::In(amount) | Self::Out(amount) | Self::Total(amount)) = self;
        Ok(amount.to_string().into_bytes())
    }

    fn decode(event_type: &str, data: &[u8]) -> floe::Result<Option<Self>> {
        let amount = std::str::from_utf8(data).unwrap().parse().unwrap();
        Ok(match event_type {
            "In" => Some(Self::In(amount)),
            "Out" => Some(Self::Out(amount)),
            "Total" => Some(Self::Total(amount)),
            _ => None,
        })
    }
}

struct Stock;

impl Decider for Stock {
    const CATEGORY: &'static str = "Stock";
    type Id = str;
    type Event = Moved;
    type State = u32;

    fn initial() -> u32 {
        0
    }

    fn evolve(state: u32, event: &Moved) -> u32 {
        match event {
            Moved::In(amount) => state + amount,
            Moved::Out(amount) => state - amount,
            Moved::Total(amount) => *amount,
        }
    }

    fn access() -> Access<Self> {
        Access::Snapshot {
            is_origin: |event| matches!(event, Moved::Total(_)),
            to_snapshot: |state| Moved::Total(*state),
        }
    }
}

#[derive(Model)]
struct Order {
    #[model(key)]
    id: String,
    product: String,
    amount: u32,
}

/// A database with all tables, and its recorded requests.
async fn world(capabilities: Capabilities) -> (Db, Arc<RecordingEngine>) {
    let engine = Arc::new(
        RecordingEngine::new(Arc::new(LocalEngine::memory().unwrap())).claiming(capabilities),
    );
    let db = Db::with_engine(engine.clone());
    db.ensure_tables(&[Order::SCHEMA, OutboxRecord::SCHEMA])
        .await
        .unwrap();
    db.events().ensure_table().await.unwrap();
    engine.take();
    (db, engine)
}

async fn order(tx: &Tx, id: &str, amount: u32) -> Result<(), Error> {
    let mut stock = tx.stream::<Stock>("tea").await?;
    if *stock.state() < amount {
        return Err(Error::from(floe_store::Error::validation("sold out")));
    }
    stock.append([Moved::Out(amount)])?;
    tx.create(Order {
        id: id.to_owned(),
        product: "tea".to_owned(),
        amount,
    })?;
    tx.outbox("ordered", id)
}

async fn fill(db: &Db, amount: u32) {
    let stream = db.stream::<Stock>("tea");
    let filled = stream.transact(|_| Ok::<_, Error>(vec![Moved::In(amount)]));
    filled.await.unwrap();
}

async fn stock_of(db: &Db) -> u32 {
    db.stream::<Stock>("tea")
        .query(|state| *state)
        .await
        .unwrap()
}

#[tokio::test]
async fn stream_model_and_message_are_one_commit() {
    for capabilities in [Capabilities::all(), Capabilities::dynamodb()] {
        let (db, engine) = world(capabilities).await;
        fill(&db, 10).await;
        engine.take();
        db.transact(async |tx| order(tx, "o-1", 3).await)
            .await
            .unwrap();
        let requests = engine.take();
        assert_eq!(requests.len(), 2, "{requests:#?}");
        assert!(requests[0].starts_with("GetItem events"), "{requests:#?}");
        assert!(
            requests[1].starts_with("TransactWriteItems"),
            "{requests:#?}"
        );
        assert_eq!(stock_of(&db).await, 7);
        let ordered = db.transact(async |tx| {
            Ok::<_, Error>(tx.get::<Order>("o-1").await?.map(|order| *order.amount))
        });
        assert_eq!(ordered.await.unwrap(), Some(3));
    }
}

#[tokio::test]
async fn failed_transaction_appends_nothing() {
    let (db, _) = world(Capabilities::all()).await;
    fill(&db, 2).await;
    let rejected = db.transact(async |tx| order(tx, "o-1", 3).await).await;
    assert!(rejected.unwrap_err().to_string().contains("sold out"));
    assert_eq!(stock_of(&db).await, 2);
    // The order already exists, so the append is not applied either.
    db.transact(async |tx| order(tx, "o-1", 1).await)
        .await
        .unwrap();
    let twice = db
        .transact(async |tx| order(tx, "o-1", 1).await)
        .await
        .unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::AlreadyExists);
    assert_eq!(stock_of(&db).await, 1);
}

#[tokio::test]
async fn append_to_one_stream_is_a_plain_write() {
    let (db, engine) = world(Capabilities::dynamodb()).await;
    let fill = async |tx: &Tx| {
        let mut stock = tx.stream::<Stock>("tea").await?;
        stock.append([Moved::In(1)])?;
        stock.append([Moved::In(2)])?;
        assert_eq!(*stock.state(), 3);
        Ok::<_, Error>(stock.version())
    };
    assert_eq!(db.transact(fill).await.unwrap(), 0);
    let requests = engine.take();
    assert_eq!(requests.len(), 2, "{requests:#?}");
    assert!(requests[1].starts_with("PutItem events"), "{requests:#?}");
    assert_eq!(
        db.events()
            .version(&StreamName::new("Stock", "tea").unwrap())
            .await
            .unwrap(),
        2
    );
}

/// An order of this size.
fn large_order(id: usize, bytes: usize) -> Order {
    Order {
        id: id.to_string(),
        product: "x".repeat(bytes),
        amount: 1,
    }
}

#[tokio::test]
async fn limits_of_a_transaction_count_models_streams_and_messages_together() {
    let (db, engine) = world(Capabilities::all()).await;
    let sized = async |orders: usize, bytes: usize, message: usize| {
        let sent = db.transact(async |tx| {
            tx.stream::<Stock>("tea").await?.append([Moved::In(1)])?;
            for id in 0..orders {
                tx.create(large_order(id, bytes))?;
            }
            tx.outbox("ordered", &"y".repeat(message))
        });
        let error = sent.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        let writes = engine.take().into_iter();
        let writes = writes.filter(|it| !it.starts_with("GetItem"));
        assert_eq!(writes.count(), 0, "nothing was sent");
        error.to_string()
    };
    let items = sized(99, 1, 1).await;
    assert!(items.contains("items=101 max=100"), "{items}");
    // Each part is below 4 MB.
    let bytes = sized(11, 350_000, 390_000).await;
    assert!(bytes.contains("the transaction is too large"), "{bytes}");
}

/// A timer that advances the test clock instead of waiting.
struct FastTimer(TestEnv);

impl Timer for FastTimer {
    fn sleep(&self, pause: Duration) -> BoxFuture<'_, ()> {
        self.0.advance(pause);
        Box::pin(tokio::task::yield_now())
    }
}

/// A database on an engine with the capabilities of DynamoDB whose puts fail, with its test clock and its requests.
async fn failing_puts(faults: Faults) -> (Db, TestEnv, Arc<RecordingEngine>) {
    let test = TestEnv::seeded(7);
    let options = Options::new().env(test.env.clone()).background(false);
    let engine: Arc<dyn Engine> = Arc::new(LocalEngine::memory_with(options).unwrap());
    let db = Db::with_engine(engine.clone());
    db.events().ensure_table().await.unwrap();
    let claiming = Arc::new(RecordingEngine::new(engine).claiming(Capabilities::dynamodb()));
    let faults = faults.only_on([Operation::WriteItem]);
    let engine = Arc::new(RecordingEngine::new(Arc::new(FaultEngine::new(
        claiming, faults,
    ))));
    let timer = Arc::new(FastTimer(test.clone()));
    let db = Db::with_parts(engine.clone(), test.env.clone(), timer);
    (db, test, engine)
}

fn puts(engine: &RecordingEngine) -> usize {
    let requests = engine.take().into_iter();
    requests.filter(|it| it.starts_with("PutItem")).count()
}

async fn append_one(tx: &Tx) -> Result<(), Error> {
    tx.stream::<Stock>("tea").await?.append([Moved::In(1)])
}

#[tokio::test]
async fn retries_bound_a_transaction_of_one_append() {
    let (db, _, engine) = failing_puts(Faults::seeded(7).throttle(1.0)).await;
    let failed = db.tx().retries(2).run(append_one).await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::TransactionFailed, "{failed}");
    assert_eq!(puts(&engine), 3);
}

#[tokio::test]
async fn deadline_bounds_a_transaction_of_one_append() {
    let deadline = Duration::from_secs(1);
    for (faults, expected) in [
        (Faults::seeded(7).throttle(1.0), ErrorKind::Deadline),
        (
            Faults::seeded(7).lost_before(1.0),
            ErrorKind::OutcomeUnknown,
        ),
    ] {
        let (db, test, engine) = failing_puts(faults).await;
        let run = db.tx().retries(1000).deadline(deadline).run(append_one);
        let failed = run.await.unwrap_err();
        assert_eq!(failed.kind(), expected, "{failed}");
        // The longest pause may begin just before the deadline.
        let elapsed_max = deadline + Duration::from_millis(550);
        assert!(test.elapsed() <= elapsed_max, "{:?}", test.elapsed());
        assert!(puts(&engine) > 1);
    }
}

#[tokio::test]
async fn body_runs_again_after_a_concurrent_append() {
    let (db, _) = world(Capabilities::all()).await;
    fill(&db, 10).await;
    let runs = AtomicU32::new(0);
    db.tx()
        .initial_backoff_ms(0)
        .run(async |tx| {
            let mut stock = tx.stream::<Stock>("tea").await?;
            if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                let name = StreamName::new("Stock", "tea")?;
                append_from_another_process(&db, &name).await;
            }
            let all = *stock.state();
            stock.append([Moved::Out(all)])
        })
        .await
        .unwrap();
    assert_eq!((runs.into_inner(), stock_of(&db).await), (2, 0));
}

/// Appends outside of the transaction.
async fn append_from_another_process(db: &Db, name: &StreamName) {
    let more = EventData::new("In", "5");
    db.events()
        .append(name, Expected::Any, [more])
        .await
        .unwrap();
}

#[tokio::test]
async fn stream_that_was_only_read_is_checked_by_the_commit() {
    let (db, _) = world(Capabilities::all()).await;
    fill(&db, 10).await;
    let runs = AtomicU32::new(0);
    db.tx()
        .initial_backoff_ms(0)
        .run(async |tx| {
            let stock = tx.stream::<Stock>("tea").await?;
            if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                append_from_another_process(&db, &StreamName::new("Stock", "tea")?).await;
            }
            let amount = *stock.state();
            tx.create(Order {
                id: "all".to_owned(),
                product: "tea".to_owned(),
                amount,
            })?;
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
    let ordered = db.transact(async |tx| {
        Ok::<_, Error>(tx.get::<Order>("all").await?.map(|order| *order.amount))
    });
    assert_eq!((runs.into_inner(), ordered.await.unwrap()), (2, Some(15)));
}

#[tokio::test]
async fn two_streams_are_appended_to_atomically_and_calve() {
    let (db, _) = world(Capabilities::all()).await;
    let store = db.event_store(EventStoreOptions::default().tip_events_max(2));
    for _ in 0..5 {
        db.transact(async |tx| {
            let mut tea = tx.stream_in::<Stock>(&store, "tea").await?;
            let mut coffee = tx.stream_in::<Stock>(&store, "coffee").await?;
            tea.append([Moved::In(2)])?;
            coffee.append([Moved::In(1), Moved::In(1)])
        })
        .await
        .unwrap();
    }
    for id in ["tea", "coffee"] {
        assert_eq!(
            store
                .stream::<Stock>(id)
                .query(|state| *state)
                .await
                .unwrap(),
            10
        );
    }
    let coffee = StreamName::new("Stock", "coffee").unwrap();
    let events = store.read(&coffee).collect().await.unwrap();
    assert_eq!(
        events.iter().map(|read| read.index).collect::<Vec<_>>(),
        (0..10).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn misuse_is_rejected() {
    let (db, _) = world(Capabilities::all()).await;
    let twice = db.transact(async |tx| {
        let _first = tx.stream::<Stock>("tea").await?;
        tx.stream::<Stock>("tea").await.map(drop)
    });
    let error = twice.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FetchedTwice);
    assert_eq!(
        error.to_string(),
        "the transaction has already loaded this stream: stream=Stock-tea"
    );
    let read_only = db.tx().read_only().run(async |tx| {
        let mut stock = tx.stream::<Stock>("tea").await?;
        stock.append([Moved::In(1)])
    });
    let error = read_only.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    assert_eq!(
        error.to_string(),
        "a read-only transaction cannot append: stream=Stock-tea"
    );
    assert_eq!(stock_of(&db).await, 0);
}

#[tokio::test]
async fn missing_table_error_contains_the_remedy() {
    let db = Db::memory().unwrap();
    let store = db.event_store(EventStoreOptions::new("nowhere"));
    let load = async |tx: &Tx| tx.stream_in::<Stock>(&store, "tea").await.map(drop);
    let error = db.transact(load).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Table);
    let message = "the events table does not exist: call EventStore::ensure_table: table=nowhere";
    assert_eq!(error.to_string(), message);
}

#[tokio::test]
async fn concurrent_transactions_lose_no_appends() {
    let (db, _) = world(Capabilities::all()).await;
    fill(&db, 1000).await;
    let tasks = (0..8).map(|task| {
        let db = db.clone();
        tokio::spawn(async move {
            for n in 0..10 {
                let id = format!("{task}-{n}");
                let ordering = db
                    .tx()
                    .retries(1000)
                    .initial_backoff_ms(1)
                    .max_backoff_ms(4);
                ordering
                    .run(async |tx| order(tx, &id, 1).await)
                    .await
                    .unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(stock_of(&db).await, 920);
    let orders = db.scan::<Order>().all().await.unwrap();
    assert_eq!(orders.len(), 80);
}
