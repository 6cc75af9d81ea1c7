//! The share of one pattern in a commit: conditional writes, and what it means if one of them is refused.
//!
//! When the body has ended, the [changes](super::session::Changes) of each pattern become parts. The commit sends the
//! writes of all parts together, and asks the part what a condition that did not hold means.

use std::fmt;

use floe_store::expr::{Path, Update};
use floe_store::op::TransactWrite;
use floe_store::size::item_size;
use floe_store::{BoxFuture, Item, Text, Timestamp, Value};

use crate::db::Db;
use crate::error::{Error, ErrorItem, ErrorKind, Result};
use crate::request::{Budget, Retryable};
use crate::telemetry::transaction as telemetry;

/// One pattern's share of a commit.
pub(crate) trait Part: fmt::Debug + Send + Sync {
    /// Whether it changes anything; otherwise it only checks that what was read is still true.
    fn is_write(&self) -> bool;

    /// The error of a read-only transaction that has such a part and writes.
    fn read_only_error(&self) -> Error;

    /// The tables that it writes to, and what is in them, for the error about a missing one.
    fn tables(&self) -> Vec<(String, &'static str)>;

    /// What to do if one of its tables is missing.
    fn remedy(&self) -> &'static str;

    /// Prepares it for a commit of this id. Called once, before anything is sent.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    fn prepare(&mut self, _: &CommitId) -> Result<()> {
        Ok(())
    }

    /// What is sent for it: the same however often it is asked.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](crate::ErrorKind::TooLarge) when an item would be too large.
    fn writes(&self) -> Result<Vec<PartWrite>>;

    /// What it means that the condition of the write at this place did not hold, given the item as it is.
    fn refused(&self, at: usize, item: Option<&Item>) -> Refusal;

    /// Writes over what stood in the way at this place, after [`Refusal::Rewrite`].
    fn rewrite(&mut self, _: usize) {}

    /// The items that it writes, for the error about a commit whose outcome is unknown.
    fn items(&self) -> Vec<ErrorItem> {
        Vec::new()
    }

    /// Records that it was committed with the others.
    fn committed(&self) {}

    /// Records that another writer has changed what it depends on, in the run of this number.
    fn record_lost(&self, attempt: u32) {
        telemetry::part_lost(&self.tables(), attempt);
    }

    /// Sends the part as the only one of a commit, where there is a cheaper way than a transaction to learn the outcome,
    /// and records a lost race by itself. `None` if there is no such way.
    fn send_alone<'a>(&'a mut self, _: Alone<'a>) -> Option<SentAlone<'a>> {
        None
    }
}

/// Why a commit was not made.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Another writer was faster, or the store is busy: the body may run again.
    Retry(Error),
    /// Running again cannot help, or must not be done.
    Final(Error),
}

impl Failure {
    /// Whether the body may run again after an error.
    pub(crate) fn of(error: Error) -> Self {
        if error.kind() != ErrorKind::OutcomeUnknown && error.is_retryable() {
            Self::Retry(error)
        } else {
            Self::Final(error)
        }
    }
}

/// How to commit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CommitOptions {
    /// Checks what was read even if nothing is written.
    pub(crate) verified: bool,
    /// Sends even one item so that its outcome is always known.
    pub(crate) exactly_once: bool,
    /// No request is sent again after it.
    pub(crate) deadline: Option<Timestamp>,
    /// The number of the run of the body, counted from 1.
    pub(crate) attempt: u32,
}

/// What becomes of a part that is sent alone.
pub(crate) type SentAlone<'a> = BoxFuture<'a, Result<(), AloneFailure>>;

/// Why a part that was sent alone was not committed.
#[derive(Debug)]
pub(crate) enum AloneFailure {
    /// The condition of its write did not hold.
    Refused(Refusal),
    Failed(Failure),
}

impl From<Failure> for AloneFailure {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// One write of a part.
#[derive(Clone, Debug)]
pub(crate) struct PartWrite {
    pub(crate) write: TransactWrite,
    /// Size of the item once it is written, as far as it is known; 0 if it is not.
    pub(crate) bytes: usize,
}

impl From<TransactWrite> for PartWrite {
    fn from(write: TransactWrite) -> Self {
        let bytes = match &write {
            TransactWrite::Put(put) => item_size(&put.item),
            _ => 0,
        };
        Self { write, bytes }
    }
}

/// What a condition that did not hold means.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Another writer was faster: the body may run again.
    Lost(Error),
    /// It cannot be committed, unless that follows from another race that was lost.
    Invalid(Error),
    /// It can never be committed.
    Final(Error),
    /// What stands in the way does not count: the part can [write over it](Part::rewrite).
    Rewrite,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Retry(error) => Self::Lost(error),
            Failure::Final(error) => Self::Invalid(error),
        }
    }
}

/// The identity of one commit.
#[derive(Clone, Debug)]
pub(crate) struct CommitId {
    pub(crate) id: Text,
    /// The idempotency token of its requests.
    pub(crate) token: Text,
    /// The id as the value that is stamped on items.
    pub(crate) stamp: Value,
    /// The moment by which items have expired: the same in every sending, which the token requires.
    pub(crate) now: Timestamp,
}

/// How a part is sent alone.
#[derive(Clone, Copy)]
pub(crate) struct Alone<'a> {
    pub(crate) db: &'a Db,
    pub(crate) commit: &'a CommitId,
    pub(crate) options: CommitOptions,
    pub(crate) budget: Budget,
}

/// The update that makes one item of another: sets what is new, and removes what is gone.
pub(crate) fn difference(old: &Item, new: &Item) -> Update {
    let mut update = Update::new();
    for (name, value) in new.iter() {
        if old.get(name) != Some(value) {
            update = update.set(Path::attribute(name.clone()), value.clone());
        }
    }
    for (name, _) in old.iter().filter(|(name, _)| !new.contains(name)) {
        update = update.remove(Path::attribute(name.clone()));
    }
    update
}
