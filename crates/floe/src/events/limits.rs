//! The limits of the event store, each with its reason.

use floe_store::limits::ITEM_BYTES_MAX;

/// What a Tip may hold before its events are calved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TipLimits {
    /// The most events; no limit if absent.
    pub events_max: Option<usize>,
    /// The most that the events may weigh.
    pub event_bytes_max: usize,
    /// The most that events and unfolds may weigh together.
    pub bytes_max: usize,
}

impl Default for TipLimits {
    /// Any number of events, of 32 KiB with and without the unfolds: each append pays for the whole Tip that it changes.
    fn default() -> Self {
        Self {
            events_max: None,
            event_bytes_max: 32 << 10,
            bytes_max: 32 << 10,
        }
    }
}

/// What the events and unfolds of a Tip may take whatever its limits are: an item takes 400 KB with its key, its etag and
/// its counters.
pub(crate) const TIP_BYTES_MAX: usize = ITEM_BYTES_MAX - 4096;

/// What the events of one part may take, of those that are appended in parts: an item takes 400 KB with its key, its etag
/// and its counters.
pub(crate) const PART_BYTES_MAX: usize = ITEM_BYTES_MAX - 4096;

/// How many batches a request reads at most, while a stream is loaded.
pub(crate) const PAGE_ITEMS: usize = 32;

/// How often an append is tried in all, if somebody else is always faster: as often as Equinox does.
pub(crate) const ATTEMPTS_MAX: u32 = 3;

/// How often an append to whatever version is tried in all: such an append decides nothing, so it only has to wait for its
/// turn.
pub(crate) const ANY_ATTEMPTS_MAX: u32 = 20;

/// How many events are appended together for several callers, at most: far more than come at the same time, and few
/// enough that their maps, which the model of their weight leaves out, fit into an item.
pub(crate) const COALESCED_EVENTS_MAX: usize = 4096;

/// What the events weigh that are appended together for several callers, at most: an item takes 400 KB, and the model of
/// their weight is not exact.
pub(crate) const COALESCED_BYTES_MAX: usize = 256 << 10;

/// How many streams an appender remembers that nobody appends to at present.
pub(crate) const IDLE_STREAMS_MAX: usize = 1024;

/// What an appender remembers of streams that nobody appends to at present, at most.
pub(crate) const IDLE_BYTES_MAX: usize = 16 << 20;
