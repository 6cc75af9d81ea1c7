//! Notices of a running consumer, and the summary of a run.

use std::time::Duration;

use super::super::change::Change;
use super::super::handler::Failure;
use super::dead_letters::DeadLetter;
use crate::error::Error;

/// An event in a running consumer: see [`ChangeConsumer::on_notice`](super::ChangeConsumer::on_notice).
#[derive(Debug)]
#[non_exhaustive]
pub enum ConsumerNotice<'a> {
    /// This process acquired the lease and delivers.
    LeaseAcquired,
    /// Another process delivers or may deliver; this one waits.
    Waiting,
    /// Checkpoints were stored.
    Stored(&'a ConsumerProgress),
    /// A handler failed and will be retried after the pause.
    Retried {
        /// The change.
        change: &'a Change,
        /// The handler that failed first.
        handler: &'a str,
        /// The reason.
        failure: &'a Failure,
        /// Number of failed attempts.
        attempts: u32,
        /// The pause before the next attempt.
        pause: Duration,
    },
    /// A change became a dead letter, with the error of its first failed handler.
    DeadLetter(&'a Change, &'a str),
    /// A dead letter was replayed successfully.
    Replayed(&'a DeadLetter),
    /// The store failed. The request is retried after the pause.
    Failed {
        /// The error of the store.
        error: &'a Error,
        /// The pause before the next attempt.
        pause: Duration,
    },
}

/// The progress of a consumer.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConsumerProgress {
    /// Totals since the consumer started.
    pub summary: ConsumerSummary,
    /// Changes processed per second since the previous notice.
    pub per_second: f64,
    /// The age of the last processed change, to about a second. Zero if nothing is waiting.
    pub lag: Duration,
    /// Number of changes that were read but not processed.
    pub waiting: usize,
}

/// Totals of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ConsumerSummary {
    /// Number of changes read.
    pub records: u64,
    /// Number of changes completed by all their handlers.
    pub handled: u64,
    /// Number of changes without a handler.
    pub unmatched: u64,
    /// Number of duplicates.
    pub duplicates: u64,
    /// Number of changes that became dead letters.
    pub dead_letters: u64,
    /// Number of dead letters replayed successfully.
    pub replayed: u64,
}

impl ConsumerSummary {
    /// Number of processed changes.
    pub(super) const fn done(&self) -> u64 {
        self.handled + self.dead_letters + self.unmatched + self.duplicates
    }
}
