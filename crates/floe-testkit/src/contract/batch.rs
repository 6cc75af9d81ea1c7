//! BatchGetItem and BatchWriteItem: many items, each on its own.

use floe_store::Item;
use floe_store::limits::{BATCH_GET_BYTES_MAX, ITEM_BYTES_MAX};
use floe_store::op::{BatchGetItem, BatchWrite, BatchWriteItem};
use floe_store::size::item_size;

use super::fixture::*;

pub(super) fn get_reads_from_several_tables(t: &mut Fixture) {
    t.create(plain());
    t.create(sorted());
    t.fill("Plain", [item("a").with("v", 1), item("b").with("v", 2)]);
    t.fill("Sorted", rows("a", 1..=2));
    let batch = BatchGetItem::new()
        .keys("Plain", [item("b"), item("nobody"), item("a")])
        .keys("Sorted", [row("a", 2), row("a", 3)]);
    let output = t.batch_get_item(batch).unwrap();
    assert_eq!(texts(&output.items["Plain"], "pk"), ["a", "b"]);
    assert_eq!(output.items["Sorted"], [row("a", 2)]);
    assert!(output.unprocessed.is_empty());
    assert!(output.consumed.is_empty());
}

pub(super) fn get_names_tables_without_hits(t: &mut Fixture) {
    t.create(plain());
    let output = t
        .batch_get_item(BatchGetItem::new().keys("Plain", [item("nobody")]))
        .unwrap();
    assert_eq!(output.items.get("Plain"), Some(&Vec::new()));
}

pub(super) fn get_projects_by_table(t: &mut Fixture) {
    t.create_with(plain(), [item("a").with("v", 1).with("w", 2)]);
    let mut batch = BatchGetItem::new().keys("Plain", [item("a")]);
    batch.requests.get_mut("Plain").unwrap().projection = Some(projection("w, absent"));
    let output = t.batch_get_item(batch).unwrap();
    assert_eq!(output.items["Plain"], [Item::new().with("w", 2)]);
}

pub(super) fn get_refuses_duplicates(t: &mut Fixture) {
    t.create(sorted());
    let twice = BatchGetItem::new().keys(
        "Sorted",
        [row("a", 1), row("b", 1), row("a", number("1.0"))],
    );
    refused(t.batch_get_item(twice), TWICE_IN_LIST);
}

pub(super) fn get_takes_up_to_a_hundred_keys(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", 0..3));
    let keys = |count| BatchGetItem::new().keys("Sorted", rows("a", 0..count));
    let output = t.batch_get_item(keys(100)).unwrap();
    assert_eq!(output.items["Sorted"].len(), 3);
    invalid(t.batch_get_item(keys(101)));
    invalid(t.batch_get_item(BatchGetItem::new()));
    let empty = BatchGetItem::new().keys("Sorted", []);
    refused(t.batch_get_item(empty), EMPTY_LIST);
}

pub(super) fn get_checks_every_key(t: &mut Fixture) {
    t.create(sorted());
    for key in [item("a"), row("a", "text"), row("a", 1).with("x", 1)] {
        let get = BatchGetItem::new().keys("Sorted", [row("a", 1), key]);
        refused(t.batch_get_item(get), WRONG_KEY);
    }
    let elsewhere = BatchGetItem::new()
        .keys("Sorted", [row("a", 1)])
        .keys("Nowhere", [item("a")]);
    no_table(t.batch_get_item(elsewhere));
}

pub(super) fn get_leaves_over_what_exceeds_sixteen_megabytes(t: &mut Fixture) {
    t.create(sorted());
    let count = BATCH_GET_BYTES_MAX / ITEM_BYTES_MAX + 5;
    let count = i32::try_from(count).unwrap();
    for sk in 0..count {
        let large = row("a", sk).with("v", "x".repeat(ITEM_BYTES_MAX - 100));
        t.fill("Sorted", [large]);
    }
    let mut missing = rows("a", 0..count);
    let mut rounds = 0;
    while !missing.is_empty() {
        let output = t
            .batch_get_item(BatchGetItem::new().keys("Sorted", missing.clone()))
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

pub(super) fn write_puts_and_deletes(t: &mut Fixture) {
    t.create(plain());
    t.create(sorted());
    t.fill("Plain", [item("a").with("v", 1), item("b").with("v", 1)]);
    let batch = BatchWriteItem::new()
        .put("Plain", item("a").with("w", 2))
        .delete("Plain", item("b"))
        .delete("Plain", item("nobody"))
        .put("Sorted", row("a", 1));
    let output = t.batch_write_item(batch).unwrap();
    assert!(output.unprocessed.is_empty());
    assert!(output.consumed.is_empty());
    assert_eq!(t.whole("Plain"), [item("a").with("w", 2)]);
    assert_eq!(t.whole("Sorted"), [row("a", 1)]);
}

pub(super) fn write_refuses_duplicates(t: &mut Fixture) {
    t.create(plain());
    let put = || BatchWriteItem::new().put("Plain", item("a"));
    let delete = || BatchWriteItem::new().delete("Plain", item("a"));
    let batches = [
        put().put("Plain", item("a").with("v", 1)),
        put().delete("Plain", item("a")),
        delete().delete("Plain", item("a")),
    ];
    for batch in batches {
        refused(t.batch_write_item(batch), TWICE_IN_LIST);
    }
    assert_eq!(t.whole("Plain"), Vec::<Item>::new());
}

pub(super) fn write_takes_up_to_25_items(t: &mut Fixture) {
    t.create(sorted());
    let puts = |count| {
        rows("a", 0..count)
            .into_iter()
            .fold(BatchWriteItem::new(), |batch, row| batch.put("Sorted", row))
    };
    t.batch_write_item(puts(25)).unwrap();
    assert_eq!(t.whole("Sorted").len(), 25);
    invalid(t.batch_write_item(puts(26)));
    invalid(t.batch_write_item(BatchWriteItem::new()));
}

pub(super) fn write_checks_everything_before_it_writes(t: &mut Fixture) {
    t.create(sorted());
    let good = || BatchWriteItem::new().put("Sorted", row("a", 1));
    for bad in [item("a"), row("a", "text")] {
        let put = good().put("Sorted", bad.clone());
        refused(t.batch_write_item(put), WRONG_KEY);
        refused(t.batch_write_item(good().delete("Sorted", bad)), WRONG_KEY);
    }
    let extra = BatchWriteItem::new().delete("Sorted", row("a", 1).with("x", 1));
    refused(t.batch_write_item(extra), WRONG_KEY);
    let large = row("a", 2).with("v", "x".repeat(ITEM_BYTES_MAX));
    let large = good().put("Sorted", large);
    refused(t.batch_write_item(large), ITEM_TOO_LARGE);
    let elsewhere = good().put("Nowhere", item("a"));
    no_table(t.batch_write_item(elsewhere));
    assert_eq!(t.whole("Sorted"), Vec::<Item>::new());
}

pub(super) fn write_takes_whole_items(t: &mut Fixture) {
    t.create(plain());
    let batch = BatchWriteItem {
        requests: [("Plain".to_owned(), vec![BatchWrite::Put(every_type("a"))])].into(),
        ..BatchWriteItem::new()
    };
    t.batch_write_item(batch).unwrap();
    t.assert_item("Plain", every_type("a"));
}
