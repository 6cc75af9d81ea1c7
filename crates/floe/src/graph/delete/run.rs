//! Deletions that do not fit into one transaction: done in steps, each of which can be the last before a crash.
//!
//! First the entity is marked and an intent is noted (`job.rs`). Then its edges go, some at a time, and the number of edges
//! that lead to it with them (`removal.rs`); at last, when that number is 0, the entity and the intent.
//!
//! Every step depends on the mark. So doing one again does no harm, every finder of an intent can go on, also several at
//! once, and a late one does nothing to an entity that was created anew under the same key.

use floe_store::expr::Condition;
use floe_store::op::DeleteItem;
use tracing::Instrument;

use super::job::{Job, Mark};
use super::plan::restricted;
use super::progress::Deleted;
use crate::error::Result;
use crate::graph::keys::Place;
use crate::graph::steps::send;
use crate::graph::stored::{self, BEHIND_ID, INCOMING, LEAVING, LEAVING_ID, meta};
use crate::graph::telemetry;
use crate::graph::writes::{entity_check, intent_delete, is_leaving, is_number};

impl Job<'_> {
    /// Deletes an entity and all that goes with it.
    ///
    /// # Errors
    ///
    /// [`Restricted`](crate::ErrorKind::Restricted) when others refer to it; then nothing was done.
    pub(super) async fn delete(mut self, root: &Place) -> Result<Deleted> {
        match self.mark(root, None).await? {
            Mark::Done => self.enqueue(root.clone()),
            Mark::Absent => {}
            Mark::Held(edge) => return Err(restricted(root, &edge)),
        }
        self.run().await
    }

    /// Removes all that is marked.
    pub(super) async fn run(mut self) -> Result<Deleted> {
        let span = telemetry::delete();
        while let Some(place) = self.queue.pop() {
            self.finish(&place).instrument(span.clone()).await?;
        }
        span.record("floe.graph.entities", self.deleted.entities);
        Ok(self.deleted)
    }

    /// Removes all that belongs to a marked entity, and the entity.
    async fn finish(&mut self, place: &Place) -> Result<()> {
        loop {
            // Where there is nothing marked, somebody else was faster; the intent went with the entity.
            let Some(()) = self.remove_outgoing(place).await? else {
                return self.forget(place).await;
            };
            let Some(stored) = self.remove_incoming(place).await? else {
                return self.forget(place).await;
            };
            let Some(()) = self.remove_entries(place, &stored).await? else {
                return self.forget(place).await;
            };
            let is_empty = is_leaving().and(is_number(&INCOMING, 0));
            let entities = self.schema().entities();
            let entity =
                DeleteItem::new(entities.as_str(), stored::entity_key(place)).condition(is_empty);
            let intent = |of| intent_delete(self.schema(), of, place);
            let mut writes = vec![entity.into(), intent(LEAVING_ID)];
            if stored.is_behind {
                writes.push(intent(BEHIND_ID));
            }
            if send(self.db, writes).await?.is_applied() {
                self.deleted.entities += 1;
                self.tell(place, 0);
                return Ok(());
            }
        }
    }

    /// Removes an intent of which nothing is left, on the condition that it is so.
    async fn forget(&self, place: &Place) -> Result<()> {
        let is_unmarked = Condition::attribute_not_exists(meta(&LEAVING));
        let check = entity_check(self.schema(), place, is_unmarked);
        let writes = vec![check, intent_delete(self.schema(), LEAVING_ID, place)];
        // Refused, it is to be deleted again, by somebody else.
        send(self.db, writes).await.map(drop)
    }
}
