//! Entities.

use std::collections::{BTreeMap, BTreeSet};

use floe_store::{Item, Name, Value};

use super::names::*;
use crate::db::Db;
use crate::error::Result;
use crate::graph::keys::{EntityKey, Place, split};
use crate::graph::node::Node;

/// The keys that each index holds for an entity, and by which version of its function.
pub(crate) type Entries = BTreeMap<String, IndexedKeys>;

/// What an index holds for an entity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexedKeys {
    /// Of the function; 0 if the entity was changed by a program that does not have it.
    pub(crate) version: u64,
    /// Whether each key is claimed.
    pub(crate) is_unique: bool,
    pub(crate) keys: BTreeSet<String>,
}

/// An entity as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stored {
    pub(crate) node: Node,
    pub(crate) version: u64,
    pub(crate) edges: u64,
    pub(crate) incoming: u64,
    pub(crate) held: u64,
    pub(crate) is_leaving: bool,
    /// The intent by which a list of its edges is being changed in steps.
    pub(crate) busy: Option<String>,
    /// Whether its entries are being brought up to date in steps.
    pub(crate) is_behind: bool,
    /// Whether it has `_meta`, which all have that the graph writes.
    pub(crate) has_meta: bool,
    pub(crate) entries: Entries,
}

impl Stored {
    /// The entity of an item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when it is none.
    pub(crate) fn of_item(item: &Item) -> Result<Self> {
        let key = EntityKey::new(text(item, &TYPE)?, text(item, &ID)?);
        let meta = item.get(&META).and_then(Value::as_m);
        let has = |name: &Name| meta.is_some_and(|meta| meta.contains(name));
        let number = |name: &Name| meta?.get(name)?.as_n()?.to_u64();
        let number = |name: &Name| number(name).unwrap_or(0);
        let busy = meta.and_then(|meta| meta.get(&BUSY)?.as_s());
        Ok(Self {
            node: Node {
                created: Some(text(item, &CREATED)?.to_owned()),
                updated: Some(text(item, &UPDATED)?.to_owned()),
                ..Node::of(key, attributes(item))
            },
            version: number(&VERSION),
            edges: number(&EDGES),
            incoming: number(&INCOMING),
            held: number(&HELD_BY),
            is_leaving: has(&LEAVING),
            busy: busy.map(str::to_owned),
            is_behind: has(&BEHIND),
            has_meta: meta.is_some(),
            entries: read_entries(item),
        })
    }

    /// The keys that the entity says to have in the indexes.
    pub(crate) fn index_keys(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.entries.iter();
        entries.flat_map(|(index, indexed)| {
            let keys = indexed.keys.iter();
            keys.map(move |key| (index.as_str(), key.as_str()))
        })
    }

    /// Those of them that it has claimed.
    pub(crate) fn claims(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_unique = |index: &str| self.entries.get(index).is_some_and(|of| of.is_unique);
        self.index_keys().filter(move |(index, _)| is_unique(index))
    }
}

/// Whether the deletion of an entity has begun.
pub(crate) fn is_leaving(item: &Item) -> bool {
    let meta = item.get(&META).and_then(Value::as_m);
    meta.is_some_and(|meta| meta.contains(&LEAVING))
}

/// The key of an entity's item.
pub(crate) fn entity_key(place: &Place) -> Item {
    Item::with_capacity(2)
        .with(ID, place.key.id())
        .with(SCOPE_TYPE_KEY, place.type_key())
}

/// The item of a new entity.
pub(crate) fn new_entity(place: &Place, node: &Node, moment: &str, entries: &Entries) -> Item {
    let mut item = entity_key(place)
        .with(SCOPE, place.scope.as_str())
        .with(TYPE, place.key.type_name())
        .with(CREATED, moment)
        .with(UPDATED, moment)
        .with(INDEX_ENTRIES, write_entries(entries));
    extend(&mut item, &node.attributes);
    item
}

/// Where the versions of a new entity begin: at random, so that one that is deleted and created again has other versions,
/// and who has read the first does not take the second for it.
pub(crate) fn first_version(db: &Db) -> u64 {
    db.env().next_u64() >> 24
}

/// `_meta` of a new entity.
pub(crate) fn new_meta(first_version: u64, (incoming, held): (i64, i64)) -> Item {
    Item::new()
        .with(VERSION, first_version)
        .with(EDGES, first_version)
        .with(INCOMING, incoming)
        .with(HELD_BY, held)
}

/// `_index_entries`.
pub(crate) fn write_entries(entries: &Entries) -> Value {
    let entries = entries.iter().map(|(index, indexed)| {
        let keys = indexed.keys.iter().map(|key| Value::from(key.as_str()));
        let mut entry = Item::new()
            .with("v", indexed.version)
            .with("k", Value::L(keys.collect()));
        if indexed.is_unique {
            entry.insert("u", true);
        }
        (index.as_str(), Value::M(entry))
    });
    Value::M(entries.collect())
}

fn read_entries(item: &Item) -> Entries {
    let stored = item.get(&INDEX_ENTRIES).and_then(Value::as_m);
    let entries = stored.into_iter().flat_map(|entries| entries.iter());
    let entries = entries.filter_map(|(index, entry)| {
        let entry = entry.as_m()?;
        let keys = entry.get("k").and_then(Value::as_l).unwrap_or_default();
        let keys = keys.iter().filter_map(Value::as_s).map(str::to_owned);
        let version = entry.get("v").and_then(Value::as_n);
        let indexed = IndexedKeys {
            version: version.and_then(|number| number.to_u64()).unwrap_or(0),
            is_unique: entry.get("u") == Some(&Value::Bool(true)),
            keys: keys.collect(),
        };
        Some((index.as_str().to_owned(), indexed))
    });
    entries.collect()
}

/// Whether an item of the table of entities is the graph's own.
pub(crate) fn is_own(item: &Item) -> bool {
    let key = item.get(&SCOPE_TYPE_KEY).and_then(Value::as_s);
    key.is_some_and(|key| split(key).len() > 2)
}
