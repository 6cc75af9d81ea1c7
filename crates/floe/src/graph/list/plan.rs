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

/// An edge of the new list, with the number that it has already.
struct Slot {
    number: Option<u64>,
    edge: Edge,
}

impl Slot {
    fn kept(edge: &Edge) -> Self {
        Self {
            number: Some(edge.index),
            edge: edge.clone(),
        }
    }
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
    let new = |new: &NewEdge| {
        Place::new(&subject.scope, new.object.clone())?;
        let mut edge = Edge {
            subject: subject.key.clone(),
            predicate: predicate.to_owned(),
            object: new.object.clone(),
            attributes: new.attributes.clone(),
            index: 0,
            is_holding: false,
        };
        let relation = schema.relation_of(&edge);
        edge.is_holding = relation.is_some_and(|of| of.on_delete == OnDelete::Restrict);
        Ok(Slot { number: None, edge })
    };
    let slots = slots(predicate, edges, change, new)?;
    let numbers: Vec<Option<u64>> = slots.iter().map(|slot| slot.number).collect();
    let numbers = arrange(&numbers).ok_or_else(|| too_long(subject, predicate))?;
    let wanted = slots.into_iter().zip(numbers);
    let wanted = wanted.map(|(Slot { edge, .. }, index)| Edge { index, ..edge });
    let wanted: Vec<Edge> = wanted.collect();
    Ok(Plan {
        difference: Difference::between(edges, &wanted)?,
        wanted,
    })
}

/// What the list is to be.
fn slots(
    predicate: &str,
    edges: &[Edge],
    change: &ListChange,
    new_slot: impl Fn(&NewEdge) -> Result<Slot>,
) -> Result<Vec<Slot>> {
    let mut slots: Vec<Slot> = edges.iter().map(Slot::kept).collect();
    match change {
        ListChange::Append(new) => {
            for new in new {
                slots.push(new_slot(new)?);
            }
        }
        ListChange::Insert(at, new) => slots.insert((*at).min(slots.len()), new_slot(new)?),
        ListChange::Replace(new) => return matched(edges, new, new_slot),
        ListChange::Unlink(object) => slots.retain(|slot| slot.edge.object != *object),
        ListChange::Reorder(objects) => {
            let mut left = std::mem::take(&mut slots);
            for object in objects {
                let at = left.iter().position(|slot| slot.edge.object == *object);
                let at = at.ok_or_else(|| other_objects(predicate, object))?;
                slots.push(left.remove(at));
            }
            if let Some(slot) = left.first() {
                return Err(other_objects(predicate, &slot.edge.object));
            }
        }
        ListChange::Move(from, to) => {
            if (*from).max(*to) >= slots.len() {
                let edges = slots.len();
                let message = format!(
                    "the list has no such position: predicate={predicate} from={from} to={to} edges={edges}"
                );
                return Err(Error::new(ErrorKind::InvalidUse, message));
            }
            let moved = slots.remove(*from);
            slots.insert(*to, moved);
        }
    }
    Ok(slots)
}

/// The new list, made of the edges that lead to the same objects as far as there are such. Each takes the first that is
/// left, so an edge that stands several times keeps its order.
fn matched(
    edges: &[Edge],
    new: &[NewEdge],
    new_slot: impl Fn(&NewEdge) -> Result<Slot>,
) -> Result<Vec<Slot>> {
    let mut left: BTreeMap<&EntityKey, Vec<&Edge>> = BTreeMap::new();
    for edge in edges.iter().rev() {
        left.entry(&edge.object).or_default().push(edge);
    }
    let slots = new.iter().map(|new| {
        let Some(edge) = left.get_mut(&new.object).and_then(Vec::pop) else {
            return new_slot(new);
        };
        let mut kept = Slot::kept(edge);
        kept.edge.attributes = new.attributes.clone();
        Ok(kept)
    });
    slots.collect()
}

fn other_objects(predicate: &str, object: &EntityKey) -> Error {
    let what = "the new order has not the objects of the list, each as often as it stands there";
    let message = format!("{what}: predicate={predicate} object={object}");
    Error::new(ErrorKind::InvalidUse, message)
}

fn too_long(subject: &Place, predicate: &str) -> Error {
    let message = format!("the list has no room: subject={subject} predicate={predicate}");
    Error::new(ErrorKind::TooLarge, message)
}
