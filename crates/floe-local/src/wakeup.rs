//! Wakes a thread that works in rounds, such as the [background](crate::background) thread.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::locks::lock;

/// Wakes a thread that sleeps between rounds, or asks it to stop.
#[derive(Default)]
pub(crate) struct Wakeup {
    state: Mutex<WakeupState>,
    changed: Condvar,
}

#[derive(Default)]
struct WakeupState {
    notified: bool,
    stopped: bool,
}

impl Wakeup {
    /// Wakes the thread, or skips its next sleep.
    pub(crate) fn notify(&self) {
        lock(&self.state).notified = true;
        self.changed.notify_all();
    }

    /// Asks the thread to stop.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }

    /// Whether the thread was asked to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        lock(&self.state).stopped
    }

    /// Sleeps for `duration`, or until notified or stopped.
    pub(crate) fn sleep(&self, duration: Duration) {
        let state = lock(&self.state);
        let asleep = |state: &mut WakeupState| !state.notified && !state.stopped;
        let (mut state, _) = self
            .changed
            .wait_timeout_while(state, duration, asleep)
            .unwrap_or_else(PoisonError::into_inner);
        state.notified = false;
    }
}
