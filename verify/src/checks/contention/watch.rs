//! Detects stalls.
//!
//! The watched work runs in its own thread and the watch in the caller's: a deadlock would also block a timer of
//! the runtime.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use floe_store::env::Stopwatch;

use super::super::figures::ProgressPrinter;
use super::CHECK;
use crate::Failure;

/// Counts commits, and names the phase of the work.
#[derive(Debug, Default)]
pub(super) struct Activity {
    commits: AtomicU64,
    phase: Mutex<String>,
}

impl Activity {
    pub(super) fn record_commit(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// Starts a phase, which counts as progress.
    pub(super) fn begin_phase(&self, engine: &str, workload: &str) {
        let mut phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        *phase = format!("engine={engine} workload={workload}");
        self.record_commit();
    }

    fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    fn phase(&self) -> String {
        let phase = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        phase.clone()
    }
}

/// The outcome of watched work.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WatchOutcome<T> {
    Done(T),
    /// No commit for too long. The thread is left running and ends with the process.
    Stalled {
        /// The phase in which the work stalled.
        phase: String,
    },
}

/// Measures the time since the last commit.
#[derive(Debug, Default)]
struct StallDetector {
    commits: u64,
    since: Duration,
}

impl StallDetector {
    /// Returns the time since the count last changed, given the count at this moment.
    fn idle_time(&mut self, commits: u64, now: Duration) -> Duration {
        if commits != self.commits {
            (self.commits, self.since) = (commits, now);
        }
        now.saturating_sub(self.since)
    }
}

/// Runs the work until it is done, or until it stalls for this long.
///
/// # Errors
///
/// When the thread cannot be started, or panics.
pub(super) fn run_watched<T: Send + 'static>(
    stall: Duration,
    work: impl FnOnce(&Arc<Activity>) -> T + Send + 'static,
) -> Result<WatchOutcome<T>, Failure> {
    const POLL: Duration = Duration::from_millis(50);
    let activity = Arc::new(Activity::default());
    let (sender, receiver) = channel();
    let worker_activity = Arc::clone(&activity);
    std::thread::Builder::new()
        .name(CHECK.name.to_owned())
        .spawn(move || drop(sender.send(work(&worker_activity))))?;
    let mut progress = ProgressPrinter::new(CHECK.name);
    let (mut detector, watch) = (StallDetector::default(), Stopwatch::start());
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(done) => return Ok(WatchOutcome::Done(done)),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::broken("the thread of the check panicked"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        let commits = activity.commits();
        if detector.idle_time(commits, watch.elapsed()) >= stall {
            let phase = activity.phase();
            return Ok(WatchOutcome::Stalled { phase });
        }
        progress.tick(|| format!("{} commits={commits}", activity.phase()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_work_is_reported_as_stalled() {
        let (keep, never) = channel::<()>();
        let outcome = run_watched(Duration::from_millis(1), move |_| never.recv());
        assert!(matches!(outcome, Ok(WatchOutcome::Stalled { .. })));
        drop(keep);
    }

    #[test]
    fn stall_time_restarts_with_each_commit() {
        let secs = Duration::from_secs;
        let mut detector = StallDetector::default();
        let observed = [(0, 3, 3), (1, 4, 0), (1, 9, 5), (2, 10, 0), (2, 10, 0)];
        for (commits, now, idle) in observed {
            assert_eq!(detector.idle_time(commits, secs(now)), secs(idle));
        }
    }

    #[test]
    fn result_of_finished_work_is_returned() {
        let outcome = run_watched(Duration::from_secs(60), |activity| {
            activity.record_commit();
            7
        });
        assert_eq!(outcome.unwrap(), WatchOutcome::Done(7));
    }

    #[test]
    fn panic_of_the_work_is_an_error() {
        let outcome = run_watched(Duration::from_secs(60), |_| panic!("on purpose"));
        assert!(matches!(outcome, Err(Failure::Broken(_))));
    }
}
