//! Change streams: which changes are recorded, with which images, and when a stream ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use floe_store::expr::Update;
use floe_store::op::ChangeKind::{self, Insert, Modify, Remove};
use floe_store::op::{
    BatchWriteItem, ChangeRecord, DeleteItem, StreamStatus, TransactWriteItems, UpdateItem,
    UpdateTable,
};
use floe_store::size::item_size;
use floe_store::table::StreamView::{self, KeysOnly, NewAndOldImages, NewImage, OldImage};
use floe_store::{Item, Result, Value};

use super::fixture::*;

/// The contents of a record, without its position in the stream.
type RecordContents = (ChangeKind, Item, Option<Item>, Option<Item>);

fn contents(record: &ChangeRecord) -> RecordContents {
    let ChangeRecord {
        keys,
        old_image,
        new_image,
        ..
    } = record.clone();
    (record.kind, keys, old_image, new_image)
}

fn set(pk: &str, v: i32) -> UpdateItem {
    update_item("Plain", item(pk), "SET v = :v", &values! {"v" => v})
}

fn switch(t: &Fixture, view: Option<StreamView>) -> Result<()> {
    let mut update = UpdateTable::new("Plain");
    update.stream = Some(view);
    t.update_table(update).map(drop)
}

pub(super) fn records_describe_changes(t: &mut Fixture) {
    let [one, two, three] = [("v", 1), ("v", 2), ("w", 3)].map(|(name, n)| item("a").with(name, n));
    t.create_with(streamed(NewAndOldImages), [one.clone()]);
    if t.has_manual_clock() {
        t.advance(Duration::from_millis(1234));
    }
    t.write(set("a", 2)).unwrap();
    t.put("Plain", three.clone()).unwrap();
    t.delete("Plain", item("a"));
    let records = t.changes("Plain");
    let expected = [
        (Insert, item("a"), None, Some(one.clone())),
        (Modify, item("a"), Some(one), Some(two.clone())),
        (Modify, item("a"), Some(two), Some(three.clone())),
        (Remove, item("a"), Some(three), None),
    ];
    assert_eq!(records.iter().map(contents).collect::<Vec<_>>(), expected);
    for record in &records {
        assert_eq!(record.view, NewAndOldImages);
        assert_eq!(record.identity, None);
        let images = record.old_image.iter().chain(&record.new_image);
        let bytes = item_size(&record.keys) + images.map(item_size).sum::<usize>();
        assert_eq!(record.size_bytes, bytes);
        let millis = record.created.as_millis();
        assert_eq!(millis % 1000, 0, "times are whole seconds");
    }
}

pub(super) fn stream_view_selects_the_images(t: &mut Fixture) {
    for view in [KeysOnly, NewImage, OldImage, NewAndOldImages] {
        t.create_with(streamed(view), [item("a").with("v", 1)]);
        t.write(set("a", 2)).unwrap();
        let records = t.changes("Plain");
        let modify = records.last().unwrap();
        assert_eq!(modify.keys, item("a"));
        let old = view.has_old().then(|| item("a").with("v", 1));
        assert_eq!(modify.old_image, old, "{view:?}");
        let new = view.has_new().then(|| item("a").with("v", 2));
        assert_eq!(modify.new_image, new, "{view:?}");
        assert_eq!(modify.view, view);
        t.delete_table("Plain").unwrap();
    }
}

pub(super) fn write_without_change_is_not_recorded(t: &mut Fixture) {
    t.create(streamed(NewAndOldImages));
    t.put("Plain", item("a").with("v", 1)).unwrap();
    t.put("Plain", item("a").with("v", 1)).unwrap();
    t.write(set("a", 1)).unwrap();
    let touch = UpdateItem::new("Plain", item("a"), Update::new());
    t.write(touch).unwrap();
    t.delete("Plain", item("missing"));
    assert_eq!(t.changes("Plain").len(), 1);
}

pub(super) fn failed_writes_are_not_recorded(t: &mut Fixture) {
    t.create_with(streamed(NewAndOldImages), [item("a")]);
    let unmet = bare_condition("attribute_exists(x)");
    condition_failed(t.write(set("a", 1).condition(unmet.clone())));
    if t.can().transactions {
        let delete = DeleteItem::new("Plain", item("a")).condition(unmet);
        canceled(t.transact([put(item("b")), delete.into()]));
    }
    assert_eq!(t.changes("Plain").len(), 1);
}

pub(super) fn batches_and_transactions_are_recorded_for_each_item(t: &mut Fixture) {
    t.create_with(streamed(NewImage), [item("b").with("v", 1)]);
    let batch = BatchWriteItem::new()
        .put("Plain", item("a"))
        .delete("Plain", item("b"));
    t.batch_write_item(batch).unwrap();
    let mut expected = 3;
    if t.can().transactions {
        let check = check("c", "attribute_not_exists(pk)");
        let delete = DeleteItem::new("Plain", item("a"));
        t.transact([put(item("d")), delete.into(), check]).unwrap();
        expected += 2;
    }
    let records = t.changes("Plain");
    assert_eq!(records.len(), expected);
    let removed = records.iter().filter(|record| record.kind == Remove);
    assert_eq!(removed.count(), if expected == 5 { 2 } else { 1 });
}

pub(super) fn repeated_token_is_not_recorded(t: &mut Fixture) {
    t.create(streamed(KeysOnly));
    let transaction = TransactWriteItems::new([put(item("a"))]);
    for _ in 0..2 {
        let again = transaction.clone().token("token-1");
        t.transact_write_items(again).unwrap();
        t.delete("Plain", item("a"));
    }
    assert_eq!(t.changes("Plain").len(), 2);
}

pub(super) fn changes_of_an_item_are_recorded_once_and_in_order(t: &mut Fixture) {
    t.create(streamed(NewImage));
    for n in 0..60 {
        t.fill("Plain", [item(&format!("k{}", n % 4)).with("n", n)]);
    }
    t.reopen();
    let records = t.changes("Plain");
    assert_eq!(records.len(), 60);
    let ids: BTreeSet<_> = records.iter().map(|record| &record.event_id).collect();
    assert_eq!(ids.len(), 60, "every record has its own id");
    let mut by_item: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for record in &records {
        let key = format!("{:?}", record.keys);
        let image = record.new_image.as_ref().unwrap();
        let n = image.get("n").and_then(|n| n.as_n()?.to_i64());
        by_item.entry(key).or_default().push(n.unwrap());
    }
    for (start, (_, seen)) in (0..).zip(&by_item) {
        let expected: Vec<i64> = (0..60).filter(|n| n % 4 == start).collect();
        assert_eq!(*seen, expected);
    }
}

pub(super) fn stream_is_described(t: &mut Fixture) {
    let created = t.create(sorted().stream(OldImage));
    let handle = created.latest_stream.unwrap();
    let stream = t.stream("Sorted");
    assert_eq!(stream.arn, handle.arn);
    assert_eq!(stream.label, handle.label);
    assert_eq!(stream.table_name, "Sorted");
    assert_eq!(stream.key_schema, created.definition.key.elements());
    assert_eq!(stream.view, OldImage);
    assert_eq!(stream.status, StreamStatus::Enabled);
    assert!(!stream.shards.is_empty());
    let mut ends = stream.shards.iter().map(|shard| &shard.ending_sequence);
    assert!(ends.any(Option::is_none), "a shard is open");
}

pub(super) fn disabled_stream_can_be_read_to_its_end(t: &mut Fixture) {
    t.create_with(streamed(NewImage), [item("a").with("v", 1)]);
    let first = t.stream("Plain");
    switch(t, None).unwrap();
    assert_eq!(t.describe("Plain").definition.stream, None);
    t.put("Plain", item("a").with("v", 2)).unwrap();
    let closed = t.describe_stream(&first.arn);
    assert_eq!(closed.status, StreamStatus::Disabled);
    let mut seen = 0;
    for shard in &closed.shards {
        let mut next = Some(t.start(&closed, &shard.id));
        // A closed shard ends.
        for _ in 0..10 {
            let Some(iterator) = next.take() else { break };
            let output = t.records(iterator, None).unwrap();
            seen += output.records.len();
            next = output.next_iterator;
        }
        assert_eq!(next, None, "{shard:?}");
        assert!(shard.ending_sequence.is_some(), "{shard:?}");
    }
    assert_eq!(seen, 1, "the stream does not contain later changes");
}

pub(super) fn enabling_again_creates_a_new_stream(t: &mut Fixture) {
    t.create_with(streamed(NewImage), [item("a").with("v", 1)]);
    let first = t.stream("Plain");
    switch(t, None).unwrap();
    if t.has_manual_clock() {
        t.advance(Duration::from_secs(1));
    }
    switch(t, Some(KeysOnly)).unwrap();
    let second = t.stream("Plain");
    assert_ne!(first.arn, second.arn);
    assert_eq!(second.view, KeysOnly);
    assert!(t.changes("Plain").is_empty(), "a new stream starts empty");
    t.put("Plain", item("a").with("v", 2)).unwrap();
    assert_eq!(t.changes("Plain").len(), 1);
    assert_eq!(t.stream_records(&t.describe_stream(&first.arn)).len(), 1);
}

pub(super) fn stream_cannot_be_enabled_or_disabled_twice(t: &mut Fixture) {
    t.create(plain());
    let off = "Table has no stream to disable: TableName: Plain";
    rejected(switch(t, None), off);
    switch(t, Some(NewImage)).unwrap();
    let on = "Table already has an enabled stream: TableName: Plain";
    rejected(switch(t, Some(KeysOnly)), on);
    t.put("Plain", item("a")).unwrap();
    assert_eq!(t.changes("Plain").len(), 1);
}

pub(super) fn stream_outlives_its_table(t: &mut Fixture) {
    t.create_with(streamed(NewImage), [item("a")]);
    let arn = t.stream("Plain").arn;
    t.delete_table("Plain").unwrap();
    let stream = t.describe_stream(&arn);
    assert_eq!(stream.status, StreamStatus::Disabled);
    let records = t.stream_records(&stream);
    assert_eq!(records.len(), 1, "deleting the table adds no record");
}

pub(super) fn images_contain_every_type_of_value(t: &mut Fixture) {
    t.create(streamed(NewAndOldImages));
    t.put("Plain", every_type("a")).unwrap();
    t.fill("Plain", [every_type("a").with("n", Value::Null)]);
    let records = t.changes("Plain");
    assert_eq!(records[0].new_image, Some(every_type("a")));
    assert_eq!(records[1].old_image, Some(every_type("a")));
}
