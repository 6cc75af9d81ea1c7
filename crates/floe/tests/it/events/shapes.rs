//! The requests and stored items of each kind of write, attribute by attribute.

use std::time::Duration;

use floe::events::{
    Caching, Compression, EventData, EventStoreOptions, Expected, Load, Metadata, TipLimits,
};
use floe_store::table::{KeyKind, StreamView};
use floe_store::{TableDef, Value};

use super::support::{Strategy, World, append, events, name, note, notes, stream, world};

/// Checks the requests since the last call, and the stored items.
async fn check(world: &World, sent: &[&str], stored: &[&str]) {
    assert_eq!(world.sent(), sent);
    assert_eq!(world.stored(&name("a")).await, stored);
}

const GET: &str = r#"GetItem events {"i": 2147483647, "p": "Notes-a"}"#;

#[tokio::test]
async fn new_stream_is_a_put_and_append_is_an_update() {
    let world = world().await;
    let store = world.store();
    let full = EventData::new("X", "body")
        .meta("metadata")
        .correlation("c-1")
        .causation("c-2");
    store
        .append(&name("a"), Expected::New, [full, EventData::new("Y", "")])
        .await
        .unwrap();
    let first = concat!(
        r#"{"a": 2, "b": 0, "c": ["X", "Y"], "#,
        r#""e": [{"d": b"body", "m": b"metadata", "t": "2025-01-01T00:00:00.000Z", "x": "c-1", "y": "c-2"}, "#,
        r#"{"t": "2025-01-01T00:00:00.000Z"}], "#,
        r#""etag": "E1", "i": 2147483647, "n": 2, "p": "Notes-a", "u": []}"#
    );
    let put = format!("PutItem events {first} IF attribute_not_exists(p)");
    check(&world, &[&put], &[first]).await;

    let at = name("a");
    let appended = store.append(&at, Expected::Exact(2), events("Z", ["z"]));
    assert_eq!(appended.await.unwrap(), 3);
    check(
        &world,
        &[
            GET,
            concat!(
                r#"UpdateItem events {"i": 2147483647, "p": "Notes-a"} "#,
                r#"SET a = 1, b = 0, u = [], etag = "E2", n = 3, "#,
                r#"e = list_append(e, [{"d": b"z", "t": "2025-01-01T00:00:00.000Z"}]), "#,
                r#"c = list_append(c, ["Z"]) IF n = 2 AND etag = "E1""#
            ),
        ],
        &[concat!(
            r#"{"a": 1, "b": 0, "c": ["X", "Y", "Z"], "#,
            r#""e": [{"d": b"body", "m": b"metadata", "t": "2025-01-01T00:00:00.000Z", "x": "c-1", "y": "c-2"}, "#,
            r#"{"t": "2025-01-01T00:00:00.000Z"}, {"d": b"z", "t": "2025-01-01T00:00:00.000Z"}], "#,
            r#""etag": "E2", "i": 2147483647, "n": 3, "p": "Notes-a", "u": []}"#
        )],
    )
    .await;
}

/// Attributes that the last write set are not written again while no other process has written.
#[tokio::test]
async fn append_after_an_own_append_sets_changed_attributes_only() {
    let world = world().await;
    let store = world
        .calving(3)
        .cached(Caching::Sliding(Duration::from_secs(60)), 1 << 20);
    let stream = stream(&store, "a", Strategy::Unoptimized).load(Load::AnyCached);
    note(&stream, 10).await.unwrap();
    world.sent();
    let update =
        |sets: &str| format!(r#"UpdateItem events {{"i": 2147483647, "p": "Notes-a"}} SET {sets}"#);
    let event = |body: u32| format!(r#"{{"d": b"{body}", "t": "2025-01-01T00:00:00.000Z"}}"#);
    let tip = |etag: u32, a: u32, bodies: &[u32]| {
        let types = vec![r#""Noted""#; bodies.len()].join(", ");
        let events: Vec<_> = bodies.iter().map(|body| event(*body)).collect();
        format!(
            concat!(
                r#"{{"a": {a}, "b": 0, "c": [{types}], "e": [{events}], "etag": "E{etag}", "#,
                r#""i": 2147483647, "n": {n}, "p": "Notes-a", "u": []}}"#
            ),
            a = a,
            types = types,
            events = events.join(", "),
            etag = etag,
            n = bodies.len(),
        )
    };
    note(&stream, 11).await.unwrap();
    let sent = update(&format!(
        r#"etag = "E2", n = 2, e = list_append(e, [{}]), c = list_append(c, ["Noted"]) IF n = 1 AND etag = "E1""#,
        event(11)
    ));
    check(&world, &[&sent], &[&tip(2, 1, &[10, 11])]).await;

    // After a write of another process the attributes are unknown, so all of them are written.
    append(&world.store(), "a", events("Noted", ["12"])).await;
    world.sent();
    note(&stream, 13).await.unwrap();
    let sent = world.sent();
    let last = sent.last().unwrap();
    assert!(last.contains("SET a = 1, b = 141, u = []"), "{sent:?}");
}

#[tokio::test]
async fn append_beyond_the_event_limit_calves_the_tip() {
    let world = world().await;
    let store = world.calving(3);
    append(&store, "a", events("X", ["1234567", "2345678", "3456789"])).await;
    world.sent();
    append(&store, "a", events("X", ["4567890"])).await;
    let calf = concat!(
        r#"{"c": ["X", "X", "X"], "#,
        r#""e": [{"d": b"1234567", "t": "2025-01-01T00:00:00.000Z"}, "#,
        r#"{"d": b"2345678", "t": "2025-01-01T00:00:00.000Z"}, "#,
        r#"{"d": b"3456789", "t": "2025-01-01T00:00:00.000Z"}], "#,
        r#""i": 0, "n": 3, "p": "Notes-a", "u": []}"#
    );
    let transaction = format!(
        "TransactWriteItems [PutItem events {calf} IF attribute_not_exists(p); {}]",
        concat!(
            r#"UpdateItem events {"i": 2147483647, "p": "Notes-a"} "#,
            r#"SET a = 1, b = 144, u = [], etag = "E2", n = 4, "#,
            r#"e = [{"d": b"4567890", "t": "2025-01-01T00:00:00.000Z"}], c = ["X"] "#,
            r#"IF n = 3 AND etag = "E1""#
        )
    );
    check(
        &world,
        &[GET, &transaction],
        &[
            calf,
            concat!(
                r#"{"a": 1, "b": 144, "c": ["X"], "#,
                r#""e": [{"d": b"4567890", "t": "2025-01-01T00:00:00.000Z"}], "#,
                r#""etag": "E2", "i": 2147483647, "n": 4, "p": "Notes-a", "u": []}"#
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn snapshot_is_stored_in_the_tip_and_never_in_a_calf() {
    let world = world().await;
    let store = world.calving(2);
    let stream = stream(&store, "a", Strategy::Snapshot).metadata(Metadata::new().correlation("r"));
    for one in [10, 11] {
        note(&stream, one).await.unwrap();
    }
    world.sent();
    assert_eq!(note(&stream, 12).await.unwrap(), 3);
    let event =
        |body: &str| format!(r#"{{"d": b"{body}", "t": "2025-01-01T00:00:00.000Z", "x": "r"}}"#);
    let unfold = r#"[{"c": "Whole", "d": b"10,11,12", "i": 3, "t": "2025-01-01T00:00:00.000Z"}]"#;
    let calf = format!(
        r#"{{"c": ["Noted", "Noted"], "e": [{}, {}], "i": 0, "n": 2, "p": "Notes-a", "u": []}}"#,
        event("10"),
        event("11")
    );
    let transaction = format!(
        concat!(
            r#"TransactWriteItems [PutItem events {} IF attribute_not_exists(p); "#,
            r#"UpdateItem events {{"i": 2147483647, "p": "Notes-a"}} "#,
            r#"SET a = 1, b = 96, u = {}, etag = "E3", n = 3, e = [{}], c = ["Noted"] "#,
            r#"IF n = 2 AND etag = "E2"]"#
        ),
        calf,
        unfold,
        event("12")
    );
    let tip = format!(
        concat!(
            r#"{{"a": 1, "b": 96, "c": ["Noted"], "e": [{}], "#,
            r#""etag": "E3", "i": 2147483647, "n": 3, "p": "Notes-a", "u": {}}}"#
        ),
        event("12"),
        unfold
    );
    let get = format!("{GET} eventual");
    check(&world, &[&get, &transaction], &[&calf, &tip]).await;
}

#[tokio::test]
async fn write_of_unfolds_alone_appends_no_events() {
    let world = world().await;
    let rolling = stream(&world.store(), "a", Strategy::Rolling);
    assert_eq!(note(&rolling, 1).await.unwrap(), 0);
    let first = concat!(
        r#"{"a": 0, "b": 0, "c": [], "e": [], "etag": "E1", "i": 2147483647, "n": 0, "p": "Notes-a", "#,
        r#""u": [{"c": "Whole", "d": b"1", "i": 0, "t": "2025-01-01T00:00:00.000Z"}]}"#
    );
    let get = format!("{GET} eventual");
    let put = format!("PutItem events {first} IF attribute_not_exists(p)");
    check(&world, &[&get, &put], &[first]).await;

    note(&rolling, 2).await.unwrap();
    check(
        &world,
        &[
            &get,
            concat!(
                r#"UpdateItem events {"i": 2147483647, "p": "Notes-a"} SET a = 0, b = 0, "#,
                r#"u = [{"c": "Whole", "d": b"1,2", "i": 0, "t": "2025-01-01T00:00:00.000Z"}], "#,
                r#"etag = "E2", e = [], c = [] IF etag = "E1""#
            ),
        ],
        &[concat!(
            r#"{"a": 0, "b": 0, "c": [], "e": [], "etag": "E2", "i": 2147483647, "n": 0, "p": "Notes-a", "#,
            r#""u": [{"c": "Whole", "d": b"1,2", "i": 0, "t": "2025-01-01T00:00:00.000Z"}]}"#
        )],
    )
    .await;
}

#[tokio::test]
async fn write_of_unfolds_keeps_the_events_of_the_tip() {
    let world = world().await;
    append(&world.store(), "a", events("Noted", ["1"])).await;
    world.sent();
    note(&stream(&world.store(), "a", Strategy::Rolling), 2)
        .await
        .unwrap();
    check(
        &world,
        &[
            &format!("{GET} eventual"),
            concat!(
                r#"UpdateItem events {"i": 2147483647, "p": "Notes-a"} SET a = 0, b = 0, "#,
                r#"u = [{"c": "Whole", "d": b"1,2", "i": 1, "t": "2025-01-01T00:00:00.000Z"}], "#,
                r#"etag = "E2" IF etag = "E1""#
            ),
        ],
        &[concat!(
            r#"{"a": 0, "b": 0, "c": ["Noted"], "e": [{"d": b"1", "t": "2025-01-01T00:00:00.000Z"}], "#,
            r#""etag": "E2", "i": 2147483647, "n": 1, "p": "Notes-a", "#,
            r#""u": [{"c": "Whole", "d": b"1,2", "i": 1, "t": "2025-01-01T00:00:00.000Z"}]}"#
        )],
    )
    .await;
}

#[tokio::test]
async fn large_unfolds_calve_the_tip_and_the_next_append_refills_it() {
    let world = world().await;
    let limits = {
        let mut limits = TipLimits::default();
        limits.bytes_max = 100;
        limits
    };
    let store = world
        .db
        .event_store(EventStoreOptions::default().tip(limits));
    append(&store, "a", events("Noted", ["1"])).await;
    world.sent();
    // 46 for the event, and 50 + 5 + 3 for the unfold.
    note(&stream(&store, "a", Strategy::Rolling), 2)
        .await
        .unwrap();
    let calf = concat!(
        r#"{"c": ["Noted"], "e": [{"d": b"1", "t": "2025-01-01T00:00:00.000Z"}], "#,
        r#""i": 0, "n": 1, "p": "Notes-a", "u": []}"#
    );
    let unfold = r#"[{"c": "Whole", "d": b"1,2", "i": 1, "t": "2025-01-01T00:00:00.000Z"}]"#;
    let update = format!(
        concat!(
            r#"UpdateItem events {{"i": 2147483647, "p": "Notes-a"}} "#,
            r#"SET a = 0, b = 46, u = {}, etag = "E2", e = [], c = [] IF etag = "E1""#
        ),
        unfold
    );
    let transaction =
        format!("TransactWriteItems [PutItem events {calf} IF attribute_not_exists(p); {update}]");
    let tip = format!(
        concat!(
            r#"{{"a": 0, "b": 46, "c": [], "e": [], "#,
            r#""etag": "E2", "i": 2147483647, "n": 1, "p": "Notes-a", "u": {}}}"#
        ),
        unfold
    );
    let get = format!("{GET} eventual");
    check(&world, &[&get, &transaction], &[calf, &tip]).await;

    append(&store, "a", events("Noted", ["3"])).await;
    check(
        &world,
        &[
            GET,
            concat!(
                r#"UpdateItem events {"i": 2147483647, "p": "Notes-a"} "#,
                r#"SET a = 1, b = 46, u = [], etag = "E3", n = 2, "#,
                r#"e = [{"d": b"3", "t": "2025-01-01T00:00:00.000Z"}], c = ["Noted"] IF n = 1 AND etag = "E2""#
            ),
        ],
        &[
            calf,
            concat!(
                r#"{"a": 1, "b": 46, "c": ["Noted"], "#,
                r#""e": [{"d": b"3", "t": "2025-01-01T00:00:00.000Z"}], "#,
                r#""etag": "E3", "i": 2147483647, "n": 2, "p": "Notes-a", "u": []}"#
            ),
        ],
    )
    .await;
    assert_eq!(
        notes(&stream(&store, "a", Strategy::Snapshot)).await,
        [1, 3]
    );
}

/// Makes these appends. Returns the number of items and the size of the calved events.
async fn append_all(limits: TipLimits, appends: &[&[EventData]]) -> (usize, Value) {
    let world = world().await;
    let store = world
        .db
        .event_store(EventStoreOptions::default().tip(limits));
    for events in appends {
        append(&store, "a", events.iter().cloned()).await;
    }
    let calved = world.tip(&name("a")).await.get("b").cloned();
    (world.items(&name("a")).await.len(), calved.unwrap())
}

#[tokio::test]
async fn tip_calves_beyond_a_limit_and_not_at_it() {
    let mut limits = TipLimits::default();
    limits.events_max = Some(1);
    let stuff = || EventData::new("StuffHappened", "");
    let two = [stuff(), stuff()];
    assert_eq!(
        append_all(limits, &[&two]).await,
        (1, Value::from(0)),
        "the first append never calves"
    );
    assert_eq!(
        append_all(limits, &[&[stuff()], &[stuff()]]).await,
        (2, Value::from(53))
    );

    limits.events_max = None;
    limits.event_bytes_max = 2 * 53;
    assert_eq!(
        append_all(limits, &[&[stuff()], &[stuff()]]).await,
        (1, Value::from(0))
    );
    limits.event_bytes_max -= 1;
    assert_eq!(
        append_all(limits, &[&[stuff()], &[stuff()]]).await,
        (2, Value::from(53))
    );

    // The estimate: 1 for the type, 2 and 3 for the bodies, 4 and 5 for the ids, and 40.
    let event = EventData::new("X", "dd")
        .meta("mmm")
        .correlation("xxxx")
        .causation("yyyyy");
    let one: &[EventData] = &[event];
    assert_eq!(append_all(limits, &[one, one]).await, (2, Value::from(55)));
}

#[tokio::test]
async fn unfolds_count_against_the_total_limit_only() {
    // 46 for the stored event, 46 for the new one, and 50 + 5 + 3 for the unfold.
    for (bytes_max, items) in [(150, 1), (149, 2)] {
        let world = world().await;
        let mut limits = TipLimits::default();
        (limits.event_bytes_max, limits.bytes_max) = (92, bytes_max);
        let store = world
            .db
            .event_store(EventStoreOptions::default().tip(limits));
        for one in [1, 2] {
            note(&stream(&store, "a", Strategy::Snapshot), one)
                .await
                .unwrap();
        }
        assert_eq!(
            world.items(&name("a")).await.len(),
            items,
            "bytes_max={bytes_max}"
        );
    }
}

#[tokio::test]
async fn default_limits_are_32_kib() {
    let half = |bytes: usize| EventData::new("X", vec![b'x'; bytes - 41]);
    let kib16 = 16 << 10;
    let limits = TipLimits::default();
    let fits = append_all(limits, &[&[half(kib16)], &[half(kib16)]]).await;
    assert_eq!(fits, (1, Value::from(0)));
    let exceeds = append_all(limits, &[&[half(kib16)], &[half(kib16 + 1)]]).await;
    assert_eq!(exceeds, (2, Value::from(kib16 as u64)));
    let alone = append_all(limits, &[&[half(300 << 10)]]).await;
    assert_eq!(
        alone,
        (1, Value::from(0)),
        "an empty Tip is limited by the item size only"
    );
}

#[tokio::test]
async fn oversized_append_is_rejected_before_a_request() {
    let world = world().await;
    let store = world.store();
    let large = EventData::new("X", vec![0; 400 << 10]);
    let error = store
        .append(&name("a"), Expected::New, [large])
        .await
        .unwrap_err();
    assert_eq!(error.kind(), floe::ErrorKind::TooLarge);
    assert!(
        error.to_string().contains("stream=Notes-a bytes="),
        "{error}"
    );
    assert!(world.sent().is_empty());
    let none = store
        .append(&name("a"), Expected::New, [])
        .await
        .unwrap_err();
    assert_eq!(none.kind(), floe::ErrorKind::InvalidUse);
}

#[tokio::test]
async fn tip_larger_than_an_item_is_calved_for_any_limits() {
    let mut limits = TipLimits::default();
    (limits.event_bytes_max, limits.bytes_max) = (usize::MAX, usize::MAX);
    let large = |kib: usize| vec![EventData::new("X", vec![b'x'; kib << 10])];
    let many: Vec<_> = (0..7_000).map(|_| EventData::new("X", "")).collect();
    for (first, second, items) in [
        (large(200), large(150), 1),
        (large(300), large(200), 2),
        (large(20), large(379), 2),
        (many.clone(), many, 2),
    ] {
        assert_eq!(append_all(limits, &[&first, &second]).await.0, items);
    }
}

#[tokio::test]
async fn table_has_the_documented_keys_and_a_change_stream() {
    let world = world().await;
    let table = world
        .other
        .engine()
        .describe_table("events".to_owned())
        .await
        .unwrap();
    let expected = TableDef::builder("events", "p", KeyKind::S)
        .sort_key("i", KeyKind::N)
        .stream(StreamView::NewImage)
        .build();
    assert_eq!(table.definition, expected.unwrap());
    world.store().ensure_table().await.unwrap();
}

#[tokio::test]
async fn bodies_are_compressed_from_48_bytes_if_that_is_smaller() {
    let world = world().await;
    let options = EventStoreOptions::default().compression(Compression::Brotli);
    let store = world.db.event_store(options);
    let bodies = ["x".repeat(47), "x".repeat(48)];
    append(
        &store,
        "a",
        bodies.clone().map(|body| EventData::new("X", body)),
    )
    .await;
    let tip = world.tip(&name("a")).await;
    let stored = tip.get("e").unwrap().as_l().unwrap();
    let fields = |at: usize| stored[at].as_m().unwrap().clone();
    assert_eq!(
        fields(0).get("d").unwrap().as_b(),
        Some(bodies[0].as_bytes())
    );
    assert_eq!(fields(0).get("D"), None);
    assert!(fields(1).get("d").unwrap().as_b().unwrap().len() < 48);
    assert_eq!(fields(1).get("D"), Some(&Value::from(2)));
    let read = store.read(&name("a")).collect().await.unwrap();
    let read: Vec<_> = read.into_iter().map(|read| read.event.data).collect();
    assert_eq!(read, bodies.map(String::into_bytes));
}
