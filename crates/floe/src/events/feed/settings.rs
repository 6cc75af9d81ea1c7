//! Settings that are fixed when a feed starts: its number of partitions.
//!
//! The number is stored in `$FeedSettings-0` of the index table, and every writer checks it. With another number,
//! streams would move between partitions and lose their order.

use std::num::NonZeroU32;

use floe_store::table::{KeyKind, TableDef};
use serde_json::json;

use super::json::read_json;
use super::log::TableLog;
use super::partition::Partitions;
use crate::error::{Error, ErrorKind, Result};
use crate::events::stored::{INDEX, STREAM};
use crate::events::{Access, Decider, Event, EventStore, EventStoreOptions, Load, Stream};
use crate::tables::ENSURE_DEADLINE;

/// The suffix of an index table's name.
const INDEX_SUFFIX: &str = "-index";

/// The id of the settings. An index table holds one feed.
const SETTINGS_ID: &str = "0";

impl EventStore {
    /// The event store of the feed, in the table `<table>-index`.
    #[must_use]
    pub fn feed_index(&self) -> Self {
        let table = format!("{}{INDEX_SUFFIX}", self.options().table);
        let options = EventStoreOptions::new(table).compression(self.options().compression);
        self.db().event_store(options)
    }

    /// Creates the table of the feed if it is missing.
    ///
    /// # Errors
    ///
    /// As for [`ensure_table`](Self::ensure_table).
    pub async fn ensure_feed(&self) -> Result<()> {
        let tables = vec![self.feed_table()?];
        let ensured = self.db().ensure_definitions(tables, ENSURE_DEADLINE);
        ensured.await.map(drop)
    }

    /// The definition of the table of the feed: keys as for a store, and no change stream.
    ///
    /// # Errors
    ///
    /// [`InvalidUse`](ErrorKind::InvalidUse) if its name is not a valid table name.
    pub fn feed_table(&self) -> Result<TableDef> {
        let index = self.feed_index();
        let table = TableDef::builder(index.options().table.as_str(), STREAM, KeyKind::S)
            .sort_key(INDEX, KeyKind::N)
            .build();
        table.map_err(|error| {
            Error::new(ErrorKind::InvalidUse, error.to_string()).with_source(error)
        })
    }

    /// The number of partitions; `None` if the feed has not started.
    ///
    /// # Errors
    ///
    /// [`Table`](ErrorKind::Table) if the index table is missing, [`Store`](ErrorKind::Store) if the store fails.
    pub async fn feed_partitions(&self) -> Result<Option<Partitions>> {
        self.feed_settings().query(|partitions| *partitions).await
    }

    fn feed_settings(&self) -> Stream<FeedSettings> {
        let settings = self.feed_index().stream::<FeedSettings>(SETTINGS_ID);
        settings.load(Load::RequireLeader)
    }

    /// Stores the number of partitions, unless it is stored already.
    pub(super) async fn begin_feed(&self, partitions: Partitions) -> Result<()> {
        let decide = |known: &Option<Partitions>| match known {
            None => Ok(Some(FeedStarted(partitions))),
            Some(known) if *known == partitions => Ok(None),
            Some(known) => {
                let (expected, actual) = (partitions.count(), known.count());
                let message = format!(
                    "the feed has another number of partitions: expected={expected} actual={actual}"
                );
                Err(Error::new(ErrorKind::InvalidUse, message))
            }
        };
        self.feed_settings().transact(decide).await
    }

    pub(super) fn feed_log(&self) -> TableLog {
        let index = self.feed_index();
        TableLog::new(self.db().clone(), index.options().clone())
    }
}

/// The stored event type.
const STARTED: &str = "Begun";

/// The stream of the settings.
enum FeedSettings {}

/// The event that starts a feed with a number of partitions.
#[derive(Clone, Copy, Debug)]
struct FeedStarted(Partitions);

impl Event for FeedStarted {
    fn event_type(&self) -> &'static str {
        STARTED
    }

    fn encode(&self) -> Result<Vec<u8>> {
        let json = json!({ "partitions": self.0.count() });
        Ok(json.to_string().into_bytes())
    }

    fn decode(event_type: &str, data: &[u8]) -> Result<Option<Self>> {
        if event_type != STARTED {
            return Ok(None);
        }
        let count = read_json("the settings of a feed", data, |json| {
            let count = u32::try_from(json.get("partitions")?.as_u64()?).ok()?;
            NonZeroU32::new(count)
        })?;
        Ok(Some(Self(Partitions::new(count))))
    }
}

impl Decider for FeedSettings {
    const CATEGORY: &'static str = "$FeedSettings";
    type Id = str;
    type Event = FeedStarted;
    type State = Option<Partitions>;

    fn initial() -> Self::State {
        None
    }

    fn evolve(_: Self::State, event: &FeedStarted) -> Self::State {
        Some(event.0)
    }

    fn access() -> Access<Self> {
        Access::LatestKnownEvent
    }
}
