//! Random writers as in [`properties`](super::properties), with lost responses, stale reads, pruning and archiving. The
//! expected state is tracked by the test, since the store no longer has all events.

use std::sync::Arc;
use std::time::Duration;

use floe::events::{EventStore, EventStoreOptions, Load, Stream};
use floe::{Db, Error, ErrorKind};
use floe_store::Capabilities;
use floe_store::env::SeededRandom;
use floe_testkit::fault::{FaultEngine, Faults, Lag, Operation};
use floe_testkit::record::RecordingEngine;

use super::no_time::NoTime;
use super::properties::{any_store_of, pick};
use super::support::{Note, Notes, Strategy, World, name, notes, stream, world};

/// How the first events of a stream are removed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Removal {
    /// Pruned: the state is loaded from unfolds.
    Pruned(&'static [Strategy]),
    /// Pruned, by processes that start and end with different strategies and empty caches: a state cached by another
    /// strategy would miss changes that do not change the version.
    PrunedByShortLived(&'static [Strategy]),
    /// Archived: the state can also be loaded from all events.
    Archived(&'static [Strategy]),
}

const REMOVALS: [Removal; 4] = [
    Removal::Pruned(&[Strategy::Snapshot, Strategy::Multi, Strategy::Custom]),
    // Both detect changes that do not change the version.
    Removal::Pruned(&[Strategy::Rolling, Strategy::Custom]),
    Removal::PrunedByShortLived(&[
        Strategy::Snapshot,
        Strategy::Multi,
        Strategy::Rolling,
        Strategy::Custom,
    ]),
    Removal::Archived(&[
        Strategy::Unoptimized,
        Strategy::Snapshot,
        Strategy::Multi,
        Strategy::Custom,
    ]),
];

impl Removal {
    const fn strategies(self) -> &'static [Strategy] {
        match self {
            Self::Pruned(strategies)
            | Self::PrunedByShortLived(strategies)
            | Self::Archived(strategies) => strategies,
        }
    }

    fn options(self) -> EventStoreOptions {
        match self {
            Self::Pruned(_) | Self::PrunedByShortLived(_) => EventStoreOptions::default(),
            Self::Archived(_) => EventStoreOptions::default().archive("old"),
        }
    }

    async fn remove(self, store: &EventStore, before: u64) {
        let stream = name("a");
        match self {
            Self::Pruned(_) | Self::PrunedByShortLived(_) => {
                store.prune(&stream, before).await.unwrap()
            }
            Self::Archived(_) => store.archive(&stream, before).await.unwrap(),
        };
    }
}

/// A database with stale reads and lost responses of writes.
fn faulty(world: &World, seed: u64) -> (Db, [Arc<FaultEngine>; 2]) {
    let claiming = RecordingEngine::new(world.probe.clone()).claiming(Capabilities::dynamodb());
    let stale = Faults::seeded(seed).stale_reads(0.2, Lag::Operations(20));
    let stale = Arc::new(FaultEngine::new(Arc::new(claiming), stale));
    let lost = Faults::seeded(seed).lost_before(0.1).lost_after(0.1);
    let lost = lost.only_on([Operation::WriteItem, Operation::TransactWriteItems]);
    let losing = Arc::new(FaultEngine::new(stale.clone(), lost));
    let env = world.test.env.clone();
    let db = Db::with_parts(losing.clone(), env, Arc::new(NoTime));
    (db, [stale, losing])
}

/// Adds one to three notes, or removes all.
async fn decide(random: &SeededRandom, stream: Stream<Notes>) -> Result<Vec<u32>, Error> {
    let count = random.below(4) as u32;
    let decide = |state: &Vec<u32>| {
        let next = state.last().map_or(0, |last| last + 1);
        let (state, events) = match count {
            0 => (Vec::new(), vec![Note::Cleared]),
            _ => {
                let new = next..next + count;
                let state = state.iter().copied().chain(new.clone());
                (state.collect(), new.map(Note::Noted).collect())
            }
        };
        Ok::<_, Error>((state, events))
    };
    stream.transact(decide).await
}

async fn run(seed: u64, removal: Removal) -> usize {
    let random = SeededRandom::new(seed);
    let world = world().await;
    let old = EventStoreOptions::new("old");
    world.other.event_store(old).ensure_table().await.unwrap();
    let (db, engines) = faulty(&world, seed);
    let any_store = || any_store_of(&random, &db, removal.options());
    let mut stores = [any_store(), any_store()];
    let mut expected = Vec::new();
    for step in 0..40 {
        // Reconciling compares bodies and times of events, so each step has another time.
        world.test.advance(Duration::from_millis(1));
        if matches!(removal, Removal::PrunedByShortLived(_)) {
            stores = [any_store(), any_store()];
        }
        let store = &stores[random.below(2) as usize];
        let strategy = pick(&random, removal.strategies());
        let what = format!("seed={seed} step={step} {removal:?} {strategy:?}");
        match random.below(8) {
            0 => {
                let version = world.other.events().version(&name("a")).await.unwrap();
                removal.remove(store, random.below(version + 2)).await;
            }
            1..5 => {
                let before = expected.clone();
                let load = match removal {
                    Removal::PrunedByShortLived(_) => Load::RequireLeader,
                    _ => pick(&random, &[Load::Require, Load::AnyCached]),
                };
                expected = match decide(&random, stream(store, "a", strategy).load(load)).await {
                    Ok(state) => state,
                    // Undecidable after a stale read if only unfolds were written or the events are pruned.
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{what} {error}");
                        let honest = world.other.event_store(removal.options());
                        notes(&stream(&honest, "a", strategy)).await
                    }
                };
                let is_continued = expected.starts_with(&before) || expected.is_empty();
                assert!(is_continued, "{what}: {before:?} {expected:?}");
            }
            _ => {
                let stream = stream(store, "a", strategy).load(Load::RequireLeader);
                let seen = stream.query(Clone::clone).await.unwrap();
                assert_eq!(seen, expected, "{what}");
            }
        }
    }
    let faults = engines.iter().map(|engine| engine.faults().len());
    faults.min().unwrap()
}

#[tokio::test]
async fn state_is_correct_with_faults_pruning_and_archiving() {
    let mut faults = 0;
    for seed in 0..40 {
        for removal in REMOVALS {
            faults += run(seed, removal).await;
        }
    }
    assert!(faults > 150, "the test needs faults: {faults}");
}
