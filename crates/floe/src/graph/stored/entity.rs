//! Entities.

use std::collections::{BTreeMap, BTreeSet};

use floe_store::{Item, Name, Value};

use super::names::*;
use crate::db::Db;
use crate::error::Result;
use crate::graph::keys::{EntityKey, ScopedKey, split};
use crate::graph::node::Node;

/// The index keys of an entity, by index.
pub(crate) type Entries = BTreeMap<String, IndexedKeys>;

/// The keys of an entity in an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexedKeys {
    /// The version of the index function; 0 if the entity was changed by a program without it.
    pub(crate) version: u64,
    /// Whether each key is claimed.
    pub(crate) is_unique: bool,
    pub(crate) keys: BTreeSet<String>,
}

/// A stored entity.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredEntity {
    pub(crate) node: Node,
    pub(crate) version: u64,
    pub(crate) edges: u64,
    pub(crate) incoming: u64,
    pub(crate) held: u64,
    pub(crate) is_deleting: bool,
    /// The intent of the list change in progress.
    pub(crate) list_change: Option<String>,
    /// Whether it has pending index entries.
    pub(crate) has_pending_entries: bool,
    /// Whether it has `_meta`. Entities written by other programs may lack it.
    pub(crate) has_meta: bool,
    pub(crate) entries: Entries,
}

impl StoredEntity {
    /// Decodes the entity of an item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the item is not an entity.
    pub(crate) fn of_item(item: &Item) -> Result<Self> {
        let key = EntityKey::new(text(item, &TYPE)?, text(item, &ID)?);
        let meta = item.get(&META).and_then(Value::as_m);
        let has = |name: &Name| meta.is_some_and(|meta| meta.contains(name));
        let number = |name: &Name| meta?.get(name)?.as_n()?.to_u64();
        let number = |name: &Name| number(name).unwrap_or(0);
        let list_change = meta.and_then(|meta| meta.get(&LIST_CHANGE)?.as_s());
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
            is_deleting: has(&DELETING),
            list_change: list_change.map(str::to_owned),
            has_pending_entries: has(&PENDING),
            has_meta: meta.is_some(),
            entries: read_entries(item),
        })
    }

    /// The index keys stored on the entity.
    pub(crate) fn index_keys(&self) -> impl Iterator<Item = (&str, &str)> {
        let entries = self.entries.iter();
        entries.flat_map(|(index, indexed)| {
            let keys = indexed.keys.iter();
            keys.map(move |key| (index.as_str(), key.as_str()))
        })
    }

    /// The index keys that the entity has claimed.
    pub(crate) fn claims(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_unique = |index: &str| self.entries.get(index).is_some_and(|of| of.is_unique);
        self.index_keys().filter(move |(index, _)| is_unique(index))
    }
}

/// Whether the deletion of an entity has started.
pub(crate) fn is_deleting(item: &Item) -> bool {
    let meta = item.get(&META).and_then(Value::as_m);
    meta.is_some_and(|meta| meta.contains(&DELETING))
}

/// The key of an entity's item.
pub(crate) fn entity_key(scoped_key: &ScopedKey) -> Item {
    Item::with_capacity(2)
        .with(ID, scoped_key.key.id())
        .with(SCOPE_TYPE_KEY, scoped_key.type_key())
}

/// The item of a new entity.
pub(crate) fn new_entity(
    scoped_key: &ScopedKey,
    node: &Node,
    timestamp: &str,
    entries: &Entries,
) -> Item {
    let mut item = entity_key(scoped_key)
        .with(SCOPE, scoped_key.scope.as_str())
        .with(TYPE, scoped_key.key.type_name())
        .with(CREATED, timestamp)
        .with(UPDATED, timestamp)
        .with(INDEX_ENTRIES, write_entries(entries));
    extend(&mut item, &node.attributes);
    item
}

/// The first versions of a new entity. They are random, so that an entity that is deleted and created again is not
/// mistaken for the first one.
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

/// Whether an item of the table of entities is not an entity, but internal to the graph.
pub(crate) fn is_own(item: &Item) -> bool {
    let key = item.get(&SCOPE_TYPE_KEY).and_then(Value::as_s);
    key.is_some_and(|key| split(key).len() > 2)
}
