//! The event store: streams in a table, independent of the meaning of their events.

use std::fmt;
use std::sync::Arc;

use floe_store::Timestamp;
use floe_store::expr::{Condition, Path, Paths};
use floe_store::op::Scan;
use floe_store::table::{KeyKind, StreamView, TableDef};
use floe_store::{Item, Value};

use super::cache::StateCache;
use super::changes::{Change, Guard};
use super::compile::{AppendOutcome, StreamAppend};
use super::event::EventData;
use super::keys::StreamName;
use super::limits::ANY_ATTEMPTS_MAX;
use super::options::EventStoreOptions;
use super::position::StreamPosition;
use super::reads::{self, Source};
use super::stored::{Batch, INDEX, STREAM, StoredEvent, TIP_INDEX};
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::events::telemetry;
use crate::request::{Backoff, Budget};
use crate::tables::ENSURE_DEADLINE;

/// The streams in a table. Cheap to clone.
///
/// ```
/// use floe::events::{EventData, Expected, StreamName};
/// use floe::{Db, Error};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let store = Db::memory()?.events();
/// store.ensure_table().await?;
/// let cart = StreamName::new("Cart", "7")?;
/// let added = EventData::new("ItemAdded", br#"{"sku":"tea"}"#);
/// assert_eq!(store.append(&cart, Expected::New, [added.clone()]).await?, 1);
/// assert_eq!(store.append(&cart, Expected::Exact(1), [added]).await?, 2);
/// assert_eq!(store.version(&cart).await?, 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct EventStore {
    db: Db,
    options: Arc<EventStoreOptions>,
    /// The cache of states, if enabled.
    pub(super) cache: Option<Arc<StateCache>>,
}

/// The expected version of a stream in an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Any version.
    Any,
    /// The stream does not exist.
    New,
    /// Exactly this number of events.
    Exact(u64),
}

impl Db {
    /// The streams in the table `events`.
    pub fn events(&self) -> EventStore {
        self.event_store(EventStoreOptions::default())
    }

    /// The streams of another table, or with other options.
    pub fn event_store(&self, options: EventStoreOptions) -> EventStore {
        EventStore {
            db: self.clone(),
            options: Arc::new(options),
            cache: None,
        }
    }
}

impl EventStore {
    /// The database of the store.
    pub const fn db(&self) -> &Db {
        &self.db
    }

    /// The options of the store.
    pub fn options(&self) -> &EventStoreOptions {
        &self.options
    }

    /// The definition of its table: keys `p` and `i`, and a change stream with new images for the feed.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if its name is not a valid table name.
    pub fn table(&self) -> Result<TableDef> {
        let table = TableDef::builder(self.options.table.as_str(), STREAM, KeyKind::S)
            .sort_key(INDEX, KeyKind::N)
            .stream(StreamView::NewImage)
            .build();
        table.map_err(|error| {
            Error::new(ErrorKind::InvalidUse, error.to_string()).with_source(error)
        })
    }

    /// Creates the table if it is missing.
    ///
    /// # Errors
    ///
    /// [`Table`](ErrorKind::Table) if the table exists with other keys, [`Store`](ErrorKind::Store) if the store
    /// fails.
    pub async fn ensure_table(&self) -> Result<()> {
        let definitions = vec![self.table()?];
        self.db
            .ensure_definitions(definitions, ENSURE_DEADLINE)
            .await
            .map(drop)
    }

    /// Appends events to a stream atomically. Returns the version of the stream afterwards.
    ///
    /// # Errors
    ///
    /// [`VersionConflict`](ErrorKind::VersionConflict) if the stream is not at the expected version,
    /// [`MaxResyncsExhausted`](ErrorKind::MaxResyncsExhausted) if any version is accepted and there were too many
    /// conflicts, [`TooLarge`](ErrorKind::TooLarge) if the events do not fit into an item,
    /// [`InvalidUse`](ErrorKind::InvalidUse) if there are none, [`Store`](ErrorKind::Store) if the store fails.
    pub async fn append(
        &self,
        stream: &StreamName,
        expected: Expected,
        events: impl IntoIterator<Item = EventData>,
    ) -> Result<u64> {
        let change = Change::of_events(self.stored(events)?);
        let tip = match expected {
            Expected::New | Expected::Exact(0) => None,
            Expected::Any | Expected::Exact(_) => self.tip(stream, true).await?,
        };
        let position = tip.as_ref().map(StreamPosition::of_tip);
        let check = |position: Option<&StreamPosition>| check_version(stream, expected, position);
        let (_, after) = self.append_to(stream, position, &change, check).await?;
        Ok(after.version)
    }

    /// Appends to the current end of a stream, unless the check fails. Returns the version before and the position
    /// after it.
    pub(super) async fn append_to(
        &self,
        stream: &StreamName,
        mut position: Option<StreamPosition>,
        change: &Change,
        check: impl Fn(Option<&StreamPosition>) -> Result<()>,
    ) -> Result<(u64, StreamPosition)> {
        let mut attempts = 0;
        loop {
            check(position.as_ref())?;
            match self.send_append(stream, position.as_ref(), change).await? {
                AppendOutcome::Written(after) => {
                    let before = position.map_or(0, |position| position.version);
                    return Ok((before, after));
                }
                AppendOutcome::Conflict(tip) => {
                    position = tip.as_deref().map(StreamPosition::of_tip);
                }
            }
            self.wait_after_conflict(stream, &mut attempts, ANY_ATTEMPTS_MAX)
                .await?;
        }
    }

    /// Returns the number of events of a stream; 0 if it does not exist.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) if the store fails.
    pub async fn version(&self, stream: &StreamName) -> Result<u64> {
        Ok(self.tip(stream, true).await?.map_or(0, |tip| tip.next))
    }

    /// The streams of a category, or all, unordered. Reads the whole table.
    pub fn streams(&self, category: Option<&str>) -> Streams<'_> {
        let is_tip = Condition::eq(Path::attribute(INDEX), Value::from(TIP_INDEX));
        let filter = match category {
            Some(category) => {
                let prefix = Value::from(format!("{category}-").as_str());
                is_tip.and(Condition::begins_with(Path::attribute(STREAM), prefix))
            }
            None => is_tip,
        };
        let mut scan = Scan::new(self.options.table.as_str());
        scan.filter = Some(filter);
        scan.projection = Some(Paths(vec![Path::attribute(STREAM)]));
        Streams {
            store: self,
            scan,
            is_done: false,
        }
    }

    pub(crate) async fn tip(&self, stream: &StreamName, consistent: bool) -> Result<Option<Batch>> {
        reads::tip(&self.db, &self.options.table, stream, consistent).await
    }

    /// A source for reading a stream of this store.
    pub(super) fn source<'a>(&'a self, stream: &'a StreamName, consistent: bool) -> Source<'a> {
        Source {
            db: &self.db,
            options: &self.options,
            stream,
            consistent,
        }
    }

    /// Sends an append to a stream at a position.
    pub(crate) async fn send_append(
        &self,
        stream: &StreamName,
        position: Option<&StreamPosition>,
        change: &Change,
    ) -> Result<AppendOutcome> {
        let etag = self.db.env().ordered_uuid();
        let options = &self.options;
        let append =
            StreamAppend::new(&options.table, stream, position, change, &options.tip, etag)?;
        let outcome = append.send(&self.db, stream, Budget::for_write()).await?;
        if matches!(outcome, AppendOutcome::Written(_)) {
            telemetry::appended(&options.table, stream, change.events.len());
        }
        Ok(outcome)
    }

    /// Counts a conflict, and waits before the next attempt.
    ///
    /// # Errors
    ///
    /// [`MaxResyncsExhausted`](ErrorKind::MaxResyncsExhausted) if there is no further attempt.
    pub(crate) async fn wait_after_conflict(
        &self,
        stream: &StreamName,
        attempts: &mut u32,
        attempts_max: u32,
    ) -> Result<()> {
        *attempts += 1;
        if *attempts >= attempts_max {
            return Err(exhausted(stream, *attempts));
        }
        let pause = Backoff::resync().pause(*attempts, self.db.env().next_u64());
        self.db.timer().sleep(pause).await;
        Ok(())
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.db.engine().now()
    }

    pub(super) fn stored(
        &self,
        events: impl IntoIterator<Item = EventData>,
    ) -> Result<Vec<StoredEvent>> {
        let (now, compression) = (self.now(), self.options.compression);
        let events = events.into_iter();
        let events: Vec<_> = events
            .map(|event| StoredEvent::new(event, now, compression))
            .collect();
        if events.is_empty() {
            let message = "no events to append";
            return Err(Error::new(ErrorKind::InvalidUse, message));
        }
        Ok(events)
    }
}

impl fmt::Debug for EventStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("EventStore");
        debug
            .field("table", &self.options.table)
            .finish_non_exhaustive()
    }
}

fn check_version(
    stream: &StreamName,
    expected: Expected,
    position: Option<&StreamPosition>,
) -> Result<()> {
    let actual = position.map_or(0, |position| position.version);
    let wanted = match expected {
        Expected::Any => return Ok(()),
        Expected::New if position.is_none() => return Ok(()),
        Expected::New => 0,
        Expected::Exact(version) if version == actual => return Ok(()),
        Expected::Exact(version) => version,
    };
    Err(version_conflict(stream, wanted, actual))
}

pub(super) fn version_conflict(stream: &StreamName, expected: u64, actual: u64) -> Error {
    let message = format!(
        "the stream is at another version: stream={stream} expected={expected} actual={actual}"
    );
    Error::new(ErrorKind::VersionConflict, message)
}

pub(crate) fn exhausted(stream: &StreamName, attempts: u32) -> Error {
    let message = format!("gave up after conflicts: stream={stream} attempts={attempts}");
    Error::new(ErrorKind::MaxResyncsExhausted, message)
}

impl Change {
    /// An append of events without unfolds, to any version of the stream.
    pub(crate) const fn of_events(events: Vec<StoredEvent>) -> Self {
        Self {
            events,
            unfolds: Vec::new(),
            guard: Guard::Version,
        }
    }
}

/// The names of streams in pages: see [`EventStore::streams`].
#[derive(Debug)]
pub struct Streams<'s> {
    store: &'s EventStore,
    scan: Scan,
    is_done: bool,
}

impl Streams<'_> {
    /// Returns the next page, which may be empty; `None` after the last.
    ///
    /// # Errors
    ///
    /// [`Store`](ErrorKind::Store) if the store fails, [`InvalidEvent`](ErrorKind::InvalidEvent) if an item does not
    /// belong to a stream.
    pub async fn next_page(&mut self) -> Result<Option<Vec<StreamName>>> {
        if self.is_done {
            return Ok(None);
        }
        let page = self.store.db.engine().scan(self.scan.clone()).await;
        let page = page.map_err(|error| reads::failed(error, &self.scan.table_name))?;
        self.is_done = page.last_key.is_none();
        self.scan.start_key = page.last_key;
        let names: Result<_> = page.items.iter().map(name_of).collect();
        names.map(Some)
    }

    /// Reads all names.
    ///
    /// # Errors
    ///
    /// As for [`next_page`](Self::next_page).
    pub async fn collect(mut self) -> Result<Vec<StreamName>> {
        let mut names = Vec::new();
        while let Some(page) = self.next_page().await? {
            names.extend(page);
        }
        Ok(names)
    }
}

fn name_of(item: &Item) -> Result<StreamName> {
    StreamName::parse(item.get(&STREAM).and_then(Value::as_s).unwrap_or_default())
}
