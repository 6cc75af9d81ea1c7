//! Stale results: eventually consistent reads and indexes return only states that existed, and none older than the
//! lag.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::env::SeededRandom;
use floe_store::expr::{Condition, KeyCondition, KeyOp, Path, Paths, Update};
use floe_store::op::*;
use floe_store::{Engine, Item, Result};
use floe_testkit::Harness;
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Lag, Operation};
use floe_testkit::model::ModelHarness;

use super::fixture::{
    TABLE, assert_near, count, current_item, engine, key, put, thing, things, with_clock,
};

const ALWAYS: Lag = Lag::Operations(1_000_000);

async fn eventual(engine: &FaultEngine, key: Item) -> Option<Item> {
    engine
        .get_item(GetItem::new(TABLE, key).eventual())
        .await
        .unwrap()
        .item
}

/// The places of the red things, according to the index.
async fn red_places(engine: &FaultEngine) -> BTreeSet<u64> {
    let red = Query::new(TABLE, KeyCondition::partition("color", "red")).index("by_color");
    let page = engine.query(red).await.unwrap();
    page.items.iter().map(place).collect()
}

fn place(item: &Item) -> u64 {
    item.get("place").unwrap().as_n().unwrap().to_u64().unwrap()
}

fn red(place: u64, note: u64) -> Item {
    thing(place, note)
        .with("color", "red")
        .with("weight", place)
}

#[tokio::test]
async fn eventual_reads_are_stale_at_the_configured_rate() {
    let engine = engine(Faults::seeded(1).stale_reads(0.3, Lag::Operations(2))).await;
    let mut stale = 0;
    for n in 0..3000 {
        put(&*engine, thing(1, n)).await.unwrap();
        let found = eventual(&engine, key(1)).await;
        let before = n.checked_sub(1).map(|n| thing(1, n));
        assert!(
            found == Some(thing(1, n)) || found == before,
            "n={n} {found:?}"
        );
        stale += usize::from(found == before);
    }
    assert_near(stale, 0.3, 3000);
    assert_eq!(count(&engine, FaultKind::StaleRead), stale);
}

#[tokio::test]
async fn index_changes_are_late_at_the_configured_rate() {
    let engine = engine(Faults::seeded(2).index_lag(0.3, Lag::Operations(2))).await;
    let mut late = 0;
    for n in 0..3000 {
        put(&*engine, red(n, n)).await.unwrap();
        late += usize::from(!red_places(&engine).await.contains(&n));
        put(&*engine, thing(n, n)).await.unwrap();
        assert_eq!(
            eventual(&engine, key(n)).await,
            Some(thing(n, n)),
            "the table does not lag"
        );
    }
    assert_near(late, 0.3, 3000);
}

#[tokio::test]
async fn consistent_reads_transactions_and_conditions_are_never_stale() {
    let faults = Faults::seeded(3)
        .stale_reads(1.0, ALWAYS)
        .index_lag(1.0, ALWAYS);
    let engine = engine(faults).await;
    for n in 0..50 {
        let condition = match n {
            0 => Condition::attribute_not_exists("note"),
            _ => Condition::eq(Path::attribute("note"), n - 1),
        };
        let next = PutItem::new(TABLE, thing(1, n)).condition(condition);
        engine.write_item(next.into()).await.unwrap();
        assert_eq!(
            eventual(&engine, key(1)).await,
            None,
            "the eventually consistent read lags by the maximum"
        );

        let now = Some(thing(1, n));
        let get = GetItem::new(TABLE, key(1));
        assert_eq!(engine.get_item(get).await.unwrap().item, now);
        let gets = TransactGetItems::new([TransactGet::new(TABLE, key(1))]);
        let found = engine.transact_get_items(gets).await.unwrap().items;
        assert_eq!(found.first(), Some(&now));
        let batch = BatchGetItem::new().keys(TABLE, [key(1)]);
        assert_eq!(
            engine.batch_get_item(batch).await.unwrap().items[TABLE],
            [thing(1, n)]
        );
        let query = Query::new(TABLE, KeyCondition::partition("shelf", "a")).consistent();
        assert_eq!(engine.query(query).await.unwrap().items, [thing(1, n)]);
        let scan = Scan::new(TABLE).consistent();
        assert_eq!(engine.scan(scan).await.unwrap().items, [thing(1, n)]);
    }
}

#[tokio::test]
async fn lag_in_time_ends_when_the_clock_advances() {
    let lag = Lag::Time(Duration::from_millis(50));
    let (engine, clock) =
        with_clock(Faults::seeded(4).index_lag(1.0, lag).stale_reads(1.0, lag)).await;
    put(&*engine, red(1, 1)).await.unwrap();
    for _ in 0..100 {
        assert_eq!(red_places(&engine).await, BTreeSet::new());
        assert_eq!(eventual(&engine, key(1)).await, None);
    }
    clock.advance(Duration::from_millis(50));
    assert_eq!(red_places(&engine).await, BTreeSet::from([1]));
    assert_eq!(eventual(&engine, key(1)).await, Some(red(1, 1)));
}

#[tokio::test]
async fn paused_faults_return_current_states() {
    let engine = engine(
        Faults::seeded(5)
            .index_lag(1.0, ALWAYS)
            .stale_reads(1.0, ALWAYS),
    )
    .await;
    put(&*engine, red(1, 1)).await.unwrap();
    assert_eq!(red_places(&engine).await, BTreeSet::new());
    engine.pause();
    assert_eq!(red_places(&engine).await, BTreeSet::from([1]));
    assert_eq!(eventual(&engine, key(1)).await, Some(red(1, 1)));
}

#[tokio::test]
async fn new_table_has_no_earlier_versions() {
    let engine = engine(Faults::seeded(6).stale_reads(1.0, ALWAYS)).await;
    put(&*engine, thing(1, 1)).await.unwrap();
    put(&*engine, thing(1, 2)).await.unwrap();
    engine.delete_table(TABLE.to_owned()).await.unwrap();
    engine
        .create_table(CreateTable::from(things()))
        .await
        .unwrap();
    put(&*engine, thing(1, 3)).await.unwrap();
    assert_eq!(eventual(&engine, key(1)).await, None);
}

#[tokio::test]
async fn writes_that_bypass_the_wrapper_are_visible_at_once() {
    let engine = engine(Faults::seeded(7).stale_reads(1.0, ALWAYS)).await;
    put(engine.inner().as_ref(), thing(1, 1)).await.unwrap();
    assert_eq!(eventual(&engine, key(1)).await, Some(thing(1, 1)));
    put(&*engine, thing(1, 2)).await.unwrap();
    assert_eq!(eventual(&engine, key(1)).await, Some(thing(1, 1)));
}

/// How often eventually consistent reads go back while an item is written repeatedly.
async fn count_steps_back(faults: Faults) -> usize {
    let engine = engine(faults.stale_reads(0.5, Lag::Operations(20))).await;
    let mut last = None;
    let mut back = 0;
    for n in 0..500 {
        put(&*engine, thing(1, n)).await.unwrap();
        for _ in 0..3 {
            let note = eventual(&engine, key(1))
                .await
                .map(|item| item.get("note").cloned());
            let note = note.flatten().and_then(|note| note.as_n()?.to_u64());
            back += usize::from(note < last);
            last = note;
        }
    }
    assert!(count(&engine, FaultKind::StaleRead) > 100);
    back
}

#[tokio::test]
async fn eventual_reads_go_back_unless_monotonic() {
    assert!(count_steps_back(Faults::seeded(8)).await > 100);
    assert_eq!(
        count_steps_back(Faults::seeded(8).monotonic_reads()).await,
        0
    );
}

#[tokio::test]
async fn index_never_goes_back() {
    let engine = engine(Faults::seeded(9).index_lag(0.7, Lag::Operations(30))).await;
    let mut last = BTreeMap::new();
    let mut behind = 0;
    for n in 0..1000 {
        put(&*engine, red(n % 5, n)).await.unwrap();
        let query = Query::new(TABLE, KeyCondition::partition("color", "red")).index("by_color");
        for item in engine.query(query).await.unwrap().items {
            let note = item.get("note").unwrap().as_n().unwrap().to_u64().unwrap();
            let before = last.insert(place(&item), note).unwrap_or(0);
            assert!(before <= note, "n={n} {item:?} before={before}");
            behind += usize::from(note + 5 <= n);
        }
    }
    assert!(behind > 100, "it lags: behind={behind}");
}

/// The states of each key, each with the number of the first operation after it ended.
#[derive(Default)]
struct States(BTreeMap<u64, Vec<(Option<Item>, u64)>>);

impl States {
    fn note(&mut self, place: u64, state: Option<Item>, next_number: u64) {
        let states = self
            .0
            .entry(place)
            .or_insert_with(|| vec![(None, u64::MAX)]);
        states.last_mut().unwrap().1 = next_number;
        states.push((state, u64::MAX));
    }

    /// Whether a reader with this number and lag may see `seen`, the image of a state under `shown`.
    fn allows<T: PartialEq>(
        &self,
        place: u64,
        reader: u64,
        lag: u64,
        seen: &T,
        shown: impl Fn(Option<&Item>) -> T,
    ) -> bool {
        match self.0.get(&place) {
            None => *seen == shown(None),
            Some(states) => states.iter().any(|(state, until)| {
                *until > reader - lag.min(reader) && *seen == shown(state.as_ref())
            }),
        }
    }
}

const PLACES: u64 = 12;
const LAG: u64 = 15;

async fn random_write(engine: &FaultEngine, random: &SeededRandom, n: u64) -> Result<()> {
    let item = |place| match random.below(3) {
        0 => thing(place, n)
            .with("color", "red")
            .with("weight", random.below(4)),
        1 => thing(place, n)
            .with("color", "blue")
            .with("weight", random.below(4)),
        _ => thing(place, n),
    };
    let one = random.below(PLACES);
    let other = (one + 1 + random.below(PLACES - 1)) % PLACES;
    match random.below(6) {
        0 => engine
            .write_item(DeleteItem::new(TABLE, key(one)).into())
            .await
            .map(drop),
        1 => {
            let update = Update::new().set("note", n);
            engine
                .write_item(UpdateItem::new(TABLE, key(one), update).into())
                .await
                .map(drop)
        }
        2 => {
            let batch = BatchWriteItem::new()
                .put(TABLE, item(one))
                .delete(TABLE, key(other));
            engine.batch_write_item(batch).await.map(drop)
        }
        3 => {
            let put = PutItem::new(TABLE, item(one)).into();
            let delete = DeleteItem::new(TABLE, key(other)).into();
            let both = TransactWriteItems::new([put, delete]);
            engine.transact_write_items(both).await.map(drop)
        }
        _ => put(engine, item(one)).await,
    }
}

/// Every result of a long random run was true within the lag, item by item.
#[tokio::test]
async fn stale_results_were_true_within_the_lag() {
    let faults = Faults::seeded(10)
        .stale_reads(0.5, Lag::Operations(LAG))
        .index_lag(0.5, Lag::Operations(LAG))
        .lost_after(0.1)
        .only(|request| request.number % 5 != 0);
    let engine = engine(faults).await;
    let random = SeededRandom::new(10);
    let mut states_by_key = States::default();
    let mut now: BTreeMap<u64, Option<Item>> = BTreeMap::new();
    for n in 0..3000 {
        let _ = random_write(&engine, &random, n).await;
        for place in 0..PLACES {
            let state = current_item(&engine, key(place)).await;
            if now.get(&place).cloned().flatten() != state {
                states_by_key.note(place, state.clone(), engine.operations() + 1);
                now.insert(place, state);
            }
        }
        let whole = |state: Option<&Item>| state.cloned();
        let reader = engine.operations() + 1;
        let some = random.below(PLACES);
        if let Ok(found) = engine
            .get_item(GetItem::new(TABLE, key(some)).eventual())
            .await
        {
            assert!(
                states_by_key.allows(some, reader, LAG, &found.item, whole),
                "n={n}"
            );
        }
        let reader = engine.operations() + 1;
        let query = Query::new(TABLE, KeyCondition::partition("shelf", "a"));
        if let Ok(page) = engine.query(query).await {
            let places: Vec<u64> = page.items.iter().map(place).collect();
            assert!(places.is_sorted_by(|a, b| a < b), "n={n} {places:?}");
            for place in 0..PLACES {
                let seen = page
                    .items
                    .iter()
                    .find(|item| self::place(item) == place)
                    .cloned();
                assert!(
                    states_by_key.allows(place, reader, LAG, &seen, whole),
                    "n={n} place={place}"
                );
            }
        }
        let reader = engine.operations() + 1;
        if let Ok(places) = engine.scan(Scan::new(TABLE).index("by_color")).await {
            for place in 0..PLACES {
                let mut seen = places
                    .items
                    .iter()
                    .filter(|item| self::place(item) == place);
                let (first, second) = (seen.next().cloned(), seen.next());
                assert_eq!(second, None, "n={n} place={place}");
                let entry =
                    |state: Option<&Item>| state.filter(|item| item.contains("color")).cloned();
                assert!(
                    states_by_key.allows(place, reader, LAG, &first, entry),
                    "n={n} place={place}"
                );
            }
        }
    }
    assert!(count(&engine, FaultKind::StaleRead) > 500);
    assert!(count(&engine, FaultKind::IndexLag) > 500);
    assert!(count(&engine, FaultKind::LostAfter) > 100);
}

/// An engine with faults that can read the state before later writes, and an engine that is still in that state.
async fn faulty_and_earlier(random: &SeededRandom) -> (FaultEngine, ModelHarness) {
    let earlier = ModelHarness::new(1);
    let current = ModelHarness::new(1);
    let item = |n: u64| {
        let shelf = if random.below(2) == 0 { "a" } else { "b" };
        let mut item = Item::new()
            .with("shelf", shelf)
            .with("place", random.below(25))
            .with("note", n);
        if random.below(3) > 0 {
            item.insert("color", if random.below(2) == 0 { "red" } else { "blue" });
        }
        if random.below(4) > 0 {
            item.insert("weight", random.below(4));
        }
        item
    };
    for engine in [earlier.engine(), current.engine()] {
        engine
            .create_table(CreateTable::from(things()))
            .await
            .unwrap();
    }
    for n in 0..40 {
        let item = item(n);
        put(earlier.engine().as_ref(), item.clone()).await.unwrap();
        put(current.engine().as_ref(), item).await.unwrap();
    }
    let faults = Faults::seeded(1)
        .stale_reads(0.0, ALWAYS)
        .index_lag(0.0, ALWAYS);
    let engine = FaultEngine::new(current.engine(), faults);
    for n in 40..80 {
        let item = item(n);
        match n % 3 {
            0 => {
                let key = things().key.key_of(&item).unwrap();
                engine
                    .write_item(DeleteItem::new(TABLE, key).into())
                    .await
                    .unwrap();
            }
            _ => put(&engine, item).await.unwrap(),
        }
    }
    (engine, earlier)
}

fn random_query(random: &SeededRandom) -> (Query, FaultKind) {
    let shelf = if random.below(2) == 0 { "a" } else { "b" };
    let color = if random.below(2) == 0 { "red" } else { "blue" };
    let (condition, sort, index) = match random.below(3) {
        0 => (KeyCondition::partition("shelf", shelf), "place", None),
        1 => (
            KeyCondition::partition("color", color),
            "weight",
            Some("by_color"),
        ),
        _ => (
            KeyCondition::partition("shelf", shelf),
            "weight",
            Some("by_weight"),
        ),
    };
    let low = random.below(4);
    let condition = match random.below(5) {
        0 => condition.and(sort, KeyOp::Ge(low.into())),
        1 => condition.and(sort, KeyOp::Lt(low.into())),
        2 => condition.and(sort, KeyOp::Between(low.into(), (low + 2).into())),
        _ => condition,
    };
    let mut query = Query::new(TABLE, condition);
    query.index_name = index.map(str::to_owned);
    query.return_capacity = ReturnConsumedCapacity::Indexes;
    query.forward = random.below(2) == 0;
    query.limit = (random.below(3) > 0).then(|| 1 + random.below(6) as usize);
    if random.below(2) == 0 {
        // A filter may only use attributes that the index projects.
        let compared = match index {
            Some("by_weight") => "place",
            _ => "note",
        };
        query.filter = Some(Condition::lt(Path::attribute(compared), random.below(40)));
    }
    match random.below(4) {
        0 => {
            let parts = ["note", "place"].map(Path::attribute);
            query.projection = Some(Paths(parts.to_vec()));
        }
        1 => query.select = Some(Select::Count),
        2 if index == Some("by_weight") => query.select = Some(Select::AllAttributes),
        _ => {}
    }
    let kind = match index {
        Some("by_color") => FaultKind::IndexLag,
        _ => FaultKind::StaleRead,
    };
    (query, kind)
}

/// A stale query returns, page by page, exactly what it would have returned earlier.
#[tokio::test]
async fn stale_page_equals_the_earlier_page() {
    let random = SeededRandom::new(11);
    let (mut pages, mut differing) = (0, 0);
    for round in 0..40 {
        let (current, earlier) = faulty_and_earlier(&random).await;
        for _ in 0..30 {
            let (mut query, kind) = random_query(&random);
            loop {
                current.script(Operation::Query, kind).unwrap();
                let seen = current.query(query.clone()).await.unwrap();
                let expected = earlier.engine().query(query.clone()).await.unwrap();
                assert_eq!(seen, expected, "round={round} {query:#?}");
                pages += 1;
                differing +=
                    usize::from(seen != current.inner().query(query.clone()).await.unwrap());
                match seen.last_key {
                    None => break,
                    Some(key) => query.start_key = Some(key),
                }
            }
        }
    }
    assert!(
        pages > 2000 && differing > pages / 4,
        "pages={pages} differing={differing}"
    );
}

/// A stale scan that fits into one page returns the earlier items, in any order; so do its segments together.
#[tokio::test]
async fn stale_scan_returns_the_earlier_items() {
    let random = SeededRandom::new(12);
    for round in 0..60 {
        let (current, earlier) = faulty_and_earlier(&random).await;
        let mut scan = Scan::new(TABLE);
        let mut kind = FaultKind::StaleRead;
        match round % 3 {
            1 => scan.index_name = Some("by_weight".to_owned()),
            2 => {
                scan.index_name = Some("by_color".to_owned());
                kind = FaultKind::IndexLag;
            }
            _ => scan.filter = Some(Condition::lt(Path::attribute("note"), 20)),
        }
        let segments = 1 + round % 4;
        let (mut seen, mut scanned) = (Vec::new(), 0);
        for index in 0..segments {
            let segment = scan.clone().segment(index, segments);
            current.script(Operation::Scan, kind).unwrap();
            let page = current.scan(segment).await.unwrap();
            assert_eq!(page.last_key, None);
            seen.extend(page.items);
            scanned += page.scanned_count;
        }
        let expected = earlier.engine().scan(scan.clone()).await.unwrap();
        let sorted = |items: Vec<Item>| {
            let mut texts: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
            texts.sort();
            texts
        };
        assert_eq!(scanned, expected.scanned_count, "round={round}");
        assert_eq!(sorted(seen), sorted(expected.items), "round={round}");
    }
}

/// A stale scan in several pages returns the earlier or the current state of each item, and no item twice.
#[tokio::test]
async fn stale_paged_scan_returns_each_item_once() {
    let random = SeededRandom::new(13);
    for round in 0..40 {
        let (current, earlier) = faulty_and_earlier(&random).await;
        let all = |items: Vec<Item>| -> BTreeMap<String, Item> {
            let key = |item: &Item| format!("{:?}", things().key.key_of(item));
            items.into_iter().map(|item| (key(&item), item)).collect()
        };
        let was = all(earlier.engine().scan(Scan::new(TABLE)).await.unwrap().items);
        let is = all(current.inner().scan(Scan::new(TABLE)).await.unwrap().items);
        let mut seen = Vec::new();
        let mut scan = Scan::new(TABLE).limit(1 + round % 7);
        loop {
            current
                .script(Operation::Scan, FaultKind::StaleRead)
                .unwrap();
            let page = current.scan(scan.clone()).await.unwrap();
            assert!(page.scanned_count <= 1 + round % 7);
            seen.extend(page.items);
            match page.last_key {
                None => break,
                Some(key) => scan.start_key = Some(key),
            }
        }
        let count = seen.len();
        let seen = all(seen);
        assert_eq!(seen.len(), count, "round={round}: an item twice");
        for key in was.keys().chain(is.keys()) {
            let shown = seen.get(key);
            assert!(
                shown == was.get(key) || shown.is_none() && !is.contains_key(key),
                "round={round} {key}"
            );
        }
    }
}

#[tokio::test]
async fn stale_batch_get_keeps_its_projection() {
    let random = SeededRandom::new(14);
    let (current, earlier) = faulty_and_earlier(&random).await;
    let keys = (0..50).map(|n| {
        let shelf = if n % 2 == 0 { "a" } else { "b" };
        Item::new().with("shelf", shelf).with("place", n / 2)
    });
    let request = KeysAndAttributes {
        keys: keys.collect(),
        projection: Some(Paths(vec![Path::attribute("note")])),
        consistent: false,
    };
    let batch = BatchGetItem {
        requests: BTreeMap::from([(TABLE.to_owned(), request)]),
        ..BatchGetItem::new()
    };
    current
        .script(Operation::BatchGetItem, FaultKind::StaleRead)
        .unwrap();
    let notes = |output: BatchGetItemOutput| -> BTreeSet<String> {
        output.items[TABLE]
            .iter()
            .map(|item| format!("{item:?}"))
            .collect()
    };
    let seen = notes(current.batch_get_item(batch.clone()).await.unwrap());
    assert_eq!(
        seen,
        notes(
            earlier
                .engine()
                .batch_get_item(batch.clone())
                .await
                .unwrap()
        )
    );
    assert_ne!(
        seen,
        notes(current.inner().batch_get_item(batch).await.unwrap())
    );
}
