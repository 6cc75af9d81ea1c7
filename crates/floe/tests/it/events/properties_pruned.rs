//! Random writers as in [`properties`](super::properties), while answers are lost, reads are behind and events are pruned or
//! moved into the archive. What is expected is kept beside the store, since the events are not all there any more.

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
use super::support::{Note, Notes, Way, World, name, notes, stream, world};

/// How streams lose their first events.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Losing {
    /// They are gone, so that a state is found where one is kept beside the events.
    Pruned(&'static [Way]),
    /// As if programs came and went, each with another strategy: nobody builds upon a state of one before, which would
    /// miss what changes no version.
    PrunedByMany(&'static [Way]),
    /// They are in another table, so that a state can be found from all of them as well.
    Archived(&'static [Way]),
}

const LOSING: [Losing; 4] = [
    Losing::Pruned(&[Way::Snapshot, Way::Multi, Way::Custom]),
    // Both notice what changes no version.
    Losing::Pruned(&[Way::Rolling, Way::Custom]),
    Losing::PrunedByMany(&[Way::Snapshot, Way::Multi, Way::Rolling, Way::Custom]),
    Losing::Archived(&[Way::Unoptimized, Way::Snapshot, Way::Multi, Way::Custom]),
];

impl Losing {
    const fn ways(self) -> &'static [Way] {
        match self {
            Self::Pruned(ways) | Self::PrunedByMany(ways) | Self::Archived(ways) => ways,
        }
    }

    fn options(self) -> EventStoreOptions {
        match self {
            Self::Pruned(_) | Self::PrunedByMany(_) => EventStoreOptions::default(),
            Self::Archived(_) => EventStoreOptions::default().archive("old"),
        }
    }

    async fn lose(self, store: &EventStore, before: u64) {
        let stream = name("a");
        match self {
            Self::Pruned(_) | Self::PrunedByMany(_) => store.prune(&stream, before).await.unwrap(),
            Self::Archived(_) => store.archive(&stream, before).await.unwrap(),
        };
    }
}

/// The database as it is seen through reads that are behind and writes whose answers are lost.
fn faulty(world: &World, seed: u64) -> (Db, [Arc<FaultEngine>; 2]) {
    let claiming = RecordingEngine::new(world.probe.clone()).claiming(Capabilities::dynamodb());
    let behind = Faults::seeded(seed).stale_reads(0.2, Lag::Operations(20));
    let behind = Arc::new(FaultEngine::new(Arc::new(claiming), behind));
    let lost = Faults::seeded(seed).lost_before(0.1).lost_after(0.1);
    let lost = lost.only_on([Operation::WriteItem, Operation::TransactWriteItems]);
    let losing = Arc::new(FaultEngine::new(behind.clone(), lost));
    let env = world.test.env.clone();
    let db = Db::with_parts(losing.clone(), env, Arc::new(NoTime));
    (db, [behind, losing])
}

/// Appends one to three notes, or forgets all of them.
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

async fn run(seed: u64, losing: Losing) -> usize {
    let random = SeededRandom::new(seed);
    let world = world().await;
    let old = EventStoreOptions::new("old");
    world.other.event_store(old).ensure_table().await.unwrap();
    let (db, engines) = faulty(&world, seed);
    let any_store = || any_store_of(&random, &db, losing.options());
    let mut stores = [any_store(), any_store()];
    let mut expected = Vec::new();
    for step in 0..40 {
        // An event is known by what it says and by its time, and no two steps are at the same.
        world.test.advance(Duration::from_millis(1));
        if matches!(losing, Losing::PrunedByMany(_)) {
            stores = [any_store(), any_store()];
        }
        let store = &stores[random.below(2) as usize];
        let way = pick(&random, losing.ways());
        let what = format!("seed={seed} step={step} {losing:?} {way:?}");
        match random.below(8) {
            0 => {
                let version = world.other.events().version(&name("a")).await.unwrap();
                losing.lose(store, random.below(version + 2)).await;
            }
            1..5 => {
                let before = expected.clone();
                let load = match losing {
                    Losing::PrunedByMany(_) => Load::RequireLeader,
                    _ => pick(&random, &[Load::Require, Load::AnyCached]),
                };
                expected = match decide(&random, stream(store, "a", way).load(load)).await {
                    Ok(state) => state,
                    // Where what it was built upon was behind, and it left no events or they are pruned, nobody can know.
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::OutcomeUnknown, "{what} {error}");
                        let honest = world.other.event_store(losing.options());
                        notes(&stream(&honest, "a", way)).await
                    }
                };
                let goes_on = expected.starts_with(&before) || expected.is_empty();
                assert!(goes_on, "{what}: {before:?} {expected:?}");
            }
            _ => {
                let stream = stream(store, "a", way).load(Load::RequireLeader);
                let seen = stream.query(Clone::clone).await.unwrap();
                assert_eq!(seen, expected, "{what}");
            }
        }
    }
    let faults = engines.iter().map(|engine| engine.faults().len());
    faults.min().unwrap()
}

#[tokio::test]
async fn the_state_is_what_was_decided_whatever_is_lost_pruned_or_archived() {
    let mut faults = 0;
    for seed in 0..40 {
        for losing in LOSING {
            faults += run(seed, losing).await;
        }
    }
    assert!(faults > 150, "else the run would show nothing: {faults}");
}
