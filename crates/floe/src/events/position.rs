//! The position of a stream: returned by loading, required for an append.

use floe_store::Text;

use super::stored::{Batch, Events};

/// The state of a stream that an append needs. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct StreamPosition {
    /// The number of events.
    pub(crate) version: u64,
    pub(crate) etag: Option<Text>,
    /// Size of the events in calves.
    pub(crate) calved_bytes: u64,
    /// The events in the Tip.
    pub(crate) tip: Events,
    /// The attributes that this process wrote, if it wrote the Tip last.
    pub(crate) last_write: Option<LastWrite>,
}

/// Attributes of the Tip written by this process. While the etag is unchanged, they need not be written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastWrite {
    pub(super) appended: u64,
    pub(super) calved_bytes: u64,
    pub(super) has_unfolds: bool,
}

impl StreamPosition {
    pub(crate) fn of_tip(tip: &Batch) -> Self {
        Self {
            version: tip.next,
            etag: tip.etag.clone(),
            calved_bytes: tip.calved_bytes,
            tip: tip.events.clone(),
            last_write: None,
        }
    }

    /// Approximate memory usage.
    pub(crate) fn bytes(&self) -> usize {
        self.tip.bytes() + 200
    }
}
