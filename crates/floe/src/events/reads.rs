//! Loads the events of a stream with as few reads as possible.
//!
//! The Tip is read first. If it contains no origin, batches are read backward, the newest first, until an origin is
//! found; then the archive, if there is one.

use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::op::{GetItem, Query};
use floe_store::{Item, Value};

use super::event::Recorded;
use super::keys::StreamName;
use super::options::EventStoreOptions;
use super::position::StreamPosition;
use super::stored::{Batch, INDEX, STREAM, StoredEvent, TIP_INDEX, key};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};

/// Reads the Tip, if the stream exists.
pub(crate) async fn tip(
    db: &Db,
    table: &str,
    stream: &StreamName,
    consistent: bool,
) -> Result<Option<Batch>> {
    batch(db, table, key(stream, TIP_INDEX), consistent).await
}

/// Reads the batch with this key, if it exists.
pub(super) async fn batch(
    db: &Db,
    table: &str,
    key: Item,
    consistent: bool,
) -> Result<Option<Batch>> {
    let mut get = GetItem::new(table, key);
    get.consistent = consistent;
    let output = db.engine().get_item(get).await;
    let output = output.map_err(|error| failed(error, table))?;
    output.item.map(Batch::of_item).transpose()
}

/// The items of a query, page by page.
#[derive(Debug)]
pub(super) struct Pages {
    pub(super) query: Query,
    pub(super) is_done: bool,
}

impl Pages {
    /// Returns the next page; `None` after the last.
    pub(super) async fn next(&mut self, db: &Db) -> Result<Option<Vec<Item>>> {
        if self.is_done {
            return Ok(None);
        }
        let page = db.engine().query(self.query.clone()).await;
        let page = page.map_err(|error| failed(error, &self.query.table_name))?;
        self.is_done = page.last_key.is_none();
        self.query.start_key = page.last_key;
        Ok(Some(page.items))
    }
}

/// Converts an error; a missing table becomes an error with a remedy.
pub(crate) fn failed(error: floe_store::Error, table: &str) -> Error {
    match error {
        floe_store::Error::ResourceNotFound(_) => {
            let message = format!(
                "the events table does not exist: call EventStore::ensure_table: table={table}"
            );
            Error::new(ErrorKind::Table, message).with_source(error)
        }
        error => error.into(),
    }
}

/// A stream to read, with options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) db: &'a Db,
    pub(crate) options: &'a EventStoreOptions,
    pub(crate) stream: &'a StreamName,
    /// Whether reads are strongly consistent, at twice the price.
    pub(crate) consistent: bool,
}

impl<'a> Source<'a> {
    /// The batches of the stream in a table, in a range of sort keys.
    pub(super) fn batches(&self, table: &str, range: Option<KeyOp>) -> Batches<'a> {
        let stream = Value::S(self.stream.text().clone());
        let mut condition = KeyCondition::partition(STREAM, stream);
        if let Some(range) = range {
            condition = condition.and(INDEX, range);
        }
        let mut query = Query::new(table, condition).limit(self.options.page_items);
        query.consistent = self.consistent;
        Batches {
            db: self.db,
            pages: Pages {
                query,
                is_done: false,
            },
            requests_left: self.options.requests_max,
        }
    }
}

/// The batches of a stream, page by page.
#[derive(Debug)]
pub(crate) struct Batches<'a> {
    db: &'a Db,
    pages: Pages,
    /// Number of requests that may still be sent.
    requests_left: Option<u32>,
}

impl Batches<'_> {
    setters! {
        /// Reads the newest first.
        pub(crate) fn backward() => pages.query.forward = false;

        /// Maximum number of batches per request.
        pub(crate) fn limit(batches: usize) => pages.query.limit = Some(batches);
    }

    /// Returns the next page; `None` after the last.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) if the store fails, [`TooLarge`](ErrorKind::TooLarge) if it needs too many
    /// requests, [`InvalidEvent`](ErrorKind::InvalidEvent) if an item does not belong to a stream.
    pub(crate) async fn next_page(&mut self) -> Result<Option<Vec<Batch>>> {
        if self.pages.is_done {
            return Ok(None);
        }
        if let Some(left) = &mut self.requests_left {
            let table = &self.pages.query.table_name;
            *left = left.checked_sub(1).ok_or_else(|| too_many(table))?;
        }
        let items = self.pages.next(self.db).await?.into_iter().flatten();
        let batches: Result<_> = items.map(Batch::of_item).collect();
        batches.map(Some)
    }
}

fn too_many(table: &str) -> Error {
    let message = format!("loading the stream exceeds requests_max: table={table}");
    Error::new(ErrorKind::TooLarge, message)
}

/// The range of sort keys before this one.
pub(crate) fn before(index: u64) -> KeyOp {
    KeyOp::Lt(index.into())
}

/// Loads the stored events in a range of indexes, given the Tip.
pub(crate) async fn stored_between(
    db: &Db,
    table: &str,
    stream: &StreamName,
    tip: &Batch,
    start: u64,
    end: u64,
) -> Result<Vec<StoredEvent>> {
    let mut found: Vec<(u64, StoredEvent)> = Vec::new();
    let mut take = |batch: &Batch| {
        let wanted = batch.since(start)?.into_iter();
        let wanted = wanted.filter(|(index, _)| *index < end);
        found.extend(wanted.map(|(index, event)| (index, event.to_stored())));
        Ok::<_, Error>(batch.base())
    };
    let mut lowest = take(tip)?;
    let source = Source {
        db,
        options: &EventStoreOptions::default(),
        stream,
        consistent: true,
    };
    let mut batches = source.batches(table, Some(before(lowest))).backward();
    while lowest > start {
        let Some(page) = batches.next_page().await? else {
            break;
        };
        for batch in &page {
            lowest = take(batch)?;
        }
    }
    found.sort_by_key(|(index, _)| *index);
    Ok(found.into_iter().map(|(_, event)| event).collect())
}

/// A loaded stream.
#[derive(Debug)]
pub(crate) struct Loaded<E> {
    /// The position of the stream; `None` if it does not exist.
    pub(crate) position: Option<StreamPosition>,
    /// The requested events, oldest first: from the origin, or from the known index.
    pub(crate) events: Vec<E>,
    /// Whether they start with an origin, which replaces all earlier state.
    pub(crate) from_origin: bool,
}

impl<E> Loaded<E> {
    const fn nothing() -> Self {
        Self {
            position: None,
            events: Vec::new(),
            from_origin: true,
        }
    }
}

/// Decodes events, newest first, and recognises the origin.
pub(crate) trait EventDecoder<E> {
    /// Decodes an event; `None` to skip it.
    ///
    /// # Errors
    ///
    /// If it cannot be decoded.
    fn decode(&self, event: Recorded) -> Result<Option<E>>;

    /// Whether earlier events are irrelevant.
    fn is_origin(&self, event: &E) -> bool;
}

/// Loads the events of a stream from `since`. The Tip may be known already. `unfolds` includes unfolds.
///
/// # Errors
///
/// [`MissingEvents`](ErrorKind::MissingEvents) if required events were pruned, and as for [`Batches::next_page`].
pub(crate) async fn load<E, S: EventDecoder<E>>(
    source: Source<'_>,
    known_tip: Option<Batch>,
    since: u64,
    unfolds: bool,
    decoder: &S,
) -> Result<Loaded<E>> {
    let options = source.options;
    let tip = match known_tip {
        Some(tip) => Some(tip),
        None => tip(source.db, &options.table, source.stream, source.consistent).await?,
    };
    let Some(tip) = tip else {
        return Ok(Loaded::nothing());
    };
    let mut walk = Walk::back_from(source, &tip, decoder, since);
    // Unfolds replace all events, so they help only if nothing is known or new events are missing in the Tip.
    if unfolds && (since == 0 || tip.base() > since) {
        walk.unfolds(&tip)?;
    }
    walk.batch(&tip)?;
    let tables = [Some(options.table.as_str()), options.archive.as_deref()];
    for table in tables.into_iter().flatten() {
        walk.older(table).await?;
    }
    walk.finish(&tip)
}

/// Loads all events of a stream with a query, without reading the Tip first.
///
/// # Errors
///
/// As for [`load`].
pub(crate) async fn load_by_query<E, S: EventDecoder<E>>(
    source: Source<'_>,
    decoder: &S,
) -> Result<Loaded<E>> {
    let mut pages = source.batches(&source.options.table, None);
    // The query returns the Tip last, so events calved meanwhile are found in a batch or in the Tip.
    let mut batches: Vec<Batch> = Vec::new();
    while !batches.last().is_some_and(Batch::is_tip)
        && let Some(page) = pages.next_page().await?
    {
        batches.extend(page);
    }
    let Some(tip) = batches.last().filter(|last| last.is_tip()) else {
        return Ok(Loaded::nothing());
    };
    let mut walk = Walk::back_from(source, tip, decoder, 0);
    batches
        .iter()
        .rev()
        .try_for_each(|batch| walk.batch(batch))?;
    if let Some(archive) = &source.options.archive {
        walk.older(archive).await?;
    }
    walk.finish(tip)
}

fn missing(source: Source<'_>, lowest: u64) -> Error {
    let stream = source.stream;
    let archive = match &source.options.archive {
        Some(archive) => format!("or the archive: archive={archive}"),
        None => "and there is no archive:".to_owned(),
    };
    let message = format!(
        "required events are no longer in the stream, {archive} stream={stream} lowest={lowest}"
    );
    Error::new(ErrorKind::MissingEvents, message)
}

/// Walks back through a stream until the origin is found.
struct Walk<'s, E, S> {
    source: Source<'s>,
    decoder: &'s S,
    since: u64,
    /// The index of the oldest event seen.
    lowest: u64,
    newest_first: Vec<E>,
    found: bool,
}

impl<'s, E, S: EventDecoder<E>> Walk<'s, E, S> {
    fn back_from(source: Source<'s>, tip: &Batch, decoder: &'s S, since: u64) -> Self {
        Self {
            source,
            decoder,
            since,
            lowest: tip.next,
            newest_first: Vec::new(),
            found: false,
        }
    }

    /// Continues in a table with older events.
    async fn older(&mut self, table: &str) -> Result<()> {
        if self.is_complete() {
            return Ok(());
        }
        let range = Some(before(self.lowest));
        let mut batches = self.source.batches(table, range).backward();
        while !self.is_complete()
            && let Some(page) = batches.next_page().await?
        {
            page.iter().try_for_each(|batch| self.batch(batch))?;
        }
        Ok(())
    }

    fn finish(mut self, tip: &Batch) -> Result<Loaded<E>> {
        if !self.is_complete() && !self.source.options.ignore_missing {
            return Err(missing(self.source, self.lowest));
        }
        self.newest_first.reverse();
        Ok(Loaded {
            position: Some(StreamPosition::of_tip(tip)),
            from_origin: self.found || self.since == 0,
            events: self.newest_first,
        })
    }

    fn is_complete(&self) -> bool {
        self.found || self.lowest <= self.since
    }

    fn unfolds(&mut self, tip: &Batch) -> Result<()> {
        for unfold in tip.unfolds.iter().rev() {
            self.take(tip.recorded_unfold(unfold)?)?;
            if self.found {
                return Ok(());
            }
        }
        // Unfolds that are no origin add nothing to the events.
        self.newest_first.clear();
        Ok(())
    }

    fn batch(&mut self, batch: &Batch) -> Result<()> {
        if self.is_complete() {
            return Ok(());
        }
        if batch.next < self.lowest {
            let message = format!(
                "a stream has a gap: stream={} from={} to={}",
                batch.stream, batch.next, self.lowest
            );
            return Err(Error::new(ErrorKind::MissingEvents, message));
        }
        for (index, event) in batch.since(self.since)?.iter().rev() {
            if *index < self.lowest {
                self.take(batch.recorded(*index, event)?)?;
                self.lowest = *index;
            }
            if self.is_complete() {
                break;
            }
        }
        Ok(())
    }

    fn take(&mut self, event: Recorded) -> Result<()> {
        if let Some(event) = self.decoder.decode(event)? {
            self.found = self.decoder.is_origin(&event);
            self.newest_first.push(event);
        }
        Ok(())
    }
}
