//! A table under examination, and the entries that follow from its items.

use std::collections::BTreeSet;
use std::sync::Arc;

use floe_store::size::item_size;
use floe_store::table::IndexKind;
use floe_store::{Item, Result};

use super::catalog::Catalog;
use crate::catalog::Table;
use crate::indexes::{IndexEntry, entry};
use crate::kv::Bytes;
use crate::layout::item::encode_sized;
use crate::layout::key::{EntryKind, expiry_key, item_key};
use crate::layout::record::{IndexRecord, Work};
use crate::stored::StoredItem;

/// A table under examination.
pub(super) struct Subject {
    pub(super) table: Arc<Table>,
    pub(super) name: String,
    /// The kinds that may lack entries, because a job is about to make them.
    pub(super) filling: BTreeSet<EntryKind>,
    /// The kinds that may be there, because a job is about to remove them.
    pub(super) removing: BTreeSet<EntryKind>,
    pub(super) has_collections: bool,
}

impl Subject {
    /// A table, and what the jobs on it in the catalog fill and remove.
    pub(super) fn new(table: Table, catalog: &Catalog) -> Self {
        let (mut filling, mut removing) = (BTreeSet::new(), BTreeSet::new());
        for job in catalog.jobs.iter().filter(|job| job.table == table.id()) {
            match job.work {
                Work::FillIndex(id) => filling.insert(EntryKind::Index(id)),
                Work::FillExpiry(generation) => filling.insert(EntryKind::Expiry(generation)),
                Work::RemoveIndex(id) => removing.insert(EntryKind::Index(id)),
                Work::RemoveExpiry(generation) => removing.insert(EntryKind::Expiry(generation)),
                // Its table is not in the catalog.
                Work::RemoveTable => continue,
            };
        }
        let definition = table.definition();
        let has_collections = definition.local_indexes().next().is_some();
        Self {
            name: definition.name.clone(),
            has_collections,
            table: Arc::new(table),
            filling,
            removing,
        }
    }

    /// The name of the index that a kind belongs to.
    pub(super) fn index_name(&self, kind: EntryKind) -> Option<&str> {
        let EntryKind::Index(id) = kind else {
            return None;
        };
        let mut indexes = self.table.indexes();
        indexes.find_map(|(index, record)| (record.id == id).then_some(&*index.name))
    }

    /// Whether the table has entries of this kind.
    pub(super) fn knows(&self, kind: EntryKind) -> bool {
        match kind {
            EntryKind::Item => true,
            EntryKind::Index(_) => self.index_name(kind).is_some(),
            EntryKind::Expiry(generation) => self.table.record.expiry == Some(generation),
            EntryKind::Collection => self.has_collections,
        }
    }

    /// The kinds of entries that the table has.
    pub(super) fn kinds(&self) -> Vec<EntryKind> {
        let indexes = self.table.record.indexes.iter();
        let mut kinds: Vec<_> = indexes.map(|index| EntryKind::Index(index.id)).collect();
        kinds.extend(self.table.record.expiry.map(EntryKind::Expiry));
        kinds.extend(self.has_collections.then_some(EntryKind::Collection));
        kinds
    }

    /// The weight of an item and its entries in local indexes.
    pub(super) fn weight(&self, stored: &StoredItem, entries: &[Derived]) -> u64 {
        let local = self
            .table
            .indexes()
            .filter(|(index, _)| index.kind == IndexKind::Local);
        let local: Vec<_> = local
            .map(|(_, record)| EntryKind::Index(record.id))
            .collect();
        let entries = entries.iter().filter(|entry| local.contains(&entry.kind));
        stored.size as u64 + entries.map(|entry| entry.size as u64).sum::<u64>()
    }

    /// The text of an item's key.
    pub(super) fn key_text(&self, item: &Item) -> String {
        format!(
            "{:?}",
            self.table.definition().key.key_of(item).unwrap_or_default()
        )
    }
}

/// An entry that follows from an item.
pub(super) struct Derived {
    pub(super) kind: EntryKind,
    pub(super) key: Vec<u8>,
    pub(super) value: Bytes,
    /// Its size as DynamoDB counts it.
    pub(super) size: usize,
}

/// The item of these bytes, if they are what the table would have stored under this key.
pub(super) fn read_item(table: &Table, key: &[u8], bytes: &Bytes) -> Result<StoredItem, String> {
    let stored = StoredItem::decode(bytes.clone()).map_err(|e| e.to_string())?;
    if item_key(&table.definition().key, &stored.item).as_deref() != Some(key) {
        return Err("an item stands under the key of another".to_owned());
    }
    let size = item_size(&stored.item);
    if size != stored.size || encode_sized(&stored.item, size) != **bytes {
        return Err("an item is stored in another form than it should be".to_owned());
    }
    Ok(stored)
}

/// The index and expiry entries that follow from an item.
pub(super) fn derived(table: &Table, key: &[u8], stored: &StoredItem) -> Vec<Derived> {
    let of_index = |(index, record): (_, IndexRecord)| {
        let IndexEntry { key, value, size } = entry(table, index, record.id, key, stored)?;
        let kind = EntryKind::Index(record.id);
        Some(Derived {
            kind,
            key,
            value,
            size,
        })
    };
    let mut entries: Vec<_> = table.indexes().filter_map(of_index).collect();
    let moment = table.definition().expiry(&stored.item);
    if let (Some(generation), Some(moment)) = (table.record.expiry, moment) {
        entries.push(Derived {
            kind: EntryKind::Expiry(generation),
            key: expiry_key(generation, moment, key),
            value: Bytes::from(&[][..]),
            size: 0,
        });
    }
    entries
}
