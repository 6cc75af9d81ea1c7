//! `verify io-errors`: a failing disk loses no acknowledged write.
//!
//! The files of this check: this one has the plan and the figures, `point.rs` one failing call and the expectations,
//! `full.rs` a full disk, `client_process.rs` the process under test.

mod client_process;
mod full;
mod point;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use clap::{ArgMatches, Args, FromArgMatches};

use super::audit_report::AuditReport;
use super::cores::run_jobs;
use super::figures::{Figures, Verdict};
use super::planted::Bug;
use super::test_table::splitmix64;
use super::{Check, CheckRun, Common};
use crate::shim::{Counts, Fault, FaultKind, Shim};
use crate::{Failure, out};
pub(super) use client_process::FaultedClientRole;
use client_process::ROLE;
use point::{Base, Runner};

pub(super) const CHECK: Check = Check {
    name: "io-errors",
    proves: "no acknowledged write is lost after a failed write, sync, open or rename",
    how: "A process opens a directory and writes to it, and one of its system calls fails: a write, in full or \
          in\npart, a sync, an open, a rename, a truncation, a removal. It must then reject further writes with a \
          clear\nerror, resume by itself after a full disk, or not be affected; it must not panic or hang, and its \
          acknowledged\nwrites must be stored when the directory is opened again, also when the power was cut after \
          a failed sync.\nThe same on a full disk.",
    flags: Flags::augment_args,
    planted: &[Bug::AckFailed],
    prepare,
};

/// The size of the run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    planted: Option<Bug>,
    /// Maximum number of failures of each kind on each base.
    points_max: u64,
    operations: u64,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Maximum number of failed calls of each kind [default: every call; quick: 12]
    #[arg(long, value_name = "N")]
    points: Option<u64>,

    /// Number of operations of the process
    #[arg(long, value_name = "N", default_value_t = 60)]
    operations: u64,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        seed: common.seed,
        planted: common.planted,
        points_max: flags.points.unwrap_or(common.pick(12, u64::MAX)),
        operations: flags.operations,
    };
    Ok(Box::new(move || run(plan)))
}

fn run(plan: Plan) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let folder = tempfile::tempdir()?;
    let shim = Shim::build()?;
    let bases = [
        Base::empty(),
        Base::used(&folder.path().join("base"), plan)?,
    ];
    let mut total = Total::default();
    for (number, base) in bases.iter().enumerate() {
        let runner = Runner {
            plan,
            shim: &shim,
            base,
        };
        let scratch = folder.path().join(format!("points-{number}"));
        std::fs::create_dir(&scratch)?;
        let points = points(plan, &runner.count(&scratch)?);
        total.add(run_points(&runner, &scratch, &points)?);
    }
    let full = full::run(plan, &shim, folder.path())?;
    Ok(verdict(plan, total, full, started))
}

/// Returns the failures to inject.
fn points(plan: Plan, counts: &Counts) -> Vec<Fault> {
    let faults = |kind: FaultKind| {
        // A full disk stays full; other failures happen once.
        let sticky = matches!(kind, FaultKind::WriteEnospc | FaultKind::WriteShort);
        let calls = choose(counts.points(kind), plan.points_max, plan.seed);
        let fault = move |nth| Fault { kind, nth, sticky };
        calls.into_iter().map(fault)
    };
    FaultKind::ALL.into_iter().flat_map(faults).collect()
}

/// Chooses the calls that fail: all, or at most `most` of them: the first, the last, and some between.
fn choose(calls: u64, most: u64, seed: u64) -> BTreeSet<u64> {
    if calls <= most {
        return (1..=calls).collect();
    }
    let stride = calls / most;
    let between =
        (1..most.saturating_sub(1)).map(|n| 1 + n * stride + splitmix64(seed ^ n) % stride);
    between.chain([1, calls]).collect()
}

/// Runs all failures in parallel.
fn run_points(runner: &Runner<'_>, scratch: &Path, points: &[Fault]) -> Result<Total, Failure> {
    run_jobs(
        CHECK.name,
        points,
        |fault| runner.run(*fault, scratch),
        |total: &mut Total, fault, outcome| total.record(*fault, outcome),
        |total| format!("points={} of={}", total.points, points.len()),
    )
}

/// The results of all failures.
#[derive(Debug, Default)]
struct Total {
    points: u64,
    by_kind: BTreeMap<&'static str, u64>,
    /// Failures whose call was reached.
    injected: u64,
    /// Failures after which the process rejected writes, or failed to open the directory.
    refused: u64,
    faults: point::Faults,
    findings: AuditReport,
}

impl Total {
    fn record(&mut self, fault: Fault, outcome: point::Outcome) {
        self.points += 1;
        self.injected += u64::from(outcome.is_injected);
        self.refused += u64::from(outcome.is_refused);
        *self.by_kind.entry(fault.kind.name()).or_default() += 1;
        self.faults.add(&outcome.faults);
        let mut findings = outcome.findings;
        for note in &mut findings.notes {
            *note = format!("fault={fault} {note}");
        }
        self.findings.add(findings);
    }

    fn add(&mut self, other: Self) {
        self.points += other.points;
        self.injected += other.injected;
        self.refused += other.refused;
        self.faults.add(&other.faults);
        self.findings.add(other.findings);
        for (kind, points) in other.by_kind {
            *self.by_kind.entry(kind).or_default() += points;
        }
    }
}

fn verdict(plan: Plan, mut total: Total, full: full::Outcome, started: Instant) -> Verdict {
    let mut figures = Figures::new(CHECK.name)
        .put("seed", plan.seed)
        .put("points", total.points)
        .put("injected", total.injected)
        .put("refused", total.refused);
    for (kind, points) in &total.by_kind {
        figures = figures.put(&kind.replace('-', "_"), points);
    }
    total.faults.add(&full.point.faults);
    total.findings.add(full.point.findings);
    if plan.planted.is_none() {
        total.findings.notes.iter().for_each(|note| out::note(note));
    }
    let (faults, findings) = (&total.faults, &total.findings);
    let figures = figures
        .put("tmpfs", full.is_tmpfs)
        .put("full_acked", full.acked)
        .put("full_refused", full.point.is_refused)
        .put("full_opened", full.is_opened);
    let figures = findings
        .put(figures, "")
        .put("resumed", faults.resumed)
        .put("unclear", faults.unclear)
        .put("panicked", faults.panicked)
        .put("hung", faults.hung)
        .put("unopened", faults.unopened)
        .put("seconds", started.elapsed().as_secs());
    let is_clean =
        findings.is_clean() && faults.is_clean() && total.injected > 0 && full.point.is_refused;
    let found = plan.planted.map(|_| findings.lost > 0);
    Verdict::new(figures, is_clean, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_last_call_are_always_chosen() {
        assert_eq!(choose(0, 5, 1), BTreeSet::new());
        assert_eq!(choose(3, 5, 1), BTreeSet::from([1, 2, 3]));
        assert_eq!(choose(9, 2, 1), BTreeSet::from([1, 9]));
        for seed in 0..50 {
            let chosen = choose(100, 12, seed);
            assert_eq!(chosen.len(), 12, "{chosen:?}");
            assert_eq!((chosen.first(), chosen.last()), (Some(&1), Some(&100)));
        }
    }
}
