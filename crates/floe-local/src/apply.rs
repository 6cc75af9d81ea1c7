//! The writes for a change of one item: the item, its index entries, its expiry entry, a change record, and the counters.
//!
//! There are two steps: [`ItemChange::prepare`] computes the change and may fail; [`ItemChange::write`] adds it to the
//! group and cannot fail. A request that changes several items prepares all of them before it writes the first.

use std::collections::HashMap;
use std::sync::Arc;

use floe_store::limits::ITEM_COLLECTION_BYTES_MAX;
use floe_store::op::{ChangeKind, ServiceIdentity};
use floe_store::table::IndexKind;
use floe_store::{Error, Item, Result};

use crate::catalog::Table;
use crate::group::Group;
use crate::indexes::{EntryChange, entry_changes};
use crate::kv::{Bytes, Space};
use crate::layout::key::{collection_key, expiry_key};
use crate::layout::record::Count;
use crate::layout::{change, damaged, item};
use crate::stored::StoredItem;

/// A computed change of an item, ready to be written.
pub(crate) struct ItemChange {
    table: Arc<Table>,
    key: Vec<u8>,
    value: Option<Bytes>,
    items: i64,
    bytes: i64,
    entries: Vec<EntryChange>,
    expiry: ExpiryChange,
    record: Option<RecordChange>,
    collection: Option<(Bytes, i64)>,
    identity: Option<ServiceIdentity>,
}

#[derive(Default)]
struct ExpiryChange {
    remove: Option<Vec<u8>>,
    put: Option<Vec<u8>>,
}

/// The content of a change record; the position in the stream is determined when it is written.
struct RecordChange {
    stream: u32,
    kind: ChangeKind,
    keys: Item,
    old: Option<Bytes>,
}

impl ItemChange {
    /// Computes the change of an item from `old` to `new`. `None` if nothing changes.
    ///
    /// # Errors
    ///
    /// [`Error::ItemCollectionSizeLimitExceeded`] if the item collection would exceed its size limit,
    /// [`Error::Storage`] if stored data cannot be read.
    pub(crate) fn prepare(
        group: &mut Group<'_>,
        table: &Arc<Table>,
        key: Vec<u8>,
        old: Option<&StoredItem>,
        new: Option<&StoredItem>,
        identity: Option<ServiceIdentity>,
    ) -> Result<Option<Self>> {
        let change = Self::prepare_unchecked(group, table, key, old, new, identity)?;
        let is_over = |change: &Self| {
            let grown = change.collection.as_ref().map_or(0, |(_, bytes)| *bytes);
            change.exceeds_limit(group, grown)
        };
        if change.as_ref().is_some_and(is_over) {
            return Err(Error::ItemCollectionSizeLimitExceeded);
        }
        Ok(change)
    }

    /// Like [`prepare`](Self::prepare), without the limit of the item collection, which the caller checks for several
    /// changes [together](Self::oversized).
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if stored data cannot be read.
    pub(crate) fn prepare_unchecked(
        group: &mut Group<'_>,
        table: &Arc<Table>,
        key: Vec<u8>,
        old: Option<&StoredItem>,
        new: Option<&StoredItem>,
        identity: Option<ServiceIdentity>,
    ) -> Result<Option<Self>> {
        if old.map(|old| &old.bytes) == new.map(|new| &new.bytes) {
            return Ok(None);
        }
        let is_stored = |key: &[u8]| Ok(group.get(table.space(), key)?.is_some());
        let entries = entry_changes(table, &key, old, new, is_stored)?;
        let mut change = Self {
            items: i64::from(new.is_some()) - i64::from(old.is_some()),
            bytes: signed(new.map_or(0, |new| new.size)) - signed(old.map_or(0, |old| old.size)),
            entries,
            expiry: expiry_change(table, &key, old, new),
            record: record_change(table, old, new)?,
            collection: None,
            value: new.map(|new| new.bytes.clone()),
            table: table.clone(),
            key,
            identity,
        };
        change.prepare_collection(group, old.or(new))?;
        Ok(Some(change))
    }

    /// Computes a change in a table without indexes, stream or expiry, which needs only the size of the old item.
    pub(crate) fn plain(
        table: &Arc<Table>,
        key: Vec<u8>,
        old: Option<&Bytes>,
        new: Option<(Bytes, usize)>,
    ) -> Result<Option<Self>> {
        if old == new.as_ref().map(|(bytes, _)| bytes) {
            return Ok(None);
        }
        let old_size = old.map_or(Ok(0), |bytes| item::decode_size(bytes))?;
        Ok(Some(Self {
            table: table.clone(),
            key,
            items: i64::from(new.is_some()) - i64::from(old.is_some()),
            bytes: signed(new.as_ref().map_or(0, |(_, size)| *size)) - signed(old_size),
            value: new.map(|(bytes, _)| bytes),
            entries: Vec::new(),
            expiry: ExpiryChange::default(),
            record: None,
            collection: None,
            identity: None,
        }))
    }

    /// Adds the growth of the item collection; collections are measured only in tables with local indexes.
    fn prepare_collection(
        &mut self,
        group: &mut Group<'_>,
        any: Option<&StoredItem>,
    ) -> Result<()> {
        let mut bytes = self.bytes;
        let mut has_local = false;
        for (index, record) in self.table.indexes() {
            if index.kind == IndexKind::Local {
                has_local = true;
                let entries = self.entries.iter().filter(|entry| entry.index == record.id);
                bytes += entries.map(|entry| entry.bytes).sum::<i64>();
            }
        }
        if let (true, Some(any)) = (has_local, any) {
            let key = collection_key(&self.table.definition().key, &any.item)
                .ok_or_else(|| damaged("item without its key"))?;
            let key = Bytes::from(key);
            group.load_collection(&self.table, &key)?;
            self.collection = Some((key, bytes));
        }
        Ok(())
    }

    /// Returns for each change whether it adds to an item collection that all changes together would grow beyond the
    /// limit.
    pub(crate) fn oversized(group: &Group<'_>, changes: &[Option<Self>]) -> Vec<bool> {
        let mut grown: HashMap<(u32, &Bytes), i64> = HashMap::new();
        for change in changes.iter().flatten() {
            if let Some((key, bytes)) = &change.collection {
                *grown.entry((change.table.record.id, key)).or_default() += bytes;
            }
        }
        let is_over = |change: &Self| {
            let collection = change.collection.as_ref();
            let grown = collection.and_then(|(key, _)| grown.get(&(change.table.record.id, key)));
            change.exceeds_limit(group, grown.copied().unwrap_or(0))
        };
        let changes = changes.iter();
        changes.map(|c| c.as_ref().is_some_and(is_over)).collect()
    }

    /// Whether the change adds to its item collection and growing that by `grown` bytes in total exceeds the limit.
    fn exceeds_limit(&self, group: &Group<'_>, grown: i64) -> bool {
        let Some((key, bytes)) = &self.collection else {
            return false;
        };
        let size = group.loaded_collection(&self.table, key).unwrap_or(0);
        *bytes > 0 && grown > 0 && size.saturating_add_signed(grown) > ITEM_COLLECTION_BYTES_MAX
    }

    /// Adds the change to the group.
    pub(crate) fn write(self, group: &mut Group<'_>) {
        let space = self.table.space();
        if let Some(record) = self.record {
            write_record(group, &record, self.identity, self.value.as_ref());
        }
        let counts = group.counts(&self.table);
        grow(&mut counts.table, self.items, self.bytes);
        for entry in &self.entries {
            let count = counts.indexes.entry(entry.index).or_default();
            grow(count, entry.items, entry.bytes);
        }
        for entry in self.entries {
            if let Some(key) = entry.remove {
                group.remove(space, key);
            }
            if let Some((key, value)) = entry.put {
                group.put(space, key, value);
            }
        }
        if let Some(key) = self.expiry.remove {
            group.remove(space, key);
        }
        if let Some(key) = self.expiry.put {
            group.put(space, key, Bytes::from(&[][..]));
        }
        if let Some((key, bytes)) = self.collection {
            group.grow_collection(&self.table, key, bytes);
        }
        match self.value {
            Some(value) => group.put(space, self.key, value),
            None => group.remove(space, self.key),
        }
    }
}

fn expiry_change(
    table: &Table,
    key: &[u8],
    old: Option<&StoredItem>,
    new: Option<&StoredItem>,
) -> ExpiryChange {
    let Some(generation) = table.record.expiry else {
        return ExpiryChange::default();
    };
    let secs = |stored: Option<&StoredItem>| table.definition().expiry(&stored?.item);
    let entry = |secs| expiry_key(generation, secs, key);
    match (secs(old), secs(new)) {
        (old, new) if old == new => ExpiryChange::default(),
        (old, new) => ExpiryChange {
            remove: old.map(entry),
            put: new.map(entry),
        },
    }
}

fn record_change(
    table: &Table,
    old: Option<&StoredItem>,
    new: Option<&StoredItem>,
) -> Result<Option<RecordChange>> {
    let (Some(stream), Some(any)) = (table.stream(), new.or(old)) else {
        return Ok(None);
    };
    let keys = table.definition().key.key_of(&any.item);
    Ok(Some(RecordChange {
        stream,
        kind: match (old, new) {
            (None, _) => ChangeKind::Insert,
            (_, None) => ChangeKind::Remove,
            _ => ChangeKind::Modify,
        },
        keys: keys.ok_or_else(|| damaged("item without its key"))?,
        old: old.map(|old| old.bytes.clone()),
    }))
}

fn write_record(
    group: &mut Group<'_>,
    record: &RecordChange,
    identity: Option<ServiceIdentity>,
    new: Option<&Bytes>,
) {
    let created = group.now();
    let Some((sequence, view, writes)) = group.sequences().next(record.stream, created) else {
        return;
    };
    for (key, value) in writes {
        group.put(Space::Meta, key, value);
    }
    let value = change::encode(&change::Change {
        kind: record.kind,
        identity,
        created,
        view,
        keys: &record.keys,
        old: record.old.as_deref(),
        new: new.map(|new| &**new),
    });
    let key = change::key(record.stream, sequence);
    group.put_once(Space::Changes, key, value);
}

fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

fn grow(count: &mut Count, items: i64, bytes: i64) {
    count.items = count.items.saturating_add_signed(items);
    count.bytes = count.bytes.saturating_add_signed(bytes);
}
