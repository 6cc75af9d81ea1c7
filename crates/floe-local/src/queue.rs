//! The writes that wait for the committer.
//!
//! They are committed by a thread that sleeps until there is something to do, or by the thread that has just put a write
//! here, if no other is committing; see [`commit`](crate::commit).

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use floe_store::Error;
use floe_store::env::Stopwatch;

use crate::locks::lock;
use crate::request::Request;

/// The most requests that may wait.
const WAITING_MAX: usize = 100_000;

/// How long the committer sleeps when there is nothing to do.
const IDLE: Duration = Duration::from_secs(1);

/// How long it stays awake at most before it sleeps: longer than it takes a writer to come back, and nothing beside a
/// commit to a slow disk.
const AWAKE_MAX: Duration = Duration::from_micros(50);

/// Shorter than this it does not wait at all: a sleep takes longer.
const PATIENCE_MIN: Duration = Duration::from_micros(20);

/// With how many requests the committer is woken that waits for more: to wake it costs about as much as to run one.
const WAKE_REQUESTS: usize = 4;

/// How long a group stays open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// Until so many requests are in it,
    pub(crate) expected: usize,
    /// and no longer than this, unless requests wait already.
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
    requests: VecDeque<Request>,
    /// How many of them are exclusive.
    exclusive: usize,
    /// With how many requests the committer wants to be woken.
    wanted: usize,
    closed: bool,
}

impl Waiting {
    fn take(&mut self, into: &mut VecDeque<Request>) {
        self.exclusive = 0;
        std::mem::swap(&mut self.requests, into);
    }
}

impl Queue {
    /// Adds a request for the thread of the committer, or answers it at once if it cannot wait.
    pub(crate) fn push(&self, request: Request) {
        if self.add(request) {
            self.arrived.notify_one();
        }
    }

    /// Adds a request for the next thread that commits, or answers it at once if it cannot wait. Returns whether the
    /// thread of the committer waits for it.
    pub(crate) fn add(&self, request: Request) -> bool {
        let mut waiting = lock(&self.waiting);
        let error = if waiting.closed {
            Error::Storage("the engine is closed".to_owned())
        } else if waiting.requests.len() >= WAITING_MAX {
            Error::Throttling(format!(
                "too many writes are waiting: waiting={WAITING_MAX}"
            ))
        } else {
            let is_exclusive = request.is_exclusive;
            waiting.exclusive += usize::from(is_exclusive);
            waiting.requests.push_back(request);
            // Nobody but the thread runs what is exclusive, however many came before it.
            return is_exclusive || waiting.requests.len() == waiting.wanted;
        };
        drop(waiting);
        request.refuse(&error);
        false
    }

    /// Wakes the thread of the committer.
    pub(crate) fn wake(&self) {
        self.arrived.notify_one();
    }

    /// Takes no further requests. Those that wait are still run.
    pub(crate) fn close(&self) {
        lock(&self.waiting).closed = true;
        self.arrived.notify_one();
    }

    /// Takes no further requests, and drops those that wait: that breaks their promises, which tells
    /// those who wait for them.
    pub(crate) fn abandon(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.closed = true;
        waiting.exclusive = 0;
        waiting.requests.clear();
    }

    /// Sleeps until something waits, for a while at most. `false` when the queue is closed and empty.
    ///
    /// For the first moment it stays awake: a writer that has just been answered and writes again is then served
    /// without waking a thread. Others that have work get the processor meanwhile.
    pub(crate) fn await_request(&self, awake: Duration) -> bool {
        let (begun, awake) = (Stopwatch::start(), awake.min(AWAKE_MAX));
        while begun.elapsed() < awake && lock(&self.waiting).requests.is_empty() {
            std::thread::yield_now();
        }
        let waiting = self.wait(lock(&self.waiting), 1, IDLE);
        !(waiting.requests.is_empty() && waiting.closed)
    }

    /// Takes all that waits into a list that is empty, unless some of it is exclusive. If nothing waits, it waits a while
    /// for some of those that are still wanted.
    pub(crate) fn gather(&self, into: &mut VecDeque<Request>, wanted: usize, patience: Duration) {
        let mut waiting = lock(&self.waiting);
        if waiting.requests.is_empty() && wanted > 0 && patience >= PATIENCE_MIN {
            waiting = self.wait(waiting, wanted.min(WAKE_REQUESTS), patience);
        }
        if waiting.exclusive == 0 {
            waiting.take(into);
        }
    }

    /// Takes all that waits into a list that is empty.
    pub(crate) fn take(&self, into: &mut VecDeque<Request>) {
        lock(&self.waiting).take(into);
    }

    /// Whether writes of items wait and nothing else does.
    pub(crate) fn has_only_shared(&self) -> bool {
        let waiting = lock(&self.waiting);
        !waiting.requests.is_empty() && waiting.exclusive == 0
    }

    fn wait<'a>(
        &'a self,
        mut waiting: MutexGuard<'a, Waiting>,
        wanted: usize,
        patience: Duration,
    ) -> MutexGuard<'a, Waiting> {
        waiting.wanted = wanted;
        let too_few = |waiting: &mut Waiting| {
            waiting.requests.len() < wanted && waiting.exclusive == 0 && !waiting.closed
        };
        let waited = self.arrived.wait_timeout_while(waiting, patience, too_few);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        waiting.wanted = 0;
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use floe_store::Result;

    use crate::group::{Effect, Group};
    use crate::request::Work;

    struct Nothing;

    impl Work for Nothing {
        type Output = ();

        fn effect(&self) -> Effect {
            Effect::Grows
        }

        fn run(&mut self, _: &mut Group<'_>) -> Result<()> {
            Ok(())
        }
    }

    fn shared() -> Request {
        Request::shared(Nothing).0
    }

    fn exclusive() -> Request {
        Request::exclusive(Effect::Grows, |_| Ok(())).0
    }

    fn gathered(queue: &Queue, wanted: usize) -> usize {
        let mut taken = VecDeque::new();
        queue.gather(&mut taken, wanted, Duration::from_secs(3600));
        taken.len()
    }

    #[test]
    fn what_waits_is_taken_at_once_however_many_are_wanted() {
        let queue = Queue::default();
        assert_eq!(gathered(&queue, 0), 0);
        queue.push(shared());
        assert_eq!(gathered(&queue, 100), 1);
    }

    #[test]
    fn who_waits_for_more_is_woken_by_a_few() {
        for (wanted, few) in [(1, 1), (3, 3), (100, WAKE_REQUESTS)] {
            let queue = Queue::default();
            let taken = std::thread::scope(|scope| {
                let taken = scope.spawn(|| gathered(&queue, wanted));
                (0..few).for_each(|_| queue.push(shared()));
                taken.join().unwrap()
            });
            // If all of them came before it looked, or only the first did, it need not have waited.
            assert!((1..=few).contains(&taken), "{wanted} {taken}");
        }
    }

    #[test]
    fn what_is_exclusive_ends_the_wait_and_stays() {
        let queue = Queue::default();
        let taken = std::thread::scope(|scope| {
            let taken = scope.spawn(|| gathered(&queue, 100));
            queue.push(exclusive());
            taken.join().unwrap()
        });
        assert_eq!(taken, 0);
        let mut all = VecDeque::new();
        queue.take(&mut all);
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn a_queue_that_is_closed_lets_nobody_wait() {
        let queue = Queue::default();
        queue.close();
        assert_eq!(gathered(&queue, 100), 0);
        assert!(!queue.await_request(Duration::ZERO));
    }
}
