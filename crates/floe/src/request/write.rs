//! Writes that must be applied once.

use floe_store::Error as StoreError;
use floe_store::op::WriteItem;

use super::{Attempts, Budget};
use crate::db::Db;
use crate::telemetry::transaction as telemetry;

/// A write that is sent until its outcome is known.
pub(crate) trait Write {
    /// What a failed condition means.
    type Refusal;

    /// Sends it once.
    ///
    /// # Errors
    ///
    /// What the engine answers.
    fn send(&mut self, sending: Sending) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// What it means that the store refused the write, if `error` is a refusal.
    ///
    /// # Errors
    ///
    /// The same error if it is not a refusal.
    fn refused(&mut self, error: StoreError, sending: Sending)
    -> Result<Self::Refusal, StoreError>;

    /// Finds out whether a sending whose response was lost was applied. Only for writes without a token.
    fn reconcile(&mut self) -> impl Future<Output = Reconciled> + Send {
        std::future::ready(Reconciled::Resend)
    }
}

/// One sending of a write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    /// Its number, counted from 1.
    pub(crate) number: u32,
    /// Whether an earlier one may have been applied.
    pub(crate) in_doubt: bool,
}

/// What is known of a write whose response was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reconciled {
    /// It was applied.
    Applied,
    /// It was not applied, or sending it again has no further effect if it was.
    Resend,
    /// It cannot be known.
    Unknown,
}

/// What became of a write.
#[derive(Debug)]
pub(crate) enum Outcome<R> {
    /// It was applied.
    Applied,
    /// A condition did not hold.
    Refused(R),
    /// It was not applied.
    Failed(StoreError),
    /// A response was lost, and the store did not come back within the budget.
    Unknown(StoreError),
}

/// Sends a write until its outcome is known or the budget is used up.
pub(crate) async fn write<W: Write>(db: &Db, budget: Budget, write: &mut W) -> Outcome<W::Refusal> {
    let loses_answers = db.engine().capabilities().loses_answers;
    let mut attempts = Attempts::new(db, budget);
    let mut in_doubt = false;
    loop {
        let number = attempts.count();
        let sending = Sending { number, in_doubt };
        let Err(error) = write.send(sending).await else {
            if in_doubt {
                telemetry::settled("token", true, number);
            }
            return Outcome::Applied;
        };
        let error = match write.refused(error, sending) {
            Ok(refusal) => return Outcome::Refused(refusal),
            Err(error) => error,
        };
        let is_lost = error.may_have_applied();
        // An earlier sending with the same token is still being worked on.
        in_doubt |= is_lost || error == StoreError::TransactionInProgress;
        let may_pass = if is_lost {
            // An engine that loses no responses has failed if it does not know, and accepts no further writes.
            loses_answers
        } else {
            error.is_retryable() && (in_doubt || budget.waits_for_store)
        };
        if !may_pass || !attempts.is_left() {
            return if in_doubt {
                Outcome::Unknown(error)
            } else {
                Outcome::Failed(error)
            };
        }
        if is_lost {
            match write.reconcile().await {
                Reconciled::Applied => return Outcome::Applied,
                Reconciled::Resend => {}
                Reconciled::Unknown => return Outcome::Unknown(error),
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
