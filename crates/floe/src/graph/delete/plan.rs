//! The plan of a deletion: what is deleted, and whether that fits into one commit.
//!
//! An entity stores the number of its incoming edges, its entries and its claims. So a deletion that is too wide is
//! detected before its edges are read, and no more outgoing edges are read than fit. The conditions of the commit
//! require that what was planned has not changed: the version of each entity, the version of its list of edges, and the
//! number of its incoming edges, since the index of reversed edges may lag. If they fail, the deletion is planned
//! again.

use std::collections::{BTreeMap, BTreeSet};

use super::incoming::incoming_of;
use super::progress::Deleted;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::changes::{Changes, EdgeChangeKind};
use crate::graph::keys::{EntityKey, ScopedKey};
use crate::graph::operation::OperationContext;
use crate::graph::schema::{GraphSchema, OnDelete};
use crate::graph::stored::Edge;

/// A deletion that fits into one commit.
#[derive(Default)]
pub(super) struct Deletion {
    entities: BTreeMap<EntityKey, ScopedKey>,
    /// Key: subject and edge key. An edge between two deleted entities is stored once.
    edges: BTreeMap<(EntityKey, String), Edge>,
    /// Number of deleted entries and claims.
    entries: usize,
}

/// Plans the deletion of an entity and of all that is deleted with it, as the transaction sees them. Returns `None` if
/// it does not fit into one commit. In the caller's transaction, which may have added some of the items itself, only
/// entities and edges count here; the commit counts the rest.
///
/// # Errors
///
/// [`TransactionFailed`](ErrorKind::TransactionFailed) if the index of reversed edges does not return all edges.
pub(super) async fn plan(
    context: OperationContext<'_>,
    root: ScopedKey,
) -> Result<Option<Deletion>> {
    let items_max = context.items_max();
    let (mut queue, mut deletion) = (vec![root], Deletion::default());
    while let Some(scoped_key) = queue.pop() {
        if deletion.entities.contains_key(&scoped_key.key) {
            continue;
        }
        let Some(stored) = context.load(&scoped_key).await? else {
            continue;
        };
        deletion
            .entities
            .insert(scoped_key.key.clone(), scoped_key.clone());
        if context.is_own {
            deletion.entries += stored.index_keys().count() + stored.claims().count();
        }
        // An entity whose entries are pending does not list all of them.
        if stored.has_pending_entries
            || stored.incoming > items_max as u64
            || deletion.items() > items_max
        {
            return Ok(None);
        }
        let mut edges = outgoing(context, &scoped_key, items_max + 1).await?;
        edges.extend(incoming(context, &scoped_key, stored.incoming).await?);
        for edge in edges {
            if let Some(key) = cascade_target(context.schema(), &edge, &scoped_key.key) {
                queue.push(context.scoped_key(key)?);
            }
            let key = (edge.subject.clone(), edge.predicate_key()?);
            deletion.edges.insert(key, edge);
        }
        if deletion.items() > items_max {
            return Ok(None);
        }
    }
    let fits = !context.is_own || deletion.items() + deletion.objects() <= items_max;
    Ok(fits.then_some(deletion))
}

async fn outgoing(
    context: OperationContext<'_>,
    scoped_key: &ScopedKey,
    max: usize,
) -> Result<Vec<Edge>> {
    let stored = context
        .reads()
        .outgoing(scoped_key, None, Some(max))
        .await?;
    context.changes(|changes| changes.outgoing(scoped_key, None, stored))?
}

async fn incoming(
    context: OperationContext<'_>,
    scoped_key: &ScopedKey,
    expected: u64,
) -> Result<Vec<Edge>> {
    let found = incoming_of(&context.reads(), scoped_key, expected).await?;
    context.changes(|changes| changes.incoming(scoped_key, found))
}

impl Deletion {
    /// Number of items it writes, without the objects that stay.
    fn items(&self) -> usize {
        self.entities.len() + self.edges.len() + self.entries
    }

    /// Number of remaining objects whose counts of incoming edges change.
    fn objects(&self) -> usize {
        self.objects_that_stay().len()
    }

    fn objects_that_stay(&self) -> BTreeSet<&EntityKey> {
        let objects = self.edges.values().map(|edge| &edge.object);
        let stays = |object: &&EntityKey| !self.entities.contains_key(*object);
        objects.filter(stays).collect()
    }

    /// The remaining objects whose counts of incoming edges change.
    pub(super) fn remaining_objects(&self) -> Vec<EntityKey> {
        self.objects_that_stay().into_iter().cloned().collect()
    }

    /// Fails if an entity that stays refers to a deleted entity and prevents its deletion.
    pub(super) fn check_restrictions(&self) -> Result<()> {
        for edge in self.edges.values().filter(|edge| edge.is_holding) {
            let stays = !self.entities.contains_key(&edge.subject);
            if let (Some(object), true) = (self.entities.get(&edge.object), stays) {
                return Err(restricted(object, edge));
            }
        }
        Ok(())
    }

    /// Records the deletion.
    pub(super) fn apply(self, changes: &mut Changes, scope: &str) -> Result<Deleted> {
        let deleted = Deleted {
            entities: self.entities.len() as u64,
            edges: self.edges.len() as u64,
            kept: Vec::new(),
        };
        for scoped_key in self.entities.values() {
            changes.delete(scoped_key);
        }
        for edge in self.edges.into_values() {
            let subject = ScopedKey::new(scope, edge.subject.clone())?;
            changes.change_edge(subject, edge, EdgeChangeKind::Remove)?;
        }
        Ok(deleted)
    }
}

pub(super) fn restricted(scoped_key: &ScopedKey, edge: &Edge) -> Error {
    let (by, predicate) = (&edge.subject, &edge.predicate);
    let message = format!(
        "another entity refers to the entity and prevents its deletion: entity={scoped_key} by={by} predicate={predicate}"
    );
    Error::new(ErrorKind::Restricted, message)
}

/// The other end of an edge, if it is deleted with this end: an owned object, or a subject whose relation cascades.
pub(super) fn cascade_target<'e>(
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
