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
use super::{Consumed, Consumer, Delivery, Notice, Ran};
use crate::delivery::{Attempts, End, Orders, StoreRetry, Timeout, guard, passes};
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

/// Events to commit, and the place before and after them.
struct Step {
    chunk: Span,
    from: Place,
    to: Place,
}

impl Consumer {
    /// Commits the events of the partition, up to where the orders say.
    pub(super) async fn project(&self, handler: &dyn View, orders: Orders) -> Result<Ran> {
        let mut consumed = Consumed::default();
        let mut retry = StoreRetry::new(self, orders.is_patient);
        loop {
            let before = consumed.events;
            let went = self.project_on(handler, &orders, &mut consumed).await;
            if consumed.events > before {
                retry = StoreRetry::new(self, orders.is_patient);
            }
            match went {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) => retry.outlast(error).await?,
            }
        }
        Ok(Ran {
            consumed,
            end: End::Done,
        })
    }

    /// Goes on from what is stored; `false` if somebody else has gone on meanwhile.
    async fn project_on(
        &self,
        handler: &dyn View,
        orders: &Orders,
        consumed: &mut Consumed,
    ) -> Result<bool> {
        let mut known = self.progress().await?;
        let mut place = known.place;
        let mut reader = self.reader(place.checkpoint);
        loop {
            while let Some(batch) = reader.next().await? {
                for (chunk, to) in self.chunks(place, &batch.spans) {
                    if orders.is_stopped() {
                        consumed.checkpoint = known.place.checkpoint;
                        return Ok(true);
                    }
                    let from = known.place;
                    let step = Step { chunk, from, to };
                    if !self
                        .step(handler, orders, &step, &mut known, consumed)
                        .await?
                    {
                        return Ok(false);
                    }
                }
                place = Place::before(batch.checkpoint);
            }
            if known.place != place {
                if !self.move_on(known.place, place).await? {
                    return Ok(false);
                }
                known.place = place;
            }
            consumed.checkpoint = place.checkpoint;
            if !orders.follows || orders.is_stopped() {
                return Ok(true);
            }
            let waited = self.store.db().timer().sleep(self.options.delivery.poll);
            orders.unless_stopped(waited).await;
        }
    }

    /// Commits a few events; `false` if somebody else has gone on.
    async fn step(
        &self,
        handler: &dyn View,
        orders: &Orders,
        step: &Step,
        known: &mut Progress,
        consumed: &mut Consumed,
    ) -> Result<bool> {
        let (stream, range) = (&step.chunk.stream, step.chunk.start..step.chunk.end());
        let mut committed = Committed::Handled;
        if known.is_parked(stream) {
            committed = self.pass_by(step, None).await?;
        }
        if matches!(committed, Committed::Handled) {
            committed = match self.load(stream, range.clone(), orders.is_patient).await {
                Ok(events) => self.commit(handler, step, &events).await?,
                Err(error) if is_of_stream(&error) => {
                    self.pass_by(step, Some(error.to_string())).await?
                }
                Err(error) => return Err(error),
            };
        }
        match committed {
            Committed::Elsewhere => return Ok(false),
            Committed::Handled => {
                consumed.events += step.chunk.types.len() as u64;
                *known = known.without_parked(stream).at(step.to);
            }
            Committed::Parked(reason) => {
                let parked =
                    Parked::new(stream.clone(), range, reason.as_deref().unwrap_or_default());
                *known = known.at(step.to);
                known.park(parked.clone())?;
                if reason.is_some() {
                    self.options
                        .tell(&Notice::Parked(self.partition, parked.clone()));
                    consumed.parked.push(parked);
                }
            }
        }
        Ok(true)
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

    /// Commits what the handler makes of events, with the place after them. Parks them if it does not get on.
    async fn commit(
        &self,
        handler: &dyn View,
        step: &Step,
        events: &[Recorded],
    ) -> Result<Committed> {
        let (index, id, chunk) = (self.store.feed_index(), &self.id, &step.chunk);
        let stream = &chunk.stream;
        let mut attempts = Attempts::new(self);
        loop {
            let committed = self.store.db().transact(async |tx| {
                let mut stored = tx.stream_in::<Kept<Progress>>(&index, id).await?;
                if stored.state().place != step.from {
                    return Ok(Committed::Elsewhere);
                }
                let mut after = stored.state().at(step.to);
                if after.is_parked(stream) {
                    after.park(Parked::new(stream.clone(), chunk.start..chunk.end(), ""))?;
                    stored.append([Kept(after)])?;
                    return Ok(Committed::Parked(None));
                }
                let delivery = Delivery { tx, stream, events };
                self.call_in(handler, delivery).await?;
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
                return self.pass_by(step, Some(error.to_string())).await;
            } else {
                return Err(error);
            }
        }
    }

    /// Calls the handler in a transaction.
    async fn call_in(&self, handler: &dyn View, delivery: Delivery<'_>) -> Result<()> {
        let called = async { handler.call(delivery).await };
        guard(Some(Timeout::of(self)), called).await?
    }

    /// Parks events: because of a reason, or else because their stream is parked, if it still is.
    async fn pass_by(&self, step: &Step, reason: Option<String>) -> Result<Committed> {
        let (stream, range) = (&step.chunk.stream, step.chunk.start..step.chunk.end());
        let text = reason.as_deref().unwrap_or_default();
        let parked = Parked::new(stream.clone(), range, text);
        let decide = |stored: &Progress| {
            if stored.place != step.from {
                return Ok::<_, Error>((Committed::Elsewhere, None));
            }
            if reason.is_none() && !stored.is_parked(stream) {
                return Ok((Committed::Handled, None));
            }
            let mut after = stored.at(step.to);
            after.park(parked.clone())?;
            Ok((Committed::Parked(reason.clone()), Some(Kept(after))))
        };
        self.stored().transact(decide).await
    }

    /// Stores a place; `false` if the stored one is not the one that was expected.
    async fn move_on(&self, from: Place, to: Place) -> Result<bool> {
        let decide = |stored: &Progress| {
            let is_expected = stored.place == from;
            Ok::<_, Error>((is_expected, is_expected.then(|| Kept(stored.at(to)))))
        };
        self.stored().transact(decide).await
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
