//! Options of every consumer, and their defaults.

use std::time::Duration;

use super::Host;
use super::stream::is_transient;
use crate::error::{Error, ErrorKind, Result};
use crate::request::Backoff;

/// Default pause after an empty read: a shard of DynamoDB allows five reads per second.
const POLL: Duration = Duration::from_millis(250);

/// Default duration of a lease.
const LEASE: Duration = Duration::from_secs(10);

/// Heartbeats per lease: one may be lost and another one late.
pub(super) const HEARTBEATS_PER_LEASE: u32 = 4;

/// Default time for running handlers to finish when a worker stops.
const GRACE: Duration = Duration::from_secs(5);

/// Default timeout of a handler.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(60);

/// Attempts to release the leases of a stopping worker. If all fail, the leases expire.
pub(super) const LEAVE_ATTEMPTS: u32 = 3;

/// Backoff after failures of the store.
pub(crate) const STORE_BACKOFF: Backoff = Backoff {
    retries: u32::MAX,
    initial: Duration::from_millis(100),
    max: Duration::from_secs(10),
};

/// Options of delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Maximum number of keys handled concurrently.
    pub(crate) concurrency_max: usize,
    /// Maximum attempts before a record becomes a dead letter.
    pub(crate) attempts_max: u32,
    /// Pauses between attempts.
    pub(crate) backoff: Backoff,
    /// Time limit of an attempt.
    pub(crate) handler_timeout: Duration,
    /// Pause after an empty read.
    pub(crate) poll: Duration,
    /// Time without a heartbeat after which another worker takes over.
    pub(crate) lease: Duration,
    /// Time for running handlers to finish when a worker stops.
    pub(crate) grace: Duration,
}

impl Options {
    /// Returns options with the common defaults.
    pub(crate) const fn new(concurrency_max: usize, attempts_max: u32, backoff: Backoff) -> Self {
        Self {
            concurrency_max,
            attempts_max,
            backoff,
            handler_timeout: HANDLER_TIMEOUT,
            poll: POLL,
            lease: LEASE,
            grace: GRACE,
        }
    }

    /// The interval between heartbeats.
    pub(super) fn heartbeat_interval(&self) -> Duration {
        self.lease / HEARTBEATS_PER_LEASE
    }

    /// Checks that the lease has a duration.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if the lease is too short.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.heartbeat_interval().is_zero() {
            return Ok(());
        }
        let message = format!("the lease is too short: lease={:?}", self.lease);
        Err(Error::new(ErrorKind::InvalidUse, message))
    }
}

/// Retries while the store fails.
pub(crate) struct StoreRetry<'h> {
    host: &'h dyn Host,
    retries_forever: bool,
    failures: u32,
}

impl<'h> StoreRetry<'h> {
    /// Retries without limit, or not at all.
    pub(crate) const fn new(host: &'h dyn Host, retries_forever: bool) -> Self {
        Self {
            host,
            retries_forever,
            failures: 0,
        }
    }

    /// Reports a failure and waits before the next attempt.
    ///
    /// # Errors
    ///
    /// The failure itself, if it is permanent or not to be retried.
    pub(crate) async fn wait_if_transient(&mut self, error: Error) -> Result<()> {
        if !self.retries_forever || !is_transient(&error) {
            return Err(error);
        }
        self.wait(&error).await;
        Ok(())
    }

    /// Reports a failure of any kind and waits.
    pub(crate) async fn wait(&mut self, error: &Error) {
        self.failures = self.failures.saturating_add(1);
        let db = self.host.db();
        let pause = STORE_BACKOFF.pause(self.failures, db.env().next_u64());
        self.host.store_failed(error, pause);
        db.timer().sleep(pause).await;
    }
}
