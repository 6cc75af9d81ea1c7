//! The indexer: reads the changes of an events table, and brings what was appended to the feed.
//!
//! A step reads records, writes their spans into the epochs, and only then stores how far it has read. It may die at
//! any moment: whoever goes on reads some records again, and the epochs drop what they know. So several may run at
//! once, for the same table and under the same name; it is wasteful, not wrong.
//!
//! The changes of a table are kept for a day. A feed that is begun later tells of what they still hold. On an engine
//! that can [hold](floe_store::Capabilities::change_holds) them, none is lost from the first start on.
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

pub mod intake;
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

pub use self::intake::Intake;
pub use self::progress::{Progress, Stepped};
use super::kept::Kept;
use super::limits::{BATCH_RECORDS_CAP, CLOCK_SKEW_MAX, EMPTY_ROUNDS, EpochLimits, POLL};
use super::partition::Partitions;
use crate::delivery::{Callback, PATIENT, Positions, Round, Shards, hold, passes, release};
use crate::error::{Error, ErrorKind, Result};
use crate::events::feed::telemetry;
use crate::events::{EventStore, Stream};
use crate::side_by_side;

/// How an indexer works.
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
    /// One partition, batches of 1,000 records, four looks a second.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// What its position is stored under: `0` if nothing is said. It has no `_`.
        pub fn name(name: impl Into<String>) => name = name.into();

        /// How many partitions the feed has. It is said when the feed is begun, and stays so.
        pub const fn partitions(partitions: Partitions) => partitions = partitions;

        /// When epochs are closed.
        pub const fn limits(limits: EpochLimits) => limits = limits;

        /// About how many records are brought to the epochs at once: 1 to 10,000.
        pub const fn batch_max(records: usize) => batch_max = records;

        /// How long it waits after it has found nothing.
        pub const fn poll(pause: Duration) => poll = pause;

        /// By how much its clock may differ from the one that stamps change records; 5 minutes if nothing is said.
        pub const fn clock_skew_max(skew: Duration) => clock_skew_max = skew;

        /// Goes on where records are gone that were perhaps not read. On DynamoDB this is needed after a table had no
        /// changes for a day while no indexer ran. If it had some, their events are brought from the streams as soon as
        /// something is appended to these; until then they are missing in the feed.
        pub const fn accept_trimmed() => accepts_trimmed = true;
    }

    fn check(&self) -> Result<()> {
        self.limits.check()?;
        if (1..=BATCH_RECORDS_CAP).contains(&self.batch_max) {
            return Ok(());
        }
        let message = format!(
            "an indexer takes 1 to {BATCH_RECORDS_CAP} records at once: batch_max={}",
            self.batch_max
        );
        Err(Error::new(ErrorKind::InvalidUse, message))
    }
}

/// Who watches an indexer.
type Watch = dyn Fn(Progress<'_>) + Send + Sync;

/// Brings what was appended to a store's streams to its feed.
#[derive(Debug)]
pub struct Indexer {
    store: EventStore,
    options: IndexerOptions,
    watch: Callback<Watch>,
    /// What it knows. It is absent during a step, so that a step that fails or is dropped begins anew from what is
    /// stored.
    known: Option<Known>,
}

/// What an indexer knows between two steps.
#[derive(Debug)]
struct Known {
    shards: Shards,
    stored: Positions,
    holds: Vec<HoldChanges>,
    intake: Intake,
}

/// What an indexer has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Indexed {
    /// How many change records it has read.
    pub records: u64,
    /// How many events were new in the feed.
    pub events: u64,
}

impl Indexed {
    const fn add(&mut self, other: Self) {
        self.records += other.records;
        self.events += other.events;
    }
}

impl EventStore {
    /// An indexer of this store. It begins the feed when it first runs.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when the options are beyond what there can be.
    pub fn indexer(&self, options: IndexerOptions) -> Result<Indexer> {
        options.check()?;
        Ok(Indexer {
            store: self.clone(),
            options,
            watch: Callback::default(),
            known: None,
        })
    }
}

impl Indexer {
    /// Tells what it does to this function, step by step, while it runs.
    #[must_use]
    pub fn watched_by(mut self, watch: impl Fn(Progress<'_>) + Send + Sync + 'static) -> Self {
        self.watch = Callback(Some(Arc::new(watch)));
        self
    }

    /// Brings everything to the feed that was appended before, and perhaps some that is appended meanwhile.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) when the feed was begun with another number of partitions,
    /// [`MissingEvents`](ErrorKind::MissingEvents) when change records are gone that were not read,
    /// [`Table`](ErrorKind::Table) when a table or its change stream is missing, [`Store`](ErrorKind::Store) when the
    /// store cannot answer. It can be run again after any of them.
    pub async fn run_until_caught_up(&mut self) -> Result<Indexed> {
        let (mut indexed, mut empty_rounds) = (Indexed::default(), 0);
        while empty_rounds < EMPTY_ROUNDS {
            let step = self.step().await?;
            indexed.add(step.indexed);
            empty_rounds = if step.is_idle { empty_rounds + 1 } else { 0 };
        }
        Ok(indexed)
    }

    /// Goes on until `stop` is done. Waits where there is nothing to do, and after failures that pass. What it has begun
    /// then is not told.
    ///
    /// # Errors
    ///
    /// As for [`run_until_caught_up`](Self::run_until_caught_up), of failures that do not pass.
    pub async fn run(&mut self, stop: impl Future<Output = ()>) -> Result<Indexed> {
        let mut stop = pin!(stop);
        let (mut indexed, mut failures) = (Indexed::default(), 0);
        loop {
            let pause = match side_by_side::unless(stop.as_mut(), self.step()).await {
                None => return Ok(indexed),
                Some(Ok(step)) => {
                    indexed.add(step.indexed);
                    failures = 0;
                    step.is_idle.then_some(self.options.poll)
                }
                Some(Err(error)) if passes(&error) => {
                    failures += 1;
                    let seed = self.store.db().env().next_u64();
                    let pause = PATIENT.pause(failures, seed);
                    telemetry::step_failed(&self.store.options().table, &error, pause);
                    self.tell(Progress::Failed {
                        error: &error,
                        pause,
                    });
                    Some(pause)
                }
                Some(Err(error)) => return Err(error),
            };
            if let Some(pause) = pause {
                let waited = self.store.db().timer().sleep(pause);
                if side_by_side::unless(stop.as_mut(), waited).await.is_none() {
                    return Ok(indexed);
                }
            }
        }
    }

    /// Gives up the hold on change records: for an indexer that will not run again under this name.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn release(mut self) -> Result<()> {
        let known = self.begin().await?;
        release(self.store.db(), known.holds).await
    }

    /// Reads a batch, brings it to the epochs, and stores how far it has read.
    async fn step(&mut self) -> Result<Stepped> {
        let (table, name) = (
            self.store.options().table.clone(),
            self.options.name.clone(),
        );
        let span = telemetry::step(&table, &name);
        let stepped = self.read_and_bring().instrument(span.clone()).await?;
        let indexed = (stepped.indexed.records, stepped.indexed.events);
        telemetry::stepped(&span, (&table, &name), indexed, stepped.lag);
        self.tell(Progress::Stepped(&stepped));
        Ok(stepped)
    }

    async fn read_and_bring(&mut self) -> Result<Stepped> {
        let mut known = self.begin().await?;
        let Round { records, has_ended } = self.read(&mut known).await?;
        let brought = known.intake.bring(&records).await?;
        self.store(&mut known).await?;
        self.known = Some(known);
        let now = self.store.db().engine().now();
        let last = records.iter().map(|record| record.created).max();
        Ok(Stepped {
            indexed: Indexed {
                records: records.len() as u64,
                events: brought.events,
            },
            checkpoints: brought.checkpoints,
            lag: last.map_or(Duration::ZERO, |last| now.since(last)),
            is_idle: records.is_empty() && !has_ended,
        })
    }

    /// What is known from the last step, or else from what is stored.
    async fn begin(&mut self) -> Result<Known> {
        if let Some(known) = self.known.take() {
            return Ok(known);
        }
        let (options, store) = (&self.options, &self.store);
        let mut intake = store.intake(options)?;
        intake.begin().await?;
        let stored = self.position().query(Positions::clone).await?;
        let table = &store.options().table;
        let mut shards = Shards::new(store.db().clone(), table, options.accepts_trimmed);
        shards.find(&stored).await?;
        let mut known = Known {
            shards,
            stored,
            holds: Vec::new(),
            intake,
        };
        self.hold(&mut known).await?;
        Ok(known)
    }

    /// Reads records until there are enough, or a look brings none.
    async fn read(&self, known: &mut Known) -> Result<Round> {
        let mut read = Round::default();
        loop {
            let left = self.options.batch_max.saturating_sub(read.records.len());
            let Round { records, has_ended } = known.shards.read(left).await?;
            let is_empty = records.is_empty();
            read.records.extend(records);
            read.has_ended |= has_ended;
            // New shards come where one has ended, and perhaps where nobody looks.
            if has_ended || read.records.is_empty() {
                known.shards.find(&known.stored).await?;
            }
            if is_empty || read.records.len() >= self.options.batch_max {
                return Ok(read);
            }
        }
    }

    /// Stores how far it has read, if that is further than before.
    async fn store(&self, known: &mut Known) -> Result<()> {
        let read = known.shards.positions();
        let gone = known.shards.gone(&known.stored);
        if known.stored != known.stored.merged(&read, &gone) {
            let position = self.position();
            let stored = position.transact(|stored| {
                let merged = stored.merged(&read, &gone);
                let moved = (merged != *stored).then(|| Kept(merged.clone()));
                Ok::<_, Error>((merged, moved))
            });
            known.stored = stored.await?;
        }
        self.hold(known).await
    }

    /// Keeps what is not read from being trimmed, where the engine can.
    async fn hold(&self, known: &mut Known) -> Result<()> {
        let consumer = format!("floe-indexer-{}", self.options.name);
        let holds = known.shards.holds(&consumer, &known.shards.positions());
        hold(self.store.db(), &holds, &known.holds).await?;
        known.holds = holds;
        Ok(())
    }

    fn tell(&self, progress: Progress<'_>) {
        if let Some(watch) = &self.watch.0 {
            watch(progress);
        }
    }

    fn position(&self) -> Stream<Kept<Positions>> {
        self.store.kept(self.options.name.as_str())
    }
}
