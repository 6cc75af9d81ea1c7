//! Alternating rounds and medians.

use std::time::{Duration, Instant};

/// A number of operations and the time they took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) operations: u64,
    pub(crate) elapsed: Duration,
}

impl Rate {
    #[expect(clippy::cast_precision_loss, reason = "a printed number")]
    pub(crate) fn per_second(self) -> f64 {
        self.operations as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Repeats `step`, which returns its number of operations, for a duration.
pub(crate) fn repeat<E>(
    duration: Duration,
    mut step: impl FnMut() -> Result<u64, E>,
) -> Result<Rate, E> {
    let start = Instant::now();
    let mut operations = 0;
    loop {
        operations += step()?;
        let elapsed = start.elapsed();
        if elapsed >= duration {
            return Ok(Rate {
                operations,
                elapsed,
            });
        }
    }
}

/// Measures the time of work that returns its number of operations.
pub(crate) fn time<E>(work: impl FnOnce() -> Result<u64, E>) -> Result<Rate, E> {
    let start = Instant::now();
    let operations = work()?;
    Ok(Rate {
        operations,
        elapsed: start.elapsed(),
    })
}

/// The median; 0 without values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The median of the ratios of the rounds. Disturbances of the machine affect both sides of a round.
pub(crate) fn ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    median(ours.iter().zip(theirs).map(|(a, b)| a / b).collect())
}

/// Formats a floor, if there is one.
pub(crate) fn shown(floor: Option<f64>) -> String {
    floor.map_or_else(|| "none".to_owned(), |floor| floor.to_string())
}

/// The CPU time of all running threads of a process; 0 if the system does not report it. `/proc/PID/stat` includes
/// terminated threads, but counts in hundredths of a second.
pub(crate) fn cpu_time(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task"));
    let nanos = threads.into_iter().flatten().filter_map(|thread| {
        let stat = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        stat.split_whitespace().next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

/// The resident memory of a process in bytes; 0 if the system does not report it.
pub(crate) fn resident_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1));
    kib.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// The resident memory of this process in MiB; 0 if the system does not report it.
pub(crate) fn resident_mib() -> u64 {
    resident_bytes(std::process::id()) / (1024 * 1024)
}
