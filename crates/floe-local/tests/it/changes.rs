//! Change streams as a consumer meets them.

use std::time::Duration;

use floe_local::{LocalEngine, Options};
use floe_store::op::{
    ChangeKind, DescribeStream, GetRecords, GetShardIterator, HoldChanges, IteratorKind,
    ListStreams, PutItem, Shard, StreamStatus, TransactWrite, TransactWriteItems, UpdateTable,
};
use floe_store::table::{KeyKind, StreamView};
use floe_store::{Engine, Env, Error, Item, TableDef};

use crate::common::{HOUR, Owned, START, memory, open, open_at};

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

async fn engine_with_stream() -> (Owned, String) {
    let owned = memory();
    owned
        .create(table("Orders", StreamView::NewAndOldImages))
        .await;
    let arn = owned.stream_arn("Orders").await;
    (owned, arn)
}

async fn put_many(owned: &Owned, count: usize) {
    for n in 0..count {
        owned.put("Orders", item(&format!("{n:05}"), 0)).await;
    }
}

async fn only_shard(owned: &Owned, arn: &str) -> Shard {
    let mut shards = owned.shards(arn).await;
    assert_eq!(shards.len(), 1);
    shards.remove(0)
}

async fn hold(owned: &Owned, arn: &str, consumer: &str, after: Option<&str>) -> Result<(), Error> {
    let input = HoldChanges {
        consumer: consumer.to_owned(),
        stream_arn: arn.to_owned(),
        after_sequence: after.map(str::to_owned),
    };
    owned.engine.hold_changes(input).await
}

async fn disable(owned: &Owned, table: &str) {
    let update = UpdateTable {
        stream: Some(None),
        ..UpdateTable::new(table)
    };
    owned.engine.update_table(update).await.unwrap();
}

#[tokio::test]
async fn each_change_leaves_one_record_in_order() {
    let (owned, arn) = engine_with_stream().await;
    owned.put("Orders", item("a", 1)).await;
    owned.clock.advance(Duration::from_secs(5));
    owned.put("Orders", item("a", 2)).await;
    owned.put("Orders", item("a", 2)).await;
    owned.delete("Orders", key("a")).await;
    owned.delete("Orders", key("a")).await;
    let records = owned.all_records(&arn).await;
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
    // The key "a" weighs 3 bytes, each image 3 + 1 + 2.
    assert_eq!(
        records.iter().map(|r| r.size_bytes).collect::<Vec<_>>(),
        [9, 15, 9]
    );
}

#[tokio::test]
async fn a_view_says_which_images_are_kept() {
    let (old, new) = (Some(item("a", 1)), Some(item("a", 2)));
    for (view, images) in [
        (StreamView::KeysOnly, (None, None)),
        (StreamView::NewImage, (None, new.clone())),
        (StreamView::OldImage, (old.clone(), None)),
        (StreamView::NewAndOldImages, (old, new)),
    ] {
        let owned = memory();
        owned.create(table("Orders", view)).await;
        owned.put("Orders", item("a", 1)).await;
        owned.put("Orders", item("a", 2)).await;
        let records = owned.all_records(&owned.stream_arn("Orders").await).await;
        assert_eq!(
            (records[1].old_image.clone(), records[1].new_image.clone()),
            images
        );
        assert_eq!(records[1].view, view);
    }
}

#[tokio::test]
async fn a_transaction_leaves_a_record_for_each_item_it_changed() {
    let (owned, arn) = engine_with_stream().await;
    owned.put("Orders", item("a", 1)).await;
    let puts = ["a", "b", "c"].map(|id| TransactWrite::Put(PutItem::new("Orders", item(id, 1))));
    let transaction = TransactWriteItems::new(puts);
    owned
        .engine
        .transact_write_items(transaction)
        .await
        .unwrap();
    let records = owned.all_records(&arn).await;
    let keys: Vec<_> = records.into_iter().map(|record| record.keys).collect();
    assert_eq!(keys, [key("a"), key("b"), key("c")]);
}

#[tokio::test]
async fn the_four_kinds_of_iterator_begin_where_they_say() {
    let (owned, arn) = engine_with_stream().await;
    put_many(&owned, 3).await;
    let shard = only_shard(&owned, &arn).await;
    let all = owned.all_records(&arn).await;
    let sequence = |n: usize| all[n].sequence.clone();
    for (kind, expected) in [
        (IteratorKind::TrimHorizon, &all[..]),
        (IteratorKind::AtSequenceNumber(sequence(1)), &all[1..]),
        (IteratorKind::AfterSequenceNumber(sequence(1)), &all[2..]),
        (IteratorKind::AfterSequenceNumber(sequence(2)), &[]),
        (IteratorKind::Latest, &[]),
    ] {
        let iterator = owned.iterator(&arn, &shard, kind.clone()).await.unwrap();
        assert_eq!(
            owned.records(&iterator).await.unwrap().0,
            expected,
            "{kind:?}"
        );
    }
    let latest = owned
        .iterator(&arn, &shard, IteratorKind::Latest)
        .await
        .unwrap();
    owned.put("Orders", item("later", 1)).await;
    let (records, next) = owned.records(&latest).await.unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].keys, key("later"));
    assert_eq!(owned.records(&next.unwrap()).await.unwrap().0, []);
}

#[tokio::test]
async fn a_stream_without_records_can_be_read_from_every_beginning() {
    let (owned, arn) = engine_with_stream().await;
    let shard = only_shard(&owned, &arn).await;
    let mut iterators = Vec::new();
    for kind in [
        IteratorKind::TrimHorizon,
        IteratorKind::Latest,
        IteratorKind::AtSequenceNumber(shard.starting_sequence.clone()),
    ] {
        iterators.push(owned.iterator(&arn, &shard, kind).await.unwrap());
    }
    owned.put("Orders", item("a", 1)).await;
    for iterator in iterators {
        assert_eq!(owned.records(&iterator).await.unwrap().0.len(), 1);
    }
}

#[tokio::test]
async fn sequence_numbers_outside_the_shard_are_refused() {
    let (owned, arn) = engine_with_stream().await;
    put_many(&owned, 2).await;
    let shard = only_shard(&owned, &arn).await;
    for sequence in [
        "000000000000000000000",
        "000000000000000000003",
        "99999999999999999999999",
    ] {
        for kind in [
            IteratorKind::AtSequenceNumber,
            IteratorKind::AfterSequenceNumber,
        ] {
            let error = owned
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
async fn what_is_not_there_is_not_found() {
    let (owned, arn) = engine_with_stream().await;
    let shard = only_shard(&owned, &arn).await;
    let unknown = arn.replace("Orders", "Others");
    let describe = DescribeStream {
        stream_arn: unknown.clone(),
        ..Default::default()
    };
    let error = owned.engine.describe_stream(describe).await.unwrap_err();
    let message = format!("Requested resource not found: Stream: {unknown} not found");
    assert_eq!(error, Error::ResourceNotFound(message));
    let describe = DescribeStream {
        stream_arn: "x".repeat(40),
        ..Default::default()
    };
    let error = owned.engine.describe_stream(describe).await.unwrap_err();
    assert_eq!(error, Error::validation("Invalid StreamArn"));
    // A page may go on after a shard that is not there.
    for (after, expected) in [("z".repeat(40), 0), ("a".repeat(40), 1)] {
        let describe = DescribeStream {
            stream_arn: arn.clone(),
            start_after: Some(after),
            limit: None,
        };
        let described = owned.engine.describe_stream(describe).await.unwrap();
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
        let error = owned.engine.get_shard_iterator(input).await.unwrap_err();
        let message =
            format!("Requested resource not found: Shard: {shard_id} in Stream: {arn} not found");
        assert_eq!(error, Error::ResourceNotFound(message));
    }
}

#[tokio::test]
async fn iterators_expire_and_garbage_is_refused() {
    let (owned, arn) = engine_with_stream().await;
    put_many(&owned, 1).await;
    let shard = only_shard(&owned, &arn).await;
    let iterator = owned
        .iterator(&arn, &shard, IteratorKind::TrimHorizon)
        .await
        .unwrap();
    owned.clock.advance(Duration::from_secs(15 * 60));
    let (records, next) = owned.records(&iterator).await.unwrap();
    assert_eq!(records.len(), 1);
    owned.clock.advance(Duration::from_millis(1));
    let error = owned.records(&iterator).await.unwrap_err();
    assert!(matches!(error, Error::ExpiredIterator(_)), "{error:?}");
    // The next iterator began to age when it was given out.
    owned.records(&next.unwrap()).await.unwrap();
    for garbage in [
        "x",
        "||",
        &iterator[1..],
        &format!("{iterator}A"),
        &iterator[..iterator.len() - 4],
    ] {
        let error = owned.records(garbage).await.unwrap_err();
        assert_eq!(error, Error::validation("Invalid ShardIterator"));
    }
    let error = owned
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
async fn a_page_holds_as_many_records_as_asked_for() {
    let (owned, arn) = engine_with_stream().await;
    put_many(&owned, 1005).await;
    let shard = only_shard(&owned, &arn).await;
    let all = owned.all_records(&arn).await;
    assert_eq!(all.len(), 1005);
    let mut iterator = owned
        .iterator(&arn, &shard, IteratorKind::TrimHorizon)
        .await
        .unwrap();
    let (records, _) = owned.records(&iterator).await.unwrap();
    assert_eq!(records.len(), 1000);
    let mut read = Vec::new();
    for _ in 0..(1005 / 3) {
        let output = owned
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
async fn a_page_holds_a_megabyte_at_most() {
    let (owned, arn) = engine_with_stream().await;
    for n in 0..5 {
        let filler = "x".repeat(300 << 10);
        owned
            .put("Orders", item(&n.to_string(), 0).with("filler", filler))
            .await;
    }
    let shard = only_shard(&owned, &arn).await;
    let iterator = owned
        .iterator(&arn, &shard, IteratorKind::TrimHorizon)
        .await
        .unwrap();
    let (records, next) = owned.records(&iterator).await.unwrap();
    assert_eq!(records.len(), 3);
    assert_eq!(owned.records(&next.unwrap()).await.unwrap().0.len(), 2);
}

#[tokio::test]
async fn shards_follow_each_other_and_end() {
    let (owned, arn) = engine_with_stream().await;
    for n in 0..5 {
        owned.put("Orders", item(&n.to_string(), 0)).await;
        owned.put("Orders", item(&n.to_string(), 1)).await;
        owned.clock.advance(4 * HOUR);
    }
    let shards = owned.shards(&arn).await;
    assert_eq!(shards.len(), 5);
    for pair in shards.windows(2) {
        assert_eq!(pair[1].parent_id.as_ref(), Some(&pair[0].id));
        assert!(pair[0].ending_sequence.as_ref().unwrap() < &pair[1].starting_sequence);
    }
    assert_eq!(
        (&shards[0].parent_id, &shards[4].ending_sequence),
        (&None, &None)
    );
    let iterator = owned
        .iterator(&arn, &shards[1], IteratorKind::TrimHorizon)
        .await
        .unwrap();
    let (records, next) = owned.records(&iterator).await.unwrap();
    assert_eq!((records.len(), next), (2, None));
    let latest = owned
        .iterator(&arn, &shards[1], IteratorKind::Latest)
        .await
        .unwrap();
    assert_eq!(owned.records(&latest).await.unwrap(), (vec![], None));
    let iterator = owned
        .iterator(&arn, &shards[4], IteratorKind::TrimHorizon)
        .await
        .unwrap();
    assert!(owned.records(&iterator).await.unwrap().1.is_some());
    let all = owned.all_records(&arn).await;
    assert_eq!(all.len(), 10);
    assert!(all.is_sorted_by(|a, b| a.sequence < b.sequence));
}

#[tokio::test]
async fn an_open_shard_that_is_closed_meanwhile_ends() {
    let (owned, arn) = engine_with_stream().await;
    put_many(&owned, 2).await;
    let shard = only_shard(&owned, &arn).await;
    let iterator = owned
        .iterator(&arn, &shard, IteratorKind::TrimHorizon)
        .await
        .unwrap();
    let (_, next) = owned.records(&iterator).await.unwrap();
    disable(&owned, "Orders").await;
    assert_eq!(owned.records(&next.unwrap()).await.unwrap(), (vec![], None));
    assert!(only_shard(&owned, &arn).await.ending_sequence.is_some());
}

#[tokio::test]
async fn streams_are_listed_by_pages() {
    let owned = memory();
    for n in 0..7 {
        owned
            .create(table(&format!("Table{n}"), StreamView::KeysOnly))
            .await;
    }
    owned
        .create(
            TableDef::builder("Quiet", "id", KeyKind::S)
                .build()
                .unwrap(),
        )
        .await;
    let all = owned.stream_arns().await;
    assert_eq!(all.len(), 7);
    let (mut listed, mut start_after) = (Vec::new(), None);
    loop {
        let input = ListStreams {
            start_after,
            limit: Some(3),
            ..Default::default()
        };
        let page = owned.engine.list_streams(input).await.unwrap();
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
    let page = owned.engine.list_streams(of("Table3")).await.unwrap();
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
        owned
            .engine
            .list_streams(of("Unknown"))
            .await
            .unwrap()
            .streams,
        []
    );
}

#[tokio::test]
async fn shards_are_described_by_pages() {
    let (owned, arn) = engine_with_stream().await;
    for n in 0..5 {
        owned.put("Orders", item("a", n)).await;
        owned.clock.advance(4 * HOUR);
    }
    let all = owned.shards(&arn).await;
    let (mut described, mut start_after) = (Vec::new(), None);
    loop {
        let input = DescribeStream {
            stream_arn: arn.clone(),
            start_after,
            limit: Some(2),
        };
        let page = owned.engine.describe_stream(input).await.unwrap();
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
    let (owned, arn) = engine_with_stream().await;
    owned.put("Orders", item("old", 1)).await;
    owned.clock.advance(HOUR);
    owned.put("Orders", item("new", 1)).await;
    let shard = only_shard(&owned, &arn).await;
    let old = owned.all_records(&arn).await.remove(0);
    owned.clock.advance(23 * HOUR - Duration::from_millis(1));
    owned.settle();
    assert_eq!(owned.all_records(&arn).await.len(), 2);
    let early = owned
        .iterator(&arn, &shard, IteratorKind::TrimHorizon)
        .await
        .unwrap();
    owned.clock.advance(Duration::from_millis(1));
    owned.settle();
    let left = owned.all_records(&arn).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].keys, key("new"));
    for gone in [
        owned.records(&early).await.unwrap_err(),
        owned
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
    // Nothing was missed after the record that is gone.
    let after = IteratorKind::AfterSequenceNumber(old.sequence);
    let iterator = owned.iterator(&arn, &shard, after).await.unwrap();
    assert_eq!(owned.records(&iterator).await.unwrap().0, left);
}

#[tokio::test]
async fn many_records_are_trimmed_in_steps() {
    let (owned, arn) = engine_with_stream().await;
    put_many(&owned, 2500).await;
    owned.clock.advance(25 * HOUR);
    let mut steps = 0;
    while owned.engine.run_background_once().unwrap() {
        steps += 1;
    }
    assert!((3..6).contains(&steps), "{steps}");
    assert_eq!(owned.all_records(&arn).await, []);
    assert_eq!(owned.items("Orders").await.len(), 2500);
}

#[tokio::test]
async fn empty_shards_leave_and_the_open_one_stays() {
    let (owned, arn) = engine_with_stream().await;
    for n in 0..4 {
        owned.put("Orders", item("a", n)).await;
        owned.clock.advance(4 * HOUR);
    }
    let before = owned.shards(&arn).await;
    assert_eq!(before.len(), 4);
    // The first two records are older than a day; the second shard was closed 24 hours ago.
    owned.clock.advance(16 * HOUR);
    owned.settle();
    let after = owned.shards(&arn).await;
    assert_eq!(after.len(), 2);
    assert_eq!(after[0].id, before[2].id);
    assert_eq!(
        after[0].parent_id, None,
        "a parent that is gone is not named"
    );
    owned.clock.advance(100 * HOUR);
    owned.settle();
    let last = only_shard(&owned, &arn).await;
    assert_eq!(
        (last.id, last.ending_sequence),
        (before[3].id.clone(), None)
    );
    owned.put("Orders", item("a", 9)).await;
    assert_eq!(owned.all_records(&arn).await.len(), 1);
}

#[tokio::test]
async fn a_reader_at_the_end_of_a_shard_misses_nothing_that_leaves_the_next() {
    let (owned, arn) = engine_with_stream().await;
    owned.put("Orders", item("a", 1)).await;
    owned.clock.advance(4 * HOUR);
    owned.put("Orders", item("a", 2)).await;
    owned.clock.advance(24 * HOUR);
    let shard = owned.shards(&arn).await.remove(0);
    let end = shard.ending_sequence.clone().unwrap();
    let at_end = owned
        .iterator(&arn, &shard, IteratorKind::AfterSequenceNumber(end))
        .await
        .unwrap();
    let horizon = owned
        .iterator(&arn, &shard, IteratorKind::TrimHorizon)
        .await
        .unwrap();
    assert!(owned.engine.run_background_once().unwrap());
    // The records of both shards are gone, the shards are there until the next step.
    assert_eq!(owned.shards(&arn).await.len(), 2);
    assert_eq!(owned.records(&at_end).await.unwrap(), (vec![], None));
    let error = owned.records(&horizon).await.unwrap_err();
    assert!(matches!(error, Error::TrimmedDataAccess(_)), "{error:?}");
    let latest = owned
        .iterator(&arn, &shard, IteratorKind::Latest)
        .await
        .unwrap();
    assert_eq!(owned.records(&latest).await.unwrap(), (vec![], None));
    owned.settle();
    assert_eq!(owned.shards(&arn).await.len(), 1);
}

#[tokio::test]
async fn a_disabled_stream_is_read_until_it_is_trimmed() {
    let (owned, arn) = engine_with_stream().await;
    put_many(&owned, 2).await;
    disable(&owned, "Orders").await;
    owned.put("Orders", item("unseen", 1)).await;
    let describe = DescribeStream {
        stream_arn: arn.clone(),
        ..Default::default()
    };
    let description = owned.engine.describe_stream(describe).await.unwrap();
    assert_eq!(description.status, StreamStatus::Disabled);
    assert_eq!(owned.all_records(&arn).await.len(), 2);
    // Switched on again, it is another stream.
    owned.clock.advance(HOUR);
    let update = UpdateTable {
        stream: Some(Some(StreamView::KeysOnly)),
        ..UpdateTable::new("Orders")
    };
    owned.engine.update_table(update).await.unwrap();
    let newer = owned.stream_arn("Orders").await;
    assert_eq!(owned.stream_arns().await, [arn.clone(), newer.clone()]);
    owned.clock.advance(23 * HOUR);
    owned.settle();
    assert_eq!(owned.stream_arns().await, [newer]);
    let error = owned
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
async fn the_stream_of_a_deleted_table_is_read_until_it_is_trimmed() {
    let (owned, arn) = engine_with_stream().await;
    put_many(&owned, 2).await;
    owned
        .engine
        .delete_table("Orders".to_owned())
        .await
        .unwrap();
    assert_eq!(owned.all_records(&arn).await.len(), 2);
    // A table of the same name at the same moment has a stream of another name.
    owned.create(table("Orders", StreamView::NewImage)).await;
    let newer = owned.stream_arn("Orders").await;
    assert_ne!(newer, arn);
    owned.put("Orders", item("a", 1)).await;
    assert_eq!(
        (
            owned.all_records(&arn).await.len(),
            owned.all_records(&newer).await.len()
        ),
        (2, 1)
    );
    owned.clock.advance(24 * HOUR);
    owned.settle();
    assert_eq!(owned.stream_arns().await, [newer]);
}

#[tokio::test]
async fn records_that_a_consumer_holds_are_not_trimmed() {
    let (owned, arn) = engine_with_stream().await;
    put_many(&owned, 5).await;
    let all = owned.all_records(&arn).await;
    hold(&owned, &arn, "slow", Some("0")).await.unwrap();
    hold(&owned, &arn, "fast", Some(&all[3].sequence))
        .await
        .unwrap();
    owned.clock.advance(100 * HOUR);
    owned.settle();
    assert_eq!(owned.all_records(&arn).await, all);
    hold(&owned, &arn, "slow", Some(&all[1].sequence))
        .await
        .unwrap();
    owned.settle();
    assert_eq!(owned.all_records(&arn).await, all[2..]);
    hold(&owned, &arn, "slow", None).await.unwrap();
    owned.settle();
    assert_eq!(owned.all_records(&arn).await, all[4..]);
    hold(&owned, &arn, "fast", None).await.unwrap();
    owned.settle();
    assert_eq!(owned.all_records(&arn).await, []);
}

#[tokio::test]
async fn records_of_a_deleted_table_go_with_the_retention_even_if_held() {
    let (owned, arn) = engine_with_stream().await;
    put_many(&owned, 2).await;
    let last = owned.all_records(&arn).await.pop().unwrap();
    hold(&owned, &arn, "reader", Some("0")).await.unwrap();
    owned
        .engine
        .delete_table("Orders".to_owned())
        .await
        .unwrap();
    owned.clock.advance(23 * HOUR);
    owned.settle();
    assert_eq!(owned.all_records(&arn).await.len(), 2);
    hold(&owned, &arn, "reader", Some(&last.sequence))
        .await
        .unwrap();
    hold(&owned, &arn, "other", Some("0")).await.unwrap();
    owned.clock.advance(2 * HOUR);
    owned.settle();
    assert_eq!(owned.stream_arns().await, Vec::<String>::new());
    let error = hold(&owned, &arn, "reader", Some("0")).await.unwrap_err();
    assert!(matches!(error, Error::ResourceNotFound(_)), "{error:?}");
}

#[tokio::test]
async fn a_consumer_that_comes_too_late_is_told() {
    let (owned, arn) = engine_with_stream().await;
    put_many(&owned, 3).await;
    let all = owned.all_records(&arn).await;
    owned.clock.advance(24 * HOUR);
    owned.settle();
    let error = hold(&owned, &arn, "late", Some(&all[1].sequence))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::TrimmedDataAccess(_)), "{error:?}");
    hold(&owned, &arn, "late", Some(&all[2].sequence))
        .await
        .unwrap();
    hold(&owned, &arn, "new", Some("0")).await.unwrap();
    for (consumer, after) in [("", "0"), ("x", "x"), ("x", ""), ("x", "-1"), ("x", "4")] {
        let error = hold(&owned, &arn, consumer, Some(after)).await.unwrap_err();
        assert!(matches!(error, Error::Validation(_)), "{error:?}");
    }
}

#[tokio::test]
async fn streams_holds_and_iterators_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let owned = open(dir.path());
    owned
        .create(table("Orders", StreamView::NewAndOldImages))
        .await;
    let arn = owned.stream_arn("Orders").await;
    put_many(&owned, 3).await;
    let all = owned.all_records(&arn).await;
    hold(&owned, &arn, "reader", Some(&all[0].sequence))
        .await
        .unwrap();
    owned.clock.advance(30 * HOUR);
    owned.settle();
    let shard = only_shard(&owned, &arn).await;
    let iterator = owned
        .iterator(&arn, &shard, IteratorKind::TrimHorizon)
        .await
        .unwrap();
    let Owned { engine, clock } = owned;
    engine.close().unwrap();
    drop(engine);
    let owned = open_at(dir.path(), clock);
    owned.settle();
    assert_eq!(owned.records(&iterator).await.unwrap().0, all[1..]);
    let first = IteratorKind::AtSequenceNumber(all[0].sequence.clone());
    let error = owned.iterator(&arn, &shard, first).await.unwrap_err();
    assert!(matches!(error, Error::TrimmedDataAccess(_)), "{error:?}");
    owned.put("Orders", item("later", 1)).await;
    assert_eq!(owned.all_records(&arn).await.len(), 3);
}

#[tokio::test]
async fn records_are_kept_as_long_as_the_settings_say() {
    let clock = floe_store::env::ManualClock::at(START);
    let options = Options::new()
        .env(Env::manual(clock.clone(), 1))
        .background(false)
        .stream_retention(HOUR);
    let owned = Owned {
        engine: LocalEngine::memory_with(options).unwrap(),
        clock,
    };
    owned.create(table("Orders", StreamView::KeysOnly)).await;
    let arn = owned.stream_arn("Orders").await;
    put_many(&owned, 1).await;
    owned.clock.advance(HOUR);
    owned.settle();
    assert_eq!(owned.all_records(&arn).await, []);
}
