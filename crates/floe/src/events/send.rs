//! Sends a write until its outcome is known.
//!
//! If the response is lost, the same write is sent again. If its condition fails then, the caller must find out
//! whether its own first write is the cause.

use floe_store::error::CancellationCode;
use floe_store::op::{TransactWrite, TransactWriteItems, WriteItem};
use floe_store::{Error as StoreError, Item, Number, Text, Value};

use super::reads;
use super::stored::{INDEX, TIP_INDEX};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::request::{self, Budget, SendAttempt, Write, WriteOutcome, with_token};

/// A write of one item, or a transaction.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "usually the first variant, which is sent at once: a box would cost an allocation"
)]
pub(super) enum Writes {
    Single(WriteItem),
    Transaction(Vec<TransactWrite>),
}

/// The outcome of a write.
#[derive(Debug)]
pub(super) enum Sent {
    Applied,
    /// Its condition failed.
    Conflict {
        /// The item in conflict, if the store returned it; of several items, the Tip.
        item: Option<Item>,
        /// Whether an earlier attempt may have been applied.
        in_doubt: bool,
    },
}

/// Sends a write until its outcome is known. `write` creates it for each attempt, of which there is usually one.
///
/// # Errors
///
/// [`Store`](crate::ErrorKind::Store) if the store rejects it or fails; the result of `unknown` for the last error if
/// the store stays unavailable.
pub(super) async fn send(
    db: &Db,
    table: &str,
    budget: Budget,
    write: impl Fn() -> Writes + Send,
    unknown: impl Fn(StoreError) -> Error,
) -> Result<Sent> {
    let capabilities = db.engine().capabilities();
    let first = write();
    let takes_token = capabilities.write_tokens || matches!(first, Writes::Transaction(_));
    let token = (capabilities.loses_responses && takes_token).then(|| db.env().ordered_uuid());
    let mut write = StreamWrite {
        db,
        first: Some(first),
        write,
        token,
    };
    match request::write(db, budget, &mut write).await {
        WriteOutcome::Applied => Ok(Sent::Applied),
        WriteOutcome::Rejected(sent) => Ok(sent),
        WriteOutcome::Failed(error) => Err(reads::failed(error, table)),
        WriteOutcome::Unknown(error) => Err(unknown(error)),
    }
}

/// A write that is being sent.
struct StreamWrite<'a, F> {
    db: &'a Db,
    /// The write of the first attempt.
    first: Option<Writes>,
    /// Creates the write for further attempts.
    write: F,
    token: Option<Text>,
}

impl<F: Fn() -> Writes + Send> Write for StreamWrite<'_, F> {
    type Rejection = Sent;

    async fn send(&mut self, _: SendAttempt) -> floe_store::Result<()> {
        let token = self.token.as_deref().map(str::to_owned);
        let engine = self.db.engine();
        match self.first.take().unwrap_or_else(&self.write) {
            Writes::Single(write) => engine.write_item(with_token(write, token)).await.map(drop),
            Writes::Transaction(writes) => {
                let mut request = TransactWriteItems::new(writes);
                request.token = token;
                engine.transact_write_items(request).await.map(drop)
            }
        }
    }

    fn rejection(&mut self, error: StoreError, sending: SendAttempt) -> floe_store::Result<Sent> {
        let item = conflicting_item(error)?;
        let in_doubt = sending.in_doubt;
        Ok(Sent::Conflict { item, in_doubt })
    }
}

/// Returns the item in conflict. Returns the error if a failed condition is not the only cause.
fn conflicting_item(error: StoreError) -> std::result::Result<Option<Item>, StoreError> {
    match error {
        StoreError::ConditionalCheckFailed { item } => Ok(item.map(|item| *item)),
        StoreError::TransactionCanceled { reasons } => {
            let is_failed = |code| code == CancellationCode::ConditionalCheckFailed;
            let has_fault = reasons.iter().any(|reason| {
                let is_none = reason.code == CancellationCode::None;
                !(is_failed(reason.code) || is_none || reason.code.is_retryable())
            });
            if has_fault || !reasons.iter().any(|reason| is_failed(reason.code)) {
                return Err(StoreError::TransactionCanceled { reasons });
            }
            let failed = reasons.into_iter().filter(|reason| is_failed(reason.code));
            Ok(failed.filter_map(|reason| reason.item).find(is_tip))
        }
        error => Err(error),
    }
}

fn is_tip(item: &Item) -> bool {
    item.get(&INDEX).and_then(Value::as_n) == Some(Number::from(TIP_INDEX))
}
