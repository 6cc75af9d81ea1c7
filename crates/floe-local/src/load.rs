//! Reads what the engine keeps in memory of a store: when it is opened, and when it is opened again after a failed commit.
//! [Tokens](crate::tokens) are read on the first opening alone, and stay when the store is opened again.

use std::sync::Arc;

use floe_store::Result;

use crate::catalog::{Catalog, Table};
use crate::jobs::Jobs;
use crate::kv::{Direction, Snapshot, Space};
use crate::layout::damaged;
use crate::layout::record::{self, Counts, Instance, ShardRecord, StreamRecord, TableRecord};
use crate::streams::{OpenShard, Position, Streams};

/// What the engine keeps in memory of a store.
pub(crate) struct Loaded {
    /// The tables.
    pub(crate) catalog: Catalog,
    /// The change streams.
    pub(crate) streams: Streams,
    /// The work on tables that is not done.
    pub(crate) jobs: Jobs,
    /// What the committer starts with.
    pub(crate) state: CommitState,
}

/// What the committer alone knows and changes.
#[derive(Clone, Debug)]
pub(crate) struct CommitState {
    /// The ids given out.
    pub(crate) instance: Instance,
    /// Where the next change record goes.
    pub(crate) position: Position,
}

impl Loaded {
    /// Reads all of it from one snapshot.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`](floe_store::Error::Storage) when it cannot be read.
    pub(crate) fn read(snapshot: &Snapshot) -> Result<Self> {
        let instance = snapshot.get(Space::Meta, record::INSTANCE_KEY)?;
        let instance = instance.ok_or_else(|| damaged("store without instance record"))?;
        let instance = Instance::decode(&instance)?;
        let catalog = load_catalog(snapshot)?;
        let (streams, position) = load_streams(snapshot)?;
        Ok(Self {
            catalog,
            streams,
            jobs: Jobs::load(snapshot)?,
            state: CommitState { instance, position },
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

fn load_streams(snapshot: &Snapshot) -> Result<(Streams, Position)> {
    let streams = Streams::default();
    let mut position = Position::default();
    if let Some(bytes) = snapshot.get(Space::Meta, record::SEQUENCE_KEY)? {
        position.sequence = record::decode_sequence(&bytes)?;
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
            position.open.insert(stream.id, open);
        }
        streams.insert(stream);
    }
    Ok((streams, position))
}
