//! Sending: a write is sent until its outcome is known.
//!
//! When an answer is lost, the same write is sent again. What it means that a condition does not hold then, who made the
//! write must tell: it may be its own write that stands in the way.

use floe_store::error::CancellationCode;
use floe_store::op::{TransactWrite, TransactWriteItems, WriteItem};
use floe_store::{Error as StoreError, Item, Number, Text, Value};

use super::reads;
use super::stored::{INDEX, TIP_INDEX};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::request::{self, Budget, Outcome, Sending, Write, with_token};

/// A write of one item, or of several that are written together.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "mostly it is one, which is sent right away: a box would be one more allocation"
)]
pub(super) enum Writes {
    One(WriteItem),
    Together(Vec<TransactWrite>),
}

/// What became of a write.
#[derive(Debug)]
pub(super) enum Sent {
    Done,
    /// Its condition did not hold.
    Conflict {
        /// What stood in its way, as far as the store tells; of several items the Tip.
        item: Option<Item>,
        /// Whether it may have been applied before that.
        in_doubt: bool,
    },
}

/// Sends a write until its outcome is known. It is made for each sending, of which there is mostly one.
///
/// # Errors
///
/// [`Store`](crate::ErrorKind::Store) when the store refuses it or fails; what `unknown` makes of the last error when the
/// store does not come back.
pub(super) async fn send(
    db: &Db,
    table: &str,
    budget: Budget,
    write: impl Fn() -> Writes + Send,
    unknown: impl Fn(StoreError) -> Error,
) -> Result<Sent> {
    let can = db.engine().capabilities();
    let first = write();
    let takes_token = can.write_tokens || matches!(first, Writes::Together(_));
    let token = (can.loses_answers && takes_token).then(|| db.env().ordered_uuid());
    let mut append = StreamWrite {
        db,
        first: Some(first),
        write,
        token,
    };
    match request::write(db, budget, &mut append).await {
        Outcome::Applied => Ok(Sent::Done),
        Outcome::Refused(sent) => Ok(sent),
        Outcome::Failed(error) => Err(reads::failed(error, table)),
        Outcome::Unknown(error) => Err(unknown(error)),
    }
}

/// A write of a stream on its way.
struct StreamWrite<'a, F> {
    db: &'a Db,
    /// The write before it is sent for the first time.
    first: Option<Writes>,
    /// Makes it for every further sending.
    write: F,
    token: Option<Text>,
}

impl<F: Fn() -> Writes + Send> Write for StreamWrite<'_, F> {
    type Refusal = Sent;

    async fn send(&mut self, _: Sending) -> floe_store::Result<()> {
        let token = self.token.as_deref().map(str::to_owned);
        let engine = self.db.engine();
        match self.first.take().unwrap_or_else(&self.write) {
            Writes::One(write) => engine.write_item(with_token(write, token)).await.map(drop),
            Writes::Together(writes) => {
                let mut request = TransactWriteItems::new(writes);
                request.token = token;
                engine.transact_write_items(request).await.map(drop)
            }
        }
    }

    fn refused(&mut self, error: StoreError, sending: Sending) -> floe_store::Result<Sent> {
        let item = refused(error)?;
        let in_doubt = sending.in_doubt;
        Ok(Sent::Conflict { item, in_doubt })
    }
}

/// What stood in the way, if it was a condition that did not hold and nothing else.
fn refused(error: StoreError) -> std::result::Result<Option<Item>, StoreError> {
    match error {
        StoreError::ConditionalCheckFailed { item } => Ok(item.map(|item| *item)),
        StoreError::TransactionCanceled { reasons } => {
            let is_lost = |code| code == CancellationCode::ConditionalCheckFailed;
            let has_fault = reasons.iter().any(|reason| {
                let is_none = reason.code == CancellationCode::None;
                !(is_lost(reason.code) || is_none || reason.code.is_retryable())
            });
            if has_fault || !reasons.iter().any(|reason| is_lost(reason.code)) {
                return Err(StoreError::TransactionCanceled { reasons });
            }
            let lost = reasons.into_iter().filter(|reason| is_lost(reason.code));
            Ok(lost.filter_map(|reason| reason.item).find(is_tip))
        }
        error => Err(error),
    }
}

fn is_tip(item: &Item) -> bool {
    item.get(&INDEX).and_then(Value::as_n) == Some(Number::from(TIP_INDEX))
}
