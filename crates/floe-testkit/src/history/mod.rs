//! Histories of what clients did, and checkers that tell whether a correct store could have answered so.
//!
//! | module | what a history is | what is checked |
//! |---|---|---|
//! | [`linear`] | reads, writes and conditional writes of single keys | linearizability |
//! | [`isolation`] | transactions of reads and appends over several keys | strict serializability |
//!
//! Each has a recorder that many clients share while they run, and a `check` that judges the history
//! afterwards. Recorders order events by a counter, not by a clock: a stamp is taken before a request is
//! sent and another after its answer has come, so an operation that ended before another began always
//! has the smaller stamps, and nothing hangs on how fine a clock ticks.
//!
//! What is not here: running the clients. Whoever drives an engine records; `cargo xtask verify` does.

pub mod isolation;
pub mod linear;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::lock::lock;

/// A moment in the order of a history: larger is later, and no two events share one.
pub type Stamp = u64;

/// The entries of a history that many clients write, and the stamps that order them.
#[derive(Debug)]
struct Log<T> {
    next: AtomicU64,
    entries: Mutex<Vec<T>>,
}

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(0),
            entries: Mutex::default(),
        }
    }
}

impl<T> Log<T> {
    /// The next stamp: larger than every one taken before, by any thread.
    fn stamp(&self) -> Stamp {
        self.next.fetch_add(1, Ordering::SeqCst)
    }

    fn push(&self, entry: T) {
        lock(&self.entries).push(entry);
    }

    fn into_entries(self) -> Vec<T> {
        let entries = self.entries.into_inner();
        entries.unwrap_or_else(PoisonError::into_inner)
    }
}
