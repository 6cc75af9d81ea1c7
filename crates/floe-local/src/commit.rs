//! The commit path: a [`Committer`] takes all waiting writes, applies them in order and makes them durable together.
//!
//! Writers put a [`Request`] into the [`Queue`] and wait for its response. The committer takes the requests that
//! arrived while it was busy, runs each one against the state left by the ones before it (the [`Group`] holds their
//! writes), commits all of it as one batch with one sync, and responds. So conditions see every earlier write,
//! transactions are serializable, and all writers of a group share the cost of a sync; under load the groups grow
//! without tuning.
//!
//! A writer needs a moment between its response and its next write. If the committer continued with the first writer to
//! return, every other sync would be for one writer while all others wait. So a group stays open while its requests
//! run, and accepts those that arrive meanwhile. If the queue is empty, but the group is smaller than the previous one,
//! the group lingers for up to an eighth of the time that a commit takes.
//!
//! The thread that holds the committer lock commits. On disk that is always a separate thread, which may wait for
//! syncs. In memory a commit never waits and takes less time than waking a thread, so a writer that finds the lock free
//! runs its own request immediately, along with the requests that other writers queued meanwhile.
//!
//! A request that fails writes nothing, because everything that can fail comes before its first write. When the commit
//! itself fails, it is unknown whether the group is in the journal, so its requests return
//! [`OutcomeUnknown`](floe_store::Error::OutcomeUnknown), and the [gate](crate::gate) rejects later writes. Reads still
//! work.
//!
//! Requests on items share groups. Changes of the catalog and background work are [exclusive](Committer::run): each has
//! its own group, which is discarded as a whole if it fails, and effects [on commit](Group::on_commit) that readers see
//! only once the change is durable.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use floe_store::env::Stopwatch;
use floe_store::{Health, Result};

use crate::dir::Directory;
use crate::gate::Gate;
use crate::group::{DiskUse, Group};
use crate::kv::{Batch, Sync};
use crate::load::CommitState;
use crate::locks::lock;
use crate::options::Durability;
use crate::queue::{GroupTarget, Queue};
use crate::request::{Pending, Request, Work};
use crate::response::PendingResponse;
use crate::shared::Shared;

/// Maximum number of requests in a group.
const GROUP_REQUESTS_MAX: usize = 1024;

/// How many times a writer commits the queue in memory before it leaves the rest to the thread.
const INLINE_ROUNDS_MAX: usize = 16;

/// The fraction (one nth) of a commit's time for which the next group may linger, and for which the committer stays
/// awake, waiting for writers that just got their responses.
const LINGER_SHARE: u32 = 8;

/// Commits the writes of an engine, group by group.
pub(crate) struct Committer {
    /// The state that groups read and change.
    pub(crate) shared: Shared,
    /// The waiting writes.
    pub(crate) queue: Queue,
    /// The committer lock: the thread that holds it commits.
    pub(crate) lock: Mutex<Runner>,
    /// Whether writes are accepted.
    pub(crate) gate: Gate,
}

impl Committer {
    /// Creates the committer of a store that was just opened. `state` is its initial state.
    pub(crate) fn new(shared: Shared, state: CommitState) -> Self {
        let directory = shared.directory.as_ref();
        let is_read_only = directory.is_some_and(Directory::is_read_only);
        Self {
            shared,
            queue: Queue::default(),
            lock: Mutex::new(Runner::new(state)),
            gate: Gate::new(is_read_only),
        }
    }

    /// Whether writes are accepted, and if not, the reason.
    pub(crate) fn health(&self) -> Health {
        self.gate.health(&self.shared)
    }

    /// Queues a write of items. In memory it runs immediately unless another thread is committing.
    pub(crate) fn submit<W: Work>(&self, work: W) -> PendingResponse<W::Output> {
        let (request, response) = Request::shared(work);
        if self.shared.kv.is_memory() {
            self.queue.add(request);
            self.commit_here();
        } else {
            self.queue.push(request);
        }
        response
    }

    /// Runs the waiting requests on this thread, unless another thread is committing. That thread checks the queue
    /// again after it releases the lock, so no request is left behind.
    fn commit_here(&self) {
        for _ in 0..INLINE_ROUNDS_MAX {
            // An exclusive request may take long, and its thread has already been woken.
            if !self.queue.has_only_shared() {
                return;
            }
            let Ok(mut runner) = self.lock.try_lock() else {
                return;
            };
            let closes = CloseOnExit(&self.queue);
            runner.run(self, &mut GroupTarget::default());
            closes.disarm();
        }
        self.queue.wake();
    }

    /// Runs a closure on the committer's thread in an exclusive group: it sees all earlier writes, its own writes are
    /// committed atomically, and the response arrives once they are durable. If it fails, none of its writes are kept.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        disk_use: DiskUse,
        run: impl FnOnce(&mut Group<'_>) -> Result<T> + Send + 'static,
    ) -> PendingResponse<T> {
        let (request, response) = Request::exclusive(disk_use, run);
        self.queue.push(request);
        response
    }

    /// Makes a group durable and visible.
    fn commit(&self, group: Group<'_>) -> Result<()> {
        group.commit(|batch| self.write(batch))
    }

    /// Commits a batch. A failure closes the [gate](crate::gate).
    fn write(&self, batch: Batch) -> Result<()> {
        let Self { shared, gate, .. } = self;
        let sync = match shared.options.durability {
            Durability::Sync => Sync::Data,
            Durability::Relaxed => Sync::None,
        };
        gate.record_written(batch.bytes());
        match shared.kv.commit(batch, sync) {
            Ok(()) if sync == Sync::Data => gate.check_in_place(shared),
            // Without a sync, writes may be lost anyway; the directory is checked periodically instead.
            Ok(()) => Ok(()),
            Err(error) => Err(gate.commit_failed(shared, error)),
        }
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        if let Some(directory) = &self.shared.directory
            && !directory.is_read_only()
            && self.gate.is_sealable()
            && self.shared.is_in_place(directory)
            && self.shared.kv.close()
        {
            // A store without a seal is opened as after a crash, which loses nothing.
            let _ = directory.seal();
        }
    }
}

/// Runs groups of requests. Protected by the committer lock.
pub(crate) struct Runner {
    state: CommitState,
    /// Requests taken from the queue; kept to reuse the allocation.
    taken: VecDeque<Request>,
}

/// Runs until the queue is closed and empty. Call it on a separate thread.
pub(crate) fn run_committer(committer: &Committer) {
    // If a request panics, waiting callers get an error, and later callers do not wait forever.
    let _closes = CloseOnExit(&committer.queue);
    let mut target = GroupTarget::default();
    while committer.queue.await_request(target.linger) {
        // A writer that panicked while holding the lock has closed the queue.
        let Ok(mut runner) = committer.lock.lock() else {
            return;
        };
        runner.run(committer, &mut target);
    }
}

impl Runner {
    /// Creates a runner with an initial state.
    pub(crate) const fn new(state: CommitState) -> Self {
        Self {
            state,
            taken: VecDeque::new(),
        }
    }

    /// Runs all waiting requests.
    fn run(&mut self, committer: &Committer, target: &mut GroupTarget) {
        let (shared, gate, state) = (&committer.shared, &committer.gate, &mut self.state);
        // Moved out of `self`, so that a panic of a request drops the ones behind it, which notifies their callers.
        let mut taken = std::mem::take(&mut self.taken);
        committer.queue.take(&mut taken);
        if taken.is_empty() {
            // The previous writers are no longer expected to return.
            *target = GroupTarget::default();
            shared.kv.refresh();
            gate.maintain(shared, state);
        }
        while let Some(request) = taken.pop_front() {
            shared.kv.maintain();
            match gate.admit(shared, state, request.grows) {
                Err(error) => request.reject(&error),
                Ok(()) if request.is_exclusive => {
                    run_exclusive(committer, state, request.pending);
                }
                Ok(()) => run_group(committer, state, request.pending, &mut taken, target),
            }
        }
        self.taken = taken;
    }
}

/// Runs and commits a group of all requests that arrive until it is closed.
fn run_group(
    committer: &Committer,
    state: &mut CommitState,
    first: Box<dyn Pending>,
    taken: &mut VecDeque<Request>,
    target: &mut GroupTarget,
) {
    let opened = Stopwatch::start();
    let mut group = Group::new(&committer.shared, state);
    let mut requests = Vec::with_capacity(target.expected.max(taken.len() + 1));
    let mut next = Some(first);
    while let Some(mut request) = next {
        request.run(&mut group);
        requests.push(request);
        next = if requests.len() < GROUP_REQUESTS_MAX && !group.is_full() {
            let missing = target.expected.saturating_sub(requests.len());
            let linger = target.linger.saturating_sub(opened.elapsed());
            next_shared(committer, taken, missing, linger)
        } else {
            None
        };
    }
    let begun = Stopwatch::start();
    let committed = committer.commit(group);
    lock(&committer.shared.write_tokens).end_group(committed.is_ok());
    *target = GroupTarget {
        expected: requests.len(),
        linger: begun.elapsed() / LINGER_SHARE,
    };
    for request in requests {
        request.send(committed.as_ref().map(|&()| ()));
    }
}

/// The next request, if it may share the group. Reads the queue once all taken requests have run.
fn next_shared(
    committer: &Committer,
    taken: &mut VecDeque<Request>,
    missing: usize,
    linger: Duration,
) -> Option<Box<dyn Pending>> {
    if taken.is_empty() {
        committer.queue.gather(taken, missing, linger);
    }
    let shares = |next: &Request| !next.is_exclusive && committer.gate.accepts(next.grows);
    taken.front().is_some_and(shares).then_some(())?;
    taken.pop_front().map(|next| next.pending)
}

/// Closes the queue and drops the waiting requests when it goes out of scope, even if a request panics.
struct CloseOnExit<'a>(&'a Queue);

impl CloseOnExit<'_> {
    /// Leaves the queue open.
    const fn disarm(self) {
        std::mem::forget(self);
    }
}

impl Drop for CloseOnExit<'_> {
    fn drop(&mut self) {
        self.0.close_and_clear();
    }
}

fn run_exclusive(committer: &Committer, state: &mut CommitState, mut request: Box<dyn Pending>) {
    let mut changed = state.clone();
    let mut group = Group::new(&committer.shared, &mut changed);
    let has_run = request.run(&mut group);
    let committed = if has_run {
        committer.commit(group)
    } else {
        Ok(())
    };
    if has_run && committed.is_ok() {
        *state = changed;
    }
    request.send(committed.as_ref().map(|&()| ()));
}

#[cfg(test)]
mod tests;
