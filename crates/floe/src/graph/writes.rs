//! The conditional writes of commits and steps, and the errors of failed conditions.

use std::collections::BTreeMap;

use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::op::{ConditionCheck, DeleteItem, PutItem, TransactWrite, UpdateItem};
use floe_store::{Item, Name, Value};

use super::changes::EdgeChangeKind;
use super::entries::Indexed;
use super::keys::{EntityKey, ScopedKey};
use super::schema::GraphSchema;
use super::stored::{
    self, DELETING, EDGES, Edge, HELD_BY, ID, INCOMING, SUBJECT_KEY, TYPE, VERSION, meta,
};
use crate::error::{Error, ErrorKind, Result};

/// The update of an entity's item.
pub(super) fn entity_update(
    schema: &GraphSchema,
    scoped_key: &ScopedKey,
    update: Update,
    condition: Condition,
) -> TransactWrite {
    let update = UpdateItem::new(schema.entities(), stored::entity_key(scoped_key), update);
    update.condition(condition).into()
}

/// A condition check on an entity's item.
pub(super) fn entity_check(
    schema: &GraphSchema,
    scoped_key: &ScopedKey,
    condition: Condition,
) -> TransactWrite {
    ConditionCheck::new(schema.entities(), stored::entity_key(scoped_key), condition).into()
}

/// The write that records an intent of a wide change.
pub(super) fn intent_put(
    schema: &GraphSchema,
    of: &'static str,
    scoped_key: &ScopedKey,
) -> TransactWrite {
    PutItem::new(schema.entities(), stored::intent(of, scoped_key)).into()
}

/// The write that deletes such an intent.
pub(super) fn intent_delete(
    schema: &GraphSchema,
    of: &'static str,
    scoped_key: &ScopedKey,
) -> TransactWrite {
    DeleteItem::new(schema.entities(), stored::intent_key(of, scoped_key)).into()
}

/// The write of an edge, on the condition that it exists, or that it is new.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) if a key is too long.
pub(super) fn edge_write(
    schema: &GraphSchema,
    scope: &str,
    edge: &Edge,
    kind: EdgeChangeKind,
) -> Result<TransactWrite> {
    let table = schema.relationships();
    let is_there = Condition::attribute_exists(Path::attribute(SUBJECT_KEY));
    let is_new = Condition::attribute_not_exists(Path::attribute(SUBJECT_KEY));
    if kind == EdgeChangeKind::Remove {
        let delete = DeleteItem::new(table, edge.key_item(scope)?);
        return Ok(delete.condition(is_there).into());
    }
    let is_right = match kind {
        EdgeChangeKind::Add => is_new,
        _ => is_there,
    };
    let put = PutItem::new(table, edge.to_item(scope)?);
    Ok(put.condition(is_right).into())
}

/// The writes of several edges.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) if a key is too long.
pub(super) fn edge_writes<'e>(
    schema: &GraphSchema,
    scope: &str,
    edges: impl Iterator<Item = (&'e Edge, EdgeChangeKind)>,
) -> Result<Vec<TransactWrite>> {
    let writes = edges.map(|(edge, kind)| edge_write(schema, scope, edge, kind));
    writes.collect()
}

/// The writes that update the index entries of an entity.
pub(super) fn entry_writes(
    schema: &GraphSchema,
    scoped_key: &ScopedKey,
    indexed: &Indexed,
) -> Vec<TransactWrite> {
    let table = schema.entries();
    let puts = indexed.puts.iter().map(|(name, key, attributes)| {
        let entry = stored::entry(scoped_key, name, key, attributes);
        PutItem::new(table.as_str(), entry).into()
    });
    let deletes = indexed.deletes.iter().map(|(name, key)| {
        let entry = stored::entry_key(scoped_key, name, key);
        DeleteItem::new(table.as_str(), entry).into()
    });
    puts.chain(deletes).collect()
}

/// The write that deletes the claim of a unique key.
pub(super) fn release(schema: &GraphSchema, scope: &str, index: &str, key: &str) -> DeleteItem {
    DeleteItem::new(schema.entries(), stored::claim_key(scope, index, key))
}

/// The write that claims a unique key for an entity, if the key is free, or belongs to this entity or to the one that
/// releases it.
pub(super) fn claim(
    schema: &GraphSchema,
    scoped_key: &ScopedKey,
    index: &str,
    key: &str,
    from: Option<&EntityKey>,
) -> PutItem {
    let is_free = Condition::attribute_not_exists(Path::attribute(SUBJECT_KEY));
    let is_ours = is_free.or(is_holder(&scoped_key.key));
    let is_ours = from.map(is_holder).into_iter().fold(is_ours, Condition::or);
    PutItem::new(schema.entries(), stored::claim(scoped_key, index, key))
        .condition(is_ours)
        .return_old_on_failure()
}

/// The changes of the counts of incoming edges, by object: of all edges, and of those that prevent a deletion.
pub(super) fn counts<'e>(
    changes: impl Iterator<Item = (&'e Edge, EdgeChangeKind)>,
) -> BTreeMap<&'e EntityKey, (i64, i64)> {
    let mut counts: BTreeMap<&EntityKey, (i64, i64)> = BTreeMap::new();
    for (edge, kind) in changes {
        let by = kind as i64;
        let count = counts.entry(&edge.object).or_default();
        count.0 += by;
        count.1 += by * i64::from(edge.is_holding);
    }
    counts.retain(|_, by| *by != (0, 0));
    counts
}

/// Adds to the counts of incoming edges.
pub(super) fn count(update: Update, (incoming, held): (i64, i64)) -> Update {
    add(add(update, &INCOMING, incoming), &HELD_BY, held)
}

/// Adds to a number in `_meta`.
pub(super) fn add(update: Update, name: &Name, by: i64) -> Update {
    if by == 0 {
        return update;
    }
    // Entities written by other programs may lack the numbers.
    let had = SetOperand::if_not_exists(meta(name), Value::from(0));
    update.set_sum(meta(name), had, Value::from(by))
}

/// The condition that a number of `_meta` has this value. A missing number counts as 0, since entities written by other
/// programs may lack it.
pub(super) fn is_number(name: &Name, number: u64) -> Condition {
    let is = Condition::eq(meta(name), Value::from(number));
    match number {
        0 => is.or(Condition::attribute_not_exists(meta(name))),
        _ => is,
    }
}

pub(super) fn is_version(version: u64) -> Condition {
    exists().and(is_number(&VERSION, version))
}

pub(super) fn is_list_version(edges: u64) -> Condition {
    is_number(&EDGES, edges)
}

pub(super) fn is_holder(key: &EntityKey) -> Condition {
    let has = |name: Name, text: &str| Condition::eq(Path::attribute(name), Value::from(text));
    has(TYPE, key.type_name()).and(has(ID, key.id()))
}

/// The condition that the entity exists; it may be under deletion.
pub(super) fn exists() -> Condition {
    Condition::attribute_exists(Path::attribute(ID))
}

/// The condition that the entity exists and is not under deletion.
pub(super) fn is_alive() -> Condition {
    exists().and(Condition::attribute_not_exists(meta(&DELETING)))
}

/// The condition that the deletion of the entity has started.
pub(super) fn is_deleting() -> Condition {
    Condition::attribute_exists(meta(&DELETING))
}

pub(super) fn missing(scoped_key: &ScopedKey) -> Error {
    scoped_key.error(ErrorKind::NotFound, "the entity does not exist")
}

pub(super) fn claimed(index: &str, key: &str, item: Option<&Item>) -> Error {
    let holder = item.and_then(|item| stored::entry_owner(item).ok());
    let holder = holder.map_or_else(|| "unknown".to_owned(), |holder| holder.to_string());
    let message =
        format!("another entity has the unique key: index={index} key={key} holder={holder}");
    Error::new(ErrorKind::Conflict, message)
}

/// The error after too many conflicts of a step.
pub(super) fn contended(scoped_key: &ScopedKey, attempts: u32) -> Error {
    let message =
        format!("gave up after too many conflicts: entity={scoped_key} attempts={attempts}");
    Error::new(ErrorKind::TransactionFailed, message)
}
