//! Exactly-once delivery: the handler's changes and the new position are one commit.
//!
//! Each commit is made on the condition that the stored position is the one that the previous commit stored. A run that
//! finds another position restarts from it. So any number of runs may compete, and the events of a commit whose
//! response was lost count once. A stream is parked in the transaction that moves past its events, so they are either
//! in the view or in a dead letter, never in both.

use std::collections::BTreeSet;
use std::time::Duration;

use floe_store::BoxFuture;

use super::deliver::is_caused_by_stream;
use super::parked_stream::ParkedStream;
use super::state::{ConsumerState, FeedPosition};
use super::{FeedConsumer, FeedSummary, ViewTransaction, WorkerNotice};
use crate::delivery::{Attempts, RunContext, StoreRetry, Timeout, guard, is_transient};
use crate::error::{Error, ErrorKind, Result};
use crate::events::feed::span::Span;
use crate::events::feed::stored_state::StateEvent;
use crate::events::feed::telemetry;
use crate::events::{Recorded, StreamName};
use crate::tx::body::TxBody;

/// A handler for views: an async closure or function of a [`ViewTransaction`], which may be called repeatedly.
pub trait ViewHandler:
    for<'t> AsyncFn(ViewTransaction<'t>) -> Result<()>
    + for<'t> TxBody<ViewTransaction<'t>, Result<()>>
    + Send
    + Sync
{
}

impl<H> ViewHandler for H where
    H: for<'t> AsyncFn(ViewTransaction<'t>) -> Result<()>
        + for<'t> TxBody<ViewTransaction<'t>, Result<()>>
        + Send
        + Sync
{
}

/// A [`ViewHandler`] of any type.
pub(super) trait DynViewHandler: Send + Sync {
    /// Calls the handler.
    fn call<'t>(&'t self, delivery: ViewTransaction<'t>) -> BoxFuture<'t, Result<()>>;
}

impl<H: ViewHandler> DynViewHandler for H {
    fn call<'t>(&'t self, delivery: ViewTransaction<'t>) -> BoxFuture<'t, Result<()>> {
        Box::pin(TxBody::call(self, delivery))
    }
}

/// The outcome of committing the events of a chunk.
enum ChunkOutcome {
    /// They are in the view.
    Handled,
    /// They are in a dead letter: with the error if they failed, without one if their stream was parked already.
    Parked(Option<String>),
    /// Another run has advanced the position, or it was moved. Nothing was committed.
    Superseded,
}

/// A run over a partition.
struct ProjectionRun<'c> {
    consumer: &'c FeedConsumer,
    handler: &'c dyn DynViewHandler,
    context: RunContext,
    /// The position as last stored.
    position: FeedPosition,
    /// Streams with dead letters.
    parked: BTreeSet<StreamName>,
    summary: FeedSummary,
}

impl ProjectionRun<'_> {
    /// Processes the partition from the stored position. Returns `false` if another run has advanced the position, so
    /// that this one must restart.
    async fn run_from_stored(&mut self) -> Result<bool> {
        let consumer = self.consumer;
        // In this order: parking a stream advances the position, so if another run parks one after the position was
        // read, the next commit finds another position.
        self.position = consumer.state().await?.position;
        let letters = consumer.list_dead_letters().await?.into_iter();
        self.parked = letters.map(|letter| letter.stream).collect();
        let mut position = self.position;
        let mut reader = consumer.reader(position.checkpoint);
        loop {
            while let Some(batch) = reader.next().await? {
                for (chunk, after) in consumer.chunks(position, &batch.spans) {
                    if self.context.is_stopped() {
                        self.summary.checkpoint = self.position.checkpoint;
                        return Ok(true);
                    }
                    if !self.step(&chunk, after).await? {
                        return Ok(false);
                    }
                }
                position = FeedPosition::before(batch.checkpoint);
            }
            if self.position != position && !self.store_position(position).await? {
                return Ok(false);
            }
            self.summary.checkpoint = position.checkpoint;
            if !self.context.follows || self.context.is_stopped() {
                return Ok(true);
            }
            let poll = consumer.options.delivery.poll;
            let waited = consumer.store.db().timer().sleep(poll);
            self.context.unless_stopped(waited).await;
        }
    }

    /// Commits a chunk of events together with the position after it. Returns `false` if another run has advanced the
    /// position.
    async fn step(&mut self, chunk: &Span, after: FeedPosition) -> Result<bool> {
        let (consumer, stream, range) = (self.consumer, &chunk.stream, chunk.start..chunk.end());
        let mut outcome = ChunkOutcome::Handled;
        if self.parked.contains(stream) {
            outcome = self.park(chunk, after, None).await?;
        }
        // The stream is not parked, or not any more.
        if matches!(outcome, ChunkOutcome::Handled) {
            let retries_forever = self.context.retries_forever;
            outcome = match consumer.load(stream, range.clone(), retries_forever).await {
                Ok(events) => self.commit(chunk, after, &events).await?,
                Err(error) if is_caused_by_stream(&error) => {
                    self.park(chunk, after, Some(error.to_string())).await?
                }
                Err(error) => return Err(error),
            };
        }
        match outcome {
            ChunkOutcome::Superseded => return Ok(false),
            ChunkOutcome::Handled => {
                self.summary.events += chunk.types.len() as u64;
                self.parked.remove(stream);
                self.position = after;
            }
            ChunkOutcome::Parked(reason) => {
                self.position = after;
                self.parked.insert(stream.clone());
                if let Some(reason) = reason {
                    let parked = ParkedStream::new(stream.clone(), range, &reason);
                    telemetry::parked(&consumer.id.0, consumer.partition, stream);
                    let notice = WorkerNotice::Parked(consumer.partition, parked.clone());
                    consumer.options.notify(&notice);
                    self.summary.parked.push(parked);
                }
            }
        }
        Ok(true)
    }

    /// Commits the handler's changes with the position after the events. Parks the stream if all attempts failed.
    async fn commit(
        &self,
        chunk: &Span,
        after: FeedPosition,
        events: &[Recorded],
    ) -> Result<ChunkOutcome> {
        let (consumer, handler, before) = (self.consumer, self.handler, self.position);
        let (index, id, stream) = (consumer.store.feed_index(), &consumer.id, &chunk.stream);
        let mut attempts = Attempts::new(consumer);
        loop {
            let committed = consumer.store.db().transact(async |tx| {
                let mut stored = tx
                    .stream_in::<StateEvent<ConsumerState>>(&index, id)
                    .await?;
                if stored.state().position != before {
                    return Ok(ChunkOutcome::Superseded);
                }
                let after = stored.state().at(after);
                let delivery = ViewTransaction { tx, stream, events };
                consumer.call_in(handler, delivery).await?;
                stored.append([StateEvent(after)])?;
                Ok::<_, Error>(ChunkOutcome::Handled)
            });
            let error = match committed.await {
                Ok(outcome) => return Ok(outcome),
                Err(error) => error,
            };
            if let Some(pause) = attempts.fail(Duration::ZERO) {
                attempts.wait(pause).await;
            } else if is_caused_by_handler(&error) {
                return self.park(chunk, after, Some(error.to_string())).await;
            } else {
                return Err(error);
            }
        }
    }

    /// Adds events to a dead letter, and stores the position after them. Without a reason, does so only if the stream
    /// is still parked; otherwise commits nothing and returns [`ChunkOutcome::Handled`].
    async fn park(
        &self,
        chunk: &Span,
        after: FeedPosition,
        reason: Option<String>,
    ) -> Result<ChunkOutcome> {
        let (stream, range) = (&chunk.stream, chunk.start..chunk.end());
        let text = reason.as_deref().unwrap_or_default();
        let parked = ParkedStream::new(stream.clone(), range, text);
        let (consumer, before) = (self.consumer, self.position);
        let (index, id) = (consumer.store.feed_index(), &consumer.id);
        let letters = consumer.dead_letters();
        let committed = consumer.store.db().transact(async |tx| {
            let mut stored = tx
                .stream_in::<StateEvent<ConsumerState>>(&index, id)
                .await?;
            if stored.state().position != before {
                return Ok::<_, Error>(ChunkOutcome::Superseded);
            }
            if reason.is_none() && letters.get_in(tx, stream).await?.is_none() {
                return Ok(ChunkOutcome::Handled);
            }
            letters.add_in(tx, std::slice::from_ref(&parked)).await?;
            let after = stored.state().at(after);
            stored.append([StateEvent(after)])?;
            Ok(ChunkOutcome::Parked(reason.clone()))
        });
        committed.await
    }

    /// Stores a position. Returns `false` if another run has advanced it.
    async fn store_position(&mut self, after: FeedPosition) -> Result<bool> {
        let before = std::mem::replace(&mut self.position, after);
        let decide = |stored: &ConsumerState| {
            let is_expected = stored.position == before;
            let event = is_expected.then(|| StateEvent(stored.at(after)));
            Ok::<_, Error>((is_expected, event))
        };
        self.consumer.state_stream().transact(decide).await
    }
}

impl FeedConsumer {
    /// Commits the events of the partition to the view, up to the tail or until the run must stop.
    pub(super) async fn project(
        &self,
        handler: &dyn DynViewHandler,
        context: RunContext,
    ) -> Result<FeedSummary> {
        let retries_forever = context.retries_forever;
        let mut run = ProjectionRun {
            consumer: self,
            handler,
            context,
            position: FeedPosition::default(),
            parked: BTreeSet::new(),
            summary: FeedSummary::default(),
        };
        let mut retry = StoreRetry::new(self, retries_forever);
        loop {
            let events_before = run.summary.events;
            let result = run.run_from_stored().await;
            if run.summary.events > events_before {
                retry = StoreRetry::new(self, retries_forever);
            }
            match result {
                Ok(true) => return Ok(run.summary),
                Ok(false) => {}
                Err(error) => retry.wait_if_transient(error).await?,
            }
        }
    }

    /// Splits the spans of a batch after a position into chunks, one for each call of the handler, with the position
    /// after each.
    fn chunks(&self, position: FeedPosition, spans: &[Span]) -> Vec<(Span, FeedPosition)> {
        let mut chunks = Vec::new();
        for (number, span) in (0_u64..).zip(spans) {
            if !self.options.filter.matches(&span.stream) {
                continue;
            }
            let mut rest = position.remaining(number, span);
            while let Some(span) = rest {
                let mut chunk = span.clone();
                chunk.types.truncate(self.options.events_max.max(1));
                rest = span.from_index(chunk.end());
                let (spans, index) = if rest.is_some() {
                    (number, chunk.end())
                } else {
                    (number + 1, 0)
                };
                let after = FeedPosition {
                    spans,
                    index,
                    ..position
                };
                chunks.push((chunk, after));
            }
        }
        chunks
    }

    /// Calls the handler in a transaction with a time limit.
    async fn call_in(
        &self,
        handler: &dyn DynViewHandler,
        delivery: ViewTransaction<'_>,
    ) -> Result<()> {
        let called = async { handler.call(delivery).await };
        guard(Some(Timeout::of(self)), called).await?
    }

    /// Handles the events of a dead letter. Returns the number of handled events, and the part that failed again.
    pub(super) async fn retry_dead_letter_in_view(
        &self,
        handler: &dyn DynViewHandler,
        letter: &ParkedStream,
    ) -> Result<(u64, Option<ParkedStream>)> {
        let (mut index, mut attempts) = (letter.index, Attempts::new(self));
        while index < letter.end {
            let next = self.commit_retry(handler, &letter.stream, index).await;
            let error = match next {
                Ok(Some(next)) => {
                    index = next;
                    attempts.progressed();
                    continue;
                }
                // Another process retries it too.
                Ok(None) => break,
                Err(error) => error,
            };
            if let Some(pause) = attempts.fail(Duration::ZERO) {
                attempts.wait(pause).await;
            } else if is_caused_by_handler(&error) || is_caused_by_stream(&error) {
                let range = index..letter.end;
                let parked = ParkedStream::new(letter.stream.clone(), range, &error.to_string());
                self.store_retry(&parked, Some(&parked)).await?;
                return Ok((index - letter.index, Some(parked)));
            } else {
                return Err(error);
            }
        }
        Ok((index - letter.index, None))
    }

    /// Commits the handler's changes for the first events of a dead letter, and removes them from it. Returns the index
    /// after them; `None` if the dead letter does not start at this index any more.
    async fn commit_retry(
        &self,
        handler: &dyn DynViewHandler,
        stream: &StreamName,
        start: u64,
    ) -> Result<Option<u64>> {
        let letters = self.dead_letters();
        let stored = letters.get(stream).await?;
        let Some(stored) = stored.filter(|stored| stored.index == start) else {
            return Ok(None);
        };
        let end = start.saturating_add(self.options.events_max.max(1) as u64);
        let end = end.min(stored.end);
        let events = self.load(stream, start..end, false).await?;
        let events = events.as_slice();
        let retried = ParkedStream::new(stream.clone(), start..end, "");
        self.store
            .db()
            .transact(async |tx| {
                let stored = letters.get_in(tx, stream).await?;
                let Some(stored) = stored.filter(|stored| stored.index == start) else {
                    return Ok(None);
                };
                let delivery = ViewTransaction { tx, stream, events };
                self.call_in(handler, delivery).await?;
                let rest = stored.after_retry(&retried, None);
                letters.replace(tx, Some(&stored), rest.as_ref())?;
                Ok::<_, Error>(Some(end))
            })
            .await
    }
}

/// Whether the handler failed because of these events. Other failures are transient, or affect all events alike.
fn is_caused_by_handler(error: &Error) -> bool {
    let affects_all = matches!(error.kind(), ErrorKind::Table | ErrorKind::Unsupported);
    let is_denied = matches!(
        error.store_error(),
        Some(floe_store::Error::AccessDenied(_))
    );
    !affects_all && !is_denied && !is_transient(error)
}
