//! `verify expiry`: every version that expires is handled and buried once, however often the router is killed.
//!
//! | file | what it holds |
//! |---|---|
//! | `shelf` | the registry, and the versions that are published in it |
//! | `router` | the process that is told what has expired, on an engine that loses answers |
//! | `audit` | looks over everything in the end |

mod audit;
mod router;
mod shelf;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, FromArgMatches};
use floe::Db;
use floe_store::env::SeededRandom;

use super::child::{Child, Heard};
use super::directory::{self, Settings};
use super::figures::{Figures, Progress, Verdict};
use super::planted::{Bug, until_found};
use super::record::Record;
use super::{Check, Common, Work, runtime};
use crate::{Failure, out};
use audit::Findings;
pub(super) use router::Routing;
use shelf::Shelf;

pub(super) const CHECK: Check = Check {
    name: "expiry",
    proves: "every version that expires is handled, and its tombstone written once, however often the router dies",
    how: "Versions are published that soon expire. A process sweeps them away and routes the changes to a handler, on\n\
          an engine that refuses, loses answers, and tells changes again and late. It is killed at random moments,\n\
          between the removal, the handler, the tombstone and the checkpoint. In the end the rest is done in quiet,\n\
          and everything is looked over: each was handled, each has one tombstone, written once and of the right date,\n\
          and the sparse indexes hold the latest versions and nothing else.",
    flags: Flags::augment_args,
    planted: &[Bug::EarlyTombstone, Bug::EarlyCheckpoint],
    prepare,
};

/// A process that says nothing for so long while there is something to do is killed as well.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// The same where a bug is planted: what that loses is never told.
const SILENCE_MAX_PLANTED: Duration = Duration::from_secs(5);
/// When everything was handled, a process is killed after so many milliseconds at most.
const QUIET_MS_MAX: u64 = 400;
/// How often the check runs with a planted bug until it shows.
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
    /// Versions that expire [default: 10000; quick: 1200]
    #[arg(long, value_name = "N")]
    versions: Option<u64>,

    /// How often to kill [default: 50; quick: 8]
    #[arg(long, value_name = "N")]
    kills: Option<u64>,

    /// Groups that they are in [default: 100; quick: 40]
    #[arg(long, value_name = "N")]
    groups: Option<u64>,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<Work, Failure> {
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

/// What was told by the processes.
#[derive(Default)]
struct Run {
    /// How often each version was handled.
    handled: BTreeMap<u64, u64>,
    kills: u64,
    notes: Vec<String>,
}

fn run_once(plan: Plan) -> Result<Verdict, Failure> {
    let (folder, started) = (tempfile::tempdir()?, Instant::now());
    let shelf = Shelf::new(plan.versions, plan.groups);
    let mut progress = Progress::new(CHECK.name);
    look(folder.path(), Settings::IDLE, async |db| {
        shelf.fill(db).await
    })?;
    let (mut run, random) = (Run::default(), SeededRandom::new(plan.seed));
    let each = (shelf.expiring() / plan.kills.max(1)).max(1);
    for cycle in 0..plan.kills {
        let is_silent = run.route(folder.path(), plan, &shelf, each, &random)?;
        progress.tick(|| {
            let handled = run.handled.len();
            format!("cycle={cycle} of={} handled={handled}", plan.kills)
        });
        if is_silent && plan.planted.is_some() {
            break;
        }
    }
    let mut findings = Findings::default();
    look(folder.path(), Settings::default(), async |db| {
        let handled = router::settle(db, &shelf, plan.planted).await?;
        handled.into_iter().for_each(|id| run.count(id));
        audit::audit(db, &shelf, &run.handled, &mut findings).await
    })?;
    Ok(run.verdict(plan, &shelf, &findings, started.elapsed()))
}

/// Opens the directory, does something with it, and closes it again.
fn look(
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

    /// Lets a process handle about so many versions, and kills it. Tells whether it fell silent before all were handled.
    fn route(
        &mut self,
        folder: &Path,
        plan: Plan,
        shelf: &Shelf,
        each: u64,
        random: &SeededRandom,
    ) -> Result<bool, Failure> {
        let child = Child::start(router::command(
            folder,
            random.below(u64::MAX),
            plan.planted,
        )?)?;
        let mut left = each / 2 + random.below(each + 1);
        let is_all = |run: &Self| run.handled.len() as u64 >= shelf.expiring();
        let mut is_silent = false;
        while left > 0 {
            let patience = match is_all(self) {
                true => Duration::from_millis(random.below(QUIET_MS_MAX)),
                false if plan.planted.is_some() => SILENCE_MAX_PLANTED,
                false => SILENCE_MAX,
            };
            match child.hear(Instant::now() + patience) {
                Heard::Record(record) => {
                    left -= u64::from(matches!(record, Record::Acked(_)));
                    self.take(record);
                }
                Heard::Nothing | Heard::End => {
                    is_silent = !is_all(self);
                    left = 0;
                }
            }
        }
        let (told, ending) = child.kill()?;
        self.kills += 1;
        told.into_iter().for_each(|record| self.take(record));
        if ending.panicked() || !ending.stderr.is_empty() {
            self.notes
                .push(format!("the process failed: {}", ending.stderr));
        }
        Ok(is_silent)
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Acked(id) => self.count(id),
            Record::Broken(what) => self.notes.push(what),
            _ => {}
        }
    }

    fn verdict(self, plan: Plan, shelf: &Shelf, found: &Findings, elapsed: Duration) -> Verdict {
        if plan.planted.is_none() {
            let notes = self.notes.iter().chain(&found.notes);
            notes.for_each(|note| out::note(note));
        }
        let handled: u64 = self.handled.values().sum();
        let broken = self.notes.len() as u64;
        let figures = Figures::new(CHECK.name)
            .put("seed", plan.seed)
            .put("versions", shelf.expiring())
            .put("groups", plan.groups)
            .put("kills", self.kills)
            .put("handled", handled)
            .put("again", handled - self.handled.len() as u64)
            .put("tombstones", found.tombstones)
            .put("lost", found.lost)
            .put("unburied", found.unburied)
            .put("doubled", found.doubled)
            .put("wrong", found.wrong)
            .put("index_mismatches", found.index_mismatches)
            .put("broken", broken)
            .put("seconds", elapsed.as_secs());
        let is_clean = found.is_clean() && broken == 0 && self.kills == plan.kills;
        let shown = plan.planted.map(|_| found.lost + found.unburied > 0);
        Verdict::new(figures, is_clean, shown)
    }
}
