//! `verify contention`: concurrent model transactions on the same items lose no update.
//!
//! | file | contents |
//! |---|---|
//! | `counters`, `transfers`, `guestbook`, `fields` | the workloads and their audits |
//! | `client` | a task, and the counters of all tasks of a workload |
//! | `watch` | detects stalls |

mod client;
mod counters;
mod fields;
mod guestbook;
mod transfers;
mod watch;

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgMatches, Args, FromArgMatches};
use floe::Db;
use floe::model::Schema;
use floe_local::LocalEngine;
use floe_store::Engine;
use floe_store::env::{SeededRandom, Stopwatch};
use tokio::task::JoinSet;

use super::directory::{self, Settings};
use super::figures::{Figures, Verdict};
use super::planted::{Bug, FlawedEngine};
use super::test_table::splitmix64;
use super::{Check, CheckRun, Common, runtime};
use crate::{Failure, out};
use client::{Client, Fault, Tally};
use counters::Counters;
use fields::Fields;
use guestbook::Guestbook;
use transfers::Transfers;
use watch::{Activity, WatchOutcome};

pub(super) const CHECK: Check = Check {
    name: "contention",
    proves: "contending transactions lose no update and never stall",
    how: "Tasks run transactions of models on a few items, in memory and on a directory in turn: counters \
          that\nall tasks increment, accounts between which they transfer money, a guestbook that all sign, and \
          items of\nwhich each task owns one field. At the end the stored values must equal the acknowledged \
          changes, the sum\nof all accounts must be constant at every moment, and writers of other fields or of \
          increments must never\nconflict.",
    flags: Flags::augment_args,
    planted: &[Bug::DroppedCondition, Bug::FalseConflict, Bug::NoAnswer],
    prepare,
};

/// The size of the run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    planted: Option<Bug>,
    seconds: u64,
    tasks: u64,
    stall: Duration,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Duration of the load in seconds [default: 60; quick: 5]
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,

    /// Concurrent tasks
    #[arg(long, value_name = "N", default_value_t = 64)]
    tasks: u64,

    /// Seconds without a commit that count as a stall
    #[arg(long, value_name = "N", default_value_t = 10)]
    stall: u64,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        seed: common.seed,
        planted: common.planted,
        seconds: flags.seconds.unwrap_or(common.pick(5, 60)),
        tasks: flags.tasks,
        stall: Duration::from_secs(flags.stall),
    };
    Ok(Box::new(move || run(plan)))
}

/// Number of workload runs: four workloads on two engines.
const WORKLOAD_RUNS: u32 = 8;

impl Plan {
    /// The duration of one workload on one engine.
    fn workload_time(&self) -> Duration {
        Duration::from_secs(self.seconds) / WORKLOAD_RUNS
    }
}

/// A workload that tasks contend for.
trait Workload: Send + Sync + 'static {
    const NAME: &'static str;
    const SCHEMA: &'static Schema;

    /// Creates the items before the tasks start.
    async fn create(&self, db: &Db) -> Result<(), Fault>;

    /// Runs one step, of any number of transactions.
    fn step(&self, client: &Client) -> impl Future<Output = ()> + Send;

    /// Compares the stored values with the acknowledged changes.
    async fn audit(&self, db: &Db) -> Result<AuditReport, Fault>;
}

/// What an audit found wrong.
#[derive(Clone, Debug, Default)]
struct AuditReport {
    /// Acknowledged, but not stored.
    lost: u64,
    /// Stored, but never acknowledged.
    extra: u64,
    /// Accounts with a negative balance.
    overdrawn: u64,
    /// One line about each kind.
    notes: Vec<String>,
}

impl AuditReport {
    /// Compares a stored number with the acknowledged one.
    fn compare<N: Into<i128>>(&mut self, what: &str, stored: N, acknowledged: N) {
        let (is, should_be) = (stored.into(), acknowledged.into());
        let difference = u64::try_from(is.abs_diff(should_be)).unwrap_or(u64::MAX);
        match is.cmp(&should_be) {
            Ordering::Equal => return,
            Ordering::Less => self.lost += difference,
            Ordering::Greater => self.extra += difference,
        }
        self.note(format!("{what}: stored={is} acknowledged={should_be}"));
    }

    fn note(&mut self, line: String) {
        const NOTES_MAX: usize = 10;
        if self.notes.len() < NOTES_MAX {
            self.notes.push(line);
        }
    }

    fn add(&mut self, other: Self) {
        self.lost += other.lost;
        self.extra += other.extra;
        self.overdrawn += other.overdrawn;
        other.notes.into_iter().for_each(|line| self.note(line));
    }
}

fn run(plan: Plan) -> Result<Verdict, Failure> {
    // Created here, so that it is removed even if the tasks never end.
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_owned();
    let outcome = watch::run_watched(plan.stall, move |activity| {
        run_workloads(plan, &path, activity)
    })?;
    let report = match outcome {
        WatchOutcome::Done(report) => report?,
        WatchOutcome::Stalled { phase } => {
            let seconds = plan.stall.as_secs();
            out::note(&format!(
                "{}: no commit for {seconds} s: {phase}",
                CHECK.name
            ));
            Report {
                is_stalled: true,
                ..Report::default()
            }
        }
    };
    if plan.planted.is_none() {
        let notes = &report.findings.notes;
        notes.iter().for_each(|line| out::note(line));
    }
    Ok(Verdict::new(
        report.figures(plan),
        report.is_clean(),
        plan.planted.map(|bug| report.shows(bug)),
    ))
}

/// The results of a run.
#[derive(Debug, Default)]
struct Report {
    runs: Vec<WorkloadRun>,
    findings: AuditReport,
    is_stalled: bool,
}

/// The result of one workload on one engine.
#[derive(Debug)]
struct WorkloadRun {
    engine: &'static str,
    workload: &'static str,
    tally: Tally,
    elapsed: Duration,
}

impl WorkloadRun {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn per_second(&self) -> f64 {
        self.tally.commits.get() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

impl Report {
    fn sum(&self, figure: impl Fn(&Tally) -> u64) -> u64 {
        self.runs.iter().map(|run| figure(&run.tally)).sum()
    }

    fn is_clean(&self) -> bool {
        let AuditReport {
            lost,
            extra,
            overdrawn,
            ..
        } = self.findings;
        let faults = self.sum(|t| t.errors.get() + t.torn.get() + t.needless_conflicts.get());
        let is_complete = self.runs.len() == WORKLOAD_RUNS as usize
            && self.runs.iter().all(|l| l.tally.commits.get() > 0);
        is_complete && !self.is_stalled && lost + extra + overdrawn + faults == 0
    }

    /// Whether the results show the effect of the bug.
    fn shows(&self, bug: Bug) -> bool {
        match bug {
            Bug::DroppedCondition => self.findings.lost > 0,
            Bug::FalseConflict => self.sum(|tally| tally.needless_conflicts.get()) > 0,
            Bug::NoAnswer => self.is_stalled,
            _ => false,
        }
    }

    fn figures(&self, plan: Plan) -> Figures {
        let mut figures = Figures::new(CHECK.name)
            .put("seed", plan.seed)
            .put("tasks", plan.tasks)
            .put("seconds", plan.seconds);
        for run in &self.runs {
            let name = format!("{}_{}", run.engine, run.workload);
            let per_commit = per_commit(run.tally.conflicts.get(), run.tally.commits.get());
            figures = figures
                .put(&format!("{name}_per_s"), format!("{:.0}", run.per_second()))
                .put(&format!("{name}_conflicts_per_commit"), per_commit);
        }
        let commits = self.sum(|tally| tally.commits.get());
        let elapsed: Duration = self.runs.iter().map(|run| run.elapsed).sum();
        let per_second = u128::from(commits) * 1000 / elapsed.as_millis().max(1);
        let conflicts = self.sum(|tally| tally.conflicts.get());
        figures
            .put("commits", commits)
            .put("commits_per_s", per_second)
            .put("conflicts_per_commit", per_commit(conflicts, commits))
            .put(
                "needless_conflicts",
                self.sum(|tally| tally.needless_conflicts.get()),
            )
            .put("refused", self.sum(|tally| tally.refused.get()))
            .put("snapshots", self.sum(|tally| tally.snapshots.get()))
            .put("torn", self.sum(|tally| tally.torn.get()))
            .put("lost", self.findings.lost)
            .put("extra", self.findings.extra)
            .put("overdrawn", self.findings.overdrawn)
            .put("errors", self.sum(|tally| tally.errors.get()))
            .put("stalled", self.is_stalled)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn per_commit(conflicts: u64, commits: u64) -> String {
    format!("{:.2}", conflicts as f64 / (commits as f64).max(1.0))
}

/// Runs all workloads in memory and then on the directory.
fn run_workloads(plan: Plan, folder: &Path, activity: &Arc<Activity>) -> Result<Report, Failure> {
    let runtime = runtime()?;
    let mut report = Report::default();
    let memory = Arc::new(LocalEngine::memory()?);
    let workloads = Workloads::new(plan);
    let target = Target::new("memory", memory, plan, activity);
    runtime.block_on(workloads.run(&target, &mut report))?;
    runtime.block_on(workloads.audit(&target, &mut report))?;
    let workloads = Workloads::new(plan);
    let opened = directory::open(folder, Settings::default())?;
    let target = Target::new("directory", opened.engine(), plan, activity);
    runtime.block_on(workloads.run(&target, &mut report))?;
    opened.close()?;
    drop(target);
    // Acknowledged changes must also survive reopening the directory.
    let opened = directory::open(folder, Settings::default())?;
    let target = Target::new("directory", opened.engine(), plan, activity);
    runtime.block_on(workloads.audit(&target, &mut report))?;
    opened.close()?;
    Ok(report)
}

/// The engine on which the workloads run.
struct Target {
    engine: &'static str,
    /// The database of the tasks, with the planted bug.
    db: Db,
    /// The same database without the bug, for setup and audit.
    unmodified: Db,
    plan: Plan,
    activity: Arc<Activity>,
}

impl Target {
    fn new(
        name: &'static str,
        engine: Arc<dyn Engine>,
        plan: Plan,
        activity: &Arc<Activity>,
    ) -> Self {
        Self {
            engine: name,
            db: Db::with_engine(FlawedEngine::plant(Arc::clone(&engine), plan.planted)),
            unmodified: Db::with_engine(engine),
            plan,
            activity: Arc::clone(activity),
        }
    }
}

/// All workloads.
struct Workloads {
    counters: Arc<Counters>,
    transfers: Arc<Transfers>,
    guestbook: Arc<Guestbook>,
    fields: Arc<Fields>,
}

impl Workloads {
    fn new(plan: Plan) -> Self {
        Self {
            counters: Arc::default(),
            transfers: Arc::default(),
            guestbook: Arc::new(Guestbook::new(plan.tasks)),
            fields: Arc::new(Fields::new(plan.tasks)),
        }
    }

    async fn run(&self, target: &Target, report: &mut Report) -> Result<(), Failure> {
        report.runs.extend([
            run_workload(target, &self.counters).await?,
            run_workload(target, &self.transfers).await?,
            run_workload(target, &self.guestbook).await?,
            run_workload(target, &self.fields).await?,
        ]);
        Ok(())
    }

    async fn audit(&self, target: &Target, report: &mut Report) -> Result<(), Failure> {
        audit_workload(target, &*self.counters, report).await?;
        audit_workload(target, &*self.transfers, report).await?;
        audit_workload(target, &*self.guestbook, report).await?;
        audit_workload(target, &*self.fields, report).await
    }
}

async fn run_workload<W: Workload>(
    target: &Target,
    workload: &Arc<W>,
) -> Result<WorkloadRun, Failure> {
    let Target {
        db,
        unmodified,
        plan,
        ..
    } = target;
    target.activity.begin_phase(target.engine, W::NAME);
    let created = unmodified.ensure_tables(&[W::SCHEMA]).await;
    created.map_err(Fault::from)?;
    workload.create(unmodified).await?;
    let tally = Arc::new(Tally::default());
    let (watch, duration) = (Stopwatch::start(), plan.workload_time());
    let mut tasks = JoinSet::new();
    for number in 0..plan.tasks {
        let client = Client {
            db: db.clone(),
            number,
            random: SeededRandom::new(splitmix64(plan.seed ^ number)),
            tally: Arc::clone(&tally),
            activity: Arc::clone(&target.activity),
        };
        let workload = Arc::clone(workload);
        tasks.spawn(async move {
            while watch.elapsed() < duration {
                workload.step(&client).await;
            }
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.map_err(|error| Failure::broken(error.to_string()))?;
    }
    let elapsed = watch.elapsed();
    let tally = Arc::into_inner(tally);
    Ok(WorkloadRun {
        engine: target.engine,
        workload: W::NAME,
        tally: tally.ok_or_else(|| Failure::broken("a task is still running"))?,
        elapsed,
    })
}

async fn audit_workload<W: Workload>(
    target: &Target,
    workload: &W,
    report: &mut Report,
) -> Result<(), Failure> {
    target.activity.begin_phase(target.engine, W::NAME);
    let mut findings = workload.audit(&target.unmodified).await?;
    for line in &mut findings.notes {
        *line = format!("{} {}: {line}", target.engine, W::NAME);
    }
    report.findings.add(findings);
    Ok(())
}
