//! `verify soak`: under a steady load, disk space, memory, descriptors and latency do not grow.
//!
//! The files of this check: this one has the plan and the evaluation, `load.rs` the process under load.

mod load;

use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, FromArgMatches};

use super::child;
use super::figures::{Figures, ParsedFigures, Verdict, median};
use super::planted::Bug;
use super::program::Process;
use super::{Check, CheckRun, Common};
use crate::{Failure, out};
pub(super) use load::LoadRole;
use load::ROLE;

pub(super) const CHECK: Check = Check {
    name: "soak",
    proves: "under a steady load on a bounded set of keys, disk space, memory, descriptors and latency do not grow",
    how: "A process puts, updates and deletes items of a bounded set of keys, with expiring items, transactions with\n\
          tokens, queries on an index and a consumer of the change stream. Its clock runs sixty times as fast, so that\n\
          expiry, stream retention and token lifetimes are reached many times. In twenty windows it measures latency,\n\
          resident memory, descriptors and disk space. The last quarter must not be far above the second. The short\n\
          form ignores latency.",
    flags: Flags::augment_args,
    planted: &[Bug::Leak],
    prepare,
};

/// Number of windows.
const WINDOWS: u64 = 20;
/// Limits of the last quarter, in percent of the second.
const GROWTH_PERCENT_MAX: u64 = 150;
const P99_PERCENT_MAX: u64 = 300;
/// Slack on top of these limits, so that noise does not count as growth.
const P99_SLACK_US: u64 = 50_000;
const DISK_SLACK_BYTES: u64 = 16 << 20;
const DESCRIPTORS_SLACK: u64 = 16;
/// Maximum size of journals: two full ones, and half of a new one.
const JOURNAL_BYTES_MAX: u64 = 160 << 20;
/// Maximum time of the process besides the load.
const AROUND_MAX: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug)]
struct Plan {
    is_quick: bool,
    seed: u64,
    planted: Option<Bug>,
    seconds: u64,
}

impl Plan {
    /// Slack for memory. A short run has not filled all caches.
    const fn memory_slack_bytes(&self) -> u64 {
        if self.is_quick { 64 << 20 } else { 32 << 20 }
    }
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Duration of the load in seconds [default: 600; quick: 20]
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        is_quick: common.quick,
        seed: common.seed,
        planted: common.planted,
        seconds: flags.seconds.unwrap_or(common.pick(20, 600)),
    };
    Ok(Box::new(move || run(plan)))
}

fn run(plan: Plan) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let folder = tempfile::tempdir()?;
    let mut command = child::command_on(ROLE, folder.path(), plan.planted)?;
    command.arg("--seed").arg(plan.seed.to_string());
    command.arg("--windows").arg(WINDOWS.to_string());
    let window_ms = plan.seconds * 1000 / WINDOWS;
    command.arg("--window-ms").arg(window_ms.to_string());
    let deadline = started + Duration::from_secs(plan.seconds) + AROUND_MAX;
    let output = Process::run(command, CHECK.name, deadline)?;
    let mut lines: Vec<_> = output.stdout.lines().map(ParsedFigures::parse).collect();
    let end = lines.pop().unwrap_or_default();
    if plan.planted.is_none() {
        output.stderr.lines().for_each(out::note);
    }
    Ok(evaluate(plan, &lines, &end, started))
}

/// A quarter of the windows.
struct Quarter<'a>(&'a [ParsedFigures]);

impl Quarter<'_> {
    fn max(&self, key: &str) -> u64 {
        let values = self.0.iter().map(|facts| facts.get(key));
        values.max().unwrap_or_default()
    }

    fn median(&self, key: &str) -> u64 {
        let values: Vec<_> = self.0.iter().map(|facts| facts.get(key)).collect();
        median(&values)
    }
}

fn evaluate(
    plan: Plan,
    windows: &[ParsedFigures],
    end: &ParsedFigures,
    started: Instant,
) -> Verdict {
    let size = windows.len() / 4;
    let quarter = |number: usize| {
        let range = number * size..(number + 1) * size;
        Quarter(windows.get(range).unwrap_or_default())
    };
    let (second, last) = (quarter(1), quarter(3));
    let growths = [
        ("disk", DISK_SLACK_BYTES),
        ("rss", plan.memory_slack_bytes()),
        ("fds", DESCRIPTORS_SLACK),
    ];
    let mut figures = Figures::new(CHECK.name)
        .put("seed", plan.seed)
        .put("windows", windows.len())
        .put("writes", sum(windows, "writes"))
        .put("reads", sum(windows, "reads"))
        .put("records", end.get("records"));
    let (mut is_steady, mut has_grown) = (windows.len() as u64 == WINDOWS, false);
    for (key, slack) in growths {
        // A compaction temporarily holds its input and output, so the median is steadier than the maximum.
        let (before, after) = (second.median(key), last.median(key));
        let most = before * GROWTH_PERCENT_MAX / 100 + slack;
        has_grown |= after > most;
        figures = figures
            .put(key, after)
            .put(&format!("{key}_growth"), ratio(after, before));
        note_if(plan, after > most, key, after, most);
    }
    let journal = last.max("journal");
    has_grown |= journal > JOURNAL_BYTES_MAX;
    figures = figures.put("journal", journal);
    note_if(
        plan,
        journal > JOURNAL_BYTES_MAX,
        "journal",
        journal,
        JOURNAL_BYTES_MAX,
    );
    for key in ["write_p99_us", "read_p99_us"] {
        let (before, after) = (second.median(key), last.median(key));
        let most = before * P99_PERCENT_MAX / 100 + P99_SLACK_US;
        is_steady &= plan.is_quick || after <= most;
        figures = figures
            .put(key, after)
            .put(&format!("{key}_growth"), ratio(after, before));
        note_if(plan, !plan.is_quick && after > most, key, after, most);
    }
    let figures = figures
        .put("write_p50_us", last.median("write_p50_us"))
        .put("read_p50_us", last.median("read_p50_us"))
        .put("errors", end.get("errors"))
        .put("doctor", end.get("doctor"))
        .put("reopen_ms", end.get("reopen_ms"))
        .put("seconds", started.elapsed().as_secs());
    let is_clean = is_steady
        && !has_grown
        && end.get("errors") + end.get("doctor") == 0
        && sum(windows, "writes") > 0
        && end.get("records") > 0;
    Verdict::new(figures, is_clean, plan.planted.map(|_| has_grown))
}

fn sum(windows: &[ParsedFigures], key: &str) -> u64 {
    windows.iter().map(|facts| facts.get(key)).sum()
}

/// The ratio of two values, with two decimals.
fn ratio(after: u64, before: u64) -> String {
    let hundredths = after * 100 / before.max(1);
    format!("{}.{:02}", hundredths / 100, hundredths % 100)
}

fn note_if(plan: Plan, is_above: bool, key: &str, found: u64, most: u64) {
    if is_above && plan.planted.is_none() {
        out::note(&format!("{key}={found} at_most={most}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(disk: impl Fn(u64) -> u64) -> Verdict {
        let plan = Plan {
            is_quick: false,
            seed: 1,
            planted: None,
            seconds: 600,
        };
        let windows = (0..WINDOWS).map(|window| {
            let disk = disk(window);
            ParsedFigures::parse(&format!(
                "writes=9 reads=9 disk={disk} rss=1 fds=9 journal=1"
            ))
        });
        let windows: Vec<_> = windows.collect();
        let end = ParsedFigures::parse("records=5 errors=0 doctor=0");
        evaluate(plan, &windows, &end, Instant::now())
    }

    #[test]
    fn growth_is_detected_and_variation_is_not() {
        assert!(verdict(|window| (100 + window % 3 * 20) << 20).is_met);
        assert!(!verdict(|window| window * (20 << 20)).is_met);
        let line = verdict(|_| 1 << 20).figures;
        assert!(line.line().contains("disk_growth=1.00"), "{line:?}");
    }
}
