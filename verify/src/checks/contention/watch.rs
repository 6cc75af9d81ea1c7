//! Notices that nothing happens any more.
//!
//! What is watched runs in a thread of its own and the watch in the caller's: threads that wait for each
//! other forever would take a timer of their runtime with them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use floe_store::env::Stopwatch;

use super::super::figures::Progress;
use super::CHECK;
use crate::Failure;

/// Beats whenever something was committed.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    beats: AtomicU64,
    place: Mutex<String>,
}

impl Pulse {
    pub(super) fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    /// Beats, and tells what goes on from now on.
    pub(super) fn enter(&self, engine: &str, workload: &str) {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        *place = format!("engine={engine} workload={workload}");
        self.beat();
    }

    fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    fn place(&self) -> String {
        let place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        place.clone()
    }
}

/// How watched work ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ending<T> {
    Done(T),
    /// The pulse stopped. The thread is left behind, and ends with the process.
    Stalled {
        /// What was going on.
        place: String,
    },
}

/// How long the pulse has stood still.
#[derive(Debug, Default)]
struct Vigil {
    beats: u64,
    since: Duration,
}

impl Vigil {
    /// How long it has stood still, given the beats that were felt by this moment.
    fn stillness(&mut self, beats: u64, now: Duration) -> Duration {
        if beats != self.beats {
            (self.beats, self.since) = (beats, now);
        }
        now.saturating_sub(self.since)
    }
}

/// Does the work until it is done, or until its pulse has stopped for so long.
///
/// # Errors
///
/// When the thread cannot be started, or panics.
pub(super) fn watched<T: Send + 'static>(
    stall: Duration,
    work: impl FnOnce(&Arc<Pulse>) -> T + Send + 'static,
) -> Result<Ending<T>, Failure> {
    const LOOK_EVERY: Duration = Duration::from_millis(50);
    let pulse = Arc::new(Pulse::default());
    let (sender, receiver) = channel();
    let felt = Arc::clone(&pulse);
    std::thread::Builder::new()
        .name(CHECK.name.to_owned())
        .spawn(move || drop(sender.send(work(&felt))))?;
    let mut progress = Progress::new(CHECK.name);
    let (mut vigil, watch) = (Vigil::default(), Stopwatch::start());
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(done) => return Ok(Ending::Done(done)),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::broken("the thread of the check panicked"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let beats = pulse.beats();
        if vigil.stillness(beats, watch.elapsed()) >= stall {
            let place = pulse.place();
            return Ok(Ending::Stalled { place });
        }
        progress.tick(|| format!("{} commits={beats}", pulse.place()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_never_ends_is_noticed() {
        let (keep, never) = channel::<()>();
        let ending = watched(Duration::from_millis(1), move |_| never.recv());
        assert!(matches!(ending, Ok(Ending::Stalled { .. })));
        drop(keep);
    }

    #[test]
    fn only_a_pulse_that_stands_still_counts() {
        let secs = Duration::from_secs;
        let mut vigil = Vigil::default();
        let felt = [(0, 3, 3), (1, 4, 0), (1, 9, 5), (2, 10, 0), (2, 10, 0)];
        for (beats, now, still) in felt {
            assert_eq!(vigil.stillness(beats, secs(now)), secs(still));
        }
    }

    #[test]
    fn work_that_ends_is_handed_back() {
        let ending = watched(Duration::from_secs(60), |pulse| {
            pulse.beat();
            7
        });
        assert_eq!(ending.unwrap(), Ending::Done(7));
    }

    #[test]
    fn a_panic_is_an_error() {
        let ending = watched(Duration::from_secs(60), |_| panic!("on purpose"));
        assert!(matches!(ending, Err(Failure::Broken(_))));
    }
}
