//! An alarm clock for a thread that works in rounds, such as the [background](crate::background) thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Wakes a thread that sleeps between its rounds, or asks it to stop.
#[derive(Default)]
pub(crate) struct Alarm {
    state: Mutex<AlarmState>,
    rung: Condvar,
}

#[derive(Default)]
struct AlarmState {
    rung: bool,
    stopped: bool,
}

impl Alarm {
    /// Wakes the thread, or keeps it from going to sleep.
    pub(crate) fn ring(&self) {
        self.lock().rung = true;
        self.rung.notify_all();
    }

    /// Asks the thread to stop.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.rung.notify_all();
    }

    /// Whether the thread was asked to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().stopped
    }

    /// Sleeps for so long, or until it is rung or stopped.
    pub(crate) fn sleep(&self, duration: Duration) {
        let state = self.lock();
        let asleep = |state: &mut AlarmState| !state.rung && !state.stopped;
        let (mut state, _) = self
            .rung
            .wait_timeout_while(state, duration, asleep)
            .unwrap_or_else(PoisonError::into_inner);
        state.rung = false;
    }

    fn lock(&self) -> MutexGuard<'_, AlarmState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
