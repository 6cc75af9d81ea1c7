//! Intents: the notes of what is done in steps, so that whoever finds one can go on.

use floe_store::{Item, Name, Value};

use super::edge::Edge;
use super::names::{ID, PREDICATE, SCOPE, SCOPE_TYPE_KEY, damaged, text};
use crate::error::Result;
use crate::graph::keys::{EntityKey, Place, join, own_key};

/// The partition in which intents to change lists are.
pub(crate) const LISTS_ID: &str = "_lists";
/// The partition in which intents of deletions are.
pub(crate) const LEAVING_ID: &str = "_leaving";
/// The partition in which intents to bring entries up to date are.
pub(crate) const BEHIND_ID: &str = "_behind";

const ENTITY_TYPE: Name = Name::new_static("_entity_type");
const ENTITY_ID: Name = Name::new_static("_entity_id");
const WANTED: Name = Name::new_static("_wanted");
/// What tells an intent from others of the same key.
pub(crate) const INTENT: Name = Name::new_static("_intent");

/// What the sort keys of all intents of a scope begin with.
pub(crate) fn intents_prefix(scope: &str) -> String {
    join([scope, "", ""])
}

/// The key of an intent about an entity: to delete it, or to bring its entries up to date.
pub(crate) fn intent_key(of: &'static str, place: &Place) -> Item {
    let key = own_key(&place.scope, [place.key.type_name(), place.key.id()]);
    Item::new().with(ID, of).with(SCOPE_TYPE_KEY, key)
}

/// An intent about an entity.
pub(crate) fn intent(of: &'static str, place: &Place) -> Item {
    intent_key(of, place)
        .with(SCOPE, place.scope.as_str())
        .with(ENTITY_TYPE, place.key.type_name())
        .with(ENTITY_ID, place.key.id())
}

/// The entity that an intent is about.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) when the item is no intent.
pub(crate) fn intent_owner(item: &Item) -> Result<EntityKey> {
    Ok(EntityKey::new(
        text(item, &ENTITY_TYPE)?,
        text(item, &ENTITY_ID)?,
    ))
}

/// The key of the intent to change a list.
pub(crate) fn list_intent_key(subject: &Place, predicate: &str) -> Item {
    let parts = [subject.key.type_name(), subject.key.id(), predicate];
    let key = own_key(&subject.scope, parts);
    Item::new().with(ID, LISTS_ID).with(SCOPE_TYPE_KEY, key)
}

/// The intent to make a list this one.
pub(crate) fn list_intent(list: &WantedList) -> Item {
    let (subject, predicate) = (&list.subject, list.predicate.as_str());
    let wanted = list.edges.iter().map(|edge| Value::M(note_of(edge)));
    list_intent_key(subject, predicate)
        .with(INTENT, list.intent.as_str())
        .with(SCOPE, subject.scope.as_str())
        .with(ENTITY_TYPE, subject.key.type_name())
        .with(ENTITY_ID, subject.key.id())
        .with(PREDICATE, predicate)
        .with(WANTED, Value::L(wanted.collect()))
}

/// What is noted of an edge: all but what the edges of a list share.
fn note_of(edge: &Edge) -> Item {
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

/// The edge of a note.
fn edge_of(note: &Item, subject: &EntityKey, predicate: &str) -> Option<Edge> {
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

/// A list on its way to what it is to be: what an intent to change it wants.
pub(crate) struct WantedList {
    pub(crate) subject: Place,
    pub(crate) predicate: String,
    /// What tells it from others of the same list.
    pub(crate) intent: String,
    pub(crate) edges: Vec<Edge>,
}

/// The list that an intent wants.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) when the item is no such intent.
pub(crate) fn wanted_list(scope: &str, item: &Item) -> Result<WantedList> {
    let (subject, predicate) = (intent_owner(item)?, text(item, &PREDICATE)?);
    let wanted = item.get(&WANTED).and_then(Value::as_l);
    let edges = wanted.and_then(|wanted| {
        let edges = wanted
            .iter()
            .map(|note| edge_of(note.as_m()?, &subject, predicate));
        edges.collect::<Option<Vec<Edge>>>()
    });
    Ok(WantedList {
        edges: edges.ok_or_else(|| damaged(item, &WANTED))?,
        predicate: predicate.to_owned(),
        intent: text(item, &INTENT)?.to_owned(),
        subject: Place::new(scope, subject)?,
    })
}
