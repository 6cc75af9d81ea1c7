//! Consumers of the feed: groups whose workers share the partitions and store checkpoints.
//!
//! A [`ConsumerGroup`] shares the partitions of the feed among its workers by leases; its workers may run in any number
//! of processes. A [`FeedConsumer`] reads one partition without a lease. Both deliver events in one of two ways:
//!
//! - **At least once** (`run`, `run_until_caught_up`), for effects outside this database. The events of a stream are
//!   handled in order, one call at a time. Many streams are handled concurrently, and a slow one does not block the
//!   others. A checkpoint covers only events that were handled or are in a dead letter; after a crash, later events are
//!   delivered again.
//! - **Exactly once** (`run_exactly_once`), for views in this database. The handler's changes and the new position are
//!   one commit, so each event changes the view once, however many workers run or fail.
//!
//! # Dead letters
//!
//! A stream is parked when all attempts of its handler failed: the indexes of the events that are not handled are
//! stored as a dead letter, an item of its own. Later events of the stream extend the dead letter and are not handled.
//! Other streams continue. [`parked`](ConsumerGroup::parked) lists the dead letters, and
//! [`retry_parked`](ConsumerGroup::retry_parked) handles their events. A handler that panics or exceeds its
//! [timeout](ConsumerGroup::handler_timeout) has failed an attempt.
//!
//! # Concurrent workers
//!
//! A worker that finds that its lease has expired drops its handlers. A worker that stalls for longer than its lease,
//! in a stopped process or on a suspended machine, finds out only when it resumes. Until then, one of its handlers may
//! run concurrently with one of the new lease holder, for events of the same stream. The stale handler can have its
//! effect, but the stale worker cannot store a checkpoint: the new lease holder has claimed it, and writes under an
//! older term are rejected. So a worker never moves a checkpoint back, no event is skipped, and an event may be handled
//! twice, at worst concurrently. With exactly-once delivery, the commit of the stale handler is rejected as a whole.
//!
//! Handlers run in the worker's task. Long computations belong elsewhere (`spawn_blocking`): during one, the worker
//! sends no heartbeats.
//!
//! # Stored state
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
//! async fn count_items(delivery: ViewTransaction<'_>) -> Result<(), Error> {
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
//! assert_eq!(view.run_exactly_once(count_items).await?.events, 1);
//! assert_eq!(view.run_exactly_once(count_items).await?.events, 0);
//! # Ok(())
//! # }
//! ```

mod dead_letters;
mod deliver;
mod exactly_once;
mod group;
mod members;
mod notice;
mod options;
mod parked_stream;
mod state;

use std::time::Duration;

use self::dead_letters::{CHANGES_MAX, DeadLetters};
use self::deliver::Handler;
use self::exactly_once::ViewHandler;
use self::group::DeliveryMode;
pub use self::group::{ConsumerGroup, WorkerSummary};
pub use self::notice::WorkerNotice;
use self::options::Options;
pub use self::parked_stream::ParkedStream;
use self::state::{ConsumerState, FeedPosition};
use super::checkpoint::Checkpoint;
use super::lag::Lag;
use super::limits::HEARTBEAT_ATTEMPTS_MAX;
use super::log::TableLog;
use super::partition::Partition;
use super::reader::{Filter, Reader, lag_from};
use super::span::Span;
use super::stored_state::StateEvent;
use crate::db::Db;
use crate::delivery::{self, Host, Members, RunContext, RunOutcome};
use crate::error::{Error, ErrorKind, Result};
use crate::events::feed::telemetry;
use crate::events::{EventStore, Load, Recorded, Stream, StreamName};
use crate::tx::Tx;

/// Which events of a call a handler has handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// All events.
    All,
    /// No event. All are delivered again, and the attempt counts as failed.
    None,
    /// The events before this index. The others are delivered again.
    UpTo(u64),
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FeedSummary {
    /// Number of handled events.
    pub events: u64,
    /// The position up to which the partition is processed.
    pub checkpoint: Checkpoint,
    /// The dead letters that this run added.
    pub parked: Vec<ParkedStream>,
}

/// A consumer of one partition of the feed, with a stored checkpoint.
#[derive(Clone, Debug)]
pub struct FeedConsumer {
    store: EventStore,
    /// The name of the group, and the number of the partition.
    id: (String, u32),
    partition: Partition,
    options: Options,
}

impl FeedConsumer {
    /// Creates a consumer of a partition. The name of the group contains no `_`.
    pub fn new(store: EventStore, group: impl Into<String>, partition: Partition) -> Self {
        ConsumerGroup::new(store, group).partition(partition)
    }

    setters! {
        /// Handles only streams that match the filter. Events of other streams are skipped.
        pub fn filter(filter: Filter) => options.filter = filter;

        /// Maximum number of streams handled concurrently. Default: 16.
        pub const fn concurrency_max(streams: usize) => options.delivery.concurrency_max = streams;

        /// Maximum number of events per call of the handler, and so per transaction. Default: 100.
        pub const fn events_max(events: usize) => options.events_max = events;

        /// Maximum attempts without progress before a stream is parked. Default: 5.
        pub const fn attempts_max(attempts: u32) => options.delivery.attempts_max = attempts;

        /// Time limit of a handler, for the events of one call. Default: 60 seconds.
        pub const fn handler_timeout(timeout: Duration) => options.delivery.handler_timeout = timeout;
    }

    /// Returns the position up to which the partition is processed.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn checkpoint(&self) -> Result<Checkpoint> {
        Ok(self.state().await?.position.checkpoint)
    }

    /// Returns the dead letters of the partition, one for each parked stream.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn parked(&self) -> Result<Vec<ParkedStream>> {
        self.list_dead_letters().await
    }

    /// Returns the number of unprocessed events up to the tail, and how long the oldest of them has been in the feed.
    /// At the tail this takes two reads and a query of the dead letters; behind it, only epochs are read, no event
    /// bodies.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn lag(&self) -> Result<Lag> {
        let state = self.state().await?;
        let (position, filter) = (state.position, &self.options.filter);
        let (log, now) = (self.store.feed_log(), self.store.db().env().now());
        let count = |number, span: &Span| match number {
            _ if !filter.matches(&span.stream) => 0,
            None => span.types.len() as u64,
            Some(number) => position.remaining_events(number, span),
        };
        let mut lag = lag_from(&log, self.partition, position.checkpoint, now, count).await?;
        let letters = self.list_dead_letters_of(state).await?;
        lag.parked = letters.iter().map(|letter| letter.end - letter.index).sum();
        telemetry::lag(&self.id.0, self.partition, &lag);
        Ok(lag)
    }

    /// Moves the checkpoint: back to handle events again, or ahead to skip events. Dead letters stay. Running workers
    /// restart from the new checkpoint.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn move_to(&self, checkpoint: Checkpoint) -> Result<()> {
        let position = FeedPosition::before(checkpoint);
        let decide = |state: &ConsumerState| Ok::<_, Error>([StateEvent(state.moved(position))]);
        self.state_stream().transact(decide).await?;
        // A worker that is idle at the tail stores nothing, so it would not notice the new term of the checkpoint.
        let number = self.partition.number();
        let decide = |members: &Members| Ok::<_, Error>(members.restarted(number).map(StateEvent));
        let members = members_stream(&self.store, &self.id.0);
        members.transact(decide).await
    }

    /// Moves the checkpoint to the current end of the feed.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn move_to_tail(&self) -> Result<()> {
        let reader = Reader::at_tail(self.store.feed_log(), self.partition).await?;
        self.move_to(reader.checkpoint()).await
    }

    /// Passes all events up to the tail to the handler, many streams concurrently.
    ///
    /// # Errors
    ///
    /// [`VersionConflict`](ErrorKind::VersionConflict) if another consumer of this group and partition started, or the
    /// checkpoint was moved, so that this one cannot store its checkpoint; and failures of the store. Failures of the
    /// handler are only in [`FeedSummary::parked`].
    pub async fn run_until_caught_up<H, F>(&self, handler: H) -> Result<FeedSummary>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Handler,
    {
        let (summary, outcome) = self.deliver(&handler, RunContext::default()).await?;
        match outcome {
            RunOutcome::Completed => Ok(summary),
            RunOutcome::Fenced => Err(self.fenced_error()),
        }
    }

    /// Handles the events in the dead letters. Removes each dead letter whose events are all handled.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn retry_parked<H, F>(&self, handler: H) -> Result<FeedSummary>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Handler,
    {
        self.retry(DeliveryMode::AtLeastOnce(&handler)).await
    }

    /// Passes all events up to the tail to the handler, each call in a transaction that also stores the new position.
    /// Streams are handled one after another, in the order of the feed. Any number of these consumers may run: each
    /// event is handled in one commit.
    ///
    /// A group must use only one kind of delivery: events that were delivered at least once may be delivered again.
    ///
    /// # Errors
    ///
    /// Failures of the store, including those that the handler returns. Other failures of the handler are only in
    /// [`FeedSummary::parked`].
    pub async fn run_exactly_once<H: ViewHandler>(&self, handler: H) -> Result<FeedSummary> {
        self.project(&handler, RunContext::default()).await
    }

    /// Handles the events in the dead letters, each call in a transaction that also changes the dead letter, so that
    /// each event changes the view once. Removes each dead letter whose events are all handled.
    ///
    /// # Errors
    ///
    /// Failures of the store, including those that the handler returns.
    pub async fn retry_parked_exactly_once<H: ViewHandler>(
        &self,
        handler: H,
    ) -> Result<FeedSummary> {
        self.retry(DeliveryMode::ExactlyOnce(&handler)).await
    }

    async fn retry(&self, mode: DeliveryMode<'_>) -> Result<FeedSummary> {
        let state = self.state().await?;
        let mut summary = FeedSummary {
            checkpoint: state.position.checkpoint,
            ..FeedSummary::default()
        };
        for letter in self.list_dead_letters().await? {
            let (events, failed) = match mode {
                DeliveryMode::AtLeastOnce(handler) => {
                    self.retry_dead_letter(handler, &letter).await?
                }
                DeliveryMode::ExactlyOnce(handler) => {
                    self.retry_dead_letter_in_view(handler, &letter).await?
                }
            };
            summary.events += events;
            summary.parked.extend(failed);
        }
        Ok(summary)
    }

    /// Stores the result of a retry of a dead letter: the events that failed again, if any.
    async fn store_retry(
        &self,
        retried: &ParkedStream,
        failed: Option<&ParkedStream>,
    ) -> Result<()> {
        let letters = self.dead_letters();
        self.store
            .db()
            .transact(async |tx| {
                let Some(stored) = letters.get_in(tx, &retried.stream).await? else {
                    return Ok::<_, Error>(());
                };
                let rest = stored.after_retry(retried, failed);
                if rest.as_ref() != Some(&stored) {
                    letters.replace(tx, Some(&stored), rest.as_ref())?;
                }
                Ok(())
            })
            .await
    }

    /// A reader without the filter: positions count all spans, so that they do not depend on the filter.
    fn reader(&self, checkpoint: Checkpoint) -> Reader<TableLog> {
        Reader::new(self.store.feed_log(), self.partition, checkpoint)
    }

    async fn state(&self) -> Result<ConsumerState> {
        self.state_stream().query(ConsumerState::clone).await
    }

    fn dead_letters(&self) -> DeadLetters {
        DeadLetters::of(&self.store, &self.id)
    }

    /// Lists the dead letters. First converts those that an earlier version stored with the checkpoint into items.
    async fn list_dead_letters(&self) -> Result<Vec<ParkedStream>> {
        self.list_dead_letters_of(self.state().await?).await
    }

    /// As [`list_dead_letters`](Self::list_dead_letters), for a state that was just read.
    async fn list_dead_letters_of(&self, mut state: ConsumerState) -> Result<Vec<ParkedStream>> {
        let (index, letters) = (self.store.feed_index(), self.dead_letters());
        while !state.embedded.is_empty() {
            let converted = self.store.db().transact(async |tx| {
                let id = &self.id;
                let mut stored = tx
                    .stream_in::<StateEvent<ConsumerState>>(&index, id)
                    .await?;
                let mut after = stored.state().clone();
                let rest = after
                    .embedded
                    .split_off(CHANGES_MAX.min(after.embedded.len()));
                let converted = std::mem::replace(&mut after.embedded, rest);
                letters.add_in(tx, &converted).await?;
                stored.append([StateEvent(after)])?;
                Ok::<_, Error>(())
            });
            converted.await?;
            state = self.state().await?;
        }
        letters.list().await
    }

    fn state_stream(&self) -> Stream<StateEvent<ConsumerState>> {
        self.store.state_stream(&self.id)
    }

    fn fenced_error(&self) -> Error {
        let (group, partition) = &self.id;
        let message = format!(
            "the consumer was fenced, another one started or the checkpoint was moved: group={group} partition={partition}"
        );
        Error::new(ErrorKind::VersionConflict, message)
    }
}

/// The stream that stores the members of a group.
fn members_stream(store: &EventStore, group: &str) -> Stream<StateEvent<Members>> {
    let index = store.feed_index();
    let options = index.options().clone();
    let options = options.attempts_max(HEARTBEAT_ATTEMPTS_MAX);
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
            .notify(&WorkerNotice::Failed { partition, error });
    }
}

/// Events of a stream, and the transaction in which the handler changes the view.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ViewTransaction<'t> {
    /// The transaction.
    pub tx: &'t Tx,
    /// The stream.
    pub stream: &'t StreamName,
    /// The events, in order.
    pub events: &'t [Recorded],
}
