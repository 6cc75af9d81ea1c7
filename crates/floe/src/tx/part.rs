//! The part of a pattern in a commit: conditional writes, and the meaning of their failed conditions.
//!
//! After the body, the [changes](super::session::Changes) of each pattern become parts. The commit sends the writes of
//! all parts together; each part interprets the failed conditions of its writes.

use std::fmt;

use floe_store::expr::{Path, Update};
use floe_store::op::TransactWrite;
use floe_store::size::item_size;
use floe_store::{BoxFuture, Item, Text, Timestamp, Value};

use crate::db::Db;
use crate::error::{Error, ErrorItem, ErrorKind, Result};
use crate::request::{Budget, Retryable};
use crate::telemetry::transaction as telemetry;

/// The part of one pattern in a commit.
pub(crate) trait Part: fmt::Debug + Send + Sync {
    /// Whether it writes anything; otherwise it only checks that nothing it read has changed.
    fn is_write(&self) -> bool;

    /// The error of a read-only transaction with this part, if it writes.
    fn read_only_error(&self) -> Error;

    /// The tables that it writes to, with their contents, for the error about a missing table.
    fn tables(&self) -> Vec<(String, &'static str)>;

    /// What to do if one of its tables is missing.
    fn remedy(&self) -> &'static str;

    /// Prepares it for a commit of this id. Called once, before anything is sent.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    fn prepare(&mut self, _: &CommitId) -> Result<()> {
        Ok(())
    }

    /// Returns its writes. They are the same in each call.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](crate::ErrorKind::TooLarge) if an item would be too large.
    fn writes(&self) -> Result<Vec<PartWrite>>;

    /// Interprets the failed condition of the write at this index, given the current item.
    fn condition_failed(&self, at: usize, item: Option<&Item>) -> Rejection;

    /// Lets the write at this index overwrite the conflicting item, after [`Rejection::Rewrite`].
    fn rewrite(&mut self, _: usize) {}

    /// The items that it writes, for the error about a commit whose outcome is unknown.
    fn items(&self) -> Vec<ErrorItem> {
        Vec::new()
    }

    /// Records that it was committed with the others.
    fn committed(&self) {}

    /// Records in telemetry that another writer changed something that the part depends on.
    fn record_conflict(&self, attempt: u32) {
        telemetry::part_conflict(&self.tables(), attempt);
    }

    /// Sends the part as the only one of a commit, if its outcome can be determined at a lower cost than by a
    /// transaction. Then the part also records conflicts itself. `None` if there is no such way.
    fn send_single<'a>(&'a mut self, _: SinglePart<'a>) -> Option<SinglePartResult<'a>> {
        None
    }
}

/// Why a commit failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A conflict, or the store is busy: the body may run again.
    Retry(Error),
    /// The body must not run again, or it would not help.
    Final(Error),
}

impl Failure {
    /// Classifies an error by whether the body may run again.
    pub(crate) fn of(error: Error) -> Self {
        if error.kind() != ErrorKind::OutcomeUnknown && error.is_retryable() {
            Self::Retry(error)
        } else {
            Self::Final(error)
        }
    }
}

/// Options of a commit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CommitOptions {
    /// Checks everything that was read even if nothing is written.
    pub(crate) verified: bool,
    /// Sends even a single item such that its outcome is always known.
    pub(crate) exactly_once: bool,
    /// No retry is sent after it.
    pub(crate) deadline: Option<Timestamp>,
    /// The number of the attempt, counted from 1.
    pub(crate) attempt: u32,
}

/// The result of a part that is sent by itself.
pub(crate) type SinglePartResult<'a> = BoxFuture<'a, Result<(), SinglePartFailure>>;

/// Why a part that was sent by itself was not committed.
#[derive(Debug)]
pub(crate) enum SinglePartFailure {
    /// The condition of its write failed.
    Rejected(Rejection),
    Failed(Failure),
}

impl From<Failure> for SinglePartFailure {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// One write of a part.
#[derive(Clone, Debug)]
pub(crate) struct PartWrite {
    pub(crate) write: TransactWrite,
    /// Size of the item after the write; 0 if unknown.
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

/// The meaning of a failed condition.
#[derive(Debug)]
pub(crate) enum Rejection {
    /// Another writer changed the item: the body may run again.
    Conflict(Error),
    /// The write is invalid, unless that follows from another conflict of the same commit.
    Invalid(Error),
    /// The write can never be committed.
    Final(Error),
    /// The conflicting item may be [overwritten](Part::rewrite).
    Rewrite,
}

impl From<Failure> for Rejection {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Retry(error) => Self::Conflict(error),
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
    /// The id as the stamp on items.
    pub(crate) stamp: Value,
    /// The time by which expiry is decided. It is the same in every attempt, as the token requires.
    pub(crate) now: Timestamp,
}

/// The arguments of [`Part::send_single`].
#[derive(Clone, Copy)]
pub(crate) struct SinglePart<'a> {
    pub(crate) db: &'a Db,
    pub(crate) commit: &'a CommitId,
    pub(crate) options: CommitOptions,
    pub(crate) budget: Budget,
}

/// The update that turns `old` into `new`.
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
