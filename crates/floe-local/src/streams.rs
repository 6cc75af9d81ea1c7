//! Change streams on the commit path: the list of streams, and the position of their next record.
//!
//! `changes.rs` reads streams. This module assigns [sequence numbers](SequenceAllocator) to the change records of a
//! commit (all streams share one sequence without gaps), and opens and closes shards.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, RwLock};

use floe_store::Timestamp;
use floe_store::limits::SHARD_AGE_MAX;
use floe_store::table::StreamView;

use crate::kv::Bytes;
use crate::layout::record::{self, ShardRecord, StreamRecord};
use crate::locks::{read, write};
use crate::options::Options;

/// Maximum number of records in a shard before it is followed by another one.
pub(crate) const SHARD_RECORDS_MAX: u64 = 1_000_000;

/// All readable streams, including disabled ones.
#[derive(Default)]
pub(crate) struct Streams {
    by_id: RwLock<BTreeMap<u32, Arc<StreamRecord>>>,
}

impl Streams {
    /// The stream with this id.
    pub(crate) fn get(&self, id: u32) -> Option<Arc<StreamRecord>> {
        read(&self.by_id).get(&id).cloned()
    }

    /// The stream with this ARN.
    pub(crate) fn by_arn(&self, options: &Options, arn: &str) -> Option<Arc<StreamRecord>> {
        let mut streams = self.list().into_iter();
        streams.find(|stream| stream_arn(options, stream) == arn)
    }

    /// All streams, in order of creation.
    pub(crate) fn list(&self) -> Vec<Arc<StreamRecord>> {
        read(&self.by_id).values().cloned().collect()
    }

    /// Publishes a stream, after a commit.
    pub(crate) fn insert(&self, stream: StreamRecord) {
        write(&self.by_id).insert(stream.id, Arc::new(stream));
    }

    /// Replaces all streams by those of `other`.
    pub(crate) fn replace(&self, other: &Self) {
        *write(&self.by_id) = std::mem::take(&mut *write(&other.by_id));
    }

    /// Removes a stream, after a commit.
    pub(crate) fn remove(&self, id: u32) {
        write(&self.by_id).remove(&id);
    }

    /// The creation time for a new stream of a table, from which its label is derived: now, or the earliest later time
    /// that differs from all streams of tables with this name.
    pub(crate) fn unique_creation_time(&self, table_name: &str, now: Timestamp) -> Timestamp {
        let streams = self.list();
        let taken = streams
            .iter()
            .filter(|stream| stream.table_name == table_name);
        let last = taken.map(|stream| stream.created).max();
        match last {
            Some(last) if last >= now => Timestamp::from_millis(last.as_millis() + 1),
            _ => now,
        }
    }
}

/// The ARN of a stream.
pub(crate) fn stream_arn(options: &Options, stream: &StreamRecord) -> String {
    let table = options.table_arn(&stream.table_name);
    format!("{table}/stream/{}", stream_label(stream.created))
}

/// The label of a stream: when it was enabled, as `2015-05-20T20:51:10.252`.
pub(crate) fn stream_label(created: Timestamp) -> String {
    created.to_iso().trim_end_matches('Z').to_owned()
}

/// Assigns sequence numbers and shards to change records. Owned by the committer.
#[derive(Clone, Debug, Default)]
pub(crate) struct SequenceAllocator {
    /// The latest sequence number that was assigned.
    pub(crate) sequence: u64,
    /// The open shard of each enabled stream.
    pub(crate) open: HashMap<u32, OpenShard>,
}

/// The shard that receives the records of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenShard {
    /// The stored record of the shard.
    pub(crate) shard: ShardRecord,
    /// The images that the stream contains.
    pub(crate) view: StreamView,
    /// Number of records added since the store was opened.
    pub(crate) records: u64,
}

/// A write to `meta` that belongs to the same commit.
pub(crate) type MetaWrite = (Vec<u8>, Bytes);

impl SequenceAllocator {
    /// Opens the first shard of a stream.
    pub(crate) fn open(&mut self, stream: &StreamRecord, now: Timestamp) -> MetaWrite {
        let shard = ShardRecord {
            start: self.sequence + 1,
            created: now,
            end: None,
            parent: None,
            parent_created: None,
        };
        self.set_open(stream.id, stream.view, shard)
    }

    /// Closes the open shard of a stream that is being disabled.
    pub(crate) fn close(&mut self, stream: u32) -> Option<MetaWrite> {
        let open = self.open.remove(&stream)?;
        Some(self.closed(stream, open.shard))
    }

    /// Returns the sequence number for the next record of a stream, and the writes needed if that starts a new shard.
    /// `None` for a stream without an open shard.
    pub(crate) fn next(
        &mut self,
        stream: u32,
        now: Timestamp,
    ) -> Option<(u64, StreamView, Vec<MetaWrite>)> {
        let open = self.open.get(&stream).copied()?;
        let aged = now.since(open.shard.created) >= SHARD_AGE_MAX;
        let mut writes = Vec::new();
        // A shard without records is never closed in favor of a child, because the child would have the same start.
        let used = self.sequence >= open.shard.start;
        if used && (aged || open.records >= SHARD_RECORDS_MAX) {
            writes.push(self.closed(stream, open.shard));
            let child = ShardRecord {
                start: self.sequence + 1,
                created: now,
                end: None,
                parent: Some(open.shard.start),
                parent_created: Some(open.shard.created),
            };
            writes.push(self.set_open(stream, open.view, child));
        }
        self.sequence += 1;
        if let Some(open) = self.open.get_mut(&stream) {
            open.records += 1;
        }
        Some((self.sequence, open.view, writes))
    }

    fn closed(&self, stream: u32, shard: ShardRecord) -> MetaWrite {
        let closed = ShardRecord {
            end: Some(self.sequence.max(shard.start)),
            ..shard
        };
        (
            record::shard_key(stream, shard.start),
            closed.encode().into(),
        )
    }

    fn set_open(&mut self, stream: u32, view: StreamView, shard: ShardRecord) -> MetaWrite {
        let open = OpenShard {
            shard,
            view,
            records: 0,
        };
        self.open.insert(stream, open);
        (
            record::shard_key(stream, shard.start),
            shard.encode().into(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_label_is_an_iso_date() {
        for (millis, label) in [
            (0, "1970-01-01T00:00:00.000"),
            (951_782_399_999, "2000-02-28T23:59:59.999"),
            (951_782_400_000, "2000-02-29T00:00:00.000"),
            (951_868_800_000, "2000-03-01T00:00:00.000"),
            (1_432_155_070_252, "2015-05-20T20:51:10.252"),
            (4_102_444_799_000, "2099-12-31T23:59:59.000"),
        ] {
            assert_eq!(stream_label(Timestamp::from_millis(millis)), label);
        }
    }
}
