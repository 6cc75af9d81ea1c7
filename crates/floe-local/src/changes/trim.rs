//! Retention of change records: as long as the [options](crate::Options::stream_retention) say, and longer where a
//! consumer holds them.
//!
//! Records are trimmed oldest first, and the last one trimmed is stored ([`record::trimmed_key`]), so that a late
//! reader gets an error instead of skipping records. A closed shard is removed when it is empty and was closed longer
//! ago than the retention; a disabled stream is removed with its last shard.

use std::sync::Arc;

use floe_store::op::{HoldChanges, missing_stream};
use floe_store::{Error, Result, Timestamp};

use crate::commit::Committer;
use crate::group::{DiskUse, Group};
use crate::kv::{Bytes, Direction, Snapshot, Space};
use crate::layout::change;
use crate::layout::record::{self, ShardRecord, StreamRecord};
use crate::response::PendingResponse;
use crate::shared::Shared;

use super::{
    check_not_trimmed, find_stream, last_sequence, read_sequence, records, shards, trimmed_sequence,
};

/// Maximum number of records removed in a step.
const STEP_RECORDS_MAX: usize = 1000;

/// Maximum number of shards removed in a step.
const STEP_SHARDS_MAX: usize = 100;

/// Registers how far a consumer has read, or releases its hold.
///
/// # Errors
///
/// [`Error::TrimmedDataAccess`] if records after the given one were already trimmed: the consumer missed them, and
/// only it can decide what to do about that.
pub(crate) fn hold_changes(
    committer: &Committer,
    input: &HoldChanges,
) -> Result<PendingResponse<()>> {
    input.validate()?;
    let stream = find_stream(&committer.shared, &input.stream_arn)?;
    let parse = |text: &String| change::parse_sequence(text).ok_or_else(|| unknown_sequence(text));
    let after = input.after_sequence.as_ref().map(parse).transpose()?;
    let key = record::hold_key(stream.id, &input.consumer);
    let arn = input.stream_arn.clone();
    // Records that the consumer has read can be trimmed.
    Ok(committer.run(DiskUse::Frees, move |group| {
        let shared = group.shared();
        let Some(after) = after else {
            group.remove(Space::Meta, key);
            return Ok(());
        };
        // The stream may have been removed since it was looked up.
        shared
            .streams
            .get(stream.id)
            .ok_or_else(|| missing_stream(&arn))?;
        let snapshot = shared.kv.snapshot();
        if after > last_sequence(&snapshot)? {
            return Err(unknown_sequence(&change::sequence_text(after)));
        }
        if after > 0 {
            let trimmed = trimmed_sequence(&snapshot, stream.id)?;
            check_not_trimmed(after.saturating_add(1), trimmed)?;
        }
        group.put(Space::Meta, key, record::encode_sequence(after));
        Ok(())
    }))
}

fn unknown_sequence(text: &str) -> Error {
    Error::validation(format!(
        "no change record has this sequence number: sequence={text}"
    ))
}

/// Removes a bounded number of records past their retention, empty shards, and streams without shards. Returns how many
/// it removed; 0 if there is nothing to do at present.
pub(crate) fn trim_changes(committer: &Committer) -> Result<usize> {
    let shared = &committer.shared;
    let snapshot = shared.kv.snapshot();
    let now = shared.options.env.now();
    let mut removed = 0;
    for stream in shared.streams.list() {
        removed += trim_stream(committer, &snapshot, &stream, now)?;
        if removed >= STEP_RECORDS_MAX {
            break;
        }
    }
    Ok(removed)
}

fn trim_stream(
    committer: &Committer,
    snapshot: &Snapshot,
    stream: &Arc<StreamRecord>,
    now: Timestamp,
) -> Result<usize> {
    let shared = &committer.shared;
    let old = old_records(shared, snapshot, stream.id, now)?;
    if !old.is_empty() {
        let stream = stream.id;
        let remove = move |group: &mut Group<'_>| remove_records(group, stream, &old);
        return committer.run(DiskUse::Frees, remove).wait();
    }
    if old_shards(shared, snapshot, stream, now)?.is_empty() {
        return Ok(0);
    }
    let stream = stream.clone();
    let remove = move |group: &mut Group<'_>| remove_shards(group, &stream, now);
    committer.run(DiskUse::Frees, remove).wait()
}

/// The sequence numbers of the oldest records, as far as they are past their retention and not held.
fn old_records(
    shared: &Shared,
    snapshot: &Snapshot,
    stream: u32,
    now: Timestamp,
) -> Result<Vec<u64>> {
    // Starting after the trimmed records skips their tombstones.
    let first = trimmed_sequence(snapshot, stream)?.saturating_add(1);
    let held = held_after(shared, snapshot, stream)?;
    let mut old = Vec::new();
    for entry in records(snapshot, stream, first, held).take(STEP_RECORDS_MAX) {
        let (key, value) = entry?;
        if now.since(change::decode_created(&value)?) < shared.options.stream_retention {
            break;
        }
        old.push(change::decode_key(&key)?.1);
    }
    Ok(old)
}

/// The sequence number after which a consumer holds the records of a stream; `u64::MAX` if none does.
///
/// Holds on a deleted table are ignored: a consumer has the retention to read its records, and after that only the
/// consumer itself could release the hold.
fn held_after(shared: &Shared, snapshot: &Snapshot, stream: u32) -> Result<u64> {
    let mut held = u64::MAX;
    let table = shared.streams.get(stream).map(|stream| stream.table);
    if table.is_none_or(|table| shared.catalog.get_by_id(table).is_none()) {
        return Ok(held);
    }
    let holds = record::holds_prefix(stream);
    for entry in snapshot.prefix(Space::Meta, &holds, Direction::Forward) {
        held = held.min(record::decode_sequence(&entry?.1)?);
    }
    Ok(held)
}

fn remove_records(group: &mut Group<'_>, stream: u32, old: &[u64]) -> Result<usize> {
    let shared = group.shared();
    // An exclusive group starts from the latest commit, which is what the snapshot shows. A consumer may have
    // registered since the records were selected.
    let snapshot = shared.kv.snapshot();
    let held = held_after(shared, &snapshot, stream)?;
    let latest_of_all = read_sequence(&snapshot, record::TRIMMED_KEY)?;
    let free = old.iter().take_while(|sequence| **sequence <= held);
    let mut removed = 0;
    for sequence in free.clone() {
        group.remove(Space::Changes, change::key(stream, *sequence));
        removed += 1;
    }
    if let Some(last) = free.last() {
        let of_all = record::encode_sequence(latest_of_all.max(*last));
        let of_stream = record::encode_sequence(*last);
        group.put(Space::Meta, record::trimmed_key(stream), of_stream);
        group.put(Space::Meta, record::TRIMMED_KEY, of_all);
    }
    Ok(removed)
}

/// The oldest shards, as far as they were closed longer ago than the retention and contain no records.
fn old_shards(
    shared: &Shared,
    snapshot: &Snapshot,
    stream: &StreamRecord,
    now: Timestamp,
) -> Result<Vec<ShardRecord>> {
    let first_record = first_record(snapshot, stream.id)?;
    let shards = shards(snapshot, stream.id, None, STEP_SHARDS_MAX)?;
    let mut old = Vec::new();
    for (n, shard) in shards.iter().enumerate() {
        // A shard is closed when its child is opened, and the last one when the stream is disabled.
        let child = shards.get(n + 1).map(|child| child.created);
        let closed = child.or(stream.disabled);
        let is_old = closed.is_some_and(|at| now.since(at) >= shared.options.stream_retention);
        let is_empty = shard
            .end
            .is_some_and(|end| first_record.is_none_or(|first| first > end));
        if !is_old || !is_empty {
            break;
        }
        old.push(*shard);
    }
    Ok(old)
}

fn first_record(snapshot: &Snapshot, stream: u32) -> Result<Option<u64>> {
    let first = trimmed_sequence(snapshot, stream)?.saturating_add(1);
    let found = records(snapshot, stream, first, u64::MAX).next();
    let sequence = |entry: Result<(Bytes, _)>| Ok(change::decode_key(&entry?.0)?.1);
    found.map(sequence).transpose()
}

fn remove_shards(group: &mut Group<'_>, stream: &StreamRecord, now: Timestamp) -> Result<usize> {
    let shared = group.shared();
    let snapshot = shared.kv.snapshot();
    let old = old_shards(shared, &snapshot, stream, now)?;
    for shard in &old {
        group.remove(Space::Meta, record::shard_key(stream.id, shard.start));
    }
    // An enabled stream keeps its open shard, so only a disabled one loses its last shard.
    let all = shards(&snapshot, stream.id, None, old.len() + 1)?.len() == old.len();
    if all && stream.disabled.is_some() {
        remove_stream(group, &snapshot, stream.id)?;
    }
    Ok(old.len())
}

fn remove_stream(group: &mut Group<'_>, snapshot: &Snapshot, stream: u32) -> Result<()> {
    let holds = record::holds_prefix(stream);
    for entry in snapshot.prefix(Space::Meta, &holds, Direction::Forward) {
        group.remove(Space::Meta, entry?.0);
    }
    group.remove(Space::Meta, record::trimmed_key(stream));
    group.remove(Space::Meta, record::stream_key(stream));
    group.on_commit(move |shared| shared.streams.remove(stream));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    use floe_store::env::ManualClock;
    use floe_store::op::{CreateTable, PutItem};
    use floe_store::table::{KeyKind, StreamView};
    use floe_store::{Engine, Env, Item, TableDef};

    use crate::response::block_on;
    use crate::streams::stream_arn;
    use crate::{LocalEngine, Options};

    #[test]
    fn consumer_registered_during_trimming_keeps_its_records() {
        let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
        let options = Options::new()
            .env(Env::manual(clock.clone(), 1))
            .background(false);
        let engine = LocalEngine::memory_with(options).unwrap();
        let orders = TableDef::builder("Orders", "id", KeyKind::N).stream(StreamView::KeysOnly);
        block_on(engine.create_table(CreateTable::from(orders.build().unwrap()))).unwrap();
        for n in 0..5 {
            let put = PutItem::new("Orders", Item::new().with("id", n));
            block_on(engine.write_item(put.into())).unwrap();
        }
        clock.advance(Duration::from_secs(48 * 3600));
        let committer = &engine.running.committer;
        let shared = &committer.shared;
        let stream = shared.streams.list().remove(0);
        let old = old_records(shared, &shared.kv.snapshot(), stream.id, engine.now()).unwrap();
        assert_eq!(old, [1, 2, 3, 4, 5]);
        let hold = HoldChanges {
            consumer: "reader".to_owned(),
            stream_arn: stream_arn(&shared.options, &stream),
            after_sequence: Some(change::sequence_text(2)),
        };
        hold_changes(committer, &hold).unwrap().wait().unwrap();
        let id = stream.id;
        let removed = committer
            .run(DiskUse::Frees, move |group| remove_records(group, id, &old))
            .wait();
        assert_eq!(removed, Ok(2));
        let snapshot = shared.kv.snapshot();
        assert_eq!(first_record(&snapshot, id), Ok(Some(3)));
        assert_eq!(trimmed_sequence(&snapshot, id), Ok(2));
    }
}
