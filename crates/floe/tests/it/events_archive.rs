//! Archiving: nothing is deleted that is not in the archive, even if archiving is interrupted.

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

/// The archive as a separate store.
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

/// Checks that all events are in the archive or in the stream, which has no gap. Batches of the archive may overlap, so
/// they are checked one by one.
async fn check_complete(world: &World, version: u64, context: &str) {
    let remaining = read(&world.other).await;
    let mut found: BTreeSet<_> = indexes(&remaining).into_iter().collect();
    for read in remaining {
        assert_eq!(read.event, event(read.index), "{context}");
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
        assert_eq!(bodies, expected, "{context}");
        found.extend(range);
    }
    assert_eq!(found, (0..version).collect(), "{context}");
    assert_eq!(world.other.version(&stream()).await.unwrap(), version);
}

#[tokio::test]
async fn pruned_events_are_in_the_archive() {
    for before in 0..=VERSION + 1 {
        let world = world(Capabilities::all()).await;
        let pruned = world.store.archive(&stream(), before).await.unwrap();
        let archived = read(&archive(&world)).await;
        let remaining = read(&world.other).await;
        let lowest = match before {
            0..9 => before / 3 * 3,
            _ => before.min(VERSION),
        };
        assert_eq!((pruned.deleted, pruned.lowest), (lowest, lowest));
        assert_eq!(pruned.deferred, before.min(VERSION) - lowest);
        assert_eq!(indexes(&archived), (0..lowest).collect::<Vec<_>>());
        assert_eq!(indexes(&remaining), (lowest..VERSION).collect::<Vec<_>>());
        check_complete(&world, VERSION, &format!("before={before}")).await;
    }
}

/// Archiving is cancelled before or after each of its writes. Then the stream grows, and archiving is repeated.
#[tokio::test]
async fn interrupted_archiving_can_be_repeated() {
    for side in [Side::Before, Side::After] {
        for at in 0..8 {
            for appended in 0..4 {
                for repeated_before in [4, 9, 10, 11, 13] {
                    let context = format!(
                        "{side:?} at={at} appended={appended} repeated_before={repeated_before}"
                    );
                    let world = world(Capabilities::all()).await;
                    let mut held: Vec<_> = (0..=at)
                        .map(|n| {
                            let side = if n < at { Side::Before } else { side };
                            world.gate.hold("write_item", side)
                        })
                        .collect();
                    let mut last = held.pop().unwrap();
                    let world_of_task = world.clone();
                    let task =
                        tokio::spawn(
                            async move { world_of_task.store.archive(&stream(), 10).await },
                        );
                    for mut write in held {
                        write.arrived().await;
                        write.open();
                    }
                    last.arrived().await;
                    task.abort();
                    assert!(task.await.unwrap_err().is_cancelled());
                    check_complete(&world, VERSION, &context).await;

                    let version = VERSION + appended;
                    world.append(&stream(), VERSION..version).await;
                    world
                        .store
                        .archive(&stream(), repeated_before)
                        .await
                        .unwrap();
                    check_complete(&world, version, &context).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn archiving_tolerates_lost_responses() {
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
async fn archive_with_other_events_is_not_changed() {
    let world = world(Capabilities::all()).await;
    let stream = stream();
    // The second append calves the first one.
    let archive_store = archive(&world);
    for version in 0..2 {
        let large = [EventData::new("Other", vec![b'x'; 20 << 10])];
        let append = archive_store.append(&stream, Expected::Exact(version), large);
        append.await.unwrap();
    }
    let before = world.items(&stream).await;
    let error = world.store.archive(&stream, 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidEvent);
    assert!(error.to_string().contains("archive=archive"), "{error}");
    assert_eq!(world.items(&stream).await, before);

    let without = World::new(Capabilities::all()).await;
    let error = without.store.archive(&stream, 10).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidUse);
    assert!(without.recording.take().is_empty());
}
