//! How an event store keeps its streams.

use super::codec::Compression;
use super::limits::{ATTEMPTS_MAX, PAGE_ITEMS, TipLimits};

/// How an event store keeps its streams.
///
/// ```
/// use floe::events::{Compression, EventStoreOptions};
///
/// let options = EventStoreOptions::new("shop-events").compression(Compression::Brotli);
/// assert_eq!(options.table, "shop-events");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventStoreOptions {
    /// The table.
    pub table: String,
    /// A table with events that were pruned from this one.
    pub archive: Option<String>,
    /// What a Tip holds before its events are calved.
    pub tip: TipLimits,
    /// How many batches a request reads at most.
    pub page_items: usize,
    /// How many requests loading a stream may take besides the Tip; any number if absent.
    pub requests_max: Option<u32>,
    /// Whether a stream may be loaded of which events are missing.
    pub ignore_missing: bool,
    /// Whether bodies are made smaller.
    pub compression: Compression,
    /// How often an append is tried in all, if somebody else is always faster; at least once.
    pub attempts_max: u32,
}

impl Default for EventStoreOptions {
    fn default() -> Self {
        Self {
            table: "events".to_owned(),
            archive: None,
            tip: TipLimits::default(),
            page_items: PAGE_ITEMS,
            requests_max: None,
            ignore_missing: false,
            compression: Compression::None,
            attempts_max: ATTEMPTS_MAX,
        }
    }
}

impl EventStoreOptions {
    /// Streams in this table.
    pub fn new(table: impl Into<String>) -> Self {
        Self {
            table: table.into(),
            ..Self::default()
        }
    }

    setters! {
        /// Looks for events that were pruned in this table.
        pub fn archive(table: impl Into<String>) => archive = Some(table.into());

        /// Calves the events of a Tip beyond these limits.
        pub const fn tip(limits: TipLimits) => tip = limits;

        /// Calves the events of a Tip when they would be more than so many.
        pub const fn tip_events_max(events: usize) => tip.events_max = Some(events);

        /// Reads at most so many batches with a request.
        pub const fn page_items(items: usize) => page_items = items;

        /// Sends at most so many requests for batches to load a stream.
        pub const fn requests_max(requests: u32) => requests_max = Some(requests);

        /// Loads streams of which events are missing, without them.
        pub const fn ignore_missing() => ignore_missing = true;

        /// Makes bodies smaller before they are stored.
        pub const fn compression(compression: Compression) => compression = compression;

        /// Tries an append at most so often in all: decides it, and decides it again upon the new state after somebody
        /// else was faster. With 1 it is decided once.
        pub const fn attempts_max(attempts: u32) => attempts_max = attempts;
    }
}
