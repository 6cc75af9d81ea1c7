//! A group: the writes of the requests that are committed together, and the state as those requests see it.
//!
//! A request reads through its group, so it sees what the requests before it wrote. The [committer](crate::commit) runs
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
use crate::streams::Position;
use crate::tokens::TokenMoment;

/// A group takes no further request once it writes so many bytes.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// Whether a write stores more than it removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It stores something.
    Grows,
    /// It only removes, and is accepted when the disk is almost full.
    Frees,
}

/// Something to do when a group is durable.
type OnCommit = Box<dyn FnOnce(&Shared) + Send>;

/// The writes of the requests that are committed together, and the state as they see it.
pub(crate) struct Group<'a> {
    shared: &'a Shared,
    state: &'a mut CommitState,
    now: Timestamp,
    batch: Batch,
    /// Where in the batch the write of a key is.
    written: HashMap<(Space, Bytes), usize>,
    /// How much is in the tables that were written to.
    counts: HashMap<u32, (Arc<Table>, Counts)>,
    /// What the item collections weigh that were looked at.
    collections: HashMap<(Space, Bytes), u64>,
    sequence_before: u64,
    token_moment: TokenMoment,
    after: Vec<OnCommit>,
}

impl<'a> Group<'a> {
    /// An empty group, at the present moment.
    pub(crate) fn new(shared: &'a Shared, state: &'a mut CommitState) -> Self {
        let now = shared.options.env.now();
        Self {
            now,
            token_moment: lock(&shared.token_clock).read(&shared.options.env),
            batch: Batch::default(),
            written: HashMap::new(),
            counts: HashMap::new(),
            collections: HashMap::new(),
            sequence_before: state.position.sequence,
            after: Vec::new(),
            shared,
            state,
        }
    }

    /// What the group reads and changes.
    pub(crate) const fn shared(&self) -> &'a Shared {
        self.shared
    }

    /// The moment of the group.
    pub(crate) const fn now(&self) -> Timestamp {
        self.now
    }

    /// The moment of the group as [tokens](crate::tokens) count it.
    pub(crate) const fn token_moment(&self) -> TokenMoment {
        self.token_moment
    }

    /// Where the next change record goes.
    pub(crate) const fn position(&mut self) -> &mut Position {
        &mut self.state.position
    }

    /// An id that was never given out before. The group is to write something, so that it never is again.
    pub(crate) fn new_id(&mut self) -> u32 {
        let id = self.state.instance.next_id;
        self.state.instance.next_id += 1;
        let instance = self.state.instance.encode();
        self.put(Space::Meta, record::INSTANCE_KEY, instance);
        id
    }

    /// The value of a key as the requests so far have left it.
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        if !self.batch.is_empty() {
            // Inline up to twenty bytes, an allocation for longer keys.
            let probe = (space, Bytes::from(key));
            if let Some(write) = self.written.get(&probe) {
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
        match self.written.entry((space, space.key(key))) {
            Entry::Occupied(entry) => self.batch.replace(*entry.get(), value),
            Entry::Vacant(entry) => {
                let key = entry.key().1.clone();
                entry.insert(self.batch.len());
                self.batch.push(space, key, value);
            }
        }
    }

    /// How much is in a table, to be changed with what the group writes to it.
    pub(crate) fn counts(&mut self, table: &Arc<Table>) -> &mut Counts {
        let entry = self.counts.entry(table.id());
        let (_, counts) = entry.or_insert_with(|| (table.clone(), table.counts()));
        counts
    }

    /// What the item collection of this key weighs. It is remembered, so that it can be changed and
    /// returned without another read.
    pub(crate) fn load_collection(&mut self, table: &Table, key: &Bytes) -> Result<u64> {
        let name = (table.space(), key.clone());
        if let Some(weight) = self.collections.get(&name) {
            return Ok(*weight);
        }
        let stored = self.shared.kv.get_latest(table.space(), key)?;
        let weight = stored.map_or(Ok(0), |bytes| record::decode_weight(&bytes))?;
        self.collections.insert(name, weight);
        Ok(weight)
    }

    /// Changes what an item collection weighs that was loaded.
    pub(crate) fn grow_collection(&mut self, table: &Table, key: Bytes, bytes: i64) {
        let weight = self.loaded_collection(table, &key);
        let weight = weight.unwrap_or(0).saturating_add_signed(bytes);
        self.collections
            .insert((table.space(), key.clone()), weight);
        match weight {
            0 => self.remove(table.space(), key),
            _ => self.put(table.space(), key, record::encode_weight(weight)),
        }
    }

    /// What the item collection of this key weighs, if it was loaded.
    pub(crate) fn loaded_collection(&self, table: &Table, key: &Bytes) -> Option<u64> {
        let name = (table.space(), key.clone());
        self.collections.get(&name).copied()
    }

    /// Does this when the group is durable, before anybody is answered.
    pub(crate) fn on_commit(&mut self, effect: impl FnOnce(&Shared) + Send + 'static) {
        self.after.push(Box::new(effect));
    }

    /// Whether it has grown so far that the next request should wait for the next group.
    pub(crate) fn is_full(&self) -> bool {
        self.batch.bytes() >= GROUP_BYTES_MAX
    }

    /// How many keys the group writes.
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
        let sequence = self.state.position.sequence;
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
        for effect in self.after {
            effect(self.shared);
        }
        Ok(())
    }
}
