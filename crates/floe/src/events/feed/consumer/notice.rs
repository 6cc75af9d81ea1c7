//! Notices of workers and consumers while they run.

use super::ParkedStream;
use crate::error::Error;
use crate::events::feed::partition::Partition;

/// A notice of a running worker: see [`ConsumerGroup::on_notice`](super::ConsumerGroup::on_notice).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum WorkerNotice {
    /// The worker acquired a partition, and starts to process it.
    Acquired(Partition),
    /// The worker stored its checkpoint and released a partition, because it stops, or other workers have fewer
    /// partitions than their share.
    Released(Partition),
    /// The worker lost a partition, or cannot know whether it still holds it; another worker continues from the stored
    /// checkpoint. Or the checkpoint was moved, and the worker restarts from it.
    Lost(Partition),
    /// A stream was parked. Other streams continue.
    Parked(Partition, ParkedStream),
    /// The store failed. The request is retried after a pause.
    Failed {
        /// The partition that is delayed; `None` if a heartbeat failed.
        partition: Option<Partition>,
        /// The error of the store.
        error: Error,
    },
}
