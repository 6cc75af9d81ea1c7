//! How events are consumed, and how a consumer tells what happens meanwhile.

use super::ParkedStream;
use crate::delivery::{self, Callback};
use crate::error::Error;
use crate::events::feed::limits::{HANDLED_AT_ONCE, STREAMS_AT_ONCE, TRIES_MAX};
use crate::events::feed::partition::Partition;
use crate::events::feed::reader::Filter;
use crate::request::Backoff;

/// How events are consumed.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) delivery: delivery::Options,
    pub(super) filter: Filter,
    pub(super) events_max: usize,
    pub(super) on_notice: Callback<dyn Fn(&WorkerNotice) + Send + Sync>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            delivery: delivery::Options::new(STREAMS_AT_ONCE, TRIES_MAX, Backoff::default()),
            filter: Filter::default(),
            events_max: HANDLED_AT_ONCE,
            on_notice: Callback::default(),
        }
    }
}

impl Options {
    pub(super) fn tell(&self, notice: &WorkerNotice) {
        if let Some(on_notice) = &self.on_notice.0 {
            on_notice(notice);
        }
    }
}

/// What happens while a consumer runs: see [`ConsumerGroup::on_notice`](super::ConsumerGroup::on_notice).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WorkerNotice {
    /// The worker has taken a partition, and begins with it.
    Taken(Partition),
    /// The worker has given a partition back, with its progress stored: it stops, or others have less than their share.
    GivenBack(Partition),
    /// The partition is not the worker's any more, or it cannot know that it is: somebody else goes on from what is stored.
    /// Or somebody has moved its checkpoint, and the worker begins anew itself.
    Lost(Partition),
    /// A stream was parked. The others go on.
    Parked(Partition, ParkedStream),
    /// The store could not answer. The same is tried again after a pause.
    Failed {
        /// What could not be gone on with; nothing if it was the work of a worker on its leases.
        partition: Option<Partition>,
        /// What the store said.
        error: Error,
    },
}
