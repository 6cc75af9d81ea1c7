//! One step of a wide change: a transaction that is sent until its outcome is known.

use floe_store::error::{CancellationCode, CancellationReason};
use floe_store::op::{TransactWrite, TransactWriteItems};
use floe_store::{Error as StoreError, Text};

use super::reads::MISSING;
use crate::db::Db;
use crate::error::Result;
use crate::request::{self, Backoff, Budget, SendAttempt, Write, WriteOutcome};
use crate::tx::reads::failed;

/// The outcome of a step.
pub(super) enum Step {
    Applied,
    /// A condition failed. One reason for each write.
    Refused(Vec<CancellationReason>),
}

impl Step {
    pub(super) const fn is_applied(&self) -> bool {
        matches!(self, Self::Applied)
    }
}

/// Sends writes in one transaction. Steps can be repeated safely, so if the outcome stays unknown, the caller finds it
/// out by reading.
///
/// # Errors
///
/// [`Store`](crate::ErrorKind::Store) if the store is unavailable.
pub(super) async fn send(db: &Db, writes: Vec<TransactWrite>) -> Result<Step> {
    let mut step = StepWrite {
        db,
        writes,
        token: db.env().ordered_uuid(),
    };
    let budget = Budget::for_write().backoff(Backoff::resync());
    match request::write(db, budget, &mut step).await {
        WriteOutcome::Applied => Ok(Step::Applied),
        WriteOutcome::Rejected(reasons) => Ok(Step::Refused(reasons)),
        WriteOutcome::Failed(error) | WriteOutcome::Unknown(error) => Err(failed(MISSING, error)),
    }
}

/// The transaction of a step.
struct StepWrite<'a> {
    db: &'a Db,
    writes: Vec<TransactWrite>,
    token: Text,
}

impl Write for StepWrite<'_> {
    type Rejection = Vec<CancellationReason>;

    async fn send(&mut self, _: SendAttempt) -> floe_store::Result<()> {
        let writes = self.writes.iter().cloned();
        let request = TransactWriteItems::new(writes).token(self.token.as_str());
        let sent = self.db.engine().transact_write_items(request).await;
        sent.map(drop)
    }

    fn rejection(
        &mut self,
        error: StoreError,
        _: SendAttempt,
    ) -> floe_store::Result<Self::Rejection> {
        match error {
            StoreError::TransactionCanceled { reasons } if is_refusal(&reasons) => Ok(reasons),
            error => Err(error),
        }
    }
}

fn is_refusal(reasons: &[CancellationReason]) -> bool {
    let is = |code| reasons.iter().any(|reason| reason.code == code);
    let is_known = |reason: &CancellationReason| {
        matches!(
            reason.code,
            CancellationCode::None | CancellationCode::ConditionalCheckFailed
        ) || reason.code.is_retryable()
    };
    is(CancellationCode::ConditionalCheckFailed) && reasons.iter().all(is_known)
}
