//! What patterns besides models add to a commit: conditional writes, and what it means if one of them is refused.
//!
//! Streams and the graph keep their own notes of what a body did with them. When the body has ended, each becomes a
//! part; the commit sends the writes of all parts beside those of the models, and asks the part what a condition that
//! did not hold means.

use std::fmt;

use floe_store::op::TransactWrite;
use floe_store::{BoxFuture, Item, Text};

use super::commit::Failure;
use crate::db::Db;
use crate::error::{Error, Result};
use crate::request::Budget;
use crate::telemetry::transaction as telemetry;

/// One pattern's share of a commit.
pub(crate) trait Part: fmt::Debug + Send + Sync {
    /// Whether it changes anything; otherwise it only checks that what was read is still true.
    fn is_write(&self) -> bool;

    /// What a read-only transaction is told that has such a part.
    fn read_only_error(&self) -> Error;

    /// The tables that it writes to, and what is in them, for the error about a missing one.
    fn tables(&self) -> Vec<(String, &'static str)>;

    /// The call that makes its tables.
    fn ensured_by(&self) -> &'static str;

    /// What is sent for it in a commit of this id: the same however often it is asked.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](crate::ErrorKind::TooLarge) when an item would be too large.
    fn writes(&self, id: &Text) -> Result<Vec<TransactWrite>>;

    /// What it means that the condition of the write at this place did not hold, given the item as it is.
    fn refused(&self, at: usize, item: Option<&Item>) -> Failure;

    /// It was committed with the others.
    fn committed(&self) {}

    /// Tells that somebody else has changed what it depends on, in the run of this number.
    fn tell_lost(&self, attempt: u32) {
        telemetry::part_lost(&self.tables(), attempt);
    }

    /// Sends the part as the only one of a commit, where it knows a cheaper way than a transaction to learn the outcome.
    ///
    /// # Errors
    ///
    /// As for [`writes`](Self::writes).
    fn send_alone<'a>(
        &'a self,
        db: &'a Db,
        id: &Text,
        budget: Budget,
    ) -> Result<Option<BoxFuture<'a, Result<(), Failure>>>> {
        let _ = (db, id, budget);
        Ok(None)
    }
}

/// Refuses parts that write in a read-only transaction.
pub(crate) fn refuse_writes(parts: &[Box<dyn Part>]) -> Result<()> {
    match parts.iter().find(|part| part.is_write()) {
        Some(part) => Err(part.read_only_error()),
        None => Ok(()),
    }
}
