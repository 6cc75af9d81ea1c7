//! From what an entity was and is to the entries and claims that the indexes must hold.

use std::collections::BTreeSet;

use floe_store::Item;

use super::keys::{IndexKey, Place};
use super::node::Node;
use super::schema::GraphSchema;
use super::schema::{Emitted, IndexDef};
use super::stored::{Entries, IndexedKeys, Stored};
use crate::error::Result;

/// What must be written so that the indexes hold what an entity is.
#[derive(Clone, Debug, Default)]
pub(super) struct Indexed {
    pub(super) entries: Entries,
    pub(super) puts: Vec<(String, IndexKey, Item)>,
    pub(super) deletes: Vec<(String, String)>,
    pub(super) claimed: Vec<(String, String)>,
    pub(super) released: Vec<(String, String)>,
}

/// Compares what the indexes hold of an entity with what they should.
pub(super) fn index_entries(
    schema: &GraphSchema,
    place: &Place,
    old: Option<&Stored>,
    new: Option<&Node>,
) -> Result<Indexed> {
    let mut indexed = Indexed::default();
    let of_type = place.key.type_name();
    for (name, keys) in old.iter().flat_map(|old| &old.entries) {
        let mut indexes = schema.indexes_of(of_type);
        if !indexes.any(|index| index.name == *name) {
            indexed.keep_or_drop(name, keys, old, new);
        }
    }
    for index in schema.indexes_of(of_type) {
        let had = old.and_then(|old| old.entries.get(&index.name));
        match (new, had.filter(|had| had.version > index.version)) {
            (Some(_), Some(newer)) => indexed.keep_or_drop(&index.name, newer, old, new),
            _ => indexed.compare(index, had, old, new)?,
        }
    }
    Ok(indexed)
}

impl Indexed {
    /// How many items are written.
    pub(super) fn items(&self) -> usize {
        let claims: BTreeSet<&(String, String)> =
            self.claimed.iter().chain(&self.released).collect();
        self.puts.len() + self.deletes.len() + claims.len()
    }

    /// Entries of a function that this program does not have, or of a newer one than it has: they are not for it to
    /// change. They go with the entity. If it changes, they may be wrong, which their version says from then on.
    fn keep_or_drop(
        &mut self,
        name: &str,
        keys: &IndexedKeys,
        old: Option<&Stored>,
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
        had: Option<&IndexedKeys>,
        old: Option<&Stored>,
        new: Option<&Node>,
    ) -> Result<()> {
        let emitted = new.map_or_else(|| Ok(Emitted::new()), |node| index.emitted(node))?;
        // What a function of this version has emitted before need not be written again.
        let before = match (old, had) {
            (Some(old), Some(had)) if had.version == index.version => {
                index.emitted(&old.node).unwrap_or_default()
            }
            _ => Emitted::new(),
        };
        let none = IndexedKeys::default();
        let had = had.unwrap_or(&none);
        for (key, attributes) in &emitted {
            if before.get(key) != Some(attributes) {
                self.puts
                    .push((index.name.clone(), key.clone(), attributes.clone()));
            }
        }
        let has = index.indexed_keys(&emitted);
        let gone = had.keys.difference(&has.keys);
        self.drop_keys(&index.name, had.is_unique, gone);
        let named = |key: &String| (index.name.clone(), key.clone());
        if index.is_unique {
            let is_claimed = |key: &&String| had.is_unique && had.keys.contains(*key);
            let came = has.keys.iter().filter(|key| !is_claimed(key));
            self.claimed.extend(came.map(named));
        } else if had.is_unique {
            let stays = had.keys.intersection(&has.keys);
            self.released.extend(stays.map(named));
        }
        if new.is_some() {
            self.entries.insert(index.name.clone(), has);
        }
        Ok(())
    }
}
