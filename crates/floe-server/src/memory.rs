//! Memory that large bodies and answers share, so that many of them together cannot use up the machine.
//!
//! A call that finds it used up waits, and is refused after a while. Meanwhile
//! [`Registry::sweep`](crate::registry::Registry::sweep) removes those who hold memory without moving.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::limits::ORDINARY_BYTES_MAX;

/// Memory that many share.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes_max: usize,
    used: AtomicUsize,
    waiting: AtomicUsize,
    freed: Notify,
}

/// There was no memory within the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_max,
            used: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
        })
    }

    /// How much there is.
    pub(crate) const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Whether somebody waits because it is used up, or more is used than there should be.
    pub(crate) fn is_short(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0 || self.used.load(Ordering::SeqCst) > self.bytes_max
    }

    /// Takes so much, waiting for it if need be. Who asks for more than there ever is gets it when nobody has any.
    pub(crate) async fn take(
        self: &Arc<Self>,
        bytes: usize,
        deadline: Duration,
    ) -> Result<Taken, NoRoom> {
        match self.try_take(bytes) {
            Some(taken) => Ok(taken),
            None => self.wait(deadline, || self.try_take(bytes)).await,
        }
    }

    /// Waits until less than so many times of it is used up.
    pub(crate) async fn room(&self, times: usize, deadline: Duration) -> Result<(), NoRoom> {
        match self.has_room(times) {
            true => Ok(()),
            false => {
                let attempt = || self.has_room(times).then_some(());
                self.wait(deadline, attempt).await
            }
        }
    }

    /// Counts what is already there, whether there is room for it or not.
    pub(crate) fn add(self: &Arc<Self>, bytes: usize) -> Taken {
        self.used.fetch_add(bytes, Ordering::SeqCst);
        Taken {
            budget: Arc::clone(self),
            bytes,
        }
    }

    fn has_room(&self, times: usize) -> bool {
        self.used.load(Ordering::SeqCst) < self.bytes_max.saturating_mul(times)
    }

    fn try_take(self: &Arc<Self>, bytes: usize) -> Option<Taken> {
        let bytes_max = match bytes <= ORDINARY_BYTES_MAX {
            true => self.bytes_max,
            false => self.bytes_max / 4 * 3,
        };
        let with_more = |used: usize| {
            let sum = used.saturating_add(bytes);
            (used == 0 || sum <= bytes_max).then_some(sum)
        };
        let taken = self
            .used
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, with_more);
        taken.is_ok().then(|| Taken {
            budget: Arc::clone(self),
            bytes,
        })
    }

    async fn wait<T>(
        &self,
        deadline: Duration,
        attempt: impl Fn() -> Option<T>,
    ) -> Result<T, NoRoom> {
        let _waiting = Waiting::new(&self.waiting);
        let attempts = async {
            loop {
                // Whoever is notified between the attempt and the waiting is woken at once.
                let freed = self.freed.notified();
                if let Some(found) = attempt() {
                    return found;
                }
                freed.await;
            }
        };
        let found = tokio::time::timeout(deadline, attempts).await;
        found.map_err(|_| NoRoom)
    }
}

/// A part of a [`Budget`], given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Taken {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Taken {
    /// How much it is.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::SeqCst);
        if self.budget.waiting.load(Ordering::SeqCst) > 0 {
            self.budget.freed.notify_waiters();
        }
    }
}

/// Counts one who waits, also if it gives up.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn who_finds_it_used_up_waits_until_something_is_given_back() {
        let budget = Budget::new(100);
        let first = budget.take(60, SECOND).await.unwrap();
        let second = budget.take(30, SECOND).await.unwrap();
        assert!(!budget.is_short());
        let waiting = {
            let budget = Arc::clone(&budget);
            tokio::spawn(async move { budget.take(50, SECOND).await.map(|taken| taken.bytes()) })
        };
        tokio::task::yield_now().await;
        assert!(budget.is_short());
        drop(second);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "30 more is not enough");
        drop(first);
        assert_eq!(waiting.await.unwrap(), Ok(50));
        assert!(!budget.is_short());
        assert_eq!(budget.used.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_too_long_is_refused() {
        let budget = Budget::new(100);
        let all = budget.take(100, SECOND).await.unwrap();
        assert_eq!(budget.take(1, SECOND).await.map(drop), Err(NoRoom));
        assert_eq!(budget.room(1, SECOND).await, Err(NoRoom));
        assert!(!budget.is_short());
        drop(all);
        assert_eq!(budget.room(1, SECOND).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn more_than_there_ever_is_is_had_alone() {
        let budget = Budget::new(100);
        let all = budget.take(1000, SECOND).await.unwrap();
        assert_eq!(budget.take(1, SECOND).await.map(drop), Err(NoRoom));
        drop(all);
        assert!(budget.take(1, SECOND).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_is_kept_for_the_small() {
        const MB: usize = 1 << 20;
        let budget = Budget::new(40 * MB);
        let _large = budget.take(20 * MB, SECOND).await.unwrap();
        assert_eq!(budget.take(11 * MB, SECOND).await.map(drop), Err(NoRoom));
        let small: Vec<_> = (0..20).map(|_| budget.try_take(MB)).collect();
        assert!(small.iter().all(Option::is_some));
        assert!(budget.try_take(MB).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_there_already_counts() {
        let budget = Budget::new(100);
        let (one, two) = (budget.add(90), budget.add(90));
        assert!(budget.is_short());
        assert_eq!(budget.room(1, SECOND).await, Err(NoRoom));
        assert_eq!(budget.room(2, SECOND).await, Ok(()));
        drop(one);
        assert_eq!(budget.room(1, SECOND).await, Ok(()));
        drop(two);
    }
}
