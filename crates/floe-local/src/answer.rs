//! The way of an answer from the committer to the one who asked: sent once, awaited or waited for.
//!
//! Made of the standard library alone, so that the engine runs on any executor.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use floe_store::{Error, Result};

use crate::locks::lock;

/// A promise of an answer, and the answer to come.
pub(crate) fn promise<T>() -> (Promise<T>, Answer<T>) {
    let slot = Arc::new(Mutex::new(Slot::Empty));
    (Promise { slot: slot.clone() }, Answer { slot })
}

enum Slot<T> {
    /// Nothing was answered, nobody waits.
    Empty,
    /// Somebody waits.
    Awaited(Waker),
    /// It was answered. What is left of the request is there for the one who made it.
    Answered(Result<T>, Box<dyn Send>),
    /// The promise was broken, or the answer was taken.
    Closed,
}

/// The side that answers.
pub(crate) struct Promise<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

impl<T> Promise<T> {
    /// Answers, and gives back what is left of the request: who made it takes it apart too, because memory that goes
    /// from one thread to another is slow to get and to free. If nobody waits any more, the answer is lost.
    pub(crate) fn keep(self, answer: Result<T>, remains: Box<dyn Send>) {
        let answered = Slot::Answered(answer, remains);
        wake(std::mem::replace(&mut *lock(&self.slot), answered));
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        let mut slot = lock(&self.slot);
        if !matches!(*slot, Slot::Answered(..)) {
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

/// The side that asked: a future, or something to wait for.
pub(crate) struct Answer<T> {
    slot: Arc<Mutex<Slot<T>>>,
}

impl<T> Answer<T> {
    /// Blocks the thread until the answer is there.
    pub(crate) fn wait(self) -> Result<T> {
        block_on(self)
    }
}

impl<T> Future for Answer<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let mut slot = lock(&self.slot);
        match std::mem::replace(&mut *slot, Slot::Closed) {
            Slot::Answered(answer, remains) => {
                drop(slot);
                drop(remains);
                Poll::Ready(answer)
            }
            Slot::Closed => Poll::Ready(Err(Error::OutcomeUnknown(
                "the engine stopped before it answered".to_owned(),
            ))),
            Slot::Empty | Slot::Awaited(_) => {
                *slot = Slot::Awaited(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Runs a future on this thread, which sleeps meanwhile.
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
    fn an_answer_arrives_whether_it_was_awaited_before_or_after() {
        let (promise, answer) = self::promise();
        promise.keep(Ok(1), Box::new(()));
        assert_eq!(answer.wait(), Ok(1));
        let (promise, answer) = self::promise();
        let waiting = std::thread::spawn(|| answer.wait());
        promise.keep(Ok(2), Box::new(()));
        assert_eq!(waiting.join().unwrap(), Ok(2));
    }

    #[test]
    fn what_is_left_of_a_request_is_freed_by_the_one_who_asked_or_by_the_last_who_knows_it() {
        let (remains, (promise, answer)) = (Arc::new(()), self::promise());
        promise.keep(Ok(()), Box::new(remains.clone()));
        assert_eq!(Arc::strong_count(&remains), 2);
        answer.wait().unwrap();
        assert_eq!(Arc::strong_count(&remains), 1);
        let (promise, answer) = self::promise();
        drop(answer);
        promise.keep(Ok(()), Box::new(remains.clone()));
        assert_eq!(Arc::strong_count(&remains), 1);
    }

    #[test]
    fn a_broken_promise_leaves_the_outcome_open() {
        let (promise, answer) = self::promise::<()>();
        drop(promise);
        assert!(answer.wait().unwrap_err().may_have_applied());
    }

    #[test]
    fn nobody_need_wait_for_an_answer() {
        let (promise, answer) = self::promise();
        drop(answer);
        promise.keep(Ok(()), Box::new(()));
    }
}
