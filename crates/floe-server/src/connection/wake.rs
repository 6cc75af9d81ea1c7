//! Polls a connection again if it has woken itself, without returning to the runtime.
//!
//! Within a connection, the parser and the handler wake each other, and both belong to one task. The runtime would put
//! the task back into its queue and wake another thread that may steal it, which costs more than most requests.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Maximum number of polls in a row before other tasks run.
const POLLS_MAX: usize = 8;

/// The task waits, and a wake must be passed to the runtime.
const WAITING: u8 = 0;
/// The task is being polled.
const RUNNING: u8 = 1;
/// The task was woken while being polled.
const WOKEN: u8 = 2;

/// The waker of a task.
#[derive(Debug)]
struct TaskWaker {
    state: AtomicU8,
    /// The waker of the runtime.
    runtime: Mutex<Waker>,
}

/// Runs a future that often wakes itself.
pub(crate) async fn run_self_waking<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let own = Arc::new(TaskWaker {
        state: AtomicU8::new(WAITING),
        runtime: Mutex::new(Waker::noop().clone()),
    });
    let waker = Waker::from(Arc::clone(&own));
    poll_fn(move |cx| {
        own.set(cx.waker());
        for _ in 0..POLLS_MAX {
            own.state.store(RUNNING, Ordering::SeqCst);
            let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
            if polled.is_ready() || own.may_wait() {
                return polled;
            }
        }
        own.state.store(WAITING, Ordering::SeqCst);
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

impl TaskWaker {
    /// Sets the waker of the runtime.
    fn set(&self, waker: &Waker) {
        let mut runtime = self.lock();
        if !runtime.will_wake(waker) {
            runtime.clone_from(waker);
        }
    }

    /// Whether the task was not woken while it was polled.
    fn may_wait(&self) -> bool {
        let waits =
            self.state
                .compare_exchange(RUNNING, WAITING, Ordering::SeqCst, Ordering::SeqCst);
        waits.is_ok()
    }

    fn lock(&self) -> MutexGuard<'_, Waker> {
        self.runtime.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let woken = self
            .state
            .compare_exchange(RUNNING, WOKEN, Ordering::SeqCst, Ordering::SeqCst);
        if woken == Err(WAITING) {
            self.lock().wake_by_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Counts wakes of the runtime.
    #[derive(Default)]
    struct Runtime(AtomicUsize);

    impl Wake for Runtime {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls a future that wakes itself this many times. Returns whether it is ready, and the number of runtime wakes.
    fn check(self_wakes: usize) -> (bool, usize) {
        let runtime = Arc::new(Runtime::default());
        let waker = Waker::from(Arc::clone(&runtime));
        let mut left = self_wakes;
        let future = pin!(run_self_waking(poll_fn(move |cx| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        })));
        let polled = future.poll(&mut Context::from_waker(&waker));
        (polled.is_ready(), runtime.0.load(Ordering::SeqCst))
    }

    #[test]
    fn self_woken_future_continues_without_the_runtime() {
        assert_eq!(check(0), (true, 0));
        assert_eq!(check(POLLS_MAX - 1), (true, 0));
    }

    #[test]
    fn polls_in_a_row_are_limited() {
        assert_eq!(check(POLLS_MAX), (false, 1));
        assert_eq!(check(1000), (false, 1));
    }

    #[test]
    fn waiting_future_is_woken_through_the_runtime() {
        let runtime = Arc::new(Runtime::default());
        let waker = Waker::from(Arc::clone(&runtime));
        let inner = Mutex::new(None);
        let mut future = pin!(run_self_waking(poll_fn(|cx| {
            let before = inner.lock().unwrap().replace(cx.waker().clone());
            before.map_or(Poll::Pending, |_| Poll::Ready(()))
        })));
        let mut cx = Context::from_waker(&waker);
        assert!(future.as_mut().poll(&mut cx).is_pending());
        assert_eq!(runtime.0.load(Ordering::SeqCst), 0);
        inner.lock().unwrap().as_ref().unwrap().wake_by_ref();
        assert_eq!(runtime.0.load(Ordering::SeqCst), 1);
        assert!(future.poll(&mut cx).is_ready());
    }
}
