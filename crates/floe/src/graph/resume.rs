//! Completes interrupted wide changes.

use super::delete::{Deleted, DeletionProgress};
use super::handle::Graph;
use super::{index, keys};
use crate::error::Result;

impl Graph<'_> {
    /// Completes all wide changes that were started in the scope: deletions, list changes, and pending index entries.
    /// Several processes may do so concurrently. Returns the result of the deletions.
    ///
    /// # Errors
    ///
    /// [`Store`](crate::ErrorKind::Store) if the store is unavailable,
    /// [`TransactionFailed`](crate::ErrorKind::TransactionFailed) if the index of reversed edges lags: try again later.
    pub async fn resume(
        &self,
        progress: impl Fn(&DeletionProgress) + Send + Sync,
    ) -> Result<Deleted> {
        self.check_outside()?;
        keys::check_scope(&self.scope)?;
        self.resume_lists().await?;
        index::resume_entries(&self.reads(), &self.scope).await?;
        self.resume_deletions(&progress).await
    }
}
