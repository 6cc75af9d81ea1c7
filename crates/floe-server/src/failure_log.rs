//! The log of failures inside the engine. Their details are for the operator, not for clients.
//!
//! A failure is one line on stderr. A broken disk fails every request, so the same line is printed at most once a
//! second, then with the number of suppressed lines.

use std::fmt;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use floe_store::env::Stopwatch;

/// Minimum time between two identical lines.
const INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of different lines in one [`INTERVAL`]. Further ones are only counted.
const LINES_MAX: usize = 16;

/// Prints failures, identical ones at most once a second.
pub(crate) struct FailureLog {
    started: Stopwatch,
    limiter: Mutex<Limiter>,
    print: Box<dyn Fn(&str) + Send + Sync>,
}

impl FailureLog {
    /// Returns a log that prints to stderr.
    pub(crate) fn to_stderr() -> Self {
        Self::new(|line| {
            // Without stderr there is no log.
            drop(writeln!(std::io::stderr().lock(), "floe: {line}"));
        })
    }

    /// Returns a log that prints lines with this function.
    pub(crate) fn new(print: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            started: Stopwatch::start(),
            limiter: Mutex::default(),
            print: Box::new(print),
        }
    }

    /// Records a failure.
    pub(crate) fn record(&self, text: &str) {
        let words: Vec<_> = text.split_whitespace().collect();
        let lines = self
            .limiter()
            .admit(&words.join(" "), self.started.elapsed());
        lines.iter().for_each(|line| (self.print)(line));
    }

    fn limiter(&self) -> MutexGuard<'_, Limiter> {
        self.limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for FailureLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailureLog").finish_non_exhaustive()
    }
}

/// Prints the counts of suppressed lines.
impl Drop for FailureLog {
    fn drop(&mut self) {
        let lines = self.limiter().expire(Duration::MAX);
        lines.iter().for_each(|line| (self.print)(line));
    }
}

/// Decides which lines are printed. The caller provides the current time.
#[derive(Debug, Default)]
struct Limiter {
    recent: Vec<Recent>,
    /// Number of lines suppressed because there were too many different ones.
    others: u64,
}

/// A line that was printed within the last [`INTERVAL`].
#[derive(Debug)]
struct Recent {
    line: String,
    printed_at: Duration,
    suppressed: u64,
}

impl Limiter {
    /// Returns the lines to print for a failure at this time.
    fn admit(&mut self, line: &str, now: Duration) -> Vec<String> {
        let mut lines = self.expire(now);
        if let Some(recent) = self.recent.iter_mut().find(|recent| recent.line == line) {
            recent.suppressed += 1;
        } else if self.recent.len() == LINES_MAX {
            self.others += 1;
        } else {
            lines.push(line.to_owned());
            self.recent.push(Recent {
                line: line.to_owned(),
                printed_at: now,
                suppressed: 0,
            });
        }
        lines
    }

    /// Forgets lines that may be printed again. Returns those that were suppressed meanwhile, with their counts.
    fn expire(&mut self, now: Duration) -> Vec<String> {
        let mut lines = Vec::new();
        self.recent.retain(|recent| {
            let is_recent = now.saturating_sub(recent.printed_at) < INTERVAL;
            if !is_recent && recent.suppressed > 0 {
                let (line, count) = (&recent.line, recent.suppressed);
                lines.push(format!("{line} (repeated: {count})"));
            }
            is_recent
        });
        if self.others > 0 && self.recent.len() < LINES_MAX {
            lines.push(format!("other failures: {}", self.others));
            self.others = 0;
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn same_line_is_printed_once_a_second_with_a_count() {
        let mut limiter = Limiter::default();
        assert_eq!(limiter.admit("disk", at(0)), ["disk"]);
        assert!(limiter.admit("disk", at(1)).is_empty());
        assert!(limiter.admit("disk", at(999)).is_empty());
        assert_eq!(limiter.admit("net", at(999)), ["net"]);
        assert_eq!(
            limiter.admit("disk", at(1000)),
            ["disk (repeated: 2)", "disk"]
        );
        assert_eq!(limiter.admit("net", at(5000)), ["net"]);
    }

    #[test]
    fn many_different_lines_are_counted_together() {
        let mut limiter = Limiter::default();
        for number in 0..LINES_MAX {
            assert_eq!(limiter.admit(&number.to_string(), at(0)).len(), 1);
        }
        assert!(limiter.admit("one more", at(0)).is_empty());
        assert!(limiter.admit("two more", at(0)).is_empty());
        assert_eq!(
            limiter.admit("later", at(1000)),
            ["other failures: 2", "later"]
        );
    }

    /// Returns a log and the lines it has printed.
    fn log() -> (FailureLog, Arc<Mutex<Vec<String>>>) {
        let printed = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&printed);
        let log = FailureLog::new(move |line| lines.lock().unwrap().push(line.to_owned()));
        (log, printed)
    }

    #[test]
    fn failure_is_logged_as_one_line() {
        let (log, printed) = log();
        log.record("PutItem failed:\n  disk");
        assert_eq!(*printed.lock().unwrap(), ["PutItem failed: disk"]);
    }

    #[test]
    fn suppressed_lines_are_counted_at_the_end() {
        let (log, printed) = log();
        log.limiter().admit("disk", at(0));
        log.limiter().admit("disk", at(0));
        drop(log);
        assert_eq!(*printed.lock().unwrap(), ["disk (repeated: 1)"]);
    }
}
