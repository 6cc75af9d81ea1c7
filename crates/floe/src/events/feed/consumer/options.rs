//! How events are consumed, and how a consumer tells what happens meanwhile.

use std::fmt;
use std::sync::Arc;

use super::Parked;
use crate::delivery;
use crate::error::Error;
use crate::events::feed::limits::{HANDLED_AT_ONCE, STREAMS_AT_ONCE, TRIES_MAX};
use crate::events::feed::partition::Partition;
use crate::events::feed::reader::Filter;
use crate::request::Backoff;

/// Who is told what happens.
type OnNotice = dyn Fn(&Notice) + Send + Sync;

/// How events are consumed.
#[derive(Clone)]
pub(super) struct Options {
    pub(super) delivery: delivery::Options,
    pub(super) filter: Filter,
    pub(super) events_max: usize,
    pub(super) on_notice: Option<Arc<OnNotice>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            delivery: delivery::Options::new(STREAMS_AT_ONCE, TRIES_MAX, Backoff::default()),
            filter: Filter::default(),
            events_max: HANDLED_AT_ONCE,
            on_notice: None,
        }
    }
}

impl Options {
    pub(super) fn tell(&self, notice: &Notice) {
        if let Some(on_notice) = &self.on_notice {
            on_notice(notice);
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("delivery", &self.delivery)
            .field("filter", &self.filter)
            .field("events_max", &self.events_max)
            .finish_non_exhaustive()
    }
}

/// What happens while a consumer runs: see [`ConsumerGroup::on_notice`](super::ConsumerGroup::on_notice).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Notice {
    /// The worker has taken a partition, and begins with it.
    Taken(Partition),
    /// The worker has given a partition back, with its progress stored: it stops, or others have less than their share.
    GivenBack(Partition),
    /// The partition is not the worker's any more, or it cannot know that it is: somebody else goes on from what is stored.
    /// Or somebody has moved its checkpoint, and the worker begins anew itself.
    Lost(Partition),
    /// A stream was parked. The others go on.
    Parked(Partition, Parked),
    /// The store could not answer. The same is tried again after a pause.
    Failed {
        /// What could not be gone on with; nothing if it was the work of a worker on its leases.
        partition: Option<Partition>,
        /// What the store said.
        error: Error,
    },
}
