//! Entries of indexes, claims of unique keys, and states of indexes.

use floe_store::Item;

use super::names::*;
use crate::error::Result;
use crate::graph::keys::{EntityKey, IndexKey, Place, join, own_key};

/// The key of an entry's item.
pub(crate) fn entry_key(place: &Place, index: &str, key: &str) -> Item {
    Item::with_capacity(2)
        .with(SUBJECT_KEY, place.text())
        .with(UNIQUE_KEY, join([index, key]))
}

/// The item of an entry.
pub(crate) fn entry(place: &Place, index: &str, key: &IndexKey, attributes: &Item) -> Item {
    let mut item = entry_key(place, index, key.as_str())
        .with(SCOPE, place.scope.as_str())
        .with(TYPE, place.key.type_name())
        .with(ID, place.key.id())
        .with(INDEX_NAME, index)
        .with(INDEX_KEY, key.as_str())
        .with(SCOPE_INDEX_NAME, join([place.scope.as_str(), index]));
    extend(&mut item, attributes);
    item
}

/// The key of the item that claims a unique key. No entity has such a one: no type is empty.
pub(crate) fn claim_key(scope: &str, index: &str, key: &str) -> Item {
    Item::with_capacity(2)
        .with(SUBJECT_KEY, join([scope, "", index, key]))
        .with(UNIQUE_KEY, join([index, key]))
}

/// Whether an item of the table of entries is a claim.
pub(crate) fn is_claim(item: &Item) -> bool {
    !item.contains(&SCOPE_INDEX_NAME)
}

/// The item that claims a unique key.
pub(crate) fn claim(place: &Place, index: &str, key: &str) -> Item {
    claim_key(&place.scope, index, key)
        .with(SCOPE, place.scope.as_str())
        .with(TYPE, place.key.type_name())
        .with(ID, place.key.id())
        .with(INDEX_NAME, index)
        .with(INDEX_KEY, key)
}

/// The entity that an entry or a claim is about.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) when the item is neither.
pub(crate) fn entry_owner(item: &Item) -> Result<EntityKey> {
    Ok(EntityKey::new(text(item, &TYPE)?, text(item, &ID)?))
}

/// The key of the state of an index.
pub(crate) fn index_state_key(scope: &str, index: &str) -> Item {
    Item::new()
        .with(ID, INDEXES_ID)
        .with(SCOPE_TYPE_KEY, own_key(scope, [index]))
}
