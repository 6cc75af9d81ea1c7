//! An engine that wraps another one and yields before and after each request: tasks interleave, and a future can be
//! dropped before its request was sent, or after it was applied and before its response arrived.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use floe_store::{BoxFuture, Engine, Result, each_operation, forward_to};

pub(crate) struct Slow(pub(crate) Arc<dyn Engine>);

macro_rules! slowly {
    ($($operation:ident($type:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, input: $type) -> BoxFuture<'_, Result<$output>> {
            Box::pin(async move {
                tokio::task::yield_now().await;
                let output = self.0.$operation(input).await;
                tokio::task::yield_now().await;
                output
            })
        }
    )*};
}

impl Engine for Slow {
    forward_to!(self.0; basics);
    each_operation!(slowly; all);
}

/// Polls a future this many times, then drops it.
pub(crate) async fn interrupt<F: Future>(future: F, polls: u64) -> Option<F::Output> {
    let (mut future, mut left) = (pin!(future), polls);
    poll_fn(|context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        left -= 1;
        match left {
            0 => Poll::Ready(None),
            _ => Poll::Pending,
        }
    })
    .await
}
