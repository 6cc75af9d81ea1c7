//! The position of a stream: returned by loading, required for an append.

use floe_store::Text;

use super::stored::{Batch, Events};

/// The state of a stream that an append needs. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    /// The number of events.
    pub(crate) version: u64,
    pub(crate) etag: Option<Text>,
    /// Size of the events in calves.
    pub(crate) calved_bytes: u64,
    /// The events in the Tip.
    pub(crate) tip: Events,
    /// Attributes of the Tip as our last write left them, if it was ours.
    pub(crate) left: Option<Left>,
}

/// Attributes that our last write left in the Tip. While the etag is unchanged, they need not be written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(super) appended: u64,
    pub(super) calved_bytes: u64,
    pub(super) has_unfolds: bool,
}

impl Position {
    pub(crate) fn of_tip(tip: &Batch) -> Self {
        Self {
            version: tip.next,
            etag: tip.etag.clone(),
            calved_bytes: tip.calved_bytes,
            tip: tip.events.clone(),
            left: None,
        }
    }

    /// Approximate memory usage.
    pub(crate) fn bytes(&self) -> usize {
        self.tip.bytes() + 200
    }
}
