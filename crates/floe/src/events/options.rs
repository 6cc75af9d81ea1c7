//! Options of an event store.

use super::codec::Compression;
use super::limits::{ATTEMPTS_MAX, PAGE_ITEMS, TipLimits};

/// Options of an event store.
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
    /// A table with the events that were pruned from this one.
    pub archive: Option<String>,
    /// What a Tip holds before its events are calved.
    pub tip: TipLimits,
    /// Maximum number of batches per request.
    pub page_items: usize,
    /// Maximum number of requests to load a stream, besides the Tip. `None`: no limit.
    pub requests_max: Option<u32>,
    /// Whether streams with missing events can be loaded.
    pub ignore_missing: bool,
    /// Compression of event bodies.
    pub compression: Compression,
    /// Maximum attempts of an append in conflicts with other writers; at least 1.
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
    /// Options for streams in this table.
    pub fn new(table: impl Into<String>) -> Self {
        Self {
            table: table.into(),
            ..Self::default()
        }
    }

    setters! {
        /// Reads pruned events from this table.
        pub fn archive(table: impl Into<String>) => archive = Some(table.into());

        /// Limits at which the events of a Tip are calved.
        pub const fn tip(limits: TipLimits) => tip = limits;

        /// Maximum number of events in a Tip.
        pub const fn tip_events_max(events: usize) => tip.events_max = Some(events);

        /// Maximum number of batches per request. Default: 32.
        pub const fn page_items(items: usize) => page_items = items;

        /// Maximum number of requests for batches to load a stream. Default: no limit.
        pub const fn requests_max(requests: u32) => requests_max = Some(requests);

        /// Loads streams with missing events from the events that exist.
        pub const fn ignore_missing() => ignore_missing = true;

        /// Compression of event bodies. Default: none.
        pub const fn compression(compression: Compression) => compression = compression;

        /// Maximum attempts of an append: it decides again on the new state after each conflict. With 1, it decides
        /// once. Default: 3.
        pub const fn attempts_max(attempts: u32) => attempts_max = attempts;
    }
}
