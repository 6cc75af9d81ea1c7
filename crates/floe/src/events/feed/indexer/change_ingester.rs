//! Writes change records to the epochs, independent of how the records were read.
//!
//! The [indexer](super) reads the changes of a table and stores its position. Where another service does both, such
//! as AWS Lambda, a change ingester is sufficient: it receives records, the changes of an item in order and each at
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
//! let mut ingester = store.change_ingester(&IndexerOptions::new())?;
//! // Records from the change stream of the table:
//! let records = Vec::new();
//! let summary = ingester.ingest(&records).await?;
//! assert_eq!(summary.events, 0);
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeMap;

use floe_store::op::ChangeRecord;
use floe_store::{BoxFuture, Timestamp};

use super::IndexerOptions;
use crate::concurrent;
use crate::error::{Error, Result};
use crate::events::EventStore;
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::feed::epoch::Gap;
use crate::events::feed::ingester::{IngestOutcome, Ingester};
use crate::events::feed::limits::PARTITIONS_CONCURRENCY_MAX;
use crate::events::feed::log::TableLog;
use crate::events::feed::partition::Partition;
use crate::events::feed::source::span_of_change;
use crate::events::feed::span::Span;
use crate::events::feed::subscription::load_between;

/// Writes change records to the feed of a store.
#[derive(Debug)]
pub struct ChangeIngester {
    store: EventStore,
    options: IndexerOptions,
    /// `None` while records are ingested, so that after a failure they start again from the stored state.
    ingesters: Option<Ingesters>,
}

type Ingesters = BTreeMap<Partition, Ingester<TableLog>>;

/// The result of ingesting records.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct IngestSummary {
    /// Number of new events in the feed.
    pub events: u64,
    /// The ends of the partitions that were written or read.
    pub checkpoints: BTreeMap<Partition, Checkpoint>,
}

impl IngestSummary {
    fn add(&mut self, other: Self) {
        self.events += other.events;
        self.checkpoints.extend(other.checkpoints);
    }
}

/// The result of ingesting records up to the first failure.
#[derive(Debug)]
#[non_exhaustive]
pub struct PartialIngest {
    /// The result of the ingested records.
    pub summary: IngestSummary,
    /// The index of the first record to ingest again, and the error; `None` if all are in the feed.
    pub failure: Option<(usize, Error)>,
}

impl EventStore {
    /// Creates a change ingester for this store. It uses these options: partitions, limits, batch size and clock
    /// skew.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) if an option is out of range.
    pub fn change_ingester(&self, options: &IndexerOptions) -> Result<ChangeIngester> {
        options.check()?;
        Ok(ChangeIngester {
            store: self.clone(),
            options: options.clone(),
            ingesters: None,
        })
    }
}

impl ChangeIngester {
    /// Starts the feed, or checks that it has the same number of partitions. Ingesting records does so too.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) if the feed has another number of partitions,
    /// [`Table`](crate::ErrorKind::Table) if the index table is missing, [`Store`](crate::ErrorKind::Store) if the
    /// store fails.
    pub async fn begin(&mut self) -> Result<()> {
        let ingesters = self.open_ingesters().await?;
        self.ingesters = Some(ingesters);
        Ok(())
    }

    /// Writes the events of the records to the epochs.
    ///
    /// After a failure, or if the future is dropped, some may have been written. Ingest all of them again.
    ///
    /// # Errors
    ///
    /// As for [`begin`](Self::begin); [`MissingEvents`](crate::ErrorKind::MissingEvents) if the feed would skip
    /// events, [`InvalidEvent`](crate::ErrorKind::InvalidEvent) if a record does not belong to an events table.
    pub async fn ingest(&mut self, records: &[ChangeRecord]) -> Result<IngestSummary> {
        let mut ingesters = self.open_ingesters().await?;
        let ingested = self.ingest_records(&mut ingesters, records).await?;
        self.ingesters = Some(ingesters);
        Ok(ingested)
    }

    /// Ingests records in order, up to one that cannot be read, or to a batch that the store rejects.
    pub async fn ingest_until_failure(&mut self, records: &[ChangeRecord]) -> PartialIngest {
        let unreadable = records.iter().zip(0..).find_map(|(record, index)| {
            let error = span_of_change(record).err()?;
            Some((index, error))
        });
        let readable = unreadable
            .as_ref()
            .map_or(records.len(), |(index, _)| *index);
        let (mut ingested, mut index) = (IngestSummary::default(), 0);
        let readable = records.get(..readable).unwrap_or_default();
        for batch in readable.chunks(self.options.batch_max) {
            match self.ingest(batch).await {
                Ok(more) => ingested.add(more),
                Err(error) => {
                    let failure = Some((index, error));
                    return PartialIngest {
                        summary: ingested,
                        failure,
                    };
                }
            }
            index += batch.len();
        }
        PartialIngest {
            summary: ingested,
            failure: unreadable,
        }
    }

    async fn open_ingesters(&mut self) -> Result<Ingesters> {
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

    async fn ingest_records(
        &self,
        ingesters: &mut Ingesters,
        records: &[ChangeRecord],
    ) -> Result<IngestSummary> {
        let Some(since) = records.iter().map(|record| record.created).min() else {
            return Ok(IngestSummary::default());
        };
        let mut spans: BTreeMap<Partition, Vec<Span>> = BTreeMap::new();
        for record in records {
            if let Some(span) = span_of_change(record)? {
                let partition = self.options.partitions.of(&span.stream);
                spans.entry(partition).or_default().push(span);
            }
        }
        let mut ingesting: Vec<BoxFuture<'_, Result<(Partition, IngestOutcome)>>> = Vec::new();
        for (partition, ingester) in ingesters {
            if let Some(spans) = spans.remove(partition) {
                ingesting.push(Box::pin(
                    self.ingest_partition(*partition, ingester, spans, since),
                ));
            }
        }
        let mut ingested = IngestSummary::default();
        for outcome in concurrent::run_all(PARTITIONS_CONCURRENCY_MAX, ingesting).await {
            let (partition, outcome) = outcome?;
            ingested.events += outcome.events;
            ingested.checkpoints.insert(partition, outcome.checkpoint);
        }
        Ok(ingested)
    }

    /// Ingests spans into a partition. If trimmed records are accepted, gaps are filled from the streams.
    async fn ingest_partition(
        &self,
        partition: Partition,
        ingester: &mut Ingester<TableLog>,
        mut spans: Vec<Span>,
        since: Timestamp,
    ) -> Result<(Partition, IngestOutcome)> {
        loop {
            match ingester.try_ingest(spans.clone(), since).await? {
                Ok(outcome) => return Ok((partition, outcome)),
                Err(gap) if self.options.accepts_trimmed => {
                    spans.push(self.missing(&gap).await?);
                }
                Err(gap) => return Err(gap.into()),
            }
        }
    }

    /// Loads the events of a gap from their stream.
    async fn missing(&self, gap: &Gap) -> Result<Span> {
        let range = gap.expected..gap.found;
        let events = load_between(&self.store, &gap.stream, range).await?;
        let types = events.into_iter().map(|read| read.event.event_type);
        Ok(Span::new(gap.stream.clone(), gap.expected, types))
    }
}
