//! Appends whose responses are lost before or after they are applied: each is applied exactly once, with a known outcome.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use floe::events::{Caching, EventData, EventStore, EventStoreOptions, Expected, Load};
use floe::{Db, Error, ErrorKind};
use floe_local::{LocalEngine, Options};
use floe_store::{Capabilities, Engine};
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Operation};
use floe_testkit::record::RecordingEngine;
use floe_testkit::time::TestEnv;

use super::no_time::NoTime;
use super::probe::Probe;
use super::support::{Strategy, append, name, note, noted, notes, stream};

/// A database on an engine that loses responses, and another one on the same engine without faults.
struct World {
    losing: Arc<FaultEngine>,
    recording: Arc<RecordingEngine>,
    db: Db,
    reliable: Db,
}

async fn world(capabilities: Capabilities, faults: Faults) -> World {
    let test = TestEnv::seeded(faults.seed());
    let options = Options::new().env(test.env.clone()).background(false);
    let engine: Arc<dyn Engine> = Arc::new(LocalEngine::memory_with(options).unwrap());
    let reliable = Db::with_parts(engine.clone(), test.env.clone(), Arc::new(NoTime));
    reliable.events().ensure_table().await.unwrap();
    let claiming = Arc::new(RecordingEngine::new(engine).claiming(capabilities));
    let losing = Arc::new(FaultEngine::new(claiming, faults));
    let recording = Arc::new(RecordingEngine::new(losing.clone()));
    World {
        db: Db::with_parts(recording.clone(), test.env.clone(), Arc::new(NoTime)),
        losing,
        recording,
        reliable,
    }
}

/// The capabilities of DynamoDB, without and with tokens for single writes.
fn capabilities() -> [Capabilities; 2] {
    let mut with_tokens = Capabilities::dynamodb();
    with_tokens.write_tokens = true;
    [Capabilities::dynamodb(), with_tokens]
}

fn calving(db: &Db) -> EventStore {
    let options = EventStoreOptions::default()
        .tip_events_max(3)
        .attempts_max(10_000);
    db.event_store(options)
}

const TASKS: u32 = 4;
const APPENDS: u32 = 150;

/// Whether the append was not applied, so that the call can be repeated.
fn is_not_applied(error: &Error) -> bool {
    assert_ne!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    matches!(
        error.kind(),
        ErrorKind::Store | ErrorKind::MaxResyncsExhausted
    )
}

/// Checks that the events of each task are stored once and in order.
async fn check(world: &World, what: &str) {
    let mut of_tasks: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for id in ["even", "odd"] {
        let all = notes(&stream(&world.reliable.events(), id, Strategy::Unoptimized)).await;
        for note in all {
            let of_task = of_tasks.entry(note / 10_000).or_default();
            of_task.push(note % 10_000);
        }
    }
    assert_eq!(of_tasks.len(), TASKS as usize, "{what}");
    for (task, found) in of_tasks {
        assert_eq!(found, Vec::from_iter(0..APPENDS), "{what} task={task}");
    }
    let faults = world.losing.faults();
    let count = |kind| faults.iter().filter(|fault| fault.kind == kind).count();
    assert!(count(FaultKind::LostBefore) > 50, "{what}");
    assert!(count(FaultKind::LostAfter) > 50, "{what}");
}

fn id_of(task: u32) -> &'static str {
    if task.is_multiple_of(2) {
        "even"
    } else {
        "odd"
    }
}

async fn append_all(store: EventStore, task: u32) {
    for one in 0..APPENDS {
        let events = noted([task * 10_000 + one]);
        let at = name(id_of(task));
        while let Err(error) = store.append(&at, Expected::Any, events.clone()).await {
            assert!(is_not_applied(&error), "{error:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_appended_exactly_once_despite_lost_responses() {
    for (seed, capabilities) in (1..).zip(capabilities()) {
        let faults = Faults::seeded(seed).lost_before(0.1).lost_after(0.1);
        let faults = faults.throttle(0.02).conflict(0.02);
        let what = format!("{capabilities:?}");
        let world = world(capabilities, faults).await;
        let tasks = (0..TASKS).map(|task| tokio::spawn(append_all(calving(&world.db), task)));
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        check(&world, &what).await;
    }
}

async fn decide_all(store: EventStore, task: u32, strategy: Strategy) {
    let stream = stream(&store, id_of(task), strategy);
    for one in 0..APPENDS {
        while let Err(error) = note(&stream, task * 10_000 + one).await {
            assert!(is_not_applied(&error), "{error:?}");
        }
    }
}

/// Which tasks share a cache of states.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Caches {
    None,
    PerTask,
    Shared,
}

/// A store for each task.
fn stores(db: &Db, caches: Caches) -> Vec<EventStore> {
    let cached = || calving(db).cached(Caching::Fixed(Duration::from_secs(60)), 1 << 24);
    let shared = cached();
    let store = |_| match caches {
        Caches::None => calving(db),
        Caches::PerTask => cached(),
        Caches::Shared => shared.clone(),
    };
    (0..TASKS).map(store).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_are_appended_exactly_once_with_any_cache() {
    let cases = [
        (Strategy::Unoptimized, Caches::PerTask),
        (Strategy::Snapshot, Caches::None),
        (Strategy::Snapshot, Caches::Shared),
        (Strategy::Custom, Caches::PerTask),
    ];
    for (seed, (strategy, caches)) in (10..).zip(cases) {
        for capabilities in capabilities() {
            let faults = Faults::seeded(seed).lost_before(0.1).lost_after(0.1);
            let what = format!("{strategy:?} {caches:?} {capabilities:?}");
            let world = world(capabilities, faults).await;
            let stores = stores(&world.db, caches);
            let tasks = (0..TASKS).zip(&stores);
            let tasks =
                tasks.map(|(task, store)| tokio::spawn(decide_all(store.clone(), task, strategy)));
            for task in tasks.collect::<Vec<_>>() {
                task.await.unwrap();
            }
            check(&world, &what).await;
            world.losing.pause();
            for (task, store) in (0..TASKS).zip(&stores) {
                let cached = notes(&stream(store, id_of(task), strategy)).await;
                let all = stream(&world.reliable.events(), id_of(task), Strategy::Unoptimized);
                assert_eq!(cached, notes(&all).await, "{what} task={task}");
            }
        }
    }
}

/// A world with scripted faults only, and the note 0 in the stream.
async fn scripted() -> World {
    let world = world(Capabilities::dynamodb(), Faults::seeded(1)).await;
    append(&world.reliable.events(), "a", noted([0])).await;
    world
}

impl World {
    fn script(&self, operation: Operation, kind: FaultKind) {
        self.losing.script(operation, kind).unwrap();
    }

    fn operations(&self) -> Vec<String> {
        let lines = self.recording.take().into_iter();
        lines
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect()
    }
}

async fn all(world: &World) -> Vec<u32> {
    notes(&stream(
        &world.reliable.events(),
        "a",
        Strategy::Unoptimized,
    ))
    .await
}

#[tokio::test]
async fn append_with_a_lost_response_is_reconciled_by_its_etag() {
    for kind in [FaultKind::LostBefore, FaultKind::LostAfter] {
        let world = scripted().await;
        world.script(Operation::WriteItem, kind);
        let snapshot = stream(&world.db.events(), "a", Strategy::Snapshot);
        assert_eq!(note(&snapshot, 1).await.unwrap(), 2);
        assert_eq!(world.operations(), ["GetItem", "UpdateItem", "UpdateItem"]);
        assert_eq!(all(&world).await, [0, 1]);
    }
}

#[tokio::test]
async fn calving_with_a_lost_response_is_reconciled_by_its_token() {
    for kind in [FaultKind::LostBefore, FaultKind::LostAfter] {
        let world = scripted().await;
        let options = EventStoreOptions::default().tip_events_max(1);
        world.script(Operation::TransactWriteItems, kind);
        let store = world.db.event_store(options);
        assert_eq!(append(&store, "a", noted([1])).await, 2);
        let sent = world.operations();
        assert_eq!(
            sent,
            ["GetItem", "TransactWriteItems", "TransactWriteItems"]
        );
        assert_eq!(all(&world).await, [0, 1]);
    }
}

#[tokio::test]
async fn throttled_and_conflicting_writes_are_retried() {
    for kind in [FaultKind::Throttle, FaultKind::Conflict] {
        let world = scripted().await;
        for operation in [Operation::WriteItem, Operation::TransactWriteItems] {
            world.script(operation, kind);
        }
        let options = EventStoreOptions::default().tip_events_max(2);
        for one in [1, 2] {
            append(&world.db.event_store(options.clone()), "a", noted([one])).await;
        }
        assert_eq!(all(&world).await, [0, 1, 2]);
    }
}

/// A store with a cache. The response to its next write is lost, and another process appends these notes one by one
/// before the write is sent again.
fn interrupted_store(
    world: &World,
    kind: FaultKind,
    other: EventStore,
    notes: &'static [u32],
) -> EventStore {
    world.script(Operation::WriteItem, kind);
    let probe = Arc::new(Probe::new(world.losing.clone()));
    probe.before_writes(move |number| {
        let other = other.clone();
        Box::pin(async move {
            for one in notes.iter().filter(|_| number == 1) {
                append(&other, "a", noted([*one])).await;
            }
        })
    });
    let db = Db::with_parts(probe, TestEnv::seeded(3).env, Arc::new(NoTime));
    calving(&db).cached(Caching::Fixed(Duration::from_secs(60)), 1 << 20)
}

/// Adds the note 1 to such a store, and compares the cached state with the stored one. Returns all notes.
async fn note_interrupted(
    world: &World,
    kind: FaultKind,
    other: EventStore,
    strategy: Strategy,
) -> Vec<u32> {
    let store = interrupted_store(world, kind, other, &[100, 101]);
    let own = stream(&store, "a", strategy);
    let version = note(&own, 1).await.unwrap();
    let all = all(world).await;
    let index = all.iter().position(|note| *note == 1).unwrap();
    assert_eq!(version, index as u64 + 1, "{kind:?} {strategy:?}");
    let cached = stream(&store, "a", strategy).load(Load::AnyCached);
    assert_eq!(notes(&cached).await, all[..=index], "{kind:?} {strategy:?}");
    assert_eq!(notes(&own).await, all, "{kind:?} {strategy:?}");
    all
}

#[tokio::test]
async fn append_followed_by_other_appends_is_reconciled_by_its_events() {
    for strategy in [Strategy::Unoptimized, Strategy::Snapshot, Strategy::Custom] {
        for calves in [false, true] {
            let options = if calves {
                EventStoreOptions::default().tip_events_max(1)
            } else {
                EventStoreOptions::default()
            };
            let world = scripted().await;
            let other = world.reliable.event_store(options.clone());
            let after = note_interrupted(&world, FaultKind::LostAfter, other, strategy).await;
            assert_eq!(after, [0, 1, 100, 101], "{strategy:?} calves={calves}");
            let world = scripted().await;
            let other = world.reliable.event_store(options);
            let before = note_interrupted(&world, FaultKind::LostBefore, other, strategy).await;
            assert_eq!(before, [0, 100, 101, 1], "{strategy:?} calves={calves}");
        }
    }
}

#[tokio::test]
async fn reconciling_retries_failed_reads() {
    let world = scripted().await;
    for kind in [FaultKind::Throttle, FaultKind::LostAfter] {
        world.script(Operation::Query, kind);
    }
    let calving = EventStoreOptions::default().tip_events_max(1);
    let other = world.reliable.event_store(calving);
    // Custom reads only the Tip, so the query is that of reconciling.
    let after = note_interrupted(&world, FaultKind::LostAfter, other, Strategy::Custom).await;
    assert_eq!(after, [0, 1, 100, 101]);
}

#[tokio::test]
async fn outcome_is_unknown_if_reconciling_fails() {
    let world = scripted().await;
    for _ in 0..30 {
        world.script(Operation::Query, FaultKind::Throttle);
    }
    let calving = EventStoreOptions::default().tip_events_max(1);
    let other = world.reliable.event_store(calving);
    let store = interrupted_store(&world, FaultKind::LostAfter, other, &[100, 101]);
    let error = note(&stream(&store, "a", Strategy::Custom), 1)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert!(
        error
            .store_error()
            .is_some_and(floe_store::Error::is_retryable)
    );
}

#[tokio::test]
async fn equal_append_of_another_process_is_not_mistaken_for_the_own() {
    for (kind, expected) in [
        (FaultKind::LostBefore, [0, 1, 1].as_slice()),
        (FaultKind::LostAfter, &[0, 1, 1]),
    ] {
        let world = scripted().await;
        let store = interrupted_store(&world, kind, world.reliable.events(), &[1]);
        note(&stream(&store, "a", Strategy::Unoptimized), 1)
            .await
            .unwrap();
        assert_eq!(all(&world).await, expected, "{kind:?}");
    }
}

#[tokio::test]
async fn outcome_of_unfolds_alone_is_unknown_after_another_write() {
    let world = scripted().await;
    let rolling = stream(&world.db.events(), "a", Strategy::Rolling);
    world.script(Operation::WriteItem, FaultKind::LostAfter);
    note(&rolling, 1).await.unwrap();
    assert_eq!(notes(&rolling).await, [0, 1], "reconciled by the etag");

    let store = interrupted_store(
        &world,
        FaultKind::LostAfter,
        world.reliable.events(),
        &[100],
    );
    let error = note(&stream(&store, "a", Strategy::Rolling), 2)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert!(error.to_string().contains("stream=Notes-a"), "{error}");
}

#[tokio::test]
async fn engine_that_loses_no_responses_gets_no_retry() {
    let world = scripted().await;
    let failed = RecordingEngine::new(world.losing.clone()).claiming(Capabilities::all());
    let failed = Arc::new(failed);
    let db = Db::with_parts(failed.clone(), TestEnv::seeded(1).env, Arc::new(NoTime));
    world.script(Operation::WriteItem, FaultKind::LostBefore);
    let at = name("b");
    let event = EventData::new("X", "");
    let error = db
        .events()
        .append(&at, Expected::New, [event])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(failed.take().len(), 1);
}
