//! Deleting: an entity, its edges in both directions, its entries, and what goes with it.
//!
//! The [planner](plan) knows from stored counts how wide a deletion is, and reads no more than fits into a commit. Two
//! executors follow it: a commit, here, which may be the caller's; and a [run](run) of a job in steps.

mod incoming;
mod job;
mod plan;
mod progress;
mod removal;
mod run;

pub use progress::{Deleted, Progress};

use super::handle::Graph;
use super::keys::EntityKey;
use super::node::ToKey;
use super::stored::{self, LEAVING_ID};
use super::work::{Operation, Outcome, Work};
use crate::error::{ErrorKind, Result};
use job::Job;
use progress::Listener;

impl Graph<'_> {
    /// Deletes an entity, with its edges in both directions, its entries in the indexes, and what goes with it as its
    /// relations say. If that does not fit into one transaction it is done in steps, and the entity is gone for readers
    /// with the first of them.
    ///
    /// # Errors
    ///
    /// [`Restricted`](ErrorKind::Restricted) when a relation refuses it; in a transaction,
    /// [`TooLarge`](ErrorKind::TooLarge) when it does not fit.
    pub async fn delete(&self, key: &impl ToKey) -> Result<Deleted> {
        self.delete_with(key, |_| {}).await
    }

    /// As [`delete`](Self::delete), and tells how far it is, if it is done in steps.
    ///
    /// # Errors
    ///
    /// As for [`delete`](Self::delete).
    pub async fn delete_with(
        &self,
        key: &impl ToKey,
        progress: impl Fn(&Progress) + Send + Sync,
    ) -> Result<Deleted> {
        let key = key.to_key();
        let job = Job::new(&self.db, &self.scope, &progress);
        let steps = async { job.delete(&self.place(&key)?).await };
        self.run_or_step(&Delete { key: &key }, &key, steps).await
    }

    /// Ends all deletions of the scope that were begun.
    pub(super) async fn resume_deletions(&self, progress: Listener<'_>) -> Result<Deleted> {
        let mut job = Job::new(&self.db, &self.scope, progress);
        for intent in self.reads().intents(LEAVING_ID, &self.scope).await? {
            job.enqueue(self.place(&stored::intent_owner(&intent)?)?);
        }
        job.run().await
    }
}

/// A deletion in one commit.
struct Delete<'k> {
    key: &'k EntityKey,
}

impl Operation for Delete<'_> {
    type Done = Outcome<Deleted>;

    async fn apply(&self, work: Work<'_>) -> Result<Outcome<Deleted>> {
        let root = work.place(self.key)?;
        if work.changes(|changes| changes.is_created(&root))? {
            let what = "the transaction creates this entity";
            return Err(root.error(ErrorKind::InvalidUse, what));
        }
        if work.load(&root).await?.is_none() {
            work.changes(|changes| changes.watch(&root))?;
            return Ok(Outcome::Done(Deleted::default()));
        }
        let Some(deletion) = plan::plan(work, root).await? else {
            return Ok(Outcome::Wide);
        };
        deletion.check_restrictions()?;
        let deleted = work.changes(|changes| deletion.apply(changes, work.scope))??;
        Ok(Outcome::Done(deleted))
    }
}
