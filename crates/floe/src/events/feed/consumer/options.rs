//! How events are consumed, and how a consumer tells what happens meanwhile.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Parked;
use crate::error::{Error, ErrorKind, Result};
use crate::events::feed::limits::{
    BEATS_PER_LEASE, GRACE, HANDLED_AT_ONCE, LEASE, POLL, STREAMS_AT_ONCE, TRIES_MAX,
};
use crate::events::feed::partition::Partition;
use crate::events::feed::reader::Filter;

/// Who is told what happens.
type OnNotice = dyn Fn(&Notice) + Send + Sync;

/// How events are consumed.
#[derive(Clone)]
pub(super) struct Options {
    pub(super) filter: Filter,
    pub(super) at_once_max: usize,
    pub(super) events_max: usize,
    pub(super) tries_max: u32,
    pub(super) poll: Duration,
    pub(super) lease: Duration,
    pub(super) grace: Duration,
    pub(super) on_notice: Option<Arc<OnNotice>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            filter: Filter::default(),
            at_once_max: STREAMS_AT_ONCE,
            events_max: HANDLED_AT_ONCE,
            tries_max: TRIES_MAX,
            poll: POLL,
            lease: LEASE,
            grace: GRACE,
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

    /// How long a worker waits from one beat to the next.
    pub(super) fn beat(&self) -> Duration {
        self.lease / BEATS_PER_LEASE
    }

    pub(super) fn check(&self) -> Result<()> {
        if !self.beat().is_zero() {
            return Ok(());
        }
        let message = format!("a lease must last for a while: lease={:?}", self.lease);
        Err(Error::new(ErrorKind::InvalidUse, message))
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("filter", &self.filter)
            .field("at_once_max", &self.at_once_max)
            .field("events_max", &self.events_max)
            .field("tries_max", &self.tries_max)
            .field("poll", &self.poll)
            .field("lease", &self.lease)
            .field("grace", &self.grace)
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
