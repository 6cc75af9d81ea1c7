//! Random writers, limits, pages and strategies: every load returns the fold of all events.

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
use super::support::{
    Note, Notes, Strategy, World, append, name, note, noted, notes, stream, world,
};

/// The strategies that store all events, and can therefore be mixed.
const STRATEGIES: [Strategy; 4] = [
    Strategy::Unoptimized,
    Strategy::Snapshot,
    Strategy::Multi,
    Strategy::Custom,
];

pub(crate) fn pick<T: Copy>(random: &SeededRandom, of: &[T]) -> T {
    of[random.below(of.len() as u64) as usize]
}

/// The compressions of bodies.
const COMPRESSIONS: &[Compression] = &[
    Compression::None,
    Compression::Brotli,
    Compression::BrotliFrom(100),
    #[cfg(feature = "zstd")]
    Compression::Zstd,
];

/// A store with random limits, page size and cache.
pub(crate) fn any_store(random: &SeededRandom, db: &Db) -> EventStore {
    any_store_of(random, db, EventStoreOptions::default())
}

/// Like [`any_store`], based on these options.
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

/// The fold of all events of a stream, and its version.
async fn folded(world: &World, id: &str) -> (Vec<u32>, u64) {
    folded_until(world, id, u64::MAX).await
}

/// The fold of the events of a stream before this index, and their number.
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

/// Decides on the state: adds one to three notes, or removes all.
async fn decide(
    random: &SeededRandom,
    store: &EventStore,
    id: &str,
    strategy: Strategy,
    load: Load,
) {
    let count = random.below(4);
    let decide = |state: &Vec<u32>| {
        let next = state.last().map_or(0, |last| last + 1);
        let events = match count {
            0 => vec![Note::Cleared],
            _ => (0..count).map(|at| Note::Noted(next + at as u32)).collect(),
        };
        Ok::<_, Error>(events)
    };
    let stream = stream(store, id, strategy).load(load);
    stream.transact(decide).await.unwrap();
}

async fn run(seed: u64) {
    let random = SeededRandom::new(seed);
    let world = world().await;
    let stores = [any_store(&random, &world.db), any_store(&random, &world.db)];
    for step in 0..60 {
        let store = &stores[random.below(2) as usize];
        let id = pick(&random, &["a", "b"]);
        let strategy = pick(&random, &STRATEGIES);
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
            1..5 => decide(&random, store, id, strategy, pick(&random, &loads)).await,
            5 => world.test.advance(Duration::from_secs(random.below(3))),
            _ => {
                let load = pick(&random, &loads[..2]);
                let stream = stream(store, id, strategy).load(load);
                let seen = stream.query_versioned(|state, version| (state.clone(), version));
                let expected = folded(&world, id).await;
                let what = format!("seed={seed} step={step} {strategy:?} {load:?}");
                assert_eq!(seen.await.unwrap(), expected, "{what}");
            }
        }
    }
    check_chain(&world).await;
}

/// Checks that the batches are contiguous, the Tip contains their size, and only the Tip has unfolds.
async fn check_chain(world: &World) {
    for id in ["a", "b"] {
        let mut items = world.items(&name(id)).await;
        let Some(tip) = items.pop() else { continue };
        let number =
            |item: &Item, name: &str| item.get(name).unwrap().as_n().unwrap().to_u64().unwrap();
        let length = |item: &Item, list: &str| item.get(list).unwrap().as_l().unwrap().len() as u64;
        let (mut next, mut size) = (0, 0);
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
            let types = types.map(|event_type| event_type.as_s().unwrap().len() + 40);
            size += (bodies.sum::<usize>() + types.sum::<usize>()) as u64;
        }
        assert_eq!(number(&tip, "b"), size);
        assert_eq!(number(&tip, "n") - length(&tip, "e"), next);
        assert!(number(&tip, "a") <= length(&tip, "e"));
    }
}

#[tokio::test]
async fn every_strategy_loads_the_fold_of_all_events() {
    for seed in 0..120 {
        run(seed).await;
    }
}

/// Writes alternately through two stores with separate caches, whose states must agree.
async fn alternate(strategy: Strategy) {
    let world = world().await;
    let caching = Caching::Sliding(Duration::from_secs(60));
    let store = || world.calving(2).cached(caching, 1 << 20);
    let stores = [store(), store()];
    let mut expected = Vec::new();
    for one in 0..40 {
        let stream = stream(&stores[one as usize % 2], "a", strategy).load(Load::AnyCached);
        note(&stream, one).await.unwrap();
        expected.push(one);
        assert_eq!(notes(&stream).await, expected, "{strategy:?}");
    }
    for store in &stores {
        let all = notes(&stream(store, "a", strategy)).await;
        assert_eq!(all, expected, "{strategy:?}");
    }
}

#[tokio::test]
async fn stores_with_separate_caches_agree() {
    for strategy in STRATEGIES.into_iter().chain([Strategy::Rolling]) {
        alternate(strategy).await;
    }
}

/// The last note only.
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
            Note::Whole(notes) | Note::Alternative(notes) => notes.last().copied(),
        }
    }

    fn access() -> Access<Self> {
        Access::LatestKnownEvent
    }
}

#[tokio::test]
async fn latest_known_event_is_the_state_for_all_writers() {
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
async fn stale_read_returns_an_earlier_state_and_appends_detect_it() {
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
            let strategy = pick(&random, &STRATEGIES);
            if random.below(2) == 0 {
                decide(&random, store, "a", strategy, Load::Require).await;
                continue;
            }
            let load = pick(&random, &[Load::Require, Load::RequireLeader]);
            let stream = stream(store, "a", strategy).load(load);
            let read = |state: &Vec<u32>, version| (state.clone(), version);
            let (state, version) = stream.query_versioned(read).await.unwrap();
            let end = match load {
                Load::RequireLeader => u64::MAX,
                _ => version,
            };
            let expected = folded_until(&world, "a", end).await;
            assert_eq!(
                (state, version),
                expected,
                "seed={seed} step={step} {strategy:?} {load:?}"
            );
        }
        check_chain(&world).await;
        // Each decision adds the successor of the last note, so a decision on a stale state would leave a gap.
        let (all, _) = folded(&world, "a").await;
        assert_eq!(all, Vec::from_iter(0..all.len() as u32), "seed={seed}");
        stale += engine.faults().len();
    }
    assert!(stale > 100, "the test needs stale reads: {stale}");
}
