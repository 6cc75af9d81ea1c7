//! Index entries: the entries of an item, and how a change of the item affects them.
//!
//! Local and global indexes are stored the same way. The key of an entry is the index key followed by the table key;
//! its value is the part of the item that the index projects. An index that projects everything stores the item's bytes
//! unchanged.

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
    /// The stored key.
    pub(crate) key: Vec<u8>,
    /// The encoded projection.
    pub(crate) value: Bytes,
    /// The size of the projection by DynamoDB's rules.
    pub(crate) size: usize,
}

/// Returns the entry of an item in an index, if the index contains the item.
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

/// The change of one index caused by a change of an item.
pub(crate) struct EntryChange {
    /// The id of the index.
    pub(crate) index: u32,
    /// The entry to remove.
    pub(crate) remove: Option<Vec<u8>>,
    /// The entry to add or overwrite.
    pub(crate) put: Option<(Vec<u8>, Bytes)>,
    /// Growth in number of entries.
    pub(crate) items: i64,
    /// Growth in bytes.
    pub(crate) bytes: i64,
}

/// Returns the changes of all indexes caused by a change of an item. `is_stored` checks whether an entry exists; it is
/// called only for an index that is still being filled and may not contain the item yet.
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
    let signed_size = |entry: &IndexEntry| i64::try_from(entry.size).unwrap_or(i64::MAX);
    let mut change = EntryChange {
        index: record.id,
        remove: None,
        put: None,
        items: i64::from(new.is_some()) - i64::from(old.is_some()),
        bytes: new.as_ref().map_or(0, signed_size) - old.as_ref().map_or(0, signed_size),
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
