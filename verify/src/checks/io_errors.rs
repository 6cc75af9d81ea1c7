//! `verify io-errors`: a failing disk costs nothing that was acknowledged.
//!
//! The files of this check: here the plan and the figures, `point.rs` one failing call and what must
//! hold after it, `full.rs` a disk that is full, `endure.rs` the process that meets both.

mod endure;
mod full;
mod point;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use clap::{ArgMatches, Args, FromArgMatches};

use super::cores::sum_up;
use super::figures::{Figures, Verdict};
use super::findings::Findings;
use super::planted::Bug;
use super::stage::mixed;
use super::{Check, Common, Work};
use crate::shim::{Counts, Fault, FaultKind, Shim};
use crate::{Failure, out};
pub(super) use endure::Enduring;
use endure::ROLE;
use point::{Base, Bench};

pub(super) const CHECK: Check = Check {
    name: "io-errors",
    proves: "after a failed write, sync, open or rename nothing acknowledged is lost",
    how: "A process opens a directory and writes to it, and one of its system calls fails: a write, \
          in full or in\npart, a sync, an open, a rename, a truncation, a removal. It must then \
          refuse further writes with a clear\nerror, go on by itself when the disk was full, or not be concerned; it must \
          not panic or hang, and what it acknowledged must be there when the\ndirectory is opened again, also \
          when the power was cut after a failed sync. The same on a disk that is full.",
    flags: Flags::augment_args,
    planted: &[Bug::AckFailed],
    prepare,
};

/// How the run is sized.
#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    planted: Option<Bug>,
    /// At most so many points of each kind and each base.
    points_max: u64,
    operations: u64,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// At most so many calls of each kind to fail [default: every one; quick: 12]
    #[arg(long, value_name = "N")]
    points: Option<u64>,

    /// Operations of the process
    #[arg(long, value_name = "N", default_value_t = 60)]
    operations: u64,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<Work, Failure> {
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
        let bench = Bench {
            plan,
            shim: &shim,
            base,
        };
        let scratch = folder.path().join(format!("points-{number}"));
        std::fs::create_dir(&scratch)?;
        let points = points(plan, &bench.count(&scratch)?);
        total.add(run_points(&bench, &scratch, &points)?);
    }
    let full = full::run(plan, &shim, folder.path())?;
    Ok(verdict(plan, total, full, started))
}

/// The failures to try.
fn points(plan: Plan, counts: &Counts) -> Vec<Fault> {
    let faults = |kind: FaultKind| {
        // A full disk stays full; other failures pass.
        let sticky = matches!(kind, FaultKind::WriteEnospc | FaultKind::WriteShort);
        let calls = choose(counts.points(kind), plan.points_max, plan.seed);
        let fault = move |nth| Fault { kind, nth, sticky };
        calls.into_iter().map(fault)
    };
    FaultKind::ALL.into_iter().flat_map(faults).collect()
}

/// Which of so many calls shall fail: all, or at most `most` of them: the first, the last, and some
/// spread between.
fn choose(calls: u64, most: u64, seed: u64) -> BTreeSet<u64> {
    if calls <= most {
        return (1..=calls).collect();
    }
    let stride = calls / most;
    let between = (1..most.saturating_sub(1)).map(|n| 1 + n * stride + mixed(seed ^ n) % stride);
    between.chain([1, calls]).collect()
}

/// Runs the points on all cores.
fn run_points(bench: &Bench<'_>, scratch: &Path, points: &[Fault]) -> Result<Total, Failure> {
    sum_up(
        CHECK.name,
        points,
        |fault| bench.run(*fault, scratch),
        |total: &mut Total, fault, outcome| total.take(*fault, outcome),
        |total| format!("points={} of={}", total.points, points.len()),
    )
}

/// What all points have come to.
#[derive(Debug, Default)]
struct Total {
    points: u64,
    by_kind: BTreeMap<&'static str, u64>,
    /// Points at which the call was reached and made to fail.
    injected: u64,
    /// Points after which the process refused to write, or to open.
    refused: u64,
    faults: point::Faults,
    findings: Findings,
}

impl Total {
    fn take(&mut self, fault: Fault, outcome: point::Outcome) {
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
    fn the_first_and_the_last_call_are_always_among_the_chosen() {
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
