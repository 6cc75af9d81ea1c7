//! Reads change streams: the list of streams, their shards, and the records in them.
//!
//! The commit path (`streams.rs`) writes a record in the same batch as the change that it describes. Each call here
//! reads from one snapshot, so that a reader never sees a record before the ones that precede it. [`trim`] decides how
//! long records are kept.

mod shard_iterator;
mod trim;

use std::ops::Bound;
use std::sync::Arc;

use floe_store::limits::{
    DESCRIBE_STREAM_SHARDS_MAX, GET_RECORDS_BYTES_MAX, GET_RECORDS_MAX, LIST_STREAMS_MAX,
};
use floe_store::op::{
    ChangeRecord, DescribeStream, GetRecords, GetRecordsOutput, GetShardIterator, IteratorKind,
    ListStreams, ListStreamsOutput, Shard, StreamDescription, StreamStatus, StreamSummary,
    missing_shard, missing_stream,
};
use floe_store::{Error, Result};

use crate::kv::{Direction, RangeIter, Snapshot, Space, prefix_bounds};
use crate::layout::change;
use crate::layout::record::{self, ShardRecord, StreamRecord};
use crate::shared::Shared;
use crate::streams::{stream_arn, stream_label};

use shard_iterator::ShardIterator;
pub(crate) use trim::{hold_changes, trim_changes};

/// Lists the streams, ordered by ARN, so that a page can continue after a stream that no longer exists.
pub(crate) fn list_streams(shared: &Shared, input: &ListStreams) -> Result<ListStreamsOutput> {
    input.validate()?;
    let (table_name, after) = (input.table_name.as_ref(), input.start_after.as_ref());
    let streams = shared.streams.list();
    let mut streams: Vec<StreamSummary> = streams
        .iter()
        .filter(|stream| table_name.is_none_or(|name| stream.table_name == *name))
        .map(|stream| StreamSummary {
            arn: stream_arn(&shared.options, stream),
            table_name: stream.table_name.clone(),
            label: stream_label(stream.created),
        })
        .filter(|stream| after.is_none_or(|after| stream.arn > *after))
        .collect();
    streams.sort_unstable_by(|a, b| a.arn.cmp(&b.arn));
    let limit = input.limit.unwrap_or(LIST_STREAMS_MAX);
    let more = streams.len() > limit;
    streams.truncate(limit);
    let last_arn = streams.last().filter(|_| more).map(|last| last.arn.clone());
    Ok(ListStreamsOutput { streams, last_arn })
}

/// Describes a stream and a page of its shards.
pub(crate) fn describe_stream(
    shared: &Shared,
    input: &DescribeStream,
) -> Result<StreamDescription> {
    input.validate()?;
    let stream = find_stream(shared, &input.stream_arn)?;
    let snapshot = shared.kv.snapshot();
    let limit = input.limit.unwrap_or(DESCRIBE_STREAM_SHARDS_MAX);
    let after = input.start_after.as_deref();
    let mut records = shards_after(&snapshot, stream.id, after, limit + 1)?;
    let more = records.len() > limit;
    records.truncate(limit);
    let described = records.iter();
    let described = described.map(|record| describe_shard(&snapshot, stream.id, record));
    let shards = described.collect::<Result<Vec<_>>>()?;
    let last = shards.last().filter(|_| more);
    let last_shard_id = last.map(|last| last.id.clone());
    Ok(StreamDescription {
        arn: input.stream_arn.clone(),
        label: stream_label(stream.created),
        table_name: stream.table_name.clone(),
        key_schema: stream.key.elements(),
        view: stream.view,
        status: match stream.disabled {
            None => StreamStatus::Enabled,
            Some(_) => StreamStatus::Disabled,
        },
        created: stream.created,
        shards,
        last_shard_id,
    })
}

fn describe_shard(snapshot: &Snapshot, stream: u32, record: &ShardRecord) -> Result<Shard> {
    // A parent that was trimmed no longer has to be read before its child.
    let parent = match record.parent {
        Some(start) => find_shard(snapshot, stream, start)?,
        None => None,
    };
    Ok(Shard {
        id: change::shard_id(record.created, record.start),
        parent_id: parent.map(|parent| change::shard_id(parent.created, parent.start)),
        starting_sequence: change::sequence_text(record.start),
        ending_sequence: record.end.map(change::sequence_text),
    })
}

/// Returns a position in a shard as text.
pub(crate) fn get_shard_iterator(shared: &Shared, input: &GetShardIterator) -> Result<String> {
    input.validate()?;
    let stream = find_stream(shared, &input.stream_arn)?;
    let snapshot = shared.kv.snapshot();
    let start = change::parse_shard_id(&input.shard_id);
    let shard = start.map(|start| find_shard(&snapshot, stream.id, start));
    let shard = shard
        .transpose()?
        .flatten()
        .filter(|shard| change::shard_id(shard.created, shard.start) == input.shard_id)
        .ok_or_else(|| missing_shard(&input.stream_arn, &input.shard_id))?;
    let trimmed = trimmed_sequence(&snapshot, stream.id)?;
    let last = last_sequence(&snapshot)?;
    let next = match &input.kind {
        IteratorKind::TrimHorizon => shard.start.max(trimmed.saturating_add(1)),
        IteratorKind::Latest => shard.end.unwrap_or(last).saturating_add(1).max(shard.start),
        IteratorKind::AtSequenceNumber(text) => parse_sequence_in_shard(&shard, last, text)?,
        IteratorKind::AfterSequenceNumber(text) => {
            parse_sequence_in_shard(&shard, last, text)?.saturating_add(1)
        }
    };
    check_not_trimmed(next, trimmed_in(&shard, trimmed))?;
    let iterator = ShardIterator {
        stream_arn: input.stream_arn.clone(),
        shard: shard.start,
        next,
        issued: shared.options.env.now(),
    };
    Ok(iterator.text())
}

/// Parses a sequence number from a client and checks that the shard can have issued it.
fn parse_sequence_in_shard(shard: &ShardRecord, last: u64, text: &str) -> Result<u64> {
    // The first number is returned to clients before a record with it exists.
    let newest = shard.end.unwrap_or(last).max(shard.start);
    change::parse_sequence(text)
        .filter(|sequence| (shard.start..=newest).contains(sequence))
        .ok_or_else(|| Error::validation("Invalid SequenceNumber for the shard"))
}

/// Reads records from a position.
pub(crate) fn get_records(shared: &Shared, input: &GetRecords) -> Result<GetRecordsOutput> {
    input.validate()?;
    let iterator = ShardIterator::parse(&input.iterator)?;
    let now = shared.options.env.now();
    iterator.check_age(now)?;
    let stream = find_stream(shared, &iterator.stream_arn)?;
    let snapshot = shared.kv.snapshot();
    let trimmed = trimmed_sequence(&snapshot, stream.id)?;
    let Some(shard) = find_shard(&snapshot, stream.id, iterator.shard)? else {
        // Either the shard was closed, read to its end and trimmed, or records are missing.
        check_not_trimmed(iterator.next, trimmed)?;
        return Ok(GetRecordsOutput::default());
    };
    check_not_trimmed(iterator.next, trimmed_in(&shard, trimmed))?;
    let limit = input.limit.unwrap_or(GET_RECORDS_MAX);
    let read = read_records(shared, &snapshot, stream.id, &shard, iterator.next, limit)?;
    let at_end = shard
        .end
        .is_some_and(|end| read.exhausted || read.next > end);
    let next = ShardIterator {
        next: read.next,
        issued: now,
        ..iterator
    };
    Ok(GetRecordsOutput {
        records: read.records,
        next_iterator: (!at_end).then(|| next.text()),
    })
}

struct Read {
    records: Vec<ChangeRecord>,
    /// Sequence number from which to continue.
    next: u64,
    /// Whether there are no more records at present.
    exhausted: bool,
}

fn read_records(
    shared: &Shared,
    snapshot: &Snapshot,
    stream: u32,
    shard: &ShardRecord,
    from: u64,
    limit: usize,
) -> Result<Read> {
    let (first, last) = (from.max(shard.start), shard.end.unwrap_or(u64::MAX));
    let mut read = Read {
        records: Vec::new(),
        next: from,
        exhausted: false,
    };
    let mut bytes = 0;
    for entry in records(snapshot, stream, first, last) {
        let (key, value) = entry?;
        if read.records.len() >= limit {
            return Ok(read);
        }
        let (_, sequence) = change::decode_key(&key)?;
        let record = change::decode(&value, sequence, shared.instance)?;
        bytes += record.size_bytes;
        // A single record is always returned, or a reader could never pass it.
        if bytes > GET_RECORDS_BYTES_MAX && !read.records.is_empty() {
            return Ok(read);
        }
        read.records.push(record);
        read.next = sequence.saturating_add(1);
    }
    read.exhausted = true;
    Ok(read)
}

/// The records of a stream with sequence numbers from `first` to `last`, inclusive.
fn records(snapshot: &Snapshot, stream: u32, first: u64, last: u64) -> RangeIter {
    let bound = |sequence| Bound::Included(change::key(stream, sequence));
    let bounds = (bound(first), bound(last));
    snapshot.range(Space::Changes, bounds, Direction::Forward)
}

fn find_stream(shared: &Shared, arn: &str) -> Result<Arc<StreamRecord>> {
    let stream = shared.streams.by_arn(&shared.options, arn);
    stream.ok_or_else(|| missing_stream(arn))
}

fn find_shard(snapshot: &Snapshot, stream: u32, start: u64) -> Result<Option<ShardRecord>> {
    let found = snapshot.get(Space::Meta, &record::shard_key(stream, start))?;
    found.map(|bytes| ShardRecord::decode(&bytes)).transpose()
}

/// The shards of a stream, oldest first, after the shard with id `after`. If there is no such shard, those whose ids
/// are greater.
fn shards_after(
    snapshot: &Snapshot,
    stream: u32,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<ShardRecord>> {
    let start = after.map(change::parse_shard_id);
    let (Some(after), Some(None)) = (after, start) else {
        return shards(snapshot, stream, start.flatten(), limit);
    };
    let mut shards = shards(snapshot, stream, None, usize::MAX)?;
    shards.retain(|shard| *change::shard_id(shard.created, shard.start) > *after);
    shards.truncate(limit);
    Ok(shards)
}

/// The shards of a stream, oldest first, after the shard that starts at `after`.
fn shards(
    snapshot: &Snapshot,
    stream: u32,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<ShardRecord>> {
    let (first, end) = prefix_bounds(&record::shards_prefix(stream));
    let first = match after {
        Some(start) => Bound::Excluded(record::shard_key(stream, start)),
        None => first,
    };
    snapshot
        .range(Space::Meta, (first, end), Direction::Forward)
        .take(limit)
        .map(|entry| ShardRecord::decode(&entry?.1))
        .collect()
}

/// The latest sequence number that was assigned.
fn last_sequence(snapshot: &Snapshot) -> Result<u64> {
    read_sequence(snapshot, record::SEQUENCE_KEY)
}

/// The latest sequence number that was trimmed from a stream; 0 if none was.
fn trimmed_sequence(snapshot: &Snapshot, stream: u32) -> Result<u64> {
    read_sequence(snapshot, &record::trimmed_key(stream))
}

fn read_sequence(snapshot: &Snapshot, key: &[u8]) -> Result<u64> {
    let found = snapshot.get(Space::Meta, key)?;
    found.map_or(Ok(0), |bytes| record::decode_sequence(&bytes))
}

/// The latest sequence number that can have been trimmed from a shard, given that of its stream.
fn trimmed_in(shard: &ShardRecord, trimmed: u64) -> u64 {
    shard.end.map_or(trimmed, |end| trimmed.min(end))
}

/// Checks that no record from `next` on was trimmed.
fn check_not_trimmed(next: u64, trimmed: u64) -> Result<()> {
    if next > trimmed {
        return Ok(());
    }
    Err(Error::TrimmedDataAccess(
        "The operation attempted to read past the oldest stream record in a shard.".to_owned(),
    ))
}
