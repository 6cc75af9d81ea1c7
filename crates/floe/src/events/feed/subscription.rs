//! The feed with data: which events were appended, and their bodies.
//!
//! A subscription follows the [reader](super::reader) of a partition, and loads the events of each span from their
//! streams, several concurrently.
//!
//! ```
//! use floe::events::feed::IndexerOptions;
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
//! store.indexer(IndexerOptions::new())?.run_until_caught_up().await?;
//!
//! let mut feed = store.feed().from_start();
//! let batch = feed.next().await?.expect("something was appended");
//! let (stream, events) = &batch.streams[0];
//! assert_eq!((stream, events[0].event.event_type.as_str()), (&cart, "ItemAdded"));
//! assert_eq!(feed.next().await?, None);
//! # Ok(())
//! # }
//! ```

use std::ops::Range;
use std::time::Duration;

use floe_store::{BoxFuture, Timestamp};

use super::checkpoint::Checkpoint;
use super::lag::Lag;
use super::limits::{POLL, STREAMS_CONCURRENCY_MAX};
use super::log::TableLog;
use super::partition::Partition;
use super::reader::{FeedBatch, Filter, Reader};
use crate::concurrent;
use crate::error::{Error, ErrorKind, Result};
use crate::events::{EventStore, Recorded, StreamName};

impl EventStore {
    /// The feed of this store. Defaults to the first partition and all streams.
    pub fn feed(&self) -> Feed {
        Feed {
            store: self.clone(),
            partition: Partition::FIRST,
            filter: Filter::default(),
            concurrency_max: STREAMS_CONCURRENCY_MAX,
            poll: POLL,
        }
    }
}

/// A configured read of a feed: see [`EventStore::feed`].
#[derive(Clone, Debug)]
#[must_use = "a feed reads nothing until a start position is chosen"]
pub struct Feed {
    store: EventStore,
    partition: Partition,
    filter: Filter,
    concurrency_max: usize,
    poll: Duration,
}

impl Feed {
    setters! {
        /// Partition to read. Default: the first.
        pub const fn partition(partition: Partition) => partition = partition;

        /// Returns only what matches the filter.
        pub fn filter(filter: Filter) => filter = filter;

        /// Maximum number of streams loaded concurrently. Default: 16.
        pub const fn concurrency_max(streams: usize) => concurrency_max = streams;

        /// Pause at the tail before the next read. Default: 250 milliseconds.
        pub const fn poll(pause: Duration) => poll = pause;
    }

    /// Starts at the first event.
    pub fn from_start(self) -> Subscription {
        self.from(Checkpoint::START)
    }

    /// Starts at a checkpoint.
    pub fn from(self, checkpoint: Checkpoint) -> Subscription {
        let reader = Reader::new(self.store.feed_log(), self.partition, checkpoint);
        let reader = reader.filter(self.filter.clone());
        Subscription {
            feed: self,
            reader,
            position: checkpoint,
            ahead: None,
        }
    }

    /// Starts at the current tail.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn from_tail(self) -> Result<Subscription> {
        let reader = Reader::at_tail(self.store.feed_log(), self.partition).await?;
        let tail = reader.checkpoint();
        Ok(self.from(tail))
    }
}

/// Reads the feed of a partition with event bodies.
#[derive(Debug)]
pub struct Subscription {
    feed: Feed,
    reader: Reader<TableLog>,
    position: Checkpoint,
    /// A batch that was read but not returned, because its events could not be loaded.
    ahead: Option<FeedBatch>,
}

/// Events that were ingested together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventBatch {
    /// The position after these events.
    pub checkpoint: Checkpoint,
    /// The time of ingestion.
    pub time: Timestamp,
    /// The events of each stream, in order; may be empty because of the filter.
    pub streams: Vec<(StreamName, Vec<Recorded>)>,
}

impl Subscription {
    /// The current position: everything before it was returned.
    pub const fn checkpoint(&self) -> Checkpoint {
        self.position
    }

    /// Returns the current end of the feed.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn tail(&self) -> Result<Checkpoint> {
        self.reader.tail().await
    }

    /// Returns the number of events up to the tail, and how long the oldest of them has been in the feed. At the tail
    /// this is one read; behind it, only epochs are read, no event bodies.
    ///
    /// # Errors
    ///
    /// Failures of the store.
    pub async fn lag(&self) -> Result<Lag> {
        let feed = &self.feed;
        let log = feed.store.feed_log();
        let reader = Reader::new(log, feed.partition, self.position).filter(feed.filter.clone());
        reader.lag(feed.store.db().env().now()).await
    }

    /// Returns the next batch; `None` at the current tail.
    ///
    /// After a failure, or if the future is dropped, nothing is skipped: call it again.
    ///
    /// # Errors
    ///
    /// [`MissingEvents`](ErrorKind::MissingEvents) if events are no longer in their stream,
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) if one cannot be read, [`Store`](ErrorKind::Store) if the store
    /// fails.
    pub async fn next(&mut self) -> Result<Option<EventBatch>> {
        if self.ahead.is_none() {
            self.ahead = self.reader.next().await?;
        }
        let Some(batch) = &self.ahead else {
            self.position = self.reader.checkpoint();
            return Ok(None);
        };
        let FeedBatch { spans, .. } = batch;
        let (checkpoint, time, store) = (batch.checkpoint, batch.time, &self.feed.store);
        let mut loads: Vec<BoxFuture<'_, Result<Vec<Recorded>>>> = Vec::new();
        for span in spans {
            let range = span.start..span.end();
            loads.push(Box::pin(load_between(store, &span.stream, range)));
        }
        let loaded = concurrent::run_all(self.feed.concurrency_max, loads).await;
        let events: Vec<Vec<Recorded>> = loaded.into_iter().collect::<Result<_>>()?;
        let streams = spans.iter().map(|span| span.stream.clone());
        let batch = EventBatch {
            checkpoint,
            time,
            streams: streams.zip(events).collect(),
        };
        self.ahead = None;
        self.position = checkpoint;
        Ok(Some(batch))
    }

    /// Returns the next batch, waiting for it at the tail.
    ///
    /// # Errors
    ///
    /// As for [`next`](Self::next).
    pub async fn wait_next(&mut self) -> Result<EventBatch> {
        loop {
            if let Some(batch) = self.next().await? {
                return Ok(batch);
            }
            self.feed.store.db().timer().sleep(self.feed.poll).await;
        }
    }
}

/// Loads the events of a stream in a range of indexes.
///
/// # Errors
///
/// [`MissingEvents`](ErrorKind::MissingEvents) if some are no longer in the stream, and failures of the store.
pub(super) async fn load_between(
    store: &EventStore,
    stream: &StreamName,
    range: Range<u64>,
) -> Result<Vec<Recorded>> {
    let count = range.end.saturating_sub(range.start);
    let read = store.read(stream).from(range.start).max_count(count);
    let events = read.collect().await?;
    let start = events.first().map(|first| first.index);
    if start.is_none_or(|start| start == range.start) && events.len() as u64 == count {
        return Ok(events);
    }
    let message = format!(
        "events of the feed are missing in their stream: stream={stream} expected={range:?} found={}",
        events.len()
    );
    Err(Error::new(ErrorKind::MissingEvents, message))
}
