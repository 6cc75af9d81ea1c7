//! An alarm clock for a thread that works in rounds, such as the [background](crate::background) thread.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::locks::lock;

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
        lock(&self.state).rung = true;
        self.rung.notify_all();
    }

    /// Asks the thread to stop.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.rung.notify_all();
    }

    /// Whether the thread was asked to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        lock(&self.state).stopped
    }

    /// Sleeps for so long, or until it is rung or stopped.
    pub(crate) fn sleep(&self, duration: Duration) {
        let state = lock(&self.state);
        let asleep = |state: &mut AlarmState| !state.rung && !state.stopped;
        let (mut state, _) = self
            .rung
            .wait_timeout_while(state, duration, asleep)
            .unwrap_or_else(PoisonError::into_inner);
        state.rung = false;
    }
}
