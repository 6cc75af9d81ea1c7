//! Items in the dialects of Equinox: they are read, appended to and calved with unchanged events.

use floe::ErrorKind;
use floe::events::{EventStore, Expected};
use floe_store::{Item, Timestamp, Value};

use super::support::{Strategy, World, append, name, note, noted, notes, stream, world};

/// The library that wrote a Tip.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Dialect {
    FSharp,
    JavaScript,
}

const DIALECTS: [Dialect; 2] = [Dialect::FSharp, Dialect::JavaScript];

fn number(value: u64) -> Value {
    Value::from(value)
}

impl Dialect {
    fn time(self) -> &'static str {
        match self {
            Self::FSharp => "2025-01-01T02:00:00.1234567+02:00",
            Self::JavaScript => "2025-01-01T00:00:00.123Z",
        }
    }

    fn etag(self) -> &'static str {
        match self {
            Self::FSharp => "0123456789abcdef0123456789abcdef",
            Self::JavaScript => "01234567-89ab-4def-8123-456789abcdef",
        }
    }

    /// The attributes that events and unfolds have in common.
    fn fields(self, body: &str) -> Item {
        let fields = Item::new()
            .with("t", self.time())
            .with("d", Value::B(body.into()));
        match self {
            Self::FSharp => fields,
            Self::JavaScript => fields
                .with("D", number(0))
                .with("m", Value::B(b"{}".to_vec()))
                .with("M", number(0)),
        }
    }

    fn event(self, body: &str) -> Value {
        Value::M(
            self.fields(body)
                .with("x", "correlation")
                .with("y", "causation"),
        )
    }

    fn unfold(self, body: &str, version: u64) -> Value {
        Value::M(
            self.fields(body)
                .with("c", "Whole")
                .with("i", number(version)),
        )
    }

    /// A Tip with these notes, and optionally a snapshot.
    fn tip(self, bodies: &[&str], unfold: Option<&str>) -> Item {
        let count = bodies.len() as u64;
        let types: Vec<_> = bodies.iter().map(|_| Value::from("Noted")).collect();
        let events: Vec<_> = bodies.iter().map(|body| self.event(body)).collect();
        let unfolds: Vec<_> = unfold.iter().map(|body| self.unfold(body, count)).collect();
        let mut item = Item::new()
            .with("p", "Notes-a")
            .with("i", number(2_147_483_647))
            .with("n", number(count))
            .with("a", number(count))
            .with("b", number(0))
            .with("etag", self.etag());
        for (name, list) in [("c", types), ("e", events), ("u", unfolds)] {
            if self == Self::JavaScript || !list.is_empty() {
                item.insert(name, Value::L(list));
            }
        }
        item
    }
}

async fn written(dialect: Dialect, bodies: &[&str], unfold: Option<&str>) -> World {
    let world = world().await;
    world.put(dialect.tip(bodies, unfold)).await;
    world
}

#[tokio::test]
async fn both_dialects_are_read() {
    for dialect in DIALECTS {
        let world = written(dialect, &["1", "2"], None).await;
        let read = world.store().read(&name("a")).collect().await.unwrap();
        let bodies: Vec<_> = read.iter().map(|read| read.event.data.as_slice()).collect();
        assert_eq!(bodies, [b"1", b"2"]);
        for (index, read) in (0..).zip(&read) {
            assert_eq!(read.index, index);
            assert_eq!(
                read.time,
                Timestamp::from_millis(1_735_689_600_123),
                "{dialect:?}"
            );
            assert_eq!(read.event.event_type, "Noted");
            assert_eq!(read.event.correlation_id.as_deref(), Some("correlation"));
            assert_eq!(read.event.causation_id.as_deref(), Some("causation"));
        }
        for strategy in Strategy::ALL {
            let expected: &[u32] = match strategy {
                Strategy::Latest | Strategy::Rolling => &[2],
                _ => &[1, 2],
            };
            let stream = stream(&world.store(), "a", strategy);
            assert_eq!(notes(&stream).await, expected, "{dialect:?} {strategy:?}");
        }
    }
}

#[tokio::test]
async fn snapshots_of_both_dialects_are_found_in_the_tip() {
    for dialect in DIALECTS {
        let world = written(dialect, &["1", "2"], Some("7,8")).await;
        assert_eq!(
            notes(&stream(&world.store(), "a", Strategy::Snapshot)).await,
            [7, 8]
        );
        assert_eq!(world.operations(), ["GetItem"]);
    }
}

#[tokio::test]
async fn append_keeps_events_of_both_dialects_unchanged() {
    for dialect in DIALECTS {
        for strategy in [Strategy::Unoptimized, Strategy::Snapshot, Strategy::Custom] {
            let world = written(dialect, &["1", "2"], None).await;
            let version = note(&stream(&world.store(), "a", strategy), 3)
                .await
                .unwrap();
            assert_eq!(version, 3);
            let tip = world.tip(&name("a")).await;
            let events = tip.get("e").unwrap().as_l().unwrap();
            let expected = [dialect.event("1"), dialect.event("2")];
            assert_eq!(events[..2], expected, "{dialect:?} {strategy:?}");
            assert_eq!(
                notes(&stream(&world.store(), "a", strategy)).await,
                [1, 2, 3]
            );
            let unfolds = tip.get("u").unwrap().as_l().unwrap().len();
            assert_eq!(
                unfolds,
                usize::from(strategy != Strategy::Unoptimized),
                "u is always written"
            );
        }
    }
}

#[tokio::test]
async fn calving_moves_events_of_both_dialects_unchanged() {
    for dialect in DIALECTS {
        let world = written(dialect, &["1", "2"], Some("1,2")).await;
        let store = world.calving(2);
        append(&store, "a", noted([3])).await;
        let items = world.items(&name("a")).await;
        let calf = Item::new()
            .with("p", "Notes-a")
            .with("i", number(0))
            .with("n", number(2))
            .with("c", Value::L(vec!["Noted".into(), "Noted".into()]))
            .with("e", Value::L(vec![dialect.event("1"), dialect.event("2")]))
            .with("u", Value::L(Vec::new()));
        assert_eq!(items[0], calf, "{dialect:?}");
        // 5 + 1 + 11 + 9 + 40 for each event, and 2 for the metadata of the JavaScript library.
        let size = if dialect == Dialect::FSharp { 132 } else { 136 };
        assert_eq!(items[1].get("b"), Some(&number(size)));
        assert_eq!(
            notes(&stream(&store, "a", Strategy::Snapshot)).await,
            [1, 2, 3]
        );
    }
}

#[tokio::test]
async fn append_to_an_empty_tip_without_lists() {
    for dialect in DIALECTS {
        let world = written(dialect, &[], Some("5")).await;
        let rolling = stream(&world.store(), "a", Strategy::Rolling);
        note(&rolling, 6).await.unwrap();
        assert_eq!(notes(&rolling).await, [5, 6], "{dialect:?}");
        append(&world.store(), "a", noted([7])).await;
        let all = stream(&world.store(), "a", Strategy::Unoptimized);
        assert_eq!(notes(&all).await, [7], "{dialect:?}");
    }
}

#[tokio::test]
async fn calf_without_unfolds_and_encodings_is_read() {
    let world = world().await;
    let mut calf = Dialect::FSharp.tip(&["1", "2"], None);
    for name in ["a", "b", "etag"] {
        calf.remove(name);
    }
    world.put(calf.with("i", number(0))).await;
    let tip = Dialect::FSharp.tip(&["3"], None);
    world
        .put(tip.with("n", number(3)).with("b", number(132)))
        .await;
    for strategy in [Strategy::Unoptimized, Strategy::Snapshot] {
        assert_eq!(
            notes(&stream(&world.store(), "a", strategy)).await,
            [1, 2, 3]
        );
    }
}

#[tokio::test]
async fn deflate_and_brotli_bodies_are_read_and_moved_unchanged() {
    let body = "1234567890".repeat(20);
    let deflated = miniz_oxide::deflate::compress_to_vec(body.as_bytes(), 6);
    let mut brotli = Vec::new();
    brotli::BrotliCompress(&mut body.as_bytes(), &mut brotli, &Default::default()).unwrap();
    let world = world().await;
    let event = |encoding: u64, stored: &[u8]| {
        let fields = Item::new()
            .with("t", "2025-01-01T00:00:00.000Z")
            .with("d", Value::B(stored.to_vec()))
            .with("D", number(encoding))
            .with("m", Value::B(stored.to_vec()))
            .with("M", number(encoding));
        Value::M(fields)
    };
    let events = Value::L(vec![
        event(0, body.as_bytes()),
        event(1, &deflated),
        event(2, &brotli),
    ]);
    let types = Value::L(vec!["X".into(), "Y".into(), "Z".into()]);
    let tip = Dialect::FSharp.tip(&["1", "2", "3"], None);
    world
        .put(tip.with("c", types).with("e", events.clone()))
        .await;

    append(&world.calving(3), "a", noted([4])).await;
    assert_eq!(world.items(&name("a")).await[0].get("e"), Some(&events));
    let read = world
        .store()
        .read(&name("a"))
        .max_count(3)
        .collect()
        .await
        .unwrap();
    assert_eq!(read.len(), 3);
    for read in read {
        assert_eq!(read.event.data, body.as_bytes());
        assert_eq!(read.event.meta, body.as_bytes());
    }
}

/// Damages a Tip. Returns the distinct errors of reading and loading it.
async fn errors(damage: impl FnOnce(Item) -> Item) -> Vec<String> {
    let world = world().await;
    let tip = Dialect::FSharp.tip(&["1", "2"], None);
    world.put(damage(tip)).await;
    let store: EventStore = world.store();
    let (at, snapshot) = (name("a"), stream(&store, "a", Strategy::Snapshot));
    let all = [
        store.read(&at).collect().await.unwrap_err(),
        store.read(&at).backward().collect().await.unwrap_err(),
        snapshot.query(|_| ()).await.unwrap_err(),
        stream(&store, "a", Strategy::Unoptimized)
            .query(|_| ())
            .await
            .unwrap_err(),
    ];
    let messages = all.iter().map(|error| {
        assert_eq!(error.kind(), ErrorKind::InvalidEvent, "{error}");
        error.to_string()
    });
    let mut messages: Vec<_> = messages.collect();
    messages.dedup();
    messages
}

#[tokio::test]
async fn error_of_a_damaged_item_contains_stream_and_key() {
    let location = r#"stream="Notes-a" i=2147483647"#;
    let without = |name: &'static str| {
        move |mut item: Item| {
            item.remove(name);
            item
        }
    };
    assert_eq!(
        errors(without("n")).await,
        [format!("an attribute is missing: attribute=n {location}")]
    );
    assert_eq!(
        errors(without("c")).await,
        [format!(
            "the numbers of event types and events differ: types=0 events=2 {location}"
        )]
    );
    assert_eq!(
        errors(|item| item.with("n", "two")).await,
        [format!(
            "an attribute has another type: attribute=n {location}"
        )]
    );
    assert_eq!(
        errors(|item| item.with("n", number(1))).await,
        [format!(
            "the indexes do not match the number of events: n=1 events=2 {location}"
        )]
    );
    assert_eq!(
        errors(|item| item.with("e", Value::L(vec![number(1), number(2)]))).await,
        ["an event must be a map, and its type text: stream=Notes-a index=0"]
    );
    assert_eq!(
        errors(|item| item.with("u", Value::L(vec![number(1)]))).await,
        [format!("an unfold must be a map: {location}")]
    );
}

#[tokio::test]
async fn error_of_a_damaged_event_contains_stream_and_index() {
    let damaged = |name: &'static str, value: Value| {
        move |item: Item| {
            let events = [
                Dialect::FSharp.fields("1"),
                Dialect::FSharp.fields("2").with(name, value),
            ];
            item.with("e", Value::L(events.map(Value::M).into()))
        }
    };
    let location = "stream=Notes-a index=1";
    assert_eq!(
        errors(damaged("t", "yesterday".into())).await,
        [format!(
            "the time is not an ISO 8601 timestamp: t=yesterday {location}"
        )]
    );
    assert_eq!(
        errors(damaged("D", number(9))).await,
        [format!(
            "the encoding of a body is unknown: encoding=9 {location}"
        )]
    );
    assert_eq!(
        errors(damaged("D", number(2))).await,
        [format!(
            "cannot read an event body: encoding=2 bytes=1 {location}"
        )]
    );
    assert_eq!(
        errors(damaged("d", "text".into())).await,
        [format!(
            "an attribute has another type: attribute=d {location}"
        )]
    );
}

#[tokio::test]
async fn error_of_a_damaged_unfold_contains_stream_and_version() {
    let world = world().await;
    let unfold = Dialect::FSharp.fields("1").with("c", "Whole");
    let tip = Dialect::FSharp.tip(&["1", "2"], None);
    world
        .put(tip.with("u", Value::L(vec![Value::M(unfold)])))
        .await;
    let snapshot = stream(&world.store(), "a", Strategy::Snapshot);
    let error = snapshot.query(|_| ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidEvent);
    assert_eq!(
        error.to_string(),
        "an attribute is missing: attribute=i stream=Notes-a index=2"
    );
    assert_eq!(
        notes(&stream(&world.store(), "a", Strategy::Unoptimized)).await,
        [1, 2]
    );
}

#[tokio::test]
async fn damaged_tip_is_not_appended_to() {
    let world = world().await;
    let tip = Dialect::FSharp.tip(&["1", "2"], None).with("n", "two");
    world.put(tip.clone()).await;
    for expected in [Expected::Any, Expected::New, Expected::Exact(2)] {
        let error = world
            .store()
            .append(&name("a"), expected, noted([3]))
            .await
            .unwrap_err();
        assert_eq!(
            error.kind(),
            ErrorKind::InvalidEvent,
            "{expected:?} {error}"
        );
    }
    assert_eq!(world.items(&name("a")).await, [tip]);
}

#[tokio::test]
async fn events_before_the_snapshot_are_not_decoded() {
    let world = world().await;
    let unreadable = Dialect::FSharp.fields("1").with("D", number(9));
    let unfold = Dialect::FSharp
        .fields("7,8")
        .with("c", "Whole")
        .with("i", number(2));
    let tip = Dialect::FSharp.tip(&["1", "2"], None);
    let events = vec![Value::M(unreadable.clone()), Value::M(unreadable)];
    let unfolds = Value::L(vec![Value::M(unfold)]);
    let tip = tip.with("e", Value::L(events)).with("u", unfolds);
    world.put(tip.clone()).await;
    let store = world.calving(2);
    let snapshot = stream(&store, "a", Strategy::Snapshot);
    assert_eq!(notes(&snapshot).await, [7, 8]);
    assert_eq!(world.sent().len(), 1);

    // Appending and calving keep them as they are stored.
    super::support::note(&snapshot, 9).await.unwrap();
    assert_eq!(notes(&snapshot).await, [7, 8, 9]);
    let items = world.items(&name("a")).await;
    assert_eq!(items.len(), 2);
    assert_eq!(items[0].get("e"), tip.get("e"));
    let all = stream(&store, "a", Strategy::Unoptimized)
        .query(|_| ())
        .await;
    assert_eq!(
        all.unwrap_err().to_string(),
        "the encoding of a body is unknown: encoding=9 stream=Notes-a index=1"
    );
}

#[cfg(not(feature = "zstd"))]
#[tokio::test]
async fn zstd_without_its_feature_is_an_error() {
    let world = world().await;
    let fields = Dialect::FSharp.fields("1").with("D", number(3));
    let tip = Dialect::FSharp.tip(&["1"], None);
    world
        .put(tip.with("e", Value::L(vec![Value::M(fields)])))
        .await;
    let (store, at) = (world.store(), name("a"));
    let error = store.read(&at).collect().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert_eq!(
        error.to_string(),
        "the event body is compressed with zstd, which requires the feature `zstd` of floe: encoding=3 stream=Notes-a index=0"
    );
}

#[cfg(feature = "zstd")]
#[tokio::test]
async fn zstd_bodies_are_written_and_read() {
    use floe::events::{Compression, EventData, EventStoreOptions};

    let world = world().await;
    let options = EventStoreOptions::default().compression(Compression::Zstd);
    let store = world.db.event_store(options);
    let event = EventData::new("X", "lorem ipsum ".repeat(10));
    store
        .append(&name("a"), Expected::New, [event.clone()])
        .await
        .unwrap();
    let tip = world.tip(&name("a")).await;
    let stored = tip.get("e").unwrap().as_l().unwrap()[0].as_m().unwrap();
    assert_eq!(stored.get("D"), Some(&number(3)));
    let read = world.store().read(&name("a")).collect().await.unwrap();
    assert_eq!(read[0].event, event);
}
