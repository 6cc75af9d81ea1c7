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

    /// Looks for events that were pruned in this table.
    #[must_use]
    pub fn archive(mut self, table: impl Into<String>) -> Self {
        self.archive = Some(table.into());
        self
    }

    /// Calves the events of a Tip beyond these limits.
    #[must_use]
    pub const fn tip(mut self, limits: TipLimits) -> Self {
        self.tip = limits;
        self
    }

    /// Calves the events of a Tip when they would be more than so many.
    #[must_use]
    pub const fn tip_events_max(mut self, events: usize) -> Self {
        self.tip.events_max = Some(events);
        self
    }

    /// Reads at most so many batches with a request.
    #[must_use]
    pub const fn page_items(mut self, items: usize) -> Self {
        self.page_items = items;
        self
    }

    /// Sends at most so many requests for batches to load a stream.
    #[must_use]
    pub const fn requests_max(mut self, requests: u32) -> Self {
        self.requests_max = Some(requests);
        self
    }

    /// Loads streams of which events are missing, without them.
    #[must_use]
    pub const fn ignore_missing(mut self) -> Self {
        self.ignore_missing = true;
        self
    }

    /// Makes bodies smaller before they are stored.
    #[must_use]
    pub const fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Tries an append at most so often in all: decides it, and decides it again upon the new state after somebody else
    /// was faster. With 1 it is decided once.
    #[must_use]
    pub const fn attempts_max(mut self, attempts: u32) -> Self {
        self.attempts_max = attempts;
        self
    }
}
