//! Limits of the event store, with their reasons.

use floe_store::limits::ITEM_BYTES_MAX;

/// Limits of a Tip at which its events are calved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TipLimits {
    /// Maximum number of events. `None`: no limit.
    pub events_max: Option<usize>,
    /// Maximum size of the events.
    pub event_bytes_max: usize,
    /// Maximum size of events and unfolds together.
    pub bytes_max: usize,
}

impl Default for TipLimits {
    /// 32 KiB of events, with and without unfolds, in any number: each append pays for the whole Tip.
    fn default() -> Self {
        Self {
            events_max: None,
            event_bytes_max: 32 << 10,
            bytes_max: 32 << 10,
        }
    }
}

/// Upper bound of events and unfolds in a Tip, for any limits: an item holds 400 KB including its key, its etag and
/// its counters.
pub(crate) const TIP_BYTES_MAX: usize = ITEM_BYTES_MAX - 4096;

/// Maximum size of the events of one part, for appends in parts: an item holds 400 KB including its key, its etag and
/// its counters.
pub(crate) const PART_BYTES_MAX: usize = ITEM_BYTES_MAX - 4096;

/// Maximum number of batches per request while loading a stream.
pub(crate) const PAGE_ITEMS: usize = 32;

/// Maximum attempts of an append in conflicts with other writers. The value of Equinox.
pub(crate) const ATTEMPTS_MAX: u32 = 3;

/// Maximum attempts of an append to any version. Such an append decides nothing, so it only needs its turn.
pub(crate) const ANY_ATTEMPTS_MAX: u32 = 20;

/// Maximum number of events coalesced into one append: far more than arrive concurrently, and few enough that their
/// maps, which their estimated size excludes, fit into an item.
pub(crate) const COALESCED_EVENTS_MAX: usize = 4096;

/// Maximum size of events coalesced into one append: an item holds 400 KB, and their size is an estimate.
pub(crate) const COALESCED_BYTES_MAX: usize = 256 << 10;

/// Maximum number of idle streams that an appender remembers.
pub(crate) const IDLE_STREAMS_MAX: usize = 1024;

/// Maximum memory for idle streams that an appender remembers.
pub(crate) const IDLE_BYTES_MAX: usize = 16 << 20;
