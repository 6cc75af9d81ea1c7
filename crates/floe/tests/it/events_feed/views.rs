//! Exactly-once delivery: views are exact with poisoned streams, competing and killed workers, and lost responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use floe::events::EventStore;
use floe::events::feed::{ConsumerGroup, ViewTransaction};
use floe::{Error, Model};
use floe_store::env::SeededRandom;
use floe_testkit::fault::{Faults, Operation};

use super::sim::Sim;
use super::{StreamCount, count_events, expected_rows, name, view_rows};

fn store_with_view(sim: &mut Sim) -> EventStore {
    let store = sim.store.clone();
    let db = store.db().clone();
    sim.wait(async move { db.ensure_tables(&[StreamCount::SCHEMA]).await.unwrap() });
    store
}

/// A stream whose handler fails is parked, its later events are added to the dead letter, and a retry commits each of
/// them to the view once.
#[test]
fn parked_stream_is_committed_to_the_view_by_a_retry() {
    let mut sim = Sim::new(1);
    let store = store_with_view(&mut sim);
    sim.append(2, &[("Cart-bad", 5), ("Cart-good", 2)]);
    let is_fixed = Arc::new(AtomicBool::new(false));
    let view = store.consumers("view").events_max(2).attempts_max(2);
    let run = |view: ConsumerGroup, is_fixed: Arc<AtomicBool>| async move {
        let fails_for_poison = async |delivery: ViewTransaction<'_>| {
            let is_poison = delivery.events.iter().any(|event| event.index == 3);
            count_events(delivery).await?;
            if is_poison && delivery.stream.id() == "bad" && !is_fixed.load(Ordering::Relaxed) {
                return Err(floe_store::Error::validation("poison").into());
            }
            Ok(())
        };
        let summary = view
            .run_exactly_once_until_caught_up(fails_for_poison)
            .await
            .unwrap();
        let retried = view
            .retry_parked_exactly_once(fails_for_poison)
            .await
            .unwrap();
        (summary, retried)
    };
    let (summary, retried) = sim.wait(run(view.clone(), is_fixed.clone()));
    assert_eq!((summary.events, retried.events), (4, 0));
    assert_eq!((summary.parked[0].index, summary.parked[0].end), (2, 4));
    assert!(summary.parked[0].reason.contains("poison"));
    assert_eq!((retried.parked[0].index, retried.parked[0].end), (2, 5));

    sim.append(2, &[("Cart-bad", 2), ("Cart-good", 1)]);
    let (summary, retried) = sim.wait(run(view.clone(), is_fixed.clone()));
    assert_eq!((summary.events, summary.parked.len()), (1, 0));
    assert_eq!((retried.parked[0].index, retried.parked[0].end), (2, 7));
    let (queried, parking) = (store.clone(), view.clone());
    sim.wait(async move {
        let expected = [(name("Cart-bad"), (2, 0)), (name("Cart-good"), (3, 0))];
        assert_eq!(view_rows(&queried).await, expected.into());
        assert_eq!(parking.parked().await.unwrap().len(), 1);
    });

    is_fixed.store(true, Ordering::Relaxed);
    let (summary, retried) = sim.wait(run(view.clone(), is_fixed.clone()));
    assert_eq!((summary.events, retried.events), (0, 5));
    sim.append(2, &[("Cart-bad", 1)]);
    let (summary, _) = sim.wait(run(view.clone(), is_fixed));
    assert_eq!(summary.events, 1, "the stream is no longer parked");
    sim.wait(async move {
        assert_eq!(view.parked().await.unwrap(), []);
        assert_eq!(view_rows(&store).await, expected_rows(&store).await);
    });
}

/// Two workers compete with a consumer without a lease and two retries of parked streams. All are killed at any moment,
/// responses are lost, and the handler fails at random.
#[test]
fn view_is_exact_with_competing_killed_workers_and_lost_responses() {
    for seed in 0..25 {
        let random = Arc::new(SeededRandom::new(seed));
        let faults = Faults::seeded(seed)
            .throttle(0.03)
            .conflict(0.03)
            .lost_before(0.03)
            .lost_after(0.06)
            .only(|request| request.operation != Operation::Scan);
        let mut sim = Sim::with_faults(seed, faults);
        let store = store_with_view(&mut sim);
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
            view.run_exactly_once_until_caught_up(count_events)
                .await
                .unwrap();
            view.retry_parked_exactly_once(count_events).await.unwrap();
            assert_eq!(view.parked().await.unwrap(), []);
            assert_eq!(
                view_rows(&store).await,
                expected_rows(&store).await,
                "seed {seed}"
            );
        });
    }
}

async fn run_until_killed(store: EventStore, random: Arc<SeededRandom>, kind: u32) {
    let view = store.consumers("view").events_max(2).attempts_max(2);
    let fails_for_poison = async |delivery: ViewTransaction<'_>| {
        count_events(delivery).await?;
        // Retries succeed more often.
        match random.below(if kind < 3 { 2 } else { 6 }) {
            0 => Err(floe_store::Error::validation("poison").into()),
            _ => Ok::<_, Error>(()),
        }
    };
    let never = std::future::pending;
    match kind {
        0 | 1 => drop(view.run_exactly_once(never(), fails_for_poison).await),
        2 => {
            let partition = floe::events::feed::Partition::new(random.below(2) as u32);
            drop(
                view.partition(partition)
                    .run_exactly_once(fails_for_poison)
                    .await,
            );
        }
        _ => drop(view.retry_parked_exactly_once(fails_for_poison).await),
    }
}
