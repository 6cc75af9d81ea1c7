//! The turns of a body: what it is polled with.
//!
//! A read lets the other futures of the body have a turn before it is sent, so that reads that are waited for together
//! [go out together](super::gather): it asks to be polled again at once. Passed on to the runtime, that wish puts the whole
//! task at the end of its queue and wakes another thread to look at it, for each read. So a body that asks while it is
//! being polled is polled again on the spot.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// How often a body is polled on the spot until other tasks have a turn.
const TURNS_MAX: usize = 32;

/// Nothing polls the body: who wakes it wakes its task.
const IDLE: u8 = 0;
/// The body is being polled.
const POLLED: u8 = 1;
/// The body is being polled, and has been woken meanwhile.
const WOKEN: u8 = 2;

/// What wakes a body.
#[derive(Default)]
struct Turns {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wake for Turns {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let noted =
            (self.state).compare_exchange(POLLED, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if noted == Err(IDLE) {
            self.task.wake();
        }
    }
}

thread_local! {
    /// Whether the body of a transaction is being polled.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is called from the body of a transaction.
pub(super) fn is_inside() -> bool {
    INSIDE.get()
}

/// Runs the future of a body.
pub(super) async fn run<F: Future>(body: F) -> F::Output {
    let mut body = pin!(body);
    let turns = Arc::new(Turns::default());
    let waker = Waker::from(Arc::clone(&turns));
    poll_fn(move |context| {
        let _entered = Entered(INSIDE.replace(true));
        turns.task.register(context.waker());
        for _ in 0..TURNS_MAX {
            turns.state.store(POLLED, Ordering::Release);
            let polled = body.as_mut().poll(&mut Context::from_waker(&waker));
            let woken = turns.state.swap(IDLE, Ordering::AcqRel) == WOKEN;
            if polled.is_ready() || !woken {
                return polled;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Puts the flag back as it was, also when the body panics: the thread goes on with other bodies.
struct Entered(bool);

impl Drop for Entered {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Asks so often to be polled again.
    async fn turns_taken(wanted: usize) -> usize {
        let mut taken = 0;
        poll_fn(|context| {
            if taken == wanted {
                return Poll::Ready(taken);
            }
            taken += 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    #[test]
    fn a_body_that_wakes_itself_is_polled_on_the_spot() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let mut body = pin!(run(turns_taken(5)));
        assert_eq!(body.as_mut().poll(&mut context), Poll::Ready(5));
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_body_that_never_stops_waking_itself_lets_other_tasks_have_a_turn() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let mut body = pin!(run(turns_taken(usize::MAX)));
        for polls in 1..4 {
            assert_eq!(body.as_mut().poll(&mut context), Poll::Pending);
            assert_eq!(count.0.load(Ordering::Relaxed), polls);
        }
    }

    #[test]
    fn a_body_that_waits_is_woken_through_its_task() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let (answer, answered) = tokio::sync::oneshot::channel();
        let mut body = pin!(run(answered));
        assert!(body.as_mut().poll(&mut context).is_pending());
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        answer.send(7).unwrap();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(body.as_mut().poll(&mut context), Poll::Ready(Ok(7)));
    }

    #[test]
    fn a_body_knows_that_it_is_one() {
        let waker = Waker::noop();
        let mut body = pin!(run(async { is_inside() }));
        assert_eq!(
            body.as_mut().poll(&mut Context::from_waker(waker)),
            Poll::Ready(true)
        );
        assert!(!is_inside());
    }
}
