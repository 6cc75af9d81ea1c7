//! `verify expiry`: every expired version is handled and gets exactly one tombstone, however often the router is
//! killed.
//!
//! | file | contents |
//! |---|---|
//! | `version_set` | the registry, and the versions that are published in it |
//! | `router` | the process that handles expired versions, on an engine that loses responses |
//! | `audit` | audits everything at the end |

mod audit;
mod router;
mod version_set;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, FromArgMatches};
use floe::Db;
use floe_store::env::SeededRandom;

use super::child::{Child, ChildEvent};
use super::directory::{self, Settings};
use super::figures::{Figures, ProgressPrinter, Verdict};
use super::planted::{Bug, until_found};
use super::record::Record;
use super::{Check, CheckRun, Common, runtime};
use crate::{Failure, out};
use audit::AuditReport;
pub(super) use router::RouterRole;
use version_set::VersionSet;

pub(super) const CHECK: Check = Check {
    name: "expiry",
    proves: "every expired version is handled and gets exactly one tombstone, however often the router dies",
    how: "Publishes versions that expire soon. A process sweeps them and routes the changes to a handler, on an engine\n\
          that throttles, loses responses, and delivers changes twice and late. It is killed at random moments, between\n\
          the removal, the handler, the tombstone and the checkpoint. At the end the remaining work is done without\n\
          kills, and everything is audited: each version was handled, each has one tombstone, written once and with the\n\
          right date, and the sparse indexes hold exactly the latest versions.",
    flags: Flags::augment_args,
    planted: &[Bug::EarlyTombstone, Bug::EarlyCheckpoint],
    prepare,
};

/// A process that prints nothing for this long, with work left, is killed early.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The same with a planted bug, whose losses are never reported.
const SILENCE_MAX_PLANTED: Duration = Duration::from_secs(5);
/// After everything was handled, a process is killed within this many milliseconds.
const QUIET_MS_MAX: u64 = 400;
/// Maximum number of runs of the check until a planted bug shows.
const PLANTED_RUNS_MAX: u64 = 10;

#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    planted: Option<Bug>,
    versions: u64,
    kills: u64,
    groups: u64,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Number of versions that expire [default: 10000; quick: 1200]
    #[arg(long, value_name = "N")]
    versions: Option<u64>,

    /// Number of kills [default: 50; quick: 8]
    #[arg(long, value_name = "N")]
    kills: Option<u64>,

    /// Number of groups that the versions are in [default: 100; quick: 40]
    #[arg(long, value_name = "N")]
    groups: Option<u64>,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        seed: common.seed,
        planted: common.planted,
        versions: flags.versions.unwrap_or(common.pick(1_200, 10_000)),
        kills: flags.kills.unwrap_or(common.pick(8, 50)),
        groups: flags.groups.unwrap_or(common.pick(40, 100)).max(1),
    };
    Ok(Box::new(move || run(plan)))
}

fn run(plan: Plan) -> Result<Verdict, Failure> {
    until_found(plan.planted, plan.seed, PLANTED_RUNS_MAX, |seed| {
        run_once(Plan { seed, ..plan })
    })
}

/// The records of the processes.
#[derive(Default)]
struct Run {
    /// How often each version was handled, by its id.
    handled: BTreeMap<u64, u64>,
    kills: u64,
    notes: Vec<String>,
}

fn run_once(plan: Plan) -> Result<Verdict, Failure> {
    let (folder, started) = (tempfile::tempdir()?, Instant::now());
    let version_set = VersionSet::new(plan.versions, plan.groups);
    let mut progress = ProgressPrinter::new(CHECK.name);
    with_db(folder.path(), Settings::IDLE, async |db| {
        version_set.fill(db).await
    })?;
    let (mut run, random) = (Run::default(), SeededRandom::new(plan.seed));
    let each = (version_set.expiring() / plan.kills.max(1)).max(1);
    for cycle in 0..plan.kills {
        let is_silent = run.run_router(folder.path(), plan, &version_set, each, &random)?;
        progress.tick(|| {
            let handled = run.handled.len();
            format!("cycle={cycle} of={} handled={handled}", plan.kills)
        });
        if is_silent && plan.planted.is_some() {
            break;
        }
    }
    let mut findings = AuditReport::default();
    with_db(folder.path(), Settings::default(), async |db| {
        let handled = router::handle_remaining(db, &version_set, plan.planted).await?;
        handled.into_iter().for_each(|id| run.count(id));
        audit::audit(db, &version_set, &run.handled, &mut findings).await
    })?;
    Ok(run.verdict(plan, &version_set, &findings, started.elapsed()))
}

/// Runs an operation on the opened directory, and closes it again.
fn with_db(
    folder: &Path,
    settings: Settings,
    work: impl AsyncFnOnce(&Db) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let opened = directory::open(folder, settings)?;
    let db = Db::with_engine(opened.engine());
    runtime()?.block_on(work(&db))?;
    drop(db);
    Ok(opened.close()?)
}

impl Run {
    fn count(&mut self, id: u64) {
        *self.handled.entry(id).or_default() += 1;
    }

    /// Lets a process handle about `each` versions and kills it. Returns whether it stopped before all were handled.
    fn run_router(
        &mut self,
        folder: &Path,
        plan: Plan,
        version_set: &VersionSet,
        each: u64,
        random: &SeededRandom,
    ) -> Result<bool, Failure> {
        let child = Child::start(router::command(
            folder,
            random.below(u64::MAX),
            plan.planted,
        )?)?;
        let mut left = each / 2 + random.below(each + 1);
        let is_all = |run: &Self| run.handled.len() as u64 >= version_set.expiring();
        let mut is_silent = false;
        while left > 0 {
            let patience = if is_all(self) {
                Duration::from_millis(random.below(QUIET_MS_MAX))
            } else if plan.planted.is_some() {
                SILENCE_MAX_PLANTED
            } else {
                SILENCE_MAX
            };
            match child.receive(Instant::now() + patience) {
                ChildEvent::Record(record) => {
                    left -= u64::from(matches!(record, Record::Acked(_)));
                    self.record(record);
                }
                ChildEvent::Timeout | ChildEvent::Closed => {
                    is_silent = !is_all(self);
                    left = 0;
                }
            }
        }
        let (remaining, exit) = child.kill()?;
        self.kills += 1;
        remaining.into_iter().for_each(|record| self.record(record));
        if exit.panicked() || !exit.stderr.is_empty() {
            self.notes
                .push(format!("the process failed: {}", exit.stderr));
        }
        Ok(is_silent)
    }

    fn record(&mut self, record: Record) {
        match record {
            Record::Acked(id) => self.count(id),
            Record::Broken(what) => self.notes.push(what),
            _ => {}
        }
    }

    fn verdict(
        self,
        plan: Plan,
        version_set: &VersionSet,
        found: &AuditReport,
        elapsed: Duration,
    ) -> Verdict {
        if plan.planted.is_none() {
            let notes = self.notes.iter().chain(&found.notes);
            notes.for_each(|note| out::note(note));
        }
        let handled: u64 = self.handled.values().sum();
        let broken = self.notes.len() as u64;
        let figures = Figures::new(CHECK.name)
            .put("seed", plan.seed)
            .put("versions", version_set.expiring())
            .put("groups", plan.groups)
            .put("kills", self.kills)
            .put("handled", handled)
            .put("again", handled - self.handled.len() as u64)
            .put("tombstones", found.tombstones)
            .put("lost", found.lost)
            .put("unburied", found.without_tombstone)
            .put("doubled", found.doubled)
            .put("wrong", found.wrong)
            .put("index_mismatches", found.index_mismatches)
            .put("broken", broken)
            .put("seconds", elapsed.as_secs());
        let is_clean = found.is_clean() && broken == 0 && self.kills == plan.kills;
        let shown = plan
            .planted
            .map(|_| found.lost + found.without_tombstone > 0);
        Verdict::new(figures, is_clean, shown)
    }
}
