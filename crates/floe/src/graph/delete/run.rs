//! Deletions that do not fit into one transaction. They are made in steps, and the process may crash after any step.
//!
//! First the entity is marked and an intent is recorded (`job.rs`). Then its edges are removed in batches, with the
//! count of incoming edges (`removal.rs`). When that count is 0, the entity is deleted, and the record of its completed
//! deletion replaces the intent.
//!
//! Every step depends on the mark. So steps can be repeated, every process that finds an intent can continue the
//! deletion, also concurrently, and a late process cannot harm an entity that was created again under the same key.

use floe_store::expr::{Condition, Path};
use floe_store::op::{DeleteItem, PutItem};
use tracing::Instrument;

use super::job::{DeletionJob, MarkOutcome};
use super::plan::restricted;
use super::progress::Deleted;
use crate::error::Result;
use crate::graph::keys::ScopedKey;
use crate::graph::reads::intents_query;
use crate::graph::steps::send;
use crate::graph::stored::{
    self, COMPLETED, DELETING, DELETIONS_ID, ID, INCOMING, PENDING_ID, SCOPE_TYPE_KEY, meta,
};
use crate::graph::telemetry;
use crate::graph::writes::{entity_check, intent_delete, is_deleting, is_number};

impl DeletionJob<'_> {
    /// Deletes an entity and all that its relations delete with it.
    ///
    /// # Errors
    ///
    /// [`Restricted`](crate::ErrorKind::Restricted) if other entities refer to it; nothing is changed then.
    pub(super) async fn delete(mut self, root: &ScopedKey) -> Result<Deleted> {
        match self.mark(root, None).await? {
            MarkOutcome::Marked => self.enqueue(root.clone()),
            MarkOutcome::Absent => {}
            MarkOutcome::Held(edge) => return Err(restricted(root, &edge)),
        }
        self.run().await
    }

    /// Deletes all marked entities.
    pub(super) async fn run(mut self) -> Result<Deleted> {
        let span = telemetry::delete();
        while let Some(scoped_key) = self.queue.pop() {
            self.finish(&scoped_key).instrument(span.clone()).await?;
        }
        span.record("floe.graph.entities", self.deleted.entities);
        if self.deleted.entities > 0 {
            self.remove_outdated().await?;
        }
        Ok(self.deleted)
    }

    /// Removes the records of deletions that were completed long ago.
    async fn remove_outdated(&self) -> Result<()> {
        let query = intents_query(self.schema(), DELETIONS_ID, self.scope);
        let mut intents = self.reads().query(query, None).await?;
        let now = self.db.engine().now();
        intents.retain(|intent| stored::is_outdated(intent, now));
        for some in intents.chunks(self.items_max().max(1)) {
            let deletes = some.iter().map(|intent| {
                let key = intent.pick(&[ID, SCOPE_TYPE_KEY]);
                let delete = DeleteItem::new(self.schema().entities(), key);
                let is_completed = Condition::attribute_exists(Path::attribute(COMPLETED));
                delete.condition(is_completed).into()
            });
            // A failed condition means that such an entity is being deleted again; the next deletion removes the others.
            send(self.db, deletes.collect()).await?;
        }
        Ok(())
    }

    /// Deletes a marked entity and everything that belongs to it.
    async fn finish(&mut self, scoped_key: &ScopedKey) -> Result<()> {
        loop {
            // Without a mark, another process has completed the deletion, and the intent was deleted with the entity.
            let Some(()) = self.remove_outgoing(scoped_key).await? else {
                return self.delete_stale_intent(scoped_key).await;
            };
            let Some(stored) = self.remove_incoming(scoped_key).await? else {
                return self.delete_stale_intent(scoped_key).await;
            };
            let Some(()) = self.remove_entries(scoped_key, &stored).await? else {
                return self.delete_stale_intent(scoped_key).await;
            };
            let is_empty = is_deleting().and(is_number(&INCOMING, 0));
            let entities = self.schema().entities();
            let entity = DeleteItem::new(entities.as_str(), stored::entity_key(scoped_key))
                .condition(is_empty);
            let completed = stored::completed_deletion(scoped_key, self.db.engine().now());
            let completed = PutItem::new(entities.as_str(), completed);
            let mut writes = vec![entity.into(), completed.into()];
            if stored.has_pending_entries {
                writes.push(intent_delete(self.schema(), PENDING_ID, scoped_key));
            }
            if send(self.db, writes).await?.is_applied() {
                self.deleted.entities += 1;
                self.report_progress(scoped_key, 0);
                return Ok(());
            }
        }
    }

    /// Deletes an intent whose entity is not marked.
    async fn delete_stale_intent(&self, scoped_key: &ScopedKey) -> Result<()> {
        let is_unmarked = Condition::attribute_not_exists(meta(&DELETING));
        let check = entity_check(self.schema(), scoped_key, is_unmarked);
        let key = stored::intent_key(DELETIONS_ID, scoped_key);
        let in_progress = Condition::attribute_not_exists(Path::attribute(COMPLETED));
        let intent = DeleteItem::new(self.schema().entities(), key).condition(in_progress);
        // A failed condition means another process has completed the deletion, or started a new one.
        send(self.db, vec![check, intent.into()]).await.map(drop)
    }
}
