//! Groups: partitions are shared fairly, whoever comes, goes, dies or stalls; and what workers cost that have nothing to do.

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

/// What workers were told, each under its name.
#[derive(Clone, Default)]
struct Notices(Arc<Mutex<Vec<(u32, WorkerNotice)>>>);

impl Notices {
    fn group(&self, store: &EventStore, worker: u32) -> ConsumerGroup {
        let told = self.clone();
        let note =
            move |notice: &WorkerNotice| told.0.lock().unwrap().push((worker, notice.clone()));
        store.consumers("mail").on_notice(note).lease(LEASE)
    }

    /// Who has which partition, as far as they were told. No partition has two.
    fn holders(&self) -> BTreeMap<Partition, u32> {
        let mut holders = BTreeMap::new();
        for (worker, notice) in self.0.lock().unwrap().iter() {
            match notice {
                WorkerNotice::Taken(partition) => {
                    let before = holders.insert(*partition, *worker);
                    assert_eq!(before, None, "two have {partition}");
                }
                WorkerNotice::GivenBack(partition) | WorkerNotice::Lost(partition) => {
                    let before = holders.remove(partition);
                    assert_eq!(before, Some(*worker), "{partition}");
                }
                _ => {}
            }
        }
        holders
    }

    fn shares(&self) -> BTreeMap<u32, usize> {
        let mut shares = BTreeMap::new();
        for worker in self.holders().into_values() {
            *shares.entry(worker).or_default() += 1;
        }
        shares
    }
}

/// A worker, and how to stop it: by dropping this.
#[must_use]
struct Running {
    task: usize,
    stop: oneshot::Sender<()>,
}

fn start(sim: &mut Sim, group: ConsumerGroup, ledger: &Ledger) -> Running {
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
    Running { task, stop }
}

fn is_fair(notices: &Notices, workers: usize) {
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
    let mut count = 0;
    for worker in 0..5 {
        let group = notices.group(&sim.store, worker);
        workers.push(start(&mut sim, group, &ledger));
        sim.append(
            PARTITIONS,
            &[("Cart-1", 1), ("Cart-2", 1), ("Cart-3", 1), ("Cart-4", 1)],
        );
        count += 1;
        sim.pass(2 * LEASE);
        is_fair(&notices, workers.len());
    }
    while workers.len() > 1 {
        let Running { task, stop } = workers.remove(workers.len() / 2);
        drop(stop);
        sim.append(
            PARTITIONS,
            &[("Cart-1", 1), ("Cart-2", 1), ("Cart-3", 1), ("Cart-4", 1)],
        );
        count += 1;
        sim.pass(LEASE);
        assert!(!sim.runs(task));
        is_fair(&notices, workers.len());
    }
    let ends: Vec<u64> = ledger.ends().into_values().collect();
    assert_eq!(ends, [count; 4]);
    assert_eq!(
        ledger.handled(),
        4 * count,
        "nobody died, so nothing came twice"
    );
}

#[test]
fn who_stops_gives_back_at_once_and_leaves_nothing_undone() {
    let mut sim = Sim::new(2);
    sim.append(PARTITIONS, &[("Cart-1", 3)]);
    let notices = Notices::default();
    let gate = Arc::new(Notify::new());
    let (stop, stopped) = oneshot::channel::<()>();
    let (opened, group) = (gate.clone(), notices.group(&sim.store, 0));
    let worked = Arc::new(Mutex::new(None));
    let told = worked.clone();
    let task = sim.spawn(async move {
        let handler = |_: StreamName, _: Vec<Recorded>| {
            let opened = opened.clone();
            async move {
                opened.notified().await;
                Ok::<_, Error>(Handled::All)
            }
        };
        let ran = group.run(async { drop(stopped.await) }, handler).await;
        *told.lock().unwrap() = Some(ran.unwrap());
    });
    sim.pass(Duration::from_secs(1));
    drop(stop);
    sim.pass(Duration::from_secs(1));
    assert!(sim.runs(task), "a handler is under way");
    gate.notify_one();
    sim.settle();
    assert!(!sim.runs(task));
    assert_eq!(worked.lock().unwrap().take().unwrap().events, 3);
    assert_eq!(notices.shares(), [].into());

    let ledger = Ledger::default();
    let group = notices.group(&sim.store, 1);
    let _running = start(&mut sim, group, &ledger);
    sim.settle();
    assert_eq!(notices.shares(), [(1, 8)].into());
    assert_eq!(ledger.handled(), 0, "it was stored that they are done");
}

#[test]
fn who_stops_does_not_wait_forever() {
    let mut sim = Sim::new(3);
    sim.append(1, &[("Cart-1", 3), ("Cart-2", 1)]);
    let group = sim.store.consumers("mail").grace(Duration::from_secs(7));
    let asked = group.clone();
    let (stop, stopped) = oneshot::channel::<()>();
    let task = sim.spawn(async move {
        let handler = async |stream: StreamName, _: Vec<Recorded>| {
            if stream.id() == "1" {
                std::future::pending::<()>().await;
            }
            Ok::<_, Error>(Handled::All)
        };
        let worked = group.run(async { drop(stopped.await) }, handler).await;
        assert_eq!(worked.unwrap().events, 1);
    });
    sim.pass(Duration::from_secs(3));
    drop(stop);
    sim.pass(Duration::from_secs(6));
    assert!(sim.runs(task));
    sim.pass(Duration::from_secs(1));
    assert!(!sim.runs(task));
    let lag = sim.wait(async move { asked.lag().await.unwrap() });
    assert!(lag.events >= 3, "{lag:?}");
}

#[test]
fn who_is_dead_is_followed_only_after_its_lease() {
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

/// Until it is caught up, a group waits for what a worker holds that is silent, and not for what one holds that is alive.
#[test]
fn who_is_silent_is_waited_for_and_who_is_alive_is_not() {
    let mut sim = Sim::new(5);
    let (notices, ledger) = (Notices::default(), Ledger::default());
    sim.append(PARTITIONS, &[("Cart-1", 2), ("Cart-2", 2)]);
    let group = notices.group(&sim.store, 0);
    let dead = start(&mut sim, group.clone(), &ledger);
    sim.pass(Duration::from_secs(1));
    sim.kill(dead.task);
    sim.append(PARTITIONS, &[("Cart-1", 1)]);
    let before = sim.test.now();
    let (caught_up, note) = (group.clone(), ledger.clone());
    let worked = sim.wait(async move {
        let handler = |stream, events| {
            let note = note.clone();
            async move {
                note.handle(stream, events, 0).await;
                Ok::<_, Error>(Handled::All)
            }
        };
        caught_up.run_until_caught_up(handler).await.unwrap()
    });
    assert_eq!((worked.events, worked.checkpoints.len()), (1, 8));
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
fn who_stalls_loses_its_partitions_and_stores_nothing_any_more() {
    // How far it gets before it knows is up to the seed: with some it tries to store.
    (0..60).for_each(stall_with);
}

fn stall_with(seed: u64) {
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
    assert_eq!(ledger.handled(), 0, "nobody knows yet that it stalls");
    sim.append(1, &[("Cart-1", 1), ("Cart-2", 1)]);
    sim.pass(LEASE);
    assert_eq!(ledger.handled(), 4);
    let asked = group.clone();
    let stored = sim.wait(async move { asked.checkpoints().await.unwrap() });
    // It wakes up: the handler that was under way comes to its end, and what it has done counts for nothing.
    gate.notify_one();
    sim.stall(stalled, false);
    sim.pass(Duration::from_secs(1));
    let asked = group;
    let after = sim.wait(async move { asked.checkpoints().await.unwrap() });
    assert_eq!(after, stored);
    let told = notices.0.lock().unwrap().clone();
    assert!(
        told.contains(&(0, WorkerNotice::Lost(Partition::FIRST))),
        "{told:?}"
    );
    sim.append(1, &[("Cart-1", 1)]);
    sim.pass(LEASE);
    assert_eq!(ledger.ends().get("Cart-1"), Some(&4));
}

#[test]
fn who_runs_notices_that_its_checkpoint_was_moved() {
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
    assert_eq!(ledger.handled(), 8, "although nothing new has come");
    let asked = group;
    let lag = sim.wait(async move { asked.lag().await.unwrap() });
    assert_eq!(lag.events, 0);
}

#[test]
fn who_cannot_reach_the_store_waits_and_goes_on() {
    let faults = Faults::seeded(8).throttle(1.0);
    let mut sim = Sim::with_faults(8, faults);
    let (notices, ledger) = (Notices::default(), Ledger::default());
    sim.append(PARTITIONS, &[("Cart-1", 3), ("Cart-2", 1)]);
    let group = notices.group(&sim.store, 0);
    sim.faults.resume();
    let running = start(&mut sim, group, &ledger);
    sim.pass(LEASE);
    let told = notices.0.lock().unwrap().clone();
    assert!(matches!(
        told.as_slice(),
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

    // For longer than its lease: it cannot know that its partitions are its own, and lets go.
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
fn a_worker_without_work_costs_little() {
    let mut sim = Sim::new(9);
    let (notices, ledger) = (Notices::default(), Ledger::default());
    sim.append(2, &[("Cart-1", 1)]);
    let group = notices.group(&sim.store, 0).poll(Duration::from_secs(2));
    let _running = start(&mut sim, group, &ledger);
    sim.pass(Duration::from_millis(9_900));
    sim.take_requests();
    sim.pass(LEASE);
    // Of each partition the last epoch every two seconds; and four beats, which read and write.
    assert_eq!(sim.take_requests(), 2 * 5 + 4 * 2);
}

#[test]
fn what_cannot_work_is_refused() {
    let mut sim = Sim::new(10);
    sim.append(1, &[("Cart-1", 1)]);
    let store = sim.store.clone();
    sim.wait(async move {
        let handler = async |_: StreamName, _: Vec<Recorded>| Ok::<_, Error>(Handled::All);
        let none = store.consumers("mail").lease(Duration::ZERO);
        let error = none.run_until_caught_up(handler).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidUse);
        assert_eq!(error.to_string(), "the lease is too short: lease=0ns");
        let named = store.consumers("two_words");
        let error = named.run_until_caught_up(handler).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidUse, "{error}");
        let elsewhere = store
            .db()
            .event_store(floe::events::EventStoreOptions::new("none"));
        let error = elsewhere
            .consumers("mail")
            .run_until_caught_up(handler)
            .await;
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Table);
    });
}
