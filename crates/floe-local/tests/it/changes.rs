//! Change streams as consumers read them.

use std::time::Duration;

use floe_local::{LocalEngine, Options};
use floe_store::op::{
    ChangeKind, DescribeStream, GetRecords, GetShardIterator, HoldChanges, IteratorKind,
    ListStreams, PutItem, Shard, StreamStatus, TransactWrite, TransactWriteItems, UpdateTable,
};
use floe_store::table::{KeyKind, StreamView};
use floe_store::{Engine, Env, Error, Item, TableDef};

use crate::common::{HOUR, START, TestStore, memory, open, open_at};

fn table(name: &str, view: StreamView) -> TableDef {
    TableDef::builder(name, "id", KeyKind::S)
        .stream(view)
        .build()
        .unwrap()
}

fn item(id: &str, n: i32) -> Item {
    Item::new().with("id", id).with("n", n)
}

fn key(id: &str) -> Item {
    Item::new().with("id", id)
}

async fn engine_with_stream() -> (TestStore, String) {
    let store = memory();
    store
        .create(table("Orders", StreamView::NewAndOldImages))
        .await;
    let arn = store.stream_arn("Orders").await;
    (store, arn)
}

async fn put_many(store: &TestStore, count: usize) {
    for n in 0..count {
        store.put("Orders", item(&format!("{n:05}"), 0)).await;
    }
}

async fn only_shard(store: &TestStore, arn: &str) -> Shard {
    let mut shards = store.shards(arn).await;
    assert_eq!(shards.len(), 1);
    shards.remove(0)
}

async fn hold(
    store: &TestStore,
    arn: &str,
    consumer: &str,
    after: Option<&str>,
) -> Result<(), Error> {
    let input = HoldChanges {
        consumer: consumer.to_owned(),
        stream_arn: arn.to_owned(),
        after_sequence: after.map(str::to_owned),
    };
    store.engine.hold_changes(input).await
}

async fn disable(store: &TestStore, table: &str) {
    let update = UpdateTable {
        stream: Some(None),
        ..UpdateTable::new(table)
    };
    store.engine.update_table(update).await.unwrap();
}

#[tokio::test]
async fn each_change_adds_one_record_in_order() {
    let (store, arn) = engine_with_stream().await;
    store.put("Orders", item("a", 1)).await;
    store.clock.advance(Duration::from_secs(5));
    store.put("Orders", item("a", 2)).await;
    store.put("Orders", item("a", 2)).await;
    store.delete("Orders", key("a")).await;
    store.delete("Orders", key("a")).await;
    let records = store.all_records(&arn).await;
    let kinds: Vec<_> = records.iter().map(|record| record.kind).collect();
    assert_eq!(
        kinds,
        [ChangeKind::Insert, ChangeKind::Modify, ChangeKind::Remove]
    );
    let images: Vec<_> = records
        .iter()
        .map(|r| (r.old_image.clone(), r.new_image.clone()))
        .collect();
    assert_eq!(
        images,
        [
            (None, Some(item("a", 1))),
            (Some(item("a", 1)), Some(item("a", 2))),
            (Some(item("a", 2)), None),
        ]
    );
    assert!(
        records
            .iter()
            .all(|record| record.keys == key("a") && record.identity.is_none())
    );
    assert!(records.is_sorted_by(|a, b| a.sequence < b.sequence && a.event_id != b.event_id));
    assert_eq!(records[0].created, START);
    assert_eq!(records[1].created, START.plus(Duration::from_secs(5)));
    // The size of the key is 3 bytes, that of each image 3 + 1 + 2.
    assert_eq!(
        records.iter().map(|r| r.size_bytes).collect::<Vec<_>>(),
        [9, 15, 9]
    );
}

#[tokio::test]
async fn stream_view_determines_the_images() {
    let (old, new) = (Some(item("a", 1)), Some(item("a", 2)));
    for (view, images) in [
        (StreamView::KeysOnly, (None, None)),
        (StreamView::NewImage, (None, new.clone())),
        (StreamView::OldImage, (old.clone(), None)),
        (StreamView::NewAndOldImages, (old, new)),
    ] {
        let store = memory();
        store.create(table("Orders", view)).await;
        store.put("Orders", item("a", 1)).await;
        store.put("Orders", item("a", 2)).await;
        let records = store.all_records(&store.stream_arn("Orders").await).await;
        assert_eq!(
            (records[1].old_image.clone(), records[1].new_image.clone()),
            images
        );
        assert_eq!(records[1].view, view);
    }
}

#[tokio::test]
async fn transaction_adds_a_record_for_each_changed_item() {
    let (store, arn) = engine_with_stream().await;
    store.put("Orders", item("a", 1)).await;
    let puts = ["a", "b", "c"].map(|id| TransactWrite::Put(PutItem::new("Orders", item(id, 1))));
    let transaction = TransactWriteItems::new(puts);
    store
        .engine
        .transact_write_items(transaction)
        .await
        .unwrap();
    let records = store.all_records(&arn).await;
    let keys: Vec<_> = records.into_iter().map(|record| record.keys).collect();
    assert_eq!(keys, [key("a"), key("b"), key("c")]);
}

#[tokio::test]
async fn iterator_kinds_determine_the_first_record() {
    let (store, arn) = engine_with_stream().await;
    put_many(&store, 3).await;
    let shard = only_shard(&store, &arn).await;
    let all = store.all_records(&arn).await;
    let sequence = |n: usize| all[n].sequence.clone();
    for (kind, expected) in [
        (IteratorKind::TrimHorizon, &all[..]),
        (IteratorKind::AtSequenceNumber(sequence(1)), &all[1..]),
        (IteratorKind::AfterSequenceNumber(sequence(1)), &all[2..]),
        (IteratorKind::AfterSequenceNumber(sequence(2)), &[]),
        (IteratorKind::Latest, &[]),
    ] {
        let iterator = store.iterator(&arn, &shard, kind.clone()).await.unwrap();
        assert_eq!(
            store.records(&iterator).await.unwrap().0,
            expected,
            "{kind:?}"
        );
    }
    let latest = store
        .iterator(&arn, &shard, IteratorKind::Latest)
        .await
        .unwrap();
    store.put("Orders", item("later", 1)).await;
    let (records, next) = store.records(&latest).await.unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].keys, key("later"));
    assert_eq!(store.records(&next.unwrap()).await.unwrap().0, []);
}

#[tokio::test]
async fn iterators_of_an_empty_stream_return_later_records() {
    let (store, arn) = engine_with_stream().await;
    let shard = only_shard(&store, &arn).await;
    let mut iterators = Vec::new();
    for kind in [
        IteratorKind::TrimHorizon,
        IteratorKind::Latest,
        IteratorKind::AtSequenceNumber(shard.starting_sequence.clone()),
    ] {
        iterators.push(store.iterator(&arn, &shard, kind).await.unwrap());
    }
    store.put("Orders", item("a", 1)).await;
    for iterator in iterators {
        assert_eq!(store.records(&iterator).await.unwrap().0.len(), 1);
    }
}

#[tokio::test]
async fn sequence_numbers_outside_the_shard_are_rejected() {
    let (store, arn) = engine_with_stream().await;
    put_many(&store, 2).await;
    let shard = only_shard(&store, &arn).await;
    for sequence in [
        "000000000000000000000",
        "000000000000000000003",
        "99999999999999999999999",
    ] {
        for kind in [
            IteratorKind::AtSequenceNumber,
            IteratorKind::AfterSequenceNumber,
        ] {
            let error = store
                .iterator(&arn, &shard, kind(sequence.to_owned()))
                .await
                .unwrap_err();
            assert_eq!(
                error,
                Error::validation("Invalid SequenceNumber for the shard")
            );
        }
    }
}

#[tokio::test]
async fn unknown_streams_and_shards_are_not_found() {
    let (store, arn) = engine_with_stream().await;
    let shard = only_shard(&store, &arn).await;
    let unknown = arn.replace("Orders", "Others");
    let describe = DescribeStream {
        stream_arn: unknown.clone(),
        ..Default::default()
    };
    let error = store.engine.describe_stream(describe).await.unwrap_err();
    let message = format!("Requested resource not found: Stream: {unknown} not found");
    assert_eq!(error, Error::ResourceNotFound(message));
    let describe = DescribeStream {
        stream_arn: "x".repeat(40),
        ..Default::default()
    };
    let error = store.engine.describe_stream(describe).await.unwrap_err();
    assert_eq!(error, Error::validation("Invalid StreamArn"));
    // A page can start after a shard that does not exist.
    for (after, expected) in [("z".repeat(40), 0), ("a".repeat(40), 1)] {
        let describe = DescribeStream {
            stream_arn: arn.clone(),
            start_after: Some(after),
            limit: None,
        };
        let described = store.engine.describe_stream(describe).await.unwrap();
        assert_eq!(described.shards.len(), expected);
    }
    for shard_id in [
        "shardId-00000001414576573621-f55eea83",
        &format!("{}0", shard.id),
        &"x".repeat(30),
    ] {
        let input = GetShardIterator {
            stream_arn: arn.clone(),
            shard_id: shard_id.to_owned(),
            kind: IteratorKind::Latest,
        };
        let error = store.engine.get_shard_iterator(input).await.unwrap_err();
        let message =
            format!("Requested resource not found: Shard: {shard_id} in Stream: {arn} not found");
        assert_eq!(error, Error::ResourceNotFound(message));
    }
}

#[tokio::test]
async fn expired_and_invalid_iterators_are_rejected() {
    let (store, arn) = engine_with_stream().await;
    put_many(&store, 1).await;
    let shard = only_shard(&store, &arn).await;
    let iterator = store
        .iterator(&arn, &shard, IteratorKind::TrimHorizon)
        .await
        .unwrap();
    store.clock.advance(Duration::from_secs(15 * 60));
    let (records, next) = store.records(&iterator).await.unwrap();
    assert_eq!(records.len(), 1);
    store.clock.advance(Duration::from_millis(1));
    let error = store.records(&iterator).await.unwrap_err();
    assert!(matches!(error, Error::ExpiredIterator(_)), "{error:?}");
    // The age of the next iterator starts when it is issued.
    store.records(&next.unwrap()).await.unwrap();
    for garbage in [
        "x",
        "||",
        &iterator[1..],
        &format!("{iterator}A"),
        &iterator[..iterator.len() - 4],
    ] {
        let error = store.records(garbage).await.unwrap_err();
        assert_eq!(error, Error::validation("Invalid ShardIterator"));
    }
    let error = store
        .engine
        .get_records(GetRecords {
            iterator,
            limit: Some(1001),
        })
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "1 validation error detected: Value '1001' at 'limit' failed to satisfy constraint: Member \
         must have value less than or equal to 1000"
    );
}

#[tokio::test]
async fn page_contains_at_most_the_requested_number_of_records() {
    let (store, arn) = engine_with_stream().await;
    put_many(&store, 1005).await;
    let shard = only_shard(&store, &arn).await;
    let all = store.all_records(&arn).await;
    assert_eq!(all.len(), 1005);
    let mut iterator = store
        .iterator(&arn, &shard, IteratorKind::TrimHorizon)
        .await
        .unwrap();
    let (records, _) = store.records(&iterator).await.unwrap();
    assert_eq!(records.len(), 1000);
    let mut read = Vec::new();
    for _ in 0..(1005 / 3) {
        let output = store
            .engine
            .get_records(GetRecords {
                iterator,
                limit: Some(3),
            })
            .await
            .unwrap();
        assert_eq!(output.records.len(), 3);
        read.extend(output.records);
        iterator = output.next_iterator.unwrap();
    }
    assert_eq!(read, all);
}

#[tokio::test]
async fn page_contains_at_most_a_megabyte() {
    let (store, arn) = engine_with_stream().await;
    for n in 0..5 {
        let filler = "x".repeat(300 << 10);
        store
            .put("Orders", item(&n.to_string(), 0).with("filler", filler))
            .await;
    }
    let shard = only_shard(&store, &arn).await;
    let iterator = store
        .iterator(&arn, &shard, IteratorKind::TrimHorizon)
        .await
        .unwrap();
    let (records, next) = store.records(&iterator).await.unwrap();
    assert_eq!(records.len(), 3);
    assert_eq!(store.records(&next.unwrap()).await.unwrap().0.len(), 2);
}

#[tokio::test]
async fn closed_shards_end_and_have_children() {
    let (store, arn) = engine_with_stream().await;
    for n in 0..5 {
        store.put("Orders", item(&n.to_string(), 0)).await;
        store.put("Orders", item(&n.to_string(), 1)).await;
        store.clock.advance(4 * HOUR);
    }
    let shards = store.shards(&arn).await;
    assert_eq!(shards.len(), 5);
    for pair in shards.windows(2) {
        assert_eq!(pair[1].parent_id.as_ref(), Some(&pair[0].id));
        assert!(pair[0].ending_sequence.as_ref().unwrap() < &pair[1].starting_sequence);
    }
    assert_eq!(
        (&shards[0].parent_id, &shards[4].ending_sequence),
        (&None, &None)
    );
    let iterator = store
        .iterator(&arn, &shards[1], IteratorKind::TrimHorizon)
        .await
        .unwrap();
    let (records, next) = store.records(&iterator).await.unwrap();
    assert_eq!((records.len(), next), (2, None));
    let latest = store
        .iterator(&arn, &shards[1], IteratorKind::Latest)
        .await
        .unwrap();
    assert_eq!(store.records(&latest).await.unwrap(), (vec![], None));
    let iterator = store
        .iterator(&arn, &shards[4], IteratorKind::TrimHorizon)
        .await
        .unwrap();
    assert!(store.records(&iterator).await.unwrap().1.is_some());
    let all = store.all_records(&arn).await;
    assert_eq!(all.len(), 10);
    assert!(all.is_sorted_by(|a, b| a.sequence < b.sequence));
}

#[tokio::test]
async fn iterator_ends_when_its_shard_is_closed() {
    let (store, arn) = engine_with_stream().await;
    put_many(&store, 2).await;
    let shard = only_shard(&store, &arn).await;
    let iterator = store
        .iterator(&arn, &shard, IteratorKind::TrimHorizon)
        .await
        .unwrap();
    let (_, next) = store.records(&iterator).await.unwrap();
    disable(&store, "Orders").await;
    assert_eq!(store.records(&next.unwrap()).await.unwrap(), (vec![], None));
    assert!(only_shard(&store, &arn).await.ending_sequence.is_some());
}

#[tokio::test]
async fn streams_are_listed_in_pages() {
    let store = memory();
    for n in 0..7 {
        store
            .create(table(&format!("Table{n}"), StreamView::KeysOnly))
            .await;
    }
    store
        .create(
            TableDef::builder("Quiet", "id", KeyKind::S)
                .build()
                .unwrap(),
        )
        .await;
    let all = store.stream_arns().await;
    assert_eq!(all.len(), 7);
    let (mut listed, mut start_after) = (Vec::new(), None);
    loop {
        let input = ListStreams {
            start_after,
            limit: Some(3),
            ..Default::default()
        };
        let page = store.engine.list_streams(input).await.unwrap();
        assert!(page.streams.len() <= 3);
        listed.extend(page.streams.into_iter().map(|stream| stream.arn));
        start_after = page.last_arn;
        if start_after.is_none() {
            break;
        }
    }
    assert_eq!(listed, all);
    let of = |name: &str| ListStreams {
        table_name: Some(name.to_owned()),
        ..Default::default()
    };
    let page = store.engine.list_streams(of("Table3")).await.unwrap();
    assert_eq!(page.streams.len(), 1);
    assert_eq!(page.streams[0].table_name, "Table3");
    assert_eq!(
        page.streams[0].arn,
        format!(
            "arn:aws:dynamodb:local:000000000000:table/Table3/stream/{}",
            page.streams[0].label
        )
    );
    assert_eq!(page.streams[0].label, "2023-11-14T22:13:20.000");
    assert_eq!(
        store
            .engine
            .list_streams(of("Unknown"))
            .await
            .unwrap()
            .streams,
        []
    );
}

#[tokio::test]
async fn shards_are_described_in_pages() {
    let (store, arn) = engine_with_stream().await;
    for n in 0..5 {
        store.put("Orders", item("a", n)).await;
        store.clock.advance(4 * HOUR);
    }
    let all = store.shards(&arn).await;
    let (mut described, mut start_after) = (Vec::new(), None);
    loop {
        let input = DescribeStream {
            stream_arn: arn.clone(),
            start_after,
            limit: Some(2),
        };
        let page = store.engine.describe_stream(input).await.unwrap();
        described.extend(page.shards);
        start_after = page.last_shard_id;
        if start_after.is_none() {
            break;
        }
    }
    assert_eq!(described, all);
}

#[tokio::test]
async fn records_are_kept_for_a_day() {
    let (store, arn) = engine_with_stream().await;
    store.put("Orders", item("old", 1)).await;
    store.clock.advance(HOUR);
    store.put("Orders", item("new", 1)).await;
    let shard = only_shard(&store, &arn).await;
    let old = store.all_records(&arn).await.remove(0);
    store.clock.advance(23 * HOUR - Duration::from_millis(1));
    store.run_background();
    assert_eq!(store.all_records(&arn).await.len(), 2);
    let early = store
        .iterator(&arn, &shard, IteratorKind::TrimHorizon)
        .await
        .unwrap();
    store.clock.advance(Duration::from_millis(1));
    store.run_background();
    let left = store.all_records(&arn).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].keys, key("new"));
    for gone in [
        store.records(&early).await.unwrap_err(),
        store
            .iterator(
                &arn,
                &shard,
                IteratorKind::AtSequenceNumber(old.sequence.clone()),
            )
            .await
            .unwrap_err(),
    ] {
        assert!(matches!(gone, Error::TrimmedDataAccess(_)), "{gone:?}");
    }
    // An iterator after the trimmed record misses nothing.
    let after = IteratorKind::AfterSequenceNumber(old.sequence);
    let iterator = store.iterator(&arn, &shard, after).await.unwrap();
    assert_eq!(store.records(&iterator).await.unwrap().0, left);
}

#[tokio::test]
async fn records_are_trimmed_in_steps() {
    let (store, arn) = engine_with_stream().await;
    put_many(&store, 2500).await;
    store.clock.advance(25 * HOUR);
    let mut steps = 0;
    while store.engine.run_background_once().unwrap() {
        steps += 1;
    }
    assert!((3..6).contains(&steps), "{steps}");
    assert_eq!(store.all_records(&arn).await, []);
    assert_eq!(store.items("Orders").await.len(), 2500);
}

#[tokio::test]
async fn empty_closed_shards_are_removed() {
    let (store, arn) = engine_with_stream().await;
    for n in 0..4 {
        store.put("Orders", item("a", n)).await;
        store.clock.advance(4 * HOUR);
    }
    let before = store.shards(&arn).await;
    assert_eq!(before.len(), 4);
    // The first two records are older than a day; the second shard was closed 24 hours ago.
    store.clock.advance(16 * HOUR);
    store.run_background();
    let after = store.shards(&arn).await;
    assert_eq!(after.len(), 2);
    assert_eq!(after[0].id, before[2].id);
    assert_eq!(after[0].parent_id, None, "a removed parent is not named");
    store.clock.advance(100 * HOUR);
    store.run_background();
    let last = only_shard(&store, &arn).await;
    assert_eq!(
        (last.id, last.ending_sequence),
        (before[3].id.clone(), None)
    );
    store.put("Orders", item("a", 9)).await;
    assert_eq!(store.all_records(&arn).await.len(), 1);
}

#[tokio::test]
async fn reader_at_the_end_of_a_shard_is_not_affected_by_trimming() {
    let (store, arn) = engine_with_stream().await;
    store.put("Orders", item("a", 1)).await;
    store.clock.advance(4 * HOUR);
    store.put("Orders", item("a", 2)).await;
    store.clock.advance(24 * HOUR);
    let shard = store.shards(&arn).await.remove(0);
    let end = shard.ending_sequence.clone().unwrap();
    let at_end = store
        .iterator(&arn, &shard, IteratorKind::AfterSequenceNumber(end))
        .await
        .unwrap();
    let horizon = store
        .iterator(&arn, &shard, IteratorKind::TrimHorizon)
        .await
        .unwrap();
    assert!(store.engine.run_background_once().unwrap());
    // The records of both shards are trimmed; the shards are removed in the next step.
    assert_eq!(store.shards(&arn).await.len(), 2);
    assert_eq!(store.records(&at_end).await.unwrap(), (vec![], None));
    let error = store.records(&horizon).await.unwrap_err();
    assert!(matches!(error, Error::TrimmedDataAccess(_)), "{error:?}");
    let latest = store
        .iterator(&arn, &shard, IteratorKind::Latest)
        .await
        .unwrap();
    assert_eq!(store.records(&latest).await.unwrap(), (vec![], None));
    store.run_background();
    assert_eq!(store.shards(&arn).await.len(), 1);
}

#[tokio::test]
async fn disabled_stream_is_readable_until_it_is_trimmed() {
    let (store, arn) = engine_with_stream().await;
    put_many(&store, 2).await;
    disable(&store, "Orders").await;
    store.put("Orders", item("unseen", 1)).await;
    let describe = DescribeStream {
        stream_arn: arn.clone(),
        ..Default::default()
    };
    let description = store.engine.describe_stream(describe).await.unwrap();
    assert_eq!(description.status, StreamStatus::Disabled);
    assert_eq!(store.all_records(&arn).await.len(), 2);
    // Enabling it again starts another stream.
    store.clock.advance(HOUR);
    let update = UpdateTable {
        stream: Some(Some(StreamView::KeysOnly)),
        ..UpdateTable::new("Orders")
    };
    store.engine.update_table(update).await.unwrap();
    let newer = store.stream_arn("Orders").await;
    assert_eq!(store.stream_arns().await, [arn.clone(), newer.clone()]);
    store.clock.advance(23 * HOUR);
    store.run_background();
    assert_eq!(store.stream_arns().await, [newer]);
    let error = store
        .engine
        .describe_stream(DescribeStream {
            stream_arn: arn,
            ..Default::default()
        })
        .await
        .unwrap_err();
    assert!(matches!(error, Error::ResourceNotFound(_)), "{error:?}");
}

#[tokio::test]
async fn stream_of_a_deleted_table_is_readable_until_it_is_trimmed() {
    let (store, arn) = engine_with_stream().await;
    put_many(&store, 2).await;
    store
        .engine
        .delete_table("Orders".to_owned())
        .await
        .unwrap();
    assert_eq!(store.all_records(&arn).await.len(), 2);
    // A table with the same name, created at the same time, has a stream with another ARN.
    store.create(table("Orders", StreamView::NewImage)).await;
    let newer = store.stream_arn("Orders").await;
    assert_ne!(newer, arn);
    store.put("Orders", item("a", 1)).await;
    assert_eq!(
        (
            store.all_records(&arn).await.len(),
            store.all_records(&newer).await.len()
        ),
        (2, 1)
    );
    store.clock.advance(24 * HOUR);
    store.run_background();
    assert_eq!(store.stream_arns().await, [newer]);
}

#[tokio::test]
async fn held_records_are_not_trimmed() {
    let (store, arn) = engine_with_stream().await;
    put_many(&store, 5).await;
    let all = store.all_records(&arn).await;
    hold(&store, &arn, "slow", Some("0")).await.unwrap();
    hold(&store, &arn, "fast", Some(&all[3].sequence))
        .await
        .unwrap();
    store.clock.advance(100 * HOUR);
    store.run_background();
    assert_eq!(store.all_records(&arn).await, all);
    hold(&store, &arn, "slow", Some(&all[1].sequence))
        .await
        .unwrap();
    store.run_background();
    assert_eq!(store.all_records(&arn).await, all[2..]);
    hold(&store, &arn, "slow", None).await.unwrap();
    store.run_background();
    assert_eq!(store.all_records(&arn).await, all[4..]);
    hold(&store, &arn, "fast", None).await.unwrap();
    store.run_background();
    assert_eq!(store.all_records(&arn).await, []);
}

#[tokio::test]
async fn hold_on_a_deleted_table_ends_with_the_retention() {
    let (store, arn) = engine_with_stream().await;
    put_many(&store, 2).await;
    let last = store.all_records(&arn).await.pop().unwrap();
    hold(&store, &arn, "reader", Some("0")).await.unwrap();
    store
        .engine
        .delete_table("Orders".to_owned())
        .await
        .unwrap();
    store.clock.advance(23 * HOUR);
    store.run_background();
    assert_eq!(store.all_records(&arn).await.len(), 2);
    hold(&store, &arn, "reader", Some(&last.sequence))
        .await
        .unwrap();
    hold(&store, &arn, "other", Some("0")).await.unwrap();
    store.clock.advance(2 * HOUR);
    store.run_background();
    assert_eq!(store.stream_arns().await, Vec::<String>::new());
    let error = hold(&store, &arn, "reader", Some("0")).await.unwrap_err();
    assert!(matches!(error, Error::ResourceNotFound(_)), "{error:?}");
}

#[tokio::test]
async fn hold_on_trimmed_records_fails() {
    let (store, arn) = engine_with_stream().await;
    put_many(&store, 3).await;
    let all = store.all_records(&arn).await;
    store.clock.advance(24 * HOUR);
    store.run_background();
    let error = hold(&store, &arn, "late", Some(&all[1].sequence))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::TrimmedDataAccess(_)), "{error:?}");
    hold(&store, &arn, "late", Some(&all[2].sequence))
        .await
        .unwrap();
    hold(&store, &arn, "new", Some("0")).await.unwrap();
    for (consumer, after) in [("", "0"), ("x", "x"), ("x", ""), ("x", "-1"), ("x", "4")] {
        let error = hold(&store, &arn, consumer, Some(after)).await.unwrap_err();
        assert!(matches!(error, Error::Validation(_)), "{error:?}");
    }
}

#[tokio::test]
async fn streams_holds_and_iterators_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store
        .create(table("Orders", StreamView::NewAndOldImages))
        .await;
    let arn = store.stream_arn("Orders").await;
    put_many(&store, 3).await;
    let all = store.all_records(&arn).await;
    hold(&store, &arn, "reader", Some(&all[0].sequence))
        .await
        .unwrap();
    store.clock.advance(30 * HOUR);
    store.run_background();
    let shard = only_shard(&store, &arn).await;
    let iterator = store
        .iterator(&arn, &shard, IteratorKind::TrimHorizon)
        .await
        .unwrap();
    let TestStore { engine, clock } = store;
    engine.close().unwrap();
    drop(engine);
    let store = open_at(dir.path(), clock);
    store.run_background();
    assert_eq!(store.records(&iterator).await.unwrap().0, all[1..]);
    let first = IteratorKind::AtSequenceNumber(all[0].sequence.clone());
    let error = store.iterator(&arn, &shard, first).await.unwrap_err();
    assert!(matches!(error, Error::TrimmedDataAccess(_)), "{error:?}");
    store.put("Orders", item("later", 1)).await;
    assert_eq!(store.all_records(&arn).await.len(), 3);
}

#[tokio::test]
async fn retention_is_configurable() {
    let clock = floe_store::env::ManualClock::at(START);
    let options = Options::new()
        .env(Env::manual(clock.clone(), 1))
        .background(false)
        .stream_retention(HOUR);
    let store = TestStore {
        engine: LocalEngine::memory_with(options).unwrap(),
        clock,
    };
    store.create(table("Orders", StreamView::KeysOnly)).await;
    let arn = store.stream_arn("Orders").await;
    put_many(&store, 1).await;
    store.clock.advance(HOUR);
    store.run_background();
    assert_eq!(store.all_records(&arn).await, []);
}
