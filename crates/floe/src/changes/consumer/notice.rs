//! What a consumer tells while it runs, and what it has done in the end.

use std::time::Duration;

use super::super::change::Change;
use super::super::handler::Failure;
use super::parked::Parked;
use crate::error::Error;

/// What happens while a consumer runs: see [`Consumer::on_notice`](super::Consumer::on_notice).
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// This process delivers from now on.
    Leads,
    /// Another process delivers, or may do so: this one waits.
    Waits,
    /// Everything up to some change is done, and this is stored.
    Stored(&'a Progress),
    /// A handler has failed. It is tried again after the pause.
    Retried {
        /// The change.
        change: &'a Change,
        /// The handler that failed first.
        handler: &'a str,
        /// Why.
        failure: &'a Failure,
        /// How often it was tried.
        attempts: u32,
        /// How long it waits.
        pause: Duration,
    },
    /// A change was parked.
    Parked(&'a Change, &'a str),
    /// The changes of an item that were parked are done.
    Replayed(&'a Parked),
    /// The store could not answer. The same is tried again after a pause.
    Failed {
        /// What the store said.
        error: &'a Error,
        /// How long it waits.
        pause: Duration,
    },
}

/// How a consumer gets on.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// What it has done since it was started.
    pub ran: Ran,
    /// How many changes were done in a second since the last time.
    pub per_second: f64,
    /// How old the last change is that is done, about to the second. Zero if there is nothing to be done.
    pub lag: Duration,
    /// How many changes are read and not done.
    pub waiting: usize,
}

/// What a consumer has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Ran {
    /// How many changes it has read.
    pub records: u64,
    /// How many of them all handlers that wanted them are done with.
    pub handled: u64,
    /// How many nobody wanted.
    pub unwanted: u64,
    /// How many had come before.
    pub repeated: u64,
    /// How many were parked.
    pub parked: u64,
    /// How many that were parked are done now.
    pub replayed: u64,
}

impl Ran {
    /// How many changes are done.
    pub(super) const fn done(&self) -> u64 {
        self.handled + self.parked + self.unwanted + self.repeated
    }
}
