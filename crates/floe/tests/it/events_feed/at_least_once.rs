//! At-least-once delivery: every event is delivered, in the order of its stream, with slow and poisoned streams and
//! killed workers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use floe::events::feed::{
    Checkpoint, ConsumerGroup, FeedConsumer, Handled, Partition, WorkerNotice,
};
use floe::events::{EventStore, Recorded, StreamName};
use floe::{Error, ErrorKind};
use floe_store::env::SeededRandom;
use tokio::sync::Notify;

use super::sim::{Pause, Sim};

/// Records what handlers handle, and checks the order.
#[derive(Clone, Default)]
pub(crate) struct Ledger(Arc<Mutex<LedgerState>>);

#[derive(Default)]
struct LedgerState {
    /// The index after the last handled event of each stream.
    ends: BTreeMap<String, u64>,
    /// The streams that are being handled.
    busy: BTreeSet<String>,
    /// Number of handled events, with repetitions.
    handled: u64,
}

/// Marks a stream as busy until it is dropped, as its handler may be.
struct BusyGuard(Ledger, String);

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.0.lock().unwrap().busy.remove(&self.1);
    }
}

impl Ledger {
    /// Handles events. Each must be the next one of its stream, or one that was handled before.
    pub(crate) async fn handle(self, stream: StreamName, events: Vec<Recorded>, turns: u64) {
        let name = stream.to_string();
        let _busy = {
            let mut state = self.0.lock().unwrap();
            assert!(
                state.busy.insert(name.clone()),
                "two concurrent handlers: {name}"
            );
            BusyGuard(self.clone(), name.clone())
        };
        for event in events {
            for _ in 0..turns {
                Pause::default().await;
            }
            let mut state = self.0.lock().unwrap();
            state.handled += 1;
            let end = state.ends.entry(name.clone()).or_default();
            assert!(event.index <= *end, "{name}: {} after {end}", event.index);
            *end = (*end).max(event.index + 1);
        }
    }

    pub(crate) fn ends(&self) -> BTreeMap<String, u64> {
        self.0.lock().unwrap().ends.clone()
    }

    pub(crate) fn handled(&self) -> u64 {
        self.0.lock().unwrap().handled
    }
}

/// The index after the last event of each stream before a checkpoint of a partition.
async fn ends_before(
    store: &EventStore,
    partition: Partition,
    checkpoint: Checkpoint,
) -> BTreeMap<String, u64> {
    let mut feed = store.feed().partition(partition).from_start();
    let mut ends = BTreeMap::new();
    while let Some(batch) = feed.next().await.unwrap() {
        if batch.checkpoint > checkpoint {
            break;
        }
        for (stream, events) in batch.streams {
            ends.insert(stream.to_string(), events.last().unwrap().index + 1);
        }
    }
    ends
}

#[test]
fn slow_stream_does_not_block_others() {
    let mut sim = Sim::new(1);
    for _ in 0..6 {
        sim.append(1, &[("Cart-1", 1), ("Cart-2", 2), ("Cart-3", 1)]);
    }
    let (ledger, gate) = (Ledger::default(), Arc::new(Notify::new()));
    let consumer = FeedConsumer::new(sim.store.clone(), "mail", Partition::FIRST);
    let (queried, recording, opened) = (consumer.clone(), ledger.clone(), gate.clone());
    let task = sim.spawn(async move {
        let handler = |stream: StreamName, events: Vec<Recorded>| {
            let (recording, opened) = (recording.clone(), opened.clone());
            async move {
                if stream.id() == "1" {
                    opened.notified().await;
                }
                recording.handle(stream, events, 1).await;
                Ok::<_, Error>(Handled::All)
            }
        };
        let summary = consumer.run_until_caught_up(handler).await.unwrap();
        assert_eq!(summary.events, 24);
    });
    sim.settle();
    assert!(sim.runs(task), "the slow stream is not handled");
    let others = [("Cart-2".to_owned(), 12), ("Cart-3".to_owned(), 6)];
    assert_eq!(
        ledger.ends(),
        others.into(),
        "the other streams are handled"
    );
    let behind = queried.clone();
    let checkpoint = sim.wait(async move { behind.checkpoint().await.unwrap() });
    assert_eq!(
        checkpoint,
        Checkpoint::START,
        "the checkpoint covers only handled events"
    );
    for _ in 0..10 {
        gate.notify_one();
        sim.settle();
    }
    assert!(!sim.runs(task));
    let lag = sim.wait(async move { queried.lag().await.unwrap() });
    assert_eq!(lag.events, 0);
}

/// Workers of a group are killed at any poll of their futures, and the next ones continue: every event is handled in
/// the order of its stream, and a stored checkpoint never passes an unhandled event.
#[test]
fn killed_workers_skip_no_event() {
    for seed in 0..60 {
        let random = SeededRandom::new(seed);
        let mut sim = Sim::new(seed);
        let ledger = Ledger::default();
        let group = || {
            let group = sim.store.consumers("mail").events_max(2).concurrency_max(3);
            group.attempts_max(2)
        };
        let group = group();
        let mut checkpoints: BTreeMap<Partition, Checkpoint> = BTreeMap::new();
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for _ in 0..6 {
            let mut events = Vec::new();
            for _ in 0..4 {
                let stream = format!("Cart-{}", random.below(5));
                let count = 1 + random.below(3);
                *expected.entry(stream.clone()).or_default() += count;
                events.push((stream, count));
            }
            let events: Vec<(&str, u64)> = events
                .iter()
                .map(|(stream, count)| (stream.as_str(), *count))
                .collect();
            sim.append(2, &events);
            let task = sim.spawn(work(group.clone(), ledger.clone(), random.below(4)));
            for _ in 0..random.below(150) {
                sim.turn();
            }
            sim.kill(task);
            let (store, queried) = (sim.store.clone(), group.clone());
            let ends = ledger.ends();
            let stored = sim.wait(async move {
                let stored = queried.checkpoints().await.unwrap();
                for (partition, checkpoint) in &stored {
                    for (stream, end) in ends_before(&store, *partition, *checkpoint).await {
                        let handled = ends.get(&stream).copied().unwrap_or_default();
                        assert!(end <= handled, "seed {seed}: {stream} {end} {handled}");
                    }
                }
                stored
            });
            for (partition, checkpoint) in stored {
                let before = checkpoints.insert(partition, checkpoint);
                assert!(before.unwrap_or_default() <= checkpoint, "seed {seed}");
            }
        }
        sim.wait(work(group.clone(), ledger.clone(), 0));
        assert_eq!(ledger.ends(), expected, "seed {seed}");
        let lag = sim.wait(async move { group.lag().await.unwrap() });
        assert_eq!(lag.events, 0);
    }
}

async fn work(group: ConsumerGroup, ledger: Ledger, turns: u64) {
    let handler = |stream: StreamName, events: Vec<Recorded>| {
        let ledger = ledger.clone();
        async move {
            ledger.handle(stream, events, turns).await;
            Ok::<_, Error>(Handled::All)
        }
    };
    group.run_until_caught_up(handler).await.unwrap();
}

#[test]
fn fenced_consumer_stores_no_checkpoint() {
    let mut sim = Sim::new(3);
    sim.append(1, &[("Cart-1", 2)]);
    let gate = Arc::new(Notify::new());
    let consumer = FeedConsumer::new(sim.store.clone(), "mail", Partition::FIRST);
    let (slow, opened) = (consumer.clone(), gate.clone());
    let failed = Arc::new(Mutex::new(None));
    let reported = failed.clone();
    sim.spawn(async move {
        let run = slow.run_until_caught_up(|_, _| {
            let opened = opened.clone();
            async move {
                opened.notified().await;
                Ok::<_, Error>(Handled::All)
            }
        });
        *reported.lock().unwrap() = run.await.err();
    });
    sim.settle();
    sim.append(1, &[("Cart-1", 1), ("Cart-2", 1)]);
    let fast = consumer.clone();
    let summary = sim.wait(async move {
        let handle_all = async |_: StreamName, _: Vec<Recorded>| Ok::<_, Error>(Handled::All);
        fast.run_until_caught_up(handle_all).await.unwrap()
    });
    gate.notify_one();
    sim.settle();
    let error = failed.lock().unwrap().take().unwrap();
    assert_eq!(error.kind(), ErrorKind::VersionConflict);
    assert_eq!(
        error.to_string(),
        "the consumer was fenced, another one started or the checkpoint was moved: group=mail partition=0"
    );
    let stored = sim.wait(async move { consumer.checkpoint().await.unwrap() });
    assert_eq!(stored, summary.checkpoint);
}

/// A running consumer did not notice that another process had retried a parked stream successfully. It skipped the
/// later events of the stream, so they were never handled.
#[test]
fn events_after_a_retry_by_another_process_are_handled() {
    let mut sim = Sim::new(4);
    sim.append(1, &[("Cart-bad", 2)]);
    let (ledger, is_fixed) = (Ledger::default(), Arc::new(AtomicBool::new(false)));
    let notices: Arc<Mutex<Vec<WorkerNotice>>> = Arc::default();
    let recorded = notices.clone();
    let group = sim.store.consumers("mail").attempts_max(2);
    let group = group.on_notice(move |notice| recorded.lock().unwrap().push(notice.clone()));
    let handler = {
        let (ledger, is_fixed) = (ledger.clone(), is_fixed.clone());
        move |stream: StreamName, events: Vec<Recorded>| {
            let (ledger, is_fixed) = (ledger.clone(), is_fixed.clone());
            async move {
                if !is_fixed.load(Ordering::Relaxed) {
                    return Err("poison");
                }
                ledger.handle(stream, events, 0).await;
                Ok(Handled::All)
            }
        }
    };
    let (worker, handle) = (group.clone(), handler.clone());
    sim.spawn(async move {
        let never = std::future::pending();
        worker.run(never, handle).await.unwrap();
    });
    let second = std::time::Duration::from_secs(1);
    sim.pass(5 * second);
    let parked = notices.lock().unwrap().iter().any(|notice| match notice {
        WorkerNotice::Parked(partition, parked) => {
            *partition == Partition::FIRST && (parked.index, parked.end) == (0, 2)
        }
        _ => false,
    });
    assert!(parked, "a notice was emitted");
    sim.append(1, &[("Cart-bad", 1)]);
    sim.pass(5 * second);
    let queried = group.clone();
    let parked = sim.wait(async move { queried.parked().await.unwrap() });
    assert_eq!((parked[0].index, parked[0].end), (0, 3));
    assert_eq!(parked[0].reason, "poison");

    is_fixed.store(true, Ordering::Relaxed);
    let retried = group.clone();
    let summary = sim.wait(async move { retried.retry_parked(handler).await.unwrap() });
    assert_eq!(summary.events, 3);
    sim.append(1, &[("Cart-bad", 2)]);
    sim.pass(5 * second);
    assert_eq!(ledger.ends(), [("Cart-bad".to_owned(), 5)].into());
    let parked = sim.wait(async move { group.parked().await.unwrap() });
    assert_eq!(parked, []);
    assert_eq!(ledger.handled(), 5);
}
