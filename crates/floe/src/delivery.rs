//! Delivering records to handlers: one consumer runtime for the groups of the feed and for the change router.
//!
//! | file | what it holds |
//! |---|---|
//! | `worker` | a member of a group: heartbeats, leases, a run over each partition that it holds |
//! | `members` | the leases of a group, their fair shares, and their terms, the fencing tokens |
//! | `run` | a run over one partition: reading, turns, checkpoints, shutdown |
//! | `backlog` | records that are read and not done, a queue for each key, in bounded memory |
//! | `attempt` | attempts of a handler: timeout, panics, the schedule of retries |
//! | `options` | options that every consumer has, and waiting for a store that fails |
//! | `callback` | functions that a caller has given, or not |
//! | `stream` | reading the change streams of a table, shard by shard |
//! | `recent` | ids that were seen lately |
//!
//! # What is common, and what a pattern brings
//!
//! - A [`Host`] is what both halves of the runtime run for: a database, [`Options`], and a place for reports.
//! - A [`Group`] says how the [`Members`] of a group are stored, and begins runs. The change router is a group with one
//!   partition, stored as one item of `floe_changes`; a group of the feed keeps a stream of its own.
//! - [`Consume`] is what a pattern does in a run: read a source, order records by key, handle them, store checkpoints and
//!   dead letters. What a checkpoint is, where dead letters stand and what they hold is up to the pattern.
//! - Exactly-once views of the feed commit each step with its checkpoint. They are runs of their own under the same worker,
//!   with the same attempts and timeouts.
//!
//! # What holds
//!
//! - Records of one key are handled one after the other, in their order; many keys at the same time.
//! - A checkpoint is stored when everything before it is done or a dead letter, so a crash repeats and never skips.
//! - A partition has one holder. A run never begins twice under one term, and what an older term stores is refused.
//! - Memory is bounded: a full backlog stops the reading.
//! - A handler that panics or hangs has failed an attempt. It holds its key alone, and no other.
//!
//! Nothing here knows a pattern.

mod attempt;
mod backlog;
mod callback;
mod members;
mod options;
mod recent;
mod run;
mod stream;
#[cfg(test)]
mod tests;
mod worker;

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use floe_store::BoxFuture;
use tokio::sync::watch;

pub(crate) use self::attempt::{Attempts, Timeout, guard};
pub(crate) use self::backlog::{Batch, Entry, Limits, Load, Size};
pub(crate) use self::callback::Callback;
pub(crate) use self::members::{Beat, Lease, Members, Token};
pub(crate) use self::options::{Options, PATIENT, StoreRetry};
pub(crate) use self::recent::Recent;
pub(crate) use self::run::{BatchOf, Consume, Replays, Run};
#[cfg(test)]
pub(crate) use self::stream::Place;
pub(crate) use self::stream::{Positions, Round, Shards, hold, passes, release};
pub(crate) use self::worker::{End, Group, Notice, Standing, Worker};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::side_by_side;

/// What the runtime runs for.
pub(crate) trait Host: Send + Sync {
    /// The database that leases, checkpoints and dead letters are stored in.
    fn db(&self) -> &Db;

    /// The options.
    fn options(&self) -> &Options;

    /// Reports a failure of the store; the same is tried again after the pause.
    fn store_failed(&self, error: &Error, pause: Duration);
}

/// What a run over a partition is to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Orders {
    /// The partition.
    pub(crate) partition: u32,
    /// The lease that it runs under, if there is one.
    pub(crate) lease: Option<Token>,
    /// Whether it goes on at the tail.
    pub(crate) follows: bool,
    /// Whether it waits for a store that fails.
    pub(crate) is_patient: bool,
    /// What its worker says meanwhile.
    pub(crate) signals: Option<watch::Receiver<Signal>>,
}

/// What a worker says to its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signal {
    /// To stop.
    pub(crate) stop: bool,
    /// How often the group was asked to look at its dead letters.
    pub(crate) asked: u64,
}

impl Orders {
    /// Whether the run is to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        let signals = self.signals.as_ref();
        signals.is_some_and(|signals| signals.borrow().stop)
    }

    /// Waits for a future, unless the run is to stop. `None` if it is.
    pub(crate) async fn unless_stopped<F: Future>(&self, future: F) -> Option<F::Output> {
        let Some(mut signals) = self.signals.clone() else {
            return Some(future.await);
        };
        let stop = async move { drop(signals.wait_for(|signal| signal.stop).await) };
        side_by_side::unless(pin!(stop), future).await
    }
}

/// Repeats a request as long as the store fails: without end, or not at all.
///
/// # Errors
///
/// The error of the request, if waiting cannot help or is not wanted.
pub(crate) async fn outlast<'f, T>(
    host: &dyn Host,
    is_endless: bool,
    request: impl Fn() -> BoxFuture<'f, Result<T>> + Send,
) -> Result<T> {
    let mut retry = StoreRetry::new(host, is_endless);
    loop {
        match request().await {
            Ok(answer) => return Ok(answer),
            Err(error) => retry.outlast(error).await?,
        }
    }
}
