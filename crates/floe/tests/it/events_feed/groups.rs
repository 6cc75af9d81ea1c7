//! Groups: partitions are shared fairly while workers start, stop, die and stall; and the requests of idle workers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe::events::feed::{Checkpoint, ConsumerGroup, Handled, Partition, WorkerNotice};
use floe::events::{EventStore, Recorded, StreamName};
use floe::{Error, ErrorKind};
use floe_testkit::fault::Faults;
use tokio::sync::{Notify, oneshot};

use super::at_least_once::Ledger;
use super::sim::Sim;

const LEASE: Duration = Duration::from_secs(10);
const PARTITIONS: u32 = 8;

/// The notices of workers, with the number of the worker.
#[derive(Clone, Default)]
struct Notices(Arc<Mutex<Vec<(u32, WorkerNotice)>>>);

impl Notices {
    fn group(&self, store: &EventStore, worker: u32) -> ConsumerGroup {
        let notices = self.clone();
        let record =
            move |notice: &WorkerNotice| notices.0.lock().unwrap().push((worker, notice.clone()));
        store.consumers("mail").on_notice(record).lease(LEASE)
    }

    /// The worker of each partition according to the notices. Panics if a partition has two.
    fn holders(&self) -> BTreeMap<Partition, u32> {
        let mut holders = BTreeMap::new();
        for (worker, notice) in self.0.lock().unwrap().iter() {
            match notice {
                WorkerNotice::Acquired(partition) => {
                    let before = holders.insert(*partition, *worker);
                    assert_eq!(before, None, "two workers hold {partition}");
                }
                WorkerNotice::Released(partition) | WorkerNotice::Lost(partition) => {
                    let before = holders.remove(partition);
                    assert_eq!(before, Some(*worker), "{partition}");
                }
                _ => {}
            }
        }
        holders
    }

    /// The number of partitions of each worker.
    fn shares(&self) -> BTreeMap<u32, usize> {
        let mut shares = BTreeMap::new();
        for worker in self.holders().into_values() {
            *shares.entry(worker).or_default() += 1;
        }
        shares
    }
}

/// A running worker. Dropping `stop` stops it.
#[must_use]
struct RunningWorker {
    task: usize,
    stop: oneshot::Sender<()>,
}

fn start(sim: &mut Sim, group: ConsumerGroup, ledger: &Ledger) -> RunningWorker {
    let (stop, stopped) = oneshot::channel::<()>();
    let ledger = ledger.clone();
    let task = sim.spawn(async move {
        let handler = |stream: StreamName, events: Vec<Recorded>| {
            let ledger = ledger.clone();
            async move {
                ledger.handle(stream, events, 1).await;
                Ok::<_, Error>(Handled::All)
            }
        };
        let stopped = async { drop(stopped.await) };
        group.run(stopped, handler).await.unwrap();
    });
    RunningWorker { task, stop }
}

fn check_fair(notices: &Notices, workers: usize) {
    let shares = notices.shares();
    let (least, most) = (shares.values().min(), shares.values().max());
    assert_eq!(shares.len(), workers, "{shares:?}");
    assert!(most.unwrap() - least.unwrap() <= 1, "{shares:?}");
    assert_eq!(shares.values().sum::<usize>(), PARTITIONS as usize);
}

#[test]
fn partitions_are_shared_fairly_as_workers_come_and_go() {
    let mut sim = Sim::new(1);
    let (notices, ledger) = (Notices::default(), Ledger::default());
    let mut workers = Vec::new();
    let mut appended = 0;
    for worker in 0..5 {
        let group = notices.group(&sim.store, worker);
        workers.push(start(&mut sim, group, &ledger));
        sim.append(
            PARTITIONS,
            &[("Cart-1", 1), ("Cart-2", 1), ("Cart-3", 1), ("Cart-4", 1)],
        );
        appended += 1;
        sim.pass(2 * LEASE);
        check_fair(&notices, workers.len());
    }
    while workers.len() > 1 {
        let RunningWorker { task, stop } = workers.remove(workers.len() / 2);
        drop(stop);
        sim.append(
            PARTITIONS,
            &[("Cart-1", 1), ("Cart-2", 1), ("Cart-3", 1), ("Cart-4", 1)],
        );
        appended += 1;
        sim.pass(LEASE);
        assert!(!sim.runs(task));
        check_fair(&notices, workers.len());
    }
    let ends: Vec<u64> = ledger.ends().into_values().collect();
    assert_eq!(ends, [appended; 4]);
    assert_eq!(
        ledger.handled(),
        4 * appended,
        "no worker died, so no event was repeated"
    );
}

#[test]
fn stopping_worker_finishes_handlers_and_releases_partitions() {
    let mut sim = Sim::new(2);
    sim.append(PARTITIONS, &[("Cart-1", 3)]);
    let notices = Notices::default();
    let gate = Arc::new(Notify::new());
    let (stop, stopped) = oneshot::channel::<()>();
    let (opened, group) = (gate.clone(), notices.group(&sim.store, 0));
    let summary = Arc::new(Mutex::new(None));
    let reported = summary.clone();
    let task = sim.spawn(async move {
        let handler = |_: StreamName, _: Vec<Recorded>| {
            let opened = opened.clone();
            async move {
                opened.notified().await;
                Ok::<_, Error>(Handled::All)
            }
        };
        let ran = group.run(async { drop(stopped.await) }, handler).await;
        *reported.lock().unwrap() = Some(ran.unwrap());
    });
    sim.pass(Duration::from_secs(1));
    drop(stop);
    sim.pass(Duration::from_secs(1));
    assert!(sim.runs(task), "a handler is running");
    gate.notify_one();
    sim.settle();
    assert!(!sim.runs(task));
    assert_eq!(summary.lock().unwrap().take().unwrap().events, 3);
    assert_eq!(notices.shares(), [].into());

    let ledger = Ledger::default();
    let group = notices.group(&sim.store, 1);
    let _running = start(&mut sim, group, &ledger);
    sim.settle();
    assert_eq!(notices.shares(), [(1, 8)].into());
    assert_eq!(
        ledger.handled(),
        0,
        "the stored checkpoint covers all events"
    );
}

#[test]
fn stopping_worker_drops_handlers_after_the_grace_period() {
    let mut sim = Sim::new(3);
    sim.append(1, &[("Cart-1", 3), ("Cart-2", 1)]);
    let group = sim.store.consumers("mail").grace(Duration::from_secs(7));
    let queried = group.clone();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = sim.spawn(async move {
        let handler = async |stream: StreamName, _: Vec<Recorded>| {
            if stream.id() == "1" {
                std::future::pending::<()>().await;
            }
            Ok::<_, Error>(Handled::All)
        };
        let summary = group.run(async { drop(stopped.await) }, handler).await;
        assert_eq!(summary.unwrap().events, 1);
    });
    sim.pass(Duration::from_secs(3));
    drop(stop);
    sim.pass(Duration::from_secs(6));
    assert!(sim.runs(task));
    sim.pass(Duration::from_secs(1));
    assert!(!sim.runs(task));
    let lag = sim.wait(async move { queried.lag().await.unwrap() });
    assert!(lag.events >= 3, "{lag:?}");
}

#[test]
fn partitions_of_a_dead_worker_are_taken_after_its_lease() {
    let mut sim = Sim::new(4);
    let (notices, ledger) = (Notices::default(), Ledger::default());
    sim.append(PARTITIONS, &[("Cart-1", 2), ("Cart-2", 2)]);
    let group = notices.group(&sim.store, 0);
    let dead = start(&mut sim, group, &ledger);
    sim.pass(Duration::from_secs(1));
    assert_eq!(notices.shares(), [(0, 8)].into());
    sim.kill(dead.task);
    notices.0.lock().unwrap().clear();
    let group = notices.group(&sim.store, 1);
    let _running = start(&mut sim, group, &ledger);
    sim.append(PARTITIONS, &[("Cart-1", 2), ("Cart-2", 2)]);
    sim.pass(LEASE);
    assert_eq!(notices.shares(), [].into());
    assert_eq!(ledger.handled(), 4);
    sim.pass(LEASE);
    assert_eq!(notices.shares(), [(1, 8)].into());
    assert_eq!(ledger.handled(), 8);
}

/// The run takes over the partitions of the dead worker, and does not wait for those of a live one.
#[test]
fn run_until_caught_up_waits_for_dead_workers_only() {
    let mut sim = Sim::new(5);
    let (notices, ledger) = (Notices::default(), Ledger::default());
    sim.append(PARTITIONS, &[("Cart-1", 2), ("Cart-2", 2)]);
    let group = notices.group(&sim.store, 0);
    let dead = start(&mut sim, group.clone(), &ledger);
    sim.pass(Duration::from_secs(1));
    sim.kill(dead.task);
    sim.append(PARTITIONS, &[("Cart-1", 1)]);
    let before = sim.test.now();
    let (caught_up, recording) = (group.clone(), ledger.clone());
    let summary = sim.wait(async move {
        let handler = |stream, events| {
            let recording = recording.clone();
            async move {
                recording.handle(stream, events, 0).await;
                Ok::<_, Error>(Handled::All)
            }
        };
        caught_up.run_until_caught_up(handler).await.unwrap()
    });
    assert_eq!((summary.events, summary.checkpoints.len()), (1, 8));
    let waited = sim.test.now().since(before);
    assert!(waited >= LEASE && waited < 2 * LEASE, "{waited:?}");

    let _running = start(&mut sim, group.clone(), &ledger);
    sim.pass(Duration::from_secs(1));
    let before = sim.test.now();
    sim.wait(async move {
        let handler = async |_: StreamName, _: Vec<Recorded>| Ok::<_, Error>(Handled::All);
        group.run_until_caught_up(handler).await.unwrap()
    });
    assert!(sim.test.now().since(before) < LEASE);
}

#[test]
fn stalled_worker_is_fenced() {
    // With some seeds, the stalled worker tries to store a checkpoint before it notices that it lost its lease.
    (0..60).for_each(check_stalled_worker);
}

fn check_stalled_worker(seed: u64) {
    let mut sim = Sim::new(seed);
    let (notices, ledger) = (Notices::default(), Ledger::default());
    sim.append(1, &[("Cart-1", 2)]);
    let gate = Arc::new(Notify::new());
    let (opened, group) = (gate.clone(), notices.group(&sim.store, 0));
    let stalled = sim.spawn(async move {
        let handler = |_: StreamName, _: Vec<Recorded>| {
            let opened = opened.clone();
            async move {
                opened.notified().await;
                Ok::<_, Error>(Handled::All)
            }
        };
        let never = std::future::pending();
        group.run(never, handler).await.unwrap();
    });
    sim.pass(LEASE / 2);
    sim.stall(stalled, true);
    let group = notices.group(&sim.store, 1);
    let _running = start(&mut sim, group.clone(), &ledger);
    sim.pass(LEASE);
    assert_eq!(
        ledger.handled(),
        0,
        "the lease of the stalled worker has not expired"
    );
    sim.append(1, &[("Cart-1", 1), ("Cart-2", 1)]);
    sim.pass(LEASE);
    assert_eq!(ledger.handled(), 4);
    let queried = group.clone();
    let stored = sim.wait(async move { queried.checkpoints().await.unwrap() });
    // It resumes: its handler completes, but no checkpoint is stored.
    gate.notify_one();
    sim.stall(stalled, false);
    sim.pass(Duration::from_secs(1));
    let queried = group;
    let after = sim.wait(async move { queried.checkpoints().await.unwrap() });
    assert_eq!(after, stored);
    let emitted = notices.0.lock().unwrap().clone();
    assert!(
        emitted.contains(&(0, WorkerNotice::Lost(Partition::FIRST))),
        "{emitted:?}"
    );
    sim.append(1, &[("Cart-1", 1)]);
    sim.pass(LEASE);
    assert_eq!(ledger.ends().get("Cart-1"), Some(&4));
}

#[test]
fn idle_worker_restarts_from_a_moved_checkpoint() {
    let mut sim = Sim::new(7);
    let (notices, ledger) = (Notices::default(), Ledger::default());
    sim.append(1, &[("Cart-1", 3), ("Cart-2", 1)]);
    let group = notices.group(&sim.store, 0);
    let _running = start(&mut sim, group.clone(), &ledger);
    sim.pass(Duration::from_secs(3));
    assert_eq!(ledger.handled(), 4);
    let moved = group.clone();
    sim.wait(async move {
        moved
            .move_to(Partition::FIRST, Checkpoint::START)
            .await
            .unwrap();
    });
    sim.pass(LEASE / 2);
    assert_eq!(
        ledger.handled(),
        8,
        "the moved checkpoint repeats all events"
    );
    let queried = group;
    let lag = sim.wait(async move { queried.lag().await.unwrap() });
    assert_eq!(lag.events, 0);
}

#[test]
fn worker_waits_while_the_store_fails() {
    let faults = Faults::seeded(8).throttle(1.0);
    let mut sim = Sim::with_faults(8, faults);
    let (notices, ledger) = (Notices::default(), Ledger::default());
    sim.append(PARTITIONS, &[("Cart-1", 3), ("Cart-2", 1)]);
    let group = notices.group(&sim.store, 0);
    sim.faults.resume();
    let running = start(&mut sim, group, &ledger);
    sim.pass(LEASE);
    let emitted = notices.0.lock().unwrap().clone();
    assert!(matches!(
        emitted.as_slice(),
        [
            (
                0,
                WorkerNotice::Failed {
                    partition: None,
                    ..
                }
            ),
            ..
        ]
    ));
    sim.faults.pause();
    sim.pass(LEASE);
    assert_eq!(ledger.handled(), 4);

    // For longer than its lease: the worker cannot know whether it still holds its partitions, so it drops them.
    sim.faults.resume();
    sim.pass(2 * LEASE);
    assert_eq!(notices.shares(), [].into());
    sim.faults.pause();
    sim.append(PARTITIONS, &[("Cart-1", 1)]);
    sim.pass(2 * LEASE);
    assert_eq!(notices.shares(), [(0, 8)].into());
    assert_eq!(ledger.ends()["Cart-1"], 4);
    assert!(sim.runs(running.task));
    drop(running.stop);
    sim.pass(LEASE);
    assert!(!sim.runs(running.task));
}

#[test]
fn idle_worker_sends_few_requests() {
    let mut sim = Sim::new(9);
    let (notices, ledger) = (Notices::default(), Ledger::default());
    sim.append(2, &[("Cart-1", 1)]);
    let group = notices.group(&sim.store, 0).poll(Duration::from_secs(2));
    let _running = start(&mut sim, group, &ledger);
    sim.pass(Duration::from_millis(9_900));
    sim.take_requests();
    sim.pass(LEASE);
    // The last epoch of each partition every two seconds, and four heartbeats, each a read and a write.
    assert_eq!(sim.take_requests(), 2 * 5 + 4 * 2);
}

#[test]
fn invalid_options_and_missing_tables_are_rejected() {
    let mut sim = Sim::new(10);
    sim.append(1, &[("Cart-1", 1)]);
    let store = sim.store.clone();
    sim.wait(async move {
        let handler = async |_: StreamName, _: Vec<Recorded>| Ok::<_, Error>(Handled::All);
        let without_lease = store.consumers("mail").lease(Duration::ZERO);
        let error = without_lease
            .run_until_caught_up(handler)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidUse);
        assert_eq!(error.to_string(), "the lease is too short: lease=0ns");
        let invalid = store.consumers("two_words");
        let error = invalid.run_until_caught_up(handler).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidUse, "{error}");
        let missing = store
            .db()
            .event_store(floe::events::EventStoreOptions::new("none"));
        let error = missing.consumers("mail").run_until_caught_up(handler).await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Table);
    });
}
