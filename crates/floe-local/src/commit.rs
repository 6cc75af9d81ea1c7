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
//! other time. So it waits until as many are there as the last time, for at most an eighth of the time
//! that a commit takes, and not at all if it was one.
//!
//! The committer is whoever holds the [`Seat`]. On disk that is always a thread of its own, which may wait for
//! syncs. In memory a commit waits for nothing and takes less time than waking a thread, so a writer that finds
//! the seat free runs its own request at once, and with it what others have put into the queue meanwhile.
//!
//! A request that fails writes nothing: everything that can fail comes before its first write. When
//! the commit itself fails, nobody knows whether the group is in the journal, so the requests in it
//! are answered with [`Error::OutcomeUnknown`], and the engine refuses all later writes until it is
//! opened again. Reads go on.
//!
//! Requests on items share groups. Changes of the catalog and background work are
//! [exclusive](Shared::run): a group of their own, thrown away as a whole if they fail, and with
//! effects [on commit](Group::on_commit) that readers see only when the change is durable.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use floe_store::env::Stopwatch;
use floe_store::{Error, Result, Timestamp};

use crate::answer::{Answer, Promise, promise};
use crate::catalog::Table;
use crate::engine::Shared;
use crate::kv::{Batch, Bytes, CommitError, Space, SpaceId, Sync};
use crate::layout::record::{self, Counts, Instance};
use crate::options::Durability;
use crate::queue::Pace;
use crate::streams::Position;

/// The most requests in one group.
const GROUP_REQUESTS_MAX: usize = 1024;

/// A group takes no further request once it writes so many bytes.
const GROUP_BYTES_MAX: usize = 8 << 20;

/// How often a writer takes what waits in memory before it leaves the rest to the thread.
const TURNS_MAX: usize = 16;

/// The share of a commit's time that the next one may wait for writers to come back.
const PATIENCE_SHARE: u32 = 8;

/// A write that waits for its turn.
pub(crate) enum Request {
    /// One that shares a group with others.
    Shared(Box<dyn SharedRequest>),
    /// One that has a group of its own.
    Exclusive(Box<dyn ExclusiveRequest>),
}

/// A write of items.
pub(crate) trait SharedRequest: Send {
    /// Runs it against the group. What it answers is kept until the group is durable.
    fn run(self: Box<Self>, group: &mut Group<'_>) -> Box<dyn PendingAnswer>;

    /// Answers without running it.
    fn refuse(self: Box<Self>, error: Error);
}

/// An answer that waits for the commit of its group.
pub(crate) trait PendingAnswer: Send {
    /// Answers; with the error if the group could not be committed.
    fn send(self: Box<Self>, committed: Result<(), &Error>);
}

/// A change of the catalog, or background work.
pub(crate) trait ExclusiveRequest: Send {
    /// Runs it. If that fails, nothing that it wrote is committed.
    fn run(&mut self, group: &mut Group<'_>) -> Result<()>;

    /// Answers.
    fn send(self: Box<Self>, committed: Result<()>);
}

/// The answer of a request to the one who promised it.
pub(crate) struct Pending<T> {
    promise: Promise<T>,
    result: Result<T>,
}

impl<T: Send + 'static> Pending<T> {
    /// Will answer so when the group is durable.
    pub(crate) fn boxed(promise: Promise<T>, result: Result<T>) -> Box<dyn PendingAnswer> {
        Box::new(Self { promise, result })
    }
}

impl<T: Send> PendingAnswer for Pending<T> {
    fn send(self: Box<Self>, committed: Result<(), &Error>) {
        self.promise.keep(match (self.result, committed) {
            (result, Ok(())) => result,
            (Ok(_), Err(error)) => Err(error.clone()),
            // It wrote nothing. But it was judged on what the requests before it wrote, and that may
            // never have been.
            (Err(_), Err(error)) => Err(Error::Storage(error.to_string())),
        });
    }
}

struct Closure<F, T> {
    run: Option<F>,
    result: Option<T>,
    promise: Promise<T>,
}

impl<F, T> ExclusiveRequest for Closure<F, T>
where
    F: FnOnce(&mut Group<'_>) -> Result<T> + Send,
    T: Send,
{
    fn run(&mut self, group: &mut Group<'_>) -> Result<()> {
        if let Some(run) = self.run.take() {
            self.result = Some(run(group)?);
        }
        Ok(())
    }

    fn send(self: Box<Self>, committed: Result<()>) {
        let Self {
            result, promise, ..
        } = *self;
        let never_ran = || Error::Internal("a request was answered before it ran".to_owned());
        promise.keep(committed.and_then(|()| result.ok_or_else(never_ran)));
    }
}

impl Request {
    /// Answers without running it.
    pub(crate) fn refuse(self, error: Error) {
        match self {
            Self::Shared(request) => request.refuse(error),
            Self::Exclusive(request) => request.send(Err(error)),
        }
    }
}

impl Shared {
    /// Puts a write of items into the queue. In memory it is run at once if nobody else is at it.
    pub(crate) fn submit(&self, request: impl SharedRequest + 'static) {
        let request = Request::Shared(Box::new(request));
        if self.kv.is_memory() {
            self.queue.add(request);
            self.commit_here();
        } else {
            self.queue.push(request);
        }
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
            seat.run(self);
            closes.forget();
        }
        self.queue.wake();
    }

    /// Runs a closure on the thread of the committer, in a group of its own: it sees all earlier writes, what it
    /// writes is committed as a whole, and its answer arrives when that is durable. If it fails,
    /// nothing that it wrote is kept.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        run: impl FnOnce(&mut Group<'_>) -> Result<T> + Send + 'static,
    ) -> Answer<T> {
        let (promise, answer) = promise();
        self.queue.push(Request::Exclusive(Box::new(Closure {
            run: Some(run),
            result: None,
            promise,
        })));
        answer
    }
}

/// The seat of the committer: who holds it is the one.
pub(crate) struct Seat {
    state: CommitState,
    /// What was taken from the queue; kept for its memory.
    requests: Vec<Request>,
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
type Effect = Box<dyn FnOnce(&Shared) + Send>;

/// The writes of the requests that are committed together, and the state as they see it.
pub(crate) struct Group<'a> {
    shared: &'a Shared,
    state: &'a mut CommitState,
    now: Timestamp,
    batch: Batch,
    /// Where in the batch the write of a key is.
    written: HashMap<(SpaceId, Bytes), usize>,
    /// How much is in the tables that were written to.
    counts: HashMap<u32, (Arc<Table>, Counts)>,
    /// What the item collections weigh that were looked at.
    collections: HashMap<(SpaceId, Bytes), u64>,
    sequence_before: u64,
    after: Vec<Effect>,
}

impl<'a> Group<'a> {
    fn new(shared: &'a Shared, state: &'a mut CommitState) -> Self {
        Self {
            now: shared.options.env.now(),
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

    /// Where the next change record goes.
    pub(crate) const fn position(&mut self) -> &mut Position {
        &mut self.state.position
    }

    /// An id that was never given out before. The group is to write something, so that it never is again.
    pub(crate) fn new_id(&mut self) -> u32 {
        let id = self.state.instance.next_id;
        self.state.instance.next_id += 1;
        let instance = self.state.instance.encode();
        self.put(&self.shared.meta, record::INSTANCE_KEY, instance);
        id
    }

    /// The value of a key as the requests so far have left it.
    pub(crate) fn get(&self, space: &Space, key: &[u8]) -> Result<Option<Bytes>> {
        if !self.batch.is_empty() {
            // Inline up to twenty bytes, an allocation for longer keys.
            let probe = (space.id(), Bytes::from(key));
            if let Some(write) = self.written.get(&probe) {
                return Ok(self.batch.value(*write).cloned());
            }
        }
        self.shared.kv.get_latest(space, key)
    }

    /// Sets a key to a value.
    pub(crate) fn put(&mut self, space: &Space, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.write(space, key.into(), Some(value.into()));
    }

    /// Removes a key.
    pub(crate) fn remove(&mut self, space: &Space, key: impl Into<Bytes>) {
        self.write(space, key.into(), None);
    }

    /// Sets a key that no other request of the group writes or reads.
    pub(crate) fn put_once(
        &mut self,
        space: &Space,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
    ) {
        self.batch.put(space, key, value);
    }

    fn write(&mut self, space: &Space, key: Bytes, value: Option<Bytes>) {
        match self.written.entry((space.id(), key)) {
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
        let name = (table.space.id(), key.clone());
        if let Some(weight) = self.collections.get(&name) {
            return Ok(*weight);
        }
        let stored = self.shared.kv.get_latest(&table.space, key)?;
        let weight = stored.map_or(Ok(0), |bytes| record::decode_weight(&bytes))?;
        self.collections.insert(name, weight);
        Ok(weight)
    }

    /// Changes what an item collection weighs that was loaded.
    pub(crate) fn grow_collection(&mut self, table: &Table, key: Bytes, bytes: i64) {
        let weight = self.loaded_collection(table, &key);
        let weight = weight.unwrap_or(0).saturating_add_signed(bytes);
        self.collections
            .insert((table.space.id(), key.clone()), weight);
        match weight {
            0 => self.remove(&table.space, key),
            _ => self.put(&table.space, key, record::encode_weight(weight)),
        }
    }

    /// What the item collection of this key weighs, if it was loaded.
    pub(crate) fn loaded_collection(&self, table: &Table, key: &Bytes) -> Option<u64> {
        let name = (table.space.id(), key.clone());
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
        let meta = &self.shared.meta;
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
    /// Commits a batch; a failure is the end of all writing.
    fn commit(&self, batch: Batch) -> Result<(), Error> {
        let sync = match self.options.durability {
            Durability::Sync => Sync::Data,
            Durability::Relaxed => Sync::None,
        };
        let error = match self.kv.commit(batch, sync) {
            Ok(()) => return Ok(()),
            Err(CommitError::Refused(message)) => Error::Storage(message),
            Err(CommitError::Unknown(message)) => Error::OutcomeUnknown(message),
        };
        self.poison(&error);
        Err(error)
    }

    /// The error with which every write is refused, once a commit has failed.
    pub(crate) fn poisoned(&self) -> Option<Error> {
        if !self.poisoned.load(Ordering::Acquire) {
            return None;
        }
        let reason = self.poison_reason.get().map_or("unknown", |reason| reason);
        Some(Error::Storage(format!(
            "the engine refuses to write after a failed commit until it is opened again: \
             reason={reason}"
        )))
    }

    fn poison(&self, error: &Error) {
        let _ = self.poison_reason.set(error.to_string());
        self.poisoned.store(true, Ordering::Release);
    }
}

/// Runs until the queue is closed and empty. To be called on a thread of its own.
pub(crate) fn run_committer(shared: &Shared) {
    // If a request panics, those who wait are told, and nobody waits in vain from then on.
    let _closes = CloseOnExit(shared);
    let mut pace = Pace::default();
    while shared.queue.await_requests(pace) {
        // A writer that panicked in it has closed the queue.
        let Ok(mut seat) = shared.seat.lock() else {
            return;
        };
        pace = seat.run(shared);
    }
}

impl Seat {
    /// The seat of a committer that begins with this.
    pub(crate) const fn new(state: CommitState) -> Self {
        Self {
            state,
            requests: Vec::new(),
        }
    }

    /// Takes all that waits and runs it. Tells what to wait for then.
    fn run(&mut self, shared: &Shared) -> Pace {
        let Self { state, requests } = self;
        shared.queue.take(requests);
        if requests.is_empty() {
            shared.kv.refresh();
        }
        let mut pace = Pace {
            expected: requests.len(),
            ..Pace::default()
        };
        let mut waiting = requests.drain(..).peekable();
        while let Some(request) = waiting.next() {
            shared.kv.maintain();
            match (request, shared.poisoned()) {
                (request, Some(error)) => request.refuse(error),
                (Request::Exclusive(request), None) => run_exclusive(shared, state, request),
                (Request::Shared(first), None) => {
                    let more = std::iter::from_fn(|| {
                        match waiting.next_if(|next| matches!(next, Request::Shared(_)))? {
                            Request::Shared(request) => Some(request),
                            Request::Exclusive(_) => None,
                        }
                    });
                    pace.patience = run_group(shared, state, first, more) / PATIENCE_SHARE;
                }
            }
        }
        pace
    }
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

fn run_exclusive(shared: &Shared, state: &mut CommitState, mut request: Box<dyn ExclusiveRequest>) {
    let mut changed = state.clone();
    let mut group = Group::new(shared, &mut changed);
    let committed = request.run(&mut group).and_then(|()| group.commit());
    if committed.is_ok() {
        *state = changed;
    }
    request.send(committed);
}

/// Runs and commits a group. Returns how long the commit took.
fn run_group(
    shared: &Shared,
    state: &mut CommitState,
    first: Box<dyn SharedRequest>,
    mut more: impl Iterator<Item = Box<dyn SharedRequest>>,
) -> Duration {
    let mut group = Group::new(shared, state);
    let mut answers = vec![first.run(&mut group)];
    while answers.len() < GROUP_REQUESTS_MAX && !group.is_full() {
        let Some(request) = more.next() else { break };
        answers.push(request.run(&mut group));
    }
    let begun = Stopwatch::start();
    let committed = group.commit();
    let took = begun.elapsed();
    for answer in answers {
        answer.send(committed.as_ref().map(|&()| ()));
    }
    took
}

#[cfg(test)]
mod tests;
