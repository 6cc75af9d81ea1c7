//! The queue of writes that wait for the committer.
//!
//! They are committed by a dedicated thread that sleeps while the queue is empty, or by the thread that just added a
//! write, if no other thread is committing; see [`commit`](crate::commit).

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use floe_store::Error;
use floe_store::env::Stopwatch;

use crate::locks::lock;
use crate::request::Request;

/// Maximum number of waiting requests.
const WAITING_MAX: usize = 100_000;

/// How long the committer sleeps when there is nothing to do.
const IDLE: Duration = Duration::from_secs(1);

/// Maximum time that the committer stays awake before it sleeps: longer than a writer needs for its next write, and
/// negligible compared with a commit to a slow disk.
const AWAKE_MAX: Duration = Duration::from_micros(50);

/// Minimum linger. A shorter one is skipped, because a sleep takes longer.
const LINGER_MIN: Duration = Duration::from_micros(20);

/// Number of requests that wake a lingering committer: waking it costs about as much as running one request.
const WAKE_REQUESTS: usize = 4;

/// How long a group lingers: until it has the expected number of requests, or until the time is over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupTarget {
    /// Expected number of requests.
    pub(crate) expected: usize,
    /// Maximum time to wait for them. Requests that already wait are always taken.
    pub(crate) linger: Duration,
}

/// The queue of waiting requests.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<QueueState>,
    arrived: Condvar,
}

#[derive(Default)]
struct QueueState {
    requests: VecDeque<Request>,
    /// Number of exclusive requests among them.
    exclusive: usize,
    /// Number of requests at which the committer wants to be woken.
    wanted: usize,
    closed: bool,
}

impl QueueState {
    fn take(&mut self, into: &mut VecDeque<Request>) {
        self.exclusive = 0;
        std::mem::swap(&mut self.requests, into);
    }
}

impl Queue {
    /// Adds a request for the committer's thread, or rejects it if the queue is closed or full.
    pub(crate) fn push(&self, request: Request) {
        if self.add(request) {
            self.arrived.notify_one();
        }
    }

    /// Adds a request for the next thread that commits, or rejects it if the queue is closed or full. Returns whether
    /// the committer's thread must be woken.
    pub(crate) fn add(&self, request: Request) -> bool {
        let mut waiting = lock(&self.waiting);
        let error = if waiting.closed {
            Error::Storage("the engine is closed".to_owned())
        } else if waiting.requests.len() >= WAITING_MAX {
            Error::Throttling(format!("too many waiting writes: waiting={WAITING_MAX}"))
        } else {
            let is_exclusive = request.is_exclusive;
            waiting.exclusive += usize::from(is_exclusive);
            waiting.requests.push_back(request);
            // Only the committer's thread runs exclusive requests, however many requests precede them.
            return is_exclusive || waiting.requests.len() == waiting.wanted;
        };
        drop(waiting);
        request.reject(&error);
        false
    }

    /// Wakes the committer's thread.
    pub(crate) fn wake(&self) {
        self.arrived.notify_one();
    }

    /// Rejects further requests. Waiting ones are still run.
    pub(crate) fn close(&self) {
        lock(&self.waiting).closed = true;
        self.arrived.notify_one();
    }

    /// Rejects further requests and drops the waiting ones. Dropping their responders notifies the callers.
    pub(crate) fn close_and_clear(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.closed = true;
        waiting.exclusive = 0;
        waiting.requests.clear();
    }

    /// Sleeps until a request arrives, up to a limit. `false` when the queue is closed and empty.
    ///
    /// Stays awake for the first moment, so that a writer that just got its response can write again without waking a
    /// thread. Yields the processor to other threads meanwhile.
    pub(crate) fn await_request(&self, awake: Duration) -> bool {
        let (begun, awake) = (Stopwatch::start(), awake.min(AWAKE_MAX));
        while begun.elapsed() < awake && lock(&self.waiting).requests.is_empty() {
            std::thread::yield_now();
        }
        let waiting = self.wait(lock(&self.waiting), 1, IDLE);
        !(waiting.requests.is_empty() && waiting.closed)
    }

    /// Moves all waiting requests into an empty list, unless one of them is exclusive. If there are none, lingers for
    /// some of those that are still expected.
    pub(crate) fn gather(&self, into: &mut VecDeque<Request>, wanted: usize, linger: Duration) {
        let mut waiting = lock(&self.waiting);
        if waiting.requests.is_empty() && wanted > 0 && linger >= LINGER_MIN {
            waiting = self.wait(waiting, wanted.min(WAKE_REQUESTS), linger);
        }
        if waiting.exclusive == 0 {
            waiting.take(into);
        }
    }

    /// Moves all waiting requests into an empty list.
    pub(crate) fn take(&self, into: &mut VecDeque<Request>) {
        lock(&self.waiting).take(into);
    }

    /// Whether the queue has waiting requests and none of them is exclusive.
    pub(crate) fn has_only_shared(&self) -> bool {
        let waiting = lock(&self.waiting);
        !waiting.requests.is_empty() && waiting.exclusive == 0
    }

    fn wait<'a>(
        &'a self,
        mut waiting: MutexGuard<'a, QueueState>,
        wanted: usize,
        linger: Duration,
    ) -> MutexGuard<'a, QueueState> {
        waiting.wanted = wanted;
        let too_few = |waiting: &mut QueueState| {
            waiting.requests.len() < wanted && waiting.exclusive == 0 && !waiting.closed
        };
        let waited = self.arrived.wait_timeout_while(waiting, linger, too_few);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        waiting.wanted = 0;
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use floe_store::Result;

    use crate::group::{DiskUse, Group};
    use crate::request::Work;

    struct NoOp;

    impl Work for NoOp {
        type Output = ();

        fn disk_use(&self) -> DiskUse {
            DiskUse::Grows
        }

        fn run(&mut self, _: &mut Group<'_>) -> Result<()> {
            Ok(())
        }
    }

    fn shared() -> Request {
        Request::shared(NoOp).0
    }

    fn exclusive() -> Request {
        Request::exclusive(DiskUse::Grows, |_| Ok(())).0
    }

    fn gathered(queue: &Queue, wanted: usize) -> usize {
        let mut taken = VecDeque::new();
        queue.gather(&mut taken, wanted, Duration::from_secs(3600));
        taken.len()
    }

    #[test]
    fn waiting_requests_are_taken_at_once() {
        let queue = Queue::default();
        assert_eq!(gathered(&queue, 0), 0);
        queue.push(shared());
        assert_eq!(gathered(&queue, 100), 1);
    }

    #[test]
    fn lingering_committer_is_woken_by_a_few_requests() {
        for (wanted, few) in [(1, 1), (3, 3), (100, WAKE_REQUESTS)] {
            let queue = Queue::default();
            let taken = std::thread::scope(|scope| {
                let taken = scope.spawn(|| gathered(&queue, wanted));
                (0..few).for_each(|_| queue.push(shared()));
                taken.join().unwrap()
            });
            // If all or only the first of them arrived before `gather`, it did not have to wait.
            assert!((1..=few).contains(&taken), "{wanted} {taken}");
        }
    }

    #[test]
    fn exclusive_request_ends_the_linger_and_stays_queued() {
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
    fn closed_queue_does_not_wait() {
        let queue = Queue::default();
        queue.close();
        assert_eq!(gathered(&queue, 100), 0);
        assert!(!queue.await_request(Duration::ZERO));
    }
}
