//! What a test needs of an engine besides its operations: a manual clock, expiry on demand, reopening.
//!
//! The contract suite and the property run take a [`Harness`] instead of an engine, so that they can sweep, reopen
//! and advance time between operations.

use std::sync::Arc;

use floe_store::env::ManualClock;
use floe_store::{BoxFuture, Engine, Result};

/// A new, empty engine under test, with its controls.
pub trait Harness: Send + Sync {
    /// The current engine; another one after [`reopen`](Harness::reopen).
    fn engine(&self) -> Arc<dyn Engine>;

    /// The engine's clock, if it is a manual clock. Without it, cases about time are skipped.
    fn clock(&self) -> Option<Arc<ManualClock>>;

    /// Completes the engine's background work: builds new indexes and removes expired items.
    fn sweep(&self) -> BoxFuture<'_, Result<()>>;

    /// Closes the engine and opens it again on the same data. Does nothing if the engine cannot be reopened or has
    /// no state that reopening could lose.
    fn reopen(&mut self) -> BoxFuture<'_, Result<()>>;
}
