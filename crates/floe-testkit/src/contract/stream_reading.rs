//! Reading change streams: shards, iterators, pages of records.

use std::collections::BTreeMap;
use std::time::Duration;

use floe_store::Error;
use floe_store::op::{DescribeStream, HoldChanges, IteratorKind, ListStreams};
use floe_store::table::StreamView;

use super::fixture::*;

pub(super) async fn sequence_numbers_grow(t: &mut Fixture) {
    t.create(plain().stream(StreamView::KeysOnly)).await;
    t.fill("Plain", (0..20).map(|n| item(&format!("k{n}"))))
        .await;
    let stream = t.stream("Plain").await;
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    for shard in &stream.shards {
        let iterator = t.start(&stream, &shard.id).await;
        for record in t.records_from(iterator).await {
            let digits = record.sequence.chars().all(|c| c.is_ascii_digit());
            assert!(
                digits && (21..=40).contains(&record.sequence.len()),
                "{}",
                record.sequence
            );
            let before = last.insert(shard.id.clone(), record.sequence.clone());
            assert!(before.is_none_or(|before| before < record.sequence));
            assert!(record.sequence >= shard.starting_sequence);
        }
    }
}

pub(super) async fn iterators_start_where_they_say(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewImage)).await;
    t.fill("Plain", (0..5).map(|v| item("a").with("v", v)))
        .await;
    let stream = t.stream("Plain").await;
    // One item's changes are in one shard, as long as none has been split.
    let mut shard = None;
    for candidate in &stream.shards {
        let iterator = t.start(&stream, &candidate.id).await;
        let records = t.records_from(iterator).await;
        if !records.is_empty() {
            shard = Some((candidate.id.clone(), records));
        }
    }
    let (shard, records) = shard.expect("the changes are in a shard");
    assert_eq!(records.len(), 5);
    let third = records[2].sequence.clone();
    let at = IteratorKind::AtSequenceNumber(third.clone());
    let at = t.iterator(&stream, &shard, at).await.unwrap();
    assert_eq!(t.records_from(at).await, records[2..]);
    let after = IteratorKind::AfterSequenceNumber(third);
    let after = t.iterator(&stream, &shard, after).await.unwrap();
    assert_eq!(t.records_from(after).await, records[3..]);

    let latest = t
        .iterator(&stream, &shard, IteratorKind::Latest)
        .await
        .unwrap();
    t.put("Plain", item("a").with("v", 9)).await.unwrap();
    let new = t.records_from(latest).await;
    assert_eq!(new.len(), 1);
    assert_eq!(new[0].new_image, Some(item("a").with("v", 9)));
}

pub(super) async fn reading_goes_on_where_it_stopped(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewImage)).await;
    let stream = t.stream("Plain").await;
    let mut iterators = Vec::new();
    for shard in &stream.shards {
        iterators.push(t.start(&stream, &shard.id).await);
    }
    let mut seen = Vec::new();
    for round in 0..6 {
        for n in 0..round {
            t.fill("Plain", [item("a").with("v", round * 10 + n)]).await;
        }
        for iterator in &mut iterators {
            let output = t.records(iterator.clone(), None).await.unwrap();
            seen.extend(output.records);
            *iterator = output.next_iterator.expect("the shard is open");
        }
    }
    let values: Vec<i64> = seen
        .iter()
        .filter_map(|r| r.new_image.as_ref()?.get("v")?.as_n()?.to_i64())
        .collect();
    let expected: Vec<i64> = (0..6)
        .flat_map(|round| (0..round).map(move |n| round * 10 + n))
        .collect();
    assert_eq!(values, expected);
}

pub(super) async fn a_limit_bounds_the_records(t: &mut Fixture) {
    t.create(plain().stream(StreamView::KeysOnly)).await;
    t.fill("Plain", (0..7).map(|v| item("a").with("v", v)))
        .await;
    let stream = t.stream("Plain").await;
    let mut sizes = Vec::new();
    for shard in &stream.shards {
        let mut next = Some(t.start(&stream, &shard.id).await);
        while let Some(iterator) = next {
            let output = t.records(iterator, Some(3)).await.unwrap();
            if output.records.is_empty() {
                break;
            }
            sizes.push(output.records.len());
            next = output.next_iterator;
        }
    }
    assert_eq!(sizes, [3, 3, 1]);
    let shard = &stream.shards[0].id;
    let iterator = t.start(&stream, shard).await;
    for limit in [0, 1001] {
        refused(
            t.records(iterator.clone(), Some(limit)).await,
            "failed to satisfy constraint",
        );
    }
}

pub(super) async fn streams_are_listed(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewImage)).await;
    t.create(sorted().stream(StreamView::KeysOnly)).await;
    let t = &*t;
    let list = |input: ListStreams| async move { t.list_streams(input).await.unwrap() };
    let all = list(ListStreams::default()).await;
    let mut tables: Vec<_> = all.streams.iter().map(|s| s.table_name.as_str()).collect();
    tables.sort_unstable();
    assert_eq!(tables, ["Plain", "Sorted"]);
    assert_eq!(all.last_arn, None);

    let of = |name: &str| ListStreams {
        table_name: Some(name.to_owned()),
        ..ListStreams::default()
    };
    let one = list(of("Sorted")).await;
    assert_eq!(one.streams.len(), 1);
    assert_eq!(one.streams[0].arn, t.stream("Sorted").await.arn);
    assert!(list(of("Nowhere")).await.streams.is_empty());

    let first = list(ListStreams {
        limit: Some(1),
        ..ListStreams::default()
    })
    .await;
    assert_eq!(first.streams.len(), 1);
    let start_after = first.last_arn.clone();
    assert_eq!(start_after, Some(first.streams[0].arn.clone()));
    let second = list(ListStreams {
        start_after,
        ..ListStreams::default()
    })
    .await;
    assert_eq!(second.streams.len(), 1);
    assert_ne!(first.streams, second.streams);
}

pub(super) async fn unknown_streams_and_shards_are_not_found(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewImage)).await;
    let stream = t.stream("Plain").await;
    let unknown = stream.arn.replace("Plain", "Nobody");
    not_found(
        t.engine()
            .describe_stream(DescribeStream {
                stream_arn: unknown.clone(),
                ..DescribeStream::default()
            })
            .await,
        "Requested resource not found: Stream: ",
    );
    let mut elsewhere = stream.clone();
    elsewhere.arn = unknown;
    let shard = stream.shards[0].id.clone();
    not_found(
        t.iterator(&elsewhere, &shard, IteratorKind::Latest).await,
        "Requested resource not found: Stream: ",
    );
    let other = "shardId-00000000000000000000-ffffffff";
    not_found(
        t.iterator(&stream, other, IteratorKind::Latest).await,
        "Requested resource not found: Shard: ",
    );
    refused(
        t.records("garbage".to_owned(), None).await,
        "Invalid ShardIterator",
    );
}

pub(super) async fn iterators_expire_after_fifteen_minutes(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewImage)).await;
    let stream = t.stream("Plain").await;
    let shard = stream.shards[0].id.clone();
    let iterator = t.start(&stream, &shard).await;
    t.advance(Duration::from_secs(14 * 60));
    assert!(t.records(iterator.clone(), None).await.is_ok());
    t.advance(Duration::from_secs(2 * 60));
    assert!(matches!(
        t.records(iterator.clone(), None).await,
        Err(Error::ExpiredIterator(_))
    ));
}

pub(super) async fn held_changes_are_kept(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewImage)).await;
    t.put("Plain", item("a")).await.unwrap();
    let stream_arn = t.stream("Plain").await.arn;
    let hold = |after: Option<&str>| HoldChanges {
        consumer: "indexer".to_owned(),
        stream_arn: stream_arn.clone(),
        after_sequence: after.map(str::to_owned),
    };
    t.hold_changes(hold(Some("0"))).await.unwrap();
    t.advance(Duration::from_secs(48 * 60 * 60));
    t.put("Plain", item("b")).await.unwrap();
    t.sweep().await;
    t.reopen().await;
    assert_eq!(
        t.changes("Plain").await.len(),
        2,
        "nothing is trimmed under a consumer"
    );
    t.hold_changes(hold(None)).await.unwrap();
}

pub(super) async fn consumers_have_names_of_1_to_255_bytes(t: &mut Fixture) {
    t.create(plain().stream(StreamView::NewImage)).await;
    let stream_arn = t.stream("Plain").await.arn;
    let hold = |bytes: usize| HoldChanges {
        consumer: "c".repeat(bytes),
        stream_arn: stream_arn.clone(),
        after_sequence: Some("0".to_owned()),
    };
    for bytes in [1, 255] {
        t.hold_changes(hold(bytes)).await.unwrap();
    }
    for bytes in [0, 256] {
        refused(
            t.hold_changes(hold(bytes)).await,
            &format!("the name of a consumer must have 1 to 255 bytes: length={bytes}"),
        );
    }
}
