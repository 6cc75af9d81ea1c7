//! The conditional writes that commits and steps are made of, and the errors where a condition did not hold.

use std::collections::BTreeMap;

use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::op::{ConditionCheck, DeleteItem, PutItem, TransactWrite, UpdateItem};
use floe_store::{Item, Name, Value};

use super::changes::EdgeChangeKind;
use super::entries::Indexed;
use super::keys::{EntityKey, Place};
use super::schema::GraphSchema;
use super::stored::{
    self, EDGES, Edge, HELD_BY, ID, INCOMING, LEAVING, SUBJECT_KEY, TYPE, VERSION, meta,
};
use crate::error::{Error, ErrorKind, Result};

/// The update of an entity's item.
pub(super) fn entity_update(
    schema: &GraphSchema,
    place: &Place,
    update: Update,
    condition: Condition,
) -> TransactWrite {
    let update = UpdateItem::new(schema.entities(), stored::entity_key(place), update);
    update.condition(condition).into()
}

/// The check of an entity's item.
pub(super) fn entity_check(
    schema: &GraphSchema,
    place: &Place,
    condition: Condition,
) -> TransactWrite {
    ConditionCheck::new(schema.entities(), stored::entity_key(place), condition).into()
}

/// The note that something is done in steps to an entity.
pub(super) fn intent_put(schema: &GraphSchema, of: &'static str, place: &Place) -> TransactWrite {
    PutItem::new(schema.entities(), stored::intent(of, place)).into()
}

/// The write that removes such a note.
pub(super) fn intent_delete(
    schema: &GraphSchema,
    of: &'static str,
    place: &Place,
) -> TransactWrite {
    DeleteItem::new(schema.entities(), stored::intent_key(of, place)).into()
}

/// The write of an edge, on the condition that it is there, or that it is new.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) when a key is too long.
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
/// [`InvalidField`](ErrorKind::InvalidField) when a key is too long.
pub(super) fn edge_writes<'e>(
    schema: &GraphSchema,
    scope: &str,
    edges: impl Iterator<Item = (&'e Edge, EdgeChangeKind)>,
) -> Result<Vec<TransactWrite>> {
    let writes = edges.map(|(edge, kind)| edge_write(schema, scope, edge, kind));
    writes.collect()
}

/// The writes that make the entries of an entity what they should be.
pub(super) fn entry_writes(
    schema: &GraphSchema,
    place: &Place,
    indexed: &Indexed,
) -> Vec<TransactWrite> {
    let table = schema.entries();
    let puts = indexed.puts.iter().map(|(name, key, attributes)| {
        let entry = stored::entry(place, name, key, attributes);
        PutItem::new(table.as_str(), entry).into()
    });
    let deletes = indexed.deletes.iter().map(|(name, key)| {
        let entry = stored::entry_key(place, name, key);
        DeleteItem::new(table.as_str(), entry).into()
    });
    puts.chain(deletes).collect()
}

/// The write that lets go of a unique key.
pub(super) fn release(schema: &GraphSchema, scope: &str, index: &str, key: &str) -> DeleteItem {
    DeleteItem::new(schema.entries(), stored::claim_key(scope, index, key))
}

/// The write that claims a unique key for an entity, if it is free or held by that or by another that lets go of it.
pub(super) fn claim(
    schema: &GraphSchema,
    place: &Place,
    index: &str,
    key: &str,
    from: Option<&EntityKey>,
) -> PutItem {
    let is_free = Condition::attribute_not_exists(Path::attribute(SUBJECT_KEY));
    let is_ours = is_free.or(is_holder(&place.key));
    let is_ours = from.map(is_holder).into_iter().fold(is_ours, Condition::or);
    PutItem::new(schema.entries(), stored::claim(place, index, key))
        .condition(is_ours)
        .return_old_on_failure()
}

/// By how much the numbers of edges change that lead to the objects: of all, and of those that refuse a deletion.
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

/// Adds to the numbers of incoming edges.
pub(super) fn count(update: Update, (incoming, held): (i64, i64)) -> Update {
    add(add(update, &INCOMING, incoming), &HELD_BY, held)
}

/// Adds to a number in `_meta`.
pub(super) fn add(update: Update, name: &Name, by: i64) -> Update {
    if by == 0 {
        return update;
    }
    // Entities that others have written need not have the numbers.
    let had = SetOperand::if_not_exists(meta(name), Value::from(0));
    update.set_sum(meta(name), had, Value::from(by))
}

/// Whether a number of `_meta` is this one. Entities that others have written need not have them, which counts as 0.
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

/// That the entity is there, perhaps on its way out.
pub(super) fn exists() -> Condition {
    Condition::attribute_exists(Path::attribute(ID))
}

/// That the entity is there, and not on its way out.
pub(super) fn is_alive() -> Condition {
    exists().and(Condition::attribute_not_exists(meta(&LEAVING)))
}

/// That the deletion of the entity has begun.
pub(super) fn is_leaving() -> Condition {
    Condition::attribute_exists(meta(&LEAVING))
}

pub(super) fn missing(place: &Place) -> Error {
    place.error(ErrorKind::NotFound, "the entity is not there")
}

pub(super) fn claimed(index: &str, key: &str, item: Option<&Item>) -> Error {
    let holder = item.and_then(|item| stored::entry_owner(item).ok());
    let holder = holder.map_or_else(|| "unknown".to_owned(), |holder| holder.to_string());
    let message = format!("another entity has this key: index={index} key={key} holder={holder}");
    Error::new(ErrorKind::Conflict, message)
}

/// The error of a step that was refused too often.
pub(super) fn contended(place: &Place, attempts: u32) -> Error {
    let message = format!("gave up after too many conflicts: entity={place} attempts={attempts}");
    Error::new(ErrorKind::TransactionFailed, message)
}
