//! The commit path: a [`Committer`] that takes all waiting writes, applies them in order and makes them
//! durable together.
//!
//! Writers put a [`Request`] into the [`Queue`] and wait for its answer. The committer takes what has
//! gathered while it was busy, runs each request against the state that the ones before it left (the
//! [`Group`] holds what they wrote), commits all of it as one batch with one sync, and answers. So
//! conditions see every earlier write, transactions are serializable, and the cost of a sync is shared
//! by all who wait for it; under load the groups grow by themselves.
//!
//! Writers that have just been answered need a moment until their next write arrives. A committer that
//! went on with the first of them would sync for one and let all others wait for the next sync, every
//! other time. So a group stays open while its requests are run: what arrives meanwhile is in it too. When
//! nothing waits, but less is in it than was in the last one, it stays open for another moment: until an eighth of
//! the time is over that a commit takes.
//!
//! The thread that holds the [`Seat`] commits. On disk that is always a thread of its own, which may wait for
//! syncs. In memory a commit waits for nothing and takes less time than waking a thread, so a writer that finds
//! the seat free runs its own request at once, and with it what others have put into the queue meanwhile.
//!
//! A request that fails writes nothing: everything that can fail comes before its first write. When
//! the commit itself fails, it is not known whether the group is in the journal, so the requests in it
//! are answered with [`OutcomeUnknown`](floe_store::Error::OutcomeUnknown), and the [gate](crate::gate) refuses later writes. Reads go on.
//!
//! Requests on items share groups. Changes of the catalog and background work are
//! [exclusive](Committer::run): a group of their own, thrown away as a whole if they fail, and with
//! effects [on commit](Group::on_commit) that readers see only when the change is durable.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use floe_store::env::Stopwatch;
use floe_store::{Health, Result};

use crate::answer::Answer;
use crate::dir::Directory;
use crate::gate::Gate;
use crate::group::{Effect, Group};
use crate::kv::{Batch, Sync};
use crate::load::CommitState;
use crate::locks::lock;
use crate::options::Durability;
use crate::queue::{Pace, Queue};
use crate::request::{Pending, Request, Work};
use crate::shared::Shared;

/// The most requests in one group.
const GROUP_REQUESTS_MAX: usize = 1024;

/// How often a writer takes what waits in memory before it leaves the rest to the thread.
const TURNS_MAX: usize = 16;

/// The share of a commit's time that the next group may stay open for writers that are on their way back, and that the
/// committer stays awake for them.
const PATIENCE_SHARE: u32 = 8;

/// Commits the writes of an engine, group by group.
pub(crate) struct Committer {
    /// What a group reads and changes.
    pub(crate) shared: Shared,
    /// The writes that wait.
    pub(crate) queue: Queue,
    /// The thread that holds it commits.
    pub(crate) seat: Mutex<Seat>,
    /// Whether writes are accepted.
    pub(crate) gate: Gate,
}

impl Committer {
    /// The committer of a store that has just been opened. It starts with this state.
    pub(crate) fn new(shared: Shared, state: CommitState) -> Self {
        let directory = shared.directory.as_ref();
        let is_read_only = directory.is_some_and(Directory::is_read_only);
        Self {
            shared,
            queue: Queue::default(),
            seat: Mutex::new(Seat::new(state)),
            gate: Gate::new(is_read_only),
        }
    }

    /// Whether writes are accepted, and if not, why.
    pub(crate) fn health(&self) -> Health {
        self.gate.health(&self.shared)
    }

    /// Puts a write of items into the queue. In memory it is run at once if no other thread is committing.
    pub(crate) fn submit<W: Work>(&self, work: W) -> Answer<W::Output> {
        let (request, answer) = Request::shared(work);
        if self.shared.kv.is_memory() {
            self.queue.add(request);
            self.commit_here();
        } else {
            self.queue.push(request);
        }
        answer
    }

    /// Runs what waits on this thread, unless another thread is committing. That one looks again after leaving the
    /// seat, so no request stays behind.
    fn commit_here(&self) {
        for _ in 0..TURNS_MAX {
            // What is exclusive may take long, and has its thread on the way.
            if !self.queue.has_only_shared() {
                return;
            }
            let Ok(mut seat) = self.seat.try_lock() else {
                return;
            };
            let closes = CloseOnExit(&self.queue);
            seat.run(self, &mut Pace::default());
            closes.forget();
        }
        self.queue.wake();
    }

    /// Runs a closure on the thread of the committer, in a group of its own: it sees all earlier writes, what it
    /// writes is committed as a whole, and its answer arrives when that is durable. If it fails,
    /// nothing that it wrote is kept.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        effect: Effect,
        run: impl FnOnce(&mut Group<'_>) -> Result<T> + Send + 'static,
    ) -> Answer<T> {
        let (request, answer) = Request::exclusive(effect, run);
        self.queue.push(request);
        answer
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
        gate.note_written(batch.bytes());
        match shared.kv.commit(batch, sync) {
            Ok(()) if sync == Sync::Data => gate.check_in_place(shared),
            // What is not synced may be lost anyway, and is checked now and then.
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
            // Without a seal the store is opened as after a crash, which loses nothing.
            let _ = directory.seal();
        }
    }
}

/// The seat of the committer: the thread that holds it commits.
pub(crate) struct Seat {
    state: CommitState,
    /// What was taken from the queue; kept for its memory.
    taken: VecDeque<Request>,
}

/// Runs until the queue is closed and empty. To be called on a thread of its own.
pub(crate) fn run_committer(committer: &Committer) {
    // If a request panics, those who wait are told, and nobody waits in vain from then on.
    let _closes = CloseOnExit(&committer.queue);
    let mut pace = Pace::default();
    while committer.queue.await_request(pace.patience) {
        // A writer that panicked in it has closed the queue.
        let Ok(mut seat) = committer.seat.lock() else {
            return;
        };
        seat.run(committer, &mut pace);
    }
}

impl Seat {
    /// The seat of a committer that begins with this.
    pub(crate) const fn new(state: CommitState) -> Self {
        Self {
            state,
            taken: VecDeque::new(),
        }
    }

    /// Takes all that waits and runs it.
    fn run(&mut self, committer: &Committer, pace: &mut Pace) {
        let (shared, gate, state) = (&committer.shared, &committer.gate, &mut self.state);
        // Not in the seat while it is run: if a request panics, those behind it are dropped, which tells who waits.
        let mut taken = std::mem::take(&mut self.taken);
        committer.queue.take(&mut taken);
        if taken.is_empty() {
            // Whoever wrote before is not on the way back any more.
            *pace = Pace::default();
            shared.kv.refresh();
            gate.look_after(shared, state);
        }
        while let Some(request) = taken.pop_front() {
            shared.kv.maintain();
            match gate.admit(shared, state, request.grows) {
                Err(error) => request.refuse(&error),
                Ok(()) if request.is_exclusive => {
                    run_exclusive(committer, state, request.pending);
                }
                Ok(()) => run_group(committer, state, request.pending, &mut taken, pace),
            }
        }
        self.taken = taken;
    }
}

/// Runs and commits a group of all requests that come until it is closed.
fn run_group(
    committer: &Committer,
    state: &mut CommitState,
    first: Box<dyn Pending>,
    taken: &mut VecDeque<Request>,
    pace: &mut Pace,
) {
    let opened = Stopwatch::start();
    let mut group = Group::new(&committer.shared, state);
    let mut requests = Vec::with_capacity(pace.expected.max(taken.len() + 1));
    let mut next = Some(first);
    while let Some(mut request) = next {
        request.run(&mut group);
        requests.push(request);
        next = match requests.len() < GROUP_REQUESTS_MAX && !group.is_full() {
            true => {
                let missing = pace.expected.saturating_sub(requests.len());
                let patience = pace.patience.saturating_sub(opened.elapsed());
                next_shared(committer, taken, missing, patience)
            }
            false => None,
        };
    }
    let begun = Stopwatch::start();
    let committed = committer.commit(group);
    lock(&committer.shared.write_tokens).settle(committed.is_ok());
    *pace = Pace {
        expected: requests.len(),
        patience: begun.elapsed() / PATIENCE_SHARE,
    };
    for request in requests {
        request.send(committed.as_ref().map(|&()| ()));
    }
}

/// The next request if it shares its group, from the queue if all that was taken is run.
fn next_shared(
    committer: &Committer,
    taken: &mut VecDeque<Request>,
    missing: usize,
    patience: Duration,
) -> Option<Box<dyn Pending>> {
    if taken.is_empty() {
        committer.queue.gather(taken, missing, patience);
    }
    let shares = |next: &Request| !next.is_exclusive && committer.gate.accepts(next.grows);
    taken.front().is_some_and(shares).then_some(())?;
    taken.pop_front().map(|next| next.pending)
}

/// Closes the queue and drops what waits when it goes out of scope, also when a request panics.
struct CloseOnExit<'a>(&'a Queue);

impl CloseOnExit<'_> {
    /// Leaves the queue open after all.
    const fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for CloseOnExit<'_> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

fn run_exclusive(committer: &Committer, state: &mut CommitState, mut request: Box<dyn Pending>) {
    let mut changed = state.clone();
    let mut group = Group::new(&committer.shared, &mut changed);
    let has_run = request.run(&mut group);
    let committed = match has_run {
        true => committer.commit(group),
        false => Ok(()),
    };
    if has_run && committed.is_ok() {
        *state = changed;
    }
    request.send(committed.as_ref().map(|&()| ()));
}

#[cfg(test)]
mod tests;
