//! Retry budgets of requests.

use floe_store::Timestamp;

use super::Backoff;
use crate::db::Db;

/// Maximum attempts of a write whose response was lost: about 15 seconds, so that a short outage leaves no outcome unknown.
const WRITE_SENDS_MAX: u32 = 30;

/// Maximum attempts of a read outside of a transaction.
const READ_SENDS_MAX: u32 = 10;

/// How often and until when a request is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Maximum attempts, including the first.
    pub(super) sends_max: u32,
    /// The pauses between them.
    backoff: Backoff,
    /// No retry is sent after it.
    deadline: Option<Timestamp>,
    /// Whether to retry while the store is busy.
    pub(super) waits_for_store: bool,
}

impl Budget {
    /// For a write, and for a read that reconciles one.
    pub(crate) fn for_write() -> Self {
        Self {
            sends_max: WRITE_SENDS_MAX,
            backoff: Backoff::default(),
            deadline: None,
            waits_for_store: true,
        }
    }

    /// For the commit of a transaction. While the store is busy, the transaction runs again as a whole. After a lost
    /// response the same commit is sent again, because nothing else is safe.
    pub(crate) fn for_commit(deadline: Option<Timestamp>) -> Self {
        Self {
            deadline,
            waits_for_store: false,
            ..Self::for_write()
        }
    }

    /// For a read.
    pub(crate) fn for_read() -> Self {
        Self {
            sends_max: READ_SENDS_MAX,
            backoff: Backoff::resync(),
            ..Self::for_write()
        }
    }

    /// For a read in a transaction, which runs again as a whole.
    pub(crate) fn once() -> Self {
        Self {
            sends_max: 1,
            ..Self::for_read()
        }
    }

    /// Sets the pauses.
    pub(crate) const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }
}

/// Counts the attempts of one request against its budget.
pub(crate) struct Attempts<'a> {
    db: &'a Db,
    budget: Budget,
    /// Attempts so far.
    sent: u32,
}

impl<'a> Attempts<'a> {
    /// No attempts yet.
    pub(crate) const fn new(db: &'a Db, budget: Budget) -> Self {
        let sent = 0;
        Self { db, budget, sent }
    }

    /// Counts an attempt, and returns its number.
    pub(crate) const fn count(&mut self) -> u32 {
        self.sent += 1;
        self.sent
    }

    /// Resets the count after an attempt that made progress.
    pub(crate) const fn reset(&mut self) {
        self.sent = 0;
    }

    /// Whether the budget allows another attempt.
    pub(crate) fn has_attempts_left(&self) -> bool {
        let is_over = |deadline| self.db.engine().now() >= deadline;
        self.sent < self.budget.sends_max && !self.budget.deadline.is_some_and(is_over)
    }

    /// Waits before the next attempt.
    pub(crate) async fn pause(&self) {
        let seed = self.db.env().next_u64();
        let pause = self.budget.backoff.pause(self.sent, seed);
        self.db.timer().sleep(pause).await;
    }
}
