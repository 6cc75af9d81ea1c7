//! The event bus: where changes are told to others, as Amazon EventBridge does.
//!
//! Beside the [`Engine`](crate::Engine) it is the other service that the layers above speak to. As an engine, a bus is
//! behind a trait, so that who sends does not know whose it is.

use crate::env::Timestamp;
use crate::error::Result;
use crate::future::BoxFuture;

/// How many entries a bus takes with one request.
pub const BUS_ENTRIES_MAX: usize = 10;

/// How many bytes of entries a bus takes with one request, counted as [`BusEntry::bytes`] does.
pub const BUS_BYTES_MAX: usize = 256 * 1024;

/// An event for a bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusEntry {
    /// Who tells it.
    pub source: String,
    /// What kind of event it is.
    pub detail_type: String,
    /// What it tells, as JSON.
    pub detail: String,
    /// What it is about.
    pub resources: Vec<String>,
    /// When it happened.
    pub time: Timestamp,
}

impl BusEntry {
    /// What it counts: the text, and 14 bytes for the time.
    ///
    /// ```
    /// use floe_store::{Timestamp, bus::BusEntry};
    ///
    /// let entry = BusEntry {
    ///     source: "shop".to_owned(),
    ///     detail_type: "INSERT".to_owned(),
    ///     detail: "{}".to_owned(),
    ///     resources: vec!["orders".to_owned()],
    ///     time: Timestamp::from_millis(0),
    /// };
    /// assert_eq!(entry.bytes(), 4 + 6 + 2 + 6 + 14);
    /// ```
    pub fn bytes(&self) -> usize {
        const TIME_BYTES: usize = 14;
        let resources: usize = self.resources.iter().map(String::len).sum();
        self.source.len() + self.detail_type.len() + self.detail.len() + resources + TIME_BYTES
    }
}

/// A bus that takes events.
pub trait EventBus: Send + Sync + 'static {
    /// Puts up to [`BUS_ENTRIES_MAX`] entries on the bus. Tells of each, in their order, whether it was taken, or why not.
    fn put_events(&self, entries: Vec<BusEntry>) -> BoxFuture<'_, Result<Vec<Result<(), String>>>>;
}
