//! Locks that ignore poisoning: the state that a failed test left behind is still inspected.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Acquires the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
