//! Responses of the committer: sent once, then awaited or waited for by the caller.
//!
//! Uses only the standard library, so that the engine runs on any executor.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use floe_store::{Error, Result};

use crate::locks::lock;

/// Creates a responder and the response that it will complete.
pub(crate) fn channel<T>() -> (Responder<T>, PendingResponse<T>) {
    let slot = Arc::new(Mutex::new(Slot::Empty));
    (Responder { slot: slot.clone() }, PendingResponse { slot })
}

enum Slot<T> {
    /// No response yet, and no waiting caller.
    Empty,
    /// A caller is waiting.
    Awaited(Waker),
    /// The response was sent. The request's remaining memory is freed by the caller.
    Sent(Result<T>, Box<dyn Send>),
    /// The responder was dropped without a response, or the response was taken.
    Closed,
}

/// The side of the committer.
pub(crate) struct Responder<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

impl<T> Responder<T> {
    /// Sends the response together with the request's remaining memory, which the caller frees: freeing memory on
    /// another thread than the one that allocated it is slow. If the caller no longer waits, the response is dropped.
    pub(crate) fn send(self, response: Result<T>, leftovers: Box<dyn Send>) {
        let sent = Slot::Sent(response, leftovers);
        wake(std::mem::replace(&mut *lock(&self.slot), sent));
    }
}

impl<T> Drop for Responder<T> {
    fn drop(&mut self) {
        let mut slot = lock(&self.slot);
        if !matches!(*slot, Slot::Sent(..)) {
            let before = std::mem::replace(&mut *slot, Slot::Closed);
            drop(slot);
            wake(before);
        }
    }
}

fn wake<T>(slot: Slot<T>) {
    if let Slot::Awaited(waker) = slot {
        waker.wake();
    }
}

/// The side of the caller: a future that can also be waited for synchronously.
pub(crate) struct PendingResponse<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

impl<T> PendingResponse<T> {
    /// Blocks the thread until the response arrives.
    pub(crate) fn wait(self) -> Result<T> {
        block_on(self)
    }
}

impl<T> Future for PendingResponse<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let mut slot = lock(&self.slot);
        match std::mem::replace(&mut *slot, Slot::Closed) {
            Slot::Sent(response, leftovers) => {
                drop(slot);
                drop(leftovers);
                Poll::Ready(response)
            }
            Slot::Closed => Poll::Ready(Err(Error::OutcomeUnknown(
                "the engine stopped before it responded".to_owned(),
            ))),
            Slot::Empty | Slot::Awaited(_) => {
                *slot = Slot::Awaited(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Runs a future to completion on this thread, parking it while the future is pending.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_arrives_before_or_after_the_wait() {
        let (responder, response) = self::channel();
        responder.send(Ok(1), Box::new(()));
        assert_eq!(response.wait(), Ok(1));
        let (responder, response) = self::channel();
        let waiting = std::thread::spawn(|| response.wait());
        responder.send(Ok(2), Box::new(()));
        assert_eq!(waiting.join().unwrap(), Ok(2));
    }

    #[test]
    fn request_memory_is_freed_by_the_caller_or_the_last_owner() {
        let (leftovers, (responder, response)) = (Arc::new(()), self::channel());
        responder.send(Ok(()), Box::new(leftovers.clone()));
        assert_eq!(Arc::strong_count(&leftovers), 2);
        response.wait().unwrap();
        assert_eq!(Arc::strong_count(&leftovers), 1);
        let (responder, response) = self::channel();
        drop(response);
        responder.send(Ok(()), Box::new(leftovers.clone()));
        assert_eq!(Arc::strong_count(&leftovers), 1);
    }

    #[test]
    fn dropped_responder_leaves_the_outcome_unknown() {
        let (responder, response) = self::channel::<()>();
        drop(responder);
        assert!(response.wait().unwrap_err().may_have_applied());
    }

    #[test]
    fn response_without_waiting_caller_is_dropped() {
        let (responder, response) = self::channel();
        drop(response);
        responder.send(Ok(()), Box::new(()));
    }
}
