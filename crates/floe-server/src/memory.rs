//! Memory budgets that large request bodies and responses share, so that they cannot exhaust the machine.
//!
//! A request waits while its budget is exhausted, and is rejected after a deadline. Meanwhile
//! [`Registry::sweep`](crate::registry::Registry::sweep) disconnects clients that hold memory without making progress.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use crate::limits::ORDINARY_BYTES_MAX;

/// A limit on memory, shared by all connections.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    bytes_max: usize,
    used: AtomicUsize,
    waiting: AtomicUsize,
    freed: Notify,
}

/// The memory was not available within the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetExhausted;

impl MemoryBudget {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_max,
            used: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
        })
    }

    /// The size of the budget.
    pub(crate) const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Whether a request waits for memory, or more is in use than the budget allows.
    pub(crate) fn is_under_pressure(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0 || self.used.load(Ordering::SeqCst) > self.bytes_max
    }

    /// Reserves memory, waiting if necessary. A request for more than the whole budget is granted when nothing else is
    /// reserved.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        bytes: usize,
        deadline: Duration,
    ) -> Result<Reservation, BudgetExhausted> {
        match self.try_reserve(bytes) {
            Some(reservation) => Ok(reservation),
            None => self.wait(deadline, || self.try_reserve(bytes)).await,
        }
    }

    /// Waits until less than `times` times the budget is in use.
    pub(crate) async fn wait_for_room(
        &self,
        times: usize,
        deadline: Duration,
    ) -> Result<(), BudgetExhausted> {
        if self.has_room(times) {
            return Ok(());
        }
        let attempt = || self.has_room(times).then_some(());
        self.wait(deadline, attempt).await
    }

    /// Counts memory that is already in use, even beyond the limit.
    pub(crate) fn add(self: &Arc<Self>, bytes: usize) -> Reservation {
        self.used.fetch_add(bytes, Ordering::SeqCst);
        Reservation {
            budget: Arc::clone(self),
            bytes,
        }
    }

    fn has_room(&self, times: usize) -> bool {
        self.used.load(Ordering::SeqCst) < self.bytes_max.saturating_mul(times)
    }

    fn try_reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        let bytes_max = if bytes <= ORDINARY_BYTES_MAX {
            self.bytes_max
        } else {
            self.bytes_max / 4 * 3
        };
        let with_more = |used: usize| {
            let sum = used.saturating_add(bytes);
            (used == 0 || sum <= bytes_max).then_some(sum)
        };
        let reservation = self
            .used
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, with_more);
        reservation.is_ok().then(|| Reservation {
            budget: Arc::clone(self),
            bytes,
        })
    }

    async fn wait<T>(
        &self,
        deadline: Duration,
        attempt: impl Fn() -> Option<T>,
    ) -> Result<T, BudgetExhausted> {
        let _waiter = WaiterCount::new(&self.waiting);
        let attempts = async {
            loop {
                // Created before the attempt, so that a release in between is not missed.
                let freed = self.freed.notified();
                if let Some(found) = attempt() {
                    return found;
                }
                freed.await;
            }
        };
        let found = tokio::time::timeout(deadline, attempts).await;
        found.map_err(|_| BudgetExhausted)
    }
}

/// Part of a [`MemoryBudget`], released on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Reservation {
    /// The reserved size.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::SeqCst);
        if self.budget.waiting.load(Ordering::SeqCst) > 0 {
            self.budget.freed.notify_waiters();
        }
    }
}

/// Counts a waiting request, until it is dropped.
struct WaiterCount<'a>(&'a AtomicUsize);

impl<'a> WaiterCount<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for WaiterCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn exhausted_budget_waits_for_release() {
        let budget = MemoryBudget::new(100);
        let first = budget.reserve(60, SECOND).await.unwrap();
        let second = budget.reserve(30, SECOND).await.unwrap();
        assert!(!budget.is_under_pressure());
        let waiting = {
            let budget = Arc::clone(&budget);
            tokio::spawn(async move {
                budget
                    .reserve(50, SECOND)
                    .await
                    .map(|reservation| reservation.bytes())
            })
        };
        tokio::task::yield_now().await;
        assert!(budget.is_under_pressure());
        drop(second);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished(), "40 bytes are not enough");
        drop(first);
        assert_eq!(waiting.await.unwrap(), Ok(50));
        assert!(!budget.is_under_pressure());
        assert_eq!(budget.used.load(Ordering::SeqCst), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_at_the_deadline() {
        let budget = MemoryBudget::new(100);
        let all = budget.reserve(100, SECOND).await.unwrap();
        assert_eq!(
            budget.reserve(1, SECOND).await.map(drop),
            Err(BudgetExhausted)
        );
        assert_eq!(budget.wait_for_room(1, SECOND).await, Err(BudgetExhausted));
        assert!(!budget.is_under_pressure());
        drop(all);
        assert_eq!(budget.wait_for_room(1, SECOND).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn oversized_request_is_granted_alone() {
        let budget = MemoryBudget::new(100);
        let all = budget.reserve(1000, SECOND).await.unwrap();
        assert_eq!(
            budget.reserve(1, SECOND).await.map(drop),
            Err(BudgetExhausted)
        );
        drop(all);
        assert!(budget.reserve(1, SECOND).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_quarter_is_reserved_for_small_requests() {
        const MB: usize = 1 << 20;
        let budget = MemoryBudget::new(40 * MB);
        let _large = budget.reserve(20 * MB, SECOND).await.unwrap();
        assert_eq!(
            budget.reserve(11 * MB, SECOND).await.map(drop),
            Err(BudgetExhausted)
        );
        let small: Vec<_> = (0..20).map(|_| budget.try_reserve(MB)).collect();
        assert!(small.iter().all(Option::is_some));
        assert!(budget.try_reserve(MB).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn memory_already_in_use_is_counted() {
        let budget = MemoryBudget::new(100);
        let (one, two) = (budget.add(90), budget.add(90));
        assert!(budget.is_under_pressure());
        assert_eq!(budget.wait_for_room(1, SECOND).await, Err(BudgetExhausted));
        assert_eq!(budget.wait_for_room(2, SECOND).await, Ok(()));
        drop(one);
        assert_eq!(budget.wait_for_room(1, SECOND).await, Ok(()));
        drop(two);
    }
}
