//! Change streams as the commit path knows them: which there are, and where their next record goes.
//!
//! Reading them is for `changes.rs`. Here a commit gets the [sequence numbers](Position) of its change
//! records, all streams sharing one sequence without gaps, and opens and closes shards.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, RwLock};

use floe_store::Timestamp;
use floe_store::limits::SHARD_AGE_MAX;
use floe_store::table::StreamView;

use crate::kv::Bytes;
use crate::layout::record::{self, ShardRecord, StreamRecord};
use crate::locks::{read, write};
use crate::options::Options;

/// A shard takes at most so many records before another follows it.
pub(crate) const SHARD_RECORDS_MAX: u64 = 1_000_000;

/// All streams that can be read, those that were switched off included.
#[derive(Default)]
pub(crate) struct Streams {
    by_id: RwLock<BTreeMap<u32, Arc<StreamRecord>>>,
}

impl Streams {
    /// The stream of that id.
    pub(crate) fn get(&self, id: u32) -> Option<Arc<StreamRecord>> {
        read(&self.by_id).get(&id).cloned()
    }

    /// The stream of that resource name.
    pub(crate) fn by_arn(&self, options: &Options, arn: &str) -> Option<Arc<StreamRecord>> {
        let mut streams = self.list().into_iter();
        streams.find(|stream| stream_arn(options, stream) == arn)
    }

    /// All streams in the order in which they were made.
    pub(crate) fn list(&self) -> Vec<Arc<StreamRecord>> {
        read(&self.by_id).values().cloned().collect()
    }

    /// Publishes a stream, after a commit.
    pub(crate) fn insert(&self, stream: StreamRecord) {
        write(&self.by_id).insert(stream.id, Arc::new(stream));
    }

    /// Publishes other streams instead of these.
    pub(crate) fn replace(&self, other: &Self) {
        *write(&self.by_id) = std::mem::take(&mut *write(&other.by_id));
    }

    /// Takes a stream out, after a commit.
    pub(crate) fn remove(&self, id: u32) {
        write(&self.by_id).remove(&id);
    }

    /// The moment for the label of a new stream of a table: now, or the next that no stream of a table
    /// of that name has.
    pub(crate) fn free_moment(&self, table_name: &str, now: Timestamp) -> Timestamp {
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

/// The resource name of a stream.
pub(crate) fn stream_arn(options: &Options, stream: &StreamRecord) -> String {
    let table = options.table_arn(&stream.table_name);
    format!("{table}/stream/{}", stream_label(stream.created))
}

/// The label of a stream: when it was switched on, as `2015-05-20T20:51:10.252`.
pub(crate) fn stream_label(created: Timestamp) -> String {
    created.to_iso().trim_end_matches('Z').to_owned()
}

/// Where the next change record goes. Owned by the committer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Position {
    /// The last sequence number given out.
    pub(crate) sequence: u64,
    /// The open shard of each stream that is switched on.
    pub(crate) open: HashMap<u32, OpenShard>,
}

/// The shard that takes the records of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenShard {
    /// What is stored of it.
    pub(crate) shard: ShardRecord,
    /// The images that its stream holds.
    pub(crate) view: StreamView,
    /// How many records it got in this run.
    pub(crate) records: u64,
}

/// A change of `meta` that goes into the same commit.
pub(crate) type MetaWrite = (Vec<u8>, Bytes);

impl Position {
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

    /// Closes the open shard of a stream that is being switched off.
    pub(crate) fn close(&mut self, stream: u32) -> Option<MetaWrite> {
        let open = self.open.remove(&stream)?;
        Some(self.closed(stream, open.shard))
    }

    /// The sequence number for the next record of a stream, and what to write if that begins a shard.
    /// `None` for a stream that has no open shard.
    pub(crate) fn next(
        &mut self,
        stream: u32,
        now: Timestamp,
    ) -> Option<(u64, StreamView, Vec<MetaWrite>)> {
        let open = self.open.get(&stream).copied()?;
        let aged = now.since(open.shard.created) >= SHARD_AGE_MAX;
        let mut writes = Vec::new();
        // A shard without records is never closed for a child: the child would start where it did.
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
    fn labels_are_dates() {
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
