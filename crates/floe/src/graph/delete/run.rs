//! Deletions that do not fit into one transaction. They are made in steps, and the process may crash after any step.
//!
//! First the entity is marked and an intent is recorded (`job.rs`). Then its edges are removed in batches, with the
//! count of incoming edges (`removal.rs`). When that count is 0, the entity and the intent are deleted.
//!
//! Every step depends on the mark. So steps can be repeated, every process that finds an intent can continue the
//! deletion, also concurrently, and a late process cannot harm an entity that was created again under the same key.

use floe_store::expr::Condition;
use floe_store::op::DeleteItem;
use tracing::Instrument;

use super::job::{DeletionJob, MarkOutcome};
use super::plan::restricted;
use super::progress::Deleted;
use crate::error::Result;
use crate::graph::keys::ScopedKey;
use crate::graph::steps::send;
use crate::graph::stored::{self, DELETING, DELETIONS_ID, INCOMING, PENDING_ID, meta};
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
        Ok(self.deleted)
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
            let intent = |of| intent_delete(self.schema(), of, scoped_key);
            let mut writes = vec![entity.into(), intent(DELETIONS_ID)];
            if stored.has_pending_entries {
                writes.push(intent(PENDING_ID));
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
        let writes = vec![
            check,
            intent_delete(self.schema(), DELETIONS_ID, scoped_key),
        ];
        // A failed condition means another process has started a new deletion.
        send(self.db, writes).await.map(drop)
    }
}
