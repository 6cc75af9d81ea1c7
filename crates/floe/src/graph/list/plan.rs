//! The plan of a change of a list: from what the list is and what is asked to the list that is to be. What differs is what
//! is written, in one commit if it fits.

use std::collections::BTreeMap;

use floe_store::{Item, Value};
use serde::Serialize;

use super::difference::Difference;
use super::order::arrange;
use crate::attribute::Invalid;
use crate::attribute::document;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::keys::{EntityKey, Place};
use crate::graph::node::{ToKey, check_names};
use crate::graph::schema::{GraphSchema, OnDelete};
use crate::graph::stored::Edge;

/// How a list changes.
pub(super) enum ListChange {
    Append(Vec<NewEdge>),
    Insert(usize, NewEdge),
    Replace(Vec<NewEdge>),
    Unlink(EntityKey),
    Reorder(Vec<EntityKey>),
    Move(usize, usize),
}

impl ListChange {
    /// How many items it writes at least, whatever the list is.
    pub(super) fn items_min(&self) -> usize {
        match self {
            Self::Append(new) => 1 + new.len(),
            _ => 1,
        }
    }
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

/// A list as it is to be.
pub(super) struct Plan {
    pub(super) wanted: Vec<Edge>,
    pub(super) difference: Difference,
}

/// Plans a change of a list that has these edges.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) when a key is too long, [`InvalidUse`](ErrorKind::InvalidUse) when the change
/// does not fit the list, [`TooLarge`](ErrorKind::TooLarge) when the list has no room.
pub(super) fn plan(
    schema: &GraphSchema,
    subject: &Place,
    predicate: &str,
    edges: &[Edge],
    change: &ListChange,
) -> Result<Plan> {
    let wanted = target(schema, subject, predicate, edges, change)?;
    Ok(Plan {
        difference: Difference::between(edges, &wanted)?,
        wanted,
    })
}

/// The list as it is to be, with its numbers.
fn target(
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
