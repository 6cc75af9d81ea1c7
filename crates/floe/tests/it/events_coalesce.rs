//! Coalesced appends: stored events, results of the callers, and requests.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use floe::db::Timer;
use floe::events::{Appender, EventData, EventStoreOptions, Expected, StreamName};
use floe::{Db, ErrorKind, Result};
use floe_store::{BoxFuture, Capabilities, Env, Item, Value};
use floe_testkit::fault::{FaultKind, Faults, Operation};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::support::{gate, streams};
use gate::Side;
use streams::{World, stream};

const LINGER: Duration = Duration::from_millis(5);

/// A world whose Tips are calved by size only.
async fn world(capabilities: Capabilities) -> Arc<World> {
    Arc::new(World::with(capabilities, EventStoreOptions::default()).await)
}

/// Events with unique bodies.
fn events(name: &str, count: usize) -> Vec<EventData> {
    let event = |n| EventData::new("Noted", format!("{name}/{n}"));
    (0..count).map(event).collect()
}

/// A running call and its events.
struct Call {
    events: Vec<EventData>,
    task: JoinHandle<Result<Range<u64>>>,
}

fn call(appender: &Appender, events: Vec<EventData>) -> Call {
    let (appender, appended) = (appender.clone(), events.clone());
    let task = tokio::spawn(async move { appender.append(&stream(), appended).await });
    Call { events, task }
}

/// Starts concurrent calls with one event each.
fn calls(appender: &Appender, names: Range<usize>) -> Vec<Call> {
    names
        .map(|name| call(appender, events(&name.to_string(), 1)))
        .collect()
}

/// The events of the stream, which must have no gap.
async fn stored(world: &World) -> Vec<EventData> {
    let read = world.other.read(&stream()).collect().await.unwrap();
    assert!(read.iter().map(|read| read.index).eq(0..read.len() as u64));
    read.into_iter().map(|read| read.event).collect()
}

/// Checks that every event is stored once, at the index returned to its caller. `others` is the number of other events.
async fn check(world: &World, calls: Vec<Call>, others: usize) {
    let stored = stored(world).await;
    let mut count = others;
    for call in calls {
        let range = call.task.await.unwrap().unwrap();
        let found: Vec<_> = (range.start..range.end)
            .map(|index| stored.get(index as usize).cloned().unwrap())
            .collect();
        assert_eq!(found, call.events);
        count += call.events.len();
    }
    let mut bodies: Vec<_> = stored.iter().map(|event| &event.data).collect();
    bodies.sort();
    bodies.dedup();
    assert_eq!((bodies.len(), stored.len()), (count, count));
}

async fn finished(calls: &[Call]) {
    while !calls.iter().all(|call| call.task.is_finished()) {
        tokio::task::yield_now().await;
    }
}

/// The operations of the requests since the last call.
fn sent(world: &World) -> Vec<String> {
    let operation = |line: String| line.split(' ').next().unwrap().to_owned();
    world.recording.take().into_iter().map(operation).collect()
}

#[tokio::test]
async fn concurrent_appends_are_one_request() {
    let world = world(Capabilities::all()).await;
    let appender = Appender::new(world.store.clone(), LINGER);
    let mut all = calls(&appender, 0..64);
    finished(&all).await;
    assert_eq!(sent(&world), ["GetItem", "PutItem"]);
    all.extend(calls(&appender, 64..128));
    finished(&all).await;
    assert_eq!(sent(&world), ["UpdateItem"], "the position is remembered");
    // Events are appended in the order of the calls.
    let one = call(&appender, events("one", 1));
    let two = call(&appender, events("two", 3));
    all.extend([one, two]);
    finished(&all).await;
    assert_eq!(sent(&world), ["UpdateItem"]);
    let last: Vec<_> = stored(&world).await.split_off(128);
    assert_eq!(last, [events("one", 1), events("two", 3)].concat());
    check(&world, all, 0).await;
}

/// A timer whose pauses are ended by the test.
#[derive(Default)]
struct ManualTimer {
    pauses: Mutex<Vec<Duration>>,
    ended: Notify,
}

impl Timer for ManualTimer {
    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        self.pauses.lock().unwrap().push(duration);
        Box::pin(self.ended.notified())
    }
}

#[tokio::test]
async fn leader_lingers_for_further_appends() {
    let world = world(Capabilities::all()).await;
    let timer = Arc::new(ManualTimer::default());
    let db = Db::with_parts(world.recording.clone(), Env::system(), timer.clone());
    let appender = Appender::new(db.events(), LINGER);
    let mut all = Vec::new();
    for round in 1..=3 {
        let first = call(&appender, events(&format!("{round}-first"), 1));
        while timer.pauses.lock().unwrap().len() < round {
            tokio::task::yield_now().await;
        }
        let second = call(&appender, events(&format!("{round}-second"), 1));
        tokio::task::yield_now().await;
        assert_eq!(sent(&world), [""; 0], "the leader lingers");
        timer.ended.notify_one();
        all.extend([first, second]);
        finished(&all).await;
        let expected: &[_] = match round {
            1 => &["GetItem", "PutItem"],
            _ => &["UpdateItem"],
        };
        assert_eq!(sent(&world), expected);
    }
    assert_eq!(*timer.pauses.lock().unwrap(), [LINGER; 3]);
    check(&world, all, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_tasks_append_to_one_stream() {
    const TASKS: usize = 64;
    const APPENDS: usize = 10;
    for linger in [Duration::ZERO, LINGER] {
        let world = world(Capabilities::all()).await;
        let appender = Appender::new(world.store.clone(), linger);
        let tasks: Vec<_> = (0..TASKS)
            .map(|task| {
                let appender = appender.clone();
                tokio::spawn(async move {
                    let mut calls = Vec::new();
                    for n in 0..APPENDS {
                        let call = call(&appender, events(&format!("{task}-{n}"), 1 + n % 3));
                        finished(std::slice::from_ref(&call)).await;
                        calls.push(call);
                    }
                    calls
                })
            })
            .collect();
        let mut all = Vec::new();
        for task in tasks {
            all.extend(task.await.unwrap());
        }
        let requests = sent(&world).len();
        let requests_max = match linger {
            Duration::ZERO => TASKS * APPENDS + 1,
            _ => TASKS * APPENDS / 4,
        };
        assert!(
            requests <= requests_max,
            "linger={linger:?} requests={requests}"
        );
        check(&world, all, 0).await;
    }
}

#[tokio::test]
async fn request_contains_the_appends_that_fit() {
    let world = world(Capabilities::all()).await;
    let appender = Appender::new(world.store.clone(), LINGER);
    let large = |name: &str, bytes: usize| vec![EventData::new(name, vec![b'x'; bytes])];
    let all: Vec<_> = ["a", "b", "c"]
        .map(|name| call(&appender, large(name, 100 << 10)))
        .into();
    finished(&all).await;
    assert_eq!(sent(&world), ["GetItem", "PutItem", "TransactWriteItems"]);

    // An oversized append fails alone.
    let first = call(&appender, events("before", 1));
    let oversized = call(&appender, large("large", 500 << 10));
    let last = call(&appender, events("after", 1));
    let error = oversized.task.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    for call in [first, last] {
        call.task.await.unwrap().unwrap();
    }

    // The maximum number of events fits into an item, even with small bodies.
    let many = |n: usize| call(&appender, vec![EventData::new("N", n.to_string()); 64]);
    let all: Vec<_> = (0..65).map(many).collect();
    world.recording.take();
    finished(&all).await;
    assert_eq!(sent(&world), ["TransactWriteItems"; 2]);
    let version = world.other.version(&stream()).await.unwrap();
    assert_eq!(version, 3 + 2 + 65 * 64);
}

#[tokio::test]
async fn oversized_append_fails_alone() {
    let world = Arc::new(world(Capabilities::all()).await);
    let appender = Appender::new(world.store.clone(), LINGER);
    let sized = |kilobytes: usize| vec![EventData::new("Sized", vec![b'x'; kilobytes << 10])];
    let [first, oversized, last] = [200, 450, 200].map(|size| call(&appender, sized(size)));
    let error = oversized.task.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert_eq!(first.task.await.unwrap().unwrap(), 0..1);
    assert_eq!(last.task.await.unwrap().unwrap(), 1..2);
}

#[tokio::test]
async fn error_is_returned_to_all_callers_of_the_request() {
    let world = world(Capabilities::all()).await;
    let options = EventStoreOptions::new("nowhere");
    let appender = Appender::new(world.store.db().event_store(options), LINGER);
    for call in calls(&appender, 0..8) {
        let error = call.task.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Table);
    }
    assert_eq!(sent(&world), ["GetItem"]);
    let error = appender.append(&stream(), Vec::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert_eq!(sent(&world), [""; 0]);

    let appender = Appender::new(world.store.clone(), LINGER);
    let all = calls(&appender, 0..8);
    finished(&all).await;
    check(&world, all, 0).await;
}

/// Callers are cancelled while their request is held, before or after the engine applies it.
#[tokio::test]
async fn leader_can_be_cancelled() {
    for (operation, existing) in [
        ("get_item", 0),
        ("write_item", 0),
        ("transact_write_items", 3),
    ] {
        for side in [Side::Before, Side::After] {
            for cancelled in 1..=8 {
                let world = Arc::new(World::new(Capabilities::all()).await);
                let appender = Appender::new(world.store.clone(), LINGER);
                world.append(&stream(), 0..existing).await;
                let mut held = world.gate.hold(operation, side);
                let mut all = calls(&appender, 0..8);
                held.arrived().await;
                // The request contains the events of all callers, cancelled or not.
                let rest = all.split_off(cancelled);
                for call in &all {
                    call.task.abort();
                    while !call.task.is_finished() {
                        tokio::task::yield_now().await;
                    }
                }
                let all_cancelled = rest.is_empty();
                let late = calls(&appender, 8..10);
                if !all_cancelled {
                    held.open();
                }
                let rest: Vec<_> = rest.into_iter().chain(late).collect();
                finished(&rest).await;
                let context = format!("{operation} {side:?} cancelled={cancelled}");
                let applied = match (operation, side) {
                    // The append was not sent.
                    ("get_item", _) if all_cancelled => 0,
                    (_, Side::Before) if all_cancelled => 0,
                    _ => cancelled,
                };
                assert_eq!(
                    stored(&world).await.len(),
                    existing as usize + applied + rest.len(),
                    "{context}"
                );
                check(&world, rest, existing as usize + applied).await;
            }
        }
    }
}

#[tokio::test]
async fn call_cancelled_in_the_queue_appends_nothing() {
    let world = world(Capabilities::all()).await;
    let appender = Appender::new(world.store.clone(), LINGER);
    let mut held = world.gate.hold("write_item", Side::Before);
    let first = call(&appender, events("first", 1));
    held.arrived().await;
    let [cancelled, stays] = ["cancelled", "stays"].map(|name| call(&appender, events(name, 2)));
    tokio::task::yield_now().await;
    cancelled.task.abort();
    while !cancelled.task.is_finished() {
        tokio::task::yield_now().await;
    }
    held.open();
    let all = vec![first, stays];
    finished(&all).await;
    check(&world, all, 0).await;
    assert_eq!(sent(&world), ["GetItem", "PutItem", "UpdateItem"]);
}

#[tokio::test]
async fn append_of_another_process_is_detected_without_a_read() {
    let world = world(Capabilities::all()).await;
    let appender = Appender::new(world.store.clone(), LINGER);
    let mut all = calls(&appender, 0..8);
    finished(&all).await;
    sent(&world);
    for n in 0..3 {
        let foreign = events(&format!("foreign-{n}"), 2);
        let stream = stream();
        let append = world.other.append(&stream, Expected::Any, foreign);
        append.await.unwrap();
    }
    let own = calls(&appender, 8..16);
    finished(&own).await;
    assert_eq!(sent(&world), ["UpdateItem", "UpdateItem"]);
    all.extend(own);
    check(&world, all, 6).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_append_to_one_stream() {
    let world = Arc::new(World::new(Capabilities::all()).await);
    let own = Appender::new(world.store.clone(), LINGER);
    let other = Appender::new(world.other.clone(), Duration::ZERO);
    let mut all = Vec::new();
    for n in 0..20 {
        all.extend(calls(&own, n * 16..n * 16 + 8));
        all.extend(calls(&other, n * 16 + 8..n * 16 + 16));
        finished(&all).await;
    }
    check(&world, all, 0).await;
}

#[tokio::test]
async fn prune_of_another_process_is_detected() {
    let number = |item: &Item, name: &str| item.get(name).and_then(Value::as_n).unwrap().to_u64();
    for before in 1..=5 {
        let world = Arc::new(World::new(Capabilities::all()).await);
        let appender = Appender::new(world.store.clone(), LINGER);
        for n in 0..5 {
            let event = events(&n.to_string(), 1);
            appender.append(&stream(), event).await.unwrap();
        }
        let pruned = world.other.prune(&stream(), before).await.unwrap();
        for n in 5..9 {
            let event = events(&n.to_string(), 1);
            assert_eq!(appender.append(&stream(), event).await, Ok(n..n + 1));
        }
        // Pruned events do not return in a calf, and are not counted in its size.
        let read = world.other.read(&stream()).collect().await.unwrap();
        let indexes: Vec<_> = read.iter().map(|read| read.index).collect();
        assert_eq!(indexes, (pruned.lowest..9).collect::<Vec<_>>());
        let items = world.items(&stream()).await;
        let (tip, batches) = items.split_last().unwrap();
        let size = |item: &Item| {
            let events = number(item, "n").unwrap() - number(item, "i").unwrap();
            events * ("Noted".len() + "0/0".len() + 40) as u64
        };
        let calved: u64 = batches.iter().map(size).sum();
        assert_eq!(number(tip, "b"), Some(calved), "before={before}");
    }
}

#[tokio::test]
async fn coalescing_tolerates_lost_responses() {
    for kind in [FaultKind::LostBefore, FaultKind::LostAfter] {
        let world = world(Capabilities::dynamodb()).await;
        let appender = Appender::new(world.store.clone(), LINGER);
        let mut all = Vec::new();
        for n in 0..4 {
            world.faults.script(Operation::WriteItem, kind).unwrap();
            all.extend(calls(&appender, n * 8..n * 8 + 8));
            finished(&all).await;
        }
        check(&world, all, 0).await;
    }
}

#[tokio::test]
async fn two_processes_tolerate_many_lost_responses() {
    for seed in 0..10 {
        let world = Arc::new(World::new(Capabilities::dynamodb()).await);
        let faults = Faults::seeded(seed).lost_before(0.15).lost_after(0.15);
        let writes = [Operation::WriteItem, Operation::TransactWriteItems];
        world.faults.set_faults(faults.only_on(writes));
        let own = Appender::new(world.store.clone(), LINGER);
        let other = Appender::new(world.other.clone(), LINGER);
        let mut all = Vec::new();
        for n in 0..10 {
            all.extend(calls(&own, n * 12..n * 12 + 8));
            all.extend(calls(&other, n * 12 + 8..n * 12 + 12));
            finished(&all).await;
        }
        assert!(!world.faults.faults().is_empty());
        check(&world, all, 0).await;
    }
}

#[tokio::test]
async fn idle_streams_are_forgotten() {
    let world = world(Capabilities::all()).await;
    let appender = Appender::new(world.store.clone(), Duration::ZERO);
    let append = async |n: usize, bytes: usize| {
        let stream = StreamName::new("Log", n.to_string().as_str()).unwrap();
        let event = EventData::new("Noted", vec![b'x'; bytes]);
        appender.append(&stream, vec![event]).await.unwrap();
        sent(&world)
    };
    // 1024 idle streams are remembered; the longest idle one is forgotten.
    for n in 0..1025 {
        assert_eq!(append(n, 1).await, ["GetItem", "PutItem"]);
    }
    for n in [1024, 1, 2] {
        assert_eq!(append(n, 1).await, ["UpdateItem"]);
    }
    assert_eq!(append(0, 1).await, ["GetItem", "UpdateItem"]);
    assert_eq!(append(1, 1).await, ["UpdateItem"]);
    assert_eq!(append(3, 1).await, ["GetItem", "UpdateItem"]);
    // The remembered Tips of 300 KiB are limited in bytes.
    for n in 2000..2060 {
        append(n, 300 << 10).await;
    }
    assert_eq!(append(2059, 1).await, ["TransactWriteItems"]);
    assert_eq!(append(2000, 1).await, ["GetItem", "TransactWriteItems"]);
    assert_eq!(append(1, 1).await, ["GetItem", "UpdateItem"]);
}
