//! Futures that run beside each other in one task, and are joined by others meanwhile.
//!
//! Each has a waker of its own, so that only those are looked at that have something to say.

use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use floe_store::BoxFuture;

/// Futures that run beside each other. Those that are left when it is dropped are dropped, too.
pub(crate) struct Crowd<'a, T> {
    running: Vec<Running<'a, T>>,
    next_ticket: u64,
    waiting: Arc<Waiting>,
}

/// Stands for one of the futures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

struct Running<'a, T> {
    ticket: Ticket,
    future: BoxFuture<'a, T>,
    bell: Arc<Bell>,
}

/// Who waits for the next one to be done.
#[derive(Default)]
struct Waiting(Mutex<Option<Waker>>);

/// Notes that a future has something to say, and tells who waits.
struct Bell {
    has_rung: AtomicBool,
    waiting: Arc<Waiting>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.has_rung.store(true, Ordering::SeqCst);
        let mut waiting = self
            .waiting
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(waker) = waiting.take() {
            drop(waiting);
            waker.wake();
        }
    }
}

impl<'a, T> Crowd<'a, T> {
    pub(crate) fn new() -> Self {
        Self {
            running: Vec::new(),
            next_ticket: 0,
            waiting: Arc::default(),
        }
    }

    /// Lets a future run with the others.
    pub(crate) fn join(&mut self, future: BoxFuture<'a, T>) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let bell = Arc::new(Bell {
            has_rung: AtomicBool::new(true),
            waiting: self.waiting.clone(),
        });
        self.running.push(Running {
            ticket,
            future,
            bell,
        });
        ticket
    }

    /// Drops a future, if it has not come to its end.
    pub(crate) fn leave(&mut self, ticket: Ticket) {
        self.running.retain(|running| running.ticket != ticket);
    }

    /// Waits until one of them is done, and tells what it has come to. Waits forever if there is none.
    ///
    /// When the future is dropped, all of them stay.
    pub(crate) async fn next(&mut self) -> T {
        poll_fn(|context| self.poll_next(context)).await
    }

    fn poll_next(&mut self, context: &Context<'_>) -> Poll<T> {
        // First say who waits, then look: what rings in between is noticed by one or the other.
        let mut waiting = self
            .waiting
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *waiting = Some(context.waker().clone());
        drop(waiting);
        for (place, running) in self.running.iter_mut().enumerate() {
            if !running.bell.has_rung.swap(false, Ordering::SeqCst) {
                continue;
            }
            let waker = Waker::from(running.bell.clone());
            let polled = running
                .future
                .as_mut()
                .poll(&mut Context::from_waker(&waker));
            if let Poll::Ready(output) = polled {
                // In order, so that the older ones are not overlooked for the younger.
                self.running.remove(place);
                return Poll::Ready(output);
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::AtomicUsize;

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
