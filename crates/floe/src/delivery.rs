//! Delivery of records to handlers: the consumer runtime shared by the groups of the feed and the change router.
//!
//! | file | contents |
//! |---|---|
//! | `worker` | a member of a group: heartbeats, leases, one run for each partition it holds |
//! | `members` | the leases of a group, fair shares, and terms, the fencing tokens |
//! | `run` | a run over one partition: reading, turns, checkpoints, shutdown |
//! | `backlog` | records that were read but not processed: a queue for each key, in bounded memory |
//! | `attempt` | attempts of a handler: timeouts, panics, retries |
//! | `options` | options of every consumer, and retries while the store fails |
//! | `callback` | optional functions set by the caller |
//! | `stream` | reading the change streams of a table, shard by shard |
//! | `recent` | a bounded set of recent ids |
//!
//! # Shared and pattern-specific parts
//!
//! - A [`Host`] provides the database and the [`Options`], and receives failure reports.
//! - A [`Group`] stores the [`Members`] of a group and starts runs. The change router is a group with one partition,
//!   stored as one item of `floe_changes`; a group of the feed is stored in a stream.
//! - [`Consume`] is the pattern's side of a run: it reads a source, orders records by key, handles them, and stores
//!   checkpoints and dead letters. The pattern defines the format of both.
//! - Exactly-once views of the feed commit each step together with its checkpoint. They have their own runs under the
//!   same worker, with the same attempts and timeouts.
//!
//! # Invariants
//!
//! - Records of one key are handled in order, one at a time; different keys are handled concurrently.
//! - A checkpoint is stored only after everything before it was processed or became a dead letter: a crash repeats
//!   records and never skips them.
//! - A partition has one lease holder. A term never has more than one run, and writes under an older term are
//!   rejected.
//! - Memory is bounded: a full backlog stops reading.
//! - A handler that panics or hangs fails its attempt. It blocks only its own key.
//!
//! This module names no pattern.

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
pub(crate) use self::backlog::{BacklogLimits, BacklogSize, Batch, Entry, Size};
pub(crate) use self::callback::Callback;
pub(crate) use self::members::{Heartbeat, Lease, Members, Token};
pub(crate) use self::options::{Options, STORE_BACKOFF, StoreRetry};
pub(crate) use self::recent::RecentIds;
pub(crate) use self::run::{BatchOf, Consume, Replays, Run};
#[cfg(test)]
pub(crate) use self::stream::ShardPosition;
pub(crate) use self::stream::{
    ShardPositions, ShardRecords, Shards, hold_changes, is_transient, release_holds,
};
pub(crate) use self::worker::{Group, GroupState, LeaseNotice, RunOutcome, Worker};
use crate::concurrent;
use crate::db::Db;
use crate::error::{Error, Result};

/// The environment of the runtime: database, options, failure reports.
pub(crate) trait Host: Send + Sync {
    /// The database that stores leases, checkpoints and dead letters.
    fn db(&self) -> &Db;

    /// The options.
    fn options(&self) -> &Options;

    /// Reports a failure of the store. The request is retried after the pause.
    fn store_failed(&self, error: &Error, pause: Duration);
}

/// Parameters of a run over a partition.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunContext {
    /// The partition.
    pub(crate) partition: u32,
    /// The lease of the run, if it needs one.
    pub(crate) lease: Option<Token>,
    /// Whether the run continues at the tail.
    pub(crate) follows: bool,
    /// Whether failures of the store are retried without limit.
    pub(crate) retries_forever: bool,
    /// Signals of the worker.
    pub(crate) signals: Option<watch::Receiver<Signal>>,
}

/// A signal of a worker to its runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Signal {
    /// Whether the run must stop.
    pub(crate) stop: bool,
    /// How often a replay of dead letters was requested.
    pub(crate) replay_requests: u64,
}

impl RunContext {
    /// Whether the run must stop.
    pub(crate) fn is_stopped(&self) -> bool {
        let signals = self.signals.as_ref();
        signals.is_some_and(|signals| signals.borrow().stop)
    }

    /// Waits for a future. Returns `None` if the run must stop first.
    pub(crate) async fn unless_stopped<F: Future>(&self, future: F) -> Option<F::Output> {
        let Some(mut signals) = self.signals.clone() else {
            return Some(future.await);
        };
        let stop = async move { drop(signals.wait_for(|signal| signal.stop).await) };
        concurrent::run_until(pin!(stop), future).await
    }
}

/// Sends a request, and retries it while the store fails: without limit, or not at all.
///
/// # Errors
///
/// The error of the request, if it is permanent or not to be retried.
pub(crate) async fn retry_store<'f, T>(
    host: &dyn Host,
    retries_forever: bool,
    request: impl Fn() -> BoxFuture<'f, Result<T>> + Send,
) -> Result<T> {
    let mut retry = StoreRetry::new(host, retries_forever);
    loop {
        match request().await {
            Ok(answer) => return Ok(answer),
            Err(error) => retry.wait_if_transient(error).await?,
        }
    }
}
