//! BatchGetItem and BatchWriteItem.

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
        .keys("Plain", [item("b"), item("missing"), item("a")])
        .keys("Sorted", [row("a", 2), row("a", 3)]);
    let output = t.batch_get_item(batch).unwrap();
    assert_eq!(texts(&output.items["Plain"], "pk"), ["a", "b"]);
    assert_eq!(output.items["Sorted"], [row("a", 2)]);
    assert!(output.unprocessed.is_empty());
    assert!(output.consumed.is_empty());
}

pub(super) fn get_lists_tables_without_results(t: &mut Fixture) {
    t.create(plain());
    let output = t
        .batch_get_item(BatchGetItem::new().keys("Plain", [item("missing")]))
        .unwrap();
    assert_eq!(output.items.get("Plain"), Some(&Vec::new()));
}

pub(super) fn get_supports_a_projection_for_each_table(t: &mut Fixture) {
    t.create_with(plain(), [item("a").with("v", 1).with("w", 2)]);
    let mut batch = BatchGetItem::new().keys("Plain", [item("a")]);
    batch.requests.get_mut("Plain").unwrap().projection = Some(projection("w, absent"));
    let output = t.batch_get_item(batch).unwrap();
    assert_eq!(output.items["Plain"], [Item::new().with("w", 2)]);
}

pub(super) fn get_rejects_duplicates(t: &mut Fixture) {
    t.create(sorted());
    let twice = BatchGetItem::new().keys(
        "Sorted",
        [row("a", 1), row("b", 1), row("a", number("1.0"))],
    );
    rejected(t.batch_get_item(twice), TWICE_IN_LIST);
}

pub(super) fn get_accepts_up_to_a_hundred_keys(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", 0..3));
    let keys = |count| BatchGetItem::new().keys("Sorted", rows("a", 0..count));
    let output = t.batch_get_item(keys(100)).unwrap();
    assert_eq!(output.items["Sorted"].len(), 3);
    invalid(t.batch_get_item(keys(101)));
    invalid(t.batch_get_item(BatchGetItem::new()));
    let empty = BatchGetItem::new().keys("Sorted", []);
    rejected(t.batch_get_item(empty), EMPTY_LIST);
}

pub(super) fn get_validates_every_key(t: &mut Fixture) {
    t.create(sorted());
    for key in [item("a"), row("a", "text"), row("a", 1).with("x", 1)] {
        let get = BatchGetItem::new().keys("Sorted", [row("a", 1), key]);
        rejected(t.batch_get_item(get), WRONG_KEY);
    }
    let elsewhere = BatchGetItem::new()
        .keys("Sorted", [row("a", 1)])
        .keys("Nowhere", [item("a")]);
    table_not_found(t.batch_get_item(elsewhere));
}

pub(super) fn get_returns_keys_beyond_sixteen_megabytes_as_unprocessed(t: &mut Fixture) {
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
        let remaining = output
            .unprocessed
            .get("Sorted")
            .map(|rest| rest.keys.clone())
            .unwrap_or_default();
        assert_eq!(
            output.items["Sorted"].len() + remaining.len(),
            missing.len()
        );
        missing = remaining;
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
        .delete("Plain", item("missing"))
        .put("Sorted", row("a", 1));
    let output = t.batch_write_item(batch).unwrap();
    assert!(output.unprocessed.is_empty());
    assert!(output.consumed.is_empty());
    assert_eq!(t.all_items("Plain"), [item("a").with("w", 2)]);
    assert_eq!(t.all_items("Sorted"), [row("a", 1)]);
}

pub(super) fn write_rejects_duplicates(t: &mut Fixture) {
    t.create(plain());
    let put = || BatchWriteItem::new().put("Plain", item("a"));
    let delete = || BatchWriteItem::new().delete("Plain", item("a"));
    let batches = [
        put().put("Plain", item("a").with("v", 1)),
        put().delete("Plain", item("a")),
        delete().delete("Plain", item("a")),
    ];
    for batch in batches {
        rejected(t.batch_write_item(batch), TWICE_IN_LIST);
    }
    assert_eq!(t.all_items("Plain"), Vec::<Item>::new());
}

pub(super) fn write_accepts_up_to_25_items(t: &mut Fixture) {
    t.create(sorted());
    let puts = |count| {
        rows("a", 0..count)
            .into_iter()
            .fold(BatchWriteItem::new(), |batch, row| batch.put("Sorted", row))
    };
    t.batch_write_item(puts(25)).unwrap();
    assert_eq!(t.all_items("Sorted").len(), 25);
    invalid(t.batch_write_item(puts(26)));
    invalid(t.batch_write_item(BatchWriteItem::new()));
}

pub(super) fn write_validates_everything_before_writing(t: &mut Fixture) {
    t.create(sorted());
    let good = || BatchWriteItem::new().put("Sorted", row("a", 1));
    for bad in [item("a"), row("a", "text")] {
        let put = good().put("Sorted", bad.clone());
        rejected(t.batch_write_item(put), WRONG_KEY);
        rejected(t.batch_write_item(good().delete("Sorted", bad)), WRONG_KEY);
    }
    let extra = BatchWriteItem::new().delete("Sorted", row("a", 1).with("x", 1));
    rejected(t.batch_write_item(extra), WRONG_KEY);
    let large = row("a", 2).with("v", "x".repeat(ITEM_BYTES_MAX));
    let large = good().put("Sorted", large);
    rejected(t.batch_write_item(large), ITEM_TOO_LARGE);
    let elsewhere = good().put("Nowhere", item("a"));
    table_not_found(t.batch_write_item(elsewhere));
    assert_eq!(t.all_items("Sorted"), Vec::<Item>::new());
}

pub(super) fn write_stores_every_type_of_value(t: &mut Fixture) {
    t.create(plain());
    let batch = BatchWriteItem {
        requests: [("Plain".to_owned(), vec![BatchWrite::Put(every_type("a"))])].into(),
        ..BatchWriteItem::new()
    };
    t.batch_write_item(batch).unwrap();
    t.assert_item("Plain", every_type("a"));
}
