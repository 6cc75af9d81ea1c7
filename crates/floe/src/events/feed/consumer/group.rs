//! Groups: the partitions of the feed, shared among workers.

use std::collections::BTreeMap;
use std::future::{Future, pending};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use floe_store::BoxFuture;

use super::deliver::Handler;
use super::exactly_once::{View, ViewHandler};
use super::options::{Options, WorkerNotice};
use super::{FeedConsumer, ParkedStream};
use crate::db::Db;
use crate::delivery::{
    self, Group, GroupState, Heartbeat, Host, LeaseNotice, Members, RunContext, RunOutcome, Worker,
};
use crate::error::{Error, Result};
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::feed::kept::Kept;
use crate::events::feed::lag::Lag;
use crate::events::feed::partition::{Partition, Partitions};
use crate::events::feed::reader::Filter;
use crate::events::feed::telemetry;
use crate::events::{EventStore, Recorded, StreamName};
use crate::lock::{into_inner, lock};

impl EventStore {
    /// A group of consumers of this store's feed. Its name has no `_`.
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
    /// let worked = mail
    ///     .run_until_caught_up(async |stream: StreamName, events: Vec<Recorded>| {
    ///         println!("{stream}: {} events", events.len());
    ///         Ok::<_, Error>(Handled::All)
    ///     })
    ///     .await?;
    /// assert_eq!(worked.events, 1);
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
/// Each call of `run` is a worker. Workers of the same group, in this process and in others, hold leases on partitions, so
/// that each has its fair share and each partition one worker.
#[derive(Clone, Debug)]
pub struct ConsumerGroup {
    pub(super) store: EventStore,
    pub(super) name: String,
    pub(super) options: Options,
}

/// What a worker has done.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct WorkerSummary {
    /// How many events were handled, without those of partitions that it has lost.
    pub events: u64,
    /// Up to where each partition that it had is done with.
    pub checkpoints: BTreeMap<Partition, Checkpoint>,
    /// The streams that were parked during this run.
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
        /// Handles what the filter lets through alone. The rest counts as done.
        pub fn filter(filter: Filter) => options.filter = filter;

        /// Handles so many streams of a partition at once; 16 if nothing is said.
        pub const fn at_once_max(streams: usize) => options.delivery.concurrency_max = streams;

        /// Gives at most so many events to a handler, and so to a transaction; 100 if nothing is said.
        pub const fn events_max(events: usize) => options.events_max = events;

        /// Tries so often to get on with a stream before it is parked; 5 times if nothing is said.
        pub const fn tries_max(tries: u32) => options.delivery.attempts_max = tries;

        /// Timeout of a handler, for the events of one call. Default: 60 seconds. A handler that takes longer is
        /// dropped, and has failed a try; until then it holds its stream alone, or in the form for views its partition.
        pub const fn handler_timeout(timeout: Duration) => options.delivery.handler_timeout = timeout;

        /// How long a worker waits at the tail before it looks again; 250 ms if nothing is said.
        pub const fn poll(pause: Duration) => options.delivery.poll = pause;

        /// For how long a worker may be silent before others take its partitions; 10 seconds if nothing is said. It
        /// says that it is alive four times as often. All workers of a group should say the same here.
        pub const fn lease(lease: Duration) => options.delivery.lease = lease;

        /// How long handlers that are under way may take when a worker stops or gives a partition back; 5 seconds if
        /// nothing is said. Then they are dropped, and their events given to whoever goes on.
        pub const fn grace(grace: Duration) => options.delivery.grace = grace;

        /// Calls this when something happens that one may want to log or count.
        pub fn on_notice(tell: impl Fn(&WorkerNotice) + Send + Sync + 'static) =>
            options.on_notice.0 = Some(Arc::new(tell));
    }

    /// The consumer of one partition, without a lease.
    pub fn partition(&self, partition: Partition) -> FeedConsumer {
        FeedConsumer {
            store: self.store.clone(),
            id: (self.name.clone(), partition.number()),
            partition,
            options: self.options.clone(),
        }
    }

    /// Works until `stop` is done: takes its share of the partitions, gives what comes to the handler, follows the tail.
    /// It waits where the store does not answer, and tells so by [notices](Self::on_notice). In the end it waits for its
    /// handlers, stores how far it has come, and gives its partitions back.
    ///
    /// If it is dropped instead, nothing is lost: others go on once the lease has run out.
    ///
    /// # Errors
    ///
    /// What does not pass: [`Table`](crate::ErrorKind::Table) when a table is missing,
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) when the lease lasts for no time,
    /// [`Store`](crate::ErrorKind::Store) when the store refuses what is asked.
    pub async fn run<H, F>(
        &self,
        stop: impl Future<Output = ()> + Send,
        handler: H,
    ) -> Result<WorkerSummary>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Handler,
    {
        self.work(Works::AtLeastOnce(&handler), true, Box::pin(stop))
            .await
    }

    /// Gives everything up to the tail to the handler, of all partitions that no other worker has. Partitions of a worker
    /// that is silent are waited for until its lease has run out.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run), and when the store does not answer.
    pub async fn run_until_caught_up<H, F>(&self, handler: H) -> Result<WorkerSummary>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Handler,
    {
        self.work(Works::AtLeastOnce(&handler), false, Box::pin(pending()))
            .await
    }

    /// As [`run`](Self::run), with a transaction for each call of the handler, which also stores how far it has come.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run).
    pub async fn run_exactly_once<H: ViewHandler>(
        &self,
        stop: impl Future<Output = ()> + Send,
        handler: H,
    ) -> Result<WorkerSummary> {
        self.work(Works::ExactlyOnce(&handler), true, Box::pin(stop))
            .await
    }

    /// As [`run_until_caught_up`](Self::run_until_caught_up), with a transaction for each call of the handler, which also
    /// stores how far it has come.
    ///
    /// # Errors
    ///
    /// As for [`run_until_caught_up`](Self::run_until_caught_up).
    pub async fn run_exactly_once_until_caught_up<H: ViewHandler>(
        &self,
        handler: H,
    ) -> Result<WorkerSummary> {
        self.work(Works::ExactlyOnce(&handler), false, Box::pin(pending()))
            .await
    }

    async fn work(
        &self,
        works: Works<'_>,
        follows: bool,
        stop: BoxFuture<'_, ()>,
    ) -> Result<WorkerSummary> {
        let sharing = Sharing {
            group: self,
            works,
            partitions: OnceLock::new(),
            worked: Mutex::default(),
        };
        Worker::new(&sharing, follows, follows)?.run(stop).await?;
        Ok(into_inner(sharing.worked))
    }

    /// Tries the parked streams of all partitions again. Workers may run meanwhile.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn retry_parked<H, F>(&self, handler: H) -> Result<WorkerSummary>
    where
        H: Fn(StreamName, Vec<Recorded>) -> F + Handler,
    {
        self.retry(Works::AtLeastOnce(&handler)).await
    }

    /// As [`retry_parked`](Self::retry_parked), with a transaction for each call of the handler.
    ///
    /// # Errors
    ///
    /// As the store fails, also for the handler.
    pub async fn retry_parked_exactly_once<H: ViewHandler>(
        &self,
        handler: H,
    ) -> Result<WorkerSummary> {
        self.retry(Works::ExactlyOnce(&handler)).await
    }

    async fn retry(&self, works: Works<'_>) -> Result<WorkerSummary> {
        let mut worked = WorkerSummary::default();
        for consumer in self.all().await? {
            worked.add(consumer.partition, consumer.retry(works).await?);
        }
        Ok(worked)
    }

    /// Up to where each partition is done with.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn checkpoints(&self) -> Result<BTreeMap<Partition, Checkpoint>> {
        let mut checkpoints = BTreeMap::new();
        for consumer in self.all().await? {
            checkpoints.insert(consumer.partition, consumer.checkpoint().await?);
        }
        Ok(checkpoints)
    }

    /// The streams that are parked.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn parked(&self) -> Result<Vec<ParkedStream>> {
        let mut parked = Vec::new();
        for consumer in self.all().await? {
            parked.extend(consumer.parked().await?);
        }
        Ok(parked)
    }

    /// How far the group is behind: the events of all partitions, and the age of the oldest. At the tail this takes two
    /// reads for each partition.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn lag(&self) -> Result<Lag> {
        let mut lag = Lag::default();
        for consumer in self.all().await? {
            lag.add(consumer.lag().await?);
        }
        Ok(lag)
    }

    /// Goes on from this place of a partition: see [`FeedConsumer::move_to`].
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn move_to(&self, partition: Partition, checkpoint: Checkpoint) -> Result<()> {
        self.partition(partition).move_to(checkpoint).await
    }

    /// The consumers of all partitions; none if the feed was not begun yet.
    async fn all(&self) -> Result<Vec<FeedConsumer>> {
        let partitions = self.store.feed_partitions().await?;
        let partitions = partitions.iter().flat_map(|partitions| partitions.all());
        Ok(partitions
            .map(|partition| self.partition(partition))
            .collect())
    }
}

impl WorkerSummary {
    pub(super) fn add(&mut self, partition: Partition, consumed: super::FeedSummary) {
        self.events += consumed.events;
        self.parked.extend(consumed.parked);
        self.checkpoints.insert(partition, consumed.checkpoint);
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
            .tell(&WorkerNotice::Failed { partition, error });
    }
}

/// What a worker does with a partition.
#[derive(Clone, Copy)]
pub(super) enum Works<'w> {
    AtLeastOnce(&'w dyn Handler),
    ExactlyOnce(&'w dyn View),
}

/// The workers of a group, as one of them sees them.
struct Sharing<'w> {
    group: &'w ConsumerGroup,
    works: Works<'w>,
    /// The partitions of the feed, once they are known.
    partitions: OnceLock<Partitions>,
    worked: Mutex<WorkerSummary>,
}

impl Sharing<'_> {
    /// The partitions of the feed, if it was begun.
    async fn partitions(&self) -> Result<Option<Partitions>> {
        if let Some(known) = self.partitions.get() {
            return Ok(Some(*known));
        }
        let found = self.group.store.feed_partitions().await?;
        Ok(found.map(|found| *self.partitions.get_or_init(|| found)))
    }
}

impl Group for Sharing<'_> {
    fn host(&self) -> &dyn Host {
        self.group
    }

    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<GroupState> {
        let partitions = self.partitions().await?.map(Partitions::count);
        let decide = |members: &Members| {
            let after = members.after_heartbeat(&heartbeat, partitions);
            Ok::<_, Error>((after.clone(), [Kept(after)]))
        };
        let members = super::members(&self.group.store, &self.group.name);
        Ok(GroupState {
            members: members.transact(decide).await?,
            partitions,
            replay_requests: 0,
        })
    }

    async fn leave(&self, member: &str) -> Result<()> {
        let decide = |members: &Members| {
            let is_member = members.heartbeats.contains_key(member);
            Ok::<_, Error>(is_member.then(|| Kept(members.without(member))))
        };
        let members = super::members(&self.group.store, &self.group.name);
        members.transact(decide).await
    }

    async fn run(&self, context: RunContext) -> Result<RunOutcome> {
        let partition = Partition::new(context.partition);
        let consumer = self.group.partition(partition);
        let (consumed, end) = match self.works {
            Works::AtLeastOnce(handler) => consumer.deliver(handler, context).await?,
            Works::ExactlyOnce(view) => (
                consumer.project(view, context).await?,
                RunOutcome::Completed,
            ),
        };
        lock(&self.worked).add(partition, consumed);
        Ok(end)
    }

    fn noticed(&self, notice: LeaseNotice) {
        self.group.options.tell(&match notice {
            LeaseNotice::Acquired(number) => WorkerNotice::Taken(Partition::new(number)),
            LeaseNotice::Released(number) => WorkerNotice::GivenBack(Partition::new(number)),
            LeaseNotice::Lost(number) => WorkerNotice::Lost(Partition::new(number)),
            LeaseNotice::Waiting => return,
        });
    }

    /// Measures how far the partitions are behind, if somebody listens: this takes two reads for each.
    async fn measure(&self, held: Vec<u32>) {
        for number in held {
            if telemetry::is_measured() {
                // It tells what it finds. What it cannot find now, it finds later.
                drop(self.group.partition(Partition::new(number)).lag().await);
            }
        }
    }
}
