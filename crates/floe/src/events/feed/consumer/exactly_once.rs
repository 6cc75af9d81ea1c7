//! Exactly once: what a handler writes and how far it has come are one commit.
//!
//! Each commit expects the place that the one before has stored. Whoever finds another one begins anew from there: so any
//! number may run, and whatever became of a commit whose answer was lost, its events count once. A stream that the handler
//! cannot get on with is parked in the same item, so that its events are either in the view or parked, never both.

use std::cmp::Ordering;
use std::time::Duration;

use floe_store::BoxFuture;

use super::deliver::is_of_stream;
use super::progress::{Parked, Place, Progress};
use super::{Consumed, Consumer, Delivery, Notice};
use crate::delivery::{Attempts, Orders, StoreRetry, Timeout, guard, passes};
use crate::error::{Error, ErrorKind, Result};
use crate::events::feed::kept::Kept;
use crate::events::feed::span::Span;
use crate::events::{Recorded, StreamName};
use crate::tx::body::TxBody;

/// A handler for views: an async closure or function of a [`Delivery`], which may be called many times.
pub trait ViewHandler:
    for<'t> AsyncFn(Delivery<'t>) -> Result<()> + for<'t> TxBody<Delivery<'t>, Result<()>> + Send + Sync
{
}

impl<H> ViewHandler for H where
    H: for<'t> AsyncFn(Delivery<'t>) -> Result<()>
        + for<'t> TxBody<Delivery<'t>, Result<()>>
        + Send
        + Sync
{
}

/// A handler in a transaction, whatever its type.
pub(super) trait View: Send + Sync {
    /// Calls it.
    fn call<'t>(&'t self, delivery: Delivery<'t>) -> BoxFuture<'t, Result<()>>;
}

impl<H: ViewHandler> View for H {
    fn call<'t>(&'t self, delivery: Delivery<'t>) -> BoxFuture<'t, Result<()>> {
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
    consumer: &'c Consumer,
    handler: &'c dyn View,
    orders: Orders,
    /// What is stored.
    known: Progress,
    consumed: Consumed,
}

impl Projecting<'_> {
    /// Goes on from what is stored; `false` if somebody else has gone on meanwhile.
    async fn go_on(&mut self) -> Result<bool> {
        let consumer = self.consumer;
        self.known = consumer.progress().await?;
        let mut place = self.known.place;
        let mut reader = consumer.reader(place.checkpoint);
        loop {
            while let Some(batch) = reader.next().await? {
                for (chunk, to) in consumer.chunks(place, &batch.spans) {
                    if self.orders.is_stopped() {
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
            if !self.orders.follows || self.orders.is_stopped() {
                return Ok(true);
            }
            let poll = consumer.options.delivery.poll;
            let waited = consumer.store.db().timer().sleep(poll);
            self.orders.unless_stopped(waited).await;
        }
    }

    /// Commits a few events, and the place after them; `false` if somebody else has gone on.
    async fn step(&mut self, chunk: &Span, to: Place) -> Result<bool> {
        let (consumer, stream, range) = (self.consumer, &chunk.stream, chunk.start..chunk.end());
        let mut committed = Committed::Handled;
        if self.known.is_parked(stream) {
            committed = self.pass_by(chunk, to, None).await?;
        }
        if matches!(committed, Committed::Handled) {
            let is_patient = self.orders.is_patient;
            committed = match consumer.load(stream, range.clone(), is_patient).await {
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
                self.known = self.known.without_parked(stream).at(to);
            }
            Committed::Parked(reason) => {
                let text = reason.as_deref().unwrap_or_default();
                let parked = Parked::new(stream.clone(), range, text);
                self.known.place = to;
                self.known.park(parked.clone())?;
                if reason.is_some() {
                    let notice = Notice::Parked(consumer.partition, parked.clone());
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
                let mut stored = tx.stream_in::<Kept<Progress>>(&index, id).await?;
                if stored.state().place != from {
                    return Ok(Committed::Elsewhere);
                }
                let mut after = stored.state().at(to);
                if after.is_parked(stream) {
                    after.park(Parked::new(stream.clone(), chunk.start..chunk.end(), ""))?;
                    stored.append([Kept(after)])?;
                    return Ok(Committed::Parked(None));
                }
                let delivery = Delivery { tx, stream, events };
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
        let parked = Parked::new(stream.clone(), range, text);
        let decide = |stored: &Progress| {
            if stored.place != self.known.place {
                return Ok::<_, Error>((Committed::Elsewhere, None));
            }
            if reason.is_none() && !stored.is_parked(stream) {
                return Ok((Committed::Handled, None));
            }
            let mut after = stored.at(to);
            after.park(parked.clone())?;
            Ok((Committed::Parked(reason.clone()), Some(Kept(after))))
        };
        self.consumer.stored().transact(decide).await
    }

    /// Stores a place; `false` if the stored one is not the one that is known.
    async fn move_on(&mut self, to: Place) -> Result<bool> {
        let from = std::mem::replace(&mut self.known.place, to);
        let decide = |stored: &Progress| {
            let is_expected = stored.place == from;
            Ok::<_, Error>((is_expected, is_expected.then(|| Kept(stored.at(to)))))
        };
        self.consumer.stored().transact(decide).await
    }
}

impl Consumer {
    /// Commits the events of the partition, up to where the orders say.
    pub(super) async fn project(&self, handler: &dyn View, orders: Orders) -> Result<Consumed> {
        let is_patient = orders.is_patient;
        let mut run = Projecting {
            consumer: self,
            handler,
            orders,
            known: Progress::default(),
            consumed: Consumed::default(),
        };
        let mut retry = StoreRetry::new(self, is_patient);
        loop {
            let before = run.consumed.events;
            let went = run.go_on().await;
            if run.consumed.events > before {
                retry = StoreRetry::new(self, is_patient);
            }
            match went {
                Ok(true) => return Ok(run.consumed),
                Ok(false) => {}
                Err(error) => retry.outlast(error).await?,
            }
        }
    }

    /// The rest of a batch from a place in it, in pieces of which each is given to the handler at once; and the place
    /// after each.
    fn chunks(&self, place: Place, spans: &[Span]) -> Vec<(Span, Place)> {
        let mut chunks = Vec::new();
        for (spans, span) in (0_u64..).zip(spans) {
            let is_told = self.options.filter.lets_through(&span.stream);
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
    async fn call_in(&self, handler: &dyn View, delivery: Delivery<'_>) -> Result<()> {
        let called = async { handler.call(delivery).await };
        guard(Some(Timeout::of(self)), called).await?
    }

    /// Tries a parked stream again. Tells how many events are done, and what is parked of it now.
    pub(super) async fn commit_parked(
        &self,
        handler: &dyn View,
        known: &Parked,
    ) -> Result<(u64, Option<Parked>)> {
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
                let parked = Parked::new(known.stream.clone(), range, &error.to_string());
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
        let known = self.progress().await?;
        let known = known.parked_of(stream).filter(|known| known.index == from);
        let Some(known) = known.cloned() else {
            return Ok(None);
        };
        let end = from.saturating_add(self.options.events_max.max(1) as u64);
        let end = end.min(known.end);
        let events = self.load(stream, from..end, false).await?;
        let (index, id, events) = (self.store.feed_index(), &self.id, events.as_slice());
        let tried = Parked::new(stream.clone(), from..end, "");
        self.store
            .db()
            .transact(async |tx| {
                let mut stored = tx.stream_in::<Kept<Progress>>(&index, id).await?;
                let parked = stored.state().parked_of(stream);
                if parked.is_none_or(|parked| parked.index != from) {
                    return Ok(None);
                }
                let delivery = Delivery { tx, stream, events };
                self.call_in(handler, delivery).await?;
                let after = stored.state().retried(&tried, None);
                stored.append([Kept(after)])?;
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
    !of_all && !is_denied && !passes(error)
}
