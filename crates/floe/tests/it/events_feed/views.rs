//! Views are exact: with poison, workers that compete, die at any moment, and answers that are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use floe::events::EventStore;
use floe::events::feed::{ConsumerGroup, ViewTransaction};
use floe::{Error, Model};
use floe_store::env::SeededRandom;
use floe_testkit::fault::{Faults, Operation};

use super::sim::Sim;
use super::{Seen, name, see, seen, written};

fn with_view(sim: &mut Sim) -> EventStore {
    let store = sim.store.clone();
    let db = store.db().clone();
    sim.wait(async move { db.ensure_tables(&[Seen::SCHEMA]).await.unwrap() });
    store
}

/// A stream that the handler cannot get on with is parked, what comes later is parked with it, and all of it gets into the
/// view once when it is tried again.
#[test]
fn a_poison_stream_is_parked_and_gets_into_the_view_later() {
    let mut sim = Sim::new(1);
    let store = with_view(&mut sim);
    sim.append(2, &[("Cart-bad", 5), ("Cart-good", 2)]);
    let is_cured = Arc::new(AtomicBool::new(false));
    let view = store.consumers("view").events_max(2).tries_max(2);
    let run = |view: ConsumerGroup, is_cured: Arc<AtomicBool>| async move {
        let picky = async |delivery: ViewTransaction<'_>| {
            let is_poison = delivery.events.iter().any(|event| event.index == 3);
            see(delivery).await?;
            match is_poison && delivery.stream.id() == "bad" && !is_cured.load(Ordering::Relaxed) {
                true => Err(floe_store::Error::validation("poison").into()),
                false => Ok(()),
            }
        };
        let worked = view.run_exactly_once_until_caught_up(picky).await.unwrap();
        let retried = view.retry_parked_exactly_once(picky).await.unwrap();
        (worked, retried)
    };
    let (worked, retried) = sim.wait(run(view.clone(), is_cured.clone()));
    assert_eq!((worked.events, retried.events), (4, 0));
    assert_eq!((worked.parked[0].index, worked.parked[0].end), (2, 4));
    assert!(worked.parked[0].reason.contains("poison"));
    assert_eq!((retried.parked[0].index, retried.parked[0].end), (2, 5));

    sim.append(2, &[("Cart-bad", 2), ("Cart-good", 1)]);
    let (worked, retried) = sim.wait(run(view.clone(), is_cured.clone()));
    assert_eq!((worked.events, worked.parked.len()), (1, 0));
    assert_eq!((retried.parked[0].index, retried.parked[0].end), (2, 7));
    let (asked, stored) = (store.clone(), view.clone());
    sim.wait(async move {
        let expected = [(name("Cart-bad"), (2, 0)), (name("Cart-good"), (3, 0))];
        assert_eq!(seen(&asked).await, expected.into());
        assert_eq!(stored.parked().await.unwrap().len(), 1);
    });

    is_cured.store(true, Ordering::Relaxed);
    let (worked, retried) = sim.wait(run(view.clone(), is_cured.clone()));
    assert_eq!((worked.events, retried.events), (0, 5));
    sim.append(2, &[("Cart-bad", 1)]);
    let (worked, _) = sim.wait(run(view.clone(), is_cured));
    assert_eq!(worked.events, 1, "it is parked no more");
    sim.wait(async move {
        assert_eq!(view.parked().await.unwrap(), []);
        assert_eq!(seen(&store).await, written(&store).await);
    });
}

/// Two workers compete with one that holds no lease and two that try parked streams again. All are killed at any moment,
/// answers are lost, and a stream is poison now and then.
#[test]
fn a_view_is_exact_whoever_competes_dies_or_loses_answers() {
    for seed in 0..25 {
        let random = Arc::new(SeededRandom::new(seed));
        let faults = Faults::seeded(seed)
            .throttle(0.03)
            .conflict(0.03)
            .lost_before(0.03)
            .lost_after(0.06)
            .only(|request| request.operation != Operation::Scan);
        let mut sim = Sim::with_faults(seed, faults);
        let store = with_view(&mut sim);
        for _ in 0..5 {
            for _ in 0..3 {
                let stream = format!("Cart-{}", random.below(5));
                sim.append(2, &[(stream.as_str(), 1 + random.below(4))]);
            }
            sim.faults.resume();
            let mut tasks = Vec::new();
            for kind in 0..5 {
                let (store, random) = (store.clone(), random.clone());
                tasks.push(sim.spawn(run_until_killed(store, random, kind)));
            }
            let turns = 50 + random.below(400);
            for _ in 0..turns {
                sim.turn();
            }
            sim.pass(std::time::Duration::from_millis(random.below(3_000)));
            for task in tasks {
                sim.kill(task);
            }
            sim.faults.pause();
        }
        let view = store.consumers("view");
        sim.wait(async move {
            view.run_exactly_once_until_caught_up(see).await.unwrap();
            view.retry_parked_exactly_once(see).await.unwrap();
            assert_eq!(view.parked().await.unwrap(), []);
            assert_eq!(seen(&store).await, written(&store).await, "seed {seed}");
        });
    }
}

async fn run_until_killed(store: EventStore, random: Arc<SeededRandom>, kind: u32) {
    let view = store.consumers("view").events_max(2).tries_max(2);
    let picky = async |delivery: ViewTransaction<'_>| {
        see(delivery).await?;
        // Who tries again gets on more often.
        match random.below(if kind < 3 { 2 } else { 6 }) {
            0 => Err(floe_store::Error::validation("poison").into()),
            _ => Ok::<_, Error>(()),
        }
    };
    let never = std::future::pending;
    match kind {
        0 | 1 => drop(view.run_exactly_once(never(), picky).await),
        2 => {
            let partition = floe::events::feed::Partition::new(random.below(2) as u32);
            drop(view.partition(partition).run_exactly_once(picky).await);
        }
        _ => drop(view.retry_parked_exactly_once(picky).await),
    }
}
