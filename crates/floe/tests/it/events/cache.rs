//! States that are kept: which requests they save, and how fresh they are.

use std::sync::Arc;
use std::time::Duration;

use floe::Db;
use floe::events::{Caching, EventStore, EventStoreOptions, Load};
use floe_store::Item;
use floe_store::op::DeleteItem;
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Lag, Operation};

use super::gate::{Gate, Side};
use super::no_time::NoTime;
use super::support::{Way, World, append, name, note, noted, notes, stream, world};

const MINUTE: Duration = Duration::from_secs(60);

fn cached(world: &World) -> EventStore {
    world.store().cached(Caching::Sliding(MINUTE), 1 << 20)
}

/// The ways in which all notes are found.
const WAYS: [Way; 5] = [
    Way::Unoptimized,
    Way::Snapshot,
    Way::Multi,
    Way::Rolling,
    Way::Custom,
];

const GET: &str = r#"GetItem events {"i": 2147483647, "p": "Notes-a"} eventual"#;

#[tokio::test]
async fn a_state_that_is_kept_is_brought_up_to_date_by_one_get() {
    for way in WAYS {
        let world = world().await;
        let store = cached(&world);
        let mine = stream(&store, "a", way);
        note(&mine, 0).await.unwrap();
        world.sent();
        assert_eq!(notes(&mine).await, [0], "{way:?}");
        assert_eq!(world.sent(), [GET], "nothing has changed: {way:?}");
        note(&stream(&world.other.events(), "a", way), 1)
            .await
            .unwrap();
        assert_eq!(notes(&mine).await, [0, 1], "{way:?}");
        assert_eq!(world.sent(), [GET], "{way:?}");
        note(&mine, 2).await.unwrap();
        assert_eq!(world.kinds(), ["GetItem", "UpdateItem"], "{way:?}");
        assert_eq!(notes(&mine).await, [0, 1, 2], "{way:?}");
    }
}

#[tokio::test]
async fn what_was_calved_since_is_read_from_where_the_state_stands() {
    let world = world().await;
    let store = cached(&world);
    let mine = stream(&store, "a", Way::Unoptimized);
    append(&world.other.events(), "a", noted([0, 1])).await;
    notes(&mine).await;
    let calving = EventStoreOptions::default().tip_events_max(1);
    let other = world.other.event_store(calving);
    for one in [2, 3, 4] {
        append(&other, "a", noted([one])).await;
    }
    world.sent();
    assert_eq!(notes(&mine).await, [0, 1, 2, 3, 4]);
    let query = r#"Query events p = "Notes-a" AND i < 4 backward limit 32"#;
    assert_eq!(world.sent(), [GET, query]);
}

#[tokio::test]
async fn what_is_kept_will_do_as_far_as_it_is_told_to() {
    let world = world().await;
    let store = cached(&world);
    let mine = |load| stream(&store, "a", Way::Snapshot).load(load);
    assert!(notes(&mine(Load::AnyCached)).await.is_empty());
    assert_eq!(world.kinds(), ["GetItem"], "nothing was kept");
    note(&mine(Load::Require), 0).await.unwrap();
    append(&world.other.events(), "a", noted([1])).await;
    world.sent();

    assert_eq!(notes(&mine(Load::AnyCached)).await, [0]);
    world.test.advance(Duration::from_secs(10));
    let stale = |seconds| mine(Load::AllowStale(Duration::from_secs(seconds)));
    assert_eq!(notes(&stale(10)).await, [0]);
    assert!(notes(&mine(Load::AssumeEmpty)).await.is_empty());
    assert!(world.sent().is_empty());

    assert_eq!(notes(&stale(9)).await, [0, 1]);
    assert_eq!(world.kinds(), ["GetItem"]);
    assert_eq!(notes(&stale(9)).await, [0, 1], "now it is fresh");
    assert!(world.sent().is_empty());
    append(&world.other.events(), "a", noted([2])).await;
    assert_eq!(notes(&mine(Load::RequireLeader)).await, [0, 1, 2]);
    assert_eq!(world.sent(), [GET.trim_end_matches(" eventual")]);
}

#[tokio::test]
async fn without_a_cache_the_leader_is_asked_only_where_it_is_required() {
    let world = world().await;
    for (load, way, request) in [
        (Load::Require, Way::Snapshot, GET),
        (Load::AnyCached, Way::Snapshot, GET),
        (
            Load::RequireLeader,
            Way::Snapshot,
            GET.trim_end_matches(" eventual"),
        ),
        (
            Load::Require,
            Way::Unoptimized,
            r#"Query events p = "Notes-a" limit 32 eventual"#,
        ),
        (
            Load::RequireLeader,
            Way::Unoptimized,
            r#"Query events p = "Notes-a" limit 32"#,
        ),
    ] {
        notes(&stream(&world.store(), "a", way).load(load)).await;
        assert_eq!(world.sent(), [request], "{load:?}");
    }
}

#[tokio::test]
async fn a_stale_state_that_is_decided_upon_is_found_out_by_the_append() {
    for way in WAYS {
        let world = world().await;
        let store = cached(&world);
        note(&stream(&store, "a", way), 0).await.unwrap();
        note(&stream(&world.other.events(), "a", way), 1)
            .await
            .unwrap();
        world.sent();
        let mine = stream(&store, "a", way).load(Load::AnyCached);
        note(&mine, 2).await.unwrap();
        assert_eq!(world.kinds(), ["UpdateItem", "UpdateItem"], "{way:?}");
        assert_eq!(notes(&mine).await, [0, 1, 2], "{way:?}");
        assert!(world.sent().is_empty());
    }
}

#[tokio::test]
async fn twenty_who_load_one_cold_stream_send_one_read() {
    for (way, read) in [(Way::Snapshot, "get_item"), (Way::Unoptimized, "query")] {
        let world = world().await;
        append(&world.store(), "a", noted([0, 1])).await;
        world.sent();
        let gate = Arc::new(Gate::new(world.probe.clone()));
        let db = Db::with_parts(gate.clone(), world.test.env.clone(), Arc::new(NoTime));
        let store = db.events().cached(Caching::Sliding(MINUTE), 1 << 20);
        let mut held = gate.hold(read, Side::After);
        let tasks = (0..20).map(|_| {
            let stream = stream(&store, "a", way);
            tokio::spawn(async move { notes(&stream).await })
        });
        let tasks: Vec<_> = tasks.collect();
        held.arrived().await;
        // All have asked when all had their turn.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        held.open();
        for task in tasks {
            assert_eq!(task.await.unwrap(), [0, 1]);
        }
        assert_eq!(world.sent().len(), 1, "{way:?}");
    }
}

#[tokio::test]
async fn the_leader_is_asked_by_each_of_those_who_require_it() {
    let world = world().await;
    append(&world.store(), "a", noted([0])).await;
    world.sent();
    let store = cached(&world);
    let tasks = (0..3).map(|_| {
        let stream = stream(&store, "a", Way::Snapshot).load(Load::RequireLeader);
        tokio::spawn(async move { notes(&stream).await })
    });
    for task in tasks.collect::<Vec<_>>() {
        assert_eq!(task.await.unwrap(), [0]);
    }
    assert_eq!(world.sent(), [GET.trim_end_matches(" eventual"); 3]);
}

#[tokio::test]
async fn a_window_slides_with_each_use_and_a_fixed_one_does_not() {
    for (caching, is_kept) in [
        (Caching::Sliding(MINUTE), true),
        (Caching::Fixed(MINUTE), false),
    ] {
        let world = world().await;
        let store = world.store().cached(caching, 1 << 20);
        let mine = stream(&store, "a", Way::Snapshot).load(Load::AnyCached);
        note(&mine, 0).await.unwrap();
        world.sent();
        for _ in 0..3 {
            world.test.advance(Duration::from_secs(40));
            notes(&mine).await;
        }
        assert_eq!(world.sent().is_empty(), is_kept, "{caching:?}");
    }
}

#[tokio::test]
async fn what_does_not_fit_is_not_kept() {
    let world = world().await;
    let store = world.store().cached(Caching::Sliding(MINUTE), 100);
    let mine = stream(&store, "a", Way::Snapshot).load(Load::AnyCached);
    note(&mine, 0).await.unwrap();
    world.sent();
    assert_eq!(notes(&mine).await, [0]);
    assert_eq!(world.kinds(), ["GetItem"]);
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
async fn a_stream_that_was_made_anew_is_loaded_anew() {
    for is_seen_missing in [true, false] {
        let world = world().await;
        let store = cached(&world);
        let mine = stream(&store, "a", Way::Unoptimized);
        for one in 0..3 {
            note(&mine, one).await.unwrap();
        }
        delete(&world).await;
        if is_seen_missing {
            assert!(notes(&mine).await.is_empty());
        }
        append(&world.other.events(), "a", noted([7])).await;
        assert_eq!(notes(&mine).await, [7]);
        let kept = stream(&store, "a", Way::Unoptimized).load(Load::AnyCached);
        assert_eq!(
            notes(&kept).await,
            [7],
            "what was kept of the other one is gone"
        );
        assert_eq!(note(&kept, 8).await.unwrap(), 2);
    }
}

/// A store on an engine whose eventual reads may be behind.
fn behind(world: &World, options: EventStoreOptions) -> (Arc<FaultEngine>, EventStore) {
    let faults = Faults::seeded(1).stale_reads(0.0, Lag::Operations(1_000));
    let engine = Arc::new(FaultEngine::new(world.probe.clone(), faults));
    let db = Db::with_parts(engine.clone(), world.test.env.clone(), Arc::new(NoTime));
    (engine, db.event_store(options.tip_events_max(1)))
}

#[tokio::test]
async fn ones_own_appends_are_seen_even_by_reads_that_are_behind() {
    let world = world().await;
    let (engine, store) = behind(&world, EventStoreOptions::default());
    let store = store.cached(Caching::Sliding(MINUTE), 1 << 20);
    let mine = stream(&store, "a", Way::Snapshot);
    for one in 0..3 {
        note(&mine, one).await.unwrap();
        engine
            .script(Operation::GetItem, FaultKind::StaleRead)
            .unwrap();
        assert_eq!(notes(&mine).await, Vec::from_iter(0..=one));
    }
    let stale = engine.faults().len();
    assert_eq!(stale, 3, "else the run would show nothing");
}

/// Loads a stream many times by reads that may be behind, and tells how often the engine was asked for an old answer.
async fn load_behind(way: Way, options: EventStoreOptions) -> usize {
    let world = world().await;
    let (engine, store) = behind(&world, options);
    for one in 0..3 {
        append(&store, "a", noted([one])).await;
    }
    engine.set_faults(Faults::seeded(1).stale_reads(0.5, Lag::Operations(1_000)));
    let seen = stream(&store, "a", way);
    for _ in 0..50 {
        let look = |state: &Vec<u32>, version| assert_eq!(state.len() as u64, version);
        seen.query_versioned(look).await.unwrap();
    }
    engine.faults().len()
}

#[tokio::test]
async fn a_batch_that_a_read_does_not_show_yet_is_not_missing() {
    for way in [Way::Snapshot, Way::Unoptimized] {
        let stale = load_behind(way, EventStoreOptions::default()).await;
        assert!(stale > 10, "else the run would show nothing");
        let ignoring = EventStoreOptions::default().ignore_missing();
        let stale = load_behind(way, ignoring).await;
        assert_eq!(stale, 0, "who ignores what is missing asks the leader");
    }
}
