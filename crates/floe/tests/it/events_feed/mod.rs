//! The feed from end to end: append, index, read and consume, while writers, indexers and consumers are killed.

mod at_least_once;
mod dead_letters;
mod groups;
mod handlers;
mod lag;
mod sim;
mod views;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe::db::Timer;

use floe::events::feed::{
    EpochLimits, FeedConsumer, Filter, Handled, IndexerOptions, Partition, Partitions,
    ViewTransaction,
};
use floe::events::{EventData, EventStore, EventStoreOptions, Expected, Recorded, StreamName};
use floe::{Db, Error, Model};
use floe_local::LocalEngine;
use floe_store::env::SeededRandom;
use floe_store::{BoxFuture, Env};
use tokio::sync::watch;

use crate::support::sim as world;

/// The row of a view for a stream.
#[derive(Model)]
struct StreamCount {
    #[model(key)]
    stream: String,
    /// Number of events.
    events: u64,
    /// How often an event was skipped, repeated or out of order.
    faults: u32,
}

/// A timer whose sleeps end at once.
struct ImmediateTimer;

/// How often a pause yields: more often than a handler that makes progress, so that none times out.
const YIELDS: usize = 16;

impl Timer for ImmediateTimer {
    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async {
            for _ in 0..YIELDS {
                tokio::task::yield_now().await;
            }
        })
    }
}

/// A store whose streams calve often.
async fn store() -> EventStore {
    let engine = Arc::new(LocalEngine::memory().unwrap());
    let db = Db::with_parts(engine, Env::system(), Arc::new(ImmediateTimer));
    db.ensure_tables(&[StreamCount::SCHEMA]).await.unwrap();
    let store = db.event_store(EventStoreOptions::new("shop").tip_events_max(4));
    store.ensure_table().await.unwrap();
    store.ensure_feed().await.unwrap();
    store
}

fn partitions() -> Partitions {
    Partitions::new(NonZeroU32::new(2).unwrap())
}

fn name(stream: &str) -> StreamName {
    StreamName::parse(stream).unwrap()
}

async fn append(store: &EventStore, stream: &str, count: u64) {
    let events = (0..count).map(|_| EventData::new("Added", "{}"));
    let stream = name(stream);
    let appended = store.append(&stream, Expected::Any, events);
    appended.await.unwrap();
}

async fn index(store: &EventStore) {
    let mut indexer = store.indexer(IndexerOptions::new()).unwrap();
    indexer.run_until_caught_up().await.unwrap();
}

/// Lets other tasks run this often.
async fn yield_times(count: u64) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

/// The handler of the view: counts the events of the stream.
async fn count_events(delivery: ViewTransaction<'_>) -> Result<(), Error> {
    let row = StreamCount {
        stream: delivery.stream.to_string(),
        events: 0,
        faults: 0,
    };
    let mut row = delivery.tx.get_or_create(row).await?;
    for event in delivery.events {
        if event.index != *row.events {
            row.faults += 1;
        }
        row.events += 1;
    }
    Ok(())
}

/// The number of events and of faults of each stream in the view.
async fn view_rows(store: &EventStore) -> BTreeMap<StreamName, (u64, u32)> {
    let rows = store.db().scan::<StreamCount>().all().await.unwrap();
    rows.into_iter()
        .map(|row| (name(&row.stream), (row.events, row.faults)))
        .collect()
}

/// The rows of a view that contains all appended events.
async fn expected_rows(store: &EventStore) -> BTreeMap<StreamName, (u64, u32)> {
    let mut rows = BTreeMap::new();
    for stream in store.streams(None).collect().await.unwrap() {
        let version = store.version(&stream).await.unwrap();
        rows.insert(stream, (version, 0));
    }
    rows
}

/// Several tasks append on two threads. Two indexers compete, and two consumers of each partition; they are killed
/// repeatedly.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn view_contains_every_event_once_and_in_order() {
    for seed in 0..4 {
        let store = store().await;
        let random = Arc::new(SeededRandom::new(seed));
        let options = IndexerOptions::new()
            .partitions(partitions())
            .batch_max(1 + random.below(20) as usize)
            .limits({
                let mut limits = EpochLimits::default();
                limits.version_max = 5;
                limits
            });
        let mut tasks = Vec::new();
        for _ in 0..3 {
            let (store, random) = (store.clone(), random.clone());
            tasks.push(tokio::spawn(async move {
                for _ in 0..40 {
                    let stream = format!("Cart-{}", random.below(10));
                    append(&store, &stream, 1 + random.below(3)).await;
                }
            }));
        }
        for _ in 0..2 {
            let (store, random, options) = (store.clone(), random.clone(), options.clone());
            tasks.push(tokio::spawn(async move {
                for _ in 0..12 {
                    let mut indexer = store.indexer(options.clone()).unwrap();
                    let killed = yield_times(random.below(80));
                    indexer.run(killed).await.unwrap();
                }
            }));
        }
        for worker in 0..4 {
            let (store, random) = (store.clone(), random.clone());
            tasks.push(tokio::spawn(async move {
                let partition = Partition::new(worker % 2);
                let consumer = FeedConsumer::new(store, "view", partition).events_max(2);
                for _ in 0..12 {
                    tokio::select! {
                        summary = consumer.run_exactly_once(count_events) => {
                            summary.unwrap();
                        }
                        () = yield_times(random.below(80)) => {}
                    }
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let mut indexer = store.indexer(options).unwrap();
        indexer.run_until_caught_up().await.unwrap();
        for partition in partitions().all() {
            let consumer = FeedConsumer::new(store.clone(), "view", partition);
            let summary = consumer.run_exactly_once(count_events);
            let summary = summary.await.unwrap();
            assert_eq!(consumer.checkpoint().await.unwrap(), summary.checkpoint);
        }
        assert_eq!(
            view_rows(&store).await,
            expected_rows(&store).await,
            "seed {seed}"
        );
    }
}

#[tokio::test]
async fn feed_is_read_from_any_checkpoint() {
    let store = store().await;
    for _ in 0..5 {
        append(&store, "Cart-1", 2).await;
        append(&store, "Order-1", 1).await;
        index(&store).await;
    }
    let mut feed = store.feed().from_start();
    let mut batches = Vec::new();
    while let Some(batch) = feed.next().await.unwrap() {
        batches.push(batch);
    }
    let events: usize = batches
        .iter()
        .flat_map(|batch| &batch.streams)
        .map(|(_, events)| events.len())
        .sum();
    assert_eq!(events, 15);
    for (position, batch) in batches.iter().enumerate() {
        let mut later = store.feed().from(batch.checkpoint);
        assert_eq!(
            later.next().await.unwrap().as_ref(),
            batches.get(position + 1)
        );
    }

    // Events that do not match the filter advance the checkpoint too.
    let filter = Filter::default().category("Order");
    let mut orders = store.feed().filter(filter).from_start();
    let mut indexes = Vec::new();
    while let Some(batch) = orders.next().await.unwrap() {
        for (stream, events) in batch.streams {
            assert_eq!(stream.category(), "Order");
            indexes.extend(events.into_iter().map(|event| event.index));
        }
    }
    assert_eq!(indexes, [0, 1, 2, 3, 4]);
    assert_eq!(orders.checkpoint(), feed.checkpoint());

    let mut tail = store.feed().from_tail().await.unwrap();
    assert_eq!(tail.next().await.unwrap(), None);
    let waited = tokio::spawn(async move { tail.wait_next().await.unwrap() });
    append(&store, "Cart-1", 3).await;
    index(&store).await;
    let batch = waited.await.unwrap();
    let [(stream, events)] = batch.streams.as_slice() else {
        panic!("{batch:?}");
    };
    let indexes: Vec<u64> = events.iter().map(|event| event.index).collect();
    assert_eq!((stream.as_str(), indexes), ("Cart-1", vec![10, 11, 12]));
}

/// The indexes of the events that a handler received of each stream.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<BTreeMap<String, Vec<u64>>>>);

impl Received {
    fn record(&self, stream: &StreamName, events: &[Recorded]) {
        let mut received = self.0.lock().unwrap();
        let indexes = received.entry(stream.to_string()).or_default();
        indexes.extend(events.iter().map(|event| event.index));
    }

    fn take(&self) -> BTreeMap<String, Vec<u64>> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[tokio::test]
async fn poisoned_stream_is_parked_and_other_streams_continue() {
    let store = store().await;
    let consumer = FeedConsumer::new(store.clone(), "mail", Partition::FIRST).attempts_max(3);
    let (received, attempts) = (Received::default(), AtomicU32::new(0));
    let fails_for_bad = |stream: StreamName, events: Vec<Recorded>| {
        let (received, attempts) = (&received, &attempts);
        async move {
            if stream.id() == "bad" && events.iter().any(|event| event.index == 1) {
                attempts.fetch_add(1, Ordering::Relaxed);
                return match events.first().map(|event| event.index) {
                    Some(0) => {
                        received.record(&stream, &events[..1]);
                        Ok(Handled::UpTo(1))
                    }
                    _ => Err("poison"),
                };
            }
            received.record(&stream, &events);
            Ok(Handled::All)
        }
    };
    append(&store, "Cart-bad", 3).await;
    append(&store, "Cart-good", 2).await;
    index(&store).await;
    let summary = consumer.run_until_caught_up(fails_for_bad).await.unwrap();
    assert_eq!((summary.events, summary.parked.len()), (3, 1));
    assert_eq!(attempts.load(Ordering::Relaxed), 4);
    let parked = &summary.parked[0];
    assert_eq!(parked.stream, name("Cart-bad"));
    assert_eq!((parked.index, parked.end), (1, 3));
    assert_eq!(parked.reason, "poison");

    append(&store, "Cart-bad", 1).await;
    append(&store, "Cart-good", 1).await;
    index(&store).await;
    let summary = consumer.run_until_caught_up(fails_for_bad).await.unwrap();
    assert_eq!((summary.events, summary.parked.len()), (1, 0));
    let expected = [("Cart-bad", vec![0]), ("Cart-good", vec![0, 1, 2])];
    assert_eq!(
        received.take(),
        expected
            .map(|(name, indexes)| (name.to_owned(), indexes))
            .into()
    );
    assert_eq!(consumer.parked().await.unwrap()[0].end, 4);

    let handle = |stream: StreamName, events: Vec<Recorded>| {
        received.record(&stream, &events);
        std::future::ready(Ok::<_, Error>(Handled::All))
    };
    let retried = consumer.retry_parked(handle).await.unwrap();
    assert_eq!((retried.events, retried.parked.len()), (3, 0));
    assert_eq!(
        received.take(),
        [("Cart-bad".to_owned(), vec![1, 2, 3])].into()
    );
    assert!(consumer.parked().await.unwrap().is_empty());
}

#[tokio::test]
async fn consumer_resumes_from_its_stored_checkpoint() {
    let store = store().await;
    let received = Received::default();
    let handle = |stream: StreamName, events: Vec<Recorded>| {
        received.record(&stream, &events);
        std::future::ready(Ok::<_, Error>(Handled::All))
    };
    append(&store, "Cart-1", 3).await;
    index(&store).await;
    let consumer = || FeedConsumer::new(store.clone(), "mail", Partition::FIRST);
    consumer().run_until_caught_up(handle).await.unwrap();
    let before = consumer().checkpoint().await.unwrap();
    received.take();
    append(&store, "Cart-1", 1).await;
    append(&store, "Order-1", 1).await;
    index(&store).await;
    let orders = consumer().filter(Filter::default().category("Order"));
    let summary = orders.run_until_caught_up(handle).await.unwrap();
    assert_eq!(summary.events, 1);
    assert_eq!(received.take(), [("Order-1".to_owned(), vec![0])].into());
    assert_eq!(
        consumer().run_until_caught_up(handle).await.unwrap().events,
        0
    );
    consumer().move_to(before).await.unwrap();
    assert_eq!(
        consumer().run_until_caught_up(handle).await.unwrap().events,
        2
    );
    let late = FeedConsumer::new(store.clone(), "late", Partition::FIRST);
    late.move_to_tail().await.unwrap();
    assert_eq!(late.run_until_caught_up(handle).await.unwrap().events, 0);
}

/// A failure of the store is not caused by the events of the stream, so the stream is not parked.
#[tokio::test]
async fn store_failure_in_a_view_handler_stops_the_run() {
    let store = store().await;
    append(&store, "Cart-1", 5).await;
    index(&store).await;
    let consumer = FeedConsumer::new(store.clone(), "view", Partition::FIRST).events_max(2);
    let failed = consumer.run_exactly_once(async |delivery| {
        count_events(delivery).await?;
        if delivery.events.iter().any(|event| event.index == 3) {
            return Err(floe_store::Error::Unreachable("no".to_owned()).into());
        }
        Ok(())
    });
    assert_eq!(
        failed.await.unwrap_err().to_string(),
        Error::from(floe_store::Error::Unreachable("no".to_owned())).to_string()
    );
    assert_eq!(view_rows(&store).await, [(name("Cart-1"), (2, 0))].into());
    let summary = consumer.run_exactly_once(count_events);
    assert_eq!(summary.await.unwrap().events, 3);
    assert_eq!(view_rows(&store).await, [(name("Cart-1"), (5, 0))].into());
}

/// The futures of workers are `Send`, also with handlers that borrow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_run_in_spawned_tasks() {
    // In real time: with a timer whose sleeps end at once, leases would expire at once.
    let db = Db::memory().unwrap();
    db.ensure_tables(&[StreamCount::SCHEMA]).await.unwrap();
    let store = db.events();
    store.ensure_table().await.unwrap();
    store.ensure_feed().await.unwrap();
    index(&store).await;
    let (stop, stopped) = watch::channel(false);
    let received = Received::default();
    let mut tasks = Vec::new();
    for _ in 0..2 {
        let (mut stopped, received) = (stopped.clone(), received.clone());
        let group = store.consumers("mail").poll(Duration::from_millis(5));
        tasks.push(tokio::spawn(async move {
            let handle = |stream: StreamName, events: Vec<Recorded>| {
                let received = &received;
                async move {
                    tokio::task::yield_now().await;
                    received.record(&stream, &events);
                    Ok::<_, Error>(Handled::All)
                }
            };
            let stopped = async { drop(stopped.wait_for(|is_stopped| *is_stopped).await) };
            group.run(stopped, handle).await.unwrap().events
        }));
        let group = store.consumers("view");
        tasks.push(tokio::spawn(async move {
            let stop = std::future::ready(());
            let summary = group.run_exactly_once(stop, count_events).await;
            summary.unwrap().events
        }));
    }
    for _ in 0..5 {
        append(&store, "Cart-1", 2).await;
        append(&store, "Order-1", 1).await;
    }
    index(&store).await;
    let group = store.consumers("mail");
    while group.lag().await.unwrap().events > 0 {
        tokio::task::yield_now().await;
    }
    stop.send_replace(true);
    let mut events = 0;
    for task in tasks {
        events += task.await.unwrap();
    }
    let received = received.take();
    assert_eq!(received["Cart-1"], (0..10).collect::<Vec<_>>());
    assert_eq!(received["Order-1"], (0..5).collect::<Vec<_>>());
    assert_eq!(events, 15);
}
