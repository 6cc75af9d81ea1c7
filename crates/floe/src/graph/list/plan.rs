//! Plans a change of a list: computes the new list from the present one and the requested change. The difference is
//! written, in one commit if it fits.

use std::collections::{BTreeMap, BTreeSet};

use floe_store::{Item, Value};
use serde::Serialize;

use super::difference::Difference;
use super::order::arrange;
use crate::attribute::Invalid;
use crate::attribute::document;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::keys::{EntityKey, ScopedKey};
use crate::graph::node::{ToKey, check_names};
use crate::graph::schema::{GraphSchema, OnDelete};
use crate::graph::stored::Edge;

/// A change of a list.
pub(super) enum ListChange {
    Append(Vec<NewEdge>),
    /// Appends the objects that the list does not contain.
    LinkOnce(Vec<NewEdge>),
    Insert(usize, NewEdge),
    Replace(Vec<NewEdge>),
    Unlink(EntityKey),
    Reorder(Vec<EntityKey>),
    Move(usize, usize),
}

impl ListChange {
    /// Minimum number of items to write, whatever the list contains.
    pub(super) fn items_min(&self) -> usize {
        match self {
            Self::Append(new) => 1 + new.len(),
            _ => 1,
        }
    }
}

/// An edge to add.
#[derive(Clone, Debug)]
pub(super) struct NewEdge {
    pub(super) object: EntityKey,
    /// `None`: those of the present edge to the object, or none.
    pub(super) attributes: Option<Item>,
}

impl NewEdge {
    pub(super) fn plain(object: &impl ToKey) -> Self {
        Self {
            object: object.to_key(),
            attributes: None,
        }
    }

    pub(super) fn with<A: Serialize>(object: &impl ToKey, attributes: &A) -> Result<Self> {
        let invalid = |invalid: &Invalid| Error::invalid("edge", "attributes", invalid);
        let attributes = match document::to_value(attributes).map_err(|error| invalid(&error))? {
            Some(Value::M(attributes)) => attributes,
            None | Some(Value::Null) => Item::new(),
            Some(other) => {
                let reason = format!(
                    "the attributes of an edge are not a map: type={}",
                    other.value_type()
                );
                return Err(invalid(&Invalid::new(reason)));
            }
        };
        check_names(&attributes)?;
        Ok(Self {
            object: object.to_key(),
            attributes: Some(attributes),
        })
    }
}

/// An edge of the new list, with its present number.
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

/// The planned list.
pub(super) struct Plan {
    pub(super) target: Vec<Edge>,
    pub(super) difference: Difference,
}

impl Plan {
    /// Number of items to write.
    pub(super) fn items(&self, subject: &EntityKey) -> usize {
        self.difference.items(subject)
    }
}

/// Plans a change of a list that has these edges.
///
/// # Errors
///
/// [`InvalidField`](ErrorKind::InvalidField) if a key is too long or attributes do not match the relation,
/// [`InvalidUse`](ErrorKind::InvalidUse) if the change does not fit the list or the types of the relation,
/// [`TooLarge`](ErrorKind::TooLarge) if no numbers are left for the list.
pub(super) fn plan(
    schema: &GraphSchema,
    subject: &ScopedKey,
    predicate: &str,
    edges: &[Edge],
    change: &ListChange,
) -> Result<Plan> {
    let new = |new: &NewEdge| {
        ScopedKey::new(&subject.scope, new.object.clone())?;
        let mut edge = Edge {
            subject: subject.key.clone(),
            predicate: predicate.to_owned(),
            object: new.object.clone(),
            attributes: new.attributes.clone().unwrap_or_default(),
            index: 0,
            is_holding: false,
        };
        schema.check_edge(&edge)?;
        let relation = schema.relation_of(&edge);
        edge.is_holding = relation.is_some_and(|of| of.on_delete == OnDelete::Restrict);
        Ok(Slot { number: None, edge })
    };
    let slots = slots(schema, predicate, edges, change, new)?;
    let numbers: Vec<Option<u64>> = slots.iter().map(|slot| slot.number).collect();
    let numbers = arrange(&numbers).ok_or_else(|| too_long(subject, predicate))?;
    let target = slots.into_iter().zip(numbers);
    let target = target.map(|(Slot { edge, .. }, index)| Edge { index, ..edge });
    let target: Vec<Edge> = target.collect();
    Ok(Plan {
        difference: Difference::between(edges, &target)?,
        target,
    })
}

/// The edges of the new list.
fn slots(
    schema: &GraphSchema,
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
        ListChange::LinkOnce(new) => {
            let present = edges.iter().map(|edge| edge.object.clone());
            let mut present: BTreeSet<EntityKey> = present.collect();
            for new in new {
                if present.insert(new.object.clone()) {
                    slots.push(new_slot(new)?);
                }
            }
        }
        ListChange::Insert(at, new) => slots.insert((*at).min(slots.len()), new_slot(new)?),
        ListChange::Replace(new) => return matched(schema, edges, new, new_slot),
        ListChange::Unlink(object) => slots.retain(|slot| slot.edge.object != *object),
        ListChange::Reorder(objects) => {
            let mut left = by_object(edges);
            slots.clear();
            for object in objects {
                let edge = left.get_mut(object).and_then(Vec::pop);
                let edge = edge.ok_or_else(|| other_objects(predicate, object))?;
                slots.push(Slot::kept(edge));
            }
            if let Some(edge) = left.into_values().flatten().next() {
                return Err(other_objects(predicate, &edge.object));
            }
        }
        ListChange::Move(from, to) => {
            if (*from).max(*to) >= slots.len() {
                let edges = slots.len();
                let message = format!(
                    "the position is beyond the end of the list: predicate={predicate} from={from} to={to} edges={edges}"
                );
                return Err(Error::new(ErrorKind::InvalidUse, message));
            }
            let moved = slots.remove(*from);
            slots.insert(*to, moved);
        }
    }
    Ok(slots)
}

/// The new list, reusing present edges to the same objects. Each takes the first one left, so that several edges to one
/// object keep their order. A present edge keeps its attributes unless new ones are given.
fn matched(
    schema: &GraphSchema,
    edges: &[Edge],
    new: &[NewEdge],
    new_slot: impl Fn(&NewEdge) -> Result<Slot>,
) -> Result<Vec<Slot>> {
    let mut left = by_object(edges);
    let slots = new.iter().map(|new| {
        let Some(edge) = left.get_mut(&new.object).and_then(Vec::pop) else {
            return new_slot(new);
        };
        let mut kept = Slot::kept(edge);
        if let Some(attributes) = &new.attributes {
            kept.edge.attributes = attributes.clone();
            schema.check_edge(&kept.edge)?;
        }
        Ok(kept)
    });
    slots.collect()
}

/// The edges by their objects, those to one object last to first.
fn by_object(edges: &[Edge]) -> BTreeMap<&EntityKey, Vec<&Edge>> {
    let mut by_object: BTreeMap<&EntityKey, Vec<&Edge>> = BTreeMap::new();
    for edge in edges.iter().rev() {
        by_object.entry(&edge.object).or_default().push(edge);
    }
    by_object
}

fn other_objects(predicate: &str, object: &EntityKey) -> Error {
    let what = "the new order does not consist of the objects of the list, each as often as the list contains it";
    let message = format!("{what}: predicate={predicate} object={object}");
    Error::new(ErrorKind::InvalidUse, message)
}

fn too_long(subject: &ScopedKey, predicate: &str) -> Error {
    let message = format!("the list has no numbers left: subject={subject} predicate={predicate}");
    Error::new(ErrorKind::TooLarge, message)
}
