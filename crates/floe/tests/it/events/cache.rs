//! Cached states: the requests that they save, and their freshness.

use std::sync::Arc;
use std::time::Duration;

use floe::Db;
use floe::events::{Caching, EventStore, EventStoreOptions, Load};
use floe_store::Item;
use floe_store::op::DeleteItem;
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Lag, Operation};

use super::gate::{Gate, Side};
use super::no_time::NoTime;
use super::support::{Strategy, World, append, name, note, noted, notes, stream, world};

const MINUTE: Duration = Duration::from_secs(60);

fn cached(world: &World) -> EventStore {
    world.store().cached(Caching::Sliding(MINUTE), 1 << 20)
}

/// The strategies that load all notes.
const STRATEGIES: [Strategy; 5] = [
    Strategy::Unoptimized,
    Strategy::Snapshot,
    Strategy::Multi,
    Strategy::Rolling,
    Strategy::Custom,
];

const GET: &str = r#"GetItem events {"i": 2147483647, "p": "Notes-a"} eventual"#;

#[tokio::test]
async fn cached_state_is_refreshed_with_one_get() {
    for strategy in STRATEGIES {
        let world = world().await;
        let store = cached(&world);
        let own = stream(&store, "a", strategy);
        note(&own, 0).await.unwrap();
        world.sent();
        assert_eq!(notes(&own).await, [0], "{strategy:?}");
        assert_eq!(world.sent(), [GET], "the stream is unchanged: {strategy:?}");
        note(&stream(&world.other.events(), "a", strategy), 1)
            .await
            .unwrap();
        assert_eq!(notes(&own).await, [0, 1], "{strategy:?}");
        assert_eq!(world.sent(), [GET], "{strategy:?}");
        note(&own, 2).await.unwrap();
        assert_eq!(
            world.operations(),
            ["GetItem", "UpdateItem"],
            "{strategy:?}"
        );
        assert_eq!(notes(&own).await, [0, 1, 2], "{strategy:?}");
    }
}

#[tokio::test]
async fn cached_state_is_refreshed_from_new_calves_only() {
    let world = world().await;
    let store = cached(&world);
    let own = stream(&store, "a", Strategy::Unoptimized);
    append(&world.other.events(), "a", noted([0, 1])).await;
    notes(&own).await;
    let calving = EventStoreOptions::default().tip_events_max(1);
    let other = world.other.event_store(calving);
    for one in [2, 3, 4] {
        append(&other, "a", noted([one])).await;
    }
    world.sent();
    assert_eq!(notes(&own).await, [0, 1, 2, 3, 4]);
    let query = r#"Query events p = "Notes-a" AND i < 4 backward limit 32"#;
    assert_eq!(world.sent(), [GET, query]);
}

#[tokio::test]
async fn load_option_decides_whether_cached_state_is_used() {
    let world = world().await;
    let store = cached(&world);
    let own = |load| stream(&store, "a", Strategy::Snapshot).load(load);
    assert!(notes(&own(Load::AnyCached)).await.is_empty());
    assert_eq!(world.operations(), ["GetItem"], "nothing was cached");
    note(&own(Load::Require), 0).await.unwrap();
    append(&world.other.events(), "a", noted([1])).await;
    world.sent();

    assert_eq!(notes(&own(Load::AnyCached)).await, [0]);
    world.test.advance(Duration::from_secs(10));
    let stale = |seconds| own(Load::AllowStale(Duration::from_secs(seconds)));
    assert_eq!(notes(&stale(10)).await, [0]);
    assert!(notes(&own(Load::AssumeEmpty)).await.is_empty());
    assert!(world.sent().is_empty());

    assert_eq!(notes(&stale(9)).await, [0, 1]);
    assert_eq!(world.operations(), ["GetItem"]);
    assert_eq!(
        notes(&stale(9)).await,
        [0, 1],
        "the state was just refreshed"
    );
    assert!(world.sent().is_empty());
    append(&world.other.events(), "a", noted([2])).await;
    assert_eq!(notes(&own(Load::RequireLeader)).await, [0, 1, 2]);
    assert_eq!(world.sent(), [GET.trim_end_matches(" eventual")]);
}

#[tokio::test]
async fn uncached_load_reads_consistently_only_for_require_leader() {
    let world = world().await;
    for (load, strategy, request) in [
        (Load::Require, Strategy::Snapshot, GET),
        (Load::AnyCached, Strategy::Snapshot, GET),
        (
            Load::RequireLeader,
            Strategy::Snapshot,
            GET.trim_end_matches(" eventual"),
        ),
        (
            Load::Require,
            Strategy::Unoptimized,
            r#"Query events p = "Notes-a" limit 32 eventual"#,
        ),
        (
            Load::RequireLeader,
            Strategy::Unoptimized,
            r#"Query events p = "Notes-a" limit 32"#,
        ),
    ] {
        notes(&stream(&world.store(), "a", strategy).load(load)).await;
        assert_eq!(world.sent(), [request], "{load:?}");
    }
}

#[tokio::test]
async fn append_detects_a_decision_on_a_stale_state() {
    for strategy in STRATEGIES {
        let world = world().await;
        let store = cached(&world);
        note(&stream(&store, "a", strategy), 0).await.unwrap();
        note(&stream(&world.other.events(), "a", strategy), 1)
            .await
            .unwrap();
        world.sent();
        let own = stream(&store, "a", strategy).load(Load::AnyCached);
        note(&own, 2).await.unwrap();
        assert_eq!(
            world.operations(),
            ["UpdateItem", "UpdateItem"],
            "{strategy:?}"
        );
        assert_eq!(notes(&own).await, [0, 1, 2], "{strategy:?}");
        assert!(world.sent().is_empty());
    }
}

#[tokio::test]
async fn concurrent_loads_of_an_uncached_stream_send_one_read() {
    for (strategy, read) in [
        (Strategy::Snapshot, "get_item"),
        (Strategy::Unoptimized, "query"),
    ] {
        let world = world().await;
        append(&world.store(), "a", noted([0, 1])).await;
        world.sent();
        let gate = Arc::new(Gate::new(world.probe.clone()));
        let db = Db::with_parts(gate.clone(), world.test.env.clone(), Arc::new(NoTime));
        let store = db.events().cached(Caching::Sliding(MINUTE), 1 << 20);
        let mut held = gate.hold(read, Side::After);
        let tasks = (0..20).map(|_| {
            let stream = stream(&store, "a", strategy);
            tokio::spawn(async move { notes(&stream).await })
        });
        let tasks: Vec<_> = tasks.collect();
        held.arrived().await;
        // Until every task has requested the state.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        held.open();
        for task in tasks {
            assert_eq!(task.await.unwrap(), [0, 1]);
        }
        assert_eq!(world.sent().len(), 1, "{strategy:?}");
    }
}

#[tokio::test]
async fn concurrent_loads_with_require_leader_read_separately() {
    let world = world().await;
    append(&world.store(), "a", noted([0])).await;
    world.sent();
    let store = cached(&world);
    let tasks = (0..3).map(|_| {
        let stream = stream(&store, "a", Strategy::Snapshot).load(Load::RequireLeader);
        tokio::spawn(async move { notes(&stream).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        assert_eq!(task.await.unwrap(), [0]);
    }
    assert_eq!(world.sent(), [GET.trim_end_matches(" eventual"); 3]);
}

#[tokio::test]
async fn sliding_window_is_extended_by_use_and_fixed_window_is_not() {
    for (caching, stays_cached) in [
        (Caching::Sliding(MINUTE), true),
        (Caching::Fixed(MINUTE), false),
    ] {
        let world = world().await;
        let store = world.store().cached(caching, 1 << 20);
        let own = stream(&store, "a", Strategy::Snapshot).load(Load::AnyCached);
        note(&own, 0).await.unwrap();
        world.sent();
        for _ in 0..3 {
            world.test.advance(Duration::from_secs(40));
            notes(&own).await;
        }
        assert_eq!(world.sent().is_empty(), stays_cached, "{caching:?}");
    }
}

#[tokio::test]
async fn state_larger_than_the_cache_is_not_cached() {
    let world = world().await;
    let store = world.store().cached(Caching::Sliding(MINUTE), 100);
    let own = stream(&store, "a", Strategy::Snapshot).load(Load::AnyCached);
    note(&own, 0).await.unwrap();
    world.sent();
    assert_eq!(notes(&own).await, [0]);
    assert_eq!(world.operations(), ["GetItem"]);
}

async fn delete(world: &World) {
    let tip = world.tip(&name("a")).await;
    let key = ["p", "i"].map(|name| (name, tip.get(name).unwrap().clone()));
    let key = key
        .into_iter()
        .fold(Item::new(), |key, (name, value)| key.with(name, value));
    let delete = DeleteItem::new("events", key);
    world
        .other
        .engine()
        .write_item(delete.into())
        .await
        .unwrap();
}

#[tokio::test]
async fn recreated_stream_is_loaded_completely() {
    for is_read_while_deleted in [true, false] {
        let world = world().await;
        let store = cached(&world);
        let own = stream(&store, "a", Strategy::Unoptimized);
        for one in 0..3 {
            note(&own, one).await.unwrap();
        }
        delete(&world).await;
        if is_read_while_deleted {
            assert!(notes(&own).await.is_empty());
        }
        append(&world.other.events(), "a", noted([7])).await;
        assert_eq!(notes(&own).await, [7]);
        let cached = stream(&store, "a", Strategy::Unoptimized).load(Load::AnyCached);
        assert_eq!(
            notes(&cached).await,
            [7],
            "the state of the deleted stream was evicted"
        );
        assert_eq!(note(&cached, 8).await.unwrap(), 2);
    }
}

/// A store on an engine whose eventually consistent reads may be stale.
fn stale_store(world: &World, options: EventStoreOptions) -> (Arc<FaultEngine>, EventStore) {
    let faults = Faults::seeded(1).stale_reads(0.0, Lag::Operations(1_000));
    let engine = Arc::new(FaultEngine::new(world.probe.clone(), faults));
    let db = Db::with_parts(engine.clone(), world.test.env.clone(), Arc::new(NoTime));
    (engine, db.event_store(options.tip_events_max(1)))
}

#[tokio::test]
async fn own_appends_are_seen_despite_stale_reads() {
    let world = world().await;
    let (engine, store) = stale_store(&world, EventStoreOptions::default());
    let store = store.cached(Caching::Sliding(MINUTE), 1 << 20);
    let own = stream(&store, "a", Strategy::Snapshot);
    for one in 0..3 {
        note(&own, one).await.unwrap();
        engine
            .script(Operation::GetItem, FaultKind::StaleRead)
            .unwrap();
        assert_eq!(notes(&own).await, Vec::from_iter(0..=one));
    }
    let stale = engine.faults().len();
    assert_eq!(stale, 3, "the test needs stale reads");
}

/// Loads a stream many times with stale reads. Returns the number of stale reads.
async fn load_stale(strategy: Strategy, options: EventStoreOptions) -> usize {
    let world = world().await;
    let (engine, store) = stale_store(&world, options);
    for one in 0..3 {
        append(&store, "a", noted([one])).await;
    }
    engine.set_faults(Faults::seeded(1).stale_reads(0.5, Lag::Operations(1_000)));
    let seen = stream(&store, "a", strategy);
    for _ in 0..50 {
        let look = |state: &Vec<u32>, version| assert_eq!(state.len() as u64, version);
        seen.query_versioned(look).await.unwrap();
    }
    engine.faults().len()
}

#[tokio::test]
async fn calf_hidden_from_a_stale_read_is_not_reported_missing() {
    for strategy in [Strategy::Snapshot, Strategy::Unoptimized] {
        let stale = load_stale(strategy, EventStoreOptions::default()).await;
        assert!(stale > 10, "the test needs stale reads");
        let ignoring = EventStoreOptions::default().ignore_missing();
        let stale = load_stale(strategy, ignoring).await;
        assert_eq!(stale, 0, "ignore_missing uses consistent reads");
    }
}
