//! Lets other tasks of a thread run between operations.
//!
//! Operations in memory, and all reads, complete without waiting. A task that awaits nothing else would never return to its
//! executor: timers would not fire, and other tasks of its thread would starve. So an operation yields once for every
//! [`OPERATIONS_PER_TURN`] operations of its thread. It uses only the standard library, so that it works on any executor;
//! all other operations only count, so that they cost no wakeup.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

/// Number of operations after which a thread yields.
const OPERATIONS_PER_TURN: u32 = 256;

/// Number of items of a page that take as long as an operation on one item.
const ITEMS_PER_OPERATION: usize = 4;

thread_local! {
    /// The operations that remain until the thread yields.
    static REMAINING: Cell<u32> = const { Cell::new(OPERATIONS_PER_TURN) };
}

/// Counts an operation of this thread, and yields first if its turn is over.
pub(crate) async fn take_turn() {
    let remaining = REMAINING.get();
    if remaining > 0 {
        REMAINING.set(remaining - 1);
        return;
    }
    REMAINING.set(OPERATIONS_PER_TURN - 1);
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Counts the items of a page of which the operation has been counted.
pub(crate) fn record_items(items: usize) {
    let operations = u32::try_from(items / ITEMS_PER_OPERATION).unwrap_or(u32::MAX);
    REMAINING.set(REMAINING.get().saturating_sub(operations));
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Wake, Waker};

    use super::*;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes turns, and returns how often it was woken for them.
    fn wakeups(turns: u32) -> u32 {
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        for _ in 0..turns {
            let mut turn = pin!(take_turn());
            while turn.as_mut().poll(&mut context).is_pending() {}
        }
        count.0.load(Ordering::Relaxed)
    }

    #[test]
    fn thread_yields_once_per_turn() {
        REMAINING.set(OPERATIONS_PER_TURN);
        assert_eq!(wakeups(OPERATIONS_PER_TURN), 0);
        assert_eq!(wakeups(1), 1);
        assert_eq!(wakeups(3 * OPERATIONS_PER_TURN), 3);
    }

    #[test]
    fn large_pages_end_the_turn_early() {
        REMAINING.set(OPERATIONS_PER_TURN);
        record_items(usize::MAX);
        assert_eq!(wakeups(1), 1);
    }
}
