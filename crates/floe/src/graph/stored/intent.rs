//! Intents: records of wide changes, with which every process can complete them.

use std::time::Duration;

use floe_store::{Item, Name, Timestamp, Value};

use super::edge::Edge;
use super::names::{ID, PREDICATE, SCOPE, SCOPE_TYPE_KEY, damaged, text};
use crate::error::Result;
use crate::graph::keys::{EntityKey, ScopedKey, join, own_key};

/// The partition of intents to change lists.
pub(crate) const LIST_CHANGES_ID: &str = "_lists";
/// The partition of intents to delete entities.
pub(crate) const DELETIONS_ID: &str = "_leaving";
/// The partition of intents to write pending index entries.
pub(crate) const PENDING_ID: &str = "_behind";

const ENTITY_TYPE: Name = Name::new_static("_entity_type");
const ENTITY_ID: Name = Name::new_static("_entity_id");
const TARGET: Name = Name::new_static("_wanted");
/// When the deletion was completed, in milliseconds.
pub(crate) const COMPLETED: Name = Name::new_static("_completed");
/// How long the record of a completed deletion is kept: longer than any read takes.
const COMPLETED_FOR: Duration = Duration::from_secs(600);
/// Identifies an intent among those with the same key.
pub(crate) const INTENT: Name = Name::new_static("_intent");

/// The prefix of the sort keys of all intents of a scope.
pub(crate) fn intents_prefix(scope: &str) -> String {
    join([scope, "", ""])
}

/// The key of an intent to delete an entity or to write its pending entries.
pub(crate) fn intent_key(of: &'static str, scoped_key: &ScopedKey) -> Item {
    let key = own_key(
        &scoped_key.scope,
        [scoped_key.key.type_name(), scoped_key.key.id()],
    );
    Item::new().with(ID, of).with(SCOPE_TYPE_KEY, key)
}

/// An intent to delete an entity or to write its pending entries.
pub(crate) fn intent(of: &'static str, scoped_key: &ScopedKey) -> Item {
    intent_key(of, scoped_key)
        .with(SCOPE, scoped_key.scope.as_str())
        .with(ENTITY_TYPE, scoped_key.key.type_name())
        .with(ENTITY_ID, scoped_key.key.id())
}

/// The record of a completed deletion. It replaces the intent, for readers that read edges before and the intents
/// after the end of the deletion. It has no scope, since it is no content of the scope.
pub(crate) fn completed_deletion(scoped_key: &ScopedKey, now: Timestamp) -> Item {
    intent_key(DELETIONS_ID, scoped_key)
        .with(ENTITY_TYPE, scoped_key.key.type_name())
        .with(ENTITY_ID, scoped_key.key.id())
        .with(COMPLETED, now.as_millis())
}

/// When the deletion of an intent was completed; `None` if it is in progress.
pub(crate) fn completed_at(item: &Item) -> Option<Timestamp> {
    let millis = item.get(&COMPLETED)?.as_n()?.to_u64()?;
    Some(Timestamp::from_millis(millis))
}

/// Whether no reader needs the record of a deletion any more.
pub(crate) fn is_outdated(item: &Item, now: Timestamp) -> bool {
    completed_at(item).is_some_and(|completed| completed.plus(COMPLETED_FOR) < now)
}

/// The entity of an intent.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) if the item is not an intent.
pub(crate) fn intent_owner(item: &Item) -> Result<EntityKey> {
    Ok(EntityKey::new(
        text(item, &ENTITY_TYPE)?,
        text(item, &ENTITY_ID)?,
    ))
}

/// The key of the intent to change a list.
pub(crate) fn list_intent_key(subject: &ScopedKey, predicate: &str) -> Item {
    let parts = [subject.key.type_name(), subject.key.id(), predicate];
    let key = own_key(&subject.scope, parts);
    Item::new()
        .with(ID, LIST_CHANGES_ID)
        .with(SCOPE_TYPE_KEY, key)
}

/// The intent to replace a list.
pub(crate) fn list_intent(list: &TargetList) -> Item {
    let (subject, predicate) = (&list.subject, list.predicate.as_str());
    let wanted = list.edges.iter().map(|edge| Value::M(edge_record(edge)));
    list_intent_key(subject, predicate)
        .with(INTENT, list.intent.as_str())
        .with(SCOPE, subject.scope.as_str())
        .with(ENTITY_TYPE, subject.key.type_name())
        .with(ENTITY_ID, subject.key.id())
        .with(PREDICATE, predicate)
        .with(TARGET, Value::L(wanted.collect()))
}

/// An edge as recorded in an intent, without what the edges of a list have in common.
fn edge_record(edge: &Edge) -> Item {
    let mut note = Item::new()
        .with("t", edge.object.type_name())
        .with("i", edge.object.id())
        .with("n", edge.index);
    if edge.is_holding {
        note.insert("h", true);
    }
    if !edge.attributes.is_empty() {
        note.insert("a", Value::M(edge.attributes.clone()));
    }
    note
}

/// Decodes an edge recorded in an intent.
fn decode_edge_record(note: &Item, subject: &EntityKey, predicate: &str) -> Option<Edge> {
    let attributes = note.get("a").and_then(Value::as_m).cloned();
    Some(Edge {
        subject: subject.clone(),
        predicate: predicate.to_owned(),
        object: EntityKey::new(note.get("t")?.as_s()?, note.get("i")?.as_s()?),
        attributes: attributes.unwrap_or_default(),
        index: note.get("n")?.as_n()?.to_u64()?,
        is_holding: note.contains("h"),
    })
}

/// The target of a list change, as recorded in its intent.
pub(crate) struct TargetList {
    pub(crate) subject: ScopedKey,
    pub(crate) predicate: String,
    /// The id of the intent.
    pub(crate) intent: String,
    pub(crate) edges: Vec<Edge>,
}

/// Decodes the intent of a list change.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) if the item is not such an intent.
pub(crate) fn target_list(scope: &str, item: &Item) -> Result<TargetList> {
    let (subject, predicate) = (intent_owner(item)?, text(item, &PREDICATE)?);
    let wanted = item.get(&TARGET).and_then(Value::as_l);
    let edges = wanted.and_then(|wanted| {
        let edges = wanted
            .iter()
            .map(|note| decode_edge_record(note.as_m()?, &subject, predicate));
        edges.collect::<Option<Vec<Edge>>>()
    });
    Ok(TargetList {
        edges: edges.ok_or_else(|| damaged(item, &TARGET))?,
        predicate: predicate.to_owned(),
        intent: text(item, &INTENT)?.to_owned(),
        subject: ScopedKey::new(scope, subject)?,
    })
}
