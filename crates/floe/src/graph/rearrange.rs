//! Changes of lists: from what a list is and what is asked to the edges that are removed and put.

use std::collections::BTreeMap;

use floe_store::{Item, Value};
use serde::Serialize;

use super::changes::Known;
use super::compile::missing;
use super::key::{EntityKey, Place, check_part};
use super::node::{ToKey, check_names};
use super::order::arrange;
use super::read;
use super::relation::OnDelete;
use super::schema::GraphSchema;
use super::stored::Edge;
use super::work::{Done, Work};
use crate::error::{Error, ErrorKind, Result};
use crate::model::attribute::Invalid;
use crate::model::document;

/// How a list changes.
pub(super) enum ListChange {
    Append(Vec<NewEdge>),
    Insert(usize, NewEdge),
    Replace(Vec<NewEdge>),
    Unlink(EntityKey),
    Reorder(Vec<EntityKey>),
    Move(usize, usize),
}

/// An edge that is to be.
#[derive(Clone, Debug)]
pub(super) struct NewEdge {
    pub(super) object: EntityKey,
    pub(super) attributes: Item,
}

impl NewEdge {
    pub(super) fn plain(object: &impl ToKey) -> Self {
        Self {
            object: object.to_key(),
            attributes: Item::new(),
        }
    }

    pub(super) fn with<A: Serialize>(object: &impl ToKey, attributes: &A) -> Result<Self> {
        let invalid = |invalid: &Invalid| Error::invalid("edge", "attributes", invalid);
        let attributes = match document::to_value(attributes).map_err(|error| invalid(&error))? {
            Some(Value::M(attributes)) => attributes,
            None | Some(Value::Null) => Item::new(),
            Some(other) => {
                let reason = format!(
                    "what is told of an edge is no map: type={}",
                    other.value_type()
                );
                return Err(invalid(&Invalid::new(reason)));
            }
        };
        check_names(&attributes)?;
        Ok(Self {
            object: object.to_key(),
            attributes,
        })
    }
}

/// A place in the new list.
enum Slot {
    Kept(Edge),
    New(NewEdge),
}

/// Changes a list in a transaction.
pub(super) async fn change(
    work: &Work<'_>,
    subject: &EntityKey,
    predicate: &str,
    change: &ListChange,
) -> Result<Done> {
    check_part("predicate", predicate)?;
    let place = work.place(subject)?;
    if work.require(&place).await?.busy.is_some() {
        return Err(work.tx.retry(busy(&place)));
    }
    let is_append = matches!(change, ListChange::Append(_));
    let old = stored_edges(work, &place, predicate, is_append).await?;
    let new = target(work.tx.db().graph_schema(), &place, predicate, &old, change)?;
    let difference = difference(&old, &new)?;
    let removed = difference.removed.len() as u64;
    work.tx.session().graph(|changes| {
        for edge in difference.removed {
            changes.remove_edge(work.scope, edge, true)?;
        }
        for (edge, is_there) in difference.put {
            let object = work.place(&edge.object)?;
            if let (false, Known::Absent) = (is_there, changes.known(&object)) {
                return Err(missing(&object));
            }
            changes.put_edge(&place, edge, is_there)?;
        }
        Ok::<_, Error>(Done {
            edges: removed,
            ..Done::default()
        })
    })?
}

/// The list as it is to be, with its numbers.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) when a key is too long, [`InvalidUse`](ErrorKind::InvalidUse) when the change
/// does not fit the list.
pub(super) fn target(
    schema: &GraphSchema,
    subject: &Place,
    predicate: &str,
    edges: &[Edge],
    change: &ListChange,
) -> Result<Vec<Edge>> {
    let slots = slots(predicate, edges, change)?;
    let kept = |slot: &Slot| match slot {
        Slot::Kept(edge) => Some(edge.index),
        Slot::New(_) => None,
    };
    let numbers: Vec<Option<u64>> = slots.iter().map(kept).collect();
    let numbers = arrange(&numbers).ok_or_else(|| too_long(subject, predicate))?;
    let from = subject.key.type_name();
    let edges = slots.into_iter().zip(numbers).map(|(slot, index)| {
        let new = match slot {
            Slot::Kept(edge) => return Ok(Edge { index, ..edge }),
            Slot::New(new) => new,
        };
        Place::new(&subject.scope, new.object.clone())?;
        let on_delete = schema.on_delete(from, predicate, new.object.type_name());
        Ok(Edge {
            is_holding: on_delete == OnDelete::Restrict,
            subject: subject.key.clone(),
            predicate: predicate.to_owned(),
            object: new.object,
            attributes: new.attributes,
            index,
        })
    });
    edges.collect()
}

/// What makes one list of another.
#[derive(Debug, Default)]
pub(super) struct ListDifference {
    pub(super) removed: Vec<Edge>,
    /// With whether one of the same key is there.
    pub(super) put: Vec<(Edge, bool)>,
}

/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) when a key is too long.
pub(super) fn difference(old: &[Edge], new: &[Edge]) -> Result<ListDifference> {
    let by_key = |edges: &[Edge]| -> Result<BTreeMap<String, Edge>> {
        let edges = edges.iter();
        edges
            .map(|edge| Ok((edge.predicate_key()?, edge.clone())))
            .collect()
    };
    let (mut old, new) = (by_key(old)?, by_key(new)?);
    let mut difference = ListDifference::default();
    for (key, edge) in new {
        let was = old.remove(&key);
        if was.as_ref() != Some(&edge) {
            difference.put.push((edge, was.is_some()));
        }
    }
    difference.removed.extend(old.into_values());
    Ok(difference)
}

pub(super) fn busy(place: &Place) -> Error {
    Error::new(
        ErrorKind::TransactionFailed,
        format!("a change of its edges is under way; Graph::resume ends it: entity={place}"),
    )
}

/// The edges of the list as the transaction sees them; for an append, the last that stays is enough.
async fn stored_edges(
    work: &Work<'_>,
    subject: &Place,
    predicate: &str,
    only_last: bool,
) -> Result<Vec<Edge>> {
    let session = work.tx.session();
    let is_new = session.graph(|changes| changes.is_created(subject))?;
    let stored = match (is_new, only_last) {
        (true, _) => Vec::new(),
        (false, true) => {
            let schema = work.tx.db().graph_schema();
            let query = read::outgoing_query(schema, subject, Some(predicate));
            let query = query.consistent().backward();
            let removed = session.graph(|changes| changes.removed(subject, predicate))?;
            read::edges(&work.reads().query(query, Some(1 + removed)).await?)?
        }
        (false, false) => {
            work.reads()
                .outgoing(subject, Some(predicate), None)
                .await?
        }
    };
    session.graph(|changes| {
        changes.watch_list(subject);
        changes.outgoing(subject, Some(predicate), stored)
    })?
}

/// What the list is to be.
fn slots(predicate: &str, edges: &[Edge], change: &ListChange) -> Result<Vec<Slot>> {
    let mut slots: Vec<Slot> = edges.iter().cloned().map(Slot::Kept).collect();
    match change {
        ListChange::Append(new) => slots.extend(new.iter().cloned().map(Slot::New)),
        ListChange::Insert(at, new) => {
            slots.insert((*at).min(slots.len()), Slot::New(new.clone()));
        }
        ListChange::Replace(new) => return Ok(matched(edges, new)),
        ListChange::Unlink(object) => {
            slots.retain(|slot| !matches!(slot, Slot::Kept(edge) if edge.object == *object));
        }
        ListChange::Reorder(objects) => {
            let new: Vec<_> = objects.iter().map(NewEdge::plain).collect();
            let mut slots = Vec::new();
            let mut left: Vec<&Edge> = edges.iter().collect();
            for new in &new {
                let at = left.iter().position(|edge| edge.object == new.object);
                let at = at.ok_or_else(|| other_objects(predicate, &new.object))?;
                slots.push(Slot::Kept(left.remove(at).clone()));
            }
            if let Some(edge) = left.first() {
                return Err(other_objects(predicate, &edge.object));
            }
            return Ok(slots);
        }
        ListChange::Move(from, to) => {
            if (*from).max(*to) >= slots.len() {
                return Err(Error::new(
                    ErrorKind::InvalidUse,
                    format!(
                        "the list has no such position: predicate={predicate} from={from} to={to} edges={}",
                        slots.len()
                    ),
                ));
            }
            let moved = slots.remove(*from);
            slots.insert(*to, moved);
        }
    }
    Ok(slots)
}

/// The new list, made of the edges that lead to the same objects as far as there are such. Each takes the first that is
/// left, so an edge that stands several times keeps its order.
fn matched(edges: &[Edge], new: &[NewEdge]) -> Vec<Slot> {
    let mut left: BTreeMap<&EntityKey, Vec<&Edge>> = BTreeMap::new();
    for edge in edges.iter().rev() {
        left.entry(&edge.object).or_default().push(edge);
    }
    let slots = new.iter().map(|new| {
        let edge = left.get_mut(&new.object).and_then(Vec::pop);
        match edge {
            Some(edge) => Slot::Kept(Edge {
                attributes: new.attributes.clone(),
                ..edge.clone()
            }),
            None => Slot::New(new.clone()),
        }
    });
    slots.collect()
}

fn other_objects(predicate: &str, object: &EntityKey) -> Error {
    Error::new(
        ErrorKind::InvalidUse,
        format!(
            "the new order has not the objects of the list, each as often as it stands there: \
             predicate={predicate} object={object}"
        ),
    )
}

fn too_long(subject: &Place, predicate: &str) -> Error {
    Error::new(
        ErrorKind::TooLarge,
        format!("the list has no room: subject={subject} predicate={predicate}"),
    )
}
