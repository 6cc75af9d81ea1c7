//! Goes on with a connection that has woken itself, without asking the runtime for another turn.
//!
//! Inside of a connection, who takes a request apart and who answers it wake each other, and both are one task. The
//! runtime would put the task back into its queue and wake another thread that may take it from there, which costs
//! more than most requests.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// How often a task goes on by itself before others have their turn.
const TURNS_MAX: usize = 8;

/// The task waits, and whoever wakes it has to wake the runtime.
const WAITING: u8 = 0;
/// The task runs.
const RUNNING: u8 = 1;
/// The task runs, and was woken meanwhile.
const WOKEN: u8 = 2;

/// What a task is woken by.
#[derive(Debug)]
struct TaskWaker {
    state: AtomicU8,
    /// By which the runtime is woken.
    runtime: Mutex<Waker>,
}

/// Runs a future that wakes itself often.
pub(crate) async fn going_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let own = Arc::new(TaskWaker {
        state: AtomicU8::new(WAITING),
        runtime: Mutex::new(Waker::noop().clone()),
    });
    let waker = Waker::from(Arc::clone(&own));
    poll_fn(move |cx| {
        own.set(cx.waker());
        for _ in 0..TURNS_MAX {
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
    /// Notes by which waker the runtime is woken from now on.
    fn set(&self, waker: &Waker) {
        let mut runtime = self.lock();
        if !runtime.will_wake(waker) {
            runtime.clone_from(waker);
        }
    }

    /// Whether nobody has woken the task while it ran.
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

    /// Counts how often the runtime is woken.
    #[derive(Default)]
    struct Runtime(AtomicUsize);

    impl Wake for Runtime {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls once a future that wakes itself so often. Returns whether it is done, and how often the runtime was woken.
    fn check(self_wakes: usize) -> (bool, usize) {
        let runtime = Arc::new(Runtime::default());
        let waker = Waker::from(Arc::clone(&runtime));
        let mut left = self_wakes;
        let future = pin!(going_on(poll_fn(move |cx| {
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
    fn what_wakes_itself_goes_on_without_the_runtime() {
        assert_eq!(check(0), (true, 0));
        assert_eq!(check(TURNS_MAX - 1), (true, 0));
    }

    #[test]
    fn others_have_their_turn_in_the_end() {
        assert_eq!(check(TURNS_MAX), (false, 1));
        assert_eq!(check(1000), (false, 1));
    }

    #[test]
    fn who_waits_is_woken_through_the_runtime() {
        let runtime = Arc::new(Runtime::default());
        let waker = Waker::from(Arc::clone(&runtime));
        let inner = Mutex::new(None);
        let mut future = pin!(going_on(poll_fn(|cx| {
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
