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

/// A moment in the order of a history: larger is later, and no two events share one.
pub type Stamp = u64;

/// Hands out [`Stamp`]s.
#[derive(Debug, Default)]
struct Stamps(AtomicU64);

impl Stamps {
    /// The next stamp: larger than every one taken before, by any thread.
    fn next(&self) -> Stamp {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}
