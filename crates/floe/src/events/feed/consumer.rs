//! Consumers: a group reads the feed, and remembers how far it has come.
//!
//! A [`ConsumerGroup`] shares the partitions of the feed among its workers, by leases: run as many as you like, wherever
//! you like. A [`FeedConsumer`] is for one partition, without a lease. Both have two forms, by what the handler does:
//!
//! - `run` and `run_until_caught_up` are for effects elsewhere. Each stream has one handler at a time and gets its events
//!   in their order; many streams are handled at once, and a slow one does not hold the others. Events come at least
//!   once: what is stored is up to where everything is done, and whoever goes on is given the rest again.
//! - `run_exactly_once` is for views in this database. What the handler writes and how far it has come are one commit:
//!   events come exactly once, whoever else runs and whoever dies.
//!
//! A stream whose handler does not get on is parked after some tries, with all that comes for it later. The others go
//! on. ParkedStream streams are told by [`parked`](ConsumerGroup::parked), and tried again by
//! [`retry_parked`](ConsumerGroup::retry_parked). A handler that panics has failed a try, and so has one that takes longer
//! than its [timeout](ConsumerGroup::handler_timeout).
//!
//! # What is promised of two workers
//!
//! A worker that finds that its lease has run out drops its handlers. A worker that stalls for longer than its lease, as a
//! process may that is stopped or a machine that sleeps, finds out when it goes on; until then a handler of its may run
//! beside the one of who took over, for events of the same stream. It can do its effect, but not store that it is done:
//! progress is claimed by who takes over, and what others bring is refused. So progress never goes back, no event is
//! passed over, and an event may be handled twice, at worst at the same time. In the form for views, such a handler's
//! commit is refused as a whole.
//!
//! Handlers run in the task of the worker. What computes for long without waiting belongs elsewhere (`spawn_blocking`), or
//! the worker cannot say that it is alive.
//!
//! # What is stored
//!
//! In the index table: checkpoints in `$ReaderCheckpoint-<group>_<partition>`, dead letters in
//! `$ReaderDeadLetters-<group>_<partition>`, one item for each stream, members and leases in `$ReaderGroup-<group>`.
//!
//! ```
//! use floe::events::feed::{FeedConsumer, ViewTransaction, IndexerOptions, Partition};
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
//! async fn count(delivery: ViewTransaction<'_>) -> Result<(), Error> {
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
//! let view = FeedConsumer::new(store, "carts", Partition::FIRST);
//! assert_eq!(view.run_exactly_once(count).await?.events, 1);
//! assert_eq!(view.run_exactly_once(count).await?.events, 0);
//! # Ok(())
//! # }
//! ```

mod dead_letters;
mod deliver;
mod exactly_once;
mod group;
mod lease;
mod options;
mod progress;

use std::time::Duration;

use self::dead_letters::{CHANGES_MAX, DeadLetters};
use self::deliver::Handler;
use self::exactly_once::ViewHandler;
use self::group::Works;
pub use self::group::{ConsumerGroup, WorkerSummary};
use self::options::Options;
pub use self::options::WorkerNotice;
pub use self::progress::ParkedStream;
use self::progress::{ConsumerState, Place};
use super::checkpoint::Checkpoint;
use super::kept::Kept;
use super::lag::Lag;
use super::limits::BEAT_ATTEMPTS;
use super::log::TableLog;
use super::partition::Partition;
use super::reader::{Filter, Reader, behind};
use super::span::Span;
use crate::db::Db;
use crate::delivery::{self, Host, Members, RunContext, RunOutcome};
use crate::error::{Error, ErrorKind, Result};
use crate::events::feed::telemetry;
use crate::events::{EventStore, Load, Recorded, Stream, StreamName};
use crate::tx::Tx;

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
pub struct FeedSummary {
    /// How many events were handled.
    pub events: u64,
    /// Up to where the feed is done with.
    pub checkpoint: Checkpoint,
    /// The streams that were parked during this run.
    pub parked: Vec<ParkedStream>,
}

/// A reader of one partition of the feed that remembers how far it has come.
#[derive(Clone, Debug)]
pub struct FeedConsumer {
    store: EventStore,
    id: (String, u32),
    partition: Partition,
    options: Options,
}

impl FeedConsumer {
    /// The consumer of a partition for a group, whose name has no `_`.
    pub fn new(store: EventStore, group: impl Into<String>, partition: Partition) -> Self {
        ConsumerGroup::new(store, group).partition(partition)
    }

    setters! {
        /// Handles what the filter lets through alone. The rest counts as done.
        pub fn filter(filter: Filter) => options.filter = filter;

        /// Handles so many streams at once.
        pub const fn at_once_max(streams: usize) => options.delivery.concurrency_max = streams;

        /// Gives at most so many events to a handler, and so to a transaction.
        pub const fn events_max(events: usize) => options.events_max = events;

        /// Tries so often to get on with a stream.
        pub const fn tries_max(tries: u32) => options.delivery.attempts_max = tries;

        /// Timeout of a handler, for the events of one call. Default: 60 seconds.
        pub const fn handler_timeout(timeout: Duration) => options.delivery.handler_timeout = timeout;
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
    pub async fn parked(&self) -> Result<Vec<ParkedStream>> {
        self.dead_letters().await
    }

    /// How many events lie between what is done and the tail, and for how long the oldest of them has been in the feed.
    /// At the tail this takes two reads and a query of the dead letters; behind it, the index is read and no events.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn lag(&self) -> Result<Lag> {
        let progress = self.progress().await?;
        let (place, filter) = (progress.place, &self.options.filter);
        let (log, now) = (self.store.feed_log(), self.store.db().env().now());
        let count = |number, span: &Span| match (filter.matches(&span.stream), number) {
            (false, _) => 0,
            (true, None) => span.types.len() as u64,
            (true, Some(number)) => exactly_once::undone_events(place, number, span),
        };
        let mut lag = behind(&log, self.partition, place.checkpoint, now, count).await?;
        let letters = self.dead_letters_after(progress).await?;
        lag.parked = letters.iter().map(|letter| letter.end - letter.index).sum();
        telemetry::lag(&self.id.0, self.partition, &lag);
        Ok(lag)
    }

    /// Goes on from this place, whatever was done before: further back to handle events again, or ahead to pass over
    /// some. What is parked stays parked. Workers that run notice it and begin anew from there.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn move_to(&self, checkpoint: Checkpoint) -> Result<()> {
        let place = Place::before(checkpoint);
        let decide = |stored: &ConsumerState| Ok::<_, Error>([Kept(stored.moved(place))]);
        self.stored().transact(decide).await?;
        // Who waits at the tail stores nothing, and would not notice.
        let number = self.partition.number();
        let decide = |members: &Members| Ok::<_, Error>(members.restarted(number).map(Kept));
        members(&self.store, &self.id.0).transact(decide).await
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
    /// [`VersionConflict`](ErrorKind::VersionConflict) when another consumer of this group and partition has begun, or the
    /// checkpoint was moved: this one cannot store how far it has come. And as the store fails. What the handler fails
    /// with is told in [`FeedSummary::parked`] alone.
    pub async fn run_until_caught_up<H, F>(&self, handler: H) -> Result<FeedSummary>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Handler,
    {
        let (consumed, end) = self.deliver(&handler, RunContext::default()).await?;
        match end {
            RunOutcome::Completed => Ok(consumed),
            RunOutcome::Fenced => Err(self.fenced()),
        }
    }

    /// Tries parked streams again, up to where the feed was done with. Those that the handler gets on with are parked no
    /// more.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn retry_parked<H, F>(&self, handler: H) -> Result<FeedSummary>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Handler,
    {
        self.retry(Works::AtLeastOnce(&handler)).await
    }

    /// Gives everything up to the tail to the handler, each time in a transaction that also stores how far it has come.
    /// One stream after another, in the order of the feed. Any number may run: each event is handled in one commit.
    ///
    /// Do not use a group in both ways: what was handled at least once may be handled again.
    ///
    /// # Errors
    ///
    /// As the store fails, also for the handler. What else the handler returns is told in [`FeedSummary::parked`] alone.
    pub async fn run_exactly_once<H: ViewHandler>(&self, handler: H) -> Result<FeedSummary> {
        self.project(&handler, RunContext::default()).await
    }

    /// Tries parked streams again, each time in a transaction that also stores how far it has come: the events that were
    /// parked get into the view once, as all others. Those that the handler gets on with are parked no more.
    ///
    /// # Errors
    ///
    /// As the store fails, also for the handler.
    pub async fn retry_parked_exactly_once<H: ViewHandler>(
        &self,
        handler: H,
    ) -> Result<FeedSummary> {
        self.retry(Works::ExactlyOnce(&handler)).await
    }

    async fn retry(&self, works: Works<'_>) -> Result<FeedSummary> {
        let progress = self.progress().await?;
        let mut consumed = FeedSummary {
            checkpoint: progress.place.checkpoint,
            ..FeedSummary::default()
        };
        for known in self.dead_letters().await? {
            let (events, again) = match works {
                Works::AtLeastOnce(handler) => self.handle_parked(handler, &known).await?,
                Works::ExactlyOnce(view) => self.commit_parked(view, &known).await?,
            };
            consumed.events += events;
            consumed.parked.extend(again);
        }
        Ok(consumed)
    }

    /// A parked stream was tried again, and is parked again if it did not get on.
    async fn store_retried(
        &self,
        tried: &ParkedStream,
        again: Option<&ParkedStream>,
    ) -> Result<()> {
        let letters = self.letters();
        self.store
            .db()
            .transact(async |tx| {
                let Some(known) = letters.get_in(tx, &tried.stream).await? else {
                    return Ok::<_, Error>(());
                };
                let rest = known.after_retry(tried, again);
                if rest.as_ref() != Some(&known) {
                    letters.replace(tx, Some(&known), rest.as_ref())?;
                }
                Ok(())
            })
            .await
    }

    /// Reads all spans: the filter comes later, so that places do not depend on it.
    fn reader(&self, checkpoint: Checkpoint) -> Reader<TableLog> {
        Reader::new(self.store.feed_log(), self.partition, checkpoint)
    }

    async fn progress(&self) -> Result<ConsumerState> {
        self.stored().query(ConsumerState::clone).await
    }

    fn letters(&self) -> DeadLetters {
        DeadLetters::of(&self.store, &self.id)
    }

    /// All dead letters. Those that an earlier version stored with the checkpoint become items first.
    async fn dead_letters(&self) -> Result<Vec<ParkedStream>> {
        self.dead_letters_after(self.progress().await?).await
    }

    /// All dead letters, given the progress as just read.
    async fn dead_letters_after(&self, mut progress: ConsumerState) -> Result<Vec<ParkedStream>> {
        let (index, letters) = (self.store.feed_index(), self.letters());
        while !progress.embedded.is_empty() {
            let moved = self.store.db().transact(async |tx| {
                let id = &self.id;
                let mut stored = tx.stream_in::<Kept<ConsumerState>>(&index, id).await?;
                let mut after = stored.state().clone();
                let rest = after
                    .embedded
                    .split_off(CHANGES_MAX.min(after.embedded.len()));
                let moved = std::mem::replace(&mut after.embedded, rest);
                letters.add_in(tx, &moved).await?;
                stored.append([Kept(after)])?;
                Ok::<_, Error>(())
            });
            moved.await?;
            progress = self.progress().await?;
        }
        letters.list().await
    }

    fn stored(&self) -> Stream<Kept<ConsumerState>> {
        self.store.kept(&self.id)
    }

    fn fenced(&self) -> Error {
        let (group, partition) = &self.id;
        let message = format!(
            "another consumer has begun, or the checkpoint was moved: group={group} partition={partition}"
        );
        Error::new(ErrorKind::VersionConflict, message)
    }
}

/// The members of a group.
fn members(store: &EventStore, group: &str) -> Stream<Kept<Members>> {
    let index = store.feed_index();
    let options = index.options().clone().attempts_max(BEAT_ATTEMPTS);
    let index = store.db().event_store(options);
    index.stream(group).load(Load::RequireLeader)
}

impl Host for FeedConsumer {
    fn db(&self) -> &Db {
        self.store.db()
    }

    fn options(&self) -> &delivery::Options {
        &self.options.delivery
    }

    fn store_failed(&self, error: &Error, _: Duration) {
        telemetry::failed(&self.id.0, error);
        let (partition, error) = (Some(self.partition), error.clone());
        self.options
            .tell(&WorkerNotice::Failed { partition, error });
    }
}

/// Events of a stream, and the transaction that what they lead to is written in.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ViewTransaction<'t> {
    /// The transaction.
    pub tx: &'t Tx,
    /// The stream.
    pub stream: &'t StreamName,
    /// The events, in their order.
    pub events: &'t [Recorded],
}
