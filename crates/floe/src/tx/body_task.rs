//! Polls the future of a body.
//!
//! A read [yields](yield_to_siblings) once before it is sent, so that reads that are awaited together are
//! [batched](super::gather): it wakes itself while it is polled. If the runtime handled that wake, each read would move
//! the whole task to the end of its queue and wake another thread. So such a body is polled again immediately. Any other
//! wake while the body is polled, such as that of an engine which lets other tasks run, is left to the runtime.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// How often a body is polled again immediately before other tasks run.
const POLLS_MAX: usize = 32;

/// The body is not being polled: a wake goes to its task.
const IDLE: u8 = 0;
/// The body is being polled.
const POLLED: u8 = 1;
/// The body is being polled and was woken meanwhile.
const WOKEN: u8 = 2;

/// The waker of a body.
#[derive(Default)]
struct BodyWaker {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wake for BodyWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let marked =
            (self.state).compare_exchange(POLLED, WOKEN, Ordering::AcqRel, Ordering::Acquire);
        if marked == Err(IDLE) {
            self.task.wake();
        }
    }
}

thread_local! {
    /// Whether the body of a transaction is being polled.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
    /// Whether the body that is being polled has yielded to its own futures.
    static YIELDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether the caller is inside the body of a transaction.
pub(super) fn is_inside() -> bool {
    INSIDE.get()
}

/// Yields once to the other futures of the body, but not to other tasks.
pub(super) async fn yield_to_siblings() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        YIELDED.set(true);
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Runs the future of a body.
pub(super) async fn run<F: Future>(body: F) -> F::Output {
    let mut body = pin!(body);
    let body_waker = Arc::new(BodyWaker::default());
    let waker = Waker::from(Arc::clone(&body_waker));
    poll_fn(move |context| {
        let _entered = Entered(INSIDE.replace(true));
        body_waker.task.register(context.waker());
        for _ in 0..POLLS_MAX {
            body_waker.state.store(POLLED, Ordering::Release);
            YIELDED.set(false);
            let polled = body.as_mut().poll(&mut Context::from_waker(&waker));
            let woken = body_waker.state.swap(IDLE, Ordering::AcqRel) == WOKEN;
            if polled.is_ready() || !woken {
                return polled;
            }
            if !YIELDED.get() {
                break;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Restores the flag, also if the body panics: the thread may run other bodies afterwards.
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

    /// Yields this many times to the futures of the body.
    async fn yield_inside(times: usize) -> usize {
        for _ in 0..times {
            yield_to_siblings().await;
        }
        times
    }

    /// Wakes itself this many times.
    async fn wake_self(times: usize) -> usize {
        let mut woken = 0;
        poll_fn(|context| {
            if woken == times {
                return Poll::Ready(woken);
            }
            woken += 1;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    #[test]
    fn body_that_yields_to_its_own_futures_is_polled_again_immediately() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let mut body = pin!(run(yield_inside(5)));
        assert_eq!(body.as_mut().poll(&mut context), Poll::Ready(5));
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn body_that_wakes_itself_otherwise_yields_to_other_tasks() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let mut body = pin!(run(wake_self(2)));
        for polls in 1..3 {
            assert_eq!(body.as_mut().poll(&mut context), Poll::Pending);
            assert_eq!(count.0.load(Ordering::Relaxed), polls);
        }
        assert_eq!(body.as_mut().poll(&mut context), Poll::Ready(2));
    }

    #[test]
    fn body_that_always_yields_to_its_own_futures_yields_to_other_tasks() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let mut body = pin!(run(yield_inside(usize::MAX)));
        for polls in 1..4 {
            assert_eq!(body.as_mut().poll(&mut context), Poll::Pending);
            assert_eq!(count.0.load(Ordering::Relaxed), polls);
        }
    }

    #[test]
    fn waiting_body_is_woken_through_its_task() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let mut body = pin!(run(receiver));
        assert!(body.as_mut().poll(&mut context).is_pending());
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        sender.send(7).unwrap();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(body.as_mut().poll(&mut context), Poll::Ready(Ok(7)));
    }

    #[test]
    fn is_inside_is_true_only_in_a_body() {
        let waker = Waker::noop();
        let mut body = pin!(run(async { is_inside() }));
        assert_eq!(
            body.as_mut().poll(&mut Context::from_waker(waker)),
            Poll::Ready(true)
        );
        assert!(!is_inside());
    }
}
