//! A timer for tests in which no pause takes time.

use std::time::Duration;

use floe::db::Timer;
use floe_store::BoxFuture;

/// Yields to other tasks instead of waiting.
pub(crate) struct NoTime;

impl Timer for NoTime {
    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::task::yield_now())
    }
}
