//! Which reads are answered from the cache, and which never are.

use std::time::Duration;

use floe::cache::CacheOptions;
use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::expr::{Path, Paths};
use floe_store::op::*;
use floe_store::table::KeyKind;
use floe_store::{Engine, Error, Item, TableDef, Units, Value};
use floe_testkit::fault::{FaultKind, Faults, Operation};

use super::fixture::*;

#[tokio::test]
async fn second_eventual_read_sends_no_request() {
    let world = world().await;
    world.write_elsewhere(put("a", 1)).await;
    assert_eq!(world.sees_for("a").await, (1, 1));
    assert_eq!(world.sees_for("a").await, (1, 0));
    // A missing item is cached too.
    assert_eq!(world.sees_for("b").await, (0, 1));
    assert_eq!(world.sees_for("b").await, (0, 0));
    let stats = world.cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.items), (2, 2, 2));
    world.cache.clear();
    assert_eq!(world.sees_for("a").await, (1, 1));
    assert_eq!(world.cache.stats().items, 1);
}

#[tokio::test]
async fn cached_item_expires_after_the_ttl() {
    let world = world_with(
        Faults::seeded(1),
        CacheOptions::new().ttl(Duration::from_secs(60)),
        |_| {},
    )
    .await;
    world.write_elsewhere(put("a", 1)).await;
    assert_eq!(world.sees("a").await + world.sees("b").await, 1);
    for id in ["a", "b"] {
        world.write_elsewhere(put(id, 2)).await;
    }
    world.time.advance(Duration::from_millis(59_999));
    assert_eq!(world.sees_for("a").await, (1, 0));
    assert_eq!(world.sees_for("b").await, (0, 0));
    world.time.advance(Duration::from_millis(1));
    assert_eq!(world.sees_for("a").await, (2, 1));
    assert_eq!(world.sees_for("b").await, (2, 1));
    assert_eq!(world.sees_for("a").await, (2, 0));
}

#[tokio::test]
async fn consistent_read_is_sent_and_refreshes_cached_items() {
    let world = world().await;
    world.write_elsewhere(put("a", 1)).await;
    assert_eq!(world.sees("a").await, 1);
    world.write_elsewhere(put("a", 2)).await;
    world.write_elsewhere(put("b", 1)).await;
    assert_eq!(world.sees("a").await, 1);
    world.requests();
    for id in ["a", "a", "b"] {
        let output = world.cache.get_item(GetItem::new("Plain", key(id))).await;
        let expected = if id == "a" { 2 } else { 1 };
        assert_eq!(version_of(output.unwrap().item.as_ref()), expected);
        assert_eq!(world.requests().len(), 1);
    }
    assert_eq!(world.sees_for("a").await, (2, 0));
    // Items that are only read consistently are not cached.
    assert_eq!(world.cache.stats().items, 1);
    let stats = world.cache.stats();
    assert_eq!((stats.hits, stats.misses), (2, 1));
}

#[tokio::test]
async fn queries_scans_and_transactions_never_read_the_cache() {
    let world = world().await;
    assert_eq!(world.sees("a").await, 0);
    world.write_elsewhere(put("a", 1)).await;
    assert_eq!(world.sees("a").await, 0);
    let got = TransactGetItems::new([TransactGet::new("Plain", key("a"))]);
    let got = world.cache.transact_get_items(got).await.unwrap();
    assert_eq!(version_of(got.items[0].as_ref()), 1);
    let mut scan = Scan::new("Plain");
    scan.consistent = false;
    let page = world.cache.scan(scan).await.unwrap();
    assert_eq!(version_of(page.items.first()), 1);
    // They do not change it either.
    assert_eq!(world.sees("a").await, 0);
}

#[tokio::test]
async fn projections_are_neither_answered_nor_cached() {
    let world = world().await;
    world.write_elsewhere(put("a", 1)).await;
    let paths = Paths(vec![Path::attribute("v")]);
    let part = || get("a").projection(paths.clone());
    for _ in 0..2 {
        let output = world.cache.get_item(part()).await.unwrap();
        assert_eq!(output.item, Some(Item::new().with("v", 1)));
        assert_eq!(world.requests().len(), 1);
    }
    assert_eq!(world.cache.stats().items, 0);
    let mut parts = batch(["a", "b"]);
    parts.requests.get_mut("Plain").unwrap().projection = Some(paths.clone());
    let output = world.cache.batch_get_item(parts).await.unwrap();
    assert_eq!(output.items["Plain"], [Item::new().with("v", 1)]);
    assert_eq!(world.cache.stats().items, 0);
    assert_eq!(world.sees_for("a").await, (1, 1));
    assert!(world.cache.get_item(part()).await.is_ok());
    assert_eq!(world.requests().len(), 1);
}

#[tokio::test]
async fn read_with_consumed_capacity_is_sent_and_cached() {
    let world = world().await;
    world.write_elsewhere(put("a", 1)).await;
    let measured = || {
        let mut get = get("a");
        get.return_capacity = ReturnConsumedCapacity::Total;
        get
    };
    for _ in 0..2 {
        let output = world.cache.get_item(measured()).await.unwrap();
        assert_eq!(output.consumed.unwrap().read, Units::halves(1));
        assert_eq!(world.requests().len(), 1);
    }
    assert_eq!(world.sees_for("a").await, (1, 0));
    let mut measured = batch(["a", "b"]);
    measured.return_capacity = ReturnConsumedCapacity::Total;
    let output = world.cache.batch_get_item(measured).await.unwrap();
    assert_eq!(output.consumed[0].read, Units::whole(1));
    assert_eq!(
        world.requests(),
        [r#"BatchGetItem Plain {"id": "a"}, Plain {"id": "b"}"#]
    );
    assert_eq!(world.sees_for("b").await, (0, 0));
}

#[tokio::test]
async fn batch_requests_only_uncached_items() {
    let world = world().await;
    for (id, version) in [("a", 1), ("b", 2), ("d", 4)] {
        world.write_elsewhere(put(id, version)).await;
    }
    assert_eq!(world.sees("a").await + world.sees("c").await, 1);
    world.requests();
    let read = async || {
        let output = world
            .cache
            .batch_get_item(batch(["a", "b", "c", "d", "e"]))
            .await;
        let output = output.unwrap();
        assert!(output.unprocessed.is_empty());
        let mut items = output.items["Plain"].clone();
        items.sort_by_key(|item| version_of(Some(item)));
        assert_eq!(items, [item("a", 1), item("b", 2), item("d", 4)]);
        world.requests()
    };
    let rest = r#"BatchGetItem Plain {"id": "b"}, Plain {"id": "d"}, Plain {"id": "e"}"#;
    assert_eq!(read().await, [rest]);
    assert!(read().await.is_empty());
    let stats = world.cache.stats();
    assert_eq!((stats.hits, stats.misses, stats.items), (7, 5, 5));
    // A table without found items is in the response too.
    let output = world.cache.batch_get_item(batch(["c"])).await.unwrap();
    assert!(output.items["Plain"].is_empty() && world.requests().is_empty());
}

#[tokio::test]
async fn batch_can_be_consistent_for_one_table_and_eventual_for_another() {
    let world = world().await;
    let second = |version| PutItem::new("Second", item("s", version));
    for (plain, other) in [(1, 2), (3, 4)] {
        world.write_elsewhere(put("a", plain)).await;
        world.write_elsewhere(second(other)).await;
        // The first round fills the cache, which then answers for the eventual table only.
        let mixed = || batch(["a", "b"]).keys("Second", [key("s")]);
        let output = world.cache.batch_get_item(mixed()).await.unwrap();
        assert_eq!(output.items["Plain"], [item("a", 1)]);
        assert_eq!(output.items["Second"], [item("s", other)]);
    }
    let requests = world.requests();
    let reads: Vec<_> = requests.iter().filter(|r| r.starts_with("Batch")).collect();
    assert_eq!(
        reads,
        [
            r#"BatchGetItem Plain {"id": "a"}, Plain {"id": "b"}, Second {"id": "s"}"#,
            r#"BatchGetItem Second {"id": "s"}"#,
        ]
    );
    assert_eq!(
        world.cache.stats().items,
        2,
        "items that are read consistently are not cached"
    );
}

#[tokio::test]
async fn unprocessed_keys_are_returned_as_requested_and_not_cached() {
    let world = world().await;
    for (n, id) in ["a", "b", "c", "d"].into_iter().enumerate() {
        world.write_elsewhere(put(id, n as i64 + 1)).await;
    }
    // One of them was written by this process, so the rest is read consistently.
    world
        .write(update("d", 5).return_values(ReturnValues::AllOld))
        .await;
    assert_eq!(world.sees("a").await, 1);
    let fault = FaultKind::PartialBatch;
    world.faults.script(Operation::BatchGetItem, fault).unwrap();
    let output = world
        .cache
        .batch_get_item(batch(["a", "b", "c", "d"]))
        .await;
    let output = output.unwrap();
    let left = &output.unprocessed["Plain"];
    assert!(!left.consistent && left.projection.is_none());
    assert!(!left.keys.contains(&key("a")), "it was cached");
    assert_eq!(output.items["Plain"].len() + left.keys.len(), 4);
    for n in 1..5 {
        let id = ["", "a", "b", "c", "d"][n];
        let expected = if n == 4 { 5 } else { n as i64 };
        let is_left = left.keys.contains(&key(id));
        assert_eq!(world.sees_for(id).await, (expected, usize::from(is_left)));
    }
}

#[tokio::test]
async fn equal_numbers_are_one_key() {
    let world = world().await;
    let table = TableDef::builder("Numbers", "n", KeyKind::N)
        .build()
        .unwrap();
    world
        .cache
        .create_table(CreateTable::from(table))
        .await
        .unwrap();
    let number = |text: &str| Item::new().with("n", Value::N(text.parse().unwrap()));
    let write = PutItem::new("Numbers", number("1.00").with("v", 7));
    world.write(write).await;
    world.requests();
    for text in ["1", "1.0", "0.1e1"] {
        let get = GetItem::new("Numbers", number(text)).eventual();
        let output = world.cache.get_item(get).await.unwrap();
        assert_eq!(version_of(output.item.as_ref()), 7);
    }
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn requests_that_the_engine_rejects_are_rejected() {
    let world = world().await;
    world.write(put("a", 1)).await;
    assert_eq!(world.sees_for("a").await, (1, 0));
    let both = key("a").with("more", 1);
    let number = Item::new().with("id", 1);
    let empty = key("");
    for wrong in [both, number, empty, Item::new()] {
        for _ in 0..2 {
            let get = GetItem::new("Plain", wrong.clone()).eventual();
            let error = world.cache.get_item(get.clone()).await.unwrap_err();
            assert_eq!(error, world.other.get_item(get).await.unwrap_err());
            // A cached key does not hide an invalid one.
            let mut batch = batch(["a"]);
            batch
                .requests
                .get_mut("Plain")
                .unwrap()
                .keys
                .push(wrong.clone());
            let error = world.cache.batch_get_item(batch.clone()).await.unwrap_err();
            assert_eq!(error, world.other.batch_get_item(batch).await.unwrap_err());
        }
    }
    for _ in 0..2 {
        let get = GetItem::new("Missing", key("a")).eventual();
        let error = world.cache.get_item(get).await.unwrap_err();
        assert!(matches!(error, Error::ResourceNotFound(_)));
    }
    // All of these keys are cached, but the request is invalid.
    let twice = batch(["a", "a"]);
    let error = world.cache.batch_get_item(twice.clone()).await.unwrap_err();
    assert_eq!(error, world.other.batch_get_item(twice).await.unwrap_err());
    let mut many = Vec::new();
    for n in 0..101 {
        many.push(format!("{n}"));
        world.write(put(&many[n], 1)).await;
    }
    let too_many = batch(many.iter().map(String::as_str));
    let error = world.cache.batch_get_item(too_many).await.unwrap_err();
    assert!(matches!(error, Error::Validation(_)));
}

#[tokio::test]
async fn errors_are_not_cached() {
    let world = world().await;
    world.write_elsewhere(put("a", 1)).await;
    for operation in [Operation::GetItem, Operation::BatchGetItem] {
        world.faults.script(operation, FaultKind::Throttle).unwrap();
    }
    assert!(world.cache.get_item(get("a")).await.is_err());
    assert!(world.cache.batch_get_item(batch(["a"])).await.is_err());
    assert_eq!(world.cache.stats().items, 0);
    assert_eq!(world.sees_for("a").await, (1, 1));
}

#[tokio::test]
async fn size_is_limited_and_large_items_are_not_cached() {
    let options = CacheOptions::new().bytes_max(16 << 10);
    let world = world_with(Faults::seeded(1), options, |_| {}).await;
    let sized = |id: &str, bytes| item(id, 1).with("x", "x".repeat(bytes));
    for n in 0..100 {
        let id = format!("{n}");
        world.write(PutItem::new("Plain", sized(&id, 500))).await;
        assert_eq!(world.sees(&id).await, 1);
        assert!(world.cache.stats().bytes <= 16 << 10);
    }
    assert!(world.cache.stats().items >= 16);
    let is_cached = async |id: &str| world.sees_for(id).await == (1, 0);
    assert!(is_cached("99").await && !is_cached("0").await);
    world
        .write(PutItem::new("Plain", sized("large", 2048)))
        .await;
    assert!(!is_cached("large").await && !is_cached("large").await);
    assert!(is_cached("99").await);
}
