//! The plan of a deletion: what goes, and whether it fits into one commit.
//!
//! An entity tells how many edges lead to it, and which entries and claims it has: so what is too wide is known before its
//! edges are read, and of those that lead from it no more are read than fit. What is planned is what was there when it was
//! read. The conditions of the commit name it: the version of each entity, of its list of edges, and the number of edges
//! that lead to it, since the index of reversed edges may not show one yet. Where they do not hold, the deletion is planned
//! anew.

use std::collections::{BTreeMap, BTreeSet};

use super::incoming::incoming_of;
use super::progress::Deleted;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::changes::Changes;
use crate::graph::keys::{EntityKey, Place};
use crate::graph::schema::{GraphSchema, OnDelete};
use crate::graph::stored::{Edge, Stored};
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
/// into one commit.
///
/// # Errors
///
/// [`TransactionFailed`](ErrorKind::TransactionFailed) when the index of reversed edges does not show all.
pub(super) async fn plan(work: Work<'_>, root: Place) -> Result<Option<Deletion>> {
    let items_max = work.items_max();
    let mut walk = Walk::new(work.schema(), work.scope, [root]);
    let mut deletion = Deletion::default();
    while let Some(place) = walk.next() {
        let Some(stored) = work.load(&place).await? else {
            continue;
        };
        deletion.add_entity(&place, &stored);
        // Which entries it has while they are behind, only these tell.
        if stored.is_behind || stored.incoming > items_max as u64 || deletion.items() > items_max {
            return Ok(None);
        }
        let outgoing = outgoing(work, &place, items_max + 1).await?;
        let incoming = incoming(work, &place, stored.incoming).await?;
        walk.enter(place, &outgoing, &incoming)?;
        deletion.add_edges(outgoing.into_iter().chain(incoming))?;
        if deletion.items() > items_max {
            return Ok(None);
        }
    }
    let items = deletion.items() + deletion.objects();
    Ok((items <= items_max).then_some(deletion))
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
    fn add_entity(&mut self, place: &Place, stored: &Stored) {
        self.entities.insert(place.key.clone(), place.clone());
        self.entries += stored.index_keys().count() + stored.claims().count();
    }

    fn add_edges(&mut self, edges: impl Iterator<Item = Edge>) -> Result<()> {
        for edge in edges {
            let key = (edge.subject.clone(), edge.predicate_key()?);
            self.edges.insert(key, edge);
        }
        Ok(())
    }

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
        self.entities
            .values()
            .for_each(|place| changes.delete(place));
        for edge in self.edges.into_values() {
            changes.remove_edge(scope, edge, false)?;
        }
        Ok(deleted)
    }
}

pub(super) fn restricted(place: &Place, edge: &Edge) -> Error {
    let (subject, predicate) = (&edge.subject, &edge.predicate);
    Error::new(
        ErrorKind::Restricted,
        format!("the entity is referred to: entity={place} by={subject} predicate={predicate}"),
    )
}

/// Finds what goes with entities, one after the other.
pub(super) struct Walk<'a> {
    schema: &'a GraphSchema,
    scope: &'a str,
    queue: Vec<Place>,
    /// What was met and is there.
    pub(super) goes: BTreeSet<Place>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        schema: &'a GraphSchema,
        scope: &'a str,
        from: impl IntoIterator<Item = Place>,
    ) -> Self {
        Self {
            schema,
            scope,
            queue: from.into_iter().collect(),
            goes: BTreeSet::new(),
        }
    }

    /// One that was not met before.
    pub(super) fn next(&mut self) -> Option<Place> {
        while let Some(place) = self.queue.pop() {
            if !self.goes.contains(&place) {
                return Some(place);
            }
        }
        None
    }

    /// Takes note of one that is there, and of what goes with it.
    pub(super) fn enter(
        &mut self,
        place: Place,
        outgoing: &[Edge],
        incoming: &[Edge],
    ) -> Result<()> {
        let owned = outgoing.iter().filter(|edge| is_owned(self.schema, edge));
        let owned = owned.map(|edge| &edge.object);
        let cascading = incoming
            .iter()
            .filter(|edge| is_cascading(self.schema, edge));
        for key in owned.chain(cascading.map(|edge| &edge.subject)) {
            self.queue.push(Place::new(self.scope, key.clone())?);
        }
        self.goes.insert(place);
        Ok(())
    }
}

/// Whether the object of an edge goes with its subject.
pub(super) fn is_owned(schema: &GraphSchema, edge: &Edge) -> bool {
    let (from, to) = (edge.subject.type_name(), edge.object.type_name());
    schema.owns(from, &edge.predicate, to)
}

/// Whether the subject of an edge goes with its object.
pub(super) fn is_cascading(schema: &GraphSchema, edge: &Edge) -> bool {
    let (from, to) = (edge.subject.type_name(), edge.object.type_name());
    schema.on_delete(from, &edge.predicate, to) == OnDelete::Cascade
}
