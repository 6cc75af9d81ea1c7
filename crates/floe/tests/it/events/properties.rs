//! Random writers, limits, pages and strategies: the state is what all events come to, however it is found.

use std::sync::Arc;
use std::time::Duration;

use floe::events::{
    Access, Caching, Compression, Decider, Event, EventStore, EventStoreOptions, Load, TipLimits,
};
use floe::{Db, Error};
use floe_store::Item;
use floe_store::env::SeededRandom;
use floe_testkit::fault::{FaultEngine, Faults, Lag};

use super::no_time::NoTime;
use super::support::{Note, Notes, Way, World, append, name, note, noted, notes, stream, world};

/// The ways that keep all events, so that they can be mixed.
const WAYS: [Way; 4] = [Way::Unoptimized, Way::Snapshot, Way::Multi, Way::Custom];

pub(crate) fn pick<T: Copy>(random: &SeededRandom, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

/// How bodies may be made smaller.
const COMPRESSIONS: &[Compression] = &[
    Compression::None,
    Compression::Brotli,
    Compression::BrotliFrom(100),
    #[cfg(feature = "zstd")]
    Compression::Zstd,
];

/// A store with limits and pages at random, which keeps states or does not.
pub(crate) fn any_store(random: &SeededRandom, db: &Db) -> EventStore {
    any_store_of(random, db, EventStoreOptions::default())
}

/// As [`any_store`], with these options besides.
pub(crate) fn any_store_of(
    random: &SeededRandom,
    db: &Db,
    options: EventStoreOptions,
) -> EventStore {
    let mut limits = TipLimits::default();
    limits.events_max = pick(random, &[None, Some(1), Some(2), Some(5)]);
    limits.event_bytes_max = pick(random, &[50, 200, 32 << 10]);
    limits.bytes_max = pick(random, &[100, 300, 32 << 10]);
    let options = options
        .tip(limits)
        .compression(pick(random, COMPRESSIONS))
        .page_items(pick(random, &[1, 2, 3, 32]));
    let store = db.event_store(options);
    let bytes = pick(random, &[2_000, 1 << 20]);
    match random.below(4) {
        0 => store,
        1 => store.cached(Caching::Fixed(Duration::from_secs(3)), bytes),
        _ => store.cached(Caching::Sliding(Duration::from_secs(3)), bytes),
    }
}

/// What all events of a stream come to, read as such.
async fn folded(world: &World, id: &str) -> (Vec<u32>, u64) {
    folded_until(world, id, u64::MAX).await
}

/// What the events of a stream before this index come to, read as such.
async fn folded_until(world: &World, id: &str, end: u64) -> (Vec<u32>, u64) {
    let at = name(id);
    let events = world.other.events();
    let events = events.read(&at).max_count(end).collect().await.unwrap();
    let notes = events.iter().map(|read| {
        let event = Note::decode(&read.event.event_type, &read.event.data);
        event.unwrap().unwrap()
    });
    let notes: Vec<_> = notes.collect();
    (Notes::fold(Notes::initial(), &notes), notes.len() as u64)
}

/// Decides upon what is there: one to three notes, or none of them any more.
async fn decide(random: &SeededRandom, store: &EventStore, id: &str, way: Way, load: Load) {
    let count = random.below(4);
    let decide = |state: &Vec<u32>| {
        let next = state.last().map_or(0, |last| last + 1);
        let events = match count {
            0 => vec![Note::Cleared],
            _ => (0..count).map(|at| Note::Noted(next + at as u32)).collect(),
        };
        Ok::<_, Error>(events)
    };
    let stream = stream(store, id, way).load(load);
    stream.transact(decide).await.unwrap();
}

async fn run(seed: u64) {
    let random = SeededRandom::new(seed);
    let world = world().await;
    let stores = [any_store(&random, &world.db), any_store(&random, &world.db)];
    for step in 0..60 {
        let store = &stores[random.below(2) as usize];
        let id = pick(&random, &["a", "b"]);
        let way = pick(&random, &WAYS);
        let loads = [
            Load::Require,
            Load::RequireLeader,
            Load::AnyCached,
            Load::AssumeEmpty,
        ];
        match random.below(10) {
            0 => {
                append(store, id, noted([step])).await;
            }
            1..5 => decide(&random, store, id, way, pick(&random, &loads)).await,
            5 => world.test.advance(Duration::from_secs(random.below(3))),
            _ => {
                let load = pick(&random, &loads[..2]);
                let stream = stream(store, id, way).load(load);
                let seen = stream.query_versioned(|state, version| (state.clone(), version));
                let expected = folded(&world, id).await;
                let what = format!("seed={seed} step={step} {way:?} {load:?}");
                assert_eq!(seen.await.unwrap(), expected, "{what}");
            }
        }
    }
    check_chain(&world).await;
}

/// The batches follow upon each other, the Tip tells what they weigh, and nothing but the Tip has unfolds.
async fn check_chain(world: &World) {
    for id in ["a", "b"] {
        let mut items = world.items(&name(id)).await;
        let Some(tip) = items.pop() else { continue };
        let number =
            |item: &Item, name: &str| item.get(name).unwrap().as_n().unwrap().to_u64().unwrap();
        let length = |item: &Item, list: &str| item.get(list).unwrap().as_l().unwrap().len() as u64;
        let (mut next, mut weight) = (0, 0);
        for calf in &items {
            assert_eq!(number(calf, "i"), next);
            next = number(calf, "n");
            assert_eq!(length(calf, "e"), next - number(calf, "i"));
            assert_eq!(length(calf, "c"), length(calf, "e"));
            assert_eq!(length(calf, "u"), 0);
            let bodies = calf.get("e").unwrap().as_l().unwrap().iter();
            let bodies = bodies.map(|event| {
                let body = event.as_m().unwrap().get("d");
                body.map_or(0, |body| body.as_b().unwrap().len())
            });
            let types = calf.get("c").unwrap().as_l().unwrap().iter();
            let types = types.map(|case| case.as_s().unwrap().len() + 40);
            weight += (bodies.sum::<usize>() + types.sum::<usize>()) as u64;
        }
        assert_eq!(number(&tip, "b"), weight);
        assert_eq!(number(&tip, "n") - length(&tip, "e"), next);
        assert!(number(&tip, "a") <= length(&tip, "e"));
    }
}

#[tokio::test]
async fn the_state_is_the_fold_of_all_events_however_it_is_found() {
    for seed in 0..120 {
        run(seed).await;
    }
}

/// Two stores that keep a state each and write in turn, in ways that must agree.
async fn alternate(way: Way) {
    let world = world().await;
    let caching = Caching::Sliding(Duration::from_secs(60));
    let store = || world.calving(2).cached(caching, 1 << 20);
    let stores = [store(), store()];
    let mut expected = Vec::new();
    for one in 0..40 {
        let stream = stream(&stores[one as usize % 2], "a", way).load(Load::AnyCached);
        note(&stream, one).await.unwrap();
        expected.push(one);
        assert_eq!(notes(&stream).await, expected, "{way:?}");
    }
    for store in &stores {
        let all = notes(&stream(store, "a", way)).await;
        assert_eq!(all, expected, "{way:?}");
    }
}

#[tokio::test]
async fn two_who_keep_states_and_write_in_turn_agree() {
    for way in WAYS.into_iter().chain([Way::Rolling]) {
        alternate(way).await;
    }
}

/// The last note alone.
struct Last;

impl Decider for Last {
    const CATEGORY: &'static str = "Notes";
    type Id = str;
    type Event = Note;
    type State = Option<u32>;

    fn initial() -> Option<u32> {
        None
    }

    fn evolve(_: Option<u32>, event: &Note) -> Option<u32> {
        match event {
            Note::Noted(note) => Some(*note),
            Note::Cleared => None,
            Note::Whole(notes) | Note::Kept(notes) => notes.last().copied(),
        }
    }

    fn access() -> Access<Self> {
        Access::LatestKnownEvent
    }
}

#[tokio::test]
async fn the_latest_event_is_the_state_whoever_wrote_it() {
    for seed in 0..30 {
        let random = SeededRandom::new(seed);
        let world = world().await;
        let stores = [any_store(&random, &world.db), any_store(&random, &world.db)];
        let mut last = None;
        for step in 0..30 {
            let store = &stores[random.below(2) as usize];
            match random.below(3) {
                0 => {
                    append(store, "a", noted([step])).await;
                    last = Some(step);
                }
                1 => {
                    let decide = |state: &Option<u32>| {
                        let next = state.map_or(0, |last| last + 1);
                        Ok::<_, Error>((next, vec![Note::Noted(next)]))
                    };
                    last = Some(store.stream::<Last>("a").transact(decide).await.unwrap());
                }
                _ => {
                    let seen = store
                        .stream::<Last>("a")
                        .query(|state| *state)
                        .await
                        .unwrap();
                    assert_eq!(seen, last, "seed={seed} step={step}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_read_that_is_behind_shows_a_state_that_there_was_and_no_append_is_built_upon_it() {
    let mut stale = 0;
    for seed in 0..40 {
        let random = SeededRandom::new(seed);
        let world = world().await;
        let faults = Faults::seeded(seed).stale_reads(0.5, Lag::Operations(30));
        let engine = Arc::new(FaultEngine::new(world.probe.clone(), faults));
        let db = Db::with_parts(engine.clone(), world.test.env.clone(), Arc::new(NoTime));
        let stores = [any_store(&random, &db), any_store(&random, &db)];
        for step in 0..40 {
            let store = &stores[random.below(2) as usize];
            let way = pick(&random, &WAYS);
            if random.below(2) == 0 {
                decide(&random, store, "a", way, Load::Require).await;
                continue;
            }
            let load = pick(&random, &[Load::Require, Load::RequireLeader]);
            let stream = stream(store, "a", way).load(load);
            let look = |state: &Vec<u32>, version| (state.clone(), version);
            let (state, version) = stream.query_versioned(look).await.unwrap();
            let end = match load {
                Load::RequireLeader => u64::MAX,
                _ => version,
            };
            let expected = folded_until(&world, "a", end).await;
            assert_eq!(
                (state, version),
                expected,
                "seed={seed} step={step} {way:?} {load:?}"
            );
        }
        check_chain(&world).await;
        // Each decision goes on from the last note, so one that was built upon another state would show.
        let (all, _) = folded(&world, "a").await;
        assert_eq!(all, Vec::from_iter(0..all.len() as u32), "seed={seed}");
        stale += engine.faults().len();
    }
    assert!(stale > 100, "else the run would show nothing");
}
