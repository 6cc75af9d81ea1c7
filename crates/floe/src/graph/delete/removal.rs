//! The steps that remove what belongs to a marked entity: edges, in batches, with the counts on the entities that they
//! lead to, and entries.
//!
//! Each step depends on the mark, and returns `None` if there is no mark.

use std::collections::BTreeSet;

use floe_store::expr::Update;
use floe_store::op::{DeleteItem, TransactWrite};

use super::incoming::{LAG_TRIES, lagging};
use super::job::DeletionJob;
use crate::error::Result;
use crate::graph::changes::EdgeChangeKind;
use crate::graph::keys::{ScopedKey, scoped_keys};
use crate::graph::reads;
use crate::graph::steps::send;
use crate::graph::stored::{Edge, SUBJECT_KEY, StoredEntity, UNIQUE_KEY};
use crate::graph::writes::{
    contended, count, counts, edge_writes, entity_update, exists, is_deleting, is_holder, release,
};

/// Maximum attempts to remove a batch of edges that others are removing as well.
const REMOVALS_MAX: u32 = 50;

impl DeletionJob<'_> {
    pub(super) async fn remove_outgoing(&mut self, scoped_key: &ScopedKey) -> Result<Option<()>> {
        // Each edge may also write its object's item, and each batch the entity's.
        let some = (self.items_max().saturating_sub(1) / 2).max(1);
        loop {
            let edges = self.reads().outgoing(scoped_key, None, Some(some)).await?;
            if edges.is_empty() {
                return Ok(Some(()));
            }
            self.mark_cascade_targets(scoped_key, &edges).await?;
            if self.remove_edges(scoped_key, edges).await?.is_none() {
                return Ok(None);
            }
            self.report_progress(scoped_key, 0);
        }
    }

    /// Removes the edges to an entity until its count of incoming edges is 0. Returns the entity as read then.
    pub(super) async fn remove_incoming(
        &mut self,
        scoped_key: &ScopedKey,
    ) -> Result<Option<StoredEntity>> {
        let some = self.items_max().saturating_sub(1).max(1);
        let mut tries = 0;
        loop {
            let stored = self.reads().entity(scoped_key).await?;
            let Some(stored) = stored.filter(|stored| stored.is_deleting) else {
                return Ok(None);
            };
            if stored.incoming == 0 {
                return Ok(Some(stored));
            }
            let edges = self.reads().incoming(scoped_key, Some(some)).await?;
            self.mark_cascade_targets(scoped_key, &edges).await?;
            let Some(removed) = self.remove_edges(scoped_key, edges).await? else {
                return Ok(None);
            };
            self.report_progress(scoped_key, stored.incoming.saturating_sub(removed));
            if removed > 0 {
                tries = 0;
                continue;
            }
            tries += 1;
            if tries > LAG_TRIES {
                return Err(lagging(scoped_key, stored.incoming, 0));
            }
            self.reads().pause(tries).await;
        }
    }

    /// Removes edges of a marked entity and updates the counts of their objects. Returns the number of removed edges.
    async fn remove_edges(
        &mut self,
        scoped_key: &ScopedKey,
        mut edges: Vec<Edge>,
    ) -> Result<Option<u64>> {
        let mut missing = BTreeSet::new();
        for _ in 0..REMOVALS_MAX {
            if edges.is_empty() {
                return Ok(Some(0));
            }
            let writes = self.removal(scoped_key, &edges, &missing)?;
            if send(self.db, writes).await?.is_applied() {
                let removed = edges.len() as u64;
                self.deleted.edges += removed;
                return Ok(Some(removed));
            }
            if !self.is_deleting(scoped_key).await? {
                return Ok(None);
            }
            // Some edges or their objects no longer exist.
            edges = self.reads().still_stored(self.scope, edges).await?;
            missing = self.missing_objects(&edges).await?;
        }
        Err(contended(scoped_key, REMOVALS_MAX))
    }

    /// The objects of the edges that do not exist.
    async fn missing_objects(&self, edges: &[Edge]) -> Result<BTreeSet<ScopedKey>> {
        let scoped_keys = scoped_keys(self.scope, edges.iter().map(|edge| &edge.object))?;
        let found = self.reads().entities(&scoped_keys).await?;
        let mut missing = BTreeSet::from_iter(scoped_keys);
        missing.retain(|scoped_key| !found.contains_key(scoped_key));
        Ok(missing)
    }

    /// The writes that remove existing edges of a marked entity and update the counts of their objects, except of the
    /// objects in `missing`.
    fn removal(
        &self,
        scoped_key: &ScopedKey,
        edges: &[Edge],
        missing: &BTreeSet<ScopedKey>,
    ) -> Result<Vec<TransactWrite>> {
        let edges = edges.iter().map(|edge| (edge, EdgeChangeKind::Remove));
        let objects = counts(edges.clone());
        let mut writes = edge_writes(self.schema(), self.scope, edges)?;
        if !objects.contains_key(&scoped_key.key) {
            writes.push(self.mark_check(scoped_key));
        }
        for (object, by) in objects {
            let object = ScopedKey::new(self.scope, object.clone())?;
            if missing.contains(&object) {
                continue;
            }
            let is_own = object == *scoped_key;
            let is_there = if is_own { is_deleting() } else { exists() };
            let update = count(Update::new(), by);
            writes.push(entity_update(self.schema(), &object, update, is_there));
        }
        Ok(writes)
    }

    /// Removes the remaining entries and claims of a marked entity.
    pub(super) async fn remove_entries(
        &self,
        scoped_key: &ScopedKey,
        stored: &StoredEntity,
    ) -> Result<Option<()>> {
        let table = self.schema().entries();
        for (index, key) in stored.claims() {
            let claim = release(self.schema(), &scoped_key.scope, index, key);
            let claim = claim.condition(is_holder(&scoped_key.key));
            // A failed condition means the claim was deleted already, or belongs to another entity.
            send(self.db, vec![claim.into(), self.mark_check(scoped_key)]).await?;
        }
        let entries = reads::entries_query(self.schema(), scoped_key);
        let entries = self.reads().query(entries, None).await?;
        for some in entries.chunks(self.items_max().saturating_sub(1).max(1)) {
            let deletes = some.iter().map(|entry| {
                let key = entry.pick(&[SUBJECT_KEY, UNIQUE_KEY]);
                DeleteItem::new(table.as_str(), key).into()
            });
            let writes = std::iter::once(self.mark_check(scoped_key)).chain(deletes);
            if !send(self.db, writes.collect()).await?.is_applied() {
                return Ok(None);
            }
        }
        Ok(Some(()))
    }
}
