//! At least once: events of a partition to handlers, many streams at once, each in its order.
//!
//! What runs is [`delivery`](crate::delivery). The partition is its source, and the streams are the keys. A checkpoint is
//! stored with the streams that are parked by then, in one item.

use std::fmt;
use std::future::Future;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use floe_store::BoxFuture;
use tracing::Instrument;

use super::progress::{Parked, Place, Progress};
use super::{Consumed, Consumer, Handled, Notice};
use crate::delivery::{
    Attempts, Batch, BatchOf, Consume, End, Entry, Host, Limits, Orders, Run, Size, Timeout, guard,
    outlast,
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
    consumer: &'c Consumer,
    handler: &'c dyn Handler,
    is_patient: bool,
    known: Mutex<Known>,
}

/// What is known in a run.
struct Known {
    /// What is stored, and what will be.
    progress: Progress,
    /// What is parked and not stored.
    unstored: Vec<Parked>,
    /// What is parked and being stored.
    storing: Vec<Parked>,
    consumed: Consumed,
}

impl Consumer {
    /// Gives the events of the partition to the handler, up to where the orders say.
    pub(super) async fn deliver(
        &self,
        handler: &dyn Handler,
        orders: Orders,
    ) -> Result<(Consumed, End)> {
        let (lease, is_patient) = (orders.lease.as_ref(), orders.is_patient);
        let lease = lease.map(|lease| lease.term);
        let claim = || Box::pin(self.claim(lease)) as BoxFuture<'_, Result<Option<Progress>>>;
        let claimed = orders.unless_stopped(outlast(self, is_patient, claim));
        let Some(claimed) = claimed.await else {
            return Ok((Consumed::default(), End::Done));
        };
        let Some(progress) = claimed? else {
            return Ok((Consumed::default(), End::Fenced));
        };
        let reader = self.reader(progress.place.checkpoint);
        let delivering = Delivering {
            consumer: self,
            handler,
            is_patient,
            known: Mutex::new(Known {
                progress,
                unstored: Vec::new(),
                storing: Vec::new(),
                consumed: Consumed::default(),
            }),
        };
        let run = Run::new(&delivering, orders, vec![(reader, None)]);
        let end = run.finish().await?;
        let known = into_inner(delivering.known);
        let consumed = Consumed {
            checkpoint: known.progress.place.checkpoint,
            ..known.consumed
        };
        Ok((consumed, end))
    }

    /// Makes the progress one's own; `None` if somebody else holds the partition by now.
    async fn claim(&self, lease: Option<u64>) -> Result<Option<Progress>> {
        let decide = |stored: &Progress| {
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
        parked: &[Parked],
    ) -> Result<Option<Progress>> {
        let decide = |stored: &Progress| {
            if stored.term != term {
                return Ok::<_, Error>((None, None));
            }
            let mut after = match checkpoint {
                Some(checkpoint) => stored.at(Place::before(checkpoint)),
                None => stored.clone(),
            };
            for parked in parked {
                after.park(parked.clone())?;
            }
            Ok((Some(after.clone()), Some(Kept(after))))
        };
        self.stored().transact(decide).await
    }

    /// Tries a parked stream again. Tells how many events are done, and what is parked of it now.
    pub(super) async fn handle_parked(
        &self,
        handler: &dyn Handler,
        known: &Parked,
    ) -> Result<(u64, Option<Parked>)> {
        let (stream, end) = (&known.stream, known.end);
        let handled = self.handle(stream, known.index..end, handler, false);
        let (done, failure) = handled.await?;
        let again = failure.map(|reason| Parked::new(stream.clone(), done..end, &reason));
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
        is_patient: bool,
    ) -> Result<(u64, Option<String>)> {
        let mut attempts = Attempts::new(self);
        while !range.is_empty() {
            let end = range
                .start
                .saturating_add(self.options.events_max.max(1) as u64);
            let chunk = range.start..end.min(range.end);
            let (done, reason) = match self.load(stream, chunk.clone(), is_patient).await {
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
        is_patient: bool,
    ) -> Result<Vec<Recorded>> {
        let load = || load_between(&self.store, stream, range.clone());
        outlast(self, is_patient, || Box::pin(load())).await
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

    /// Whether a stream is parked; `None` if the progress was claimed or moved by somebody else. What is stored to be
    /// parked may have been tried again elsewhere, and not be parked any more.
    async fn is_parked(&self, stream: &StreamName) -> Result<Option<bool>> {
        let term = {
            let known = self.known();
            let mut unstored = known.storing.iter().chain(&known.unstored);
            if !known.progress.is_parked(stream) || unstored.any(|p| p.stream == *stream) {
                return Ok(Some(known.progress.is_parked(stream)));
            }
            known.progress.term
        };
        let look = || Box::pin(self.consumer.progress()) as BoxFuture<'_, Result<Progress>>;
        let stored = outlast(self.consumer, self.is_patient, look).await?;
        if stored.term != term {
            return Ok(None);
        }
        let is_parked = stored.is_parked(stream);
        if !is_parked {
            let mut known = self.known();
            known.progress = known.progress.without_parked(stream);
        }
        Ok(Some(is_parked))
    }

    /// Parks events that the handler does not get on with.
    fn park(&self, parked: Parked) -> Result<()> {
        let consumer = self.consumer;
        telemetry::parked(&consumer.id.0, consumer.partition, &parked.stream);
        let notice = Notice::Parked(consumer.partition, parked.clone());
        consumer.options.tell(&notice);
        let mut known = self.known();
        known.consumed.parked.push(parked.clone());
        known.park(parked)
    }

    /// Parks events of a stream that is parked.
    fn pass_by(&self, stream: &StreamName, range: Range<u64>) -> Result<()> {
        let mut known = self.known();
        let mut told = known.consumed.parked.iter_mut().rev();
        if let Some(told) = told.find(|told| told.stream == *stream) {
            told.end = told.end.max(range.end);
        }
        known.park(Parked::new(stream.clone(), range, PASSED_BY))
    }
}

impl Known {
    fn park(&mut self, parked: Parked) -> Result<()> {
        self.progress.park(parked.clone())?;
        self.unstored.push(parked);
        Ok(())
    }
}

impl Consume for Delivering<'_> {
    type Source = Reader<TableLog>;
    type Key = StreamName;
    type Work = Range<u64>;
    type Mark = Checkpoint;

    const LIMITS: Limits = Limits {
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
        let (mark, is_idle) = (batch.as_ref().map(|b| b.checkpoint), batch.is_none());
        let filter = &self.consumer.options.filter;
        let spans = batch.into_iter().flat_map(|batch| batch.spans);
        let spans = spans.filter(|span| filter.lets_through(&span.stream));
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
            mark,
            is_idle,
        })
    }

    async fn turn(&self, _: usize, stream: &StreamName, ranges: Vec<Range<u64>>) -> Result<End> {
        let Some(mut is_parked) = self.is_parked(stream).await? else {
            return Ok(End::Fenced);
        };
        let end = ranges.iter().map(|range| range.end).max();
        for range in joined(ranges) {
            if is_parked {
                self.pass_by(stream, range)?;
                continue;
            }
            let (start, end) = (range.start, end.unwrap_or(range.end));
            let handled = self
                .consumer
                .handle(stream, range, self.handler, self.is_patient);
            let (done, failure) = handled.await?;
            self.known().consumed.events += done - start;
            if let Some(reason) = failure {
                is_parked = true;
                self.park(Parked::new(stream.clone(), done..end, &reason))?;
            }
        }
        Ok(End::Done)
    }

    fn has_unstored(&self) -> bool {
        !self.known().unstored.is_empty()
    }

    async fn store(&self, marks: &[(usize, Checkpoint)]) -> Result<End> {
        let (term, parked) = {
            let known = &mut *self.known();
            known.storing.append(&mut known.unstored);
            (known.progress.term, known.storing.clone())
        };
        let checkpoint = marks.last().map(|(_, checkpoint)| *checkpoint);
        let Some(stored) = self.consumer.advance(term, checkpoint, &parked).await? else {
            return Ok(End::Fenced);
        };
        let known = &mut *self.known();
        known.progress = stored;
        known.storing.clear();
        for parked in &known.unstored {
            known.progress.park(parked.clone())?;
        }
        Ok(End::Done)
    }
}

/// Why events of a stream are parked that was tried again in the same moment.
const PASSED_BY: &str = "they came while the stream was parked";
