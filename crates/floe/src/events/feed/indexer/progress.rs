//! What an indexer tells while it runs, for those who watch it: a log, a gauge, a command line.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Indexed;
use crate::error::Error;
use crate::events::feed::checkpoint::Checkpoint;
use crate::events::feed::partition::Partition;

/// What an indexer tells while it runs: see [`Indexer::watched_by`](super::Indexer::watched_by).
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// A step is done.
    Stepped(&'a Stepped),
    /// A step has failed. It is tried again after the pause; nothing is lost by it.
    Failed {
        /// Why.
        error: &'a Error,
        /// How long it waits.
        pause: Duration,
    },
}

/// What a step has done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stepped {
    /// What it has read, and what of it was new.
    pub indexed: Indexed,
    /// Where the partitions end that it has brought something to.
    pub checkpoints: BTreeMap<Partition, Checkpoint>,
    /// How old the last change is that it has read, about to the second: so far the feed is behind. Zero if there was
    /// nothing to read.
    pub lag: Duration,
    /// Whether there was nothing to do.
    pub is_idle: bool,
}
