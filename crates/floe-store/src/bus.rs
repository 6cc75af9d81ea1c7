//! The event bus, to which changes are published, like Amazon EventBridge.
//!
//! Besides the [`Engine`](crate::Engine), this is the only other service that the upper layers call. It is a trait, so
//! that senders do not depend on an implementation.

use crate::env::Timestamp;
use crate::error::Result;
use crate::future::BoxFuture;

/// Maximum number of entries in one request.
pub const BUS_ENTRIES_MAX: usize = 10;

/// Maximum size of the entries in one request, by [`BusEntry::bytes`].
pub const BUS_BYTES_MAX: usize = 256 * 1024;

/// An event to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BusEntry {
    /// The source of the event, such as an application.
    pub source: String,
    /// The type of the event.
    pub detail_type: String,
    /// The content of the event, as JSON.
    pub detail: String,
    /// The resources that the event concerns.
    pub resources: Vec<String>,
    /// When the event happened.
    pub time: Timestamp,
}

impl BusEntry {
    /// The size that counts towards the limit: all text, plus 14 bytes for the time.
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

/// A bus that accepts events.
pub trait EventBus: Send + Sync + 'static {
    /// Publishes up to [`BUS_ENTRIES_MAX`] entries. Returns for each entry, in order, whether it was accepted, or why
    /// not.
    fn put_events(&self, entries: Vec<BusEntry>) -> BoxFuture<'_, Result<Vec<Result<(), String>>>>;
}
