//! `verify contention`: transactions of models that fight over the same items lose nothing.
//!
//! | file | what it holds |
//! |---|---|
//! | `counters`, `transfers`, `guestbook`, `fields` | what the tasks fight over, and how it is looked over |
//! | `client` | a task, and what all tasks of a workload have come to |
//! | `watch` | notices that nothing happens any more |

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
use super::planted::{Bug, Flawed};
use super::stage::mixed;
use super::{Check, Common, Work, runtime};
use crate::{Failure, out};
use client::{Client, Fault, Tally};
use counters::Counters;
use fields::Fields;
use guestbook::Guestbook;
use transfers::Transfers;
use watch::{Ending, Pulse};

pub(super) const CHECK: Check = Check {
    name: "contention",
    proves: "transactions that fight over the same items lose no update and never stand still",
    how: "Tasks run transactions of models on a few items, in memory and on a directory in turn: \
          counters that\nall raise, accounts between which they move money, a guestbook that all \
          sign, and items of which each\ntask owns one field. What is stored in the end must be \
          exactly what was acknowledged, money must stay\nthe same at every moment, and whoever \
          writes other fields, or only adds, must never be in the way.",
    flags: Flags::augment_args,
    planted: &[Bug::DroppedCondition, Bug::FalseConflict, Bug::NoAnswer],
    prepare,
};

/// How the run is sized.
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
    /// How long it plays [default: 60; quick: 5]
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,

    /// Tasks at once
    #[arg(long, value_name = "N", default_value_t = 64)]
    tasks: u64,

    /// Seconds without a commit that count as a deadlock
    #[arg(long, value_name = "N", default_value_t = 10)]
    stall: u64,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<Work, Failure> {
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

/// How many times a workload is played: four of them, on two engines.
const LEGS: u32 = 8;

impl Plan {
    /// How long one workload is played on one engine.
    fn leg(&self) -> Duration {
        Duration::from_secs(self.seconds) / LEGS
    }
}

/// Something that tasks fight over.
trait Workload: Send + Sync + 'static {
    const NAME: &'static str;
    const SCHEMA: &'static Schema;

    /// Makes the items, before the tasks begin.
    async fn create(&self, db: &Db) -> Result<(), Fault>;

    /// Does one thing, however many transactions that takes.
    fn step(&self, client: &Client) -> impl Future<Output = ()> + Send;

    /// Compares what is stored with what was acknowledged.
    async fn audit(&self, db: &Db) -> Result<Findings, Fault>;
}

/// What must not be.
#[derive(Clone, Debug, Default)]
struct Findings {
    /// Acknowledged, and not there.
    lost: u64,
    /// There, and never acknowledged.
    extra: u64,
    /// Accounts below zero.
    overdrawn: u64,
    /// One line about each kind.
    notes: Vec<String>,
}

impl Findings {
    /// Compares a number that is stored with the one that was acknowledged.
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
    // Made here, so that it is removed even if the tasks never come to an end.
    let folder = tempfile::tempdir()?;
    let path = folder.path().to_owned();
    let ending = watch::watched(plan.stall, move |pulse| play(plan, &path, pulse))?;
    let report = match ending {
        Ending::Done(report) => report?,
        Ending::Stalled { place } => {
            let seconds = plan.stall.as_secs();
            out::note(&format!(
                "{}: no commit for {seconds} s: {place}",
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

/// What a run came to.
#[derive(Debug, Default)]
struct Report {
    legs: Vec<Leg>,
    findings: Findings,
    is_stalled: bool,
}

/// What a workload came to on one engine.
#[derive(Debug)]
struct Leg {
    engine: &'static str,
    workload: &'static str,
    tally: Tally,
    elapsed: Duration,
}

impl Leg {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    fn per_second(&self) -> f64 {
        self.tally.commits.get() as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

impl Report {
    fn sum(&self, figure: impl Fn(&Tally) -> u64) -> u64 {
        self.legs.iter().map(|leg| figure(&leg.tally)).sum()
    }

    fn is_clean(&self) -> bool {
        let Findings {
            lost,
            extra,
            overdrawn,
            ..
        } = self.findings;
        let faults = self.sum(|t| t.errors.get() + t.torn.get() + t.needless_conflicts.get());
        let is_complete =
            self.legs.len() == LEGS as usize && self.legs.iter().all(|l| l.tally.commits.get() > 0);
        is_complete && !self.is_stalled && lost + extra + overdrawn + faults == 0
    }

    /// Whether it shows what the bug must lead to.
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
        for leg in &self.legs {
            let name = format!("{}_{}", leg.engine, leg.workload);
            let per_commit = per_commit(leg.tally.conflicts.get(), leg.tally.commits.get());
            figures = figures
                .put(&format!("{name}_per_s"), format!("{:.0}", leg.per_second()))
                .put(&format!("{name}_conflicts_per_commit"), per_commit);
        }
        let commits = self.sum(|tally| tally.commits.get());
        let elapsed: Duration = self.legs.iter().map(|leg| leg.elapsed).sum();
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

/// Plays all workloads in memory and then on the directory.
fn play(plan: Plan, folder: &Path, pulse: &Arc<Pulse>) -> Result<Report, Failure> {
    let runtime = runtime()?;
    let mut report = Report::default();
    let memory = Arc::new(LocalEngine::memory()?);
    let workloads = Workloads::new(plan);
    let stage = Stage::new("memory", memory, plan, pulse);
    runtime.block_on(workloads.play(&stage, &mut report))?;
    runtime.block_on(workloads.audit(&stage, &mut report))?;
    let workloads = Workloads::new(plan);
    let opened = directory::open(folder, Settings::default())?;
    let stage = Stage::new("directory", opened.engine(), plan, pulse);
    runtime.block_on(workloads.play(&stage, &mut report))?;
    opened.close()?;
    drop(stage);
    // What was acknowledged must also be there when the directory is opened again.
    let opened = directory::open(folder, Settings::default())?;
    let stage = Stage::new("directory", opened.engine(), plan, pulse);
    runtime.block_on(workloads.audit(&stage, &mut report))?;
    opened.close()?;
    Ok(report)
}

/// Where the workloads are played.
struct Stage {
    engine: &'static str,
    /// What the tasks use, with the planted bug.
    db: Db,
    /// The same without it, to begin with and to look at in the end.
    honest: Db,
    plan: Plan,
    pulse: Arc<Pulse>,
}

impl Stage {
    fn new(name: &'static str, engine: Arc<dyn Engine>, plan: Plan, pulse: &Arc<Pulse>) -> Self {
        Self {
            engine: name,
            db: Db::with_engine(Flawed::plant(Arc::clone(&engine), plan.planted)),
            honest: Db::with_engine(engine),
            plan,
            pulse: Arc::clone(pulse),
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

    async fn play(&self, stage: &Stage, report: &mut Report) -> Result<(), Failure> {
        report.legs.extend([
            play_leg(stage, &self.counters).await?,
            play_leg(stage, &self.transfers).await?,
            play_leg(stage, &self.guestbook).await?,
            play_leg(stage, &self.fields).await?,
        ]);
        Ok(())
    }

    async fn audit(&self, stage: &Stage, report: &mut Report) -> Result<(), Failure> {
        audit_leg(stage, &*self.counters, report).await?;
        audit_leg(stage, &*self.transfers, report).await?;
        audit_leg(stage, &*self.guestbook, report).await?;
        audit_leg(stage, &*self.fields, report).await
    }
}

async fn play_leg<W: Workload>(stage: &Stage, workload: &Arc<W>) -> Result<Leg, Failure> {
    let Stage {
        db, honest, plan, ..
    } = stage;
    stage.pulse.enter(stage.engine, W::NAME);
    let made = honest.ensure_tables(&[W::SCHEMA]).await;
    made.map_err(Fault::from)?;
    workload.create(honest).await?;
    let tally = Arc::new(Tally::default());
    let (watch, leg) = (Stopwatch::start(), plan.leg());
    let mut tasks = JoinSet::new();
    for number in 0..plan.tasks {
        let client = Client {
            db: db.clone(),
            number,
            random: SeededRandom::new(mixed(plan.seed ^ number)),
            tally: Arc::clone(&tally),
            pulse: Arc::clone(&stage.pulse),
        };
        let workload = Arc::clone(workload);
        tasks.spawn(async move {
            while watch.elapsed() < leg {
                workload.step(&client).await;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| Failure::broken(error.to_string()))?;
    }
    let elapsed = watch.elapsed();
    let tally = Arc::into_inner(tally);
    Ok(Leg {
        engine: stage.engine,
        workload: W::NAME,
        tally: tally.ok_or_else(|| Failure::broken("a task is still running"))?,
        elapsed,
    })
}

async fn audit_leg<W: Workload>(
    stage: &Stage,
    workload: &W,
    report: &mut Report,
) -> Result<(), Failure> {
    stage.pulse.enter(stage.engine, W::NAME);
    let mut findings = workload.audit(&stage.honest).await?;
    for line in &mut findings.notes {
        *line = format!("{} {}: {line}", stage.engine, W::NAME);
    }
    report.findings.add(findings);
    Ok(())
}
