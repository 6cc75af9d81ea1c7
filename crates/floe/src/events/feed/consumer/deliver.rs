//! At-least-once delivery: passes the events of a partition to handlers, many streams concurrently, each in order.
//!
//! The runtime is [`delivery`](crate::delivery): the partition is its source, and the streams are its keys. A
//! checkpoint is stored together with the dead letters of the streams that were parked before it.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use floe_store::BoxFuture;
use tracing::Instrument;

use super::dead_letters::CHANGES_MAX;
use super::parked_stream::ParkedStream;
use super::state::{ConsumerState, FeedPosition};
use super::{FeedConsumer, FeedSummary, Handled, WorkerNotice};
use crate::delivery::{
    Attempts, BacklogLimits, Batch, BatchOf, Consume, Entry, Host, Run, RunContext, RunOutcome,
    Size, Timeout, guard, retry_store,
};
use crate::error::{Error, ErrorKind, Result};
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::feed::limits::{BATCHES_AHEAD_MAX, EVENTS_AHEAD_MAX};
use crate::events::feed::log::TableLog;
use crate::events::feed::reader::Reader;
use crate::events::feed::stored_state::StateEvent;
use crate::events::feed::subscription::load_between;
use crate::events::feed::telemetry;
use crate::events::{Recorded, StreamName};
use crate::lock::{into_inner, lock};

/// The reason of a dead letter whose previous one, with the error of the handler, was removed by a concurrent retry.
const SKIPPED: &str = "skipped while the stream was parked";

/// A handler of events: an async closure or function of a stream and its next events that returns which of them it has
/// handled.
pub trait Handler: Send + Sync {
    /// Calls the handler. Returns an error as text.
    fn call(
        &self,
        stream: StreamName,
        events: Vec<Recorded>,
    ) -> BoxFuture<'_, Result<Handled, String>>;
}

impl<H, F, E> Handler for H
where
    H: Fn(StreamName, Vec<Recorded>) -> F + Send + Sync,
    F: Future<Output = Result<Handled, E>> + Send,
    E: fmt::Display + Send,
{
    fn call(
        &self,
        stream: StreamName,
        events: Vec<Recorded>,
    ) -> BoxFuture<'_, Result<Handled, String>> {
        Box::pin(async move {
            let handled = self(stream, events).await;
            handled.map_err(|error| error.to_string())
        })
    }
}

/// A run over a partition.
struct DeliveryRun<'c> {
    consumer: &'c FeedConsumer,
    handler: &'c dyn Handler,
    retries_forever: bool,
    state: Mutex<RunState>,
}

/// The state of a run.
struct RunState {
    /// The state as last stored.
    stored: ConsumerState,
    /// Streams with dead letters, stored or not.
    parked: BTreeSet<StreamName>,
    /// New dead letters that are not stored.
    unstored: Vec<ParkedStream>,
    /// New dead letters that are being stored.
    storing: Vec<ParkedStream>,
    summary: FeedSummary,
}

impl FeedConsumer {
    /// Passes the events of the partition to the handler, up to the tail or until the run must stop.
    pub(super) async fn deliver(
        &self,
        handler: &dyn Handler,
        context: RunContext,
    ) -> Result<(FeedSummary, RunOutcome)> {
        let (lease, retries_forever) = (context.lease.as_ref(), context.retries_forever);
        let lease = lease.map(|lease| lease.term);
        let claim = || Box::pin(self.claim(lease)) as BoxFuture<'_, Result<Option<ConsumerState>>>;
        let claimed = context.unless_stopped(retry_store(self, retries_forever, claim));
        let Some(claimed) = claimed.await else {
            return Ok((FeedSummary::default(), RunOutcome::Completed));
        };
        let Some(stored) = claimed? else {
            return Ok((FeedSummary::default(), RunOutcome::Fenced));
        };
        let list =
            || Box::pin(self.list_dead_letters()) as BoxFuture<'_, Result<Vec<ParkedStream>>>;
        let letters = context.unless_stopped(retry_store(self, retries_forever, list));
        let Some(letters) = letters.await else {
            return Ok((FeedSummary::default(), RunOutcome::Completed));
        };
        let parked = letters?.into_iter().map(|letter| letter.stream);
        let reader = self.reader(stored.position.checkpoint);
        let delivery = DeliveryRun {
            consumer: self,
            handler,
            retries_forever,
            state: Mutex::new(RunState {
                stored,
                parked: parked.collect(),
                unstored: Vec::new(),
                storing: Vec::new(),
                summary: FeedSummary::default(),
            }),
        };
        let run = Run::new(&delivery, context, vec![(reader, None)]);
        let outcome = run.finish().await?;
        let state = into_inner(delivery.state);
        let summary = FeedSummary {
            checkpoint: state.stored.position.checkpoint,
            ..state.summary
        };
        Ok((summary, outcome))
    }

    /// Claims the stored state. Returns `None` if a later lease has claimed it.
    async fn claim(&self, lease: Option<u64>) -> Result<Option<ConsumerState>> {
        let decide = |stored: &ConsumerState| {
            let claimed = stored.claimed(lease);
            Ok::<_, Error>((claimed.clone(), claimed.map(StateEvent)))
        };
        self.state_stream().transact(decide).await
    }

    /// Stores a checkpoint and dead letters under a term. Returns `None` if another consumer has claimed or moved the
    /// checkpoint.
    async fn store_progress(
        &self,
        term: u64,
        checkpoint: Option<Checkpoint>,
        parked: &[ParkedStream],
    ) -> Result<Option<ConsumerState>> {
        let after = |stored: &ConsumerState| match checkpoint {
            Some(checkpoint) => stored.at(FeedPosition::before(checkpoint)),
            None => stored.clone(),
        };
        if parked.is_empty() {
            let decide = |stored: &ConsumerState| {
                let after = (stored.term == term).then(|| after(stored));
                Ok::<_, Error>((after.clone(), after.map(StateEvent)))
            };
            return self.state_stream().transact(decide).await;
        }
        let (index, letters) = (self.store.feed_index(), self.dead_letters());
        let mut state = None;
        let mut chunks = parked.chunks(CHANGES_MAX).peekable();
        while let Some(chunk) = chunks.next() {
            // The checkpoint is stored last: a crash before that repeats events, and loses none.
            let is_last = chunks.peek().is_none();
            let stored = self.store.db().transact(async |tx| {
                let id = &self.id;
                let mut stored = tx
                    .stream_in::<StateEvent<ConsumerState>>(&index, id)
                    .await?;
                if stored.state().term != term {
                    return Ok::<_, Error>(None);
                }
                letters.add_in(tx, chunk).await?;
                let before = stored.state().clone();
                if !is_last || checkpoint.is_none() {
                    return Ok(Some(before));
                }
                let after = after(&before);
                stored.append([StateEvent(after.clone())])?;
                Ok(Some(after))
            });
            state = stored.await?;
            if state.is_none() {
                break;
            }
        }
        Ok(state)
    }

    /// Handles the events of a dead letter, and stores the result. Returns the number of handled events, and the part
    /// that failed again.
    pub(super) async fn retry_dead_letter(
        &self,
        handler: &dyn Handler,
        letter: &ParkedStream,
    ) -> Result<(u64, Option<ParkedStream>)> {
        let (stream, end) = (&letter.stream, letter.end);
        let handled = self.handle(stream, letter.index..end, handler, false);
        let (next, failure) = handled.await?;
        let failed = failure.map(|reason| ParkedStream::new(stream.clone(), next..end, &reason));
        self.store_retry(letter, failed.as_ref()).await?;
        Ok((next - letter.index, failed))
    }

    /// Passes events of a stream to the handler until all are handled, or all attempts have failed. Returns the index
    /// of the first event that is not handled, and the reason of the last failure.
    async fn handle(
        &self,
        stream: &StreamName,
        mut range: Range<u64>,
        handler: &dyn Handler,
        retries_forever: bool,
    ) -> Result<(u64, Option<String>)> {
        let mut attempts = Attempts::new(self);
        while !range.is_empty() {
            let end = range
                .start
                .saturating_add(self.options.events_max.max(1) as u64);
            let chunk = range.start..end.min(range.end);
            let (next, reason) = match self.load(stream, chunk.clone(), retries_forever).await {
                Ok(events) => match self.call(stream, events, handler).await {
                    Ok(Handled::All) => (chunk.end, None),
                    Ok(Handled::UpTo(index)) => (index.clamp(chunk.start, chunk.end), None),
                    Ok(Handled::None) => (chunk.start, None),
                    Err(reason) => (chunk.start, Some(reason)),
                },
                Err(error) if is_caused_by_stream(&error) => (chunk.start, Some(error.to_string())),
                Err(error) => return Err(error),
            };
            if next > range.start {
                attempts.progressed();
            } else if let Some(pause) = attempts.fail(Duration::ZERO) {
                attempts.wait(pause).await;
            } else {
                let reason = reason.unwrap_or_else(|| "the handler handled no event".to_owned());
                return Ok((next, Some(reason)));
            }
            range.start = next;
        }
        Ok((range.start, None))
    }

    /// Calls the handler with a time limit.
    async fn call(
        &self,
        stream: &StreamName,
        events: Vec<Recorded>,
        handler: &dyn Handler,
    ) -> Result<Handled, String> {
        let span = telemetry::handle(&self.id.0, self.partition, stream, events.len());
        let called = async { handler.call(stream.clone(), events).await };
        let called = guard(Some(Timeout::of(self)), called.instrument(span)).await;
        called.unwrap_or_else(|interrupted| Err(interrupted.to_string()))
    }

    /// Loads events of a stream. Retries failures of the store without limit, or not at all.
    pub(super) async fn load(
        &self,
        stream: &StreamName,
        range: Range<u64>,
        retries_forever: bool,
    ) -> Result<Vec<Recorded>> {
        let load = || load_between(&self.store, stream, range.clone());
        retry_store(self, retries_forever, || Box::pin(load())).await
    }
}

/// Whether events of the stream are missing or cannot be read. Otherwise the store failed.
pub(super) fn is_caused_by_stream(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::MissingEvents | ErrorKind::InvalidEvent
    )
}

/// Joins adjacent ranges.
fn join_adjacent(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut().filter(|last| last.end == range.start) {
            Some(last) => last.end = range.end,
            None => joined.push(range),
        }
    }
    joined
}

impl DeliveryRun<'_> {
    fn state(&self) -> MutexGuard<'_, RunState> {
        lock(&self.state)
    }

    /// Whether a stream has a dead letter. A stored one is read again, because a concurrent retry may have removed it.
    async fn is_parked(&self, stream: &StreamName) -> Result<bool> {
        {
            let state = self.state();
            let mut unstored = state.storing.iter().chain(&state.unstored);
            if !state.parked.contains(stream) || unstored.any(|p| p.stream == *stream) {
                return Ok(state.parked.contains(stream));
            }
        }
        let letters = self.consumer.dead_letters();
        let get = || Box::pin(letters.get(stream)) as BoxFuture<'_, Result<Option<ParkedStream>>>;
        let stored = retry_store(self.consumer, self.retries_forever, get).await?;
        if stored.is_none() {
            self.state().parked.remove(stream);
        }
        Ok(stored.is_some())
    }

    /// Parks a stream whose handler failed in all attempts.
    fn park(&self, parked: ParkedStream) {
        let consumer = self.consumer;
        telemetry::parked(&consumer.id.0, consumer.partition, &parked.stream);
        let notice = WorkerNotice::Parked(consumer.partition, parked.clone());
        consumer.options.notify(&notice);
        let mut state = self.state();
        state.summary.parked.push(parked.clone());
        state.add_dead_letter(parked);
    }

    /// Adds later events of a parked stream to its dead letter.
    fn skip(&self, stream: &StreamName, range: Range<u64>) {
        let mut state = self.state();
        let mut reported = state.summary.parked.iter_mut().rev();
        if let Some(reported) = reported.find(|parked| parked.stream == *stream) {
            reported.end = reported.end.max(range.end);
        }
        state.add_dead_letter(ParkedStream::new(stream.clone(), range, SKIPPED));
    }
}

impl RunState {
    fn add_dead_letter(&mut self, parked: ParkedStream) {
        self.parked.insert(parked.stream.clone());
        self.unstored.push(parked);
    }
}

impl Consume for DeliveryRun<'_> {
    type Source = Reader<TableLog>;
    type Key = StreamName;
    type Work = Range<u64>;
    type Checkpoint = Checkpoint;

    const LIMITS: BacklogLimits = BacklogLimits {
        batches_max: BATCHES_AHEAD_MAX,
        records_max: EVENTS_AHEAD_MAX,
        bytes_max: usize::MAX,
    };
    const EMPTY_READS: u32 = 1;

    fn host(&self) -> &dyn Host {
        self.consumer
    }

    fn turn_records_max(&self) -> u64 {
        self.consumer.options.events_max as u64
    }

    async fn read(&self, _: usize, reader: &mut Reader<TableLog>) -> Result<BatchOf<Self>> {
        let batch = reader.next().await?;
        let (checkpoint, is_idle) = (batch.as_ref().map(|b| b.checkpoint), batch.is_none());
        let filter = &self.consumer.options.filter;
        let spans = batch.into_iter().flat_map(|batch| batch.spans);
        let spans = spans.filter(|span| filter.matches(&span.stream));
        let entries = spans.filter(|span| !span.types.is_empty()).map(|span| {
            let (work, records) = (span.start..span.end(), span.types.len() as u64);
            Entry {
                key: span.stream,
                work,
                size: Size { records, bytes: 0 },
            }
        });
        Ok(Batch {
            entries: entries.collect(),
            checkpoint,
            is_idle,
        })
    }

    async fn turn(
        &self,
        _: usize,
        stream: &StreamName,
        ranges: Vec<Range<u64>>,
    ) -> Result<RunOutcome> {
        let mut is_parked = self.is_parked(stream).await?;
        let end = ranges.iter().map(|range| range.end).max();
        for range in join_adjacent(ranges) {
            if is_parked {
                self.skip(stream, range);
                continue;
            }
            let (start, end) = (range.start, end.unwrap_or(range.end));
            let handled = self
                .consumer
                .handle(stream, range, self.handler, self.retries_forever);
            let (next, failure) = handled.await?;
            self.state().summary.events += next - start;
            if let Some(reason) = failure {
                is_parked = true;
                self.park(ParkedStream::new(stream.clone(), next..end, &reason));
            }
        }
        Ok(RunOutcome::Completed)
    }

    fn has_unstored(&self) -> bool {
        !self.state().unstored.is_empty()
    }

    async fn store(&self, checkpoints: &[(usize, Checkpoint)]) -> Result<RunOutcome> {
        let (term, parked) = {
            let state = &mut *self.state();
            state.storing.append(&mut state.unstored);
            (state.stored.term, state.storing.clone())
        };
        let checkpoint = checkpoints.last().map(|(_, checkpoint)| *checkpoint);
        let stored = self.consumer.store_progress(term, checkpoint, &parked);
        let Some(stored) = stored.await? else {
            return Ok(RunOutcome::Fenced);
        };
        let state = &mut *self.state();
        state.stored = stored;
        state.storing.clear();
        Ok(RunOutcome::Completed)
    }
}
