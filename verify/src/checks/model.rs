//! `verify model`: the engine returns the same results as the reference model.

mod local;

use std::time::Instant;

use clap::{ArgMatches, Args, FromArgMatches};
use floe_testkit::model::{self, Mismatch, MutantHarness, Report, run_property};

use super::cores::run_jobs;
use super::figures::{Figures, Verdict};
use super::planted::Bug;
use super::test_table::splitmix64;
use super::{Check, CheckRun, Common};
use crate::{Failure, out};
use local::{BoxedHarness, Local};

pub(super) const CHECK: Check = Check {
    name: "model",
    proves: "every result equals that of the reference model, items and errors",
    how: "Random sequences of all operations run on the engine, in memory and on a directory that is reopened \
          in\nbetween, and on a slow, simple reference model. The first difference is printed with the shortest \
          sequence that\nreproduces it. With --planted, all bugs of the test kit are planted one by one.",
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
    /// Number of runs; every second run uses a directory [default: 1000; quick: 40]
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,

    /// Number of operations of each run [default: 1000; planted: 4000]
    #[arg(long, value_name = "N")]
    operations: Option<usize>,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
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
    let numbers: Vec<u64> = (0..plan.seeds).collect();
    let total = run_jobs(
        CHECK.name,
        &numbers,
        |&number| {
            property(plan, number, &|seed| {
                BoxedHarness::new(Local::make(seed, number % 2 == 1))
            })
        },
        |total: &mut Total, _, result| total.record(result),
        |total| format!("runs={} of={}", total.runs, plan.seeds),
    )?;
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

/// Plants the bugs one by one; each must be found.
fn run_planted(plan: Plan) -> Result<Verdict, Failure> {
    let bugs: Vec<_> = (0..).zip(model::Bug::ALL).collect();
    let missed = run_jobs(
        CHECK.name,
        &bugs,
        |&(number, bug)| {
            let make = |seed| BoxedHarness::new(MutantHarness::new(Local::make(seed, false), bug));
            property(plan, number, &make)
        },
        |missed: &mut Vec<_>, (_, bug), result| missed.extend(result.is_ok().then_some(*bug)),
        |missed| format!("missed={}", missed.len()),
    )?;
    if !missed.is_empty() {
        out::note(&format!("bugs not found: {missed:?}"));
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
    fn record(&mut self, result: Result<Report, Box<Mismatch>>) {
        self.runs += 1;
        let report = match result {
            Ok(report) => report,
            Err(mismatch) => {
                self.mismatches += 1;
                out::note(&mismatch.to_string());
                return;
            }
        };
        self.report.operations += report.operations;
        self.report.errors += report.errors;
        self.report.sequences += report.sequences;
        self.report.tables += report.tables;
        self.report.pages += report.pages;
        self.report.reopens += report.reopens;
    }
}

/// Runs one sequence of operations on an engine from `make`.
fn property(
    plan: Plan,
    number: u64,
    make: &dyn Fn(u64) -> BoxedHarness,
) -> Result<Result<Report, Box<Mismatch>>, Failure> {
    // The steps of a run are sequential.
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let seed = splitmix64(plan.seed ^ number) % 1_000_000;
    let make = async |seed| make(seed);
    Ok(runtime.block_on(run_property(make, seed, plan.operations)))
}
