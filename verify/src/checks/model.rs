//! `verify model`: the engine answers as the reference model does.

mod local;

use std::time::Instant;

use clap::{ArgMatches, Args, FromArgMatches};
use floe_testkit::model::{self, Mismatch, MutantHarness, Report, run_property};

use super::cores::sum_up;
use super::figures::{Figures, Verdict};
use super::planted::Bug;
use super::stage::mixed;
use super::{Check, Common, Work};
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
    let numbers: Vec<u64> = (0..plan.seeds).collect();
    let total = sum_up(
        CHECK.name,
        &numbers,
        |&number| {
            property(plan, number, &|seed| {
                Any::new(Local::make(seed, number % 2 == 1))
            })
        },
        |total: &mut Total, _, result| total.take(result),
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

/// Plants one bug after the other; each must be found.
fn run_planted(plan: Plan) -> Result<Verdict, Failure> {
    let bugs: Vec<_> = (0..).zip(model::Bug::ALL).collect();
    let missed = sum_up(
        CHECK.name,
        &bugs,
        |&(number, bug)| {
            let make = |seed| Any::new(MutantHarness::new(Local::make(seed, false), bug));
            property(plan, number, &make)
        },
        |missed: &mut Vec<_>, (_, bug), result| missed.extend(result.is_ok().then_some(*bug)),
        |missed| format!("missed={}", missed.len()),
    )?;
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
    fn take(&mut self, result: Result<Report, Box<Mismatch>>) {
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

/// One run of so many, on engines that `make` makes.
fn property(
    plan: Plan,
    number: u64,
    make: &dyn Fn(u64) -> Any,
) -> Result<Result<Report, Box<Mismatch>>, Failure> {
    // The steps of a run come one after the other.
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let seed = mixed(plan.seed ^ number) % 1_000_000;
    let make = async |seed| make(seed);
    Ok(runtime.block_on(run_property(make, seed, plan.operations)))
}
