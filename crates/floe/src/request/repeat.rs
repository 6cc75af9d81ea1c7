//! Requests that may be applied any number of times with the same effect.

use floe_store::{BoxFuture, Error as StoreError};

use super::{Attempts, Budget};
use crate::db::Db;
use crate::error::Error;

/// An error that knows whether a retry of the same request can help.
pub(crate) trait Retryable {
    /// Whether a retry of the same request can help.
    fn is_retryable(&self) -> bool;
}

impl Retryable for StoreError {
    fn is_retryable(&self) -> bool {
        Self::is_retryable(self)
    }
}

impl Retryable for Error {
    fn is_retryable(&self) -> bool {
        self.store_error().is_some_and(StoreError::is_retryable)
    }
}

/// Sends a read or an idempotent write until it succeeds, fails permanently, or the budget is used up.
///
/// # Errors
///
/// The last error.
pub(crate) async fn repeat<'f, T, E: Retryable>(
    db: &Db,
    budget: Budget,
    request: impl Fn() -> BoxFuture<'f, Result<T, E>>,
) -> Result<T, E> {
    let mut attempts = Attempts::new(db, budget);
    loop {
        attempts.count();
        let error = match request().await {
            Ok(response) => return Ok(response),
            Err(error) => error,
        };
        if !error.is_retryable() || !attempts.has_attempts_left() {
            return Err(error);
        }
        attempts.pause().await;
    }
}
