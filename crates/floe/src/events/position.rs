//! Where a stream stands: what loading finds, and what an append starts from.

use floe_store::Text;

use super::stored::{Batch, Events};

/// Where a stream stands, as far as one must know to append to it. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    /// How many events it has.
    pub(crate) version: u64,
    pub(crate) etag: Option<Text>,
    /// What the events in calved batches weigh.
    pub(crate) calved_bytes: u64,
    /// The events in the Tip.
    pub(crate) tip: Events,
    /// What the last write has left beside the events, if it was one of ours.
    pub(crate) left: Option<Left>,
}

/// What a write of ours has left in the Tip. As long as the etag is that of this write, it need not be written again.
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

    /// About how much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.tip.bytes() + 200
    }
}
