//! Computes the index entries and claims of an entity from its old and new state.

use std::collections::BTreeSet;

use floe_store::Item;

use super::keys::{IndexKey, ScopedKey};
use super::node::Node;
use super::schema::GraphSchema;
use super::schema::{Emitted, IndexDef};
use super::stored::{Entries, IndexedKeys, StoredEntity};
use crate::error::Result;

/// The index entries and claims to write and delete for a change of an entity.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexed {
    pub(super) entries: Entries,
    pub(super) puts: Vec<(String, IndexKey, Item)>,
    pub(super) deletes: Vec<(String, String)>,
    pub(super) claimed: Vec<(String, String)>,
    pub(super) released: Vec<(String, String)>,
}

/// Compares the stored index entries of an entity with those it should have.
pub(super) fn index_entries(
    schema: &GraphSchema,
    scoped_key: &ScopedKey,
    old: Option<&StoredEntity>,
    new: Option<&Node>,
) -> Result<Indexed> {
    let mut indexed = Indexed::default();
    let of_type = scoped_key.key.type_name();
    for (name, keys) in old.iter().flat_map(|old| &old.entries) {
        let mut indexes = schema.indexes_of(of_type);
        if !indexes.any(|index| index.name == *name) {
            indexed.keep_or_drop(name, keys, old, new);
        }
    }
    for index in schema.indexes_of(of_type) {
        let old_keys = old.and_then(|old| old.entries.get(&index.name));
        match (
            new,
            old_keys.filter(|old_keys| old_keys.version > index.version),
        ) {
            (Some(_), Some(newer)) => indexed.keep_or_drop(&index.name, newer, old, new),
            _ => indexed.compare(index, old_keys, old, new)?,
        }
    }
    Ok(indexed)
}

impl Indexed {
    /// Number of items to write.
    pub(super) fn items(&self) -> usize {
        let claims: BTreeSet<&(String, String)> =
            self.claimed.iter().chain(&self.released).collect();
        self.puts.len() + self.deletes.len() + claims.len()
    }

    /// Handles the entries of a function that this program does not have, or has in an older version. It does not
    /// change them; they are deleted with the entity. If the entity changes, they may be wrong, and their version is
    /// set to 0 to record that.
    fn keep_or_drop(
        &mut self,
        name: &str,
        keys: &IndexedKeys,
        old: Option<&StoredEntity>,
        new: Option<&Node>,
    ) {
        let Some(new) = new else {
            return self.drop_keys(name, keys.is_unique, keys.keys.iter());
        };
        let mut kept = keys.clone();
        if old.is_none_or(|old| old.node.attributes != new.attributes) {
            kept.version = 0;
        }
        self.entries.insert(name.to_owned(), kept);
    }

    fn drop_keys<'k>(
        &mut self,
        name: &str,
        is_claimed: bool,
        keys: impl Iterator<Item = &'k String>,
    ) {
        for key in keys {
            self.deletes.push((name.to_owned(), key.clone()));
            if is_claimed {
                self.released.push((name.to_owned(), key.clone()));
            }
        }
    }

    fn compare(
        &mut self,
        index: &IndexDef,
        old_keys: Option<&IndexedKeys>,
        old: Option<&StoredEntity>,
        new: Option<&Node>,
    ) -> Result<()> {
        let emitted = new.map_or_else(|| Ok(Emitted::new()), |node| index.emitted(node))?;
        // Entries that this version of the function emitted before need not be written again.
        let old_emitted = match (old, old_keys) {
            (Some(old), Some(old_keys)) if old_keys.version == index.version => {
                index.emitted(&old.node).unwrap_or_default()
            }
            _ => Emitted::new(),
        };
        let none = IndexedKeys::default();
        let old_keys = old_keys.unwrap_or(&none);
        for (key, attributes) in &emitted {
            if old_emitted.get(key) != Some(attributes) {
                self.puts
                    .push((index.name.clone(), key.clone(), attributes.clone()));
            }
        }
        let new_keys = index.indexed_keys(&emitted);
        let removed = old_keys.keys.difference(&new_keys.keys);
        self.drop_keys(&index.name, old_keys.is_unique, removed);
        let named = |key: &String| (index.name.clone(), key.clone());
        if index.is_unique {
            let is_claimed = |key: &&String| old_keys.is_unique && old_keys.keys.contains(*key);
            let added = new_keys.keys.iter().filter(|key| !is_claimed(key));
            self.claimed.extend(added.map(named));
        } else if old_keys.is_unique {
            let kept = old_keys.keys.intersection(&new_keys.keys);
            self.released.extend(kept.map(named));
        }
        if new.is_some() {
            self.entries.insert(index.name.clone(), new_keys);
        }
        Ok(())
    }
}
