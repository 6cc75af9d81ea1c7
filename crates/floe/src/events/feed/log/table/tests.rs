//! The feed on a real table, from appends to the output of a reader.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use floe_store::TableDef;
use floe_store::env::SeededRandom;
use floe_store::op::{
    ChangeRecord, CreateTable, DescribeStream, GetRecords, GetShardIterator, IteratorKind,
    ListStreams,
};
use floe_store::table::{KeyKind, StreamView};

use super::*;
use crate::events::feed::epoch::Ingested;
use crate::events::feed::source::span_of_change;
use crate::events::feed::{Checkpoint, EpochLimits, Ingester, Partitions, Reader, Span};

const EVENTS: &str = "shop";
const INDEX: &str = "shop-index";

async fn database() -> Db {
    let db = Db::memory().unwrap();
    for table in [EVENTS, INDEX] {
        let mut builder = TableDef::builder(table, "p", KeyKind::S).sort_key("i", KeyKind::N);
        if table == EVENTS {
            builder = builder.stream(StreamView::NewImage);
        }
        let request = CreateTable::from(builder.build().unwrap());
        db.engine().create_table(request).await.unwrap();
    }
    db
}

/// A log whose streams calve often.
fn log(db: &Db) -> TableLog {
    TableLog::new(db.clone(), EventStoreOptions::new(INDEX).tip_events_max(3))
}

fn event(types: &[&str], start: u64) -> EpochEvent {
    let stream = StreamName::parse("Cart-1").unwrap();
    let add = vec![Span::new(stream, start, types.iter().copied())];
    let app = Vec::new();
    EpochEvent::Ingested(Ingested { add, app })
}

async fn append(log: &TableLog, events: &[EpochEvent], expected: &TablePosition) -> TablePosition {
    let appended = log.append_epoch(Partition::FIRST, 0, events, expected);
    match appended.await.unwrap() {
        Appended::Written { position, .. } => position,
        Appended::Conflict => panic!("there is no other writer"),
    }
}

#[tokio::test]
async fn epoch_is_loaded_as_written() {
    let db = database().await;
    let log = log(&db);
    let partition = Partition::FIRST;
    let empty = log.load_epoch(partition, 0).await.unwrap();
    assert_eq!(empty.state, EpochState::default());
    let mut position = empty.position.clone();
    let mut events: Vec<_> = (0..5).map(|start| event(&["A"], start)).collect();
    for event in &events {
        position = append(&log, std::slice::from_ref(event), &position).await;
    }
    let conflict = log.append_epoch(partition, 0, &events, &empty.position);
    assert!(matches!(conflict.await.unwrap(), Appended::Conflict));

    let loaded = log.load_epoch(partition, 0).await.unwrap();
    assert_eq!((loaded.state.version(), loaded.state.streams()), (5, 1));
    let end = [event(&["B"], 5), EpochEvent::Closed];
    append(&log, &end, &loaded.position).await;
    events.extend(end);
    let refreshed = log.refresh_epoch(partition, 0, loaded).await.unwrap();
    let again = log.load_epoch(partition, 0).await.unwrap();
    assert_eq!(refreshed.state, again.state);
    assert!(again.state.is_closed());

    for offset in 0..9 {
        let page = log.read_epoch(partition, 0, offset).await.unwrap();
        let rest = events.get(offset as usize..).unwrap_or_default();
        let read: Vec<EpochEvent> = page.events.into_iter().map(|(event, _)| event).collect();
        assert_eq!((read.as_slice(), page.is_end), (rest, true));
    }
    let version = log.epoch_version(partition, 0).await.unwrap();
    assert_eq!((version.version, version.is_closed), (7, true));
    let version = log.epoch_version(partition, 1).await.unwrap();
    assert_eq!(version, EpochVersion::default());
}

#[tokio::test]
async fn index_is_loaded_from_its_snapshot() {
    let db = database().await;
    let log = log(&db);
    for epoch in 0..7 {
        let Loaded {
            mut state,
            position,
        } = log.load_index().await.unwrap();
        let event = state.start(Partition::new(epoch % 2), epoch).unwrap();
        state.apply(event.clone());
        let appended = log.append_index(&event, &state, &position).await.unwrap();
        assert!(matches!(appended, Appended::Written { .. }));
        let stale = log.append_index(&event, &state, &position).await.unwrap();
        assert!(matches!(stale, Appended::Conflict));
        assert_eq!(log.read_index().await.unwrap(), state);
    }
    let index = log.read_index().await.unwrap();
    assert_eq!(index.active(Partition::new(0)), 6);
    assert_eq!(index.active(Partition::new(1)), 5);
}

/// All changes of the events table, shard by shard, parents before children.
async fn changes(db: &Db) -> Vec<ChangeRecord> {
    let engine = db.engine();
    let streams = ListStreams {
        table_name: Some(EVENTS.to_owned()),
        ..ListStreams::default()
    };
    let streams = engine.list_streams(streams).await.unwrap().streams;
    let described = engine
        .describe_stream(DescribeStream {
            stream_arn: streams[0].arn.clone(),
            ..DescribeStream::default()
        })
        .await
        .unwrap();
    let mut changes = Vec::new();
    for shard in described.shards {
        let iterator = engine.get_shard_iterator(GetShardIterator {
            stream_arn: described.arn.clone(),
            shard_id: shard.id,
            kind: IteratorKind::TrimHorizon,
        });
        let mut next = Some(iterator.await.unwrap());
        while let Some(iterator) = next {
            let limit = None;
            let output = engine.get_records(GetRecords { iterator, limit }).await;
            let output = output.unwrap();
            next = output.next_iterator.filter(|_| !output.records.is_empty());
            changes.extend(output.records);
        }
    }
    changes
}

/// Appends to streams of the events table that calve often, and returns the event types of each.
async fn write_events(db: &Db, random: &SeededRandom) -> BTreeMap<StreamName, Vec<String>> {
    let limits = EventStoreOptions::new(EVENTS).tip_events_max(4).tip;
    let mut types: BTreeMap<StreamName, Vec<String>> = BTreeMap::new();
    let mut positions: BTreeMap<StreamName, StreamPosition> = BTreeMap::new();
    for write in 0..60 {
        let stream = StreamName::new("Cart", &random.below(6)).unwrap();
        let new: Vec<String> = (0..random.below(4))
            .map(|number| format!("t{write}_{number}"))
            .collect();
        let stored = |event_type: &String| {
            let event = EventData::new(event_type.as_str(), *b"{}");
            StoredEvent::new(event, Timestamp::default(), Default::default())
        };
        let change = Change {
            events: new.iter().map(stored).collect(),
            unfolds: Vec::new(),
            guard: Guard::Version,
        };
        let (position, etag) = (positions.get(&stream), db.env().ordered_uuid());
        let append = StreamAppend::new(EVENTS, &stream, position, &change, &limits, etag).unwrap();
        let AppendOutcome::Written(position) =
            append.send(db, &stream, Budget::for_write()).await.unwrap()
        else {
            panic!("there is no other writer");
        };
        positions.insert(stream.clone(), position);
        types.entry(stream).or_default().extend(new);
    }
    types
}

/// Ingests changes in batches, with a new ingester for each partition.
async fn ingest(db: &Db, partitions: Partitions, changes: &[ChangeRecord], random: &SeededRandom) {
    let limits = EpochLimits {
        version_max: 1 + random.below(5),
        ..EpochLimits::default()
    };
    for partition in partitions.all() {
        let mut ingester = Ingester::new(log(db), partition, limits).unwrap();
        for batch in changes.chunks(1 + random.below(9) as usize) {
            let spans = batch
                .iter()
                .filter_map(|record| span_of_change(record).unwrap());
            let spans = spans.filter(|span| partitions.of(&span.stream) == partition);
            let since = batch[0].created;
            ingester.ingest(spans.collect(), since).await.unwrap();
        }
    }
}

#[tokio::test]
async fn feed_contains_what_was_appended_to_the_table() {
    for seed in 0..5 {
        let random = SeededRandom::new(seed);
        let db = database().await;
        let written = write_events(&db, &random).await;
        let partitions = Partitions::new(NonZeroU32::new(1 + random.below(3) as u32).unwrap());
        let changes = changes(&db).await;
        let half = &changes[..changes.len() / 2];
        for part in [half, &changes, half] {
            ingest(&db, partitions, part, &random).await;
        }

        let mut read: BTreeMap<StreamName, Vec<String>> = BTreeMap::new();
        for partition in partitions.all() {
            let mut reader = Reader::new(log(&db), partition, Checkpoint::START);
            while let Some(batch) = reader.next().await.unwrap() {
                for span in batch.spans {
                    assert_eq!(partitions.of(&span.stream), partition);
                    let types = read.entry(span.stream).or_default();
                    assert_eq!(types.len() as u64, span.start);
                    types.extend(span.types.iter().map(ToString::to_string));
                }
            }
            assert_eq!(reader.checkpoint(), reader.tail().await.unwrap());
        }
        let with_events = written.into_iter().filter(|(_, types)| !types.is_empty());
        assert_eq!(read, with_events.collect());
    }
}
