//! Reading the epochs of a partition, from a checkpoint to the tail.
//!
//! What is read is which events were appended to which streams, in batches as they were written. What the events say
//! stands in the streams. The reader goes from a closed epoch to the next by itself. At the tail it says so, and can be
//! asked again at any time; it does not wait itself.
//!
//! Our ingesters write every event once. A feed that was begun by others may tell some again.

mod lag;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use floe_store::{Text, Timestamp};
use tracing::Instrument;

use super::checkpoint::Checkpoint;
use super::epoch::{EpochEvent, Ingested};
use super::log::{EpochPage, EpochSource};
use super::partition::Partition;
use super::span::Span;
use crate::delivery::Callback;
use crate::error::Result;
use crate::events::feed::telemetry;
use crate::events::keys::StreamName;

pub(super) use self::lag::behind;

/// Reads the epochs of a partition.
#[derive(Debug)]
pub struct Reader<S> {
    source: S,
    partition: Partition,
    filter: Filter,
    checkpoint: Checkpoint,
    /// What was read from the checkpoint on.
    ahead: EpochAhead,
}

/// Events of the epoch of the checkpoint that are not told yet.
#[derive(Debug, Default)]
struct EpochAhead {
    events: VecDeque<(EpochEvent, Timestamp)>,
    is_end: bool,
}

/// Spans that were written together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedBatch {
    /// Where to go on once they are dealt with.
    pub checkpoint: Checkpoint,
    /// When they were written, as the feed tells it.
    pub time: Timestamp,
    /// The spans that the filter lets through, at most one for each stream; none if it lets none through.
    pub spans: Vec<Span>,
}

impl<S: EpochSource> Reader<S> {
    /// A reader of everything from this place on.
    pub fn new(source: S, partition: Partition, checkpoint: Checkpoint) -> Self {
        Self {
            source,
            partition,
            filter: Filter::default(),
            checkpoint,
            ahead: EpochAhead::default(),
        }
    }

    /// A reader of everything that is written from now on.
    ///
    /// # Errors
    ///
    /// As the source fails.
    pub async fn at_tail(source: S, partition: Partition) -> Result<Self> {
        let tail = tail(&source, partition).await?;
        Ok(Self::new(source, partition, tail))
    }

    setters! {
        /// Reads what the filter lets through alone. The batches stay the same, so checkpoints move on all the same.
        pub fn filter(filter: Filter) => filter = filter;
    }

    /// Where it goes on: all before was told. At the tail this is where the feed ends, which is the beginning of the
    /// next epoch if the last batch was the end of one.
    pub const fn checkpoint(&self) -> Checkpoint {
        self.checkpoint
    }

    /// The next batch; `None` at the tail, for now.
    ///
    /// After a failure, or when the future is dropped, nothing is skipped: it can be asked again.
    ///
    /// # Errors
    ///
    /// As the source fails.
    pub async fn next(&mut self) -> Result<Option<FeedBatch>> {
        loop {
            if let Some(batch) = self.tell()? {
                return Ok(Some(batch));
            }
            if self.ahead.is_end {
                self.pass_end();
            }
            let (epoch, offset) = (self.checkpoint.epoch(), self.checkpoint.offset());
            let page = self.source.read_epoch(self.partition, epoch, offset);
            let span = telemetry::read(self.partition, epoch);
            let EpochPage { events, is_end } = page.instrument(span.clone()).await?;
            span.record("floe.feed.batches", events.len());
            if events.is_empty() && !is_end {
                return Ok(None);
            }
            self.ahead = EpochAhead {
                events: events.into(),
                is_end,
            };
        }
    }

    /// Where the feed ends now.
    ///
    /// # Errors
    ///
    /// As the source fails.
    pub async fn tail(&self) -> Result<Checkpoint> {
        tail(&self.source, self.partition).await
    }

    /// The next batch of those that were read.
    fn tell(&mut self) -> Result<Option<FeedBatch>> {
        let (epoch, offset) = (self.checkpoint.epoch(), self.checkpoint.offset());
        match self.ahead.events.pop_front() {
            Some((EpochEvent::Ingested(ingested), time)) => {
                self.checkpoint = Checkpoint::of(epoch, offset + 1)?;
                Ok(Some(FeedBatch {
                    checkpoint: self.checkpoint,
                    time,
                    spans: self.filter.spans(ingested),
                }))
            }
            Some((EpochEvent::Closed, _)) => {
                self.ahead.is_end = true;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// Goes on to the next epoch.
    fn pass_end(&mut self) {
        self.checkpoint = self.checkpoint.next_epoch();
        self.ahead = EpochAhead::default();
    }
}

/// Where the feed of a partition ends now: the index tells about where, the epochs exactly.
async fn tail<S: EpochSource>(source: &S, partition: Partition) -> Result<Checkpoint> {
    let mut start = Checkpoint::at_start_of(source.read_index().await?.active(partition));
    loop {
        let epoch = source.epoch_version(partition, start.epoch()).await?;
        if !epoch.is_closed {
            return Checkpoint::of(start.epoch(), epoch.version);
        }
        start = start.next_epoch();
    }
}

/// Which streams a reader tells of: all, unless something is said.
///
/// ```
/// use floe::events::StreamName;
/// use floe::events::feed::Filter;
///
/// # fn main() -> Result<(), floe::Error> {
/// let filter = Filter::default().category("Cart").streams(|name| name.id() != "7");
/// assert!(filter.lets_through(&StreamName::parse("Cart-1")?));
/// assert!(!filter.lets_through(&StreamName::parse("Cart-7")?));
/// assert!(!filter.lets_through(&StreamName::parse("Order-1")?));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Filter {
    categories: BTreeSet<Text>,
    streams: Callback<dyn Fn(&StreamName) -> bool + Send + Sync>,
}

/// Whether a stream is told of.
impl Filter {
    /// Lets streams of this category through, and of others that are named as well.
    #[must_use]
    pub fn category(mut self, category: &str) -> Self {
        self.categories.insert(Text::from(category));
        self
    }

    /// Lets only those streams through of which this is true.
    #[must_use]
    pub fn streams(
        mut self,
        is_told: impl Fn(&StreamName) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.streams.0 = Some(Arc::new(is_told));
        self
    }

    /// Whether it lets a stream through.
    pub fn lets_through(&self, stream: &StreamName) -> bool {
        let is_named = || self.categories.contains(stream.category());
        (self.categories.is_empty() || is_named())
            && self
                .streams
                .0
                .as_ref()
                .is_none_or(|is_told| is_told(stream))
    }

    fn spans(&self, ingested: Ingested) -> Vec<Span> {
        let all = ingested.into_spans();
        all.filter(|span| self.lets_through(&span.stream)).collect()
    }
}
