//! A set of futures that run concurrently in one task and can be added or cancelled at any time.
//!
//! Each future has its own waker, so that only woken futures are polled.

use std::future::pending;

use floe_store::BoxFuture;
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, abortable};
use futures_util::stream::FuturesUnordered;

/// Futures that run concurrently. Dropping the set drops the futures that have not completed.
pub(crate) struct TaskSet<'a, T>(FuturesUnordered<Abortable<BoxFuture<'a, T>>>);

/// Identifies a future of a [`TaskSet`].
#[derive(Debug)]
pub(crate) struct TaskHandle(AbortHandle);

impl<'a, T> TaskSet<'a, T> {
    pub(crate) fn new() -> Self {
        Self(FuturesUnordered::new())
    }

    /// Adds a future.
    pub(crate) fn add(&mut self, future: BoxFuture<'a, T>) -> TaskHandle {
        let (future, handle) = abortable(future);
        self.0.push(future);
        TaskHandle(handle)
    }

    /// Cancels a future that has not completed. It is dropped when the set is polled next.
    pub(crate) fn cancel(&mut self, task: TaskHandle) {
        let TaskHandle(handle) = task;
        handle.abort();
    }

    /// Waits until a future completes, and returns its output. Waits forever if the set is empty.
    ///
    /// Cancel-safe: dropping the returned future keeps all futures of the set.
    pub(crate) async fn next(&mut self) -> T {
        loop {
            match self.0.next().await {
                Some(Ok(output)) => return output,
                // A cancelled future.
                Some(Err(_)) => {}
                None => return pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Poll;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn outputs_come_in_order_of_completion_and_futures_can_be_added_and_cancelled() {
        let mut tasks: TaskSet<'_, u32> = TaskSet::new();
        let (send, received) = oneshot::channel::<()>();
        tasks.add(Box::pin(async {
            drop(received.await);
            1
        }));
        tasks.add(Box::pin(async { 2 }));
        assert_eq!(tasks.next().await, 2);
        drop(send);
        tasks.add(Box::pin(pending()));
        assert_eq!(tasks.next().await, 1);
        let handle = tasks.add(Box::pin(async { 3 }));
        tasks.cancel(handle);
        tasks.add(Box::pin(async { 4 }));
        assert_eq!(tasks.next().await, 4);
    }

    #[tokio::test]
    async fn only_woken_futures_are_polled() {
        let polls = AtomicUsize::new(0);
        let mut tasks: TaskSet<'_, ()> = TaskSet::new();
        tasks.add(Box::pin(poll_fn(|_| {
            polls.fetch_add(1, Ordering::Relaxed);
            Poll::Pending
        })));
        for _ in 0..5 {
            tasks.add(Box::pin(tokio::task::yield_now()));
            tasks.next().await;
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn future_that_wakes_itself_while_polled_is_polled_again() {
        let mut tasks: TaskSet<'_, u32> = TaskSet::new();
        tasks.add(Box::pin(async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            7
        }));
        assert_eq!(tasks.next().await, 7);
    }
}
