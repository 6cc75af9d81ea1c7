//! Loading the state of a stream: requests, strategies and tables.

use floe::events::{
    Decider, EventData, EventStore, EventStoreOptions, Expected, StreamName, Unknown,
};
use floe::{Error, ErrorKind};
use floe_store::Item;
use floe_store::op::DeleteItem;

use super::support::{
    Note, Notes, Strategy, World, append, name, note, noted, notes, stream, world,
};

const GET: &str = r#"GetItem events {"i": 2147483647, "p": "Notes-a"}"#;

/// Appends the notes 0 to 9: calves at 0, 3 and 6, and the last note in the Tip.
async fn append_ten(world: &World) {
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

/// This number of queries for the batches before an index.
fn backward(index: u64, limit: usize, times: usize) -> Vec<String> {
    let query =
        format!(r#"Query events p = "Notes-a" AND i < {index} backward limit {limit} eventual"#);
    vec![query; times]
}

#[tokio::test]
async fn missing_stream_has_the_initial_state() {
    let world = world().await;
    for strategy in Strategy::ALL {
        let stream = stream(&world.store(), "a", strategy);
        let seen = stream.query_versioned(|state, version| (state.clone(), version));
        assert_eq!(seen.await.unwrap(), (Vec::new(), 0));
        assert_eq!(world.sent().len(), 1, "{strategy:?}");
    }
}

#[tokio::test]
async fn unoptimized_loads_by_query_only() {
    let world = world().await;
    append_ten(&world).await;
    let all = stream(&world.store(), "a", Strategy::Unoptimized);
    assert_eq!(notes(&all).await, Vec::from_iter(0..10));
    assert_eq!(
        world.sent(),
        [r#"Query events p = "Notes-a" limit 32 eventual"#]
    );
}

#[tokio::test]
async fn unoptimized_reads_no_page_after_the_tip() {
    let world = world().await;
    append_ten(&world).await;
    for (items, requests) in [(1, 4), (2, 2), (3, 2), (4, 1), (5, 1)] {
        let all = stream(&paged(&world, items), "a", Strategy::Unoptimized);
        assert_eq!(notes(&all).await, Vec::from_iter(0..10));
        assert_eq!(world.sent().len(), requests, "page_items={items}");
    }
}

#[tokio::test]
async fn origin_in_the_tip_is_loaded_by_one_get() {
    let world = world().await;
    for strategy in [
        Strategy::Latest,
        Strategy::Snapshot,
        Strategy::Multi,
        Strategy::Rolling,
        Strategy::Custom,
    ] {
        let id = format!("{strategy:?}");
        let stream = stream(&world.calving(2), &id, strategy);
        for one in 0..5 {
            note(&stream, one).await.unwrap();
        }
        world.sent();
        let expected = match strategy {
            Strategy::Latest => vec![4],
            _ => Vec::from_iter(0..5),
        };
        assert_eq!(notes(&stream).await, expected, "{strategy:?}");
        let get = format!(r#"GetItem events {{"i": 2147483647, "p": "Notes-{id}"}} eventual"#);
        assert_eq!(world.sent(), [get], "{strategy:?}");
    }
}

#[tokio::test]
async fn load_without_a_snapshot_reads_all_batches_backward() {
    let world = world().await;
    append_ten(&world).await;
    for (items, requests) in [(1, 3), (2, 2), (3, 1)] {
        let snapshot = stream(&paged(&world, items), "a", Strategy::Snapshot);
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
    let snapshot = stream(&paged(&world, 1), "a", Strategy::Snapshot);
    assert_eq!(notes(&snapshot).await, [4, 5, 6]);
    let mut expected = vec![format!("{GET} eventual")];
    expected.extend(backward(6, 1, 2));
    assert_eq!(
        world.sent(),
        expected,
        "the batch at 0 is before the origin and not read"
    );
}

#[tokio::test]
async fn load_respects_requests_max() {
    let world = world().await;
    append_ten(&world).await;
    for (strategy, needed) in [(Strategy::Snapshot, 3), (Strategy::Unoptimized, 4)] {
        for allowed in 0..6 {
            let options = EventStoreOptions::default()
                .page_items(1)
                .requests_max(allowed);
            let stream = stream(&world.db.event_store(options), "a", strategy);
            match stream.query(Clone::clone).await {
                Ok(found) => {
                    assert_eq!(found.len(), 10);
                    assert!(allowed >= needed, "{strategy:?} allowed={allowed}");
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::TooLarge);
                    assert!(allowed < needed, "{strategy:?} allowed={allowed}");
                }
            }
        }
    }
}

#[tokio::test]
async fn missing_events_are_read_from_the_archive() {
    let world = world().await;
    append_ten(&world).await;
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
    for strategy in [Strategy::Unoptimized, Strategy::Snapshot] {
        let stream = stream(&world.db.event_store(options()), "a", strategy);
        assert_eq!(notes(&stream).await, Vec::from_iter(0..10), "{strategy:?}");
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
    append_ten(&world).await;
    remove(&world, 0).await;
    for strategy in [Strategy::Unoptimized, Strategy::Snapshot] {
        let requiring = stream(&world.store(), "a", strategy);
        let error = requiring.query(|_| ()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::MissingEvents);
        assert_eq!(
            error.to_string(),
            "required events are no longer in the stream, and there is no archive: stream=Notes-a lowest=3"
        );
        let options = EventStoreOptions::default().ignore_missing();
        let ignoring = stream(&world.db.event_store(options), "a", strategy);
        assert_eq!(
            notes(&ignoring).await,
            Vec::from_iter(3..10),
            "{strategy:?}"
        );
        assert_eq!(
            notes(&stream(&world.store(), "a", Strategy::Latest)).await,
            [9],
            "missing events that are not needed are no error"
        );
    }
}

#[tokio::test]
async fn gap_between_batches_is_an_error() {
    let world = world().await;
    append_ten(&world).await;
    remove(&world, 3).await;
    for strategy in [Strategy::Unoptimized, Strategy::Snapshot] {
        let error = stream(&world.store(), "a", strategy)
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

/// Notes without events of unknown types.
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
async fn unknown_types_are_skipped_or_rejected() {
    let world = world().await;
    let store = world.store();
    append(&store, "a", noted([1])).await;
    append(&store, "a", [EventData::new("GiftWrapped", "")]).await;
    append(&store, "a", noted([2])).await;
    for strategy in [Strategy::Unoptimized, Strategy::Snapshot, Strategy::Custom] {
        assert_eq!(
            notes(&stream(&store, "a", strategy)).await,
            [1, 2],
            "{strategy:?}"
        );
    }
    let error = store.stream::<Strict>("a").query(|_| ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidEvent);
    assert_eq!(
        error.to_string(),
        "the program does not know this event type: type=GiftWrapped stream=Notes-a index=1"
    );
}

#[tokio::test]
async fn latest_known_event_skips_unknown_types() {
    let world = world().await;
    let store = world.store();
    append(&store, "a", noted([1, 2])).await;
    append(&store, "a", [EventData::new("GiftWrapped", "")]).await;
    assert_eq!(notes(&stream(&store, "a", Strategy::Latest)).await, [2]);
}

/// The part of the notes 1 and 2, written with one strategy, that another strategy loads.
fn loaded(writer: Strategy, reader: Strategy) -> &'static [u32] {
    let sees_last = matches!(reader, Strategy::Latest | Strategy::Rolling);
    match writer {
        // The writer stores no events.
        Strategy::Rolling if reader == Strategy::Unoptimized => &[],
        // The Tip contains the last event, which is an origin for the reader.
        Strategy::Unoptimized | Strategy::Latest if sees_last => &[2],
        _ => &[1, 2],
    }
}

#[tokio::test]
async fn strategy_of_an_existing_stream_can_be_changed() {
    for writer in Strategy::ALL {
        for reader in Strategy::ALL {
            let world = world().await;
            let store = world.calving(1);
            for one in [1, 2] {
                note(&stream(&store, "a", writer), one).await.unwrap();
            }
            let other = stream(&store, "a", reader);
            let expected = loaded(writer, reader);
            assert_eq!(notes(&other).await, expected, "{writer:?} {reader:?}");
            note(&other, 3).await.unwrap();
            let expected = match reader {
                Strategy::Latest => vec![3],
                _ => [expected, &[3]].concat(),
            };
            assert_eq!(notes(&other).await, expected, "{writer:?} {reader:?}");
            world.sent();
            notes(&other).await;
            let first = world.operations().remove(0);
            let by_query = reader == Strategy::Unoptimized;
            assert_eq!(first, if by_query { "Query" } else { "GetItem" });
        }
    }
}

#[tokio::test]
async fn multi_snapshot_stores_all_formats_and_reads_the_last_first() {
    let world = world().await;
    let multi = stream(&world.store(), "a", Strategy::Multi);
    note(&multi, 1).await.unwrap();
    let tip = world.tip(&name("a")).await;
    let formats = tip.get("u").unwrap().as_l().unwrap();
    let formats: Vec<_> = formats
        .iter()
        .map(|format| format.as_m().unwrap().get("c").unwrap())
        .collect();
    assert_eq!(formats, [&"Whole".into(), &"Alternative".into()]);
    assert_eq!(notes(&multi).await, [1]);
    assert_eq!(
        notes(&stream(&world.store(), "a", Strategy::Snapshot)).await,
        [1]
    );
}

/// The indexes that were read.
async fn read(read: floe::events::read::ReadEvents<'_>) -> Vec<u64> {
    let events = read.collect().await.unwrap();
    events.iter().map(|event| event.index).collect()
}

#[tokio::test]
async fn events_are_read_from_any_index_in_both_directions() {
    let world = world().await;
    append_ten(&world).await;
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
    let missing = name("missing");
    assert!(read(world.store().read(&missing)).await.is_empty());
    assert_eq!(world.store().version(&missing).await.unwrap(), 0);
}

#[tokio::test]
async fn reading_from_an_index_skips_the_batches_before_it() {
    let world = world().await;
    append_ten(&world).await;
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
async fn events_calved_between_pages_are_read_once() {
    for forward in [true, false] {
        let world = world().await;
        append_ten(&world).await;
        let (at, store) = (name("a"), paged(&world, 1));
        let read = if forward {
            store.read(&at)
        } else {
            store.read(&at).backward()
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
        let expected = if forward {
            Vec::from_iter(0..14)
        } else {
            Vec::from_iter((0..10).rev())
        };
        assert_eq!(indexes, expected, "forward={forward}");
    }
}

#[tokio::test]
async fn streams_of_a_category_are_listed_once() {
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
async fn missing_table_error_contains_the_remedy() {
    let world = world().await;
    let store = world.db.event_store(EventStoreOptions::new("nowhere"));
    let at = name("a");
    let check = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::Table, "{error}");
        assert!(
            error.to_string().contains("ensure_table: table=nowhere"),
            "{error}"
        );
    };
    check(
        store
            .append(&at, Expected::Any, noted([1]))
            .await
            .unwrap_err(),
    );
    check(
        store
            .append(&at, Expected::New, noted([1]))
            .await
            .unwrap_err(),
    );
    check(store.read(&at).collect().await.unwrap_err());
    check(store.version(&at).await.unwrap_err());
    for strategy in Strategy::ALL {
        check(
            stream(&store, "a", strategy)
                .query(|_| ())
                .await
                .unwrap_err(),
        );
    }
}
