//! Events that do not fit into an item: refused, compressed, or appended in parts.

use floe::ErrorKind;
use floe::events::{Compression, EventData, EventStoreOptions, Expected, StreamName};

use super::support::{append, name, world};

/// Events of 150 KiB, of which two fit into an item.
fn rows(count: usize) -> Vec<EventData> {
    let row = |n: usize| EventData::new("Row", n.to_string().repeat(150 << 10));
    (0..count).map(row).collect()
}

fn at() -> StreamName {
    name("a")
}

#[tokio::test]
async fn large_bodies_alone_are_compressed_where_that_is_asked_for() {
    let world = world().await;
    let large = || EventData::new("Row", "lorem ipsum ".repeat(60_000));
    let refused = world.store().append(&at(), Expected::New, [large()]).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::TooLarge);
    assert!(world.sent().is_empty());

    let options = EventStoreOptions::default().compression(Compression::BrotliFrom(64 << 10));
    let store = world.db.event_store(options);
    let small = EventData::new("Row", "lorem ipsum ".repeat(100));
    let events = [small.clone(), large()];
    assert_eq!(store.append(&at(), Expected::New, events).await, Ok(2));
    let read = world.store().read(&at()).collect().await.unwrap();
    assert_eq!([&read[0].event, &read[1].event], [&small, &large()]);
    let tip = world.tip(&at()).await;
    let events = tip.get("e").unwrap().as_l().unwrap();
    let encodings = events
        .iter()
        .map(|event| event.as_m().unwrap().get("D").cloned());
    assert_eq!(encodings.collect::<Vec<_>>(), [None, Some(2.into())]);
}

#[tokio::test]
async fn each_part_is_one_write_and_nothing_is_read() {
    let world = world().await;
    let events = rows(5);
    let whole = world
        .store()
        .append(&at(), Expected::New, events.clone())
        .await;
    assert_eq!(whole.unwrap_err().kind(), ErrorKind::TooLarge);
    assert!(world.sent().is_empty());

    let store = world.store();
    assert_eq!(store.append_in_parts(&at(), 0, events.clone()).await, Ok(5));
    assert_eq!(
        world.kinds(),
        ["PutItem", "TransactWriteItems", "TransactWriteItems"]
    );
    let read = store.read(&at()).collect().await.unwrap();
    let read: Vec<_> = read.into_iter().map(|read| read.event).collect();
    assert_eq!(read, events);
}

#[tokio::test]
async fn a_call_that_was_interrupted_goes_on_where_it_ended() {
    for done in 0..6 {
        let world = world().await;
        let store = world.store();
        append(&store, "a", [EventData::new("Begun", "")]).await;
        let events = rows(5);
        // With what the ids are when nobody has given any.
        let there = events
            .iter()
            .take(done)
            .map(|event| event.clone().correlation(""));
        for event in there {
            append(&store, "a", [event]).await;
        }
        world.sent();
        assert_eq!(store.append_in_parts(&at(), 1, events.clone()).await, Ok(6));
        let writes = world
            .kinds()
            .into_iter()
            .filter(|kind| kind.ends_with("Items") || kind == "UpdateItem");
        assert_eq!(writes.count(), (5 - done).div_ceil(2), "done={done}");
        let read = store.read(&at()).from(1).collect().await.unwrap();
        let read: Vec<_> = read.into_iter().map(|read| read.event).collect();
        assert_eq!(read, events, "done={done}");
    }
}

#[tokio::test]
async fn what_others_have_appended_is_not_taken_for_ones_own() {
    let world = world().await;
    let store = world.store();
    let mut others = rows(2);
    others[1].data[0] = b'x';
    for events in [others, rows(6)] {
        let world = super::support::world().await;
        for event in events.clone() {
            append(&world.store(), "a", [event]).await;
        }
        let parts = world.store().append_in_parts(&at(), 0, rows(5)).await;
        assert_eq!(parts.unwrap_err().kind(), ErrorKind::VersionConflict);
        let version = world.store().version(&at()).await;
        assert_eq!(version, Ok(events.len() as u64));
    }
    let early = store.append_in_parts(&at(), 3, rows(1)).await.unwrap_err();
    assert_eq!(early.kind(), ErrorKind::VersionConflict);
    assert_eq!(
        early.to_string(),
        "the stream is at another version: stream=Notes-a expected=3 actual=0"
    );
}

#[tokio::test]
async fn who_comes_in_between_ends_it_and_leaves_the_parts_before() {
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
    let error = world.store().append_in_parts(&at(), 0, rows(5)).await;
    let error = error.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::VersionConflict);
    assert_eq!(world.store().version(&at()).await, Ok(3));
}

#[tokio::test]
async fn an_event_that_fits_into_no_item_is_refused_before_anything_is_sent() {
    let world = world().await;
    let mut events = rows(3);
    events.push(EventData::new("Row", vec![0; 400 << 10]));
    let store = world.store();
    let error = store.append_in_parts(&at(), 0, events).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("event=3 bytes="), "{error}");
    let none = store.append_in_parts(&at(), 0, []).await.unwrap_err();
    assert_eq!(none.kind(), ErrorKind::InvalidUse);
    assert!(world.sent().is_empty());
}
