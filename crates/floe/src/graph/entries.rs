//! From what an entity was and is to the entries and claims that the indexes must hold.

use std::collections::BTreeSet;

use floe_store::Item;

use super::index::Emitted;
use super::key::{IndexKey, Place};
use super::node::Node;
use super::schema::GraphSchema;
use super::stored::{Entries, IndexedKeys, Stored};
use crate::error::Result;

/// What must be written so that the indexes hold what an entity is.
#[derive(Debug, Default)]
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
    let had = old.map(|old| &old.entries);
    // Indexes that this program does not know belong to others; they go with the entity.
    let unknown = had.into_iter().flatten().filter(|(name, _)| {
        !schema
            .indexes_of(place.key.type_name())
            .any(|index| index.name == **name)
    });
    for (name, keys) in unknown {
        match new {
            Some(_) => {
                indexed.entries.insert(name.clone(), keys.clone());
            }
            None => indexed
                .deletes
                .extend(keys.keys.iter().map(|key| (name.clone(), key.clone()))),
        }
    }
    for index in schema.indexes_of(place.key.type_name()) {
        let emitted = new.map_or_else(|| Ok(Emitted::new()), |node| index.emitted(node))?;
        let had = had.and_then(|had| had.get(&index.name));
        // What a newer program has indexed is not for this one to change.
        if let (Some(_), Some(newer)) = (new, had.filter(|had| had.version > index.version)) {
            indexed.entries.insert(index.name.clone(), newer.clone());
            continue;
        }
        // What a function of this version has emitted before need not be written again.
        let before = match (old, had) {
            (Some(old), Some(had)) if had.version == index.version => {
                index.emitted(&old.node).unwrap_or_default()
            }
            _ => Emitted::new(),
        };
        let keys: BTreeSet<String> = emitted.keys().map(|key| key.as_str().to_owned()).collect();
        for (key, attributes) in &emitted {
            if before.get(key) != Some(attributes) {
                let put = (index.name.clone(), key.clone(), attributes.clone());
                indexed.puts.push(put);
            }
        }
        let old_keys = had.map(|had| had.keys.clone()).unwrap_or_default();
        let gone = old_keys.difference(&keys);
        let gone: Vec<_> = gone.map(|key| (index.name.clone(), key.clone())).collect();
        if index.is_unique {
            let is_same = had.is_some_and(|had| had.version == index.version);
            let came = keys
                .iter()
                .filter(|key| !is_same || !old_keys.contains(*key));
            let came = came.map(|key| (index.name.clone(), key.clone()));
            indexed.claimed.extend(came);
            indexed.released.extend(gone.iter().cloned());
        }
        indexed.deletes.extend(gone);
        let version = index.version;
        let name = index.name.clone();
        indexed.entries.insert(name, IndexedKeys { version, keys });
    }
    Ok(indexed)
}
