//! What a test needs of an engine besides the operations: owned time, expiry on demand, reopening.
//!
//! The contract suite and the property run take a [`Harness`], not an engine, so that they can do to
//! an engine what its users do to it between operations.

use std::sync::Arc;

use floe_store::env::ManualClock;
use floe_store::{BoxFuture, Engine, Result};

/// An engine under test, fresh and empty, and the handles that a test needs around it.
pub trait Harness: Send + Sync {
    /// The engine as it stands; another one after [`reopen`](Harness::reopen).
    fn engine(&self) -> Arc<dyn Engine>;

    /// The clock that the engine goes by, if the test owns it. Cases about time are left out where it
    /// does not.
    fn clock(&self) -> Option<Arc<ManualClock>>;

    /// Brings to an end what the engine does in the background: fills new indexes and removes all items
    /// that have expired by now.
    fn sweep(&self) -> BoxFuture<'_, Result<()>>;

    /// Closes the engine and opens it again on the same data. An engine that cannot, or that has
    /// nothing to lose by it, does nothing.
    fn reopen(&mut self) -> BoxFuture<'_, Result<()>>;
}
