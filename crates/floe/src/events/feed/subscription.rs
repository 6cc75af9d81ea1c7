//! The feed with data: what was appended to the streams, and what it says.
//!
//! A subscription follows the [reader](super::reader) of a partition, and loads the events of each span from their
//! streams, several at once.
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
use super::limits::{POLL, STREAMS_AT_ONCE};
use super::log::TableLog;
use super::partition::Partition;
use super::reader::{FeedBatch, Filter, Reader};
use crate::error::{Error, ErrorKind, Result};
use crate::events::{EventStore, Recorded, StreamName};
use crate::side_by_side;

impl EventStore {
    /// The feed of this store: the first partition, all streams, unless told otherwise.
    pub fn feed(&self) -> Feed {
        Feed {
            store: self.clone(),
            partition: Partition::FIRST,
            filter: Filter::default(),
            at_once_max: STREAMS_AT_ONCE,
            poll: POLL,
        }
    }
}

/// What to read of a feed: see [`EventStore::feed`].
#[derive(Clone, Debug)]
#[must_use = "nothing is read before a place is chosen"]
pub struct Feed {
    store: EventStore,
    partition: Partition,
    filter: Filter,
    at_once_max: usize,
    poll: Duration,
}

impl Feed {
    setters! {
        /// Reads this partition.
        pub const fn partition(partition: Partition) => partition = partition;

        /// Reads what the filter lets through alone.
        pub fn filter(filter: Filter) => filter = filter;

        /// Loads the events of so many streams at once.
        pub const fn at_once_max(streams: usize) => at_once_max = streams;

        /// How long it waits at the tail before it looks again; 250 ms if nothing is said.
        pub const fn poll(pause: Duration) => poll = pause;
    }

    /// From the first event on.
    pub fn from_start(self) -> Subscription {
        self.from(Checkpoint::START)
    }

    /// From this place on.
    pub fn from(self, checkpoint: Checkpoint) -> Subscription {
        let reader = Reader::new(self.store.feed_log(), self.partition, checkpoint);
        let reader = reader.filter(self.filter.clone());
        Subscription {
            feed: self,
            reader,
            told: checkpoint,
            ahead: None,
        }
    }

    /// What is brought to the feed from now on.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn from_tail(self) -> Result<Subscription> {
        let reader = Reader::at_tail(self.store.feed_log(), self.partition).await?;
        let tail = reader.checkpoint();
        Ok(self.from(tail))
    }
}

/// Reads the feed of a partition, with data.
#[derive(Debug)]
pub struct Subscription {
    feed: Feed,
    reader: Reader<TableLog>,
    told: Checkpoint,
    /// What was read and is not told yet, because its events could not be loaded.
    ahead: Option<FeedBatch>,
}

/// Events that were brought to the feed together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventBatch {
    /// Where to go on once they are dealt with.
    pub checkpoint: Checkpoint,
    /// When they were brought to the feed.
    pub time: Timestamp,
    /// The events of each stream, in their order; none if the filter lets none through.
    pub streams: Vec<(StreamName, Vec<Recorded>)>,
}

impl Subscription {
    /// Where it goes on: all before was told.
    pub const fn checkpoint(&self) -> Checkpoint {
        self.told
    }

    /// Where the feed ends now.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn tail(&self) -> Result<Checkpoint> {
        self.reader.tail().await
    }

    /// How many events lie between what was told and the tail, and for how long the oldest of them has been in the feed.
    /// At the tail this is one read; behind it, the index is read and no events.
    ///
    /// # Errors
    ///
    /// As the store fails.
    pub async fn lag(&self) -> Result<Lag> {
        let feed = &self.feed;
        let log = feed.store.feed_log();
        let reader = Reader::new(log, feed.partition, self.told).filter(feed.filter.clone());
        reader.lag(feed.store.db().env().now()).await
    }

    /// The next batch; `None` at the tail, for now.
    ///
    /// After a failure, or when the future is dropped, nothing is skipped: it can be asked again.
    ///
    /// # Errors
    ///
    /// [`MissingEvents`](ErrorKind::MissingEvents) when events are not in their stream any more,
    /// [`InvalidEvent`](ErrorKind::InvalidEvent) when one cannot be read, [`Store`](ErrorKind::Store) when the store
    /// cannot answer.
    pub async fn next(&mut self) -> Result<Option<EventBatch>> {
        if self.ahead.is_none() {
            self.ahead = self.reader.next().await?;
        }
        let Some(batch) = &self.ahead else {
            self.told = self.reader.checkpoint();
            return Ok(None);
        };
        let FeedBatch { spans, .. } = batch;
        let (checkpoint, time, store) = (batch.checkpoint, batch.time, &self.feed.store);
        let mut loads: Vec<BoxFuture<'_, Result<Vec<Recorded>>>> = Vec::new();
        for span in spans {
            let range = span.start..span.end();
            loads.push(Box::pin(load_between(store, &span.stream, range)));
        }
        let loaded = side_by_side::all(self.feed.at_once_max, loads).await;
        let events: Vec<Vec<Recorded>> = loaded.into_iter().collect::<Result<_>>()?;
        let streams = spans.iter().map(|span| span.stream.clone());
        let batch = EventBatch {
            checkpoint,
            time,
            streams: streams.zip(events).collect(),
        };
        self.ahead = None;
        self.told = checkpoint;
        Ok(Some(batch))
    }

    /// The next batch. Waits for it at the tail.
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

/// The events of a stream in a range of indexes.
///
/// # Errors
///
/// [`MissingEvents`](ErrorKind::MissingEvents) when some are not in the stream any more, and as the store fails.
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
        "events of the feed are not in their stream: stream={stream} expected={range:?} found={}",
        events.len()
    );
    Err(Error::new(ErrorKind::MissingEvents, message))
}
