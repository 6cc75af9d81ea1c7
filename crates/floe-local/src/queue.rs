//! The writes that wait for the committer.

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
    /// With how many requests the committer wants to be woken.
    wanted: usize,
    closed: bool,
}

impl Queue {
    /// Adds a request, or answers it at once if it cannot wait.
    pub(crate) fn push(&self, request: Request) {
        let mut waiting = self.lock();
        let error = if waiting.closed {
            Error::Storage("the engine is closed".to_owned())
        } else if waiting.requests.len() >= WAITING_MAX {
            Error::Throttling(format!(
                "too many writes are waiting: waiting={WAITING_MAX}"
            ))
        } else {
            waiting.requests.push(request);
            let enough = waiting.requests.len() == waiting.wanted;
            drop(waiting);
            if enough {
                self.arrived.notify_one();
            }
            return;
        };
        drop(waiting);
        request.refuse(error);
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
        waiting.requests.clear();
    }

    /// Exchanges what waits for an empty list. Sleeps for a while if there is nothing, and then for as
    /// long as the pace allows if there is less than expected. `false` when the queue is closed and
    /// empty.
    pub(crate) fn take(&self, into: &mut Vec<Request>, pace: Pace) -> bool {
        let mut waiting = self.wait(self.lock(), 1, IDLE);
        if !waiting.requests.is_empty() && pace.patience >= PATIENCE_MIN {
            waiting = self.wait(waiting, pace.expected, pace.patience);
        }
        waiting.wanted = 0;
        std::mem::swap(&mut waiting.requests, into);
        !(into.is_empty() && waiting.closed)
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
