//! The commit path: one committer that takes all waiting writes, applies them in order and makes them
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
//! The committer is whoever holds the [`Seat`]. On disk that is always a thread of its own, which may wait for
//! syncs. In memory a commit waits for nothing and takes less time than waking a thread, so a writer that finds
//! the seat free runs its own request at once, and with it what others have put into the queue meanwhile.
//!
//! A request that fails writes nothing: everything that can fail comes before its first write. When
//! the commit itself fails, it is not known whether the group is in the journal, so the requests in it
//! are answered with [`Error::OutcomeUnknown`], and the [gate](crate::gate) refuses later writes. Reads go on.
//!
//! Requests on items share groups. Changes of the catalog and background work are
//! [exclusive](Shared::run): a group of their own, thrown away as a whole if they fail, and with
//! effects [on commit](Group::on_commit) that readers see only when the change is durable.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use floe_store::env::Stopwatch;
use floe_store::{Error, Result, Timestamp};

use crate::answer::{Answer, Promise, promise};
use crate::catalog::Table;
use crate::engine::Shared;
use crate::kv::{Batch, Bytes, Space, Sync};
use crate::layout::record::{self, Counts, Instance};
use crate::options::Durability;
use crate::queue::Pace;
use crate::streams::Position;
use crate::tokens::TokenMoment;

/// The most requests in one group.
const GROUP_REQUESTS_MAX: usize = 1024;

/// A group takes no further request once it writes so many bytes.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// How often a writer takes what waits in memory before it leaves the rest to the thread.
const TURNS_MAX: usize = 16;

/// The share of a commit's time that the next group may stay open for writers that are on their way back, and that the
/// committer stays awake for them.
const PATIENCE_SHARE: u32 = 8;

/// A write that waits for its turn.
pub(crate) struct Request {
    pending: Box<dyn Pending>,
    /// Whether it has a group of its own, as changes of the catalog and background work have.
    pub(crate) is_exclusive: bool,
    /// Whether it stores more than it removes.
    grows: bool,
}

#[cfg(test)]
impl Request {
    /// One that shares its group.
    pub(crate) fn shared(pending: Box<dyn Pending>) -> Self {
        Self {
            pending,
            is_exclusive: false,
            grows: true,
        }
    }

    /// One that has a group of its own.
    pub(crate) fn exclusive(pending: Box<dyn Pending>) -> Self {
        Self {
            is_exclusive: true,
            ..Self::shared(pending)
        }
    }
}

impl Request {
    /// Answers without running it.
    pub(crate) fn refuse(self, error: &Error) {
        self.pending.send(Err(error));
    }
}

/// Whether a write stores more than it removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It stores something.
    Grows,
    /// It only removes, and is accepted when the disk is almost full.
    Frees,
}

/// What a request does.
pub(crate) trait Work: Send + 'static {
    /// What it answers.
    type Output: Send;

    /// What it does to the size of the store.
    fn effect(&self) -> Effect;

    /// Does it against the group, once. If it fails, it has written nothing.
    fn run(&mut self, group: &mut Group<'_>) -> Result<Self::Output>;
}

/// A request of whatever kind, from the queue to its answer.
pub(crate) trait Pending: Send {
    /// Runs it against the group, and tells whether that went well. What it answers is kept until the group is
    /// durable.
    fn run(&mut self, group: &mut Group<'_>) -> bool;

    /// Answers; with the error if it was not run, or if its group could not be committed.
    fn send(self: Box<Self>, committed: Result<(), &Error>);
}

/// Work that somebody waits for.
struct Asked<W: Work> {
    work: W,
    result: Option<Result<W::Output>>,
    promise: Option<Promise<W::Output>>,
}

impl<W: Work> Asked<W> {
    fn boxed(work: W) -> (Box<dyn Pending>, Answer<W::Output>) {
        let (promise, answer) = promise();
        let asked = Self {
            work,
            result: None,
            promise: Some(promise),
        };
        (Box::new(asked), answer)
    }
}

impl<W: Work> Pending for Asked<W> {
    fn run(&mut self, group: &mut Group<'_>) -> bool {
        let result = self.result.insert(self.work.run(group));
        result.is_ok()
    }

    fn send(mut self: Box<Self>, committed: Result<(), &Error>) {
        let answer = match (self.result.take(), committed) {
            (Some(result), Ok(())) => result,
            // It wrote nothing. But it was judged on what the requests before it wrote, and that may
            // never have been.
            (Some(Err(_)), Err(error)) => Err(Error::Storage(error.to_string())),
            (_, Err(error)) => Err(error.clone()),
            (None, Ok(())) => Err(Error::Internal(
                "a request was answered before it ran".to_owned(),
            )),
        };
        if let Some(promise) = self.promise.take() {
            promise.keep(answer, self);
        }
    }
}

/// Work that is a function.
struct Closure<F>(Option<F>, Effect);

impl<F, T> Work for Closure<F>
where
    F: FnOnce(&mut Group<'_>) -> Result<T> + Send + 'static,
    T: Send,
{
    type Output = T;

    fn effect(&self) -> Effect {
        self.1
    }

    fn run(&mut self, group: &mut Group<'_>) -> Result<T> {
        let ran_before = || Error::Internal("a request ran twice".to_owned());
        self.0.take().ok_or_else(ran_before)?(group)
    }
}

impl Shared {
    /// Puts a write of items into the queue. In memory it is run at once if nobody else is at it.
    pub(crate) fn submit<W: Work>(&self, work: W) -> Answer<W::Output> {
        let grows = work.effect() == Effect::Grows;
        let (pending, answer) = Asked::boxed(work);
        let request = Request {
            pending,
            is_exclusive: false,
            grows,
        };
        if self.kv.is_memory() {
            self.queue.add(request);
            self.commit_here();
        } else {
            self.queue.push(request);
        }
        answer
    }

    /// Runs what waits on this thread, unless somebody else is at it. Who is looks again after leaving the seat, so
    /// no request stays behind.
    fn commit_here(&self) {
        for _ in 0..TURNS_MAX {
            // What is exclusive may take long, and has its thread on the way.
            if !self.queue.has_only_shared() {
                return;
            }
            let Ok(mut seat) = self.seat.try_lock() else {
                return;
            };
            let closes = CloseOnExit(self);
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
        let (pending, answer) = Asked::boxed(Closure(Some(run), effect));
        self.queue.push(Request {
            pending,
            is_exclusive: true,
            grows: effect == Effect::Grows,
        });
        answer
    }
}

/// The seat of the committer: who holds it is the one.
pub(crate) struct Seat {
    state: CommitState,
    /// What was taken from the queue; kept for its memory.
    taken: VecDeque<Request>,
}

/// What the committer alone knows and changes.
#[derive(Clone, Debug)]
pub(crate) struct CommitState {
    /// The ids given out.
    pub(crate) instance: Instance,
    /// Where the next change record goes.
    pub(crate) position: Position,
}

/// Something to do when a group is durable.
type OnCommit = Box<dyn FnOnce(&Shared) + Send>;

/// The writes of the requests that are committed together, and the state as they see it.
pub(crate) struct Group<'a> {
    shared: &'a Shared,
    state: &'a mut CommitState,
    now: Timestamp,
    batch: Batch,
    /// Where in the batch the write of a key is.
    written: HashMap<(Space, Bytes), usize>,
    /// How much is in the tables that were written to.
    counts: HashMap<u32, (Arc<Table>, Counts)>,
    /// What the item collections weigh that were looked at.
    collections: HashMap<(Space, Bytes), u64>,
    sequence_before: u64,
    token_moment: TokenMoment,
    after: Vec<OnCommit>,
}

impl<'a> Group<'a> {
    fn new(shared: &'a Shared, state: &'a mut CommitState) -> Self {
        let now = shared.options.env.now();
        Self {
            now,
            token_moment: shared.token_clock().read(&shared.options.env),
            batch: Batch::default(),
            written: HashMap::new(),
            counts: HashMap::new(),
            collections: HashMap::new(),
            sequence_before: state.position.sequence,
            after: Vec::new(),
            shared,
            state,
        }
    }

    /// The engine.
    pub(crate) const fn shared(&self) -> &'a Shared {
        self.shared
    }

    /// The moment of the group.
    pub(crate) const fn now(&self) -> Timestamp {
        self.now
    }

    /// The moment of the group as [tokens](crate::tokens) count it.
    pub(crate) const fn token_moment(&self) -> TokenMoment {
        self.token_moment
    }

    /// Where the next change record goes.
    pub(crate) const fn position(&mut self) -> &mut Position {
        &mut self.state.position
    }

    /// An id that was never given out before. The group is to write something, so that it never is again.
    pub(crate) fn new_id(&mut self) -> u32 {
        let id = self.state.instance.next_id;
        self.state.instance.next_id += 1;
        let instance = self.state.instance.encode();
        self.put(Space::Meta, record::INSTANCE_KEY, instance);
        id
    }

    /// The value of a key as the requests so far have left it.
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        if !self.batch.is_empty() {
            // Inline up to twenty bytes, an allocation for longer keys.
            let probe = (space, Bytes::from(key));
            if let Some(write) = self.written.get(&probe) {
                return Ok(self.batch.value(*write).cloned());
            }
        }
        self.shared.kv.get_latest(space, key)
    }

    /// Sets a key to a value.
    pub(crate) fn put(&mut self, space: Space, key: impl AsRef<[u8]>, value: impl Into<Bytes>) {
        self.write(space, key.as_ref(), Some(value.into()));
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, space: Space, key: impl AsRef<[u8]>) {
        self.write(space, key.as_ref(), None);
    }

    /// Sets a key that no other request of the group writes or reads.
    pub(crate) fn put_once(
        &mut self,
        space: Space,
        key: impl AsRef<[u8]>,
        value: impl Into<Bytes>,
    ) {
        self.batch.put(space, key, value);
    }

    fn write(&mut self, space: Space, key: &[u8], value: Option<Bytes>) {
        match self.written.entry((space, space.key(key))) {
            Entry::Occupied(entry) => self.batch.replace(*entry.get(), value),
            Entry::Vacant(entry) => {
                let key = entry.key().1.clone();
                entry.insert(self.batch.len());
                self.batch.push(space, key, value);
            }
        }
    }

    /// How much is in a table, to be changed with what the group writes to it.
    pub(crate) fn counts(&mut self, table: &Arc<Table>) -> &mut Counts {
        let entry = self.counts.entry(table.id());
        let (_, counts) = entry.or_insert_with(|| (table.clone(), table.counts()));
        counts
    }

    /// What the item collection of this key weighs. It is remembered, so that it can be changed and
    /// told without another read.
    pub(crate) fn load_collection(&mut self, table: &Table, key: &Bytes) -> Result<u64> {
        let name = (table.space(), key.clone());
        if let Some(weight) = self.collections.get(&name) {
            return Ok(*weight);
        }
        let stored = self.shared.kv.get_latest(table.space(), key)?;
        let weight = stored.map_or(Ok(0), |bytes| record::decode_weight(&bytes))?;
        self.collections.insert(name, weight);
        Ok(weight)
    }

    /// Changes what an item collection weighs that was loaded.
    pub(crate) fn grow_collection(&mut self, table: &Table, key: Bytes, bytes: i64) {
        let weight = self.loaded_collection(table, &key);
        let weight = weight.unwrap_or(0).saturating_add_signed(bytes);
        self.collections
            .insert((table.space(), key.clone()), weight);
        match weight {
            0 => self.remove(table.space(), key),
            _ => self.put(table.space(), key, record::encode_weight(weight)),
        }
    }

    /// What the item collection of this key weighs, if it was loaded.
    pub(crate) fn loaded_collection(&self, table: &Table, key: &Bytes) -> Option<u64> {
        let name = (table.space(), key.clone());
        self.collections.get(&name).copied()
    }

    /// Does this when the group is durable, before anybody is answered.
    pub(crate) fn on_commit(&mut self, effect: impl FnOnce(&Shared) + Send + 'static) {
        self.after.push(Box::new(effect));
    }

    /// Whether it has grown so far that the next request should wait for the next group.
    fn is_full(&self) -> bool {
        self.batch.bytes() >= GROUP_BYTES_MAX
    }

    /// Makes the group durable and visible.
    fn commit(mut self) -> Result<(), Error> {
        let meta = Space::Meta;
        for (id, (_, counts)) in &self.counts {
            self.batch
                .put(meta, record::counts_key(*id), counts.encode());
        }
        let sequence = self.state.position.sequence;
        if sequence != self.sequence_before {
            let value = record::encode_sequence(sequence);
            self.batch.put(meta, record::SEQUENCE_KEY, value);
        }
        if !self.batch.is_empty() {
            self.shared.commit(self.batch)?;
        }
        for (table, counts) in self.counts.into_values() {
            table.set_counts(counts);
        }
        for effect in self.after {
            effect(self.shared);
        }
        Ok(())
    }
}

impl Shared {
    /// Commits a batch. A failure closes the [gate](crate::gate).
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        let sync = match self.options.durability {
            Durability::Sync => Sync::Data,
            Durability::Relaxed => Sync::None,
        };
        self.gate.note_written(batch.bytes());
        match self.kv.commit(batch, sync) {
            Ok(()) if sync == Sync::Data => self.check_in_place(),
            // What is not synced may be lost anyway, and is checked now and then.
            Ok(()) => Ok(()),
            Err(error) => Err(self.commit_failed(error)),
        }
    }
}

/// Runs until the queue is closed and empty. To be called on a thread of its own.
pub(crate) fn run_committer(shared: &Shared) {
    // If a request panics, those who wait are told, and nobody waits in vain from then on.
    let _closes = CloseOnExit(shared);
    let mut pace = Pace::default();
    while shared.queue.await_request(pace.patience) {
        // A writer that panicked in it has closed the queue.
        let Ok(mut seat) = shared.seat.lock() else {
            return;
        };
        seat.run(shared, &mut pace);
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
    fn run(&mut self, shared: &Shared, pace: &mut Pace) {
        // Not in the seat while it is run: if a request panics, those behind it are dropped, which tells who waits.
        let mut taken = std::mem::take(&mut self.taken);
        shared.queue.take(&mut taken);
        if taken.is_empty() {
            // Whoever wrote before is not on the way back any more.
            *pace = Pace::default();
            shared.kv.refresh();
            shared.look_after(&mut self.state);
        }
        while let Some(request) = taken.pop_front() {
            shared.kv.maintain();
            match shared.admit(&mut self.state, request.grows) {
                Err(error) => request.refuse(&error),
                Ok(()) if request.is_exclusive => {
                    run_exclusive(shared, &mut self.state, request.pending);
                }
                Ok(()) => {
                    run_group(shared, &mut self.state, request.pending, &mut taken, pace);
                }
            }
        }
        self.taken = taken;
    }
}

/// Runs and commits a group of all requests that come until it is closed.
fn run_group(
    shared: &Shared,
    state: &mut CommitState,
    first: Box<dyn Pending>,
    taken: &mut VecDeque<Request>,
    pace: &mut Pace,
) {
    let opened = Stopwatch::start();
    let mut group = Group::new(shared, state);
    let mut requests = Vec::with_capacity(pace.expected.max(taken.len() + 1));
    let mut next = Some(first);
    while let Some(mut request) = next {
        request.run(&mut group);
        requests.push(request);
        next = match requests.len() < GROUP_REQUESTS_MAX && !group.is_full() {
            true => {
                let missing = pace.expected.saturating_sub(requests.len());
                let patience = pace.patience.saturating_sub(opened.elapsed());
                next_shared(shared, taken, missing, patience)
            }
            false => None,
        };
    }
    let begun = Stopwatch::start();
    let committed = group.commit();
    shared.write_tokens().settle(committed.is_ok());
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
    shared: &Shared,
    taken: &mut VecDeque<Request>,
    missing: usize,
    patience: Duration,
) -> Option<Box<dyn Pending>> {
    if taken.is_empty() {
        shared.queue.gather(taken, missing, patience);
    }
    let shares = |next: &Request| !next.is_exclusive && shared.gate.accepts(next.grows);
    taken.front().is_some_and(shares).then_some(())?;
    taken.pop_front().map(|next| next.pending)
}

struct CloseOnExit<'a>(&'a Shared);

impl CloseOnExit<'_> {
    /// Leaves the queue open after all.
    const fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for CloseOnExit<'_> {
    fn drop(&mut self) {
        self.0.queue.abandon();
    }
}

fn run_exclusive(shared: &Shared, state: &mut CommitState, mut request: Box<dyn Pending>) {
    let mut changed = state.clone();
    let mut group = Group::new(shared, &mut changed);
    let has_run = request.run(&mut group);
    let committed = match has_run {
        true => group.commit(),
        false => Ok(()),
    };
    if has_run && committed.is_ok() {
        *state = changed;
    }
    request.send(committed.as_ref().map(|&()| ()));
}

#[cfg(test)]
mod tests;
