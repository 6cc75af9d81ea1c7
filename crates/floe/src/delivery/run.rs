//! A run over a partition: reading, handling and storing concurrently in one task.
//!
//! Sources are read ahead into their [backlogs](super::backlog), as far as there is room. The stored checkpoint never
//! passes a record that is neither processed nor a dead letter, so a worker that takes over misses nothing and
//! repeats what was handled beyond it.

use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

use floe_store::BoxFuture;
use tokio::sync::watch;

use super::backlog::{Backlog, BacklogLimits, BacklogSize, Batch};
use super::worker::RunOutcome;
use super::{Host, RunContext, Signal, StoreRetry, retry_store};
use crate::concurrent::task_set::{TaskHandle, TaskSet};
use crate::error::Result;

/// The pattern's side of a run over a partition.
pub(crate) trait Consume: Sized + Send + Sync {
    /// Reads records from a position.
    type Source: Send;
    /// The key that orders records: those of one key are handled one at a time.
    type Key: Clone + Eq + Hash + Send + Sync;
    /// One or more records to handle.
    type Work: Send;
    /// The position up to which a source is processed.
    type Checkpoint: Send + Sync;

    /// Limits of the backlogs of all sources together.
    const LIMITS: BacklogLimits;
    /// Consecutive empty reads after which a source has caught up.
    const EMPTY_READS: u32;

    /// The environment of the run.
    fn host(&self) -> &dyn Host;

    /// Maximum number of records in a turn. Entries are never split.
    fn turn_records_max(&self) -> u64;

    /// Reads the next records. A failed read can be repeated.
    fn read(
        &self,
        number: usize,
        source: &mut Self::Source,
    ) -> impl Future<Output = Result<BatchOf<Self>>> + Send;

    /// Handles records of a key in order. Records that cannot be handled become dead letters.
    fn turn(
        &self,
        number: usize,
        key: &Self::Key,
        work: Vec<Self::Work>,
    ) -> impl Future<Output = Result<RunOutcome>> + Send;

    /// Whether dead letters wait to be stored with a checkpoint.
    fn has_unstored(&self) -> bool {
        false
    }

    /// Stores checkpoints of sources. Can be repeated after a failure.
    fn store(
        &self,
        checkpoints: &[(usize, Self::Checkpoint)],
    ) -> impl Future<Output = Result<RunOutcome>> + Send;

    /// Called after a checkpoint was stored, with the remaining backlog.
    fn stored(&self, _: BacklogSize) {}

    /// Returns the dead letters to replay.
    fn replays(&self) -> impl Future<Output = Result<Replays<Self>>> + Send {
        async { Ok(Vec::new()) }
    }
}

/// The records of one read.
pub(crate) type BatchOf<C> =
    Batch<<C as Consume>::Key, <C as Consume>::Work, <C as Consume>::Checkpoint>;

/// Dead letters to replay: the number of the source, the key, and the work.
pub(crate) type Replays<C> = Vec<(usize, <C as Consume>::Key, <C as Consume>::Work)>;

/// A source and its backlog.
struct Lane<C: Consume> {
    /// `None` while a read is running.
    source: Option<C::Source>,
    backlog: Backlog<C::Key, C::Work, C::Checkpoint>,
    /// Consecutive empty reads.
    empty_reads: u32,
    /// Whether it pauses before the next read.
    is_paused: bool,
}

/// An event in a run.
enum RunEvent<C: Consume> {
    Read(usize, C::Source, Result<BatchOf<C>>),
    TurnEnded(usize, C::Key, Result<RunOutcome>),
    Stored(Result<RunOutcome>),
    DeadLettersRead(Result<Replays<C>>),
    PollDue(usize),
    Signaled(watch::Receiver<Signal>, Signal),
    GraceExpired,
}

/// A run over a partition.
pub(crate) struct Run<'c, C: Consume> {
    consume: &'c C,
    tasks: TaskSet<'c, RunEvent<C>>,
    follows: bool,
    retries_forever: bool,
    /// The latest number of replay requests.
    replay_requests: u64,
    /// Running reads of the dead letters, and whether one has completed.
    dead_letter_reads: u32,
    knows_dead_letters: bool,
    lanes: Vec<Lane<C>>,
    turns: Vec<(usize, C::Key, TaskHandle)>,
    is_storing: bool,
    is_stopping: bool,
}

impl<'c, C: Consume> Run<'c, C> {
    /// Creates a run over sources, each with a checkpoint to store first, if any.
    pub(crate) fn new(
        consume: &'c C,
        context: RunContext,
        sources: Vec<(C::Source, Option<C::Checkpoint>)>,
    ) -> Self {
        let lanes = sources.into_iter().map(|(source, checkpoint)| {
            let mut backlog = Backlog::default();
            if let Some(checkpoint) = checkpoint {
                backlog.push(checkpoint, Vec::new());
            }
            Lane {
                source: Some(source),
                backlog,
                empty_reads: 0,
                is_paused: false,
            }
        });
        let mut run = Self {
            consume,
            tasks: TaskSet::new(),
            follows: context.follows,
            retries_forever: context.retries_forever,
            replay_requests: 0,
            dead_letter_reads: 0,
            knows_dead_letters: false,
            lanes: lanes.collect(),
            turns: Vec::new(),
            is_storing: false,
            is_stopping: false,
        };
        if let Some(signals) = context.signals {
            run.replay_requests = signals.borrow().replay_requests;
            run.is_stopping = signals.borrow().stop;
            run.await_signal(signals);
        }
        run
    }

    /// Runs until nothing is left to do.
    ///
    /// # Errors
    ///
    /// The first permanent error of reading, handling or storing.
    pub(crate) async fn finish(mut self) -> Result<RunOutcome> {
        self.read_dead_letters();
        loop {
            self.start_reads();
            self.start_turns();
            self.start_store();
            if self.has_ended() {
                return Ok(RunOutcome::Completed);
            }
            let event = self.tasks.next().await;
            if self.apply(event)? == RunOutcome::Fenced {
                return Ok(RunOutcome::Fenced);
            }
        }
    }

    fn apply(&mut self, event: RunEvent<C>) -> Result<RunOutcome> {
        match event {
            RunEvent::Read(number, source, batch) => self.take_batch(number, source, batch?),
            RunEvent::TurnEnded(number, key, outcome) => {
                self.turns
                    .retain(|(lane, other, _)| *lane != number || *other != key);
                if let Some(lane) = self.lanes.get_mut(number) {
                    lane.backlog.end(&key);
                }
                return outcome;
            }
            RunEvent::Stored(outcome) => {
                self.is_storing = false;
                let outcome = outcome?;
                if outcome == RunOutcome::Completed {
                    self.consume.stored(self.backlog_size());
                }
                return Ok(outcome);
            }
            RunEvent::DeadLettersRead(replays) => {
                (self.dead_letter_reads, self.knows_dead_letters) =
                    (self.dead_letter_reads - 1, true);
                for (number, key, work) in replays? {
                    if let Some(lane) = self.lanes.get_mut(number) {
                        lane.backlog.push_front(key, work);
                    }
                }
            }
            RunEvent::PollDue(number) => {
                if let Some(lane) = self.lanes.get_mut(number) {
                    lane.is_paused = false;
                }
            }
            RunEvent::Signaled(signals, signal) => {
                if std::mem::replace(&mut self.replay_requests, signal.replay_requests)
                    != signal.replay_requests
                {
                    self.read_dead_letters();
                }
                if signal.stop {
                    self.is_stopping = true;
                    let grace = self.consume.host().options().grace;
                    self.emit_after(grace, RunEvent::GraceExpired);
                } else {
                    self.await_signal(signals);
                }
            }
            RunEvent::GraceExpired => {
                for (_, _, handle) in self.turns.drain(..) {
                    self.tasks.cancel(handle);
                }
            }
        }
        Ok(RunOutcome::Completed)
    }

    fn has_ended(&self) -> bool {
        let is_busy = self.is_storing || self.dead_letter_reads > 0 || !self.turns.is_empty();
        let mut lanes = self.lanes.iter();
        let has_caught_up =
            lanes.all(|lane| lane.empty_reads >= C::EMPTY_READS && lane.source.is_some());
        let reads_no_more = self.is_stopping || !self.follows && has_caught_up;
        reads_no_more && !is_busy
    }

    fn backlog_size(&self) -> BacklogSize {
        let mut all = BacklogSize::default();
        for lane in &self.lanes {
            let BacklogSize { batches, size } = lane.backlog.size();
            all.batches += batches;
            all.size.records += size.records;
            all.size.bytes += size.bytes;
        }
        all
    }

    /// Reads the dead letters.
    fn read_dead_letters(&mut self) {
        self.dead_letter_reads += 1;
        let (consume, retries_forever) = (self.consume, self.retries_forever);
        self.tasks.add(Box::pin(async move {
            let look = || Box::pin(consume.replays()) as BoxFuture<'_, _>;
            RunEvent::DeadLettersRead(retry_store(consume.host(), retries_forever, look).await)
        }));
    }

    fn start_reads(&mut self) {
        if self.is_stopping || !self.backlog_size().has_room(C::LIMITS) {
            return;
        }
        for number in 0..self.lanes.len() {
            let mut retry = StoreRetry::new(self.consume.host(), self.retries_forever);
            let Some(lane) = self.lanes.get_mut(number) else {
                return;
            };
            if lane.is_paused || !self.follows && lane.empty_reads >= C::EMPTY_READS {
                continue;
            }
            if let Some(mut source) = lane.source.take() {
                let consume = self.consume;
                self.tasks.add(Box::pin(async move {
                    let batch = loop {
                        match consume.read(number, &mut source).await {
                            Ok(batch) => break Ok(batch),
                            Err(error) => {
                                if let Err(error) = retry.wait_if_transient(error).await {
                                    break Err(error);
                                }
                            }
                        }
                    };
                    RunEvent::Read(number, source, batch)
                }));
            }
        }
    }

    fn take_batch(&mut self, number: usize, source: C::Source, batch: BatchOf<C>) {
        let Some(lane) = self.lanes.get_mut(number) else {
            return;
        };
        lane.source = Some(source);
        if let Some(checkpoint) = batch.checkpoint {
            lane.backlog.push(checkpoint, batch.entries);
        }
        if !batch.is_idle {
            lane.empty_reads = 0;
            return;
        }
        lane.empty_reads += 1;
        if self.follows {
            lane.is_paused = true;
            let poll = self.consume.host().options().poll;
            self.emit_after(poll, RunEvent::PollDue(number));
        }
    }

    fn start_turns(&mut self) {
        let turns_max = self.consume.host().options().concurrency_max.max(1);
        let records_max = self.consume.turn_records_max();
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            // Turns wait until the dead letters are known: later records of their keys must queue behind them.
            while self.knows_dead_letters && !self.is_stopping && self.turns.len() < turns_max {
                let Some((key, work)) = lane.backlog.begin(records_max) else {
                    break;
                };
                let (consume, of) = (self.consume, key.clone());
                let handle = self.tasks.add(Box::pin(async move {
                    let outcome = consume.turn(number, &of, work).await;
                    RunEvent::TurnEnded(number, of, outcome)
                }));
                self.turns.push((number, key, handle));
            }
        }
    }

    fn start_store(&mut self) {
        if self.is_storing {
            return;
        }
        let lanes = self.lanes.iter_mut().enumerate();
        let checkpoints =
            lanes.filter_map(|(number, lane)| Some((number, lane.backlog.pass_done()?)));
        let checkpoints: Vec<(usize, C::Checkpoint)> = checkpoints.collect();
        if checkpoints.is_empty() && !self.consume.has_unstored() {
            return;
        }
        self.is_storing = true;
        let (consume, retries_forever) = (self.consume, self.retries_forever);
        self.tasks.add(Box::pin(async move {
            let store = || Box::pin(consume.store(&checkpoints)) as BoxFuture<'_, _>;
            RunEvent::Stored(retry_store(consume.host(), retries_forever, store).await)
        }));
    }

    fn emit_after(&mut self, pause: Duration, event: RunEvent<C>)
    where
        C: 'c,
    {
        let sleep: BoxFuture<'c, ()> = self.consume.host().db().timer().sleep(pause);
        self.tasks.add(Box::pin(async move {
            sleep.await;
            event
        }));
    }

    /// Waits for the next signal of the worker. If the worker is gone, there are no more signals: this run is dropped
    /// with it.
    fn await_signal(&mut self, mut signals: watch::Receiver<Signal>) {
        self.tasks.add(Box::pin(async move {
            let is_gone = signals.changed().await.is_err();
            let signal = *signals.borrow_and_update();
            let stop = signal.stop || is_gone;
            RunEvent::Signaled(signals, Signal { stop, ..signal })
        }));
    }
}
