//! The plan of a deletion: what goes, and whether it fits into one commit.
//!
//! An entity stores how many edges lead to it, and which entries and claims it has: so what is too wide is known before its
//! edges are read, and of those that lead from it no more are read than fit. What is planned is what was there when it was
//! read. The conditions of the commit name it: the version of each entity, of its list of edges, and the number of edges
//! that lead to it, since the index of reversed edges may not show one yet. Where they do not hold, the deletion is planned
//! anew.

use std::collections::{BTreeMap, BTreeSet};

use super::incoming::incoming_of;
use super::progress::Deleted;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::changes::{Changes, EdgeChangeKind};
use crate::graph::keys::{EntityKey, Place};
use crate::graph::schema::{GraphSchema, OnDelete};
use crate::graph::stored::Edge;
use crate::graph::work::Work;

/// A deletion that fits into one commit.
#[derive(Default)]
pub(super) struct Deletion {
    entities: BTreeMap<EntityKey, Place>,
    /// By subject and key: an edge between two that go is one.
    edges: BTreeMap<(EntityKey, String), Edge>,
    /// How many entries and claims go.
    entries: usize,
}

/// Plans the deletion of an entity and of all that goes with it, as the transaction sees them; `None` if that does not fit
/// into one commit. In a transaction of the caller, which may have added some of it, that is so if entities and edges alone
/// do not fit; the commit counts the rest.
///
/// # Errors
///
/// [`TransactionFailed`](ErrorKind::TransactionFailed) when the index of reversed edges does not show all.
pub(super) async fn plan(work: Work<'_>, root: Place) -> Result<Option<Deletion>> {
    let items_max = work.items_max();
    let (mut queue, mut deletion) = (vec![root], Deletion::default());
    while let Some(place) = queue.pop() {
        if deletion.entities.contains_key(&place.key) {
            continue;
        }
        let Some(stored) = work.load(&place).await? else {
            continue;
        };
        deletion.entities.insert(place.key.clone(), place.clone());
        if work.is_own {
            deletion.entries += stored.index_keys().count() + stored.claims().count();
        }
        // While its entries are behind, it does not list them all.
        if stored.is_behind || stored.incoming > items_max as u64 || deletion.items() > items_max {
            return Ok(None);
        }
        let mut edges = outgoing(work, &place, items_max + 1).await?;
        edges.extend(incoming(work, &place, stored.incoming).await?);
        for edge in edges {
            if let Some(key) = follower(work.schema(), &edge, &place.key) {
                queue.push(work.place(key)?);
            }
            let key = (edge.subject.clone(), edge.predicate_key()?);
            deletion.edges.insert(key, edge);
        }
        if deletion.items() > items_max {
            return Ok(None);
        }
    }
    let fits = !work.is_own || deletion.items() + deletion.objects() <= items_max;
    Ok(fits.then_some(deletion))
}

async fn outgoing(work: Work<'_>, place: &Place, max: usize) -> Result<Vec<Edge>> {
    let stored = work.reads().outgoing(place, None, Some(max)).await?;
    work.changes(|changes| changes.outgoing(place, None, stored))?
}

async fn incoming(work: Work<'_>, place: &Place, expected: u64) -> Result<Vec<Edge>> {
    let found = incoming_of(&work.reads(), place, expected).await?;
    work.changes(|changes| changes.incoming(place, found))
}

impl Deletion {
    /// How many items it writes, without the objects that stay.
    fn items(&self) -> usize {
        self.entities.len() + self.edges.len() + self.entries
    }

    /// To how many objects that stay the edges lead: the number of edges to each changes.
    fn objects(&self) -> usize {
        let objects = self.edges.values().map(|edge| &edge.object);
        let objects: BTreeSet<&EntityKey> = objects.collect();
        let stays = |object: &&&EntityKey| !self.entities.contains_key(**object);
        objects.iter().filter(stays).count()
    }

    /// Refuses to delete while something that stays refers to what goes.
    pub(super) fn check_restrictions(&self) -> Result<()> {
        for edge in self.edges.values().filter(|edge| edge.is_holding) {
            let stays = !self.entities.contains_key(&edge.subject);
            if let (Some(object), true) = (self.entities.get(&edge.object), stays) {
                return Err(restricted(object, edge));
            }
        }
        Ok(())
    }

    /// Takes note of all that goes.
    pub(super) fn apply(self, changes: &mut Changes, scope: &str) -> Result<Deleted> {
        let deleted = Deleted {
            entities: self.entities.len() as u64,
            edges: self.edges.len() as u64,
            kept: Vec::new(),
        };
        for place in self.entities.values() {
            changes.delete(place);
        }
        for edge in self.edges.into_values() {
            let subject = Place::new(scope, edge.subject.clone())?;
            changes.change_edge(subject, edge, EdgeChangeKind::Remove)?;
        }
        Ok(deleted)
    }
}

pub(super) fn restricted(place: &Place, edge: &Edge) -> Error {
    let (by, predicate) = (&edge.subject, &edge.predicate);
    let message =
        format!("the entity is referred to: entity={place} by={by} predicate={predicate}");
    Error::new(ErrorKind::Restricted, message)
}

/// The other end of an edge, if it goes with this one: an object with what owns it, a subject with its object by cascade.
pub(super) fn follower<'e>(
    schema: &GraphSchema,
    edge: &'e Edge,
    end: &EntityKey,
) -> Option<&'e EntityKey> {
    let relation = schema.relation_of(edge)?;
    if relation.owns && edge.subject == *end {
        return Some(&edge.object);
    }
    let cascades = relation.on_delete == OnDelete::Cascade;
    (cascades && edge.object == *end).then_some(&edge.subject)
}
