//! One step of a job: a transaction that is sent until its outcome is known.

use floe_store::Error as StoreError;
use floe_store::error::{CancellationCode, CancellationReason};
use floe_store::op::{TransactWrite, TransactWriteItems};

use super::read::failed;
use crate::db::Db;
use crate::error::Result;
use crate::tx::backoff::Backoff;

/// How often a step is sent.
const SENDS_MAX: u32 = 30;

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
    let token = db.env().ordered_uuid();
    let mut sent = 0;
    loop {
        sent += 1;
        let request = TransactWriteItems::new(writes.iter().cloned()).token(token.as_str());
        let error = match db.engine().transact_write_items(request).await {
            Ok(_) => return Ok(Step::Applied),
            Err(error) => error,
        };
        if let StoreError::TransactionCanceled { reasons } = &error
            && is_refusal(reasons)
        {
            return Ok(Step::Refused(reasons.clone()));
        }
        if !error.is_retryable() || sent >= SENDS_MAX {
            return Err(failed(error));
        }
        let pause = Backoff::resync().pause(sent, db.env().next_u64());
        db.timer().sleep(pause).await;
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
