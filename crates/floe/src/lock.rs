//! Locks that stay usable after a panic of who held them.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose value is whole at any moment, so that a panic of its holder has broken nothing.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a mutex holds in the end.
pub(crate) fn into_inner<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}
