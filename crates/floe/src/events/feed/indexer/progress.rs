//! Progress of an indexer, for logs, metrics and the command line.

use std::collections::BTreeMap;
use std::time::Duration;

use super::IndexerSummary;
use crate::error::Error;
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::feed::partition::Partition;

/// The progress of an indexer: see [`Indexer::on_progress`](super::Indexer::on_progress).
#[derive(Debug)]
#[non_exhaustive]
pub enum IndexerProgress<'a> {
    /// A step has completed.
    StepCompleted(&'a IndexerStep),
    /// A step failed. It is retried after the pause, without loss.
    Failed {
        /// The error.
        error: &'a Error,
        /// The pause before the next attempt.
        pause: Duration,
    },
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexerStep {
    /// The records read, and the new events.
    pub indexed: IndexerSummary,
    /// The ends of the partitions that were written.
    pub checkpoints: BTreeMap<Partition, Checkpoint>,
    /// The age of the last record, to about a second, which is how far the feed is behind. Zero if there were no
    /// records.
    pub lag: Duration,
    /// Whether there was nothing to do.
    pub is_idle: bool,
}
