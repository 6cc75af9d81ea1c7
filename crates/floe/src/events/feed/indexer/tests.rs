//! An indexer on a real table: stored positions, restarts and errors.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use floe_local::LocalEngine;
use floe_store::env::SeededRandom;
use floe_store::{BoxFuture, Env};
use floe_testkit::fault::{FaultEngine, Faults, Operation};
use floe_testkit::record::RecordingEngine;

use super::*;
use crate::db::{Db, Timer};
use crate::events::feed::{Checkpoint, Partition, Reader};
use crate::events::{EventData, EventStoreOptions, Expected, StreamName};

/// A timer that returns at once and counts its calls.
#[derive(Default)]
struct Pauses(AtomicU32);

impl Timer for Pauses {
    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(tokio::task::yield_now())
    }
}

fn store_on(engine: Arc<dyn floe_store::Engine>) -> EventStore {
    let db = Db::with_parts(engine, Env::system(), Arc::new(Pauses::default()));
    db.event_store(EventStoreOptions::new("shop").tip_events_max(4))
}

async fn ensured(store: EventStore) -> EventStore {
    store.ensure_table().await.unwrap();
    store.ensure_feed().await.unwrap();
    store
}

async fn store() -> EventStore {
    ensured(store_on(Arc::new(LocalEngine::memory().unwrap()))).await
}

fn three() -> Partitions {
    Partitions::new(NonZeroU32::new(3).unwrap())
}

async fn append(store: &EventStore, stream: u64, count: usize) {
    let stream = StreamName::new("Cart", &stream).unwrap();
    let events = (0..count).map(|_| EventData::new("Added", ""));
    let appended = store.append(&stream, Expected::Any, events);
    appended.await.unwrap();
}

/// Reads the next index of each stream from the feed. Panics on repetitions and gaps.
async fn fed(store: &EventStore, partitions: Partitions) -> BTreeMap<StreamName, u64> {
    let mut fed = BTreeMap::new();
    for partition in partitions.all() {
        let mut reader = Reader::new(store.feed_log(), partition, Checkpoint::START);
        while let Some(batch) = reader.next().await.unwrap() {
            for span in batch.spans {
                assert_eq!(partitions.of(&span.stream), partition);
                let next: &mut u64 = fed.entry(span.stream.clone()).or_default();
                assert_eq!(span.start, *next, "{}", span.stream);
                *next = span.end();
            }
        }
    }
    fed
}

async fn written(store: &EventStore) -> BTreeMap<StreamName, u64> {
    let mut written = BTreeMap::new();
    for stream in store.streams(None).collect().await.unwrap() {
        let version = store.version(&stream).await.unwrap();
        written.insert(stream, version);
    }
    written
}

#[tokio::test]
async fn feed_contains_all_appended_events() {
    let store = store().await;
    let mut indexer = store.indexer(IndexerOptions::new().batch_max(3)).unwrap();
    assert_eq!(
        indexer.run_until_caught_up().await.unwrap(),
        IndexerSummary::default()
    );
    for round in 1..20 {
        append(&store, round % 3, 2).await;
        let indexed = indexer.run_until_caught_up().await.unwrap();
        assert_eq!(indexed.events, 2);
    }
    assert_eq!(fed(&store, Partitions::ONE).await, written(&store).await);
    let mut another = store.indexer(IndexerOptions::new()).unwrap();
    assert_eq!(
        another.run_until_caught_up().await.unwrap(),
        IndexerSummary::default()
    );
    // Another name reads everything again, and nothing is new.
    let other = IndexerOptions::new().name("other");
    let indexed = store.indexer(other).unwrap().run_until_caught_up().await;
    let indexed = indexed.unwrap();
    assert!(indexed.records > 19 && indexed.events == 0, "{indexed:?}");
    another.release().await.unwrap();
}

#[tokio::test]
async fn number_of_partitions_is_fixed() {
    let store = store().await;
    assert_eq!(store.feed_partitions().await.unwrap(), None);
    let mut indexer = store
        .indexer(IndexerOptions::new().partitions(three()))
        .unwrap();
    indexer.run_until_caught_up().await.unwrap();
    assert_eq!(store.feed_partitions().await.unwrap(), Some(three()));
    let mut other = store.indexer(IndexerOptions::new()).unwrap();
    let error = other.run_until_caught_up().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert_eq!(
        error.to_string(),
        "the feed has another number of partitions: expected=1 actual=3"
    );
}

#[tokio::test]
async fn batch_max_is_1_to_10000() {
    let store = store().await;
    for batch_max in [0, 10_001] {
        let options = IndexerOptions::new().batch_max(batch_max);
        let error = store.indexer(options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidUse);
    }
}

/// Shards split and requests fail at random, several indexers compete, and each is killed repeatedly.
#[tokio::test]
async fn concurrent_killed_indexers_lose_nothing() {
    for seed in 0..6 {
        let random = Arc::new(SeededRandom::new(seed));
        let streams = [Operation::DescribeStream, Operation::GetRecords];
        let faults = Faults::seeded(seed).throttle(0.03).shard_splits(0.03);
        let faults = faults.only(move |request| streams.contains(&request.operation));
        let local = Arc::new(LocalEngine::memory().unwrap());
        let engine = Arc::new(FaultEngine::new(local, faults));
        let store = ensured(store_on(engine.clone())).await;
        let options = IndexerOptions::new()
            .partitions(three())
            .batch_max(50)
            .limits(EpochLimits {
                version_max: 4,
                ..EpochLimits::default()
            });
        let appends = async {
            for _ in 0..120 {
                append(&store, random.below(12), 1 + random.below(3) as usize).await;
                tokio::task::yield_now().await;
            }
        };
        let index = async || {
            for _ in 0..15 {
                let mut indexer = store.indexer(options.clone()).unwrap();
                let killed = async {
                    for _ in 0..random.below(60) {
                        tokio::task::yield_now().await;
                    }
                };
                indexer.run(killed).await.unwrap();
            }
        };
        tokio::join!(appends, index(), index());
        engine.pause();
        let mut indexer = store.indexer(options).unwrap();
        indexer.run_until_caught_up().await.unwrap();
        let written = written(&store).await;
        assert_eq!(fed(&store, three()).await, written, "seed {seed}");
        let partitions: BTreeSet<_> = written.keys().map(|name| three().of(name)).collect();
        assert_eq!(partitions.len(), 3);
    }
}

#[tokio::test]
async fn unread_records_are_held() {
    let engine = Arc::new(RecordingEngine::new(Arc::new(
        LocalEngine::memory().unwrap(),
    )));
    let store = ensured(store_on(engine.clone())).await;
    append(&store, 1, 1).await;
    let held = || {
        let requests = engine.take();
        let holds = requests
            .iter()
            .filter(|line| line.starts_with("HoldChanges"));
        holds.count()
    };
    held();
    let mut indexer = store.indexer(IndexerOptions::new()).unwrap();
    indexer.run_until_caught_up().await.unwrap();
    assert_eq!(held(), 2, "before and after reading");
    indexer.run_until_caught_up().await.unwrap();
    assert_eq!(held(), 0);
    append(&store, 1, 1).await;
    indexer.run_until_caught_up().await.unwrap();
    assert_eq!(held(), 1);
    indexer.release().await.unwrap();
    assert_eq!(held(), 1);
}

/// A step writes the epoch and the position once each.
#[tokio::test]
async fn step_writes_twice_and_idle_step_not_at_all() {
    let engine = Arc::new(RecordingEngine::new(Arc::new(
        LocalEngine::memory().unwrap(),
    )));
    let store = ensured(store_on(engine.clone())).await;
    let mut indexer = store.indexer(IndexerOptions::new()).unwrap();
    append(&store, 1, 1).await;
    indexer.run_until_caught_up().await.unwrap();
    append(&store, 2, 1).await;
    let writes = || {
        let requests = engine.take();
        let reads = [
            "GetItem",
            "Query",
            "GetRecords",
            "ListStreams",
            "DescribeStream",
        ];
        let is_read = |line: &String| reads.iter().any(|read| line.starts_with(read));
        requests
            .into_iter()
            .filter(|line| !is_read(line))
            .collect::<Vec<_>>()
    };
    writes();
    indexer.run_until_caught_up().await.unwrap();
    let written = writes();
    assert_eq!(written.len(), 3, "{written:#?}");
    assert!(written[0].contains("$AppendsEpoch-0_0"), "{written:#?}");
    assert!(written[1].contains("$IndexerPosition-0"), "{written:#?}");
    assert!(written[2].starts_with("HoldChanges"), "{written:#?}");
    indexer.run_until_caught_up().await.unwrap();
    assert_eq!(writes(), [""; 0]);
}

#[tokio::test]
async fn indexer_follows_the_stream_until_it_is_stopped() {
    let store = store().await;
    let mut indexer = store.indexer(IndexerOptions::new()).unwrap();
    let stop = async {
        for stream in 0..5 {
            append(&store, stream, 2).await;
            while fed(&store, Partitions::ONE).await.len() as u64 != stream + 1 {
                tokio::task::yield_now().await;
            }
        }
    };
    // The last step may have been stopped after its write.
    let indexed = indexer.run(stop).await.unwrap();
    assert!((8..=10).contains(&indexed.events), "{indexed:?}");
    assert_eq!(fed(&store, Partitions::ONE).await, written(&store).await);
}

/// The change records of a table, as read by another service.
async fn records(store: &EventStore) -> Vec<floe_store::op::ChangeRecord> {
    let mut shards = Shards::new(store.db().clone(), "shop", false);
    shards.find(&ShardPositions::default()).await.unwrap();
    shards.read(1_000).await.unwrap().records
}

#[tokio::test]
async fn change_ingester_writes_once_and_skips_duplicates() {
    let engine = Arc::new(RecordingEngine::new(Arc::new(
        LocalEngine::memory().unwrap(),
    )));
    let store = ensured(store_on(engine.clone())).await;
    append(&store, 1, 2).await;
    append(&store, 2, 1).await;
    let records = records(&store).await;
    let mut change_ingester = store.change_ingester(&IndexerOptions::new()).unwrap();
    let ingested = change_ingester.ingest(&records[..1]).await.unwrap();
    assert_eq!(ingested.events, 2);
    engine.take();
    let ingested = change_ingester.ingest(&records).await.unwrap();
    let tail = Checkpoint::of(0, 2).unwrap();
    assert_eq!(ingested.events, 1);
    assert_eq!(ingested.checkpoints, [(Partition::FIRST, tail)].into());
    let requests = engine.take();
    assert_eq!(requests.len(), 1, "{requests:#?}");
    assert!(requests[0].contains("$AppendsEpoch-0_0"), "{requests:#?}");
    assert_eq!(change_ingester.ingest(&records).await.unwrap().events, 0);
    assert_eq!(engine.take(), [""; 0]);
    assert_eq!(fed(&store, Partitions::ONE).await, written(&store).await);
}

#[tokio::test]
async fn listener_receives_steps_and_transient_failures() {
    let local = Arc::new(LocalEngine::memory().unwrap());
    let engine = Arc::new(FaultEngine::new(local, Faults::seeded(1)));
    let store = ensured(store_on(engine.clone())).await;
    append(&store, 1, 3).await;
    let throttled = floe_testkit::fault::FaultKind::Throttle;
    engine.script(Operation::GetRecords, throttled).unwrap();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let notes = seen.clone();
    let indexer = store.indexer(IndexerOptions::new()).unwrap();
    let mut indexer = indexer.on_progress(move |progress| {
        notes.lock().unwrap().push(match progress {
            IndexerProgress::Failed { pause, .. } => format!("failed, paused={}", !pause.is_zero()),
            IndexerProgress::StepCompleted(step) => format!(
                "events={} at={:?} idle={}",
                step.indexed.events,
                step.checkpoints.values().next().map(Checkpoint::to_string),
                step.is_idle
            ),
        });
    });
    let stop = async {
        while seen.lock().unwrap().len() < 3 {
            tokio::task::yield_now().await;
        }
    };
    indexer.run(stop).await.unwrap();
    let seen = seen.lock().unwrap();
    let expected = [
        "failed, paused=true",
        "events=3 at=Some(\"0@1\") idle=false",
        "events=0 at=None idle=true",
    ];
    assert_eq!(seen[..3], expected);
}

/// On the embedded engine: enabling the stream again creates another stream.
#[tokio::test]
async fn disabled_change_stream_is_read_to_its_end_before_the_next() {
    use floe_store::op::UpdateTable;
    use floe_store::table::StreamView;

    let store = store().await;
    let switch = async |stream: Option<StreamView>| {
        let mut update = UpdateTable::new("shop");
        update.stream = Some(stream);
        store.db().engine().update_table(update).await.unwrap();
    };
    for round in 0..4 {
        append(&store, round % 2, 2).await;
        if round % 2 == 0 {
            index(&store).await;
        }
        append(&store, 0, 1).await;
        switch(None).await;
        switch(Some(StreamView::NewImage)).await;
    }
    append(&store, 0, 1).await;
    index(&store).await;
    assert_eq!(fed(&store, Partitions::ONE).await, written(&store).await);
}

async fn index(store: &EventStore) {
    let mut indexer = store.indexer(IndexerOptions::new()).unwrap();
    indexer.run_until_caught_up().await.unwrap();
}
