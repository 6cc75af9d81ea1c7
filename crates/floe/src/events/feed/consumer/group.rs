//! Groups: workers that share the partitions of the feed.

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use floe_store::BoxFuture;

use super::deliver::Handler;
use super::exactly_once::{DynViewHandler, ViewHandler};
use super::options::Options;
use super::{FeedConsumer, FeedSummary, ParkedStream, WorkerNotice, members_stream};
use crate::db::Db;
use crate::delivery::{
    self, Group, GroupState, Heartbeat, Host, LeaseNotice, Members, RunContext, RunOutcome, Worker,
};
use crate::error::{Error, Result};
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::feed::lag::Lag;
use crate::events::feed::partition::{Partition, Partitions};
use crate::events::feed::reader::Filter;
use crate::events::feed::stored_state::StateEvent;
use crate::events::feed::telemetry;
use crate::events::{EventStore, Recorded, Stream, StreamName};
use crate::lock::{into_inner, lock};

impl EventStore {
    /// Creates a group of consumers of this store's feed. Its name contains no `_`.
    ///
    /// ```
    /// use floe::events::feed::{Handled, IndexerOptions};
    /// use floe::events::{EventData, Expected, Recorded, StreamName};
    /// use floe::{Db, Error};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let store = Db::memory()?.events();
    /// store.ensure_table().await?;
    /// store.ensure_feed().await?;
    /// let cart = StreamName::new("Cart", "7")?;
    /// store.append(&cart, Expected::New, [EventData::new("ItemAdded", "{}")]).await?;
    /// store.indexer(IndexerOptions::new())?.run_until_caught_up().await?;
    ///
    /// let mail = store.consumers("mail");
    /// let summary = mail
    ///     .run_until_caught_up(async |stream: StreamName, events: Vec<Recorded>| {
    ///         println!("{stream}: {} events", events.len());
    ///         Ok::<_, Error>(Handled::All)
    ///     })
    ///     .await?;
    /// assert_eq!(summary.events, 1);
    /// assert_eq!(mail.lag().await?.events, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn consumers(&self, group: impl Into<String>) -> ConsumerGroup {
        ConsumerGroup::new(self.clone(), group)
    }
}

/// Consumers that share the partitions of the feed: see [`EventStore::consumers`].
///
/// Each call of `run` is a worker. The workers of a group, in any number of processes, acquire leases of partitions, so
/// that each worker has its fair share and each partition has one worker.
#[derive(Clone, Debug)]
pub struct ConsumerGroup {
    pub(super) store: EventStore,
    pub(super) name: String,
    pub(super) options: Options,
}

/// The result of a worker.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WorkerSummary {
    /// Number of handled events, without those of partitions that it lost.
    pub events: u64,
    /// The position up to which each of its partitions is processed.
    pub checkpoints: BTreeMap<Partition, Checkpoint>,
    /// The dead letters that this run added.
    pub parked: Vec<ParkedStream>,
}

impl ConsumerGroup {
    pub(super) fn new(store: EventStore, name: impl Into<String>) -> Self {
        Self {
            store,
            name: name.into(),
            options: Options::default(),
        }
    }

    setters! {
        /// Handles only streams that match the filter. Events of other streams are skipped.
        pub fn filter(filter: Filter) => options.filter = filter;

        /// Maximum number of streams of a partition handled concurrently. Default: 16.
        pub const fn concurrency_max(streams: usize) => options.delivery.concurrency_max = streams;

        /// Maximum number of events per call of the handler, and so per transaction. Default: 100.
        pub const fn events_max(events: usize) => options.events_max = events;

        /// Maximum attempts without progress before a stream is parked. Default: 5.
        pub const fn attempts_max(attempts: u32) => options.delivery.attempts_max = attempts;

        /// Time limit of a handler, for the events of one call. Default: 60 seconds. A handler that exceeds it is
        /// dropped, which fails the attempt; until then it blocks only its stream, or with exactly-once delivery its
        /// partition.
        pub const fn handler_timeout(timeout: Duration) => options.delivery.handler_timeout = timeout;

        /// Pause at the tail before the next read. Default: 250 milliseconds.
        pub const fn poll(pause: Duration) => options.delivery.poll = pause;

        /// Time without a heartbeat after which other workers take over the partitions of a worker. Default: 10
        /// seconds. A worker sends four heartbeats in this time. Use the same value for all workers of a group.
        pub const fn lease(lease: Duration) => options.delivery.lease = lease;

        /// Time for running handlers to finish when a worker stops or releases a partition. Default: 5 seconds. After
        /// that they are dropped, and their events are delivered again.
        pub const fn grace(grace: Duration) => options.delivery.grace = grace;

        /// Calls this function with notices while a worker runs.
        pub fn on_notice(listener: impl Fn(&WorkerNotice) + Send + Sync + 'static) =>
            options.on_notice.0 = Some(Arc::new(listener));
    }

    /// Creates a consumer of one partition, without a lease.
    pub fn partition(&self, partition: Partition) -> FeedConsumer {
        FeedConsumer {
            store: self.store.clone(),
            id: (self.name.clone(), partition.number()),
            partition,
            options: self.options.clone(),
        }
    }

    /// Runs a worker until `stop` completes: acquires its share of the partitions, passes their events to the handler,
    /// and follows the tail. Retries while the store fails, and reports it by [notices](Self::on_notice). After `stop`,
    /// waits for running handlers, stores checkpoints, and releases its partitions.
    ///
    /// If the future is dropped instead, nothing is lost: other workers continue after the lease has expired.
    ///
    /// # Errors
    ///
    /// Permanent failures: [`Table`](crate::ErrorKind::Table) if a table is missing,
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) if the lease is too short, [`Store`](crate::ErrorKind::Store) if
    /// the store rejects a request.
    pub async fn run<H, F>(
        &self,
        stop: impl Future<Output = ()> + Send,
        handler: H,
    ) -> Result<WorkerSummary>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Handler,
    {
        self.work(DeliveryMode::AtLeastOnce(&handler), true, Box::pin(stop))
            .await
    }

    /// Passes all events up to the tail to the handler, in all partitions that no other worker holds. If another worker
    /// sends no heartbeats, waits until its lease has expired and takes over its partitions.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run), and transient failures of the store.
    pub async fn run_until_caught_up<H, F>(&self, handler: H) -> Result<WorkerSummary>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Handler,
    {
        let mode = DeliveryMode::AtLeastOnce(&handler);
        self.work(mode, false, Box::pin(pending())).await
    }

    /// As [`run`](Self::run), but each call of the handler is in a transaction that also stores the new position.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run).
    pub async fn run_exactly_once<H: ViewHandler>(
        &self,
        stop: impl Future<Output = ()> + Send,
        handler: H,
    ) -> Result<WorkerSummary> {
        self.work(DeliveryMode::ExactlyOnce(&handler), true, Box::pin(stop))
            .await
    }

    /// As [`run_until_caught_up`](Self::run_until_caught_up), but each call of the handler is in a transaction that
    /// also stores the new position.
    ///
    /// # Errors
    ///
    /// As for [`run_until_caught_up`](Self::run_until_caught_up).
    pub async fn run_exactly_once_until_caught_up<H: ViewHandler>(
        &self,
        handler: H,
    ) -> Result<WorkerSummary> {
        let mode = DeliveryMode::ExactlyOnce(&handler);
        self.work(mode, false, Box::pin(pending())).await
    }

    async fn work(
        &self,
        mode: DeliveryMode<'_>,
        follows: bool,
        stop: BoxFuture<'_, ()>,
    ) -> Result<WorkerSummary> {
        let worker_group = WorkerGroup {
            group: self,
            mode,
            partitions: OnceLock::new(),
            summary: Mutex::default(),
        };
        let worker = Worker::new(&worker_group, follows, follows)?;
        worker.run(stop).await?;
        Ok(into_inner(worker_group.summary))
    }

    /// Handles the events in the dead letters of all partitions. Removes each dead letter whose events are all handled.
    /// Workers may run concurrently.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn retry_parked<H, F>(&self, handler: H) -> Result<WorkerSummary>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Handler,
    {
        self.retry(DeliveryMode::AtLeastOnce(&handler)).await
    }

    /// As [`retry_parked`](Self::retry_parked), but each call of the handler is in a transaction that also changes the
    /// dead letter.
    ///
    /// # Errors
    ///
    /// Failures of the store, including those that the handler returns.
    pub async fn retry_parked_exactly_once<H: ViewHandler>(
        &self,
        handler: H,
    ) -> Result<WorkerSummary> {
        self.retry(DeliveryMode::ExactlyOnce(&handler)).await
    }

    async fn retry(&self, mode: DeliveryMode<'_>) -> Result<WorkerSummary> {
        let mut summary = WorkerSummary::default();
        for consumer in self.partition_consumers().await? {
            summary.add(consumer.partition, consumer.retry(mode).await?);
        }
        Ok(summary)
    }

    /// Returns the position up to which each partition is processed.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn checkpoints(&self) -> Result<BTreeMap<Partition, Checkpoint>> {
        let mut checkpoints = BTreeMap::new();
        for consumer in self.partition_consumers().await? {
            checkpoints.insert(consumer.partition, consumer.checkpoint().await?);
        }
        Ok(checkpoints)
    }

    /// Returns the dead letters of all partitions, one for each parked stream.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn parked(&self) -> Result<Vec<ParkedStream>> {
        let mut parked = Vec::new();
        for consumer in self.partition_consumers().await? {
            parked.extend(consumer.parked().await?);
        }
        Ok(parked)
    }

    /// Returns the number of unprocessed events in all partitions, and the age of the oldest. At the tail this takes
    /// two reads and a query of the dead letters for each partition.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn lag(&self) -> Result<Lag> {
        let mut lag = Lag::default();
        for consumer in self.partition_consumers().await? {
            lag.add(consumer.lag().await?);
        }
        Ok(lag)
    }

    /// Moves the checkpoint of a partition: see [`FeedConsumer::move_to`].
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn move_to(&self, partition: Partition, checkpoint: Checkpoint) -> Result<()> {
        self.partition(partition).move_to(checkpoint).await
    }

    /// The consumers of all partitions; none if the feed has not started.
    async fn partition_consumers(&self) -> Result<Vec<FeedConsumer>> {
        let partitions = self.store.feed_partitions().await?;
        let partitions = partitions.iter().flat_map(|partitions| partitions.all());
        Ok(partitions
            .map(|partition| self.partition(partition))
            .collect())
    }
}

impl WorkerSummary {
    pub(super) fn add(&mut self, partition: Partition, summary: FeedSummary) {
        self.events += summary.events;
        self.parked.extend(summary.parked);
        self.checkpoints.insert(partition, summary.checkpoint);
    }
}

impl Host for ConsumerGroup {
    fn db(&self) -> &Db {
        self.store.db()
    }

    fn options(&self) -> &delivery::Options {
        &self.options.delivery
    }

    fn store_failed(&self, error: &Error, _: Duration) {
        telemetry::failed(&self.name, error);
        let (partition, error) = (None, error.clone());
        self.options
            .notify(&WorkerNotice::Failed { partition, error });
    }
}

/// A kind of delivery, with its handler.
#[derive(Clone, Copy)]
pub(super) enum DeliveryMode<'h> {
    AtLeastOnce(&'h dyn Handler),
    ExactlyOnce(&'h dyn DynViewHandler),
}

/// The group of one worker.
struct WorkerGroup<'w> {
    group: &'w ConsumerGroup,
    mode: DeliveryMode<'w>,
    /// The partitions of the feed, once known.
    partitions: OnceLock<Partitions>,
    /// The result of the worker so far.
    summary: Mutex<WorkerSummary>,
}

impl WorkerGroup<'_> {
    /// Returns the partitions of the feed; `None` if it has not started.
    async fn partitions(&self) -> Result<Option<Partitions>> {
        if let Some(partitions) = self.partitions.get() {
            return Ok(Some(*partitions));
        }
        let partitions = self.group.store.feed_partitions().await?;
        Ok(partitions.map(|partitions| *self.partitions.get_or_init(|| partitions)))
    }

    fn members(&self) -> Stream<StateEvent<Members>> {
        members_stream(&self.group.store, &self.group.name)
    }
}

impl Group for WorkerGroup<'_> {
    fn host(&self) -> &dyn Host {
        self.group
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<GroupState> {
        let partitions = self.partitions().await?.map(Partitions::count);
        let decide = |members: &Members| {
            let after = members.after_heartbeat(&heartbeat, partitions);
            Ok::<_, Error>((after.clone(), [StateEvent(after)]))
        };
        Ok(GroupState {
            members: self.members().transact(decide).await?,
            partitions,
            replay_requests: 0,
        })
    }

    async fn leave(&self, member: &str) -> Result<()> {
        let decide = |members: &Members| {
            let is_member = members.heartbeats.contains_key(member);
            Ok::<_, Error>(is_member.then(|| StateEvent(members.without(member))))
        };
        self.members().transact(decide).await
    }

    async fn run(&self, context: RunContext) -> Result<RunOutcome> {
        let partition = Partition::new(context.partition);
        let consumer = self.group.partition(partition);
        let (summary, outcome) = match self.mode {
            DeliveryMode::AtLeastOnce(handler) => consumer.deliver(handler, context).await?,
            DeliveryMode::ExactlyOnce(handler) => (
                consumer.project(handler, context).await?,
                RunOutcome::Completed,
            ),
        };
        lock(&self.summary).add(partition, summary);
        Ok(outcome)
    }

    fn noticed(&self, notice: LeaseNotice) {
        self.group.options.notify(&match notice {
            LeaseNotice::Acquired(number) => WorkerNotice::Acquired(Partition::new(number)),
            LeaseNotice::Released(number) => WorkerNotice::Released(Partition::new(number)),
            LeaseNotice::Lost(number) => WorkerNotice::Lost(Partition::new(number)),
            LeaseNotice::Waiting => return,
        });
    }

    /// Measures the lag of the partitions, if metrics are enabled: each takes two reads and a query.
    async fn measure(&self, held: Vec<u32>) {
        for number in held {
            if telemetry::is_measured() {
                // Records the lag in telemetry. If a read fails, the next round measures again.
                drop(self.group.partition(Partition::new(number)).lag().await);
            }
        }
    }
}
