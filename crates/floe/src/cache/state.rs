//! The state of the cache: items by table and key, and when each key was last written.
//!
//! Nothing here waits or sends requests: the state is behind one lock, which is held for a few lookups.
//!
//! # Why no read restores what a write has replaced
//!
//! The beginning of each read and the end of each write get a [`Sequence`] number. A slot stores that of the last write
//! of its key, and a read may fill the slot only if it began later and no write is in flight. Evicting a slot loses that
//! number, so it becomes the floor: reads that began earlier fill nothing. The order of overlapping writes is unknown, so
//! they cache nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use floe_store::size::item_size;
use floe_store::{Item, Name, Timestamp};

use super::{CacheOptions, CacheStats};

/// Approximate memory overhead of a slot besides its key and item, so that many small slots count as well.
pub(super) const SLOT_BYTES: usize = 256;

/// A slot may take at most this fraction of the maximum size.
const SLOT_SHARE: usize = 8;

/// The position of a read or write in the order of all reads and writes of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Sequence(u64);

/// A read of the engine whose result may be cached.
#[derive(Clone, Copy, Debug)]
pub(super) struct EngineRead {
    begun: Timepoint,
    pub(super) consistent: bool,
}

/// The result of a lookup.
#[derive(Debug, PartialEq)]
pub(super) enum Lookup {
    /// The item, or that there is none.
    Hit(Option<Item>),
    /// The engine must be asked. A key that this process wrote recently must be read consistently, because a replica may
    /// not have the write yet.
    Miss { written_recently: bool },
}

/// A cached item, or the absence of one.
#[derive(Clone, Debug)]
pub(super) struct CachedItem {
    item: Option<Item>,
    bytes: usize,
}

impl CachedItem {
    pub(super) const ABSENT: Self = Self {
        item: None,
        bytes: 0,
    };

    /// A packed copy of an item, which further copies share; `None` if it is too large to cache.
    pub(super) fn item(item: &Item, options: CacheOptions) -> Option<Self> {
        let bytes = item_size(item);
        if bytes > options.bytes_max / SLOT_SHARE {
            return None;
        }
        let mut packed = Vec::with_capacity(bytes);
        item.pack_into(&mut packed);
        // An item that cannot be packed is rejected by every engine.
        let item = Some(Item::from_packed(&packed)?);
        Some(Self { item, bytes })
    }
}

/// The state of a cache.
#[derive(Default)]
pub(super) struct CacheState {
    ttl: Duration,
    bytes_max: usize,
    sequence: Sequence,
    /// Reads that began before this fill nothing.
    floor: Sequence,
    tables: HashMap<Arc<str>, Table>,
    /// The slots that may be evicted, the least recently used first.
    order: BTreeMap<u64, (Arc<str>, Arc<Item>)>,
    uses: u64,
    stats: CacheStats,
}

#[derive(Default)]
struct Table {
    /// The names of the key attributes, in the order of names.
    key_names: Option<Arc<[Name]>>,
    /// Whether the engine failed to describe the key.
    key_unavailable: bool,
    slots: HashMap<Arc<Item>, Slot>,
}

#[derive(Default)]
struct Slot {
    /// Its key in `order`. `None` while a write is in flight, so that it is not evicted.
    used: Option<u64>,
    bytes: usize,
    /// Writes in flight.
    writes: usize,
    /// Whether those writes overlapped with each other or with a change of the table.
    overlapped: bool,
    /// When it was written last.
    written: Option<Timepoint>,
    /// What is cached, and as of when.
    kept: Option<(CachedItem, Timepoint)>,
}

#[derive(Clone, Copy, Debug)]
struct Timepoint {
    sequence: Sequence,
    at: Timestamp,
}

impl Slot {
    fn written_recently(&self, now: Timestamp, ttl: Duration) -> bool {
        self.writes > 0 || self.written.is_some_and(|w| is_young(w.at, now, ttl))
    }

    /// Whether the result of a read may be cached.
    fn accepts(&self, read: EngineRead, ttl: Duration) -> bool {
        let kept = self.kept.as_ref().map(|(_, as_of)| *as_of);
        let mut known = self.written.into_iter().chain(kept);
        let is_newer = known.all(|point| point.sequence <= read.begun.sequence);
        // A replica may not have a write that ended before the read began.
        let sees_writes = read.consistent || !self.written_recently(read.begun.at, ttl);
        self.writes == 0 && is_newer && sees_writes
    }

    const fn is_empty(&self) -> bool {
        self.writes == 0 && self.written.is_none() && self.kept.is_none()
    }
}

/// Whether two times are less than `ttl` apart. A clock that was set back does not extend the lifetime of entries.
fn is_young(at: Timestamp, now: Timestamp, ttl: Duration) -> bool {
    now.since(at).max(at.since(now)) < ttl
}

impl CacheState {
    pub(super) fn new(options: CacheOptions) -> Self {
        Self {
            ttl: options.ttl,
            bytes_max: options.bytes_max,
            ..Self::default()
        }
    }

    pub(super) const fn stats(&self) -> CacheStats {
        self.stats
    }

    /// Begins a read.
    pub(super) fn begin_read(&mut self, at: Timestamp, consistent: bool) -> EngineRead {
        let sequence = self.next_sequence();
        let begun = Timepoint { sequence, at };
        EngineRead { begun, consistent }
    }

    /// Looks up a key for an eventual read.
    pub(super) fn lookup(&mut self, table: &str, key: &Item, now: Timestamp) -> Lookup {
        let ttl = self.ttl;
        let slot = self.slot_mut(table, key);
        let kept = slot.as_deref().and_then(|slot| slot.kept.as_ref());
        if let Some((found, _)) = kept.filter(|(_, as_of)| is_young(as_of.at, now, ttl)) {
            let item = found.item.clone();
            self.touch(table, key);
            self.stats.hits += 1;
            return Lookup::Hit(item);
        }
        let written_recently = slot.is_some_and(|slot| slot.written_recently(now, ttl));
        self.stats.misses += 1;
        Lookup::Miss { written_recently }
    }

    /// Whether there is a slot for the key, even if it only records a write.
    pub(super) fn contains(&self, table: &str, key: &Item) -> bool {
        let table = self.tables.get(table);
        table.is_some_and(|table| table.slots.contains_key(key))
    }

    /// Caches the result of a read, unless the slot is newer. `None` stands for an item that cannot be cached.
    pub(super) fn fill(
        &mut self,
        read: EngineRead,
        table: &str,
        key: &Item,
        found: Option<CachedItem>,
    ) {
        self.confirm_key(table, key, true);
        let slot = self.tables.get(table).and_then(|t| t.slots.get(key));
        let is_accepted = slot.is_none_or(|slot| slot.accepts(read, self.ttl));
        if read.begun.sequence < self.floor || !is_accepted {
            return;
        }
        let (key, mut slot) = self.take(table, key);
        slot.kept = found.map(|found| (found, read.begun));
        self.put_back(table, key, slot);
    }

    /// Begins a write. Each must be [ended](Self::end_write), whatever its outcome.
    pub(super) fn begin_write(&mut self, table: &str, key: &Item) {
        let (key, mut slot) = self.take(table, key);
        slot.overlapped |= slot.writes > 0;
        slot.writes += 1;
        slot.kept = None;
        self.put_back(table, key, slot);
    }

    /// Ends a write. `found` is the item after it, if known.
    pub(super) fn end_write(
        &mut self,
        table: &str,
        key: &Item,
        now: Timestamp,
        found: Option<CachedItem>,
    ) {
        let sequence = self.next_sequence();
        let written = Timepoint { sequence, at: now };
        let (key, mut slot) = self.take(table, key);
        slot.writes = slot.writes.saturating_sub(1);
        slot.written = Some(written);
        let found = found.filter(|_| !slot.overlapped);
        slot.kept = found.map(|found| (found, written));
        slot.overlapped &= slot.writes > 0;
        self.put_back(table, key, slot);
    }

    /// Invalidates an item that turned out to be stale. It is next read as if this process had written it: a replica
    /// may be as stale as the cache was.
    pub(super) fn invalidate(&mut self, table: &str, key: &Item, now: Timestamp) {
        self.begin_write(table, key);
        self.end_write(table, key, now, None);
    }

    /// Drops everything about a table.
    pub(super) fn drop_table(&mut self, name: &str) {
        self.floor = self.next_sequence();
        let Some(table) = self.tables.get_mut(name) else {
            return;
        };
        table.key_names = None;
        table.key_unavailable = false;
        let keys: Vec<Arc<Item>> = table.slots.keys().cloned().collect();
        for key in keys {
            let (key, mut slot) = self.take(name, &key);
            if slot.writes > 0 {
                slot.overlapped = true;
                self.put_back(name, key, slot);
            }
        }
        self.remove_idle_table(name);
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        let names: Vec<Arc<str>> = self.tables.keys().cloned().collect();
        for name in names {
            self.drop_table(&name);
        }
        // Reads of tables without an entry may be in flight.
        self.floor = self.next_sequence();
    }

    /// The names of the key attributes of a table, if known.
    pub(super) fn key_names(&self, table: &str) -> Option<Arc<[Name]>> {
        self.tables.get(table)?.key_names.clone()
    }

    /// Whether the key of the table is known or known to be unavailable.
    pub(super) fn is_key_resolved(&self, table: &str) -> bool {
        let table = self.tables.get(table);
        table.is_some_and(|table| table.key_names.is_some() || table.key_unavailable)
    }

    /// Records that the engine failed to describe the key of the table.
    pub(super) fn mark_key_unavailable(&mut self, table: &str) {
        self.table_mut(table).key_unavailable = true;
    }

    /// Records the key of a table. If it differs from the known one, the table was replaced.
    pub(super) fn learn_key<'n>(&mut self, table: &str, names: impl Iterator<Item = &'n Name>) {
        let mut names: Vec<Name> = names.cloned().collect();
        names.sort_unstable();
        let known = self.key_names(table);
        if known.as_deref() == Some(&names) {
            return;
        }
        if known.is_some() {
            self.drop_table(table);
        }
        self.table_mut(table).key_names = Some(names.into());
    }

    /// Records that the engine accepted a key of the table. An `exact` key came from the caller, others were derived from
    /// the known key attributes.
    pub(super) fn confirm_key(&mut self, table: &str, key: &Item, exact: bool) {
        let known = self.tables.get(table).and_then(|t| t.key_names.as_ref());
        let names = || key.iter().map(|(name, _)| name);
        if known.is_some_and(|known| known.iter().eq(names())) {
            return;
        }
        if exact {
            self.learn_key(table, names());
        } else {
            self.drop_table(table);
        }
    }

    fn next_sequence(&mut self) -> Sequence {
        self.sequence.0 += 1;
        self.sequence
    }

    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// The name of a table, shared with its entry.
    fn shared_name(&self, name: &str) -> Arc<str> {
        let known = self.tables.get_key_value(name);
        known.map_or_else(|| Arc::from(name), |(name, _)| name.clone())
    }

    fn table_mut(&mut self, name: &str) -> &mut Table {
        let name = self.shared_name(name);
        self.tables.entry(name).or_default()
    }

    fn slot_mut(&mut self, table: &str, key: &Item) -> Option<&mut Slot> {
        self.tables.get_mut(table)?.slots.get_mut(key)
    }

    fn touch(&mut self, table: &str, key: &Item) {
        let now = self.next_use();
        let slot = self.slot_mut(table, key);
        let used = slot.and_then(|slot| slot.used.replace(now));
        if let Some(entry) = used.and_then(|used| self.order.remove(&used)) {
            self.order.insert(now, entry);
        }
    }

    /// Removes the slot of a key, to be changed and [put back](Self::put_back). Returns an empty one if there is none.
    fn take(&mut self, table: &str, key: &Item) -> (Arc<Item>, Slot) {
        let slots = self.tables.get_mut(table).map(|table| &mut table.slots);
        let Some((key, slot)) = slots.and_then(|slots| slots.remove_entry(key)) else {
            return (Arc::new(key.clone()), Slot::default());
        };
        if let Some(used) = slot.used {
            self.order.remove(&used);
        }
        self.stats.bytes -= slot.bytes;
        self.stats.items -= usize::from(slot.kept.is_some());
        (key, slot)
    }

    fn put_back(&mut self, table: &str, key: Arc<Item>, mut slot: Slot) {
        let bytes_max = self.bytes_max / SLOT_SHARE;
        slot.bytes = SLOT_BYTES + item_size(&key);
        match &slot.kept {
            Some((found, _)) if slot.bytes + found.bytes <= bytes_max => slot.bytes += found.bytes,
            _ => slot.kept = None,
        }
        if slot.is_empty() || slot.writes == 0 && slot.bytes > bytes_max {
            self.raise_floor(&slot);
            self.remove_idle_table(table);
            return;
        }
        self.stats.bytes += slot.bytes;
        self.stats.items += usize::from(slot.kept.is_some());
        slot.used = (slot.writes == 0).then(|| self.next_use());
        if let Some(used) = slot.used {
            let entry = (self.shared_name(table), key.clone());
            self.order.insert(used, entry);
        }
        self.table_mut(table).slots.insert(key, slot);
        self.evict();
    }

    /// Evicts the least recently used slots until the maximum size is respected.
    fn evict(&mut self) {
        while self.stats.bytes > self.bytes_max
            && let Some((_, (table, key))) = self.order.pop_first()
        {
            let (_, slot) = self.take(&table, &key);
            self.raise_floor(&slot);
            self.remove_idle_table(&table);
        }
    }

    /// Raises the floor to the last write of a slot that is dropped.
    fn raise_floor(&mut self, slot: &Slot) {
        if let Some(written) = slot.written {
            self.floor = self.floor.max(written.sequence);
        }
    }

    /// Removes the entry of a table if it is empty.
    fn remove_idle_table(&mut self, name: &str) {
        let is_idle = |table: &Table| {
            table.slots.is_empty() && table.key_names.is_none() && !table.key_unavailable
        };
        if self.tables.get(name).is_some_and(is_idle) {
            self.tables.remove(name);
        }
    }
}

#[cfg(test)]
mod tests;
