//! Consumers: a group reads the feed of a partition, and remembers how far it has come.
//!
//! Two forms, by what the handler does:
//!
//! - [`run_until_caught_up`](Consumer::run_until_caught_up) is for effects elsewhere. Each stream has one handler at a
//!   time, many streams are handled at once, and the checkpoint is stored after each batch: events come at least once.
//!   A stream whose handler does not get on is parked, with all that comes for it later, and the others go on. One may
//!   run for a group and a partition at a time: nothing here keeps two apart.
//! - [`run_exactly_once`](Consumer::run_exactly_once) is for views in this database. What the handler writes and how
//!   far it has come are one commit: events come exactly once, whoever else runs and whoever dies.
//!
//! The checkpoint is the stream `$ReaderCheckpoint-<group>_<partition>` of the index table.
//!
//! ```
//! use floe::events::feed::{Consumer, Delivery, IndexerOptions, Partition};
//! use floe::events::{EventData, Expected, StreamName};
//! use floe::{Db, Error, Model};
//!
//! #[derive(Model)]
//! struct Cart {
//!     #[model(key)]
//!     stream: String,
//!     items: u32,
//! }
//!
//! async fn count(delivery: Delivery<'_>) -> Result<(), Error> {
//!     let cart = Cart { stream: delivery.stream.to_string(), items: 0 };
//!     let mut cart = delivery.tx.get_or_create(cart).await?;
//!     for _ in delivery.events {
//!         cart.items += 1;
//!     }
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let db = Db::memory()?;
//! db.ensure_tables(&[Cart::SCHEMA]).await?;
//! let store = db.events();
//! store.ensure_table().await?;
//! store.ensure_feed().await?;
//! let cart = StreamName::new("Cart", "7")?;
//! store.append(&cart, Expected::New, [EventData::new("ItemAdded", "{}")]).await?;
//! store.indexer(IndexerOptions::new())?.run_until_caught_up().await?;
//!
//! let view = Consumer::new(store, "carts", Partition::FIRST);
//! assert_eq!(view.run_exactly_once(count).await?.events, 1);
//! assert_eq!(view.run_exactly_once(count).await?.events, 0);
//! # Ok(())
//! # }
//! ```

mod progress;

use std::cmp::Ordering;
use std::fmt;
use std::future::Future;
use std::ops::Range;

use floe_store::BoxFuture;

pub use self::progress::Parked;
use self::progress::{Place, Progress, ReaderCheckpoint};
use super::checkpoint::Checkpoint;
use super::limits::{HANDLED_AT_ONCE, STREAMS_AT_ONCE, TRIES_MAX};
use super::log::TableLog;
use super::partition::Partition;
use super::reader::{FeedBatch, Filter, Reader};
use super::side_by_side;
use super::span::Span;
use super::subscription::load_between;
use crate::error::{Error, Result};
use crate::events::{EventStore, Load, Recorded, Stream, StreamName};
use crate::tx::Tx;
use crate::tx::backoff::Backoff;
use crate::tx::body::TxBody;

/// How far a handler has come with the events that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// All of them are done.
    All,
    /// None is. They are given again.
    None,
    /// Those before this index are. The others are given again.
    UpTo(u64),
}

/// What a consumer has done.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Consumed {
    /// How many events were handled.
    pub events: u64,
    /// Up to where the feed is done with.
    pub checkpoint: Checkpoint,
    /// The streams that were parked during this run.
    pub parked: Vec<Parked>,
}

/// A reader of the feed that remembers how far it has come.
#[derive(Clone, Debug)]
pub struct Consumer {
    store: EventStore,
    id: (String, u32),
    partition: Partition,
    filter: Filter,
    at_once_max: usize,
    events_max: usize,
    tries_max: u32,
}

impl Consumer {
    /// The consumer of a partition for a group, whose name has no `_`.
    pub fn new(store: EventStore, group: impl Into<String>, partition: Partition) -> Self {
        Self {
            store,
            id: (group.into(), partition.number()),
            partition,
            filter: Filter::default(),
            at_once_max: STREAMS_AT_ONCE,
            events_max: HANDLED_AT_ONCE,
            tries_max: TRIES_MAX,
        }
    }

    /// Handles what the filter lets through alone. The rest counts as done.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Self {
        self.filter = filter;
        self
    }

    /// Handles so many streams at once.
    #[must_use]
    pub const fn at_once_max(mut self, streams: usize) -> Self {
        self.at_once_max = streams;
        self
    }

    /// Gives at most so many events to a handler, and so to a transaction.
    #[must_use]
    pub const fn events_max(mut self, events: usize) -> Self {
        self.events_max = events;
        self
    }

    /// Tries so often to get on with a stream.
    #[must_use]
    pub const fn tries_max(mut self, tries: u32) -> Self {
        self.tries_max = tries;
        self
    }

    /// Up to where the feed is done with.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn checkpoint(&self) -> Result<Checkpoint> {
        Ok(self.progress().await?.place.checkpoint)
    }

    /// The streams that are parked.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn parked(&self) -> Result<Vec<Parked>> {
        Ok(self.progress().await?.parked())
    }

    /// Goes on from this place, whatever was done before: further back to handle events again, or ahead to pass over
    /// some. What is parked stays parked.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn move_to(&self, checkpoint: Checkpoint) -> Result<()> {
        let place = Place::before(checkpoint);
        let decide = |stored: &Progress| Ok::<_, Error>([stored.at(place)]);
        self.stored().transact(decide).await
    }

    /// Goes on from where the feed ends now.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn move_to_tail(&self) -> Result<()> {
        let reader = Reader::at_tail(self.store.feed_log(), self.partition).await?;
        self.move_to(reader.checkpoint()).await
    }

    /// Gives everything up to the tail to the handler, a stream at a time to each of several calls.
    ///
    /// # Errors
    ///
    /// As the store fails. What the handler fails with is told in [`Consumed::parked`] alone.
    pub async fn run_until_caught_up<H, F, E>(&self, handler: H) -> Result<Consumed>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Send + Sync,
        F: Future<Output = Result<Handled, E>> + Send,
        E: fmt::Display + Send,
    {
        let mut known = self.progress().await?;
        let mut consumed = Consumed::default();
        let mut reader = self.reader(known.place.checkpoint);
        while let Some(FeedBatch { checkpoint, spans }) = reader.next().await? {
            let spans = spans.iter();
            let wanted = spans.filter(|span| self.filter.lets_through(&span.stream));
            let (passed_by, given): (Vec<&Span>, Vec<&Span>) =
                wanted.partition(|span| known.is_parked(&span.stream));
            let mut handled: Vec<BoxFuture<'_, Result<_>>> = Vec::new();
            for span in given {
                let range = span.start..span.end();
                handled.push(Box::pin(self.handle(&span.stream, range, &handler)));
            }
            let mut parked = Vec::new();
            for handled in side_by_side::all(self.at_once_max, handled).await {
                let (events, not_handled) = handled?;
                consumed.events += events;
                parked.extend(not_handled);
            }
            let decide = |stored: &Progress| {
                let mut after = stored.at(Place::before(checkpoint));
                parked.iter().for_each(|parked| after.park(parked));
                for span in &passed_by {
                    after.pass_by(&span.stream, span.end());
                }
                Ok::<_, Error>((after.clone(), [after]))
            };
            known = self.stored().transact(decide).await?;
            consumed.parked.extend(parked);
        }
        consumed.checkpoint = known.place.checkpoint;
        Ok(consumed)
    }

    /// Tries parked streams again, up to where the feed was done with. Those that the handler gets on with are parked no
    /// more.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn retry_parked<H, F, E>(&self, handler: H) -> Result<Consumed>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Send + Sync,
        F: Future<Output = Result<Handled, E>> + Send,
        E: fmt::Display + Send,
    {
        let progress = self.progress().await?;
        let mut consumed = Consumed {
            checkpoint: progress.place.checkpoint,
            ..Consumed::default()
        };
        for known in progress.parked() {
            let handled = self.handle(&known.stream, known.index..known.end, &handler);
            let (events, parked) = handled.await?;
            consumed.events += events;
            let decide =
                |stored: &Progress| Ok::<_, Error>([stored.retried(&known, parked.as_ref())]);
            self.stored().transact(decide).await?;
            consumed.parked.extend(parked);
        }
        Ok(consumed)
    }

    /// Gives everything up to the tail to the handler, each time in a transaction that also stores how far it has come.
    /// One stream after another, in the order of the feed. Any number may run: each event is handled in one commit.
    ///
    /// Do not use a group in both ways: what is parked by the other is not known here.
    ///
    /// # Errors
    ///
    /// What the handler returns, once it has failed too often: nothing is passed over here. And as the store fails.
    pub async fn run_exactly_once<H>(&self, handler: H) -> Result<Consumed>
    where
        H: for<'t> AsyncFn(Delivery<'t>) -> Result<()>
            + for<'t> TxBody<Delivery<'t>, Result<()>>
            + Send
            + Sync,
    {
        let mut consumed = Consumed::default();
        'from_stored: loop {
            let mut stored = self.progress().await?.place;
            let mut place = stored;
            let mut reader = self.reader(stored.checkpoint);
            while let Some(batch) = reader.next().await? {
                for (chunk, after) in self.chunks(place, &batch.spans) {
                    if !self.commit(&handler, &chunk, stored, after).await? {
                        // Somebody else has gone on.
                        continue 'from_stored;
                    }
                    consumed.events += chunk.types.len() as u64;
                    stored = after;
                }
                place = Place::before(batch.checkpoint);
            }
            if stored != place && !self.move_on(stored, place).await? {
                continue;
            }
            consumed.checkpoint = place.checkpoint;
            return Ok(consumed);
        }
    }

    /// The rest of a batch from a place in it, in pieces of which each is given to the handler at once; and the place
    /// after each.
    fn chunks(&self, place: Place, spans: &[Span]) -> Vec<(Span, Place)> {
        let mut chunks = Vec::new();
        for (spans, span) in (0_u64..).zip(spans) {
            let index = match spans.cmp(&place.spans) {
                Ordering::Less => continue,
                Ordering::Equal => place.index,
                Ordering::Greater => 0,
            };
            let is_told = self.filter.lets_through(&span.stream);
            let mut rest = span.clone().from_index(index).filter(|_| is_told);
            while let Some(span) = rest {
                let mut chunk = span.clone();
                chunk.types.truncate(self.events_max.max(1));
                rest = span.from_index(chunk.end());
                let (spans, index) = match rest {
                    Some(_) => (spans, chunk.end()),
                    None => (spans + 1, 0),
                };
                chunks.push((
                    chunk,
                    Place {
                        spans,
                        index,
                        ..place
                    },
                ));
            }
        }
        chunks
    }

    /// Commits what the handler makes of events, with the place after them; `false` if the stored place is not the one
    /// that was expected.
    async fn commit<H>(&self, handler: &H, chunk: &Span, from: Place, to: Place) -> Result<bool>
    where
        H: for<'t> TxBody<Delivery<'t>, Result<()>> + Send + Sync,
    {
        let (index, id, stream) = (self.store.feed_index(), &self.id, &chunk.stream);
        let events = load_between(&self.store, stream, chunk.start..chunk.end()).await?;
        let events = events.as_slice();
        let mut tries = 0;
        loop {
            let committed = self.store.db().transact(async |tx| {
                let mut stored = tx.stream_in::<ReaderCheckpoint>(&index, id).await?;
                if stored.state().place != from {
                    return Ok(false);
                }
                let delivery = Delivery { tx, stream, events };
                TxBody::call(handler, delivery).await?;
                let after = stored.state().at(to);
                stored.append([after])?;
                Ok::<_, Error>(true)
            });
            match committed.await {
                Err(_) if tries + 1 < self.tries_max => {
                    tries += 1;
                    self.pause(tries).await;
                }
                committed => return committed,
            }
        }
    }

    /// Stores a place; `false` if the stored one is not the one that was expected.
    async fn move_on(&self, from: Place, to: Place) -> Result<bool> {
        let decide = |stored: &Progress| {
            let is_expected = stored.place == from;
            Ok::<_, Error>((is_expected, is_expected.then(|| stored.at(to))))
        };
        self.stored().transact(decide).await
    }

    /// Gives events of a stream to the handler until they are done, or it does not get on. Tells how many are done.
    async fn handle<H, F, E>(
        &self,
        stream: &StreamName,
        mut range: Range<u64>,
        handler: &H,
    ) -> Result<(u64, Option<Parked>)>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Send + Sync,
        F: Future<Output = Result<Handled, E>> + Send,
        E: fmt::Display + Send,
    {
        let (start, mut tries) = (range.start, 0);
        while !range.is_empty() {
            let end = range.start.saturating_add(self.events_max.max(1) as u64);
            let chunk = range.start..end.min(range.end);
            let events = load_between(&self.store, stream, chunk.clone()).await?;
            let (done, reason) = match handler(stream.clone(), events).await {
                Ok(Handled::All) => (chunk.end, None),
                Ok(Handled::UpTo(index)) => (index.clamp(chunk.start, chunk.end), None),
                Ok(Handled::None) => (chunk.start, None),
                Err(error) => (chunk.start, Some(error.to_string())),
            };
            tries = if done > range.start { 0 } else { tries + 1 };
            range.start = done;
            if tries >= self.tries_max {
                let parked = Parked {
                    stream: stream.clone(),
                    index: range.start,
                    end: range.end,
                    reason: reason.unwrap_or_else(|| "nothing was handled".to_owned()),
                };
                return Ok((range.start - start, Some(parked)));
            }
            if tries > 0 {
                self.pause(tries).await;
            }
        }
        Ok((range.start - start, None))
    }

    async fn pause(&self, tries: u32) {
        let db = self.store.db();
        let pause = Backoff::default().pause(tries, db.env().next_u64());
        db.timer().sleep(pause).await;
    }

    /// Reads all spans: the filter comes later, so that places do not depend on it.
    fn reader(&self, checkpoint: Checkpoint) -> Reader<TableLog> {
        Reader::new(self.store.feed_log(), self.partition, checkpoint)
    }

    async fn progress(&self) -> Result<Progress> {
        self.stored().query(Progress::clone).await
    }

    fn stored(&self) -> Stream<ReaderCheckpoint> {
        let stored = self.store.feed_index().stream::<ReaderCheckpoint>(&self.id);
        stored.load(Load::RequireLeader)
    }
}

/// Events of a stream, and the transaction that what they lead to is written in.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Delivery<'t> {
    /// The transaction.
    pub tx: &'t Tx,
    /// The stream.
    pub stream: &'t StreamName,
    /// The events, in their order.
    pub events: &'t [Recorded],
}
