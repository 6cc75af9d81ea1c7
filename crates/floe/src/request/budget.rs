//! How often and how long a request is sent.

use floe_store::Timestamp;

use super::Backoff;
use crate::db::Db;

/// Sendings of a write whose response was lost: for some 15 seconds, so that a short outage leaves no outcome unknown.
const WRITE_SENDS_MAX: u32 = 30;

/// Sendings of a read outside of a transaction.
const READ_SENDS_MAX: u32 = 10;

/// How often and how long a request is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Maximum sendings, the first one included.
    pub(super) sends_max: u32,
    /// The pauses between them.
    backoff: Backoff,
    /// No sending is repeated after it.
    deadline: Option<Timestamp>,
    /// Whether a busy store is waited for.
    pub(super) waits_for_store: bool,
}

impl Budget {
    /// For a write, and for a read that has to find out what became of one.
    pub(crate) fn for_write() -> Self {
        Self {
            sends_max: WRITE_SENDS_MAX,
            backoff: Backoff::default(),
            deadline: None,
            waits_for_store: true,
        }
    }

    /// For the commit of a transaction, which runs again as a whole when the store is busy. Only once a response was lost,
    /// the same commit is sent again, because nothing else is safe.
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

    /// With other pauses.
    pub(crate) const fn backoff(mut self, backoff: Backoff) -> Self {
        self.backoff = backoff;
        self
    }
}

/// The sendings of one request.
pub(crate) struct Attempts<'a> {
    db: &'a Db,
    budget: Budget,
    /// How many sendings there were.
    sent: u32,
}

impl<'a> Attempts<'a> {
    /// Before the first sending.
    pub(crate) const fn new(db: &'a Db, budget: Budget) -> Self {
        let sent = 0;
        Self { db, budget, sent }
    }

    /// Counts a sending, and returns its number.
    pub(crate) const fn count(&mut self) -> u32 {
        self.sent += 1;
        self.sent
    }

    /// Starts over: the last sending brought the request forward.
    pub(crate) const fn reset(&mut self) {
        self.sent = 0;
    }

    /// Whether the budget allows one more.
    pub(crate) fn is_left(&self) -> bool {
        let is_over = |deadline| self.db.engine().now() >= deadline;
        self.sent < self.budget.sends_max && !self.budget.deadline.is_some_and(is_over)
    }

    /// Waits before the next sending.
    pub(crate) async fn pause(&self) {
        let seed = self.db.env().next_u64();
        let pause = self.budget.backoff.pause(self.sent, seed);
        self.db.timer().sleep(pause).await;
    }
}
