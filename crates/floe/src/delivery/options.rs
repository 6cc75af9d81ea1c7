//! Options that every consumer has, and the constants behind them.

use std::time::Duration;

use super::Host;
use super::stream::passes;
use crate::error::{Error, ErrorKind, Result};
use crate::request::Backoff;

/// Default pause after a read that found nothing: a shard of DynamoDB bears five reads a second.
const POLL: Duration = Duration::from_millis(250);

/// Default duration of a lease.
const LEASE: Duration = Duration::from_secs(10);

/// Heartbeats while a lease lasts: one may be lost, and another one late.
pub(super) const BEATS_PER_LEASE: u32 = 4;

/// Default time that handlers under way have when a worker stops.
const GRACE: Duration = Duration::from_secs(5);

/// Default timeout of a handler.
const HANDLER_TIMEOUT: Duration = Duration::from_secs(60);

/// Attempts of a worker to give its leases back in the end. If all fail, the leases run out.
pub(super) const LEAVE_ATTEMPTS: u32 = 3;

/// Pauses after failures of the store.
pub(crate) const PATIENT: Backoff = Backoff {
    retries: u32::MAX,
    initial: Duration::from_millis(100),
    max: Duration::from_secs(10),
};

/// How records are delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Maximum keys that are handled at the same time.
    pub(crate) concurrency_max: usize,
    /// Maximum attempts before a record goes to the dead letters.
    pub(crate) attempts_max: u32,
    /// Pauses between attempts.
    pub(crate) backoff: Backoff,
    /// Time after which an attempt has failed.
    pub(crate) handler_timeout: Duration,
    /// Pause after a read that found nothing.
    pub(crate) poll: Duration,
    /// Time without a heartbeat after which others take over.
    pub(crate) lease: Duration,
    /// Time that handlers under way have when a worker stops.
    pub(crate) grace: Duration,
}

impl Options {
    /// Options with the common defaults.
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

    /// The time from one heartbeat to the next.
    pub(super) fn beat(&self) -> Duration {
        self.lease / BEATS_PER_LEASE
    }

    /// Checks that leases last.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when a lease has no duration.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.beat().is_zero() {
            return Ok(());
        }
        let message = format!("a lease must last for a while: lease={:?}", self.lease);
        Err(Error::new(ErrorKind::InvalidUse, message))
    }
}

/// Waits while the store fails.
pub(crate) struct StoreRetry<'h> {
    host: &'h dyn Host,
    is_endless: bool,
    failures: u32,
}

impl<'h> StoreRetry<'h> {
    /// Without end, or not at all.
    pub(crate) const fn new(host: &'h dyn Host, is_endless: bool) -> Self {
        Self {
            host,
            is_endless,
            failures: 0,
        }
    }

    /// Reports a failure and waits.
    ///
    /// # Errors
    ///
    /// The failure itself, if waiting cannot help or is not wanted.
    pub(crate) async fn outlast(&mut self, error: Error) -> Result<()> {
        if !self.is_endless || !passes(&error) {
            return Err(error);
        }
        self.wait(&error).await;
        Ok(())
    }

    /// Reports a failure, whatever it is, and waits.
    pub(crate) async fn wait(&mut self, error: &Error) {
        self.failures = self.failures.saturating_add(1);
        let db = self.host.db();
        let pause = PATIENT.pause(self.failures, db.env().next_u64());
        self.host.store_failed(error, pause);
        db.timer().sleep(pause).await;
    }
}
