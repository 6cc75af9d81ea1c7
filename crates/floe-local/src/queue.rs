//! The writes that wait for the committer.
//!
//! It may be a thread that sleeps until there is something to do, or whoever has just put a write here and finds
//! nobody else at it; see [`commit`](crate::commit).

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use floe_store::Error;

use crate::commit::Request;

/// The most requests that may wait.
const WAITING_MAX: usize = 100_000;

/// How long the committer sleeps when there is nothing to do.
const IDLE: Duration = Duration::from_secs(1);

/// Shorter than this it does not wait at all: a sleep takes longer.
const PATIENCE_MIN: Duration = Duration::from_micros(20);

/// How long the committer waits for more than one request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// How many it waits for.
    pub(crate) expected: usize,
    /// How long at most, once the first is there.
    pub(crate) patience: Duration,
}

/// The requests that wait.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
}

#[derive(Default)]
struct Waiting {
    requests: Vec<Request>,
    /// How many of them are exclusive.
    exclusive: usize,
    /// With how many requests the committer wants to be woken.
    wanted: usize,
    closed: bool,
}

impl Queue {
    /// Adds a request for the thread of the committer, or answers it at once if it cannot wait.
    pub(crate) fn push(&self, request: Request) {
        if self.add(request) {
            self.arrived.notify_one();
        }
    }

    /// Adds a request for whoever is the committer then, or answers it at once if it cannot wait. Tells whether the
    /// thread of the committer waits for it.
    pub(crate) fn add(&self, request: Request) -> bool {
        let mut waiting = self.lock();
        let error = if waiting.closed {
            Error::Storage("the engine is closed".to_owned())
        } else if waiting.requests.len() >= WAITING_MAX {
            Error::Throttling(format!(
                "too many writes are waiting: waiting={WAITING_MAX}"
            ))
        } else {
            let is_exclusive = matches!(request, Request::Exclusive(_));
            waiting.exclusive += usize::from(is_exclusive);
            waiting.requests.push(request);
            // Nobody but the thread runs what is exclusive, however many came before it.
            return is_exclusive || waiting.requests.len() == waiting.wanted;
        };
        drop(waiting);
        request.refuse(error);
        false
    }

    /// Wakes the thread of the committer.
    pub(crate) fn wake(&self) {
        self.arrived.notify_one();
    }

    /// Takes no further requests. Those that wait are still run.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_one();
    }

    /// Takes no further requests, and drops those that wait: that breaks their promises, which tells
    /// those who wait for them.
    pub(crate) fn abandon(&self) {
        let mut waiting = self.lock();
        waiting.closed = true;
        waiting.exclusive = 0;
        waiting.requests.clear();
    }

    /// Sleeps for a while if nothing waits, and then for as long as the pace allows if there is less than expected.
    /// `false` when the queue is closed and empty.
    pub(crate) fn await_requests(&self, pace: Pace) -> bool {
        let mut waiting = self.wait(self.lock(), 1, IDLE);
        if !waiting.requests.is_empty() && pace.patience >= PATIENCE_MIN {
            waiting = self.wait(waiting, pace.expected, pace.patience);
        }
        waiting.wanted = 0;
        !(waiting.requests.is_empty() && waiting.closed)
    }

    /// Exchanges what waits for an empty list.
    pub(crate) fn take(&self, into: &mut Vec<Request>) {
        let mut waiting = self.lock();
        waiting.exclusive = 0;
        std::mem::swap(&mut waiting.requests, into);
    }

    /// Whether writes of items wait and nothing else does.
    pub(crate) fn has_only_shared(&self) -> bool {
        let waiting = self.lock();
        !waiting.requests.is_empty() && waiting.exclusive == 0
    }

    fn wait<'a>(
        &'a self,
        mut waiting: MutexGuard<'a, Waiting>,
        wanted: usize,
        patience: Duration,
    ) -> MutexGuard<'a, Waiting> {
        waiting.wanted = wanted;
        let too_few = |waiting: &mut Waiting| waiting.requests.len() < wanted && !waiting.closed;
        let waited = self.arrived.wait_timeout_while(waiting, patience, too_few);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
