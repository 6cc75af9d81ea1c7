//! The items of the three tables: the one place that knows the names of their attributes.
//!
//! | item | what it is |
//! |---|---|
//! | entity | `_id`, `_scope_type_key`, `_scope`, `_type`, `_created`, `_updated`, `_meta`, `_index_entries`, attributes |
//! | edge | `_subject_key`, `_predicate_key`, `_object_key`, `_index`, the parts of the keys, `_held`, attributes |
//! | entry of an index | `_subject_key`, `_unique_key`, `_scope_index_name`, `_index_key`, `_index_name`, the parts, attributes |
//! | claim of a unique key | `_subject_key` = `scope::index:key`, `_unique_key`, the parts of the holder's key |
//! | intent of a deletion | `_id` = `_leaving`, `_scope_type_key` = `scope::type:id`, the parts of the entity's key |
//! | intent to change a list | `_id` = `_lists`, `_scope_type_key` = `scope::type:id:predicate`, `_intent`, `_wanted` |
//! | intent to write entries | `_id` = `_behind`, `_scope_type_key` = `scope::type:id`, the parts of the entity's key |
//! | state of an index | `_id` = `_indexes`, `_scope_type_key` = `scope::index`, `_version`, `_is_ready`, `_cursor`, `_done` |
//!
//! `_index_entries` of an entity holds, by index, `v`, the version of the function; `k`, the keys; and `u` if the index is
//! unique, so that whoever deletes the entity knows which claims go with it.
//!
//! `_meta` of an entity holds `v`, which counts the changes of its attributes; `e`, which counts those of its outgoing
//! edges; `in`, the number of edges that lead to it; `held`, how many of these refuse its deletion; once its deletion has
//! begun, `leaving`; while a list of its edges is changed in steps, `busy`; and while its entries are, `behind`. `v` and `e`
//! begin at random, so that an entity that is created again is not taken for the one that was deleted.

mod intent;

use std::collections::{BTreeMap, BTreeSet};

use floe_store::expr::Path;
use floe_store::{Item, Name, Number, Value};

pub(crate) use intent::*;

use super::key::{EntityKey, IndexKey, Place, join, own_key, predicate_key, split};
use super::node::Node;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};

pub(crate) const ID: Name = Name::new_static("_id");
pub(crate) const SCOPE_TYPE_KEY: Name = Name::new_static("_scope_type_key");
pub(crate) const SCOPE: Name = Name::new_static("_scope");
pub(crate) const TYPE: Name = Name::new_static("_type");
pub(crate) const CREATED: Name = Name::new_static("_created");
pub(crate) const UPDATED: Name = Name::new_static("_updated");
pub(crate) const META: Name = Name::new_static("_meta");
pub(crate) const INDEX_ENTRIES: Name = Name::new_static("_index_entries");
pub(crate) const SUBJECT_KEY: Name = Name::new_static("_subject_key");
pub(crate) const PREDICATE_KEY: Name = Name::new_static("_predicate_key");
pub(crate) const OBJECT_KEY: Name = Name::new_static("_object_key");
pub(crate) const INDEX: Name = Name::new_static("_index");
pub(crate) const SUBJECT_SCOPE: Name = Name::new_static("_subject_scope");
const SUBJECT_TYPE: Name = Name::new_static("_subject_type");
const SUBJECT_ID: Name = Name::new_static("_subject_id");
const PREDICATE: Name = Name::new_static("_predicate");
const OBJECT_SCOPE: Name = Name::new_static("_object_scope");
const OBJECT_TYPE: Name = Name::new_static("_object_type");
const OBJECT_ID: Name = Name::new_static("_object_id");
const HELD: Name = Name::new_static("_held");
pub(crate) const UNIQUE_KEY: Name = Name::new_static("_unique_key");
pub(crate) const SCOPE_INDEX_NAME: Name = Name::new_static("_scope_index_name");
pub(crate) const INDEX_KEY: Name = Name::new_static("_index_key");
pub(crate) const INDEX_NAME: Name = Name::new_static("_index_name");

/// `v` of `_meta`: counts the changes of the attributes.
pub(crate) const VERSION: Name = Name::new_static("v");
/// `e` of `_meta`: counts the changes of the outgoing edges.
pub(crate) const EDGES: Name = Name::new_static("e");
/// `in` of `_meta`: the number of incoming edges.
pub(crate) const INCOMING: Name = Name::new_static("in");
/// `held` of `_meta`: the number of incoming edges that refuse the deletion.
pub(crate) const HELD_BY: Name = Name::new_static("held");
/// `leaving` of `_meta`: the deletion has begun.
pub(crate) const LEAVING: Name = Name::new_static("leaving");

/// `busy` of `_meta`: a list of its edges is being changed in steps; it names the intent.
pub(crate) const BUSY: Name = Name::new_static("busy");
/// `behind` of `_meta`: its entries in the indexes are being brought up to date in steps.
pub(crate) const BEHIND: Name = Name::new_static("behind");

/// The partition in which states of indexes are.
pub(crate) const INDEXES_ID: &str = "_indexes";

/// A part of `_meta`.
pub(crate) fn meta(name: &Name) -> Path {
    Path::attribute(META).field(name.clone())
}

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
    /// [`InvalidField`](ErrorKind::InvalidField) when it is none.
    pub(crate) fn of_item(item: &Item) -> Result<Self> {
        let key = EntityKey::new(text(item, &TYPE)?, text(item, &ID)?);
        let number = |name: &Name| {
            let meta = item.get(&META).and_then(Value::as_m);
            let number = meta.and_then(|meta| meta.get(name)).and_then(Value::as_n);
            number.and_then(|number| number.to_u64()).unwrap_or(0)
        };
        let attributes = item.iter().filter(|(name, _)| !name.starts_with('_'));
        let attributes = attributes.map(|(name, value)| (name.clone(), value.clone()));
        let meta = item.get(&META).and_then(Value::as_m);
        Ok(Self {
            node: Node {
                created: Some(text(item, &CREATED)?.to_owned()),
                updated: Some(text(item, &UPDATED)?.to_owned()),
                ..Node::of(key, attributes.collect())
            },
            version: number(&VERSION),
            edges: number(&EDGES),
            incoming: number(&INCOMING),
            held: number(&HELD_BY),
            is_leaving: meta.is_some_and(|meta| meta.contains(&LEAVING)),
            busy: meta
                .and_then(|meta| meta.get(&BUSY))
                .and_then(Value::as_s)
                .map(str::to_owned),
            is_behind: meta.is_some_and(|meta| meta.contains(&BEHIND)),
            has_meta: meta.is_some(),
            entries: read_entries(item),
        })
    }
}

impl Stored {
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
    item.extend(
        node.attributes
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    item
}

/// Where the versions of a new entity begin: at random, so that one that is deleted and created again has other versions,
/// and who has read the first does not take the second for it.
pub(crate) fn first_version(db: &Db) -> u64 {
    db.env().next_u64() >> 24
}

/// `_meta` of a new entity.
pub(crate) fn new_meta(first_version: u64, incoming: i64, held: i64) -> Item {
    let version = Number::from(first_version);
    Item::new()
        .with(VERSION, version)
        .with(EDGES, version)
        .with(INCOMING, incoming)
        .with(HELD_BY, held)
}

/// `_index_entries`.
pub(crate) fn write_entries(entries: &Entries) -> Value {
    let entries = entries.iter().map(|(index, indexed)| {
        let keys = indexed.keys.iter().map(|key| Value::from(key.as_str()));
        let mut entry = Item::new()
            .with("v", Number::from(indexed.version))
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

/// An edge: a subject, a predicate, an object, and what is told of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Edge {
    /// What it leads from.
    pub subject: EntityKey,
    /// What it says.
    pub predicate: String,
    /// What it leads to.
    pub object: EntityKey,
    /// What is told of it.
    pub attributes: Item,
    /// Its number, by which the edges of a predicate are ordered.
    pub index: u64,
    /// Whether it refuses the deletion of its object.
    pub(crate) is_holding: bool,
}

impl Edge {
    /// The edge of an item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) when it is none.
    pub(crate) fn of_item(item: &Item) -> Result<Self> {
        let attributes = item.iter().filter(|(name, _)| !name.starts_with('_'));
        let attributes = attributes.map(|(name, value)| (name.clone(), value.clone()));
        let index = item.get(&INDEX).and_then(Value::as_n);
        Ok(Self {
            subject: EntityKey::new(text(item, &SUBJECT_TYPE)?, text(item, &SUBJECT_ID)?),
            predicate: text(item, &PREDICATE)?.to_owned(),
            object: EntityKey::new(text(item, &OBJECT_TYPE)?, text(item, &OBJECT_ID)?),
            attributes: attributes.collect(),
            index: index
                .and_then(|index| index.to_u64())
                .ok_or_else(|| damaged(item, &INDEX))?,
            is_holding: item.get(&HELD) == Some(&Value::Bool(true)),
        })
    }

    /// `predicate:index:type:id`.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) when it is too long for a key.
    pub(crate) fn predicate_key(&self) -> Result<String> {
        predicate_key(&self.predicate, self.index, &self.object)
    }

    /// The key of its item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) when it is too long for a key.
    pub(crate) fn key_item(&self, scope: &str) -> Result<Item> {
        let subject = Place::new(scope, self.subject.clone())?;
        Ok(Item::with_capacity(2)
            .with(SUBJECT_KEY, subject.text())
            .with(PREDICATE_KEY, self.predicate_key()?))
    }

    /// Its item.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](ErrorKind::InvalidField) when a key is too long.
    pub(crate) fn to_item(&self, scope: &str) -> Result<Item> {
        let object = Place::new(scope, self.object.clone())?;
        let mut item = self
            .key_item(scope)?
            .with(OBJECT_KEY, object.text())
            .with(INDEX, Number::from(self.index))
            .with(SUBJECT_SCOPE, scope)
            .with(SUBJECT_TYPE, self.subject.type_name())
            .with(SUBJECT_ID, self.subject.id())
            .with(PREDICATE, self.predicate.as_str())
            .with(OBJECT_SCOPE, scope)
            .with(OBJECT_TYPE, self.object.type_name())
            .with(OBJECT_ID, self.object.id());
        if self.is_holding {
            item.insert(HELD, true);
        }
        let attributes = self.attributes.iter();
        item.extend(attributes.map(|(name, value)| (name.clone(), value.clone())));
        Ok(item)
    }
}

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
    let attributes = attributes.iter();
    item.extend(attributes.map(|(name, value)| (name.clone(), value.clone())));
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
/// [`InvalidField`](ErrorKind::InvalidField) when the item is neither.
pub(crate) fn entry_owner(item: &Item) -> Result<EntityKey> {
    Ok(EntityKey::new(text(item, &TYPE)?, text(item, &ID)?))
}

/// The key of the state of an index.
pub(crate) fn index_state_key(scope: &str, index: &str) -> Item {
    Item::new()
        .with(ID, INDEXES_ID)
        .with(SCOPE_TYPE_KEY, own_key(scope, [index]))
}

/// Whether an item of the table of entities is the graph's own.
pub(crate) fn is_own(item: &Item) -> bool {
    let key = item.get(&SCOPE_TYPE_KEY).and_then(Value::as_s);
    key.is_some_and(|key| split(key).len() > 2)
}

/// A text of an item.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) when it is missing.
pub(crate) fn text<'i>(item: &'i Item, name: &Name) -> Result<&'i str> {
    item.get(name)
        .and_then(Value::as_s)
        .ok_or_else(|| damaged(item, name))
}

fn damaged(item: &Item, name: &Name) -> Error {
    let keys = [ID, SCOPE_TYPE_KEY, SUBJECT_KEY, PREDICATE_KEY, UNIQUE_KEY];
    Error::new(
        ErrorKind::InvalidField,
        format!(
            "a stored attribute of the graph is missing or of another type: attribute={name} item={:?}",
            item.pick(&keys)
        ),
    )
}
