//! Measures the cost of streams: the tables of `docs/events-cost.md` are compared with what requests are charged.

use std::sync::Arc;
use std::time::Duration;

use floe::events::limits::TipLimits;
use floe::events::{Access, Caching, Decider, Event, EventStore, EventStoreOptions, Load};
use floe::{Db, Error};
use floe_local::LocalEngine;
use floe_store::capacity::Units;
use floe_store::expr::{Condition, KeyCondition, Path};
use floe_store::op::{CreateTable, PutItem, Query, TransactWriteItems, WriteItem};
use floe_store::table::{KeyKind, TableDef};
use floe_store::{Engine, Item, Value};
use floe_testkit::meter::{MeteredEngine, Spent};

const DOCUMENT: &str = include_str!("../../../../docs/events-cost.md");

/// Size of the bodies of events and snapshots.
const BODY_BYTES: usize = 200;

#[derive(Clone, Debug, PartialEq)]
enum Entry {
    Booked,
    Counted(u64),
}

impl Event for Entry {
    fn event_type(&self) -> &'static str {
        match self {
            Self::Booked => "Booked",
            Self::Counted(_) => "Counted",
        }
    }

    fn encode(&self) -> floe::Result<Vec<u8>> {
        let text = match self {
            Self::Booked => String::new(),
            Self::Counted(entries) => entries.to_string(),
        };
        Ok(format!("{text:>BODY_BYTES$}").into_bytes())
    }

    fn decode(event_type: &str, data: &[u8]) -> floe::Result<Option<Self>> {
        let text = || std::str::from_utf8(data).unwrap().trim();
        Ok(match event_type {
            "Booked" => Some(Self::Booked),
            "Counted" => Some(Self::Counted(text().parse().unwrap())),
            _ => None,
        })
    }
}

enum Ledger {}

impl Decider for Ledger {
    const CATEGORY: &'static str = "Ledger";
    type Id = str;
    type Event = Entry;
    type State = u64;

    fn initial() -> u64 {
        0
    }

    fn evolve(entries: u64, event: &Entry) -> u64 {
        match event {
            Entry::Booked => entries + 1,
            Entry::Counted(entries) => *entries,
        }
    }
}

/// How events are stored.
#[derive(Clone, Copy)]
enum Layout {
    Stream,
    StreamWithSnapshot,
    ItemPerEvent,
}

impl Layout {
    const ALL: [Self; 3] = [Self::Stream, Self::StreamWithSnapshot, Self::ItemPerEvent];

    const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::StreamWithSnapshot => "stream with snapshot",
            Self::ItemPerEvent => "item per event",
        }
    }

    fn access(self) -> Access<Ledger> {
        match self {
            Self::StreamWithSnapshot => Access::Snapshot {
                is_origin: |event| matches!(event, Entry::Counted(_)),
                to_snapshot: |entries| Entry::Counted(*entries),
            },
            _ => Access::Unoptimized,
        }
    }
}

/// The cost of appends and of a load.
struct Cost {
    append: Spent,
    /// The units of each append.
    writes: Vec<Units>,
    load: Spent,
}

/// Appends events, `at_a_time` in each append, by a writer with a cached state; then loads them.
async fn measure(layout: Layout, events: u64, at_a_time: u64, tip_bytes_max: usize) -> Cost {
    let engine = Arc::new(MeteredEngine::new(Arc::new(LocalEngine::memory().unwrap())));
    let storage = Storage::new(layout, engine.clone(), tip_bytes_max).await;
    engine.take();
    let (mut append, mut writes) = (Spent::default(), Vec::new());
    for start in (0..events).step_by(usize::try_from(at_a_time).unwrap()) {
        storage.append(start, at_a_time).await;
        let spent = engine.take();
        append.requests += spent.requests;
        append.read += spent.read;
        append.write += spent.write;
        writes.push(spent.write);
    }
    assert_eq!(append.requests, events.div_ceil(at_a_time));
    assert_eq!(append.read, Units::ZERO);
    assert_eq!(storage.load().await, events);
    let load = engine.take();
    Cost {
        append,
        writes,
        load,
    }
}

/// The stored events of a layout.
enum Storage {
    Streams(EventStore, Layout),
    Items(Arc<MeteredEngine>),
}

impl Storage {
    async fn new(layout: Layout, engine: Arc<MeteredEngine>, tip_bytes_max: usize) -> Self {
        if matches!(layout, Layout::ItemPerEvent) {
            let table = TableDef::builder("items", "p", KeyKind::S).sort_key("i", KeyKind::N);
            let create = CreateTable::from(table.build().unwrap());
            engine.create_table(create).await.unwrap();
            return Self::Items(engine);
        }
        let mut limits = TipLimits::default();
        limits.event_bytes_max = tip_bytes_max;
        limits.bytes_max = tip_bytes_max;
        let store = Db::with_engine(engine).event_store(EventStoreOptions::default().tip(limits));
        store.ensure_table().await.unwrap();
        let caching = Caching::Sliding(Duration::from_secs(3600));
        Self::Streams(store.cached(caching, 1 << 20), layout)
    }

    async fn append(&self, start: u64, count: u64) {
        match self {
            Self::Streams(store, layout) => {
                let load = match start {
                    0 => Load::AssumeEmpty,
                    _ => Load::AnyCached,
                };
                let stream = store
                    .stream::<Ledger>("7")
                    .access(layout.access())
                    .load(load);
                let entries = || vec![Entry::Booked; usize::try_from(count).unwrap()];
                let appended = stream.transact(|_| Ok::<_, Error>(entries()));
                appended.await.unwrap();
            }
            Self::Items(engine) => append_items(engine, start, count).await,
        }
    }

    /// Loads the stream without a cache. Returns the number of events.
    async fn load(&self) -> u64 {
        match self {
            Self::Streams(store, layout) => {
                let fresh = store.db().event_store(store.options().clone());
                let stream = fresh.stream::<Ledger>("7").access(layout.access());
                stream.query(|entries| *entries).await.unwrap()
            }
            Self::Items(engine) => load_items(engine).await,
        }
    }
}

/// Writes one event with a put, or several in a transaction, each only if it does not exist.
async fn append_items(engine: &MeteredEngine, start: u64, count: u64) {
    let mut puts: Vec<_> = (start..start + count).map(put_item).collect();
    match puts.len() {
        1 => engine
            .write_item(WriteItem::Put(puts.remove(0)))
            .await
            .map(drop),
        _ => engine
            .transact_write_items(TransactWriteItems::new(puts.into_iter().map(Into::into)))
            .await
            .map(drop),
    }
    .unwrap();
}

fn put_item(index: u64) -> PutItem {
    let item = Item::new()
        .with("p", "Ledger-7")
        .with("i", index)
        .with("c", "Booked")
        .with("t", "2026-11-17T09:30:00.123Z")
        .with("d", Value::from(Entry::Booked.encode().unwrap()));
    PutItem::new("items", item).condition(Condition::attribute_not_exists(Path::attribute("p")))
}

async fn load_items(engine: &MeteredEngine) -> u64 {
    let mut query = Query::new(
        "items",
        KeyCondition::partition("p", Value::from("Ledger-7")),
    );
    let mut found = 0;
    loop {
        let page = engine.query(query.clone()).await.unwrap();
        found += page.count as u64;
        query.start_key = page.last_key;
        if query.start_key.is_none() {
            return found;
        }
    }
}

/// Compares the rows of the table under a heading with the measured ones.
fn check(heading: &str, measured: &[String]) {
    let section = DOCUMENT
        .split("\n## ")
        .find(|part| part.starts_with(heading));
    let section =
        section.unwrap_or_else(|| panic!("docs/events-cost.md has no section: {heading}"));
    let rows = section.lines().filter(|line| line.starts_with('|'));
    let documented: Vec<_> = rows.skip(2).collect();
    let all = measured.join("\n");
    assert_eq!(
        documented, measured,
        "the table under \"{heading}\" should be:\n{all}\n"
    );
}

#[tokio::test]
async fn documented_cost_of_appends_and_loads_is_measured() {
    let mut rows = Vec::new();
    for (events, at_a_time) in [
        (1, 1),
        (10, 1),
        (10, 10),
        (100, 1),
        (100, 10),
        (1000, 1),
        (1000, 10),
    ] {
        for layout in Layout::ALL {
            let cost = measure(layout, events, at_a_time, 32 << 10).await;
            rows.push(format!(
                "| {events} | {at_a_time} | {} | {} | {} | {} | {} |",
                layout.name(),
                cost.append.requests,
                cost.append.write,
                cost.load.requests,
                cost.load.read,
            ));
        }
    }
    check("Appending and loading", &rows);
}

#[tokio::test]
async fn documented_cost_by_tip_limit_is_measured() {
    let mut rows = Vec::new();
    for kib in [1, 2, 4, 8, 16, 32] {
        let stream = measure(Layout::Stream, 1000, 1, kib << 10).await;
        let snapshot = measure(Layout::StreamWithSnapshot, 1000, 1, kib << 10).await;
        rows.push(format!(
            "| {kib} | {:.1} | {} | {} | {} | {} | {} |",
            stream.append.write.as_f64() / 1000.0,
            stream.writes.iter().max().unwrap(),
            stream.load.requests,
            stream.load.read,
            snapshot.load.requests,
            snapshot.load.read,
        ));
    }
    check("The limit of the Tip", &rows);
}

#[tokio::test]
async fn documented_cost_of_a_filling_tip_is_measured() {
    let cost = measure(Layout::Stream, 150, 1, 32 << 10).await;
    let rows: Vec<_> = [1, 2, 5, 10, 20, 40, 80, 133, 134, 135]
        .map(|append| format!("| {append} | {} |", cost.writes[append - 1]))
        .into();
    check("A Tip that fills", &rows);
}
