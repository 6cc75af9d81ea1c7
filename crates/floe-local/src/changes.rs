//! Reading change streams: which there are, their shards, and the records in them.
//!
//! Records are written by the commit path (`streams.rs`) in the same batch as the change that they tell
//! of. Here they are read, each call from one snapshot, so that a reader never sees a record before
//! those in front of it. How long they are kept is up to [`trim`].

mod position;
mod trim;

use std::ops::Bound;

use floe_store::limits::{
    DESCRIBE_STREAM_SHARDS_MAX, GET_RECORDS_BYTES_MAX, GET_RECORDS_MAX, LIST_STREAMS_MAX,
};
use floe_store::op::{
    ChangeRecord, DescribeStream, GetRecords, GetRecordsOutput, GetShardIterator, IteratorKind,
    ListStreams, ListStreamsOutput, Shard, StreamDescription, StreamStatus, StreamSummary,
    missing_shard, missing_stream,
};
use floe_store::{Error, Result};

use crate::engine::Shared;
use crate::kv::{Direction, Snapshot, prefix_end};
use crate::layout::change;
use crate::layout::record::{self, ShardRecord, StreamRecord};
use crate::streams::{stream_arn, stream_label};

use position::Position;
pub(crate) use trim::{hold_changes, trim_changes};

/// Lists the streams, in the order of their resource names, so that a page can go on after a stream
/// that is gone.
pub(crate) fn list_streams(shared: &Shared, input: &ListStreams) -> Result<ListStreamsOutput> {
    input.validate()?;
    let wanted = |stream: &StreamRecord| match &input.table_name {
        Some(name) => stream.table_name == *name,
        None => true,
    };
    let mut streams: Vec<StreamSummary> = shared
        .streams
        .list()
        .iter()
        .filter(|stream| wanted(stream))
        .map(|stream| StreamSummary {
            arn: stream_arn(&shared.options, stream),
            table_name: stream.table_name.clone(),
            label: stream_label(stream.created),
        })
        .filter(|stream| input.start_after.as_ref().is_none_or(|after| stream.arn > *after))
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
    let after = match &input.start_after {
        Some(id) => Some(
            change::parse_shard_id(id).ok_or_else(|| missing_shard(&input.stream_arn, id))?,
        ),
        None => None,
    };
    let limit = input.limit.unwrap_or(DESCRIBE_STREAM_SHARDS_MAX);
    let mut records = shards(shared, &snapshot, stream.id, after, limit + 1)?;
    let more = records.len() > limit;
    records.truncate(limit);
    let mut described = Vec::with_capacity(records.len());
    for record in &records {
        described.push(describe_shard(shared, &snapshot, stream.id, record)?);
    }
    let last_shard_id = described.last().filter(|_| more).map(|last| last.id.clone());
    Ok(StreamDescription {
        arn: input.stream_arn.clone(),
        label: stream_label(stream.created),
        table_name: stream.table_name.clone(),
        key: stream.key.clone(),
        view: stream.view,
        status: match stream.disabled {
            None => StreamStatus::Enabled,
            Some(_) => StreamStatus::Disabled,
        },
        created: stream.created,
        shards: described,
        last_shard_id,
    })
}

fn describe_shard(
    shared: &Shared,
    snapshot: &Snapshot,
    stream: u32,
    record: &ShardRecord,
) -> Result<Shard> {
    // A parent that was trimmed need not be read before its child any more.
    let parent = match record.parent {
        Some(start) => find_shard(shared, snapshot, stream, start)?,
        None => None,
    };
    Ok(Shard {
        id: change::shard_id(record.created, record.start),
        parent_id: parent.map(|parent| change::shard_id(parent.created, parent.start)),
        starting_sequence: change::sequence_text(record.start),
        ending_sequence: record.end.map(change::sequence_text),
    })
}

/// A position in a shard, as a text.
pub(crate) fn get_shard_iterator(shared: &Shared, input: &GetShardIterator) -> Result<String> {
    input.validate()?;
    let stream = find_stream(shared, &input.stream_arn)?;
    let snapshot = shared.kv.snapshot();
    let start = change::parse_shard_id(&input.shard_id);
    let shard = match start {
        Some(start) => find_shard(shared, &snapshot, stream.id, start)?,
        None => None,
    };
    let shard = shard
        .filter(|shard| change::shard_id(shard.created, shard.start) == input.shard_id)
        .ok_or_else(|| missing_shard(&input.stream_arn, &input.shard_id))?;
    let trimmed = trimmed_sequence(shared, &snapshot, stream.id)?;
    let last = last_sequence(shared, &snapshot)?;
    let next = match &input.kind {
        IteratorKind::TrimHorizon => shard.start.max(trimmed + 1),
        IteratorKind::Latest => shard.end.unwrap_or(last).max(shard.start - 1) + 1,
        IteratorKind::AtSequenceNumber(text) => known_sequence(&shard, last, text)?,
        IteratorKind::AfterSequenceNumber(text) => known_sequence(&shard, last, text)? + 1,
    };
    check_kept(next, trimmed)?;
    let position = Position {
        stream_arn: input.stream_arn.clone(),
        shard: shard.start,
        next,
        issued: shared.options.env.now(),
    };
    Ok(position.text())
}

/// A sequence number that a client names, if it is one that the shard can have given it.
fn known_sequence(shard: &ShardRecord, last: u64, text: &str) -> Result<u64> {
    // The first number is told before there is a record with it.
    let newest = shard.end.unwrap_or(last).max(shard.start);
    change::parse_sequence(text)
        .filter(|sequence| (shard.start..=newest).contains(sequence))
        .ok_or_else(|| Error::validation("Invalid SequenceNumber for the shard"))
}

/// Reads records from a position.
pub(crate) fn get_records(shared: &Shared, input: &GetRecords) -> Result<GetRecordsOutput> {
    input.validate()?;
    let position = Position::parse(&input.iterator)?;
    let now = shared.options.env.now();
    position.check_age(now)?;
    let stream = find_stream(shared, &position.stream_arn)?;
    let snapshot = shared.kv.snapshot();
    check_kept(position.next, trimmed_sequence(shared, &snapshot, stream.id)?)?;
    let Some(shard) = find_shard(shared, &snapshot, stream.id, position.shard)? else {
        // It was closed and read to its end before it was trimmed, or something would be missing.
        return Ok(GetRecordsOutput::default());
    };
    let limit = input.limit.unwrap_or(GET_RECORDS_MAX);
    let (records, read_to) = read_records(shared, &snapshot, stream.id, &shard, position.next, limit)?;
    let at_end = shard.end.is_some_and(|end| read_to.is_none_or(|last| last >= end));
    let next_iterator = (!at_end).then(|| {
        let next = match (read_to, records.last()) {
            (Some(last), _) => last + 1,
            (None, Some(last)) => change::parse_sequence(&last.sequence).map_or(position.next, |n| n + 1),
            (None, None) => position.next,
        };
        Position { next, issued: now, ..position }.text()
    });
    Ok(GetRecordsOutput { records, next_iterator })
}
