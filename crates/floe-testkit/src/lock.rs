//! Locks that outlive a panic of their holder: what a test that failed has left behind is still looked at.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
