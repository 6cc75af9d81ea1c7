//! Reads the epochs of a partition, from a checkpoint to the tail.
//!
//! Batches contain which events were appended to which streams, as they were written; the event bodies are in the
//! streams. The reader moves from a closed epoch to the next. At the tail it returns `None` without waiting, and can
//! be polled again at any time.
//!
//! Our ingesters write every event once. A feed that was started by other software may contain repetitions.

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

pub(super) use self::lag::lag_from;

/// Reads the epochs of a partition.
#[derive(Debug)]
pub struct Reader<S> {
    source: S,
    partition: Partition,
    filter: Filter,
    checkpoint: Checkpoint,
    /// Events read ahead of the checkpoint.
    ahead: ReadAhead,
}

/// Buffered events of the epoch of the checkpoint.
#[derive(Debug, Default)]
struct ReadAhead {
    events: VecDeque<(EpochEvent, Timestamp)>,
    is_end: bool,
}

/// Spans that were written together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedBatch {
    /// The position after these spans.
    pub checkpoint: Checkpoint,
    /// The time stored in the feed.
    pub time: Timestamp,
    /// The spans that match the filter, at most one per stream; may be empty.
    pub spans: Vec<Span>,
}

impl<S: EpochSource> Reader<S> {
    /// Creates a reader that starts at a checkpoint.
    pub fn new(source: S, partition: Partition, checkpoint: Checkpoint) -> Self {
        Self {
            source,
            partition,
            filter: Filter::default(),
            checkpoint,
            ahead: ReadAhead::default(),
        }
    }

    /// Creates a reader that starts at the current tail.
    ///
    /// # Errors
    ///
    /// Failures of the source.
    pub async fn at_tail(source: S, partition: Partition) -> Result<Self> {
        let tail = tail(&source, partition).await?;
        Ok(Self::new(source, partition, tail))
    }

    setters! {
        /// Returns only what matches the filter. Batches stay the same, so checkpoints advance regardless.
        pub fn filter(filter: Filter) => filter = filter;
    }

    /// The current position: everything before it was returned. At the tail this is the end of the feed, which is the
    /// start of the next epoch after the last batch of a closed one.
    pub const fn checkpoint(&self) -> Checkpoint {
        self.checkpoint
    }

    /// Returns the next batch; `None` at the current tail.
    ///
    /// After a failure, or if the future is dropped, nothing is skipped: call it again.
    ///
    /// # Errors
    ///
    /// Failures of the source.
    pub async fn next(&mut self) -> Result<Option<FeedBatch>> {
        loop {
            if let Some(batch) = self.next_buffered()? {
                return Ok(Some(batch));
            }
            if self.ahead.is_end {
                self.start_next_epoch();
            }
            let (epoch, offset) = (self.checkpoint.epoch(), self.checkpoint.offset());
            let page = self.source.read_epoch(self.partition, epoch, offset);
            let span = telemetry::read(self.partition, epoch);
            let EpochPage { events, is_end } = page.instrument(span.clone()).await?;
            span.record("floe.feed.batches", events.len());
            if events.is_empty() && !is_end {
                return Ok(None);
            }
            self.ahead = ReadAhead {
                events: events.into(),
                is_end,
            };
        }
    }

    /// Returns the current end of the feed.
    ///
    /// # Errors
    ///
    /// Failures of the source.
    pub async fn tail(&self) -> Result<Checkpoint> {
        tail(&self.source, self.partition).await
    }

    /// Returns the next buffered batch.
    fn next_buffered(&mut self) -> Result<Option<FeedBatch>> {
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

    /// Moves to the next epoch.
    fn start_next_epoch(&mut self) {
        self.checkpoint = self.checkpoint.next_epoch();
        self.ahead = ReadAhead::default();
    }
}

/// The current end of a partition's feed: approximate from the index, exact from the epochs.
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

/// Selects streams. The default selects all.
///
/// ```
/// use floe::events::StreamName;
/// use floe::events::feed::Filter;
///
/// # fn main() -> Result<(), floe::Error> {
/// let filter = Filter::default().category("Cart").streams(|name| name.id() != "7");
/// assert!(filter.matches(&StreamName::parse("Cart-1")?));
/// assert!(!filter.matches(&StreamName::parse("Cart-7")?));
/// assert!(!filter.matches(&StreamName::parse("Order-1")?));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Filter {
    categories: BTreeSet<Text>,
    streams: Callback<dyn Fn(&StreamName) -> bool + Send + Sync>,
}

impl Filter {
    /// Selects streams of this category, in addition to other selected categories.
    #[must_use]
    pub fn category(mut self, category: &str) -> Self {
        self.categories.insert(Text::from(category));
        self
    }

    /// Selects only streams for which the predicate is true.
    #[must_use]
    pub fn streams(
        mut self,
        predicate: impl Fn(&StreamName) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.streams.0 = Some(Arc::new(predicate));
        self
    }

    /// Whether a stream is selected.
    pub fn matches(&self, stream: &StreamName) -> bool {
        let is_named = || self.categories.contains(stream.category());
        (self.categories.is_empty() || is_named())
            && self
                .streams
                .0
                .as_ref()
                .is_none_or(|predicate| predicate(stream))
    }

    fn spans(&self, ingested: Ingested) -> Vec<Span> {
        let all = ingested.into_spans();
        all.filter(|span| self.matches(&span.stream)).collect()
    }
}
