//! Deletes an entity, its edges in both directions, its index entries, and the entities that are deleted with it.
//!
//! The [planner](plan) computes the size of a deletion from stored counts, and reads no more than fits into one commit.
//! The plan is executed as one commit, here, which may be the caller's. A wider deletion is a [job](run) in steps.

mod incoming;
mod job;
mod plan;
mod progress;
mod removal;
mod run;

pub use progress::{Deleted, DeletionProgress};

use floe_store::Item;

use super::handle::Graph;
use super::keys::{EntityKey, ScopedKey};
use super::node::ToKey;
use super::operation::{Operation, OperationContext, Outcome};
use super::stored::{self, DELETIONS_ID};
use crate::error::{ErrorKind, Result};
use job::DeletionJob;
use progress::Listener;

impl Graph<'_> {
    /// Deletes an entity, its edges in both directions, its index entries, and the entities that its relations delete
    /// with it. If that does not fit into one transaction, it is done in steps; readers do not see the entity from the
    /// first step on.
    ///
    /// # Errors
    ///
    /// [`Restricted`](ErrorKind::Restricted) if a relation prevents it; in a transaction,
    /// [`TooLarge`](ErrorKind::TooLarge) if it does not fit.
    pub async fn delete(&self, key: &impl ToKey) -> Result<Deleted> {
        self.delete_with(key, |_| {}).await
    }

    /// Deletes an entity like [`delete`](Self::delete), and reports progress if it is done in steps.
    ///
    /// # Errors
    ///
    /// As for [`delete`](Self::delete).
    pub async fn delete_with(
        &self,
        key: &impl ToKey,
        progress: impl Fn(&DeletionProgress) + Send + Sync,
    ) -> Result<Deleted> {
        let key = key.to_key();
        let job = DeletionJob::new(&self.db, &self.scope, &progress);
        let steps = async { job.delete(&self.scoped_key(&key)?).await };
        self.run_or_step(&Delete { key: &key }, &key, steps).await
    }

    /// Completes the deletion of an entity that another process has started.
    pub(super) async fn complete_deletion(&self, scoped_key: ScopedKey) -> Result<Deleted> {
        let ignore = |_: &DeletionProgress| {};
        let mut job = DeletionJob::new(&self.db, &self.scope, &ignore);
        job.enqueue(scoped_key);
        job.run().await
    }

    /// Completes all deletions of the scope that were started.
    pub(super) async fn resume_deletions(&self, progress: Listener<'_>) -> Result<Deleted> {
        let mut job = DeletionJob::new(&self.db, &self.scope, progress);
        let intents = self.reads().intents(DELETIONS_ID, &self.scope).await?;
        let in_progress = |intent: &&Item| stored::completed_at(intent).is_none();
        for intent in intents.iter().filter(in_progress) {
            job.enqueue(self.scoped_key(&stored::intent_owner(intent)?)?);
        }
        job.run().await
    }
}

/// A deletion in one commit.
struct Delete<'k> {
    key: &'k EntityKey,
}

impl Operation for Delete<'_> {
    type Output = Outcome<Deleted>;

    async fn apply(&self, context: OperationContext<'_>) -> Result<Outcome<Deleted>> {
        let root = context.scoped_key(self.key)?;
        if context.changes(|changes| changes.is_created(&root))? {
            let what = "the transaction creates this entity and cannot delete it";
            return Err(root.error(ErrorKind::InvalidUse, what));
        }
        if context.load(&root).await?.is_none() {
            if context.is_own && context.changes(|changes| changes.deleting(&root).is_some())? {
                // The deletion was started and not completed: its steps continue.
                return Ok(Outcome::TooWide);
            }
            context.changes(|changes| changes.watch(&root))?;
            return Ok(Outcome::Completed(Deleted::default()));
        }
        let Some(deletion) = plan::plan(context, root).await? else {
            return Ok(Outcome::TooWide);
        };
        deletion.check_restrictions()?;
        context
            .read_unexpected(deletion.remaining_objects())
            .await?;
        let deleted = context.changes(|changes| deletion.apply(changes, context.scope))??;
        Ok(Outcome::Completed(deleted))
    }
}
