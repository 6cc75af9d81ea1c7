//! Reads events forward or backward, from any index, page by page.

use floe_store::expr::KeyOp;

use super::event::Recorded;
use super::keys::StreamName;
use super::reads::Batches;
use super::store::EventStore;
use super::stored::Batch;
use crate::error::{Error, ErrorKind, Result};

impl EventStore {
    /// Reads the events of a stream. Default: all events, forward.
    ///
    /// ```
    /// use floe::events::{EventData, Expected, StreamName};
    /// use floe::{Db, Error};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Error> {
    /// let store = Db::memory()?.events();
    /// store.ensure_table().await?;
    /// let log = StreamName::new("Log", "a")?;
    /// let events = ["one", "two", "three"].map(|name| EventData::new(name, ""));
    /// store.append(&log, Expected::New, events).await?;
    ///
    /// let last = store.read(&log).backward().max_count(2).collect().await?;
    /// let types: Vec<_> = last.iter().map(|read| read.event.event_type.as_str()).collect();
    /// assert_eq!(types, ["three", "two"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn read<'s>(&'s self, stream: &'s StreamName) -> ReadEvents<'s> {
        ReadEvents {
            store: self,
            stream,
            forward: true,
            from: None,
            max_count: None,
            consistent: true,
        }
    }
}

/// A configured read of a stream: see [`EventStore::read`].
#[derive(Clone, Debug)]
pub struct ReadEvents<'s> {
    store: &'s EventStore,
    stream: &'s StreamName,
    forward: bool,
    from: Option<u64>,
    max_count: Option<u64>,
    consistent: bool,
}

impl<'s> ReadEvents<'s> {
    setters! {
        /// Reads the newest event first.
        pub const fn backward() => forward = false;

        /// The first index: forward reads continue after it, backward reads before it.
        pub const fn from(index: u64) => from = Some(index);

        /// Maximum number of events.
        pub const fn max_count(events: u64) => max_count = Some(events);

        /// Uses eventually consistent reads, at half the price.
        pub const fn eventual() => consistent = false;
    }

    /// Returns the pages. The first request is sent for the first page.
    pub fn pages(self) -> EventPages<'s> {
        EventPages {
            left: self.max_count.unwrap_or(u64::MAX),
            next: None,
            batches: None,
            read: self,
        }
    }

    /// Reads all events.
    ///
    /// # Errors
    ///
    /// As for [`EventPages::next_page`].
    pub async fn collect(self) -> Result<Vec<Recorded>> {
        let mut pages = self.pages();
        let mut events = Vec::new();
        while let Some(page) = pages.next_page().await? {
            events.extend(page);
        }
        Ok(events)
    }
}

/// The events of a stream in pages.
#[derive(Debug)]
pub struct EventPages<'s> {
    read: ReadEvents<'s>,
    batches: Option<Batches<'s>>,
    /// Number of events that may still be read.
    left: u64,
    /// The next expected index, after the first event.
    next: Option<u64>,
}

impl<'s> EventPages<'s> {
    /// Returns the next page, which may be empty; `None` after the last.
    ///
    /// # Errors
    ///
    /// [`MissingEvents`](ErrorKind::MissingEvents) if there is a gap, [`InvalidEvent`](ErrorKind::InvalidEvent) if an
    /// event cannot be read, [`TooLarge`](ErrorKind::TooLarge) if it needs too many requests,
    /// [`Store`](ErrorKind::Store) if the store fails.
    pub async fn next_page(&mut self) -> Result<Option<Vec<Recorded>>> {
        if self.left == 0 {
            return Ok(None);
        }
        let batches = match &mut self.batches {
            Some(batches) => batches,
            none => none.insert(begin(&self.read).await?),
        };
        let Some(page) = batches.next_page().await? else {
            return Ok(None);
        };
        let mut events = Vec::new();
        for batch in &page {
            self.take(batch, &mut events)?;
        }
        Ok(Some(events))
    }

    fn take(&mut self, batch: &Batch, events: &mut Vec<Recorded>) -> Result<()> {
        let (forward, from) = (self.read.forward, self.read.from);
        let start = from.filter(|_| forward).unwrap_or(0);
        let mut indexed = batch.since(start)?;
        if !forward {
            indexed.reverse();
        }
        // Events that were read from the Tip may have been calved since, and backward reads find them again.
        let from = self.next.filter(|_| !forward).or(from);
        let is_wanted = |index: u64| {
            from.is_none_or(|from| {
                if forward {
                    index >= from
                } else {
                    index <= from
                }
            })
        };
        for (index, event) in indexed.into_iter().filter(|(index, _)| is_wanted(*index)) {
            if self.left == 0 {
                break;
            }
            if self.next.is_some_and(|next| next != index) {
                return Err(gap(self.read.stream, index, self.next));
            }
            events.push(batch.recorded(index, &event)?);
            self.left -= 1;
            self.next = if forward {
                Some(index + 1)
            } else {
                index.checked_sub(1)
            };
        }
        Ok(())
    }
}

/// Starts with the batch that contains the first event to read.
async fn begin<'s>(read: &ReadEvents<'s>) -> Result<Batches<'s>> {
    let source = read.store.source(read.stream, read.consistent);
    let batches = |range| source.batches(&source.options.table, range);
    if !read.forward {
        return Ok(batches(None).backward());
    }
    match read.from {
        None | Some(0) => Ok(batches(None)),
        Some(from) => {
            let mut last = batches(Some(KeyOp::Le(from.into()))).backward().limit(1);
            let found = last.next_page().await?.unwrap_or_default();
            let range = found.first().map(|batch| KeyOp::Ge(batch.index.into()));
            Ok(batches(range))
        }
    }
}

fn gap(stream: &StreamName, found: u64, expected: Option<u64>) -> Error {
    let expected = expected.unwrap_or_default();
    let message = format!("a stream has a gap: stream={stream} expected={expected} found={found}");
    Error::new(ErrorKind::MissingEvents, message)
}
