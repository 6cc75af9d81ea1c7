//! The state of a deletion in steps, and the marks on the entities it deletes.
//!
//! An entity is marked in one transaction that also records the intent to delete it, and deletes its index entries if
//! they fit. From then on readers do not see it, and it cannot be linked to.

use std::collections::BTreeSet;

use floe_store::expr::{Condition, Path, Update};
use floe_store::op::{ConditionCheck, DeleteItem, TransactWrite};
use floe_store::{Item, Value};

use super::incoming::incoming_of;
use super::plan::cascade_target;
use super::progress::{Deleted, DeletionProgress, Listener};
use crate::db::Db;
use crate::error::Result;
use crate::graph::keys::ScopedKey;
use crate::graph::reads::Reads;
use crate::graph::schema::GraphSchema;
use crate::graph::steps::send;
use crate::graph::stored::{
    self, DELETING, DELETIONS_ID, Edge, HELD_BY, INDEX_ENTRIES, SUBJECT_KEY, StoredEntity, VERSION,
    meta,
};
use crate::graph::writes::{
    contended, entity_check, entity_update, intent_put, is_deleting, is_number, is_version, release,
};

/// Maximum attempts to mark an entity that other writers change.
const MARKS_MAX: u32 = 50;

/// A deletion in steps.
pub(super) struct DeletionJob<'a> {
    pub(super) db: &'a Db,
    pub(super) scope: &'a str,
    listener: Listener<'a>,
    pub(super) queue: Vec<ScopedKey>,
    /// All entities that were ever queued.
    queued: BTreeSet<ScopedKey>,
    /// All entities of this deletion, if they had to be determined.
    deletion_set: Option<BTreeSet<ScopedKey>>,
    pub(super) deleted: Deleted,
}

impl<'a> DeletionJob<'a> {
    pub(super) fn new(db: &'a Db, scope: &'a str, listener: Listener<'a>) -> Self {
        Self {
            db,
            scope,
            listener,
            queue: Vec::new(),
            queued: BTreeSet::new(),
            deletion_set: None,
            deleted: Deleted::default(),
        }
    }

    pub(super) const fn reads(&self) -> Reads<'a> {
        Reads::of_graph(self.db, None)
    }

    pub(super) fn schema(&self) -> &'a GraphSchema {
        self.db.graph_schema()
    }

    /// Queues a marked entity.
    pub(super) fn enqueue(&mut self, scoped_key: ScopedKey) {
        if self.queued.insert(scoped_key.clone()) {
            self.queue.push(scoped_key);
        }
    }

    /// Marks an entity and records the intent to delete it. An entity that is deleted with another one is marked only
    /// while the other one is marked and the edge between them exists.
    pub(super) async fn mark(
        &mut self,
        scoped_key: &ScopedKey,
        with: Option<(&ScopedKey, &Edge)>,
    ) -> Result<MarkOutcome> {
        for _ in 0..MARKS_MAX {
            let Some(old) = self.reads().entity(scoped_key).await? else {
                return Ok(MarkOutcome::Absent);
            };
            if old.is_deleting {
                return Ok(MarkOutcome::Marked);
            }
            if let Some(edge) = self.blocking_edge(scoped_key, &old).await? {
                return Ok(MarkOutcome::Held(Box::new(edge)));
            }
            let mut writes = self.mark_writes(scoped_key, &old);
            if let Some((other, edge)) = with {
                writes.push(self.mark_check(other));
                writes.push(self.edge_check(edge)?);
            }
            if send(self.db, writes).await?.is_applied() {
                return Ok(MarkOutcome::Marked);
            }
            if let Some((other, edge)) = with
                && !(self.is_deleting(other).await? && self.edge_exists(edge).await?)
            {
                return Ok(MarkOutcome::Absent);
            }
        }
        Err(contended(scoped_key, MARKS_MAX))
    }

    pub(super) async fn is_deleting(&self, scoped_key: &ScopedKey) -> Result<bool> {
        let stored = self.reads().entity(scoped_key).await?;
        Ok(stored.is_some_and(|stored| stored.is_deleting))
    }

    /// A check that an entity is marked.
    pub(super) fn mark_check(&self, scoped_key: &ScopedKey) -> TransactWrite {
        entity_check(self.schema(), scoped_key, is_deleting())
    }

    /// A check that an edge exists.
    fn edge_check(&self, edge: &Edge) -> Result<TransactWrite> {
        let is_there = Condition::attribute_exists(Path::attribute(SUBJECT_KEY));
        let (table, key) = (self.schema().relationships(), edge.key_item(self.scope)?);
        Ok(ConditionCheck::new(table, key, is_there).into())
    }

    async fn edge_exists(&self, edge: &Edge) -> Result<bool> {
        let (table, key) = (self.schema().relationships(), edge.key_item(self.scope)?);
        Ok(self.reads().item(&table, &key).await?.is_some())
    }

    /// The writes that mark an entity, and delete its entries and claims if they are known and fit.
    fn mark_writes(&self, scoped_key: &ScopedKey, old: &StoredEntity) -> Vec<TransactWrite> {
        let entries = self.schema().entries();
        let mut update = Update::new()
            .set(meta(&DELETING), true)
            .set(meta(&VERSION), old.version + 1);
        let mut writes: Vec<TransactWrite> = Vec::new();
        for (index, key) in old.index_keys() {
            let entry = stored::entry_key(scoped_key, index, key);
            writes.push(DeleteItem::new(entries.as_str(), entry).into());
        }
        for (index, key) in old.claims() {
            writes.push(release(self.schema(), &scoped_key.scope, index, key).into());
        }
        if !old.has_pending_entries && writes.len() + 4 <= self.items_max() {
            let nothing = Value::M(Item::new());
            update = update.set(Path::attribute(INDEX_ENTRIES), nothing);
        } else {
            writes.clear();
        }
        let as_seen = is_version(old.version).and(is_number(&HELD_BY, old.held));
        writes.push(entity_update(self.schema(), scoped_key, update, as_seen));
        writes.push(intent_put(self.schema(), DELETIONS_ID, scoped_key));
        writes
    }

    /// Returns an edge that prevents the deletion of an entity: one whose subject is not deleted as well.
    async fn blocking_edge(
        &mut self,
        scoped_key: &ScopedKey,
        stored: &StoredEntity,
    ) -> Result<Option<Edge>> {
        if stored.held == 0 {
            return Ok(None);
        }
        let deletion_set = match self.deletion_set.take() {
            Some(deletion_set) => deletion_set,
            None => self.closure(scoped_key).await?,
        };
        let incoming = incoming_of(&self.reads(), scoped_key, stored.incoming).await?;
        let mut holding = incoming.into_iter().filter(|edge| edge.is_holding);
        let stays = |edge: &Edge| {
            let subject = ScopedKey {
                scope: scoped_key.scope.clone(),
                key: edge.subject.clone(),
            };
            !deletion_set.contains(&subject)
        };
        let edge = holding.find(stays);
        self.deletion_set = Some(deletion_set);
        Ok(edge)
    }

    /// An entity, all marked entities, and all entities that are deleted with them.
    async fn closure(&self, root: &ScopedKey) -> Result<BTreeSet<ScopedKey>> {
        let mut queue: Vec<ScopedKey> = self.queued.iter().chain([root]).cloned().collect();
        let mut deletion_set = BTreeSet::new();
        while let Some(scoped_key) = queue.pop() {
            let stored = self.reads().entity(&scoped_key).await?;
            let (Some(stored), true) = (stored, deletion_set.insert(scoped_key.clone())) else {
                continue;
            };
            let mut edges = self.reads().outgoing(&scoped_key, None, None).await?;
            edges.extend(incoming_of(&self.reads(), &scoped_key, stored.incoming).await?);
            for edge in &edges {
                if let Some(key) = cascade_target(self.schema(), edge, &scoped_key.key) {
                    queue.push(ScopedKey::new(self.scope, key.clone())?);
                }
            }
        }
        Ok(deletion_set)
    }

    pub(super) fn report_progress(&self, scoped_key: &ScopedKey, incoming_left: u64) {
        (self.listener)(&DeletionProgress {
            entity: scoped_key.key.clone(),
            entities: self.deleted.entities,
            edges: self.deleted.edges,
            incoming_left,
            entities_left: self.queue.len() as u64,
        });
    }

    /// Maximum number of items in one step.
    pub(super) fn items_max(&self) -> usize {
        self.reads().items_max()
    }

    /// Marks the entities that are deleted with an entity because of these edges, unless edges from elsewhere prevent
    /// it.
    pub(super) async fn mark_cascade_targets(
        &mut self,
        other: &ScopedKey,
        edges: &[Edge],
    ) -> Result<()> {
        for edge in edges {
            let Some(key) = cascade_target(self.schema(), edge, &other.key) else {
                continue;
            };
            let scoped_key = ScopedKey::new(self.scope, key.clone())?;
            match self.mark(&scoped_key, Some((other, edge))).await? {
                MarkOutcome::Marked => self.enqueue(scoped_key),
                MarkOutcome::Held(_) => self.deleted.kept.push(key.clone()),
                MarkOutcome::Absent => {}
            }
        }
        Ok(())
    }
}

/// The result of marking an entity.
pub(super) enum MarkOutcome {
    Marked,
    Absent,
    /// An edge prevents the deletion.
    Held(Box<Edge>),
}
