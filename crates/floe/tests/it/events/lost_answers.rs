//! Appends whose answers are lost, before and after they were applied: each is there once, and none is unknown.

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
use super::support::{Way, append, name, note, noted, notes, stream};

/// An engine that loses answers, and the same engine without the losses.
struct World {
    losing: Arc<FaultEngine>,
    recording: Arc<RecordingEngine>,
    db: Db,
    honest: Db,
}

async fn world(capabilities: Capabilities, faults: Faults) -> World {
    let test = TestEnv::seeded(faults.seed());
    let options = Options::new().env(test.env.clone()).background(false);
    let engine: Arc<dyn Engine> = Arc::new(LocalEngine::memory_with(options).unwrap());
    let honest = Db::with_parts(engine.clone(), test.env.clone(), Arc::new(NoTime));
    honest.events().ensure_table().await.unwrap();
    let claiming = Arc::new(RecordingEngine::new(engine).claiming(capabilities));
    let losing = Arc::new(FaultEngine::new(claiming, faults));
    let recording = Arc::new(RecordingEngine::new(losing.clone()));
    World {
        db: Db::with_parts(recording.clone(), test.env.clone(), Arc::new(NoTime)),
        losing,
        recording,
        honest,
    }
}

/// Those of DynamoDB, without and with tokens for single writes.
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

/// Whether the call may be made again: nothing was applied.
fn is_not_applied(error: &Error) -> bool {
    assert_ne!(error.kind(), ErrorKind::OutcomeUnknown, "{error}");
    matches!(
        error.kind(),
        ErrorKind::Store | ErrorKind::MaxResyncsExhausted
    )
}

/// What each task appended is there, once and in its order.
async fn check(world: &World, what: &str) {
    let mut of_tasks: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for id in ["even", "odd"] {
        let all = notes(&stream(&world.honest.events(), id, Way::Unoptimized)).await;
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
    let lost = |kind| faults.iter().filter(|fault| fault.kind == kind).count();
    assert!(lost(FaultKind::LostBefore) > 50, "{what}");
    assert!(lost(FaultKind::LostAfter) > 50, "{what}");
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
async fn events_are_appended_exactly_once_whatever_is_lost() {
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

async fn decide_all(store: EventStore, task: u32, way: Way) {
    let stream = stream(&store, id_of(task), way);
    for one in 0..APPENDS {
        while let Err(error) = note(&stream, task * 10_000 + one).await {
            assert!(is_not_applied(&error), "{error:?}");
        }
    }
}

/// Who keeps states.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Keeping {
    Nobody,
    EachTask,
    AllTogether,
}

/// A store for each task.
fn stores(db: &Db, keeping: Keeping) -> Vec<EventStore> {
    let cached = || calving(db).cached(Caching::Fixed(Duration::from_secs(60)), 1 << 24);
    let shared = cached();
    let store = |_| match keeping {
        Keeping::Nobody => calving(db),
        Keeping::EachTask => cached(),
        Keeping::AllTogether => shared.clone(),
    };
    (0..TASKS).map(store).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_are_appended_exactly_once_whatever_is_lost_and_whatever_is_kept() {
    let cases = [
        (Way::Unoptimized, Keeping::EachTask),
        (Way::Snapshot, Keeping::Nobody),
        (Way::Snapshot, Keeping::AllTogether),
        (Way::Custom, Keeping::EachTask),
    ];
    for (seed, (way, keeping)) in (10..).zip(cases) {
        for capabilities in capabilities() {
            let faults = Faults::seeded(seed).lost_before(0.1).lost_after(0.1);
            let what = format!("{way:?} {keeping:?} {capabilities:?}");
            let world = world(capabilities, faults).await;
            let stores = stores(&world.db, keeping);
            let tasks = (0..TASKS).zip(&stores);
            let tasks =
                tasks.map(|(task, store)| tokio::spawn(decide_all(store.clone(), task, way)));
            for task in tasks.collect::<Vec<_>>() {
                task.await.unwrap();
            }
            check(&world, &what).await;
            world.losing.pause();
            for (task, store) in (0..TASKS).zip(&stores) {
                let kept = notes(&stream(store, id_of(task), way)).await;
                let all = stream(&world.honest.events(), id_of(task), Way::Unoptimized);
                assert_eq!(kept, notes(&all).await, "{what} task={task}");
            }
        }
    }
}

/// A world in which nothing is lost but what a test says, with the note 0 in the stream.
async fn scripted() -> World {
    let world = world(Capabilities::dynamodb(), Faults::seeded(1)).await;
    append(&world.honest.events(), "a", noted([0])).await;
    world
}

impl World {
    fn script(&self, operation: Operation, kind: FaultKind) {
        self.losing.script(operation, kind).unwrap();
    }

    fn kinds(&self) -> Vec<String> {
        let lines = self.recording.take().into_iter();
        lines
            .map(|line| line.split(' ').next().unwrap().to_owned())
            .collect()
    }
}

async fn all(world: &World) -> Vec<u32> {
    notes(&stream(&world.honest.events(), "a", Way::Unoptimized)).await
}

#[tokio::test]
async fn an_append_whose_answer_was_lost_is_sent_again_and_known_by_its_etag() {
    for kind in [FaultKind::LostBefore, FaultKind::LostAfter] {
        let world = scripted().await;
        world.script(Operation::WriteItem, kind);
        let snapshot = stream(&world.db.events(), "a", Way::Snapshot);
        assert_eq!(note(&snapshot, 1).await.unwrap(), 2);
        assert_eq!(world.kinds(), ["GetItem", "UpdateItem", "UpdateItem"]);
        assert_eq!(all(&world).await, [0, 1]);
    }
}

#[tokio::test]
async fn a_calve_whose_answer_was_lost_is_known_by_its_token() {
    for kind in [FaultKind::LostBefore, FaultKind::LostAfter] {
        let world = scripted().await;
        let options = EventStoreOptions::default().tip_events_max(1);
        world.script(Operation::TransactWriteItems, kind);
        let store = world.db.event_store(options);
        assert_eq!(append(&store, "a", noted([1])).await, 2);
        let sent = world.kinds();
        assert_eq!(
            sent,
            ["GetItem", "TransactWriteItems", "TransactWriteItems"]
        );
        assert_eq!(all(&world).await, [0, 1]);
    }
}

#[tokio::test]
async fn what_is_refused_for_now_is_sent_again() {
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

/// A store that keeps states. The answer to its next write is lost, and somebody else appends these notes, one after the
/// other, before it is sent again.
fn overtaken(
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

/// Adds a note 1 meanwhile. Tells all that is there, and what is kept is held to it.
async fn note_overtaken(world: &World, kind: FaultKind, other: EventStore, way: Way) -> Vec<u32> {
    let store = overtaken(world, kind, other, &[100, 101]);
    let mine = stream(&store, "a", way);
    let version = note(&mine, 1).await.unwrap();
    let all = all(world).await;
    let index = all.iter().position(|note| *note == 1).unwrap();
    assert_eq!(version, index as u64 + 1, "{kind:?} {way:?}");
    let kept = stream(&store, "a", way).load(Load::AnyCached);
    assert_eq!(notes(&kept).await, all[..=index], "{kind:?} {way:?}");
    assert_eq!(notes(&mine).await, all, "{kind:?} {way:?}");
    all
}

#[tokio::test]
async fn an_append_that_others_have_built_upon_is_known_by_its_very_events() {
    for way in [Way::Unoptimized, Way::Snapshot, Way::Custom] {
        for calves in [false, true] {
            let options = match calves {
                true => EventStoreOptions::default().tip_events_max(1),
                false => EventStoreOptions::default(),
            };
            let world = scripted().await;
            let other = world.honest.event_store(options.clone());
            let after = note_overtaken(&world, FaultKind::LostAfter, other, way).await;
            assert_eq!(after, [0, 1, 100, 101], "{way:?} calves={calves}");
            let world = scripted().await;
            let other = world.honest.event_store(options);
            let before = note_overtaken(&world, FaultKind::LostBefore, other, way).await;
            assert_eq!(before, [0, 100, 101, 1], "{way:?} calves={calves}");
        }
    }
}

#[tokio::test]
async fn a_doubt_is_settled_even_if_the_reads_for_it_fail_at_first() {
    let world = scripted().await;
    for kind in [FaultKind::Throttle, FaultKind::LostAfter] {
        world.script(Operation::Query, kind);
    }
    let calving = EventStoreOptions::default().tip_events_max(1);
    let other = world.honest.event_store(calving);
    // Custom reads the Tip alone, so the query is the one that looks for the events.
    let after = note_overtaken(&world, FaultKind::LostAfter, other, Way::Custom).await;
    assert_eq!(after, [0, 1, 100, 101]);
}

#[tokio::test]
async fn a_doubt_that_no_read_can_settle_is_told_as_one() {
    let world = scripted().await;
    for _ in 0..30 {
        world.script(Operation::Query, FaultKind::Throttle);
    }
    let calving = EventStoreOptions::default().tip_events_max(1);
    let other = world.honest.event_store(calving);
    let store = overtaken(&world, FaultKind::LostAfter, other, &[100, 101]);
    let error = note(&stream(&store, "a", Way::Custom), 1)
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
async fn an_append_is_not_taken_for_the_same_one_of_somebody_else() {
    for (kind, expected) in [
        (FaultKind::LostBefore, [0, 1, 1].as_slice()),
        (FaultKind::LostAfter, &[0, 1, 1]),
    ] {
        let world = scripted().await;
        let store = overtaken(&world, kind, world.honest.events(), &[1]);
        note(&stream(&store, "a", Way::Unoptimized), 1)
            .await
            .unwrap();
        assert_eq!(all(&world).await, expected, "{kind:?}");
    }
}

#[tokio::test]
async fn nothing_but_unfolds_is_unknown_once_somebody_else_has_written() {
    let world = scripted().await;
    let rolling = stream(&world.db.events(), "a", Way::Rolling);
    world.script(Operation::WriteItem, FaultKind::LostAfter);
    note(&rolling, 1).await.unwrap();
    assert_eq!(notes(&rolling).await, [0, 1], "known by its etag");

    let store = overtaken(&world, FaultKind::LostAfter, world.honest.events(), &[100]);
    let error = note(&stream(&store, "a", Way::Rolling), 2)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutcomeUnknown);
    assert!(error.to_string().contains("stream=Notes-a"), "{error}");
}

#[tokio::test]
async fn an_engine_that_has_failed_is_not_asked_again() {
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
