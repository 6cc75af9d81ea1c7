//! Reading the change streams of a table, whoever acts on them: the feed of events, or a router.

mod position;
mod shards;

use floe_store::Error as StoreError;

#[cfg(test)]
pub(crate) use self::position::Place;
pub(crate) use self::position::Positions;
pub(crate) use self::shards::{Round, Shards, hold, release};
use crate::error::{Error, ErrorKind};

/// Whether it may go better the next time.
pub(crate) fn passes(error: &Error) -> bool {
    let kinds = [
        ErrorKind::OutcomeUnknown,
        ErrorKind::MaxResyncsExhausted,
        ErrorKind::TransactionFailed,
    ];
    kinds.contains(&error.kind()) || error.store_error().is_some_and(StoreError::is_retryable)
}
