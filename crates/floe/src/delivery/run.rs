//! The run over a partition: reading, handling and storing, beside each other in one task.
//!
//! Sources are read ahead into their [backlogs](super::backlog), as far as there is room. What is stored is up to where
//! everything is done or among the dead letters, so a worker that takes over misses nothing, and is given again what was
//! handled beyond.

use std::future::Future;
use std::hash::Hash;
use std::time::Duration;

use floe_store::BoxFuture;
use tokio::sync::watch;

use super::backlog::{Backlog, Batch, Limits, Load};
use super::worker::End;
use super::{Host, Orders, Signal, StoreRetry, outlast};
use crate::error::Result;
use crate::side_by_side::crowd::{Crowd, Ticket};

/// What a pattern does in a run over a partition.
pub(crate) trait Consume: Sized + Send + Sync {
    /// Reads records, from a position on.
    type Source: Send;
    /// What records are ordered by: those of one key are handled one after the other.
    type Key: Clone + Eq + Hash + Send + Sync;
    /// A record to handle, or several.
    type Work: Send;
    /// How far a source is done. Stored, it is a checkpoint.
    type Mark: Send + Sync;

    /// How much of all sources may be read and not done.
    const LIMITS: Limits;
    /// Reads in a row that find nothing before a source has caught up.
    const EMPTY_READS: u32;

    /// What it runs for.
    fn host(&self) -> &dyn Host;

    /// Maximum records of a turn, except that an entry is never split.
    fn turn_records_max(&self) -> u64;

    /// Reads on. A read that fails can be repeated.
    fn read(
        &self,
        number: usize,
        source: &mut Self::Source,
    ) -> impl Future<Output = Result<BatchOf<Self>>> + Send;

    /// Handles records of a key in their order. What cannot be handled becomes a dead letter.
    fn turn(
        &self,
        number: usize,
        key: &Self::Key,
        works: Vec<Self::Work>,
    ) -> impl Future<Output = Result<End>> + Send;

    /// Whether there are dead letters that are stored with a checkpoint.
    fn has_unstored(&self) -> bool {
        false
    }

    /// Stores how far sources are done. Can be repeated when it fails.
    fn store(&self, marks: &[(usize, Self::Mark)]) -> impl Future<Output = Result<End>> + Send;

    /// A checkpoint is stored, and so much is not done.
    fn stored(&self, _: Load) {}

    /// The dead letters that are to be handled again.
    fn replays(&self) -> impl Future<Output = Result<Replays<Self>>> + Send {
        async { Ok(Vec::new()) }
    }
}

/// Records that a read has found.
pub(crate) type BatchOf<C> = Batch<<C as Consume>::Key, <C as Consume>::Work, <C as Consume>::Mark>;

/// Work on dead letters: the number of the source, the key, and what is to be done.
pub(crate) type Replays<C> = Vec<(usize, <C as Consume>::Key, <C as Consume>::Work)>;

/// A source, and what was read of it.
struct Lane<C: Consume> {
    /// Absent while it reads.
    source: Option<C::Source>,
    backlog: Backlog<C::Key, C::Work, C::Mark>,
    /// Reads in a row that have found nothing.
    idle: u32,
    /// Whether it waits for something new.
    waits: bool,
}

/// What has come to its end.
enum Done<C: Consume> {
    Read(usize, C::Source, Result<BatchOf<C>>),
    Turned(usize, C::Key, Result<End>),
    Stored(Result<End>),
    Looked(Result<Replays<C>>),
    Waited(usize),
    Signaled(watch::Receiver<Signal>, Signal),
    GraceOver,
}

/// A run over a partition.
pub(crate) struct Run<'c, C: Consume> {
    consume: &'c C,
    crowd: Crowd<'c, Done<C>>,
    follows: bool,
    is_patient: bool,
    /// How often the group was asked to look at its dead letters.
    asked: u64,
    /// How many looks are under way, and whether one is over.
    looking: u32,
    has_looked: bool,
    lanes: Vec<Lane<C>>,
    turns: Vec<(usize, C::Key, Ticket)>,
    is_storing: bool,
    is_stopping: bool,
}

impl<'c, C: Consume> Run<'c, C> {
    /// A run over these sources, each with how far it is done if that is to be stored.
    pub(crate) fn new(
        consume: &'c C,
        orders: Orders,
        sources: Vec<(C::Source, Option<C::Mark>)>,
    ) -> Self {
        let lanes = sources.into_iter().map(|(source, mark)| {
            let mut backlog = Backlog::default();
            if let Some(mark) = mark {
                backlog.push(mark, Vec::new());
            }
            Lane {
                source: Some(source),
                backlog,
                idle: 0,
                waits: false,
            }
        });
        let mut run = Self {
            consume,
            crowd: Crowd::new(),
            follows: orders.follows,
            is_patient: orders.is_patient,
            asked: 0,
            looking: 0,
            has_looked: false,
            lanes: lanes.collect(),
            turns: Vec::new(),
            is_storing: false,
            is_stopping: false,
        };
        if let Some(signals) = orders.signals {
            run.asked = signals.borrow().asked;
            run.is_stopping = signals.borrow().stop;
            run.await_signal(signals);
        }
        run
    }

    /// Runs until nothing is left to do.
    ///
    /// # Errors
    ///
    /// The first error of reading, handling or storing that does not pass.
    pub(crate) async fn finish(mut self) -> Result<End> {
        self.look();
        loop {
            self.begin_to_read();
            self.begin_turns();
            self.begin_to_store();
            if self.has_ended() {
                return Ok(End::Done);
            }
            let done = self.crowd.next().await;
            if self.take_in(done)? == End::Fenced {
                return Ok(End::Fenced);
            }
        }
    }

    fn take_in(&mut self, done: Done<C>) -> Result<End> {
        match done {
            Done::Read(number, source, batch) => self.take_batch(number, source, batch?),
            Done::Turned(number, key, end) => {
                self.turns
                    .retain(|(lane, other, _)| *lane != number || *other != key);
                if let Some(lane) = self.lanes.get_mut(number) {
                    lane.backlog.end(&key);
                }
                return end;
            }
            Done::Stored(end) => {
                self.is_storing = false;
                let end = end?;
                if end == End::Done {
                    self.consume.stored(self.load());
                }
                return Ok(end);
            }
            Done::Looked(replays) => {
                (self.looking, self.has_looked) = (self.looking - 1, true);
                for (number, key, work) in replays? {
                    if let Some(lane) = self.lanes.get_mut(number) {
                        lane.backlog.push_front(key, work);
                    }
                }
            }
            Done::Waited(number) => {
                if let Some(lane) = self.lanes.get_mut(number) {
                    lane.waits = false;
                }
            }
            Done::Signaled(signals, signal) => {
                if std::mem::replace(&mut self.asked, signal.asked) != signal.asked {
                    self.look();
                }
                if signal.stop {
                    self.is_stopping = true;
                    let grace = self.consume.host().options().grace;
                    self.join_after(grace, Done::GraceOver);
                } else {
                    self.await_signal(signals);
                }
            }
            Done::GraceOver => {
                for (_, _, ticket) in self.turns.drain(..) {
                    self.crowd.leave(ticket);
                }
            }
        }
        Ok(End::Done)
    }

    fn has_ended(&self) -> bool {
        let is_busy = self.is_storing || self.looking > 0 || !self.turns.is_empty();
        let mut lanes = self.lanes.iter();
        let has_caught_up = lanes.all(|lane| lane.idle >= C::EMPTY_READS && lane.source.is_some());
        let reads_no_more = self.is_stopping || !self.follows && has_caught_up;
        reads_no_more && !is_busy
    }

    fn load(&self) -> Load {
        let mut all = Load::default();
        for lane in &self.lanes {
            let Load { batches, size } = lane.backlog.load();
            all.batches += batches;
            all.size.records += size.records;
            all.size.bytes += size.bytes;
        }
        all
    }

    /// Looks at the dead letters.
    fn look(&mut self) {
        self.looking += 1;
        let (consume, is_patient) = (self.consume, self.is_patient);
        self.crowd.join(Box::pin(async move {
            let look = || Box::pin(consume.replays()) as BoxFuture<'_, _>;
            Done::Looked(outlast(consume.host(), is_patient, look).await)
        }));
    }

    fn begin_to_read(&mut self) {
        if self.is_stopping || !self.load().has_room(C::LIMITS) {
            return;
        }
        for number in 0..self.lanes.len() {
            let mut retry = StoreRetry::new(self.consume.host(), self.is_patient);
            let Some(lane) = self.lanes.get_mut(number) else {
                return;
            };
            if lane.waits || !self.follows && lane.idle >= C::EMPTY_READS {
                continue;
            }
            if let Some(mut source) = lane.source.take() {
                let consume = self.consume;
                self.crowd.join(Box::pin(async move {
                    let batch = loop {
                        match consume.read(number, &mut source).await {
                            Ok(batch) => break Ok(batch),
                            Err(error) => {
                                if let Err(error) = retry.outlast(error).await {
                                    break Err(error);
                                }
                            }
                        }
                    };
                    Done::Read(number, source, batch)
                }));
            }
        }
    }

    fn take_batch(&mut self, number: usize, source: C::Source, batch: BatchOf<C>) {
        let Some(lane) = self.lanes.get_mut(number) else {
            return;
        };
        lane.source = Some(source);
        if let Some(mark) = batch.mark {
            lane.backlog.push(mark, batch.entries);
        }
        if !batch.is_idle {
            lane.idle = 0;
            return;
        }
        lane.idle += 1;
        if self.follows {
            lane.waits = true;
            let poll = self.consume.host().options().poll;
            self.join_after(poll, Done::Waited(number));
        }
    }

    fn begin_turns(&mut self) {
        let turns_max = self.consume.host().options().concurrency_max.max(1);
        let records_max = self.consume.turn_records_max();
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            // Before it knows the dead letters, it does not know what must wait behind them.
            while self.has_looked && !self.is_stopping && self.turns.len() < turns_max {
                let Some((key, works)) = lane.backlog.begin(records_max) else {
                    break;
                };
                let (consume, of) = (self.consume, key.clone());
                let ticket = self.crowd.join(Box::pin(async move {
                    let end = consume.turn(number, &of, works).await;
                    Done::Turned(number, of, end)
                }));
                self.turns.push((number, key, ticket));
            }
        }
    }

    fn begin_to_store(&mut self) {
        if self.is_storing {
            return;
        }
        let lanes = self.lanes.iter_mut().enumerate();
        let marks = lanes.filter_map(|(number, lane)| Some((number, lane.backlog.pass_done()?)));
        let marks: Vec<(usize, C::Mark)> = marks.collect();
        if marks.is_empty() && !self.consume.has_unstored() {
            return;
        }
        self.is_storing = true;
        let (consume, is_patient) = (self.consume, self.is_patient);
        self.crowd.join(Box::pin(async move {
            let store = || Box::pin(consume.store(&marks)) as BoxFuture<'_, _>;
            Done::Stored(outlast(consume.host(), is_patient, store).await)
        }));
    }

    fn join_after(&mut self, pause: Duration, done: Done<C>)
    where
        C: 'c,
    {
        let sleep: BoxFuture<'c, ()> = self.consume.host().db().timer().sleep(pause);
        self.crowd.join(Box::pin(async move {
            sleep.await;
            done
        }));
    }

    /// Waits for what the worker says next. A worker that is gone says nothing more, and this run is dropped with it.
    fn await_signal(&mut self, mut signals: watch::Receiver<Signal>) {
        self.crowd.join(Box::pin(async move {
            let is_gone = signals.changed().await.is_err();
            let signal = *signals.borrow_and_update();
            let stop = signal.stop || is_gone;
            Done::Signaled(signals, Signal { stop, ..signal })
        }));
    }
}
