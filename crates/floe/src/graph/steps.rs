//! One step of a job: a transaction that is sent until its outcome is known.

use floe_store::error::{CancellationCode, CancellationReason};
use floe_store::op::{TransactWrite, TransactWriteItems};
use floe_store::{Error as StoreError, Text};

use super::reads::MISSING;
use crate::db::Db;
use crate::error::Result;
use crate::request::{self, Backoff, Budget, Outcome, Sending, Write};
use crate::tx::reads::failed;

/// What became of a step.
pub(super) enum Step {
    Applied,
    /// A condition did not hold; one reason for each write.
    Refused(Vec<CancellationReason>),
}

impl Step {
    pub(super) const fn is_applied(&self) -> bool {
        matches!(self, Self::Applied)
    }
}

/// Sends writes, all or nothing. Every step of a job is made so that doing it again does no harm, so an outcome that
/// stays unknown is the caller's to find out by looking.
///
/// # Errors
///
/// [`Store`](crate::ErrorKind::Store) when the store cannot answer.
pub(super) async fn send(db: &Db, writes: Vec<TransactWrite>) -> Result<Step> {
    let mut step = StepWrite {
        db,
        writes,
        token: db.env().ordered_uuid(),
    };
    let budget = Budget::for_write().backoff(Backoff::resync());
    match request::write(db, budget, &mut step).await {
        Outcome::Applied => Ok(Step::Applied),
        Outcome::Refused(reasons) => Ok(Step::Refused(reasons)),
        Outcome::Failed(error) | Outcome::Unknown(error) => Err(failed(MISSING, error)),
    }
}

/// A step on its way.
struct StepWrite<'a> {
    db: &'a Db,
    writes: Vec<TransactWrite>,
    token: Text,
}

impl Write for StepWrite<'_> {
    type Refusal = Vec<CancellationReason>;

    async fn send(&mut self, _: Sending) -> floe_store::Result<()> {
        let writes = self.writes.iter().cloned();
        let request = TransactWriteItems::new(writes).token(self.token.as_str());
        let sent = self.db.engine().transact_write_items(request).await;
        sent.map(drop)
    }

    fn refused(&mut self, error: StoreError, _: Sending) -> floe_store::Result<Self::Refusal> {
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
