//! Looks for the item that an entry follows from.

use floe_store::Result;

use super::subject::{derived, read_item};
use crate::catalog::Table;
use crate::kv::Bytes;
use crate::layout::item;
use crate::layout::key::{EntryKind, decode_expiry_key, item_key};

/// Whether an entry follows from an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// From one that is there.
    Item,
    /// From none.
    Nobody,
    /// It cannot be told, because the entry itself cannot be decoded.
    Undecodable,
    /// It cannot be told, because the item cannot be read.
    Unreadable,
}

/// Looks for the item from which an index or expiry entry follows. `get` reads from the table.
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
        return Owner::Nobody;
    };
    let stored = match get(&item_key) {
        Ok(Some(bytes)) => read_item(table, &item_key, &bytes),
        Ok(None) => return Owner::Nobody,
        Err(_) => return Owner::Unreadable,
    };
    let Ok(stored) = stored else {
        return Owner::Unreadable;
    };
    let mut entries = derived(table, &item_key, &stored).into_iter();
    match entries.any(|entry| entry.key == **key) {
        true => Owner::Item,
        false => Owner::Nobody,
    }
}
