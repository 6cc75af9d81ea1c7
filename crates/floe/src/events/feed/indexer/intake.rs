//! Bringing change records to the epochs, whoever has read them.
//!
//! The [indexer](super) reads the changes of a table itself, and remembers how far. Where somebody else does both, as
//! AWS Lambda does, an intake is all that is needed: it takes records, the changes of an item in their order, each at
//! least once, and stores nothing but the feed.
//!
//! ```
//! use floe::events::feed::IndexerOptions;
//! use floe::{Db, Error};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! let store = Db::memory()?.events();
//! store.ensure_feed().await?;
//! let mut intake = store.intake(&IndexerOptions::new())?;
//! // Records that were read from the change stream of the table:
//! let records = Vec::new();
//! let brought = intake.bring(&records).await?;
//! assert_eq!(brought.events, 0);
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;

use floe_store::op::ChangeRecord;
use floe_store::{BoxFuture, Timestamp};

use super::IndexerOptions;
use crate::error::{Error, Result};
use crate::events::EventStore;
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::feed::epoch::Gap;
use crate::events::feed::ingester::{Ingester, Taken};
use crate::events::feed::limits::PARTITIONS_AT_ONCE;
use crate::events::feed::log::TableLog;
use crate::events::feed::partition::Partition;
use crate::events::feed::source::span_of_change;
use crate::events::feed::span::Span;
use crate::events::feed::subscription::load_between;
use crate::side_by_side;

/// Brings change records to the feed of a store.
#[derive(Debug)]
pub struct Intake {
    store: EventStore,
    options: IndexerOptions,
    /// They are absent while records are brought, so that after a failure all is learned anew from what is stored.
    ingesters: Option<Ingesters>,
}

type Ingesters = BTreeMap<Partition, Ingester<TableLog>>;

/// What became of records that were brought.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Brought {
    /// How many events were new in the feed.
    pub events: u64,
    /// Where the partitions end that were written to, or looked at.
    pub checkpoints: BTreeMap<Partition, Checkpoint>,
}

impl Brought {
    fn add(&mut self, other: Self) {
        self.events += other.events;
        self.checkpoints.extend(other.checkpoints);
    }
}

/// What became of records that were brought as far as it went.
#[derive(Debug)]
#[non_exhaustive]
pub struct BroughtUpTo {
    /// What those came to that were brought.
    pub brought: Brought,
    /// The place of the first record that is to be brought again, and why; `None` if all are in the feed.
    pub failure: Option<(usize, Error)>,
}

impl EventStore {
    /// An intake of this store. Of the options it takes the partitions, the limits, the size of batches and the skew of
    /// clocks.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) when the options are beyond what there can be.
    pub fn intake(&self, options: &IndexerOptions) -> Result<Intake> {
        options.check()?;
        Ok(Intake {
            store: self.clone(),
            options: options.clone(),
            ingesters: None,
        })
    }
}

impl Intake {
    /// Begins the feed, or sees that it was begun with as many partitions. Bringing records does so as well.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) when the feed was begun with another number of partitions,
    /// [`Table`](crate::ErrorKind::Table) when there is no index table, [`Store`](crate::ErrorKind::Store) when the store
    /// cannot answer.
    pub async fn begin(&mut self) -> Result<()> {
        let ingesters = self.begun().await?;
        self.ingesters = Some(ingesters);
        Ok(())
    }

    /// Brings what the records tell to the epochs.
    ///
    /// When this fails, or its future is dropped, some may have been brought. Bring all of them again.
    ///
    /// # Errors
    ///
    /// As for [`begin`](Self::begin); [`MissingEvents`](crate::ErrorKind::MissingEvents) when the feed would skip events,
    /// [`InvalidEvent`](crate::ErrorKind::InvalidEvent) when a record is none of an events table.
    pub async fn bring(&mut self, records: &[ChangeRecord]) -> Result<Brought> {
        let mut ingesters = self.begun().await?;
        let brought = self.ingest(&mut ingesters, records).await?;
        self.ingesters = Some(ingesters);
        Ok(brought)
    }

    /// Brings records in their order, as far as it goes: up to one that cannot be read, or to a batch that the store
    /// does not take.
    pub async fn bring_up_to_failure(&mut self, records: &[ChangeRecord]) -> BroughtUpTo {
        let unreadable = records.iter().zip(0..).find_map(|(record, place)| {
            let error = span_of_change(record).err()?;
            Some((place, error))
        });
        let readable = unreadable
            .as_ref()
            .map_or(records.len(), |(place, _)| *place);
        let (mut brought, mut place) = (Brought::default(), 0);
        let readable = records.get(..readable).unwrap_or_default();
        for batch in readable.chunks(self.options.batch_max) {
            match self.bring(batch).await {
                Ok(more) => brought.add(more),
                Err(error) => {
                    let failure = Some((place, error));
                    return BroughtUpTo { brought, failure };
                }
            }
            place += batch.len();
        }
        BroughtUpTo {
            brought,
            failure: unreadable,
        }
    }

    async fn begun(&mut self) -> Result<Ingesters> {
        if let Some(ingesters) = self.ingesters.take() {
            return Ok(ingesters);
        }
        let (store, options) = (&self.store, &self.options);
        store.begin_feed(options.partitions).await?;
        let mut ingesters = BTreeMap::new();
        for partition in options.partitions.all() {
            let ingester = Ingester::new(store.feed_log(), partition, options.limits)?;
            let ingester = ingester.clock_skew_max(options.clock_skew_max);
            ingesters.insert(partition, ingester);
        }
        Ok(ingesters)
    }

    async fn ingest(&self, ingesters: &mut Ingesters, records: &[ChangeRecord]) -> Result<Brought> {
        let Some(since) = records.iter().map(|record| record.created).min() else {
            return Ok(Brought::default());
        };
        let mut spans: BTreeMap<Partition, Vec<Span>> = BTreeMap::new();
        for record in records {
            if let Some(span) = span_of_change(record)? {
                let partition = self.options.partitions.of(&span.stream);
                spans.entry(partition).or_default().push(span);
            }
        }
        let mut taking: Vec<BoxFuture<'_, Result<(Partition, Taken)>>> = Vec::new();
        for (partition, ingester) in ingesters {
            if let Some(spans) = spans.remove(partition) {
                taking.push(Box::pin(self.take(*partition, ingester, spans, since)));
            }
        }
        let mut brought = Brought::default();
        for taken in side_by_side::all(PARTITIONS_AT_ONCE, taking).await {
            let (partition, taken) = taken?;
            brought.events += taken.events;
            brought.checkpoints.insert(partition, taken.checkpoint);
        }
        Ok(brought)
    }

    /// Brings spans to a partition. Where records are accepted to be gone, the streams tell what is missing.
    async fn take(
        &self,
        partition: Partition,
        ingester: &mut Ingester<TableLog>,
        mut spans: Vec<Span>,
        since: Timestamp,
    ) -> Result<(Partition, Taken)> {
        loop {
            match ingester.try_ingest(spans.clone(), since).await? {
                Ok(taken) => return Ok((partition, taken)),
                Err(gap) if self.options.accepts_trimmed => {
                    spans.push(self.missing(&gap).await?);
                }
                Err(gap) => return Err(gap.into()),
            }
        }
    }

    /// The events of a gap, from their stream.
    async fn missing(&self, gap: &Gap) -> Result<Span> {
        let range = gap.expected..gap.found;
        let events = load_between(&self.store, &gap.stream, range).await?;
        let types = events.into_iter().map(|read| read.event.event_type);
        Ok(Span::new(gap.stream.clone(), gap.expected, types))
    }
}
