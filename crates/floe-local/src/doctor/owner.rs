//! Finds the item that an entry is derived from.

use floe_store::Result;

use super::examined_table::{derived_entries, read_item};
use crate::catalog::Table;
use crate::kv::Bytes;
use crate::layout::item;
use crate::layout::key::{EntryKind, decode_expiry_key, item_key};

/// Whether an entry is derived from an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// From an existing item.
    Item,
    /// From no item.
    None,
    /// Unknown, because the entry itself cannot be decoded.
    Undecodable,
    /// Unknown, because the item cannot be read.
    Unreadable,
}

/// Finds the item that an index or expiry entry is derived from. `get` reads from the table.
pub(super) fn owner(
    table: &Table,
    key: &Bytes,
    value: &Bytes,
    get: impl Fn(&[u8]) -> Result<Option<Bytes>>,
) -> Owner {
    let item_key = match EntryKind::of(key) {
        Some(EntryKind::Index(_)) => match item::decode(value) {
            Ok(copied) => item_key(&table.definition().key, &copied),
            Err(_) => return Owner::Undecodable,
        },
        Some(EntryKind::Expiry(_)) => decode_expiry_key(key).ok().map(|(_, item_key)| item_key),
        _ => None,
    };
    let Some(item_key) = item_key else {
        return Owner::None;
    };
    let stored = match get(&item_key) {
        Ok(Some(bytes)) => read_item(table, &item_key, &bytes),
        Ok(None) => return Owner::None,
        Err(_) => return Owner::Unreadable,
    };
    let Ok(stored) = stored else {
        return Owner::Unreadable;
    };
    let mut entries = derived_entries(table, &item_key, &stored).into_iter();
    if entries.any(|entry| entry.key == **key) {
        Owner::Item
    } else {
        Owner::None
    }
}
