//! Attribute names, and decoding of attributes.

use floe_store::expr::Path;
use floe_store::{Item, Name, Value};

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
pub(crate) const SUBJECT_TYPE: Name = Name::new_static("_subject_type");
pub(super) const SUBJECT_ID: Name = Name::new_static("_subject_id");
pub(crate) const PREDICATE: Name = Name::new_static("_predicate");
pub(super) const OBJECT_SCOPE: Name = Name::new_static("_object_scope");
pub(super) const OBJECT_TYPE: Name = Name::new_static("_object_type");
pub(super) const OBJECT_ID: Name = Name::new_static("_object_id");
pub(super) const HELD: Name = Name::new_static("_held");
pub(crate) const UNIQUE_KEY: Name = Name::new_static("_unique_key");
pub(crate) const SCOPE_INDEX_NAME: Name = Name::new_static("_scope_index_name");
pub(crate) const INDEX_KEY: Name = Name::new_static("_index_key");
pub(crate) const INDEX_NAME: Name = Name::new_static("_index_name");

/// `v` of `_meta`: the version of the attributes.
pub(crate) const VERSION: Name = Name::new_static("v");
/// `e` of `_meta`: the version of the outgoing edges.
pub(crate) const EDGES: Name = Name::new_static("e");
/// `in` of `_meta`: the number of incoming edges.
pub(crate) const INCOMING: Name = Name::new_static("in");
/// `held` of `_meta`: the number of incoming edges that prevent the deletion.
pub(crate) const HELD_BY: Name = Name::new_static("held");
/// `leaving` of `_meta`: the deletion has started.
pub(crate) const DELETING: Name = Name::new_static("leaving");

/// `busy` of `_meta`: the intent of the list change in progress.
pub(crate) const LIST_CHANGE: Name = Name::new_static("busy");
/// `behind` of `_meta`: the entity has pending index entries.
pub(crate) const PENDING: Name = Name::new_static("behind");

/// The partition of index states.
pub(crate) const INDEXES_ID: &str = "_indexes";

/// The path of a part of `_meta`.
pub(crate) fn meta(name: &Name) -> Path {
    Path::attribute(META).field(name.clone())
}

/// Returns a text attribute.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) if it is missing.
pub(crate) fn text<'i>(item: &'i Item, name: &Name) -> Result<&'i str> {
    item.get(name)
        .and_then(Value::as_s)
        .ok_or_else(|| damaged(item, name))
}

pub(super) fn damaged(item: &Item, name: &Name) -> Error {
    let keys = [ID, SCOPE_TYPE_KEY, SUBJECT_KEY, PREDICATE_KEY, UNIQUE_KEY];
    let what = "a stored attribute of the graph is missing or has another type";
    let message = format!("{what}: attribute={name} item={:?}", item.pick(&keys));
    Error::new(ErrorKind::InvalidField, message)
}

/// The attributes of an item, without reserved ones.
pub(crate) fn attributes(item: &Item) -> Item {
    let attributes = item.iter().filter(|(name, _)| !name.starts_with('_'));
    attributes
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Adds attributes to an item.
pub(super) fn extend(item: &mut Item, attributes: &Item) {
    let attributes = attributes.iter();
    item.extend(attributes.map(|(name, value)| (name.clone(), value.clone())));
}
