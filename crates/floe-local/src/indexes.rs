//! Index entries: which an item has, and what a change of the item does to them.
//!
//! Local and global indexes are kept alike. An entry's key is the index key followed by the table key,
//! its value the part of the item that the index copies. An index that copies everything stores the
//! very bytes of the item.

use floe_store::Result;
use floe_store::size::item_size;
use floe_store::table::{IndexDef, Projection};

use crate::catalog::Table;
use crate::kv::Bytes;
use crate::layout::item::encode_sized;
use crate::layout::key::index_key;
use crate::layout::record::IndexRecord;
use crate::stored::StoredItem;

/// An entry of an index.
pub(crate) struct IndexEntry {
    /// Its key.
    pub(crate) key: Vec<u8>,
    /// The bytes of what the index copies.
    pub(crate) value: Bytes,
    /// The size of that as DynamoDB counts it.
    pub(crate) size: usize,
}

/// The entry of an item in an index, if the index holds it.
pub(crate) fn entry(
    table: &Table,
    index: &IndexDef,
    id: u32,
    item_key: &[u8],
    stored: &StoredItem,
) -> Option<IndexEntry> {
    if !index.holds(&stored.item) {
        return None;
    }
    let key = index_key(id, &index.key, &stored.item, item_key)?;
    let (value, size) = match index.projection {
        Projection::All => (stored.bytes.clone(), stored.size),
        _ => {
            let projected = index.project(&table.definition().key, &stored.item);
            let size = item_size(&projected);
            (encode_sized(&projected, size).into(), size)
        }
    };
    Some(IndexEntry { key, value, size })
}

/// What a change of an item does to one index.
pub(crate) struct EntryChange {
    /// The index.
    pub(crate) index: u32,
    /// The entry that goes.
    pub(crate) remove: Option<Vec<u8>>,
    /// The entry that comes, or that gets another value.
    pub(crate) put: Option<(Vec<u8>, Bytes)>,
    /// By how much the number of entries grows.
    pub(crate) items: i64,
    /// By how much their size grows.
    pub(crate) bytes: i64,
}

/// What a change of an item does to its indexes. `is_stored` tells whether an entry is there; it is
/// asked only for an index that is still being filled, which may not have come to the item yet.
pub(crate) fn entry_changes(
    table: &Table,
    item_key: &[u8],
    old: Option<&StoredItem>,
    new: Option<&StoredItem>,
    is_stored: impl Fn(&[u8]) -> Result<bool>,
) -> Result<Vec<EntryChange>> {
    let mut changes = Vec::with_capacity(table.record.indexes.len());
    for (index, record) in table.indexes() {
        let of = |stored| entry(table, index, record.id, item_key, stored);
        let mut before = old.and_then(of);
        if record.filling
            && let Some(entry) = &before
            && !is_stored(&entry.key)?
        {
            before = None;
        }
        changes.extend(entry_change(record, before, new.and_then(of)));
    }
    Ok(changes)
}

fn entry_change(
    record: IndexRecord,
    old: Option<IndexEntry>,
    new: Option<IndexEntry>,
) -> Option<EntryChange> {
    let weigh = |entry: &IndexEntry| i64::try_from(entry.size).unwrap_or(i64::MAX);
    let mut change = EntryChange {
        index: record.id,
        remove: None,
        put: None,
        items: i64::from(new.is_some()) - i64::from(old.is_some()),
        bytes: new.as_ref().map_or(0, weigh) - old.as_ref().map_or(0, weigh),
    };
    match (old, new) {
        (None, None) => return None,
        (Some(old), Some(new)) if old.key == new.key => {
            if old.value == new.value {
                return None;
            }
            change.put = Some((new.key, new.value));
        }
        (old, new) => {
            change.remove = old.map(|old| old.key);
            change.put = new.map(|new| (new.key, new.value));
        }
    }
    Some(change)
}
