//! BatchGetItem and BatchWriteItem: many items, each on its own.

use floe_store::limits::{BATCH_GET_BYTES_MAX, ITEM_BYTES_MAX};
use floe_store::op::{BatchGetItem, BatchWrite, BatchWriteItem, Scan};
use floe_store::size::item_size;
use floe_store::{Item, Result};

use super::fixture::*;

async fn get(t: &Fixture, batch: BatchGetItem) -> Result<floe_store::op::BatchGetItemOutput> {
    t.engine().batch_get_item(batch).await
}

async fn write(t: &Fixture, batch: BatchWriteItem) -> Result<floe_store::op::BatchWriteItemOutput> {
    t.engine().batch_write_item(batch).await
}

pub(super) async fn get_reads_from_several_tables(t: &mut Fixture) {
    t.create(plain()).await;
    t.create(sorted()).await;
    t.fill("Plain", [item("a").with("v", 1), item("b").with("v", 2)])
        .await;
    t.fill("Sorted", rows("a", 1..=2)).await;
    let batch = BatchGetItem::new()
        .keys("Plain", [item("b"), item("nobody"), item("a")])
        .keys("Sorted", [row("a", 2), row("a", 3)]);
    let output = get(t, batch).await.unwrap();
    assert_eq!(texts(&output.items["Plain"], "pk"), ["a", "b"]);
    assert_eq!(output.items["Sorted"], [row("a", 2)]);
    assert!(output.unprocessed.is_empty());
    assert!(output.consumed.is_empty());
}

pub(super) async fn get_names_tables_without_hits(t: &mut Fixture) {
    t.create(plain()).await;
    let output = get(t, BatchGetItem::new().keys("Plain", [item("nobody")]))
        .await
        .unwrap();
    assert_eq!(output.items.get("Plain"), Some(&Vec::new()));
}

pub(super) async fn get_projects_by_table(t: &mut Fixture) {
    t.create(plain()).await;
    t.fill("Plain", [item("a").with("v", 1).with("w", 2)]).await;
    let mut batch = BatchGetItem::new().keys("Plain", [item("a")]);
    batch.requests.get_mut("Plain").unwrap().projection = Some(projection("w, absent"));
    let output = get(t, batch).await.unwrap();
    assert_eq!(output.items["Plain"], [Item::new().with("w", 2)]);
}

pub(super) async fn get_refuses_duplicates(t: &mut Fixture) {
    t.create(sorted()).await;
    let detail = "Provided list of item keys contains duplicates";
    let twice = BatchGetItem::new().keys(
        "Sorted",
        [row("a", 1), row("b", 1), row("a", number("1.0"))],
    );
    refused(get(t, twice).await, detail);
}

pub(super) async fn get_takes_up_to_a_hundred_keys(t: &mut Fixture) {
    t.create(sorted()).await;
    t.fill("Sorted", rows("a", 0..3)).await;
    let keys = |count| BatchGetItem::new().keys("Sorted", rows("a", 0..count));
    assert_eq!(get(t, keys(100)).await.unwrap().items["Sorted"].len(), 3);
    assert!(matches!(
        get(t, keys(101)).await,
        Err(floe_store::Error::Validation(_))
    ));
    assert!(matches!(
        get(t, BatchGetItem::new()).await,
        Err(floe_store::Error::Validation(_))
    ));
    refused(
        get(t, BatchGetItem::new().keys("Sorted", [])).await,
        "Member must have length greater than or equal to 1",
    );
}

pub(super) async fn get_checks_every_key(t: &mut Fixture) {
    t.create(sorted()).await;
    for key in [item("a"), row("a", "text"), row("a", 1).with("x", 1)] {
        refused(
            get(t, BatchGetItem::new().keys("Sorted", [row("a", 1), key])).await,
            "The provided key element does not match the schema",
        );
    }
    let elsewhere = BatchGetItem::new()
        .keys("Sorted", [row("a", 1)])
        .keys("Nowhere", [item("a")]);
    not_found(get(t, elsewhere).await, "Requested resource not found");
}

pub(super) async fn get_leaves_over_what_exceeds_sixteen_megabytes(t: &mut Fixture) {
    t.create(sorted()).await;
    let count = BATCH_GET_BYTES_MAX / ITEM_BYTES_MAX + 5;
    let count = i32::try_from(count).unwrap();
    for sk in 0..count {
        t.put(
            "Sorted",
            row("a", sk).with("v", "x".repeat(ITEM_BYTES_MAX - 100)),
        )
        .await
        .unwrap();
    }
    let mut missing = rows("a", 0..count);
    let mut rounds = 0;
    while !missing.is_empty() {
        let output = get(t, BatchGetItem::new().keys("Sorted", missing.clone()))
            .await
            .unwrap();
        let bytes: usize = output.items["Sorted"].iter().map(item_size).sum();
        assert!(bytes <= BATCH_GET_BYTES_MAX, "bytes={bytes}");
        let left = output
            .unprocessed
            .get("Sorted")
            .map(|rest| rest.keys.clone())
            .unwrap_or_default();
        assert_eq!(output.items["Sorted"].len() + left.len(), missing.len());
        missing = left;
        rounds += 1;
    }
    assert_eq!(rounds, 2);
}

pub(super) async fn write_puts_and_deletes(t: &mut Fixture) {
    t.create(plain()).await;
    t.create(sorted()).await;
    t.fill("Plain", [item("a").with("v", 1), item("b").with("v", 1)])
        .await;
    let batch = BatchWriteItem::new()
        .put("Plain", item("a").with("w", 2))
        .delete("Plain", item("b"))
        .delete("Plain", item("nobody"))
        .put("Sorted", row("a", 1));
    let output = write(t, batch).await.unwrap();
    assert!(output.unprocessed.is_empty());
    assert!(output.consumed.is_empty());
    assert_eq!(
        t.scan_all(Scan::new("Plain")).await,
        [item("a").with("w", 2)]
    );
    assert_eq!(t.scan_all(Scan::new("Sorted")).await, [row("a", 1)]);
}

pub(super) async fn write_refuses_duplicates(t: &mut Fixture) {
    t.create(plain()).await;
    let detail = "Provided list of item keys contains duplicates";
    let batches = [
        BatchWriteItem::new()
            .put("Plain", item("a"))
            .put("Plain", item("a").with("v", 1)),
        BatchWriteItem::new()
            .put("Plain", item("a"))
            .delete("Plain", item("a")),
        BatchWriteItem::new()
            .delete("Plain", item("a"))
            .delete("Plain", item("a")),
    ];
    for batch in batches {
        refused(write(t, batch).await, detail);
    }
    assert_eq!(t.scan_all(Scan::new("Plain")).await, Vec::<Item>::new());
}

pub(super) async fn write_takes_up_to_25_items(t: &mut Fixture) {
    t.create(sorted()).await;
    let puts = |count| {
        rows("a", 0..count)
            .into_iter()
            .fold(BatchWriteItem::new(), |batch, row| batch.put("Sorted", row))
    };
    write(t, puts(25)).await.unwrap();
    assert_eq!(t.scan_all(Scan::new("Sorted")).await.len(), 25);
    assert!(matches!(
        write(t, puts(26)).await,
        Err(floe_store::Error::Validation(_))
    ));
    assert!(matches!(
        write(t, BatchWriteItem::new()).await,
        Err(floe_store::Error::Validation(_))
    ));
}

pub(super) async fn write_checks_everything_before_it_writes(t: &mut Fixture) {
    t.create(sorted()).await;
    let schema = "The provided key element does not match the schema";
    for bad in [item("a"), row("a", "text")] {
        let put = BatchWriteItem::new()
            .put("Sorted", row("a", 1))
            .put("Sorted", bad.clone());
        refused(write(t, put).await, schema);
        let delete = BatchWriteItem::new()
            .put("Sorted", row("a", 1))
            .delete("Sorted", bad);
        refused(write(t, delete).await, schema);
    }
    let extra = BatchWriteItem::new().delete("Sorted", row("a", 1).with("x", 1));
    refused(write(t, extra).await, schema);
    let large = row("a", 2).with("v", "x".repeat(ITEM_BYTES_MAX));
    let large = BatchWriteItem::new()
        .put("Sorted", row("a", 1))
        .put("Sorted", large);
    refused(
        write(t, large).await,
        "Item size has exceeded the maximum allowed size",
    );
    let elsewhere = BatchWriteItem::new()
        .put("Sorted", row("a", 1))
        .put("Nowhere", item("a"));
    not_found(write(t, elsewhere).await, "Requested resource not found");
    assert_eq!(t.scan_all(Scan::new("Sorted")).await, Vec::<Item>::new());
}

pub(super) async fn write_takes_whole_items(t: &mut Fixture) {
    t.create(plain()).await;
    let batch = BatchWriteItem {
        requests: [("Plain".to_owned(), vec![BatchWrite::Put(every_type("a"))])].into(),
        ..BatchWriteItem::new()
    };
    write(t, batch).await.unwrap();
    assert_eq!(t.get("Plain", item("a")).await, Some(every_type("a")));
}
