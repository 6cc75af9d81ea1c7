//! Entries of indexes, claims of unique keys, and states of indexes.

use floe_store::Item;

use super::names::*;
use crate::error::Result;
use crate::graph::keys::{EntityKey, IndexKey, ScopedKey, join, own_key};

/// The key of an entry's item.
pub(crate) fn entry_key(scoped_key: &ScopedKey, index: &str, key: &str) -> Item {
    Item::with_capacity(2)
        .with(SUBJECT_KEY, scoped_key.text())
        .with(UNIQUE_KEY, join([index, key]))
}

/// The item of an entry.
pub(crate) fn entry(
    scoped_key: &ScopedKey,
    index: &str,
    key: &IndexKey,
    attributes: &Item,
) -> Item {
    let mut item = entry_key(scoped_key, index, key.as_str())
        .with(SCOPE, scoped_key.scope.as_str())
        .with(TYPE, scoped_key.key.type_name())
        .with(ID, scoped_key.key.id())
        .with(INDEX_NAME, index)
        .with(INDEX_KEY, key.as_str())
        .with(SCOPE_INDEX_NAME, join([scoped_key.scope.as_str(), index]));
    extend(&mut item, attributes);
    item
}

/// The key of the claim of a unique key. It differs from the keys of entries, because no type is empty.
pub(crate) fn claim_key(scope: &str, index: &str, key: &str) -> Item {
    Item::with_capacity(2)
        .with(SUBJECT_KEY, join([scope, "", index, key]))
        .with(UNIQUE_KEY, join([index, key]))
}

/// Whether an item of the table of entries is a claim.
pub(crate) fn is_claim(item: &Item) -> bool {
    !item.contains(&SCOPE_INDEX_NAME)
}

/// The claim of a unique key.
pub(crate) fn claim(scoped_key: &ScopedKey, index: &str, key: &str) -> Item {
    claim_key(&scoped_key.scope, index, key)
        .with(SCOPE, scoped_key.scope.as_str())
        .with(TYPE, scoped_key.key.type_name())
        .with(ID, scoped_key.key.id())
        .with(INDEX_NAME, index)
        .with(INDEX_KEY, key)
}

/// The entity of an entry or a claim.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) if the item is neither.
pub(crate) fn entry_owner(item: &Item) -> Result<EntityKey> {
    Ok(EntityKey::new(text(item, &TYPE)?, text(item, &ID)?))
}

/// The key of the state of an index.
pub(crate) fn index_state_key(scope: &str, index: &str) -> Item {
    Item::new()
        .with(ID, INDEXES_ID)
        .with(SCOPE_TYPE_KEY, own_key(scope, [index]))
}
