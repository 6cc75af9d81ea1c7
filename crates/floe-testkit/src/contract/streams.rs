//! Change streams: what is recorded, with which images, and when a stream ends.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use floe_store::op::{
    BatchWriteItem, ChangeKind, ChangeRecord, DeleteItem, PutItem, StreamStatus, TransactWrite,
    UpdateItem, UpdateTable,
};
use floe_store::size::item_size;
use floe_store::table::StreamView;
use floe_store::{Item, Value};

use super::fixture::*;

/// What a record says, without its place in the stream.
type Told = (ChangeKind, Item, Option<Item>, Option<Item>);

fn told(records: &[ChangeRecord]) -> Vec<Told> {
    let one = |r: &ChangeRecord| {
        (
            r.kind,
            r.keys.clone(),
            r.old_image.clone(),
            r.new_image.clone(),
        )
    };
    records.iter().map(one).collect()
}

fn set(pk: &str, v: i32) -> UpdateItem {
    update_item("Plain", item(pk), "SET v = :v", &values! {"v" => v})
}

async fn switch(t: &Fixture, table: &str, view: Option<StreamView>) -> floe_store::Result<()> {
    let mut update = UpdateTable::new(table);
    update.stream = Some(view);
    t.update_table(update).await.map(|_| ())
}

pub(super) async fn records_tell_what_happened(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewAndOldImages)).await;
    t.put("Plain", item("a").with("v", 1)).await.unwrap();
    if t.owns_time() {
        t.advance(Duration::from_millis(1234));
    }
    t.write(set("a", 2)).await.unwrap();
    t.put("Plain", item("a").with("w", 3)).await.unwrap();
    t.delete("Plain", item("a")).await;
    let records = t.changes("Plain").await;
    let (one, two, three) = (
        item("a").with("v", 1),
        item("a").with("v", 2),
        item("a").with("w", 3),
    );
    assert_eq!(
        told(&records),
        [
            (ChangeKind::Insert, item("a"), None, Some(one.clone())),
            (ChangeKind::Modify, item("a"), Some(one), Some(two.clone())),
            (
                ChangeKind::Modify,
                item("a"),
                Some(two),
                Some(three.clone())
            ),
            (ChangeKind::Remove, item("a"), Some(three), None),
        ]
    );
    for record in &records {
        assert_eq!(record.view, StreamView::NewAndOldImages);
        assert_eq!(record.identity, None);
        let images = record.old_image.iter().chain(&record.new_image);
        let bytes = item_size(&record.keys) + images.map(item_size).sum::<usize>();
        assert_eq!(record.size_bytes, bytes);
        assert_eq!(
            record.created.as_millis() % 1000,
            0,
            "moments are whole seconds"
        );
    }
}

pub(super) async fn the_view_says_which_images_there_are(t: &mut Fixture) {
    let views = [
        StreamView::KeysOnly,
        StreamView::NewImage,
        StreamView::OldImage,
        StreamView::NewAndOldImages,
    ];
    for view in views {
        t.create(plain().stream(view)).await;
        t.put("Plain", item("a").with("v", 1)).await.unwrap();
        t.write(set("a", 2)).await.unwrap();
        let records = t.changes("Plain").await;
        let modify = records.last().unwrap();
        assert_eq!(modify.keys, item("a"));
        assert_eq!(
            modify.old_image,
            view.has_old().then(|| item("a").with("v", 1)),
            "{view:?}"
        );
        assert_eq!(
            modify.new_image,
            view.has_new().then(|| item("a").with("v", 2)),
            "{view:?}"
        );
        assert_eq!(modify.view, view);
        t.delete_table("Plain").await.unwrap();
    }
}

pub(super) async fn a_write_that_changes_nothing_leaves_no_record(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewAndOldImages)).await;
    t.put("Plain", item("a").with("v", 1)).await.unwrap();
    t.put("Plain", item("a").with("v", 1)).await.unwrap();
    t.write(set("a", 1)).await.unwrap();
    t.write(UpdateItem::new(
        "Plain",
        item("a"),
        floe_store::expr::Update::new(),
    ))
    .await
    .unwrap();
    t.delete("Plain", item("nobody")).await;
    assert_eq!(t.changes("Plain").await.len(), 1);
}

pub(super) async fn failed_writes_leave_no_record(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewAndOldImages)).await;
    t.put("Plain", item("a")).await.unwrap();
    let unmet = bare_condition("attribute_exists(x)");
    condition_failed(t.write(set("a", 1).condition(unmet.clone())).await);
    if t.can().transactions {
        let delete = DeleteItem::new("Plain", item("a")).condition(unmet);
        let put = PutItem::new("Plain", item("b"));
        canceled(t.transact([TransactWrite::from(put), delete.into()]).await);
    }
    assert_eq!(t.changes("Plain").await.len(), 1);
}

pub(super) async fn batches_and_transactions_are_recorded_item_by_item(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewImage)).await;
    t.put("Plain", item("b").with("v", 1)).await.unwrap();
    let batch = BatchWriteItem::new()
        .put("Plain", item("a"))
        .delete("Plain", item("b"));
    t.batch_write_item(batch).await.unwrap();
    let mut expected = 3;
    if t.can().transactions {
        let check = floe_store::op::ConditionCheck::new(
            "Plain",
            item("c"),
            bare_condition("attribute_not_exists(pk)"),
        );
        let delete = DeleteItem::new("Plain", item("a"));
        let put = PutItem::new("Plain", item("d"));
        t.transact([TransactWrite::from(put), delete.into(), check.into()])
            .await
            .unwrap();
        expected += 2;
    }
    let records = t.changes("Plain").await;
    assert_eq!(records.len(), expected);
    let removed = records
        .iter()
        .filter(|r| r.kind == ChangeKind::Remove)
        .count();
    assert_eq!(removed, if expected == 5 { 2 } else { 1 });
}

pub(super) async fn a_token_seen_before_leaves_no_record(t: &mut Fixture) {
    t.create(plain().stream(StreamView::KeysOnly)).await;
    let transaction =
        floe_store::op::TransactWriteItems::new([PutItem::new("Plain", item("a")).into()]);
    for _ in 0..2 {
        let again = transaction.clone().token("token-1");
        t.transact_write_items(again).await.unwrap();
        t.delete("Plain", item("a")).await;
    }
    assert_eq!(t.changes("Plain").await.len(), 2);
}

pub(super) async fn changes_of_an_item_come_in_order_and_once(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewImage)).await;
    for n in 0..60 {
        t.fill("Plain", [item(&format!("k{}", n % 4)).with("n", n)])
            .await;
    }
    t.reopen().await;
    let records = t.changes("Plain").await;
    assert_eq!(records.len(), 60);
    let ids: BTreeSet<_> = records.iter().map(|record| &record.event_id).collect();
    assert_eq!(ids.len(), 60, "every record has an id of its own");
    let mut by_item: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for record in &records {
        let key = format!("{:?}", record.keys);
        let n = record
            .new_image
            .as_ref()
            .and_then(|image| image.get("n")?.as_n()?.to_i64());
        by_item.entry(key).or_default().push(n.unwrap());
    }
    for (start, (_, seen)) in (0..).zip(&by_item) {
        let expected: Vec<i64> = (0..60).filter(|n| n % 4 == start).collect();
        assert_eq!(*seen, expected);
    }
}

pub(super) async fn a_stream_is_described(t: &mut Fixture) {
    let created = t.create(sorted().stream(StreamView::OldImage)).await;
    let handle = created.latest_stream.unwrap();
    let stream = t.stream("Sorted").await;
    assert_eq!(stream.arn, handle.arn);
    assert_eq!(stream.label, handle.label);
    assert_eq!(stream.table_name, "Sorted");
    assert_eq!(stream.key_schema, created.definition.key.elements());
    assert_eq!(stream.view, StreamView::OldImage);
    assert_eq!(stream.status, StreamStatus::Enabled);
    assert!(!stream.shards.is_empty());
    assert!(
        stream
            .shards
            .iter()
            .any(|shard| shard.ending_sequence.is_none()),
        "a shard is open"
    );
}

pub(super) async fn a_switched_off_stream_can_be_read_to_its_end(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewImage)).await;
    t.put("Plain", item("a").with("v", 1)).await.unwrap();
    let first = t.stream("Plain").await;
    switch(t, "Plain", None).await.unwrap();
    assert_eq!(t.describe("Plain").await.definition.stream, None);
    t.put("Plain", item("a").with("v", 2)).await.unwrap();
    let closed = t.describe_stream(&first.arn).await;
    assert_eq!(closed.status, StreamStatus::Disabled);
    let mut seen = 0;
    for shard in &closed.shards {
        let mut next = Some(t.start(&closed, &shard.id).await);
        // A closed shard has an end.
        for _ in 0..10 {
            let Some(iterator) = next.take() else { break };
            let output = t.records(iterator, None).await.unwrap();
            seen += output.records.len();
            next = output.next_iterator;
        }
        assert_eq!(next, None, "{shard:?}");
        assert!(shard.ending_sequence.is_some(), "{shard:?}");
    }
    assert_eq!(seen, 1, "what happened after is not in it");
}

pub(super) async fn switching_on_again_makes_a_new_stream(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewImage)).await;
    t.put("Plain", item("a").with("v", 1)).await.unwrap();
    let first = t.stream("Plain").await;
    switch(t, "Plain", None).await.unwrap();
    if t.owns_time() {
        t.advance(Duration::from_secs(1));
    }
    switch(t, "Plain", Some(StreamView::KeysOnly))
        .await
        .unwrap();
    let second = t.stream("Plain").await;
    assert_ne!(first.arn, second.arn);
    assert_eq!(second.view, StreamView::KeysOnly);
    assert!(
        t.changes("Plain").await.is_empty(),
        "a new stream begins empty"
    );
    t.put("Plain", item("a").with("v", 2)).await.unwrap();
    assert_eq!(t.changes("Plain").await.len(), 1);
    assert_eq!(
        t.stream_records(&t.describe_stream(&first.arn).await)
            .await
            .len(),
        1
    );
}

pub(super) async fn a_stream_is_switched_once(t: &mut Fixture) {
    t.create(plain()).await;
    refused(
        switch(t, "Plain", None).await,
        "Table has no stream to disable: TableName: Plain",
    );
    switch(t, "Plain", Some(StreamView::NewImage))
        .await
        .unwrap();
    refused(
        switch(t, "Plain", Some(StreamView::KeysOnly)).await,
        "Table already has an enabled stream: TableName: Plain",
    );
    t.put("Plain", item("a")).await.unwrap();
    assert_eq!(t.changes("Plain").await.len(), 1);
}

pub(super) async fn a_stream_outlives_its_table(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewImage)).await;
    t.put("Plain", item("a")).await.unwrap();
    let arn = t.stream("Plain").await.arn;
    t.delete_table("Plain").await.unwrap();
    let stream = t.describe_stream(&arn).await;
    assert_eq!(stream.status, StreamStatus::Disabled);
    assert_eq!(
        t.stream_records(&stream).await.len(),
        1,
        "deleting the table changes no item"
    );
}

pub(super) async fn images_hold_every_type(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewAndOldImages)).await;
    t.put("Plain", every_type("a")).await.unwrap();
    t.fill("Plain", [every_type("a").with("n", Value::Null)])
        .await;
    let records = t.changes("Plain").await;
    assert_eq!(records[0].new_image, Some(every_type("a")));
    assert_eq!(records[1].old_image, Some(every_type("a")));
}
