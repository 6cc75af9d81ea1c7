//! `verify model`: the engine answers as the reference model does.

mod local;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::{ArgMatches, Args, FromArgMatches};
use floe_testkit::model::{self, Mismatch, MutantHarness, Report, run_property};
use tokio::runtime::Runtime;

use super::figures::{Figures, Progress, Verdict};
use super::planted::Bug;
use super::stage::mixed;
use super::{Check, Common, Work, on_all_cores};
use crate::{Failure, out};
use local::{Any, Local};

pub(super) const CHECK: Check = Check {
    name: "model",
    proves: "every answer is the reference model's, item by item and error by error",
    how: "Random sequences of all operations go to the engine, in memory and on a directory that is \
          reopened in\nbetween, and to a model that is slow and obviously right. The first answer \
          that differs is told with the\nshortest sequence that leads to it. Planted are all the \
          bugs that the test kit knows, one after the other.",
    flags: Flags::augment_args,
    planted: &[Bug::WrongAnswer],
    prepare,
};

#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    seeds: u64,
    operations: usize,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// How many runs, every second on a directory [default: 1000; quick: 40]
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,

    /// Operations of each run [default: 1000; planted: 4000]
    #[arg(long, value_name = "N")]
    operations: Option<usize>,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<Work, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let is_planted = common.planted.is_some();
    let plan = Plan {
        seed: common.seed,
        seeds: flags.seeds.unwrap_or(common.pick(40, 1000)),
        operations: flags
            .operations
            .unwrap_or(if is_planted { 4000 } else { 1000 }),
    };
    Ok(Box::new(move || {
        if is_planted {
            run_planted(plan)
        } else {
            run(plan)
        }
    }))
}

fn run(plan: Plan) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let progress = Mutex::new(Progress::new(CHECK.name));
    let total = Mutex::new(Total::default());
    let next = AtomicU64::new(0);
    on_all_cores(|| {
        let runtime = runtime()?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= plan.seeds {
                return Ok(());
            }
            let make = |seed| Any::new(Local::make(seed, number % 2 == 1));
            let result = property(&runtime, plan, number, &make);
            let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
            total.runs += 1;
            match result {
                Ok(report) => total.add(&report),
                Err(mismatch) => {
                    total.mismatches += 1;
                    out::note(&mismatch.to_string());
                }
            }
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            progress.tick(|| format!("runs={} of={}", total.runs, plan.seeds));
        }
    })?;
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    let report = total.report;
    let figures = Figures::new(CHECK.name)
        .put("seed", plan.seed)
        .put("runs", total.runs)
        .put("operations", report.operations)
        .put("errors", report.errors)
        .put("sequences", report.sequences)
        .put("tables", report.tables)
        .put("pages", report.pages)
        .put("reopens", report.reopens)
        .put("mismatches", total.mismatches)
        .put("seconds", started.elapsed().as_secs());
    let is_clean = total.mismatches == 0 && report.operations > 0;
    Ok(Verdict::new(figures, is_clean, None))
}

/// Plants one bug after the other; each must be found.
fn run_planted(plan: Plan) -> Result<Verdict, Failure> {
    let next = AtomicU64::new(0);
    let missed = Mutex::new(Vec::new());
    on_all_cores(|| {
        let runtime = runtime()?;
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let bug = usize::try_from(number)
                .ok()
                .and_then(|n| model::Bug::ALL.get(n));
            let Some(bug) = bug else { return Ok(()) };
            let make = |seed| Any::new(MutantHarness::new(Local::make(seed, false), *bug));
            if property(&runtime, plan, number, &make).is_ok() {
                missed
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(*bug);
            }
        }
    })?;
    let missed = missed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !missed.is_empty() {
        out::note(&format!("bugs that were not found: {missed:?}"));
    }
    let figures = Figures::new(CHECK.name)
        .put("seed", plan.seed)
        .put("bugs", model::Bug::ALL.len())
        .put("missed", missed.len());
    Ok(Verdict::new(figures, false, Some(missed.is_empty())))
}

#[derive(Debug, Default)]
struct Total {
    runs: u64,
    mismatches: u64,
    report: Report,
}

impl Total {
    const fn add(&mut self, report: &Report) {
        self.report.operations += report.operations;
        self.report.errors += report.errors;
        self.report.sequences += report.sequences;
        self.report.tables += report.tables;
        self.report.pages += report.pages;
        self.report.reopens += report.reopens;
    }
}

/// One run of so many, on engines that `make` makes.
fn property(
    runtime: &Runtime,
    plan: Plan,
    number: u64,
    make: &dyn Fn(u64) -> Any,
) -> Result<Report, Box<Mismatch>> {
    let seed = mixed(plan.seed ^ number) % 1_000_000;
    let make = async |seed| make(seed);
    runtime.block_on(run_property(make, seed, plan.operations))
}

/// The steps of a run come one after the other.
fn runtime() -> Result<Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_current_thread().build()?)
}
