//! A table under examination, and the entries derived from its items.

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
use crate::layout::record::{IndexRecord, JobKind};
use crate::stored::StoredItem;

/// A table under examination.
pub(super) struct ExaminedTable {
    pub(super) table: Arc<Table>,
    pub(super) name: String,
    /// Kinds whose entries may be missing, because a job is about to create them.
    pub(super) filling: BTreeSet<EntryKind>,
    /// Kinds whose entries may still exist, because a job is about to remove them.
    pub(super) removing: BTreeSet<EntryKind>,
    pub(super) has_collections: bool,
}

impl ExaminedTable {
    /// Creates the examination of a table, given the jobs in the catalog.
    pub(super) fn new(table: Table, catalog: &Catalog) -> Self {
        let (mut filling, mut removing) = (BTreeSet::new(), BTreeSet::new());
        for job in catalog.jobs.iter().filter(|job| job.table == table.id()) {
            match job.kind {
                JobKind::FillIndex(id) => filling.insert(EntryKind::Index(id)),
                JobKind::FillExpiry(generation) => filling.insert(EntryKind::Expiry(generation)),
                JobKind::RemoveIndex(id) => removing.insert(EntryKind::Index(id)),
                JobKind::RemoveExpiry(generation) => removing.insert(EntryKind::Expiry(generation)),
                // Its table is not in the catalog.
                JobKind::RemoveTable => continue,
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

    /// The name of the index for this kind of entry.
    pub(super) fn index_name(&self, kind: EntryKind) -> Option<&str> {
        let EntryKind::Index(id) = kind else {
            return None;
        };
        let mut indexes = self.table.indexes();
        indexes.find_map(|(index, record)| (record.id == id).then_some(&*index.name))
    }

    /// Whether the table has entries of this kind.
    pub(super) fn has_kind(&self, kind: EntryKind) -> bool {
        match kind {
            EntryKind::Item => true,
            EntryKind::Index(_) => self.index_name(kind).is_some(),
            EntryKind::Expiry(generation) => self.table.record.expiry == Some(generation),
            EntryKind::Collection => self.has_collections,
        }
    }

    /// The kinds of derived entries that the table has.
    pub(super) fn kinds(&self) -> Vec<EntryKind> {
        let indexes = self.table.record.indexes.iter();
        let mut kinds: Vec<_> = indexes.map(|index| EntryKind::Index(index.id)).collect();
        kinds.extend(self.table.record.expiry.map(EntryKind::Expiry));
        kinds.extend(self.has_collections.then_some(EntryKind::Collection));
        kinds
    }

    /// The size of an item and its entries in local indexes.
    pub(super) fn collection_size(&self, stored: &StoredItem, entries: &[DerivedEntry]) -> u64 {
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

    /// Formats an item's key.
    pub(super) fn key_text(&self, item: &Item) -> String {
        format!(
            "{:?}",
            self.table.definition().key.key_of(item).unwrap_or_default()
        )
    }
}

/// An entry derived from an item.
pub(super) struct DerivedEntry {
    pub(super) kind: EntryKind,
    pub(super) key: Vec<u8>,
    pub(super) value: Bytes,
    /// Its size by DynamoDB's rules.
    pub(super) size: usize,
}

/// Decodes an item, and checks that the table would have stored it like this under this key.
pub(super) fn read_item(table: &Table, key: &[u8], bytes: &Bytes) -> Result<StoredItem, String> {
    let stored = StoredItem::decode(bytes.clone()).map_err(|e| e.to_string())?;
    if item_key(&table.definition().key, &stored.item).as_deref() != Some(key) {
        return Err("an item is stored under the key of another item".to_owned());
    }
    let size = item_size(&stored.item);
    if size != stored.size || encode_sized(&stored.item, size) != **bytes {
        return Err("an item is not stored in its canonical form".to_owned());
    }
    Ok(stored)
}

/// The index and expiry entries derived from an item.
pub(super) fn derived_entries(table: &Table, key: &[u8], stored: &StoredItem) -> Vec<DerivedEntry> {
    let of_index = |(index, record): (_, IndexRecord)| {
        let IndexEntry { key, value, size } = entry(table, index, record.id, key, stored)?;
        let kind = EntryKind::Index(record.id);
        Some(DerivedEntry {
            kind,
            key,
            value,
            size,
        })
    };
    let mut entries: Vec<_> = table.indexes().filter_map(of_index).collect();
    let expires_at = table.definition().expiry(&stored.item);
    if let (Some(generation), Some(expires_at)) = (table.record.expiry, expires_at) {
        entries.push(DerivedEntry {
            kind: EntryKind::Expiry(generation),
            key: expiry_key(generation, expires_at, key),
            value: Bytes::from(&[][..]),
            size: 0,
        });
    }
    entries
}
