//! Events that do not fit into an item: rejected, compressed, or appended in parts.

use floe::ErrorKind;
use floe::events::{Compression, EventData, EventStoreOptions, Expected, StreamName};

use super::support::{append, name, world};

/// Events of 150 KiB, of which two fit into an item.
fn rows(count: usize) -> Vec<EventData> {
    let row = |n: usize| EventData::new("Row", n.to_string().repeat(150 << 10));
    (0..count).map(row).collect()
}

fn stream_name() -> StreamName {
    name("a")
}

#[tokio::test]
async fn brotli_from_compresses_large_bodies_only() {
    let world = world().await;
    let large = || EventData::new("Row", "lorem ipsum ".repeat(60_000));
    let rejected = world
        .store()
        .append(&stream_name(), Expected::New, [large()])
        .await;
    assert_eq!(rejected.unwrap_err().kind(), ErrorKind::TooLarge);
    assert!(world.sent().is_empty());

    let options = EventStoreOptions::default().compression(Compression::BrotliFrom(64 << 10));
    let store = world.db.event_store(options);
    let small = EventData::new("Row", "lorem ipsum ".repeat(100));
    let events = [small.clone(), large()];
    assert_eq!(
        store.append(&stream_name(), Expected::New, events).await,
        Ok(2)
    );
    let read = world.store().read(&stream_name()).collect().await.unwrap();
    assert_eq!([&read[0].event, &read[1].event], [&small, &large()]);
    let tip = world.tip(&stream_name()).await;
    let events = tip.get("e").unwrap().as_l().unwrap();
    let encodings = events
        .iter()
        .map(|event| event.as_m().unwrap().get("D").cloned());
    assert_eq!(encodings.collect::<Vec<_>>(), [None, Some(2.into())]);
}

#[tokio::test]
async fn each_part_is_one_write_without_a_read() {
    let world = world().await;
    let events = rows(5);
    let whole = world
        .store()
        .append(&stream_name(), Expected::New, events.clone())
        .await;
    assert_eq!(whole.unwrap_err().kind(), ErrorKind::TooLarge);
    assert!(world.sent().is_empty());

    let store = world.store();
    assert_eq!(
        store
            .append_in_parts(&stream_name(), 0, events.clone())
            .await,
        Ok(5)
    );
    assert_eq!(
        world.operations(),
        ["PutItem", "TransactWriteItems", "TransactWriteItems"]
    );
    let read = store.read(&stream_name()).collect().await.unwrap();
    let read: Vec<_> = read.into_iter().map(|read| read.event).collect();
    assert_eq!(read, events);
}

#[tokio::test]
async fn interrupted_call_is_continued() {
    for appended in 0..6 {
        let world = world().await;
        let store = world.store();
        append(&store, "a", [EventData::new("Started", "")]).await;
        let events = rows(5);
        // An empty correlation id is stored as none.
        let existing = events
            .iter()
            .take(appended)
            .map(|event| event.clone().correlation(""));
        for event in existing {
            append(&store, "a", [event]).await;
        }
        world.sent();
        assert_eq!(
            store
                .append_in_parts(&stream_name(), 1, events.clone())
                .await,
            Ok(6)
        );
        let writes = world
            .operations()
            .into_iter()
            .filter(|kind| kind.ends_with("Items") || kind == "UpdateItem");
        assert_eq!(
            writes.count(),
            (5 - appended).div_ceil(2),
            "appended={appended}"
        );
        let read = store.read(&stream_name()).from(1).collect().await.unwrap();
        let read: Vec<_> = read.into_iter().map(|read| read.event).collect();
        assert_eq!(read, events, "appended={appended}");
    }
}

#[tokio::test]
async fn events_of_other_writers_are_a_version_conflict() {
    let world = world().await;
    let store = world.store();
    let mut different = rows(2);
    different[1].data[0] = b'x';
    for events in [different, rows(6)] {
        let world = super::support::world().await;
        for event in events.clone() {
            append(&world.store(), "a", [event]).await;
        }
        let parts = world
            .store()
            .append_in_parts(&stream_name(), 0, rows(5))
            .await;
        assert_eq!(parts.unwrap_err().kind(), ErrorKind::VersionConflict);
        let version = world.store().version(&stream_name()).await;
        assert_eq!(version, Ok(events.len() as u64));
    }
    let early = store
        .append_in_parts(&stream_name(), 3, rows(1))
        .await
        .unwrap_err();
    assert_eq!(early.kind(), ErrorKind::VersionConflict);
    assert_eq!(
        early.to_string(),
        "the stream is at another version: stream=Notes-a expected=3 actual=0"
    );
}

#[tokio::test]
async fn concurrent_append_ends_the_call_after_the_earlier_parts() {
    let world = world().await;
    let other = world.other.events();
    world.probe.before_writes(move |write| {
        let other = other.clone();
        Box::pin(async move {
            if write == 1 {
                append(&other, "a", [EventData::new("Other", "")]).await;
            }
        })
    });
    let error = world
        .store()
        .append_in_parts(&stream_name(), 0, rows(5))
        .await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::VersionConflict);
    assert_eq!(world.store().version(&stream_name()).await, Ok(3));
}

#[tokio::test]
async fn oversized_event_is_rejected_before_a_request() {
    let world = world().await;
    let mut events = rows(3);
    events.push(EventData::new("Row", vec![0; 400 << 10]));
    let store = world.store();
    let error = store
        .append_in_parts(&stream_name(), 0, events)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("event=3 bytes="), "{error}");
    let none = store
        .append_in_parts(&stream_name(), 0, [])
        .await
        .unwrap_err();
    assert_eq!(none.kind(), ErrorKind::InvalidUse);
    assert!(world.sent().is_empty());
}
