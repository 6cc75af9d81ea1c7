//! The indexer: reads the changes of an events table, and writes the appended events to the feed.
//!
//! A step reads records, writes their spans into the epochs, and only then stores its position. It may fail at any
//! time: the next run reads some records again, and the epochs drop duplicates. Several indexers may run concurrently
//! for the same table and under the same name; this is wasteful but correct.
//!
//! Change records are kept for a day. A feed that starts later contains what they still hold. On an engine that can
//! [hold](floe_store::Capabilities::change_holds) records, nothing is lost after the first start.
//!
//! ```
//! use floe::events::feed::{IndexerOptions, Partition};
//! use floe::events::{EventData, Expected, StreamName};
//! use floe::{Db, Error};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let store = Db::memory()?.events();
//! store.ensure_table().await?;
//! store.ensure_feed().await?;
//! let cart = StreamName::new("Cart", "7")?;
//! store.append(&cart, Expected::New, [EventData::new("ItemAdded", "{}")]).await?;
//!
//! let indexed = store.indexer(IndexerOptions::new())?.run_until_caught_up().await?;
//! assert_eq!(indexed.events, 1);
//! # Ok(())
//! # }
//! ```

pub mod change_ingester;
mod position;
mod progress;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use floe_store::op::HoldChanges;
use tracing::Instrument;

pub use self::change_ingester::ChangeIngester;
pub use self::progress::{IndexerProgress, IndexerStep};
use super::limits::{BATCH_RECORDS_CAP, CLOCK_SKEW_MAX, EMPTY_READS, EpochLimits, POLL};
use super::partition::Partitions;
use super::stored_state::StateEvent;
use crate::concurrent;
use crate::delivery::{
    Callback, STORE_BACKOFF, ShardPositions, ShardRecords, Shards, hold_changes, is_transient,
    release_holds,
};
use crate::error::{Error, ErrorKind, Result};
use crate::events::feed::telemetry;
use crate::events::{EventStore, Stream};

/// Options of an indexer.
#[derive(Clone, Debug)]
#[must_use = "options do nothing by themselves"]
pub struct IndexerOptions {
    name: String,
    partitions: Partitions,
    limits: EpochLimits,
    batch_max: usize,
    poll: Duration,
    clock_skew_max: Duration,
    accepts_trimmed: bool,
}

impl Default for IndexerOptions {
    fn default() -> Self {
        Self {
            name: "0".to_owned(),
            partitions: Partitions::ONE,
            limits: EpochLimits::default(),
            batch_max: 1_000,
            poll: POLL,
            clock_skew_max: CLOCK_SKEW_MAX,
            accepts_trimmed: false,
        }
    }
}

impl IndexerOptions {
    /// Returns the defaults: one partition, batches of 1,000 records, a pause of 250 milliseconds.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Name of the stored position, without `_`. Default: `0`.
        pub fn name(name: impl Into<String>) => name = name.into();

        /// Number of partitions. Fixed when the feed starts.
        pub const fn partitions(partitions: Partitions) => partitions = partitions;

        /// Limits of epochs.
        pub const fn limits(limits: EpochLimits) => limits = limits;

        /// Approximate maximum number of records per step: 1 to 10,000. Default: 1,000.
        pub const fn batch_max(records: usize) => batch_max = records;

        /// Pause after an empty read. Default: 250 milliseconds.
        pub const fn poll(pause: Duration) => poll = pause;

        /// Maximum difference between its clock and the clock that stamps change records. Default: 5 minutes.
        pub const fn clock_skew_max(skew: Duration) => clock_skew_max = skew;

        /// Continues if unread records may have been trimmed. On DynamoDB this is needed after a table had no changes
        /// for a day while no indexer ran. If there were changes, their events are taken from the streams at the next
        /// append to each; until then they are missing in the feed.
        pub const fn accept_trimmed() => accepts_trimmed = true;
    }

    fn check(&self) -> Result<()> {
        self.limits.check()?;
        if (1..=BATCH_RECORDS_CAP).contains(&self.batch_max) {
            return Ok(());
        }
        let message = format!(
            "batch_max must be 1 to {BATCH_RECORDS_CAP}: batch_max={}",
            self.batch_max
        );
        Err(Error::new(ErrorKind::InvalidUse, message))
    }
}

/// A listener for progress.
type Listener = dyn Fn(IndexerProgress<'_>) + Send + Sync;

/// Writes the events of a store's streams to its feed.
#[derive(Debug)]
pub struct Indexer {
    store: EventStore,
    options: IndexerOptions,
    listener: Callback<Listener>,
    /// The state between steps. `None` during a step, so that a failed or dropped step starts again from the stored
    /// position.
    state: Option<IndexerState>,
}

/// The state of an indexer between steps.
#[derive(Debug)]
struct IndexerState {
    shards: Shards,
    stored: ShardPositions,
    holds: Vec<HoldChanges>,
    change_ingester: ChangeIngester,
}

/// Totals of an indexer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct IndexerSummary {
    /// Number of change records read.
    pub records: u64,
    /// Number of new events in the feed.
    pub events: u64,
}

impl IndexerSummary {
    const fn add(&mut self, other: Self) {
        self.records += other.records;
        self.events += other.events;
    }
}

impl EventStore {
    /// Creates an indexer of this store. Its first run starts the feed.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if an option is out of range.
    pub fn indexer(&self, options: IndexerOptions) -> Result<Indexer> {
        options.check()?;
        Ok(Indexer {
            store: self.clone(),
            options,
            listener: Callback::default(),
            state: None,
        })
    }
}

impl Indexer {
    /// Calls this function after each step.
    #[must_use]
    pub fn on_progress(
        mut self,
        listener: impl Fn(IndexerProgress<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.listener = Callback(Some(Arc::new(listener)));
        self
    }

    /// Writes everything appended before the call to the feed, and possibly some events appended during it.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if the feed has another number of partitions,
    /// [`MissingEvents`](ErrorKind::MissingEvents) if unread change records are gone, [`Table`](ErrorKind::Table) if
    /// a table or its change stream is missing, [`Store`](ErrorKind::Store) if the store fails. The indexer can be
    /// run again after any of them.
    pub async fn run_until_caught_up(&mut self) -> Result<IndexerSummary> {
        let (mut indexed, mut empty_reads) = (IndexerSummary::default(), 0);
        while empty_reads < EMPTY_READS {
            let step = self.step().await?;
            indexed.add(step.indexed);
            empty_reads = if step.is_idle { empty_reads + 1 } else { 0 };
        }
        Ok(indexed)
    }

    /// Runs until `stop` completes. Pauses when there is nothing to do and after transient failures. The result does
    /// not include a step interrupted by `stop`.
    ///
    /// # Errors
    ///
    /// As for [`run_until_caught_up`](Self::run_until_caught_up), for permanent failures.
    pub async fn run(&mut self, stop: impl Future<Output = ()>) -> Result<IndexerSummary> {
        let mut stop = pin!(stop);
        let (mut indexed, mut failures) = (IndexerSummary::default(), 0);
        loop {
            let pause = match concurrent::run_until(stop.as_mut(), self.step()).await {
                None => return Ok(indexed),
                Some(Ok(step)) => {
                    indexed.add(step.indexed);
                    failures = 0;
                    step.is_idle.then_some(self.options.poll)
                }
                Some(Err(error)) if is_transient(&error) => {
                    failures += 1;
                    let seed = self.store.db().env().next_u64();
                    let pause = STORE_BACKOFF.pause(failures, seed);
                    telemetry::step_failed(&self.store.options().table, &error, pause);
                    self.notify(IndexerProgress::Failed {
                        error: &error,
                        pause,
                    });
                    Some(pause)
                }
                Some(Err(error)) => return Err(error),
            };
            if let Some(pause) = pause {
                let waited = self.store.db().timer().sleep(pause);
                if concurrent::run_until(stop.as_mut(), waited).await.is_none() {
                    return Ok(indexed);
                }
            }
        }
    }

    /// Releases the hold on change records. For an indexer that will not run again under this name.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn release(mut self) -> Result<()> {
        let state = self.begin().await?;
        release_holds(self.store.db(), state.holds).await
    }

    /// Reads a batch, writes it to the epochs, and stores the position.
    async fn step(&mut self) -> Result<IndexerStep> {
        let (table, name) = (
            self.store.options().table.clone(),
            self.options.name.clone(),
        );
        let span = telemetry::step(&table, &name);
        let step = self.read_and_ingest().instrument(span.clone()).await?;
        let indexed = (step.indexed.records, step.indexed.events);
        telemetry::record_step(&span, (&table, &name), indexed, step.lag);
        self.notify(IndexerProgress::StepCompleted(&step));
        Ok(step)
    }

    async fn read_and_ingest(&mut self) -> Result<IndexerStep> {
        let mut state = self.begin().await?;
        let ShardRecords { records, has_ended } = self.read(&mut state).await?;
        let ingested = state.change_ingester.ingest(&records).await?;
        self.store(&mut state).await?;
        self.state = Some(state);
        let now = self.store.db().engine().now();
        let last = records.iter().map(|record| record.created).max();
        Ok(IndexerStep {
            indexed: IndexerSummary {
                records: records.len() as u64,
                events: ingested.events,
            },
            checkpoints: ingested.checkpoints,
            lag: last.map_or(Duration::ZERO, |last| now.since(last)),
            is_idle: records.is_empty() && !has_ended,
        })
    }

    /// Returns the state of the last step, or a new one from the stored position.
    async fn begin(&mut self) -> Result<IndexerState> {
        if let Some(state) = self.state.take() {
            return Ok(state);
        }
        let (options, store) = (&self.options, &self.store);
        let mut change_ingester = store.change_ingester(options)?;
        change_ingester.begin().await?;
        let stored = self.position().query(ShardPositions::clone).await?;
        let table = &store.options().table;
        let mut shards = Shards::new(store.db().clone(), table, options.accepts_trimmed);
        shards.find(&stored).await?;
        let mut state = IndexerState {
            shards,
            stored,
            holds: Vec::new(),
            change_ingester,
        };
        self.hold(&mut state).await?;
        Ok(state)
    }

    /// Reads records until the batch is full or a read is empty.
    async fn read(&self, state: &mut IndexerState) -> Result<ShardRecords> {
        let mut read = ShardRecords::default();
        loop {
            let remaining = self.options.batch_max.saturating_sub(read.records.len());
            let ShardRecords { records, has_ended } = state.shards.read(remaining).await?;
            let is_empty = records.is_empty();
            read.records.extend(records);
            read.has_ended |= has_ended;
            // New shards appear after the end of a shard, and otherwise at any time.
            if has_ended || read.records.is_empty() {
                state.shards.find(&state.stored).await?;
            }
            if is_empty || read.records.len() >= self.options.batch_max {
                return Ok(read);
            }
        }
    }

    /// Stores the position, if it has advanced.
    async fn store(&self, state: &mut IndexerState) -> Result<()> {
        let read = state.shards.positions();
        let gone = state.shards.gone(&state.stored);
        if state.stored != state.stored.merged(&read, &gone) {
            let position = self.position();
            let stored = position.transact(|stored| {
                let merged = stored.merged(&read, &gone);
                let moved = (merged != *stored).then(|| StateEvent(merged.clone()));
                Ok::<_, Error>((merged, moved))
            });
            state.stored = stored.await?;
        }
        self.hold(state).await
    }

    /// Holds unread records, if the engine supports it.
    async fn hold(&self, state: &mut IndexerState) -> Result<()> {
        let consumer = format!("floe-indexer-{}", self.options.name);
        let holds = state.shards.holds(&consumer, &state.shards.positions());
        hold_changes(self.store.db(), &holds, &state.holds).await?;
        state.holds = holds;
        Ok(())
    }

    fn notify(&self, progress: IndexerProgress<'_>) {
        if let Some(listener) = &self.listener.0 {
            listener(progress);
        }
    }

    fn position(&self) -> Stream<StateEvent<ShardPositions>> {
        self.store.state_stream(self.options.name.as_str())
    }
}
