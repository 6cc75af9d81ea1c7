//! A timer for tests in which nothing is to be waited for.

use std::time::Duration;

use floe::db::Timer;
use floe_store::BoxFuture;

/// Lets others run instead of letting time pass.
pub(crate) struct NoTime;

impl Timer for NoTime {
    fn sleep(&self, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::task::yield_now())
    }
}
