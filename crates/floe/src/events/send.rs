//! Sending: a write is sent until its outcome is known.
//!
//! When an answer is lost, the same write is sent again. What it means that a condition does not hold then, who made the
//! write must tell: it may be its own write that stands in the way.

use floe_store::error::CancellationCode;
use floe_store::op::{TransactWrite, TransactWriteItems, WriteItem};
use floe_store::{Error as StoreError, Item, Number, Value};

use super::limits::SENDS_MAX;
use super::load;
use super::schema::{INDEX, TIP_INDEX};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::tx::backoff::Backoff;

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

/// Sends a write until its outcome is known. It is made anew each time it is sent, which is once mostly.
///
/// # Errors
///
/// [`Store`](crate::ErrorKind::Store) when the store refuses it or fails; what `unknown` makes of the last error when the
/// store does not come back.
pub(super) async fn send(
    db: &Db,
    table: &str,
    write: impl Fn() -> Writes,
    unknown: impl Fn(StoreError) -> Error,
) -> Result<Sent> {
    let can = db.engine().capabilities();
    let mut writes = write();
    let takes_token = can.write_tokens || matches!(writes, Writes::Together(_));
    let token = (can.loses_answers && takes_token).then(|| db.env().ordered_uuid());
    let (mut sent, mut in_doubt) = (0, false);
    loop {
        sent += 1;
        let Err(error) = send_once(db, writes, token.as_deref()).await else {
            return Ok(Sent::Done);
        };
        let error = match refused(error) {
            Ok(item) => return Ok(Sent::Conflict { item, in_doubt }),
            Err(error) => error,
        };
        in_doubt |= error.may_have_applied();
        // An engine that loses no answers has failed if it does not know, and takes no further writes.
        let may_pass = match error.may_have_applied() {
            true => can.loses_answers,
            false => error.is_retryable(),
        };
        if !may_pass || sent >= SENDS_MAX {
            return Err(match in_doubt {
                true => unknown(error),
                false => load::failed(error, table),
            });
        }
        let pause = Backoff::default().pause(sent, db.env().next_u64());
        db.timer().sleep(pause).await;
        writes = write();
    }
}

async fn send_once(
    db: &Db,
    writes: Writes,
    token: Option<&str>,
) -> std::result::Result<(), StoreError> {
    let token = token.map(str::to_owned);
    match writes {
        Writes::One(mut write) => {
            match &mut write {
                WriteItem::Put(put) => put.token = token,
                WriteItem::Update(update) => update.token = token,
                WriteItem::Delete(delete) => delete.token = token,
            }
            db.engine().write_item(write).await.map(drop)
        }
        Writes::Together(writes) => {
            let mut request = TransactWriteItems::new(writes);
            request.token = token;
            db.engine().transact_write_items(request).await.map(drop)
        }
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
