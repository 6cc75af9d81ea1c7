//! Exactly once: what a handler writes and how far it has come are one commit.
//!
//! Each commit expects the place that the one before has stored. Whoever finds another one begins anew from there: so any
//! number may run, and whatever became of a commit whose answer was lost, its events count once. A stream that the handler
//! cannot get on with is parked in the same item, so that its events are either in the view or parked, never both.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::time::Duration;

use floe_store::BoxFuture;

use super::deliver::is_of_stream;
use super::progress::{ConsumerState, ParkedStream, Place};
use super::{FeedConsumer, FeedSummary, ViewTransaction, WorkerNotice};
use crate::delivery::{Attempts, RunContext, StoreRetry, Timeout, guard, is_transient};
use crate::error::{Error, ErrorKind, Result};
use crate::events::feed::kept::Kept;
use crate::events::feed::span::Span;
use crate::events::feed::telemetry;
use crate::events::{Recorded, StreamName};
use crate::tx::body::TxBody;

/// A handler for views: an async closure or function of a [`ViewTransaction`], which may be called many times.
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

/// A handler in a transaction, whatever its type.
pub(super) trait View: Send + Sync {
    /// Calls it.
    fn call<'t>(&'t self, delivery: ViewTransaction<'t>) -> BoxFuture<'t, Result<()>>;
}

impl<H: ViewHandler> View for H {
    fn call<'t>(&'t self, delivery: ViewTransaction<'t>) -> BoxFuture<'t, Result<()>> {
        Box::pin(TxBody::call(self, delivery))
    }
}

/// What became of events.
enum Committed {
    /// They are in the view.
    Handled,
    /// They are parked, because the handler said this, or because their stream is.
    Parked(Option<String>),
    /// Somebody else has gone on, or moved the checkpoint.
    Elsewhere,
}

/// A run over a partition.
struct Projecting<'c> {
    consumer: &'c FeedConsumer,
    handler: &'c dyn View,
    context: RunContext,
    /// What is stored.
    known: ConsumerState,
    /// Streams with dead letters.
    parked: BTreeSet<StreamName>,
    consumed: FeedSummary,
}

impl Projecting<'_> {
    /// Goes on from what is stored; `false` if somebody else has gone on meanwhile.
    async fn go_on(&mut self) -> Result<bool> {
        let consumer = self.consumer;
        // In this order: a stream that is parked in between moves the place, and the next commit finds that.
        self.known = consumer.progress().await?;
        let letters = consumer.dead_letters().await?.into_iter();
        self.parked = letters.map(|letter| letter.stream).collect();
        let mut place = self.known.place;
        let mut reader = consumer.reader(place.checkpoint);
        loop {
            while let Some(batch) = reader.next().await? {
                for (chunk, to) in consumer.chunks(place, &batch.spans) {
                    if self.context.is_stopped() {
                        self.consumed.checkpoint = self.known.place.checkpoint;
                        return Ok(true);
                    }
                    if !self.step(&chunk, to).await? {
                        return Ok(false);
                    }
                }
                place = Place::before(batch.checkpoint);
            }
            if self.known.place != place && !self.move_on(place).await? {
                return Ok(false);
            }
            self.consumed.checkpoint = place.checkpoint;
            if !self.context.follows || self.context.is_stopped() {
                return Ok(true);
            }
            let poll = consumer.options.delivery.poll;
            let waited = consumer.store.db().timer().sleep(poll);
            self.context.unless_stopped(waited).await;
        }
    }

    /// Commits a few events, and the place after them; `false` if somebody else has gone on.
    async fn step(&mut self, chunk: &Span, to: Place) -> Result<bool> {
        let (consumer, stream, range) = (self.consumer, &chunk.stream, chunk.start..chunk.end());
        let mut committed = Committed::Handled;
        if self.parked.contains(stream) {
            committed = self.pass_by(chunk, to, None).await?;
        }
        if matches!(committed, Committed::Handled) {
            let retries_forever = self.context.retries_forever;
            committed = match consumer.load(stream, range.clone(), retries_forever).await {
                Ok(events) => self.commit(chunk, to, &events).await?,
                Err(error) if is_of_stream(&error) => {
                    self.pass_by(chunk, to, Some(error.to_string())).await?
                }
                Err(error) => return Err(error),
            };
        }
        match committed {
            Committed::Elsewhere => return Ok(false),
            Committed::Handled => {
                self.consumed.events += chunk.types.len() as u64;
                self.parked.remove(stream);
                self.known.place = to;
            }
            Committed::Parked(reason) => {
                let text = reason.as_deref().unwrap_or_default();
                let parked = ParkedStream::new(stream.clone(), range, text);
                self.known.place = to;
                self.parked.insert(stream.clone());
                if reason.is_some() {
                    telemetry::parked(&consumer.id.0, consumer.partition, stream);
                    let notice = WorkerNotice::Parked(consumer.partition, parked.clone());
                    consumer.options.tell(&notice);
                    self.consumed.parked.push(parked);
                }
            }
        }
        Ok(true)
    }

    /// Commits what the handler makes of events, with the place after them. Parks them if it does not get on.
    async fn commit(&self, chunk: &Span, to: Place, events: &[Recorded]) -> Result<Committed> {
        let (consumer, handler, from) = (self.consumer, self.handler, self.known.place);
        let (index, id, stream) = (consumer.store.feed_index(), &consumer.id, &chunk.stream);
        let mut attempts = Attempts::new(consumer);
        loop {
            let committed = consumer.store.db().transact(async |tx| {
                let mut stored = tx.stream_in::<Kept<ConsumerState>>(&index, id).await?;
                if stored.state().place != from {
                    return Ok(Committed::Elsewhere);
                }
                let after = stored.state().at(to);
                let delivery = ViewTransaction { tx, stream, events };
                consumer.call_in(handler, delivery).await?;
                stored.append([Kept(after)])?;
                Ok::<_, Error>(Committed::Handled)
            });
            let error = match committed.await {
                Ok(committed) => return Ok(committed),
                Err(error) => error,
            };
            if let Some(pause) = attempts.fail(Duration::ZERO) {
                attempts.wait(pause).await;
            } else if is_of_handler(&error) {
                return self.pass_by(chunk, to, Some(error.to_string())).await;
            } else {
                return Err(error);
            }
        }
    }

    /// Parks events: because of a reason, or else because their stream is parked, if it still is.
    async fn pass_by(&self, chunk: &Span, to: Place, reason: Option<String>) -> Result<Committed> {
        let (stream, range) = (&chunk.stream, chunk.start..chunk.end());
        let text = reason.as_deref().unwrap_or_default();
        let parked = ParkedStream::new(stream.clone(), range, text);
        let (consumer, from) = (self.consumer, self.known.place);
        let (index, id, letters) = (
            consumer.store.feed_index(),
            &consumer.id,
            consumer.letters(),
        );
        let passed = consumer.store.db().transact(async |tx| {
            let mut stored = tx.stream_in::<Kept<ConsumerState>>(&index, id).await?;
            if stored.state().place != from {
                return Ok::<_, Error>(Committed::Elsewhere);
            }
            if reason.is_none() && letters.get_in(tx, stream).await?.is_none() {
                return Ok(Committed::Handled);
            }
            letters.add_in(tx, std::slice::from_ref(&parked)).await?;
            let after = stored.state().at(to);
            stored.append([Kept(after)])?;
            Ok(Committed::Parked(reason.clone()))
        });
        passed.await
    }

    /// Stores a place; `false` if the stored one is not the one that is known.
    async fn move_on(&mut self, to: Place) -> Result<bool> {
        let from = std::mem::replace(&mut self.known.place, to);
        let decide = |stored: &ConsumerState| {
            let is_expected = stored.place == from;
            Ok::<_, Error>((is_expected, is_expected.then(|| Kept(stored.at(to)))))
        };
        self.consumer.stored().transact(decide).await
    }
}

impl FeedConsumer {
    /// Commits the events of the partition, up to where the orders say.
    pub(super) async fn project(
        &self,
        handler: &dyn View,
        context: RunContext,
    ) -> Result<FeedSummary> {
        let retries_forever = context.retries_forever;
        let mut run = Projecting {
            consumer: self,
            handler,
            context,
            known: ConsumerState::default(),
            parked: BTreeSet::new(),
            consumed: FeedSummary::default(),
        };
        let mut retry = StoreRetry::new(self, retries_forever);
        loop {
            let before = run.consumed.events;
            let went = run.go_on().await;
            if run.consumed.events > before {
                retry = StoreRetry::new(self, retries_forever);
            }
            match went {
                Ok(true) => return Ok(run.consumed),
                Ok(false) => {}
                Err(error) => retry.wait_if_transient(error).await?,
            }
        }
    }

    /// The rest of a batch from a place in it, in pieces of which each is given to the handler at once; and the place
    /// after each.
    fn chunks(&self, place: Place, spans: &[Span]) -> Vec<(Span, Place)> {
        let mut chunks = Vec::new();
        for (spans, span) in (0_u64..).zip(spans) {
            let is_told = self.options.filter.matches(&span.stream);
            let mut rest = undone(place, spans, span).filter(|_| is_told);
            while let Some(span) = rest {
                let mut chunk = span.clone();
                chunk.types.truncate(self.options.events_max.max(1));
                rest = span.from_index(chunk.end());
                let (spans, index) = match rest {
                    Some(_) => (spans, chunk.end()),
                    None => (spans + 1, 0),
                };
                let after = Place {
                    spans,
                    index,
                    ..place
                };
                chunks.push((chunk, after));
            }
        }
        chunks
    }

    /// Calls the handler in a transaction.
    async fn call_in(&self, handler: &dyn View, delivery: ViewTransaction<'_>) -> Result<()> {
        let called = async { handler.call(delivery).await };
        guard(Some(Timeout::of(self)), called).await?
    }

    /// Tries a parked stream again. Tells how many events are done, and what is parked of it now.
    pub(super) async fn commit_parked(
        &self,
        handler: &dyn View,
        known: &ParkedStream,
    ) -> Result<(u64, Option<ParkedStream>)> {
        let (mut index, mut attempts) = (known.index, Attempts::new(self));
        while index < known.end {
            let next = self.commit_next_parked(handler, &known.stream, index).await;
            let error = match next {
                Ok(Some(next)) => {
                    index = next;
                    attempts.progressed();
                    continue;
                }
                // Somebody else tries it, too.
                Ok(None) => break,
                Err(error) => error,
            };
            if let Some(pause) = attempts.fail(Duration::ZERO) {
                attempts.wait(pause).await;
            } else if is_of_handler(&error) || is_of_stream(&error) {
                let range = index..known.end;
                let parked = ParkedStream::new(known.stream.clone(), range, &error.to_string());
                self.store_retried(&parked, Some(&parked)).await?;
                return Ok((index - known.index, Some(parked)));
            } else {
                return Err(error);
            }
        }
        Ok((index - known.index, None))
    }

    /// Commits what the handler makes of parked events of a stream, from this index on. Tells where to go on; `None` if
    /// somebody else has, or nothing is left.
    async fn commit_next_parked(
        &self,
        handler: &dyn View,
        stream: &StreamName,
        from: u64,
    ) -> Result<Option<u64>> {
        let letters = self.letters();
        let known = letters.get(stream).await?;
        let Some(known) = known.filter(|known| known.index == from) else {
            return Ok(None);
        };
        let end = from.saturating_add(self.options.events_max.max(1) as u64);
        let end = end.min(known.end);
        let events = self.load(stream, from..end, false).await?;
        let events = events.as_slice();
        let tried = ParkedStream::new(stream.clone(), from..end, "");
        self.store
            .db()
            .transact(async |tx| {
                let known = letters.get_in(tx, stream).await?;
                let Some(known) = known.filter(|known| known.index == from) else {
                    return Ok(None);
                };
                let delivery = ViewTransaction { tx, stream, events };
                self.call_in(handler, delivery).await?;
                let rest = known.after_retry(&tried, None);
                letters.replace(tx, Some(&known), rest.as_ref())?;
                Ok::<_, Error>(Some(end))
            })
            .await
    }
}

/// What of a span is not done at a place in its batch.
fn undone(place: Place, number: u64, span: &Span) -> Option<Span> {
    let index = match number.cmp(&place.spans) {
        Ordering::Less => return None,
        Ordering::Equal => place.index,
        Ordering::Greater => 0,
    };
    span.clone().from_index(index)
}

/// How many events of a span are not done at a place in its batch.
pub(super) fn undone_events(place: Place, number: u64, span: &Span) -> u64 {
    undone(place, number, span).map_or(0, |span| span.types.len() as u64)
}

/// Whether it is the handler that cannot get on with these events. What the store fails with passes, or stands in the way
/// of all events alike.
fn is_of_handler(error: &Error) -> bool {
    let of_all = matches!(error.kind(), ErrorKind::Table | ErrorKind::Unsupported);
    let is_denied = matches!(
        error.store_error(),
        Some(floe_store::Error::AccessDenied(_))
    );
    !of_all && !is_denied && !is_transient(error)
}
