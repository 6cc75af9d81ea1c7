//! What the cache holds: items by table and key, and which keys were written when.
//!
//! Nothing here waits or asks anybody: it stands behind one lock, which is held for a few lookups.
//!
//! # Why no read can bring back what a write has replaced
//!
//! Everything that happens takes a [`Turn`]: the beginning of a read, the end of a write. A slot remembers
//! the turn of the last write of its key, and a read may fill the slot only if it began at a later turn and
//! no write is on its way. A slot that is pushed out takes that memory with it, so the turn of its write
//! becomes the floor below which no read fills anything. Of writes that overlap nobody knows which came
//! last, so they leave nothing behind.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use floe_store::size::item_size;
use floe_store::{Item, Name, Timestamp};

use super::{CacheOptions, CacheStats};

/// About what a slot takes in memory besides its key and its item, so that many small ones count as well.
pub(super) const SLOT_BYTES: usize = 256;

/// One slot may take this part of the bound.
const SLOT_SHARE: usize = 8;

/// The place of an event among all that the cache was told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Turn(u64);

/// A read of the engine below.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    begun: Moment,
    pub(super) consistent: bool,
}

/// What the cache answers.
#[derive(Debug, PartialEq)]
pub(super) enum Look {
    /// The item, or that there is none.
    Hit(Option<Item>),
    /// Ask the engine. What this process wrote lately is to be read consistently, since the cache has
    /// nothing to show for it.
    Miss { written_lately: bool },
}

/// What is known of an item: the item, or that there is none.
#[derive(Clone, Debug)]
pub(super) struct Found {
    item: Option<Item>,
    bytes: usize,
}

impl Found {
    pub(super) const ABSENT: Self = Self {
        item: None,
        bytes: 0,
    };

    /// A copy of an item, packed so that further copies share it; `None` if it is too large to keep.
    pub(super) fn item(item: &Item, options: CacheOptions) -> Option<Self> {
        let bytes = item_size(item);
        if bytes > options.bytes_max / SLOT_SHARE {
            return None;
        }
        let mut packed = Vec::with_capacity(bytes);
        item.pack_into(&mut packed);
        // What cannot be packed no engine takes either.
        let item = Some(Item::from_packed(&packed)?);
        Some(Self { item, bytes })
    }
}

/// All that the cache holds.
#[derive(Default)]
pub(super) struct Shelf {
    ttl: Duration,
    bytes_max: usize,
    turn: Turn,
    /// Reads that began before it fill nothing.
    floor: Turn,
    tables: HashMap<Arc<str>, Table>,
    /// What may be pushed out, the least recently used first.
    order: BTreeMap<u64, (Arc<str>, Arc<Item>)>,
    uses: u64,
    stats: CacheStats,
}

#[derive(Default)]
struct Table {
    /// The names of the key attributes, in the order of names.
    key_names: Option<Arc<[Name]>>,
    /// Whether the engine would not tell what the key is.
    untold: bool,
    slots: HashMap<Arc<Item>, Slot>,
}

#[derive(Default)]
struct Slot {
    /// Its place in the order. While a write is on its way it has none, so that it is not pushed out.
    used: Option<u64>,
    bytes: usize,
    /// How many writes are on their way.
    writes: usize,
    /// Whether those writes met each other, or a change of the table.
    overlapped: bool,
    /// When it was written last.
    written: Option<Moment>,
    /// What is known, and as of when.
    kept: Option<(Found, Moment)>,
}

#[derive(Clone, Copy, Debug)]
struct Moment {
    turn: Turn,
    at: Timestamp,
}

impl Slot {
    fn written_lately(&self, now: Timestamp, ttl: Duration) -> bool {
        self.writes > 0 || self.written.is_some_and(|w| is_young(w.at, now, ttl))
    }

    /// Whether what a read found may be kept.
    fn takes(&self, read: Read, ttl: Duration) -> bool {
        let kept = self.kept.as_ref().map(|(_, as_of)| *as_of);
        let mut known = self.written.into_iter().chain(kept);
        let is_newer = known.all(|moment| moment.turn <= read.begun.turn);
        // A replica may still lack what was written before the read began.
        let sees_writes = read.consistent || !self.written_lately(read.begun.at, ttl);
        self.writes == 0 && is_newer && sees_writes
    }

    const fn is_empty(&self) -> bool {
        self.writes == 0 && self.written.is_none() && self.kept.is_none()
    }
}

/// Whether less than `ttl` lies between two moments. A clock that was set back makes nothing live longer.
fn is_young(at: Timestamp, now: Timestamp, ttl: Duration) -> bool {
    now.since(at).max(at.since(now)) < ttl
}

impl Shelf {
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

    /// A read begins.
    pub(super) fn begin_read(&mut self, at: Timestamp, consistent: bool) -> Read {
        let turn = self.next_turn();
        let begun = Moment { turn, at };
        Read { begun, consistent }
    }

    /// Answers an eventual read, if it can.
    pub(super) fn look(&mut self, table: &str, key: &Item, now: Timestamp) -> Look {
        let ttl = self.ttl;
        let slot = self.slot_mut(table, key);
        let kept = slot.as_deref().and_then(|slot| slot.kept.as_ref());
        if let Some((found, _)) = kept.filter(|(_, as_of)| is_young(as_of.at, now, ttl)) {
            let item = found.item.clone();
            self.touch(table, key);
            self.stats.hits += 1;
            return Look::Hit(item);
        }
        let written_lately = slot.is_some_and(|slot| slot.written_lately(now, ttl));
        self.stats.misses += 1;
        Look::Miss { written_lately }
    }

    /// Whether anything is known of the key, be it only that it was written.
    pub(super) fn knows(&self, table: &str, key: &Item) -> bool {
        let table = self.tables.get(table);
        table.is_some_and(|table| table.slots.contains_key(key))
    }

    /// Keeps what a read has found, unless something newer is known. `None` is what cannot be kept.
    pub(super) fn fill(&mut self, read: Read, table: &str, key: &Item, found: Option<Found>) {
        self.confirm_key(table, key, true);
        let slot = self.tables.get(table).and_then(|t| t.slots.get(key));
        let is_welcome = slot.is_none_or(|slot| slot.takes(read, self.ttl));
        if read.begun.turn < self.floor || !is_welcome {
            return;
        }
        let (key, mut slot) = self.take(table, key);
        slot.kept = found.map(|found| (found, read.begun));
        self.put_back(table, key, slot);
    }

    /// A write is about to be sent. Each must be [ended](Self::end_write), whatever becomes of it.
    pub(super) fn begin_write(&mut self, table: &str, key: &Item) {
        let (key, mut slot) = self.take(table, key);
        slot.overlapped |= slot.writes > 0;
        slot.writes += 1;
        slot.kept = None;
        self.put_back(table, key, slot);
    }

    /// A write has ended, and this is the item now, as far as is known.
    pub(super) fn end_write(
        &mut self,
        table: &str,
        key: &Item,
        now: Timestamp,
        found: Option<Found>,
    ) {
        let turn = self.next_turn();
        let written = Moment { turn, at: now };
        let (key, mut slot) = self.take(table, key);
        slot.writes = slot.writes.saturating_sub(1);
        slot.written = Some(written);
        let found = found.filter(|_| !slot.overlapped);
        slot.kept = found.map(|found| (found, written));
        slot.overlapped &= slot.writes > 0;
        self.put_back(table, key, slot);
    }

    /// Forgets an item that has turned out to be another than was thought. It is next read as if this
    /// process had written it: a replica may be as far behind as the cache was.
    pub(super) fn doubt(&mut self, table: &str, key: &Item, now: Timestamp) {
        self.begin_write(table, key);
        self.end_write(table, key, now, None);
    }

    /// Forgets all of a table.
    pub(super) fn drop_table(&mut self, name: &str) {
        self.floor = self.next_turn();
        let Some(table) = self.tables.get_mut(name) else {
            return;
        };
        table.key_names = None;
        table.untold = false;
        let keys: Vec<Arc<Item>> = table.slots.keys().cloned().collect();
        for key in keys {
            let (key, mut slot) = self.take(name, &key);
            if slot.writes > 0 {
                slot.overlapped = true;
                self.put_back(name, key, slot);
            }
        }
        self.tidy(name);
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        let names: Vec<Arc<str>> = self.tables.keys().cloned().collect();
        for name in names {
            self.drop_table(&name);
        }
        // Tables of which nothing is known yet may be being read.
        self.floor = self.next_turn();
    }

    /// The names of the key attributes of a table, if known.
    pub(super) fn key_names(&self, table: &str) -> Option<Arc<[Name]>> {
        self.tables.get(table)?.key_names.clone()
    }

    /// Whether there is no use in asking the engine for the key of the table.
    pub(super) fn is_settled(&self, table: &str) -> bool {
        let table = self.tables.get(table);
        table.is_some_and(|table| table.key_names.is_some() || table.untold)
    }

    /// The engine would not tell what the key of the table is.
    pub(super) fn leave_untold(&mut self, table: &str) {
        self.table_mut(table).untold = true;
    }

    /// The table has this key. If it was thought to have another, it is another table.
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

    /// The engine took a key for one of the table. An `exact` one came from the caller, others were made
    /// of what is known of the table.
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

    fn next_turn(&mut self) -> Turn {
        self.turn.0 += 1;
        self.turn
    }

    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// The name of a table, shared with what is known of it.
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
        if let Some(place) = used.and_then(|used| self.order.remove(&used)) {
            self.order.insert(now, place);
        }
    }

    /// Takes the slot of a key out, to be changed and [put back](Self::put_back); an empty one if there is
    /// none.
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
            self.lose(&slot);
            self.tidy(table);
            return;
        }
        self.stats.bytes += slot.bytes;
        self.stats.items += usize::from(slot.kept.is_some());
        slot.used = (slot.writes == 0).then(|| self.next_use());
        if let Some(used) = slot.used {
            let place = (self.shared_name(table), key.clone());
            self.order.insert(used, place);
        }
        self.table_mut(table).slots.insert(key, slot);
        self.shrink();
    }

    /// Pushes out the least recently used until the rest is within the bound.
    fn shrink(&mut self) {
        while self.stats.bytes > self.bytes_max
            && let Some((_, (table, key))) = self.order.pop_first()
        {
            let (_, slot) = self.take(&table, &key);
            self.lose(&slot);
            self.tidy(&table);
        }
    }

    /// A slot is no longer remembered: what it knew of writes goes into the floor.
    fn lose(&mut self, slot: &Slot) {
        if let Some(written) = slot.written {
            self.floor = self.floor.max(written.turn);
        }
    }

    /// Forgets a table of which nothing is known.
    fn tidy(&mut self, name: &str) {
        let is_idle =
            |table: &Table| table.slots.is_empty() && table.key_names.is_none() && !table.untold;
        if self.tables.get(name).is_some_and(is_idle) {
            self.tables.remove(name);
        }
    }
}

#[cfg(test)]
mod tests;
