//! Reading change streams: shards, iterators, pages of records.

use std::collections::BTreeMap;
use std::time::Duration;

use floe_store::Error;
use floe_store::op::{HoldChanges, IteratorKind, ListStreams};
use floe_store::table::StreamView;

use super::fixture::*;

pub(super) fn sequence_numbers_are_ascending(t: &mut Fixture) {
    let items = (0..20).map(|n| item(&format!("k{n}")));
    t.create_with(streamed(StreamView::KeysOnly), items);
    let stream = t.stream("Plain");
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    for shard in &stream.shards {
        for record in t.shard_records(&stream, &shard.id) {
            let digits = record.sequence.chars().all(|c| c.is_ascii_digit());
            let is_long = (21..=40).contains(&record.sequence.len());
            assert!(digits && is_long, "{}", record.sequence);
            let before = last.insert(shard.id.clone(), record.sequence.clone());
            assert!(before.is_none_or(|before| before < record.sequence));
            assert!(record.sequence >= shard.starting_sequence);
        }
    }
}

pub(super) fn iterators_start_at_the_requested_position(t: &mut Fixture) {
    let items = (0..5).map(|v| item("a").with("v", v));
    t.create_with(streamed(StreamView::NewImage), items);
    let stream = t.stream("Plain");
    // All changes of an item are in one shard, because no shard is split.
    let mut shard = None;
    for candidate in &stream.shards {
        let records = t.shard_records(&stream, &candidate.id);
        if !records.is_empty() {
            shard = Some((candidate.id.clone(), records));
        }
    }
    let (shard, records) = shard.expect("a shard contains the changes");
    assert_eq!(records.len(), 5);
    let third = records[2].sequence.clone();
    let at = IteratorKind::AtSequenceNumber(third.clone());
    let at = t.iterator(&stream, &shard, at).unwrap();
    assert_eq!(t.records_from(at), records[2..]);
    let after = IteratorKind::AfterSequenceNumber(third);
    let after = t.iterator(&stream, &shard, after).unwrap();
    assert_eq!(t.records_from(after), records[3..]);

    let latest = t.iterator(&stream, &shard, IteratorKind::Latest).unwrap();
    t.put("Plain", item("a").with("v", 9)).unwrap();
    let new = t.records_from(latest);
    assert_eq!(new.len(), 1);
    assert_eq!(new[0].new_image, Some(item("a").with("v", 9)));
}

pub(super) fn reading_continues_after_the_last_record(t: &mut Fixture) {
    t.create(streamed(StreamView::NewImage));
    let stream = t.stream("Plain");
    let mut iterators = Vec::new();
    for shard in &stream.shards {
        iterators.push(t.start(&stream, &shard.id));
    }
    let mut seen = Vec::new();
    for round in 0..6 {
        for n in 0..round {
            t.fill("Plain", [item("a").with("v", round * 10 + n)]);
        }
        for iterator in &mut iterators {
            let output = t.records(iterator.clone(), None).unwrap();
            seen.extend(output.records);
            *iterator = output.next_iterator.expect("the shard is open");
        }
    }
    let images = seen.iter().map(|record| record.new_image.clone().unwrap());
    let expected = (0..6).flat_map(|round| (0..round).map(move |n| round * 10 + n));
    let expected = expected.map(|v| item("a").with("v", v));
    assert_eq!(images.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

pub(super) fn limit_bounds_the_records_of_a_page(t: &mut Fixture) {
    let items = (0..7).map(|v| item("a").with("v", v));
    t.create_with(streamed(StreamView::KeysOnly), items);
    let stream = t.stream("Plain");
    let mut sizes = Vec::new();
    for shard in &stream.shards {
        let mut next = Some(t.start(&stream, &shard.id));
        while let Some(iterator) = next {
            let output = t.records(iterator, Some(3)).unwrap();
            if output.records.is_empty() {
                break;
            }
            sizes.push(output.records.len());
            next = output.next_iterator;
        }
    }
    assert_eq!(sizes, [3, 3, 1]);
    let shard = &stream.shards[0].id;
    let iterator = t.start(&stream, shard);
    for limit in [0, 1001] {
        let records = t.records(iterator.clone(), Some(limit));
        rejected(records, "failed to satisfy constraint");
    }
}

pub(super) fn streams_are_listed(t: &mut Fixture) {
    t.create(streamed(StreamView::NewImage));
    t.create(sorted().stream(StreamView::KeysOnly));
    let t = &*t;
    let list = |input: ListStreams| t.list_streams(input).unwrap();
    let all = list(ListStreams::default());
    let mut tables: Vec<_> = all.streams.iter().map(|s| s.table_name.as_str()).collect();
    tables.sort_unstable();
    assert_eq!(tables, ["Plain", "Sorted"]);
    assert_eq!(all.last_arn, None);

    let of = |name: &str| ListStreams {
        table_name: Some(name.to_owned()),
        ..ListStreams::default()
    };
    let one = list(of("Sorted"));
    assert_eq!(one.streams.len(), 1);
    assert_eq!(one.streams[0].arn, t.stream("Sorted").arn);
    assert!(list(of("Nowhere")).streams.is_empty());

    let first = list(ListStreams {
        limit: Some(1),
        ..ListStreams::default()
    });
    assert_eq!(first.streams.len(), 1);
    let start_after = first.last_arn.clone();
    assert_eq!(start_after, Some(first.streams[0].arn.clone()));
    let second = list(ListStreams {
        start_after,
        ..ListStreams::default()
    });
    assert_eq!(second.streams.len(), 1);
    assert_ne!(first.streams, second.streams);
}

pub(super) fn unknown_streams_and_shards_are_not_found(t: &mut Fixture) {
    t.create(streamed(StreamView::NewImage));
    let stream = t.stream("Plain");
    let unknown = stream.arn.replace("Plain", "Missing");
    let detail = "Requested resource not found: Stream: ";
    not_found(t.try_describe_stream(&unknown), detail);
    let mut elsewhere = stream.clone();
    elsewhere.arn = unknown;
    let latest = |stream, shard| t.iterator(stream, shard, IteratorKind::Latest);
    not_found(latest(&elsewhere, &stream.shards[0].id), detail);
    let other = latest(&stream, "shardId-00000000000000000000-ffffffff");
    not_found(other, "Requested resource not found: Shard: ");
    let garbage = t.records("garbage".to_owned(), None);
    rejected(garbage, "Invalid ShardIterator");
}

pub(super) fn iterators_expire_after_fifteen_minutes(t: &mut Fixture) {
    t.create(streamed(StreamView::NewImage));
    let stream = t.stream("Plain");
    let shard = stream.shards[0].id.clone();
    let iterator = t.start(&stream, &shard);
    t.advance(Duration::from_secs(14 * 60));
    assert!(t.records(iterator.clone(), None).is_ok());
    t.advance(Duration::from_secs(2 * 60));
    let late = t.records(iterator, None);
    assert!(matches!(late, Err(Error::ExpiredIterator(_))));
}

pub(super) fn held_changes_are_not_trimmed(t: &mut Fixture) {
    t.create_with(streamed(StreamView::NewImage), [item("a")]);
    let stream_arn = t.stream("Plain").arn;
    let hold = |after: Option<&str>| HoldChanges {
        consumer: "indexer".to_owned(),
        stream_arn: stream_arn.clone(),
        after_sequence: after.map(str::to_owned),
    };
    t.hold_changes(hold(Some("0"))).unwrap();
    t.advance(Duration::from_secs(48 * 60 * 60));
    t.put("Plain", item("b")).unwrap();
    t.sweep();
    t.reopen();
    let changes = t.changes("Plain");
    assert_eq!(changes.len(), 2, "held changes are not trimmed");
    t.hold_changes(hold(None)).unwrap();
}

pub(super) fn consumer_names_have_1_to_255_bytes(t: &mut Fixture) {
    t.create(streamed(StreamView::NewImage));
    let stream_arn = t.stream("Plain").arn;
    let hold = |bytes: usize| HoldChanges {
        consumer: "c".repeat(bytes),
        stream_arn: stream_arn.clone(),
        after_sequence: Some("0".to_owned()),
    };
    for bytes in [1, 255] {
        t.hold_changes(hold(bytes)).unwrap();
    }
    for bytes in [0, 256] {
        rejected(
            t.hold_changes(hold(bytes)),
            &format!("the consumer name must have 1 to 255 bytes: length={bytes}"),
        );
    }
}
