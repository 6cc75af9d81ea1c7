//! Futures that run beside each other in one task, and are joined by others meanwhile.
//!
//! Each has a waker of its own, so that only those are looked at that have something to say.

use std::future::pending;

use floe_store::BoxFuture;
use futures_util::StreamExt as _;
use futures_util::future::{AbortHandle, Abortable, abortable};
use futures_util::stream::FuturesUnordered;

/// Futures that run beside each other. Those that are left when it is dropped are dropped, too.
pub(crate) struct Crowd<'a, T>(FuturesUnordered<Abortable<BoxFuture<'a, T>>>);

/// Stands for one of the futures.
#[derive(Debug)]
pub(crate) struct Ticket(AbortHandle);

impl<'a, T> Crowd<'a, T> {
    pub(crate) fn new() -> Self {
        Self(FuturesUnordered::new())
    }

    /// Lets a future run with the others.
    pub(crate) fn join(&mut self, future: BoxFuture<'a, T>) -> Ticket {
        let (future, handle) = abortable(future);
        self.0.push(future);
        Ticket(handle)
    }

    /// Runs a future no further, if it has not come to its end. It is dropped with the next look at the crowd.
    pub(crate) fn leave(&mut self, ticket: Ticket) {
        let Ticket(handle) = ticket;
        handle.abort();
    }

    /// Waits until one of them is done, and tells what it has come to. Waits forever if there is none.
    ///
    /// When the future is dropped, all of them stay.
    pub(crate) async fn next(&mut self) -> T {
        loop {
            match self.0.next().await {
                Some(Ok(output)) => return output,
                // It has left.
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
    async fn who_is_done_first_is_told_first_and_others_may_join() {
        let mut crowd: Crowd<'_, u32> = Crowd::new();
        let (send, told) = oneshot::channel::<()>();
        crowd.join(Box::pin(async {
            drop(told.await);
            1
        }));
        crowd.join(Box::pin(async { 2 }));
        assert_eq!(crowd.next().await, 2);
        drop(send);
        crowd.join(Box::pin(pending()));
        assert_eq!(crowd.next().await, 1);
        let ticket = crowd.join(Box::pin(async { 3 }));
        crowd.leave(ticket);
        crowd.join(Box::pin(async { 4 }));
        assert_eq!(crowd.next().await, 4);
    }

    #[tokio::test]
    async fn only_those_are_polled_that_have_something_to_say() {
        let polls = AtomicUsize::new(0);
        let mut crowd: Crowd<'_, ()> = Crowd::new();
        crowd.join(Box::pin(poll_fn(|_| {
            polls.fetch_add(1, Ordering::Relaxed);
            Poll::Pending
        })));
        for _ in 0..5 {
            crowd.join(Box::pin(tokio::task::yield_now()));
            crowd.next().await;
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
    }

    /// A future that wakes itself while it is polled is polled again.
    #[tokio::test]
    async fn whoever_rings_while_it_is_asked_is_asked_again() {
        let mut crowd: Crowd<'_, u32> = Crowd::new();
        crowd.join(Box::pin(async {
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            7
        }));
        assert_eq!(crowd.next().await, 7);
    }
}
