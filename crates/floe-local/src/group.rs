//! A group: the writes of requests that are committed together, and the state that those requests see.
//!
//! Requests read through the group, so each one sees the writes of those before it. The [committer](crate::commit) runs
//! the requests and commits the group.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use floe_store::{Result, Timestamp};

use crate::catalog::Table;
use crate::kv::{Batch, Bytes, Space};
use crate::layout::record::{self, Counts};
use crate::load::CommitState;
use crate::locks::lock;
use crate::shared::Shared;
use crate::streams::SequenceAllocator;
use crate::tokens::TokenTime;

/// A group accepts no further requests once its writes reach this size.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// Whether a write adds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskUse {
    /// It adds data.
    Grows,
    /// It only removes data, and is accepted when the disk is almost full.
    Frees,
}

/// An effect to apply once a group is durable.
type OnCommit = Box<dyn FnOnce(&Shared) + Send>;

/// The writes of requests that are committed together, and the state that those requests see.
pub(crate) struct Group<'a> {
    shared: &'a Shared,
    state: &'a mut CommitState,
    now: Timestamp,
    batch: Batch,
    /// The position of a key's write in the batch.
    write_indexes: HashMap<(Space, Bytes), usize>,
    /// Counts of the tables that were written to.
    counts: HashMap<u32, (Arc<Table>, Counts)>,
    /// Sizes of the item collections that were loaded.
    collections: HashMap<(Space, Bytes), u64>,
    sequence_before: u64,
    token_time: TokenTime,
    on_commit_effects: Vec<OnCommit>,
}

impl<'a> Group<'a> {
    /// Creates an empty group at the current time.
    pub(crate) fn new(shared: &'a Shared, state: &'a mut CommitState) -> Self {
        let now = shared.options.env.now();
        Self {
            now,
            token_time: lock(&shared.token_clock).read(&shared.options.env),
            batch: Batch::default(),
            write_indexes: HashMap::new(),
            counts: HashMap::new(),
            collections: HashMap::new(),
            sequence_before: state.sequences.sequence,
            on_commit_effects: Vec::new(),
            shared,
            state,
        }
    }

    /// The state that the group reads and changes.
    pub(crate) const fn shared(&self) -> &'a Shared {
        self.shared
    }

    /// The time of the group.
    pub(crate) const fn now(&self) -> Timestamp {
        self.now
    }

    /// The time of the group as [tokens](crate::tokens) measure it.
    pub(crate) const fn token_time(&self) -> TokenTime {
        self.token_time
    }

    /// The position of the next change record.
    pub(crate) const fn sequences(&mut self) -> &mut SequenceAllocator {
        &mut self.state.sequences
    }

    /// Returns an id that was never used before. The group must write something, or the id could be used again.
    pub(crate) fn new_id(&mut self) -> u32 {
        let id = self.state.instance.next_id;
        self.state.instance.next_id += 1;
        let instance = self.state.instance.encode();
        self.put(Space::Meta, record::INSTANCE_KEY, instance);
        id
    }

    /// Returns the value of a key after the requests so far.
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        if !self.batch.is_empty() {
            // Keys of up to twenty bytes are stored inline; longer ones need an allocation.
            let probe = (space, Bytes::from(key));
            if let Some(write) = self.write_indexes.get(&probe) {
                return Ok(self.batch.value(*write).cloned());
            }
        }
        self.shared.kv.get_latest(space, key)
    }

    /// Sets a key to a value.
    pub(crate) fn put(&mut self, space: Space, key: impl AsRef<[u8]>, value: impl Into<Bytes>) {
        self.write(space, key.as_ref(), Some(value.into()));
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, space: Space, key: impl AsRef<[u8]>) {
        self.write(space, key.as_ref(), None);
    }

    /// Sets a key that no other request of the group writes or reads.
    pub(crate) fn put_once(
        &mut self,
        space: Space,
        key: impl AsRef<[u8]>,
        value: impl Into<Bytes>,
    ) {
        self.batch.put(space, key, value);
    }

    fn write(&mut self, space: Space, key: &[u8], value: Option<Bytes>) {
        match self.write_indexes.entry((space, space.key(key))) {
            Entry::Occupied(entry) => self.batch.replace(*entry.get(), value),
            Entry::Vacant(entry) => {
                let key = entry.key().1.clone();
                entry.insert(self.batch.len());
                self.batch.push(space, key, value);
            }
        }
    }

    /// The counts of a table, to be updated with the writes of the group.
    pub(crate) fn counts(&mut self, table: &Arc<Table>) -> &mut Counts {
        let entry = self.counts.entry(table.id());
        let (_, counts) = entry.or_insert_with(|| (table.clone(), table.counts()));
        counts
    }

    /// Returns the size of the item collection with this key, and caches it so that it can be changed and returned
    /// without another read.
    pub(crate) fn load_collection(&mut self, table: &Table, key: &Bytes) -> Result<u64> {
        let name = (table.space(), key.clone());
        if let Some(size) = self.collections.get(&name) {
            return Ok(*size);
        }
        let stored = self.shared.kv.get_latest(table.space(), key)?;
        let size = stored.map_or(Ok(0), |bytes| record::decode_collection_size(&bytes))?;
        self.collections.insert(name, size);
        Ok(size)
    }

    /// Changes the size of a loaded item collection.
    pub(crate) fn grow_collection(&mut self, table: &Table, key: Bytes, bytes: i64) {
        let size = self.loaded_collection(table, &key);
        let size = size.unwrap_or(0).saturating_add_signed(bytes);
        self.collections.insert((table.space(), key.clone()), size);
        match size {
            0 => self.remove(table.space(), key),
            _ => self.put(table.space(), key, record::encode_collection_size(size)),
        }
    }

    /// The size of the item collection with this key, if it was loaded.
    pub(crate) fn loaded_collection(&self, table: &Table, key: &Bytes) -> Option<u64> {
        let name = (table.space(), key.clone());
        self.collections.get(&name).copied()
    }

    /// Runs `effect` once the group is durable, before the responses are sent.
    pub(crate) fn on_commit(&mut self, effect: impl FnOnce(&Shared) + Send + 'static) {
        self.on_commit_effects.push(Box::new(effect));
    }

    /// Whether the group is so large that the next request should go into another group.
    pub(crate) fn is_full(&self) -> bool {
        self.batch.bytes() >= GROUP_BYTES_MAX
    }

    /// Number of keys that the group writes.
    #[cfg(test)]
    pub(crate) fn writes(&self) -> usize {
        self.batch.len()
    }

    /// Makes the group durable with `commit`, which commits a batch, and then visible.
    pub(crate) fn commit(mut self, commit: impl FnOnce(Batch) -> Result<()>) -> Result<()> {
        let meta = Space::Meta;
        for (id, (_, counts)) in &self.counts {
            self.batch
                .put(meta, record::counts_key(*id), counts.encode());
        }
        let sequence = self.state.sequences.sequence;
        if sequence != self.sequence_before {
            let value = record::encode_sequence(sequence);
            self.batch.put(meta, record::SEQUENCE_KEY, value);
        }
        if !self.batch.is_empty() {
            commit(self.batch)?;
        }
        for (table, counts) in self.counts.into_values() {
            table.set_counts(counts);
        }
        for effect in self.on_commit_effects {
            effect(self.shared);
        }
        Ok(())
    }
}
