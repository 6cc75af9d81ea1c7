//! At least once: events of a partition to handlers, many streams at once, each in its order.
//!
//! What runs is [`delivery`](crate::delivery). The partition is its source, and the streams are the keys. A checkpoint is
//! stored with the streams that are parked by then, in one item.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use floe_store::BoxFuture;
use tracing::Instrument;

use super::dead_letters::CHANGES_MAX;
use super::progress::{ConsumerState, ParkedStream, Place};
use super::{FeedConsumer, FeedSummary, Handled, WorkerNotice};
use crate::delivery::{
    Attempts, BacklogLimits, Batch, BatchOf, Consume, Entry, Host, Run, RunContext, RunOutcome,
    Size, Timeout, guard, retry_store,
};
use crate::error::{Error, ErrorKind, Result};
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::feed::kept::Kept;
use crate::events::feed::limits::{BATCHES_AHEAD, EVENTS_AHEAD};
use crate::events::feed::log::TableLog;
use crate::events::feed::reader::Reader;
use crate::events::feed::subscription::load_between;
use crate::events::feed::telemetry;
use crate::events::{Recorded, StreamName};
use crate::lock::{into_inner, lock};

/// A handler of events: an async closure or function of a stream and its next events, which says how far it has come.
pub trait Handler: Send + Sync {
    /// Calls it. An error is told as text.
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
struct Delivering<'c> {
    consumer: &'c FeedConsumer,
    handler: &'c dyn Handler,
    retries_forever: bool,
    known: Mutex<Known>,
}

/// What is known in a run.
struct Known {
    /// What is stored.
    progress: ConsumerState,
    /// Streams with dead letters, stored or not.
    parked: BTreeSet<StreamName>,
    /// What is parked and not stored.
    unstored: Vec<ParkedStream>,
    /// What is parked and being stored.
    storing: Vec<ParkedStream>,
    consumed: FeedSummary,
}

impl FeedConsumer {
    /// Gives the events of the partition to the handler, up to where the orders say.
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
        let Some(progress) = claimed? else {
            return Ok((FeedSummary::default(), RunOutcome::Fenced));
        };
        let letters = || Box::pin(self.dead_letters()) as BoxFuture<'_, Result<Vec<ParkedStream>>>;
        let letters = context.unless_stopped(retry_store(self, retries_forever, letters));
        let Some(letters) = letters.await else {
            return Ok((FeedSummary::default(), RunOutcome::Completed));
        };
        let parked = letters?.into_iter().map(|letter| letter.stream);
        let reader = self.reader(progress.place.checkpoint);
        let delivering = Delivering {
            consumer: self,
            handler,
            retries_forever,
            known: Mutex::new(Known {
                progress,
                parked: parked.collect(),
                unstored: Vec::new(),
                storing: Vec::new(),
                consumed: FeedSummary::default(),
            }),
        };
        let run = Run::new(&delivering, context, vec![(reader, None)]);
        let end = run.finish().await?;
        let known = into_inner(delivering.known);
        let consumed = FeedSummary {
            checkpoint: known.progress.place.checkpoint,
            ..known.consumed
        };
        Ok((consumed, end))
    }

    /// Makes the progress one's own; `None` if somebody else holds the partition by now.
    async fn claim(&self, lease: Option<u64>) -> Result<Option<ConsumerState>> {
        let decide = |stored: &ConsumerState| {
            let claimed = stored.claimed(lease);
            Ok::<_, Error>((claimed.clone(), claimed.map(Kept)))
        };
        self.stored().transact(decide).await
    }

    /// Stores how far everything is done; `None` if it was claimed or moved by somebody else.
    async fn advance(
        &self,
        term: u64,
        checkpoint: Option<Checkpoint>,
        parked: &[ParkedStream],
    ) -> Result<Option<ConsumerState>> {
        let after = |stored: &ConsumerState| match checkpoint {
            Some(checkpoint) => stored.at(Place::before(checkpoint)),
            None => stored.clone(),
        };
        if parked.is_empty() {
            let decide = |stored: &ConsumerState| {
                let after = (stored.term == term).then(|| after(stored));
                Ok::<_, Error>((after.clone(), after.map(Kept)))
            };
            return self.stored().transact(decide).await;
        }
        let (index, letters) = (self.store.feed_index(), self.letters());
        let mut advanced = None;
        let mut chunks = parked.chunks(CHANGES_MAX).peekable();
        while let Some(chunk) = chunks.next() {
            // The checkpoint comes last: a crash before it repeats events, and loses none.
            let is_last = chunks.peek().is_none();
            let stored = self.store.db().transact(async |tx| {
                let id = &self.id;
                let mut stored = tx.stream_in::<Kept<ConsumerState>>(&index, id).await?;
                if stored.state().term != term {
                    return Ok::<_, Error>(None);
                }
                letters.add_in(tx, chunk).await?;
                let before = stored.state().clone();
                if !is_last || checkpoint.is_none() {
                    return Ok(Some(before));
                }
                let after = after(&before);
                stored.append([Kept(after.clone())])?;
                Ok(Some(after))
            });
            advanced = stored.await?;
            if advanced.is_none() {
                break;
            }
        }
        Ok(advanced)
    }

    /// Tries a parked stream again. Tells how many events are done, and what is parked of it now.
    pub(super) async fn handle_parked(
        &self,
        handler: &dyn Handler,
        known: &ParkedStream,
    ) -> Result<(u64, Option<ParkedStream>)> {
        let (stream, end) = (&known.stream, known.end);
        let handled = self.handle(stream, known.index..end, handler, false);
        let (done, failure) = handled.await?;
        let again = failure.map(|reason| ParkedStream::new(stream.clone(), done..end, &reason));
        self.store_retried(known, again.as_ref()).await?;
        Ok((done - known.index, again))
    }

    /// Gives events of a stream to the handler until they are done, or it does not get on. Tells the index before which they
    /// are done, and why the others are not.
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
            let (done, reason) = match self.load(stream, chunk.clone(), retries_forever).await {
                Ok(events) => match self.call(stream, events, handler).await {
                    Ok(Handled::All) => (chunk.end, None),
                    Ok(Handled::UpTo(index)) => (index.clamp(chunk.start, chunk.end), None),
                    Ok(Handled::None) => (chunk.start, None),
                    Err(reason) => (chunk.start, Some(reason)),
                },
                Err(error) if is_of_stream(&error) => (chunk.start, Some(error.to_string())),
                Err(error) => return Err(error),
            };
            if done > range.start {
                attempts.progressed();
            } else if let Some(pause) = attempts.fail(Duration::ZERO) {
                attempts.wait(pause).await;
            } else {
                let reason = reason.unwrap_or_else(|| "nothing was handled".to_owned());
                return Ok((done, Some(reason)));
            }
            range.start = done;
        }
        Ok((range.start, None))
    }

    /// Calls the handler.
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

    /// Loads events of a stream, however long the store does not answer if the consumer follows the feed.
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

/// Whether it is the stream that is at fault, and not the store.
pub(super) fn is_of_stream(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::MissingEvents | ErrorKind::InvalidEvent
    )
}

/// The ranges, where those that stand side by side are one.
fn joined(ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut().filter(|last| last.end == range.start) {
            Some(last) => last.end = range.end,
            None => joined.push(range),
        }
    }
    joined
}

impl Delivering<'_> {
    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
    }

    /// Whether a stream has a dead letter. One that is stored may have been retried by another process since.
    async fn is_parked(&self, stream: &StreamName) -> Result<bool> {
        {
            let known = self.known();
            let mut unstored = known.storing.iter().chain(&known.unstored);
            if !known.parked.contains(stream) || unstored.any(|p| p.stream == *stream) {
                return Ok(known.parked.contains(stream));
            }
        }
        let letters = self.consumer.letters();
        let look = || Box::pin(letters.get(stream)) as BoxFuture<'_, Result<Option<ParkedStream>>>;
        let stored = retry_store(self.consumer, self.retries_forever, look).await?;
        if stored.is_none() {
            self.known().parked.remove(stream);
        }
        Ok(stored.is_some())
    }

    /// Parks events that the handler does not get on with.
    fn park(&self, parked: ParkedStream) {
        let consumer = self.consumer;
        telemetry::parked(&consumer.id.0, consumer.partition, &parked.stream);
        let notice = WorkerNotice::Parked(consumer.partition, parked.clone());
        consumer.options.tell(&notice);
        let mut known = self.known();
        known.consumed.parked.push(parked.clone());
        known.park(parked);
    }

    /// Parks events of a stream that is parked.
    fn pass_by(&self, stream: &StreamName, range: Range<u64>) {
        let mut known = self.known();
        let mut told = known.consumed.parked.iter_mut().rev();
        if let Some(told) = told.find(|told| told.stream == *stream) {
            told.end = told.end.max(range.end);
        }
        known.park(ParkedStream::new(stream.clone(), range, PASSED_BY));
    }
}

impl Known {
    fn park(&mut self, parked: ParkedStream) {
        self.parked.insert(parked.stream.clone());
        self.unstored.push(parked);
    }
}

impl Consume for Delivering<'_> {
    type Source = Reader<TableLog>;
    type Key = StreamName;
    type Work = Range<u64>;
    type Checkpoint = Checkpoint;

    const LIMITS: BacklogLimits = BacklogLimits {
        batches_max: BATCHES_AHEAD,
        records_max: EVENTS_AHEAD,
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
        for range in joined(ranges) {
            if is_parked {
                self.pass_by(stream, range);
                continue;
            }
            let (start, end) = (range.start, end.unwrap_or(range.end));
            let handled = self
                .consumer
                .handle(stream, range, self.handler, self.retries_forever);
            let (done, failure) = handled.await?;
            self.known().consumed.events += done - start;
            if let Some(reason) = failure {
                is_parked = true;
                self.park(ParkedStream::new(stream.clone(), done..end, &reason));
            }
        }
        Ok(RunOutcome::Completed)
    }

    fn has_unstored(&self) -> bool {
        !self.known().unstored.is_empty()
    }

    async fn store(&self, checkpoints: &[(usize, Checkpoint)]) -> Result<RunOutcome> {
        let (term, parked) = {
            let known = &mut *self.known();
            known.storing.append(&mut known.unstored);
            (known.progress.term, known.storing.clone())
        };
        let checkpoint = checkpoints.last().map(|(_, checkpoint)| *checkpoint);
        let Some(stored) = self.consumer.advance(term, checkpoint, &parked).await? else {
            return Ok(RunOutcome::Fenced);
        };
        let known = &mut *self.known();
        known.progress = stored;
        known.storing.clear();
        Ok(RunOutcome::Completed)
    }
}

/// Why events of a stream are parked that was tried again in the same moment.
const PASSED_BY: &str = "they came while the stream was parked";
