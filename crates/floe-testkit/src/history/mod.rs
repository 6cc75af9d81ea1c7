//! Histories of client operations, and checkers that decide whether a correct store could have produced them.
//!
//! | module | history | property checked |
//! |---|---|---|
//! | [`linear`] | reads, writes and conditional writes of single keys | linearizability |
//! | [`isolation`] | transactions of reads and appends over several keys | strict serializability |
//!
//! Each module has a recorder, which many clients share while they run, and a function `check` for the recorded
//! history. Recorders order events by a counter, not by a clock: one stamp is taken before a request is sent and
//! one after its response arrived. So an operation that ended before another began always has smaller stamps, at
//! any clock resolution.
//!
//! The clients themselves are elsewhere: `cargo xtask verify` runs and records them.

pub mod isolation;
pub mod linear;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::lock::lock;

/// A position in the order of a history. Later events have larger stamps, and all stamps are distinct.
pub type Stamp = u64;

/// The entries of a history, written by many clients, and the counter for their stamps.
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
    /// The next stamp, larger than all stamps taken before by any thread.
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
