//! Reads the state that the engine caches in memory, when a store is opened or reopened after a failed commit.
//! [Tokens](crate::tokens) are read only on opening, and are kept when the store is reopened.

use std::sync::Arc;

use floe_store::Result;

use crate::catalog::{Catalog, Table};
use crate::jobs::Jobs;
use crate::kv::{Direction, Snapshot, Space};
use crate::layout::damaged;
use crate::layout::record::{self, Counts, Instance, ShardRecord, StreamRecord, TableRecord};
use crate::streams::{OpenShard, SequenceAllocator, Streams};

/// The state that the engine caches in memory.
pub(crate) struct LoadedState {
    /// The tables.
    pub(crate) catalog: Catalog,
    /// The change streams.
    pub(crate) streams: Streams,
    /// Unfinished jobs on tables.
    pub(crate) jobs: Jobs,
    /// The initial state of the committer.
    pub(crate) state: CommitState,
}

/// State that only the committer reads and changes.
#[derive(Clone, Debug)]
pub(crate) struct CommitState {
    /// The ids assigned so far.
    pub(crate) instance: Instance,
    /// The position of the next change record.
    pub(crate) sequences: SequenceAllocator,
}

impl LoadedState {
    /// Reads all of it from one snapshot.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`](floe_store::Error::Storage) if it cannot be read.
    pub(crate) fn read(snapshot: &Snapshot) -> Result<Self> {
        let instance = snapshot.get(Space::Meta, record::INSTANCE_KEY)?;
        let instance = instance.ok_or_else(|| damaged("store without instance record"))?;
        let instance = Instance::decode(&instance)?;
        let catalog = load_catalog(snapshot)?;
        let (streams, sequences) = load_streams(snapshot)?;
        Ok(Self {
            catalog,
            streams,
            jobs: Jobs::load(snapshot)?,
            state: CommitState {
                instance,
                sequences,
            },
        })
    }
}

fn load_catalog(snapshot: &Snapshot) -> Result<Catalog> {
    let catalog = Catalog::default();
    for entry in snapshot.prefix(Space::Meta, record::TABLES_PREFIX, Direction::Forward) {
        let record = TableRecord::decode(&entry?.1)?;
        let counts = snapshot.get(Space::Meta, &record::counts_key(record.id))?;
        let counts = counts.map(|bytes| Counts::decode(&bytes)).transpose()?;
        catalog.insert(Arc::new(Table::new(record, counts.unwrap_or_default())));
    }
    Ok(catalog)
}

fn load_streams(snapshot: &Snapshot) -> Result<(Streams, SequenceAllocator)> {
    let streams = Streams::default();
    let mut sequences = SequenceAllocator::default();
    if let Some(bytes) = snapshot.get(Space::Meta, record::SEQUENCE_KEY)? {
        sequences.sequence = record::decode_sequence(&bytes)?;
    }
    for entry in snapshot.prefix(Space::Meta, record::STREAMS_PREFIX, Direction::Forward) {
        let stream = StreamRecord::decode(&entry?.1)?;
        if stream.disabled.is_none() {
            let prefix = record::shards_prefix(stream.id);
            let mut shards = snapshot.prefix(Space::Meta, &prefix, Direction::Backward);
            let newest = shards
                .next()
                .ok_or_else(|| damaged("stream without shard"))?;
            let open = OpenShard {
                shard: ShardRecord::decode(&newest?.1)?,
                view: stream.view,
                records: 0,
            };
            sequences.open.insert(stream.id, open);
        }
        streams.insert(stream);
    }
    Ok((streams, sequences))
}
