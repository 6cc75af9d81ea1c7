//! BatchGetItem and BatchWriteItem: many items, each on its own.

use floe_store::Item;
use floe_store::limits::{BATCH_GET_BYTES_MAX, ITEM_BYTES_MAX};
use floe_store::op::{BatchGetItem, BatchWrite, BatchWriteItem, Scan};
use floe_store::size::item_size;

use super::fixture::*;

pub(super) async fn get_reads_from_several_tables(t: &mut Fixture) {
    t.create(plain()).await;
    t.create(sorted()).await;
    t.fill("Plain", [item("a").with("v", 1), item("b").with("v", 2)])
        .await;
    t.fill("Sorted", rows("a", 1..=2)).await;
    let batch = BatchGetItem::new()
        .keys("Plain", [item("b"), item("nobody"), item("a")])
        .keys("Sorted", [row("a", 2), row("a", 3)]);
    let output = t.batch_get_item(batch).await.unwrap();
    assert_eq!(texts(&output.items["Plain"], "pk"), ["a", "b"]);
    assert_eq!(output.items["Sorted"], [row("a", 2)]);
    assert!(output.unprocessed.is_empty());
    assert!(output.consumed.is_empty());
}

pub(super) async fn get_names_tables_without_hits(t: &mut Fixture) {
    t.create(plain()).await;
    let output = t
        .batch_get_item(BatchGetItem::new().keys("Plain", [item("nobody")]))
        .await
        .unwrap();
    assert_eq!(output.items.get("Plain"), Some(&Vec::new()));
}

pub(super) async fn get_projects_by_table(t: &mut Fixture) {
    t.create(plain()).await;
    t.fill("Plain", [item("a").with("v", 1).with("w", 2)]).await;
    let mut batch = BatchGetItem::new().keys("Plain", [item("a")]);
    batch.requests.get_mut("Plain").unwrap().projection = Some(projection("w, absent"));
    let output = t.batch_get_item(batch).await.unwrap();
    assert_eq!(output.items["Plain"], [Item::new().with("w", 2)]);
}

pub(super) async fn get_refuses_duplicates(t: &mut Fixture) {
    t.create(sorted()).await;
    let twice = BatchGetItem::new().keys(
        "Sorted",
        [row("a", 1), row("b", 1), row("a", number("1.0"))],
    );
    refused(t.batch_get_item(twice).await, TWICE_IN_LIST);
}

pub(super) async fn get_takes_up_to_a_hundred_keys(t: &mut Fixture) {
    t.create(sorted()).await;
    t.fill("Sorted", rows("a", 0..3)).await;
    let keys = |count| BatchGetItem::new().keys("Sorted", rows("a", 0..count));
    assert_eq!(
        t.batch_get_item(keys(100)).await.unwrap().items["Sorted"].len(),
        3
    );
    invalid(t.batch_get_item(keys(101)).await);
    invalid(t.batch_get_item(BatchGetItem::new()).await);
    refused(
        t.batch_get_item(BatchGetItem::new().keys("Sorted", []))
            .await,
        EMPTY_LIST,
    );
}

pub(super) async fn get_checks_every_key(t: &mut Fixture) {
    t.create(sorted()).await;
    for key in [item("a"), row("a", "text"), row("a", 1).with("x", 1)] {
        refused(
            t.batch_get_item(BatchGetItem::new().keys("Sorted", [row("a", 1), key]))
                .await,
            WRONG_KEY,
        );
    }
    let elsewhere = BatchGetItem::new()
        .keys("Sorted", [row("a", 1)])
        .keys("Nowhere", [item("a")]);
    no_table(t.batch_get_item(elsewhere).await);
}

pub(super) async fn get_leaves_over_what_exceeds_sixteen_megabytes(t: &mut Fixture) {
    t.create(sorted()).await;
    let count = BATCH_GET_BYTES_MAX / ITEM_BYTES_MAX + 5;
    let count = i32::try_from(count).unwrap();
    for sk in 0..count {
        t.fill(
            "Sorted",
            [row("a", sk).with("v", "x".repeat(ITEM_BYTES_MAX - 100))],
        )
        .await;
    }
    let mut missing = rows("a", 0..count);
    let mut rounds = 0;
    while !missing.is_empty() {
        let output = t
            .batch_get_item(BatchGetItem::new().keys("Sorted", missing.clone()))
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
    let output = t.batch_write_item(batch).await.unwrap();
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
        refused(t.batch_write_item(batch).await, TWICE_IN_LIST);
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
    t.batch_write_item(puts(25)).await.unwrap();
    assert_eq!(t.scan_all(Scan::new("Sorted")).await.len(), 25);
    invalid(t.batch_write_item(puts(26)).await);
    invalid(t.batch_write_item(BatchWriteItem::new()).await);
}

pub(super) async fn write_checks_everything_before_it_writes(t: &mut Fixture) {
    t.create(sorted()).await;
    for bad in [item("a"), row("a", "text")] {
        let put = BatchWriteItem::new()
            .put("Sorted", row("a", 1))
            .put("Sorted", bad.clone());
        refused(t.batch_write_item(put).await, WRONG_KEY);
        let delete = BatchWriteItem::new()
            .put("Sorted", row("a", 1))
            .delete("Sorted", bad);
        refused(t.batch_write_item(delete).await, WRONG_KEY);
    }
    let extra = BatchWriteItem::new().delete("Sorted", row("a", 1).with("x", 1));
    refused(t.batch_write_item(extra).await, WRONG_KEY);
    let large = row("a", 2).with("v", "x".repeat(ITEM_BYTES_MAX));
    let large = BatchWriteItem::new()
        .put("Sorted", row("a", 1))
        .put("Sorted", large);
    refused(t.batch_write_item(large).await, ITEM_TOO_LARGE);
    let elsewhere = BatchWriteItem::new()
        .put("Sorted", row("a", 1))
        .put("Nowhere", item("a"));
    no_table(t.batch_write_item(elsewhere).await);
    assert_eq!(t.scan_all(Scan::new("Sorted")).await, Vec::<Item>::new());
}

pub(super) async fn write_takes_whole_items(t: &mut Fixture) {
    t.create(plain()).await;
    let batch = BatchWriteItem {
        requests: [("Plain".to_owned(), vec![BatchWrite::Put(every_type("a"))])].into(),
        ..BatchWriteItem::new()
    };
    t.batch_write_item(batch).await.unwrap();
    t.assert_item("Plain", every_type("a")).await;
}
