//! Writes that must be applied once.

use floe_store::Error as StoreError;
use floe_store::op::WriteItem;

use super::{Attempts, Budget};
use crate::db::Db;
use crate::telemetry::transaction as telemetry;

/// A write that is sent until its outcome is known.
pub(crate) trait Write {
    /// The meaning of a rejection.
    type Rejection;

    /// Sends the write once.
    ///
    /// # Errors
    ///
    /// The engine's error.
    fn send(&mut self, attempt: SendAttempt)
    -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Interprets an error as a rejection, if it is one.
    ///
    /// # Errors
    ///
    /// The same error if it is not a rejection.
    fn rejection(
        &mut self,
        error: StoreError,
        attempt: SendAttempt,
    ) -> Result<Self::Rejection, StoreError>;

    /// Finds out whether an attempt whose response was lost was applied. Only for writes without a token.
    fn reconcile(&mut self) -> impl Future<Output = Reconciled> + Send {
        std::future::ready(Reconciled::Resend)
    }
}

/// One attempt to send a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SendAttempt {
    /// Its number, counted from 1.
    pub(crate) number: u32,
    /// Whether an earlier attempt may have been applied.
    pub(crate) in_doubt: bool,
}

/// The result of reconciling a write whose response was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reconciled {
    /// It was applied.
    Applied,
    /// It was not applied, or sending it again has no further effect if it was.
    Resend,
    /// It cannot be determined.
    Unknown,
}

/// The outcome of a write.
#[derive(Debug)]
pub(crate) enum WriteOutcome<R> {
    /// It was applied.
    Applied,
    /// A condition did not hold.
    Rejected(R),
    /// It was not applied.
    Failed(StoreError),
    /// A response was lost, and the outcome could not be determined within the budget.
    Unknown(StoreError),
}

/// Sends a write until its outcome is known or the budget is used up.
pub(crate) async fn write<W: Write>(
    db: &Db,
    budget: Budget,
    write: &mut W,
) -> WriteOutcome<W::Rejection> {
    let loses_responses = db.engine().capabilities().loses_responses;
    let mut attempts = Attempts::new(db, budget);
    let mut in_doubt = false;
    loop {
        let number = attempts.count();
        let attempt = SendAttempt { number, in_doubt };
        let Err(error) = write.send(attempt).await else {
            if in_doubt {
                telemetry::reconciled("token", true, number);
            }
            return WriteOutcome::Applied;
        };
        let error = match write.rejection(error, attempt) {
            Ok(rejection) => return WriteOutcome::Rejected(rejection),
            Err(error) => error,
        };
        let is_lost = error.may_have_applied();
        // TransactionInProgress: an earlier attempt with the same token is still being processed.
        in_doubt |= is_lost || error == StoreError::TransactionInProgress;
        let may_pass = if is_lost {
            // An engine that loses no responses reports this only after a failure, and accepts no further writes.
            loses_responses
        } else {
            error.is_retryable() && (in_doubt || budget.waits_for_store)
        };
        if !may_pass || !attempts.has_attempts_left() {
            return if in_doubt {
                WriteOutcome::Unknown(error)
            } else {
                WriteOutcome::Failed(error)
            };
        }
        if is_lost {
            match write.reconcile().await {
                Reconciled::Applied => return WriteOutcome::Applied,
                Reconciled::Resend => {}
                Reconciled::Unknown => return WriteOutcome::Unknown(error),
            }
        }
        attempts.pause().await;
    }
}

/// The write with an idempotency token.
pub(crate) fn with_token(mut write: WriteItem, token: Option<String>) -> WriteItem {
    match &mut write {
        WriteItem::Put(put) => put.token = token,
        WriteItem::Update(update) => update.token = token,
        WriteItem::Delete(delete) => delete.token = token,
    }
    write
}
