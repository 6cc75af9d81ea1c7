//! How the state of a stream is found: by which requests, in which strategy, from which tables.

use floe::events::{
    Decider, EventData, EventStore, EventStoreOptions, Expected, StreamName, Unknown,
};
use floe::{Error, ErrorKind};
use floe_store::Item;
use floe_store::op::DeleteItem;

use super::support::{Note, Notes, Way, World, append, name, note, noted, notes, stream, world};

const GET: &str = r#"GetItem events {"i": 2147483647, "p": "Notes-a"}"#;

/// Notes 0 to 9: calves at 0, 3 and 6, and the last one in the Tip.
async fn ten(world: &World) {
    let store = world.calving(3);
    for at in [0, 3, 6] {
        append(&store, "a", noted(at..at + 3)).await;
    }
    append(&store, "a", noted([9])).await;
    assert_eq!(world.items(&name("a")).await.len(), 4);
    world.sent();
}

fn paged(world: &World, items: usize) -> EventStore {
    world
        .db
        .event_store(EventStoreOptions::default().page_items(items))
}

async fn remove(world: &World, index: u64) {
    let key = Item::new().with("p", "Notes-a").with("i", index);
    let delete = DeleteItem::new("events", key);
    world
        .other
        .engine()
        .write_item(delete.into())
        .await
        .unwrap();
}

/// The requests for the batches before an index, so many times.
fn backward(index: u64, limit: usize, times: usize) -> Vec<String> {
    let query =
        format!(r#"Query events p = "Notes-a" AND i < {index} backward limit {limit} eventual"#);
    vec![query; times]
}

#[tokio::test]
async fn no_stream_is_the_initial_state() {
    let world = world().await;
    for way in Way::ALL {
        let stream = stream(&world.store(), "a", way);
        let seen = stream.query_versioned(|state, version| (state.clone(), version));
        assert_eq!(seen.await.unwrap(), (Vec::new(), 0));
        assert_eq!(world.sent().len(), 1, "{way:?}");
    }
}

#[tokio::test]
async fn unoptimized_is_loaded_by_query_alone() {
    let world = world().await;
    ten(&world).await;
    let all = stream(&world.store(), "a", Way::Unoptimized);
    assert_eq!(notes(&all).await, Vec::from_iter(0..10));
    assert_eq!(
        world.sent(),
        [r#"Query events p = "Notes-a" limit 32 eventual"#]
    );
}

#[tokio::test]
async fn unoptimized_reads_no_page_behind_the_tip() {
    let world = world().await;
    ten(&world).await;
    for (items, requests) in [(1, 4), (2, 2), (3, 2), (4, 1), (5, 1)] {
        let all = stream(&paged(&world, items), "a", Way::Unoptimized);
        assert_eq!(notes(&all).await, Vec::from_iter(0..10));
        assert_eq!(world.sent().len(), requests, "page_items={items}");
    }
}

#[tokio::test]
async fn an_origin_in_the_tip_takes_one_get() {
    let world = world().await;
    for way in [
        Way::Latest,
        Way::Snapshot,
        Way::Multi,
        Way::Rolling,
        Way::Custom,
    ] {
        let id = format!("{way:?}");
        let stream = stream(&world.calving(2), &id, way);
        for one in 0..5 {
            note(&stream, one).await.unwrap();
        }
        world.sent();
        let expected = match way {
            Way::Latest => vec![4],
            _ => Vec::from_iter(0..5),
        };
        assert_eq!(notes(&stream).await, expected, "{way:?}");
        let get = format!(r#"GetItem events {{"i": 2147483647, "p": "Notes-{id}"}} eventual"#);
        assert_eq!(world.sent(), [get], "{way:?}");
    }
}

#[tokio::test]
async fn without_a_snapshot_batches_are_read_backwards_until_there_are_no_more() {
    let world = world().await;
    ten(&world).await;
    for (items, requests) in [(1, 3), (2, 2), (3, 1)] {
        let snapshot = stream(&paged(&world, items), "a", Way::Snapshot);
        assert_eq!(notes(&snapshot).await, Vec::from_iter(0..10));
        let mut expected = vec![format!("{GET} eventual")];
        expected.extend(backward(9, items, requests));
        assert_eq!(world.sent(), expected);
    }
}

#[tokio::test]
async fn batches_before_an_origin_are_not_read() {
    let world = world().await;
    let store = world.calving(2);
    append(&store, "a", noted([1, 2])).await;
    append(
        &store,
        "a",
        [noted([3]), vec![EventData::new("Cleared", "")]].concat(),
    )
    .await;
    append(&store, "a", noted([4, 5])).await;
    append(&store, "a", noted([6])).await;
    world.sent();
    let snapshot = stream(&paged(&world, 1), "a", Way::Snapshot);
    assert_eq!(notes(&snapshot).await, [4, 5, 6]);
    let mut expected = vec![format!("{GET} eventual")];
    expected.extend(backward(6, 1, 2));
    assert_eq!(
        world.sent(),
        expected,
        "the batch at 0 is before the origin"
    );
}

#[tokio::test]
async fn loading_takes_no_more_requests_than_are_allowed() {
    let world = world().await;
    ten(&world).await;
    for (way, needed) in [(Way::Snapshot, 3), (Way::Unoptimized, 4)] {
        for allowed in 0..6 {
            let options = EventStoreOptions::default()
                .page_items(1)
                .requests_max(allowed);
            let stream = stream(&world.db.event_store(options), "a", way);
            match stream.query(Clone::clone).await {
                Ok(found) => {
                    assert_eq!(found.len(), 10);
                    assert!(allowed >= needed, "{way:?} allowed={allowed}");
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::TooLarge);
                    assert!(allowed < needed, "{way:?} allowed={allowed}");
                }
            }
        }
    }
}

#[tokio::test]
async fn events_that_are_missing_are_looked_for_in_the_archive() {
    let world = world().await;
    ten(&world).await;
    let archived = EventStoreOptions::new("archive");
    world
        .other
        .event_store(archived)
        .ensure_table()
        .await
        .unwrap();
    let options = || {
        EventStoreOptions::default()
            .page_items(2)
            .archive("archive")
    };
    for calf in world.items(&name("a")).await.into_iter().take(2) {
        world.put_into("archive", calf).await;
    }
    for index in [0, 3] {
        remove(&world, index).await;
    }
    for way in [Way::Unoptimized, Way::Snapshot] {
        let stream = stream(&world.db.event_store(options()), "a", way);
        assert_eq!(notes(&stream).await, Vec::from_iter(0..10), "{way:?}");
        let last = world.sent().pop().unwrap();
        assert!(
            last.starts_with(r#"Query archive p = "Notes-a" AND i < 6 backward"#),
            "{last}"
        );
    }
}

#[tokio::test]
async fn missing_events_are_an_error_unless_they_are_ignored() {
    let world = world().await;
    ten(&world).await;
    remove(&world, 0).await;
    for way in [Way::Unoptimized, Way::Snapshot] {
        let strict = stream(&world.store(), "a", way);
        let error = strict.query(|_| ()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MissingEvents);
        assert_eq!(
            error.to_string(),
            "required events are no longer in the stream, and there is no archive: stream=Notes-a lowest=3"
        );
        let options = EventStoreOptions::default().ignore_missing();
        let lax = stream(&world.db.event_store(options), "a", way);
        assert_eq!(notes(&lax).await, Vec::from_iter(3..10), "{way:?}");
        assert_eq!(
            notes(&stream(&world.store(), "a", Way::Latest)).await,
            [9],
            "what is not needed is not missed"
        );
    }
}

#[tokio::test]
async fn a_gap_in_the_middle_is_an_error() {
    let world = world().await;
    ten(&world).await;
    remove(&world, 3).await;
    for way in [Way::Unoptimized, Way::Snapshot] {
        let error = stream(&world.store(), "a", way)
            .query(|_| ())
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MissingEvents);
        assert!(
            error
                .to_string()
                .contains("gap: stream=Notes-a from=3 to=6"),
            "{error}"
        );
    }
    let at = name("a");
    let error = world.store().read(&at).collect().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "a stream has a gap: stream=Notes-a expected=3 found=6"
    );
}

/// Notes that must all be known.
struct Strict;

impl Decider for Strict {
    const CATEGORY: &'static str = "Notes";
    type Id = str;
    type Event = Note;
    type State = Vec<u32>;

    fn initial() -> Vec<u32> {
        Notes::initial()
    }

    fn evolve(state: Vec<u32>, event: &Note) -> Vec<u32> {
        Notes::evolve(state, event)
    }

    fn unknown() -> Unknown {
        Unknown::Refuse
    }
}

#[tokio::test]
async fn unknown_types_are_skipped_or_refused() {
    let world = world().await;
    let store = world.store();
    append(&store, "a", noted([1])).await;
    append(&store, "a", [EventData::new("GiftWrapped", "")]).await;
    append(&store, "a", noted([2])).await;
    for way in [Way::Unoptimized, Way::Snapshot, Way::Custom] {
        assert_eq!(notes(&stream(&store, "a", way)).await, [1, 2], "{way:?}");
    }
    let error = store.stream::<Strict>("a").query(|_| ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidEvent);
    assert_eq!(
        error.to_string(),
        "the program does not know this type of event: type=GiftWrapped stream=Notes-a index=1"
    );
}

#[tokio::test]
async fn the_latest_event_that_is_known_counts() {
    let world = world().await;
    let store = world.store();
    append(&store, "a", noted([1, 2])).await;
    append(&store, "a", [EventData::new("GiftWrapped", "")]).await;
    assert_eq!(notes(&stream(&store, "a", Way::Latest)).await, [2]);
}

/// What a strategy finds of the notes 1 and 2 that another has written.
fn found(writer: Way, reader: Way) -> &'static [u32] {
    let sees_last = matches!(reader, Way::Latest | Way::Rolling);
    match writer {
        // It keeps no events, and who looks for events finds none.
        Way::Rolling if reader == Way::Unoptimized => &[],
        // The last event is all there is in the Tip that tells the state.
        Way::Unoptimized | Way::Latest if sees_last => &[2],
        _ => &[1, 2],
    }
}

#[tokio::test]
async fn strategies_are_exchanged_on_a_stream_that_is_there() {
    for writer in Way::ALL {
        for reader in Way::ALL {
            let world = world().await;
            let store = world.calving(1);
            for one in [1, 2] {
                note(&stream(&store, "a", writer), one).await.unwrap();
            }
            let other = stream(&store, "a", reader);
            let expected = found(writer, reader);
            assert_eq!(notes(&other).await, expected, "{writer:?} {reader:?}");
            note(&other, 3).await.unwrap();
            let expected = match reader {
                Way::Latest => vec![3],
                _ => [expected, &[3]].concat(),
            };
            assert_eq!(notes(&other).await, expected, "{writer:?} {reader:?}");
            world.sent();
            notes(&other).await;
            let first = world.kinds().remove(0);
            let by_query = reader == Way::Unoptimized;
            assert_eq!(first, if by_query { "Query" } else { "GetItem" });
        }
    }
}

#[tokio::test]
async fn snapshots_in_two_forms_are_kept_and_the_last_is_looked_at_first() {
    let world = world().await;
    let multi = stream(&world.store(), "a", Way::Multi);
    note(&multi, 1).await.unwrap();
    let tip = world.tip(&name("a")).await;
    let forms = tip.get("u").unwrap().as_l().unwrap();
    let forms: Vec<_> = forms
        .iter()
        .map(|form| form.as_m().unwrap().get("c").unwrap())
        .collect();
    assert_eq!(forms, [&"Whole".into(), &"Kept".into()]);
    assert_eq!(notes(&multi).await, [1]);
    assert_eq!(
        notes(&stream(&world.store(), "a", Way::Snapshot)).await,
        [1]
    );
}

/// The indexes that were read.
async fn read(read: floe::events::read::ReadEvents<'_>) -> Vec<u64> {
    let events = read.collect().await.unwrap();
    events.iter().map(|event| event.index).collect()
}

#[tokio::test]
async fn events_are_read_from_anywhere_in_both_directions() {
    let world = world().await;
    ten(&world).await;
    let at = name("a");
    for items in 1..6 {
        let store = paged(&world, items);
        assert_eq!(read(store.read(&at)).await, Vec::from_iter(0..10));
        assert_eq!(
            read(store.read(&at).backward()).await,
            Vec::from_iter((0..10).rev())
        );
        for from in 0..12 {
            for count in 0..11 {
                let forward = read(store.read(&at).from(from).max_count(count)).await;
                let expected = (0..10).filter(|index| *index >= from).take(count as usize);
                assert_eq!(forward, Vec::from_iter(expected), "{items} {from} {count}");
                let back = read(store.read(&at).backward().from(from).max_count(count)).await;
                let expected = (0..10).rev().filter(|index| *index <= from);
                let expected = expected.take(count as usize);
                assert_eq!(back, Vec::from_iter(expected), "{items} {from} {count}");
            }
        }
    }
    assert_eq!(world.store().version(&at).await.unwrap(), 10);
    let nobody = name("nobody");
    assert!(read(world.store().read(&nobody)).await.is_empty());
    assert_eq!(world.store().version(&nobody).await.unwrap(), 0);
}

#[tokio::test]
async fn reading_from_an_index_skips_the_batches_before_it() {
    let world = world().await;
    ten(&world).await;
    let (at, store) = (name("a"), world.store());
    assert_eq!(read(store.read(&at).from(7)).await, [7, 8, 9]);
    assert_eq!(
        world.sent(),
        [
            r#"Query events p = "Notes-a" AND i <= 7 backward limit 1"#,
            r#"Query events p = "Notes-a" AND i >= 6 limit 32"#
        ]
    );
    assert_eq!(read(store.read(&at).eventual().max_count(1)).await, [0]);
    assert_eq!(
        world.sent(),
        [r#"Query events p = "Notes-a" limit 32 eventual"#]
    );
    drop(store.read(&at).pages());
    assert!(world.sent().is_empty());
}

#[tokio::test]
async fn events_that_are_calved_between_two_pages_are_read_once() {
    for forward in [true, false] {
        let world = world().await;
        ten(&world).await;
        let (at, store) = (name("a"), paged(&world, 1));
        let read = match forward {
            true => store.read(&at),
            false => store.read(&at).backward(),
        };
        let mut pages = read.pages();
        let mut indexes = Vec::new();
        let mut next = 10;
        while let Some(page) = pages.next_page().await.unwrap() {
            indexes.extend(page.iter().map(|event| event.index));
            if next < 14 {
                append(&world.calving(1), "a", noted([next, next + 1])).await;
                next += 2;
            }
        }
        let expected = match forward {
            true => Vec::from_iter(0..14),
            false => Vec::from_iter((0..10).rev()),
        };
        assert_eq!(indexes, expected, "forward={forward}");
    }
}

#[tokio::test]
async fn the_streams_of_a_category_are_listed_once_each() {
    let world = world().await;
    let store = world.calving(1);
    for id in ["a", "b"] {
        for one in 0..3 {
            append(&store, id, noted([one])).await;
        }
    }
    let other = StreamName::new("Notesbook", "a").unwrap();
    store
        .append(&other, Expected::New, noted([1]))
        .await
        .unwrap();
    let listed = async |category| {
        let mut names = store.streams(category).collect().await.unwrap();
        names.sort();
        names
    };
    assert_eq!(listed(Some("Notes")).await, [name("a"), name("b")]);
    assert_eq!(listed(None).await, [name("a"), name("b"), other]);
    assert!(listed(Some("None")).await.is_empty());
}

#[tokio::test]
async fn a_table_that_is_missing_is_told_with_what_to_do() {
    let world = world().await;
    let store = world.db.event_store(EventStoreOptions::new("nowhere"));
    let at = name("a");
    let told = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Table, "{error}");
        assert!(
            error.to_string().contains("ensure_table: table=nowhere"),
            "{error}"
        );
    };
    told(
        store
            .append(&at, Expected::Any, noted([1]))
            .await
            .unwrap_err(),
    );
    told(
        store
            .append(&at, Expected::New, noted([1]))
            .await
            .unwrap_err(),
    );
    told(store.read(&at).collect().await.unwrap_err());
    told(store.version(&at).await.unwrap_err());
    for way in Way::ALL {
        told(stream(&store, "a", way).query(|_| ()).await.unwrap_err());
    }
}
