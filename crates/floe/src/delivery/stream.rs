//! Reading the change streams of a table, for the feed and for routers.

mod position;
mod shards;

use floe_store::Error as StoreError;

#[cfg(test)]
pub(crate) use self::position::ShardPosition;
pub(crate) use self::position::ShardPositions;
pub(crate) use self::shards::{ShardRecords, Shards, hold_changes, release_holds};
use crate::error::{Error, ErrorKind};

/// Whether a retry may succeed.
pub(crate) fn is_transient(error: &Error) -> bool {
    let kinds = [
        ErrorKind::OutcomeUnknown,
        ErrorKind::MaxResyncsExhausted,
        ErrorKind::TransactionFailed,
    ];
    kinds.contains(&error.kind()) || error.store_error().is_some_and(StoreError::is_retryable)
}
