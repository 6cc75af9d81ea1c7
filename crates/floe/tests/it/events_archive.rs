//! Archiving: nothing is deleted that is not in the archive, whatever comes between.

use std::collections::BTreeSet;
use std::sync::Arc;

use floe::ErrorKind;
use floe::events::{EventData, EventStore, EventStoreOptions, Expected, Recorded};
use floe_store::{Capabilities, Value};
use floe_testkit::fault::{FaultKind, Operation};

use crate::support::{gate, streams};
use gate::Side;
use streams::{World, event, items_of, options, stream};

/// Three batches of three, and two in the Tip.
const VERSION: u64 = 11;

async fn world(capabilities: Capabilities) -> Arc<World> {
    let world = World::with(capabilities, options().archive("archive")).await;
    archive(&world).ensure_table().await.unwrap();
    world.append(&stream(), 0..VERSION).await;
    Arc::new(world)
}

/// The archive as a store of its own.
fn archive(world: &World) -> EventStore {
    let options = EventStoreOptions::new("archive");
    world.other.db().event_store(options)
}

async fn read(store: &EventStore) -> Vec<Recorded> {
    store.read(&stream()).collect().await.unwrap()
}

fn indexes(events: &[Recorded]) -> Vec<u64> {
    events.iter().map(|read| read.index).collect()
}

/// Everything is in the archive or in the stream, and what is left in the stream has no gap. The batches of the archive
/// may overlap, so they are looked at one by one.
async fn check_complete(world: &World, version: u64, place: &str) {
    let left = read(&world.other).await;
    let mut found: BTreeSet<_> = indexes(&left).into_iter().collect();
    for read in left {
        assert_eq!(read.event, event(read.index), "{place}");
    }
    for item in items_of(&*world.engine, "archive", &stream()).await {
        let number = |name: &str| item.get(name).and_then(Value::as_n).unwrap().to_u64();
        let range = number("i").unwrap()..number("n").unwrap();
        let bodies = item.get("e").and_then(Value::as_l).unwrap().iter();
        let bodies: Vec<_> = bodies
            .map(|event| {
                event
                    .as_m()
                    .unwrap()
                    .get("d")
                    .and_then(Value::as_b)
                    .unwrap()
            })
            .collect();
        let expected: Vec<_> = range.clone().map(|index| event(index).data).collect();
        assert_eq!(bodies, expected, "{place}");
        found.extend(range);
    }
    assert_eq!(found, (0..version).collect(), "{place}");
    assert_eq!(world.other.version(&stream()).await.unwrap(), version);
}

#[tokio::test]
async fn what_is_pruned_is_in_the_archive() {
    for before in 0..=VERSION + 1 {
        let world = world(Capabilities::all()).await;
        let pruned = world.store.archive(&stream(), before).await.unwrap();
        let archived = read(&archive(&world)).await;
        let left = read(&world.other).await;
        let lowest = match before {
            0..9 => before / 3 * 3,
            _ => before.min(VERSION),
        };
        assert_eq!((pruned.deleted, pruned.lowest), (lowest, lowest));
        assert_eq!(pruned.deferred, before.min(VERSION) - lowest);
        assert_eq!(indexes(&archived), (0..lowest).collect::<Vec<_>>());
        assert_eq!(indexes(&left), (lowest..VERSION).collect::<Vec<_>>());
        check_complete(&world, VERSION, &format!("before={before}")).await;
    }
}

/// An archiving ends before or after any of its writes. Then the stream grows, and it is done again.
#[tokio::test]
async fn an_archiving_may_end_anywhere_and_be_done_again() {
    for side in [Side::Before, Side::After] {
        for at in 0..8 {
            for appended in 0..4 {
                for again in [4, 9, 10, 11, 13] {
                    let place = format!("{side:?} at={at} appended={appended} again={again}");
                    let world = world(Capabilities::all()).await;
                    let mut doors: Vec<_> = (0..=at)
                        .map(|n| {
                            let side = if n < at { Side::Before } else { side };
                            world.gate.hold("write_item", side)
                        })
                        .collect();
                    let mut last = doors.pop().unwrap();
                    let there = world.clone();
                    let task =
                        tokio::spawn(async move { there.store.archive(&stream(), 10).await });
                    for mut door in doors {
                        door.arrived().await;
                        door.open();
                    }
                    last.arrived().await;
                    task.abort();
                    assert!(task.await.unwrap_err().is_cancelled());
                    check_complete(&world, VERSION, &place).await;

                    let version = VERSION + appended;
                    world.append(&stream(), VERSION..version).await;
                    world.store.archive(&stream(), again).await.unwrap();
                    check_complete(&world, version, &place).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn answers_that_are_lost_do_no_harm() {
    for kind in [FaultKind::LostBefore, FaultKind::LostAfter] {
        let world = world(Capabilities::dynamodb()).await;
        for _ in 0..8 {
            world.faults.script(Operation::WriteItem, kind).unwrap();
        }
        let pruned = world.store.archive(&stream(), 10).await.unwrap();
        assert_eq!((pruned.deleted, pruned.lowest), (10, 10));
        let archived = read(&archive(&world)).await;
        assert_eq!(indexes(&archived), (0..10).collect::<Vec<_>>());
        check_complete(&world, VERSION, "lost").await;
    }
}

#[tokio::test]
async fn an_archive_of_other_events_is_left_alone() {
    let world = world(Capabilities::all()).await;
    let stream = stream();
    // Two appends, of which the second moves the first into a batch.
    let elsewhere = archive(&world);
    for version in 0..2 {
        let large = [EventData::new("Other", vec![b'x'; 20 << 10])];
        let append = elsewhere.append(&stream, Expected::Exact(version), large);
        append.await.unwrap();
    }
    let stood = world.items(&stream).await;
    let error = world.store.archive(&stream, 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidEvent);
    assert!(error.to_string().contains("archive=archive"), "{error}");
    assert_eq!(world.items(&stream).await, stood);

    let without = World::new(Capabilities::all()).await;
    let error = without.store.archive(&stream, 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert!(without.recording.take().is_empty());
}
