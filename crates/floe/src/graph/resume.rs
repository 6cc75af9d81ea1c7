//! Ending what was begun in steps and interrupted.

use super::delete::{Deleted, Progress};
use super::handle::Graph;
use super::{index, keys};
use crate::error::Result;

impl Graph<'_> {
    /// Ends what was begun in the scope and not ended: deletions, changes of lists, and entries of entities with very many,
    /// that take more than one transaction. Several may do so at once. Tells what was deleted.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) when the store cannot answer,
    /// [`TransactionFailed`](crate::ErrorKind::TransactionFailed) when the index of reversed edges does not show all yet:
    /// try again later.
    pub async fn resume(&self, progress: impl Fn(&Progress) + Send + Sync) -> Result<Deleted> {
        self.check_outside()?;
        keys::check_scope(&self.scope)?;
        self.resume_lists().await?;
        index::resume_entries(&self.reads(), &self.scope).await?;
        self.resume_deletions(&progress).await
    }
}
