//! `verify bit-rot`: damaged files are detected: no read returns data that was never written, and no loss goes
//! unreported.
//!
//! | file | contents |
//! |---|---|
//! | `content` | the content of the stores, computed without reading them |
//! | `base` | the stores to damage, and the process that creates one |
//! | `damage` | the kinds of damage, and applying them |
//! | `examine` | the process that opens a damaged store, reads everything and compares it |
//! | `salvage` | the process that salvages a damaged store into a new one |

mod base;
mod content;
mod damage;
mod examine;
mod salvage;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, FromArgMatches};
use floe_store::env::SeededRandom;

use super::cores::run_jobs;
use super::figures::{Figures, ParsedFigures, Verdict};
use super::planted::Bug;
use super::program::Process;
use super::test_table::splitmix64;
use super::{Check, CheckRun, Common, tree};
use crate::{Failure, out};
pub(super) use base::MakeRole;
use base::{Base, Kind};
use damage::Damage;
pub(super) use examine::ExamineRole;
pub(super) use salvage::SalvageRole;

pub(super) const CHECK: Check = Check {
    name: "bit-rot",
    proves: "damaged files are rejected or reported: no wrong value, no silent loss, no panic, no hang",
    how: "Creates stores with known items in several tables with indexes and a stream: one that fits in its journal, one\n\
          with sorted files, one whose process was killed. Each trial copies one and damages one file: a flipped bit (also\n\
          in the number of a batch, which no checksum covers), a zeroed sector, a truncation, a removal. A process opens\n\
          the copy, reads everything and runs the doctor. Acceptable: rejected, reported, or intact if the damage hit\n\
          unused bytes. Failures: a value that was never written, or missing or old items without a report. Some of the\n\
          rejected and reported stores are salvaged into a new store, which must be clean.",
    flags: Flags::augment_args,
    planted: &[Bug::WrongAnswer, Bug::HiddenDamage],
    prepare,
};

/// A process that runs longer counts as hanging.
const DEADLINE: Duration = Duration::from_secs(30);
/// One in this many rejected or reported stores is salvaged.
const SALVAGE_EVERY: u64 = 10;
/// Maximum number of notes printed.
const NOTES_MAX: usize = 60;

#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    planted: Option<Bug>,
    trials: u64,
    trial: Option<u64>,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Number of damaged copies [default: 2000; quick: 60]
    #[arg(long, value_name = "N")]
    trials: Option<u64>,

    /// Run only this trial of the seed
    #[arg(long, value_name = "N")]
    trial: Option<u64>,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        seed: common.seed,
        planted: common.planted,
        trials: flags.trials.unwrap_or(common.pick(60, 2000)),
        trial: flags.trial,
    };
    Ok(Box::new(move || run(plan)))
}

fn run(plan: Plan) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let folder = tempfile::tempdir()?;
    let mut bases = Vec::new();
    for kind in Kind::ALL {
        bases.push(Base::make(kind, folder.path(), plan.planted)?);
    }
    let runner = Runner {
        plan,
        bases: &bases,
        scratch: folder.path(),
    };
    let trials: Vec<u64> = match plan.trial {
        Some(trial) => vec![trial],
        None => (0..plan.trials).collect(),
    };
    let total = run_jobs(
        CHECK.name,
        &trials,
        |trial| runner.run(*trial),
        |total: &mut Total, trial, outcome| total.record(*trial, outcome),
        |total| format!("trials={} of={}", total.trials, plan.trials),
    )?;
    Ok(total.verdict(plan, started))
}

/// The outcome of opening a damaged store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Intact,
    Refused,
    Reported,
    Wrong,
    Silent,
    Panics,
    Hangs,
}

impl Class {
    const ALL: [Self; 7] = [
        Self::Intact,
        Self::Refused,
        Self::Reported,
        Self::Wrong,
        Self::Silent,
        Self::Panics,
        Self::Hangs,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Intact => "intact",
            Self::Refused => "refused",
            Self::Reported => "reported",
            Self::Wrong => "wrong",
            Self::Silent => "silent",
            Self::Panics => "panics",
            Self::Hangs => "hangs",
        }
    }

    const fn is_acceptable(self) -> bool {
        matches!(self, Self::Intact | Self::Refused | Self::Reported)
    }

    /// Classifies the figures of the examining process.
    fn of(facts: &ParsedFigures) -> Self {
        let get = |key| facts.get(key);
        if get("wrong") > 0 {
            Self::Wrong
        } else if get("opened") == 0 {
            Self::Refused
        } else if get("errors") + get("doctor") + get("log_gaps") + get("dropped") > 0 {
            Self::Reported
        } else if get("different") > 0 {
            Self::Silent
        } else {
            Self::Intact
        }
    }
}

/// The result of one trial.
#[derive(Debug)]
struct Outcome {
    class: Class,
    /// The base, the file and the damage.
    what: String,
    /// The kind of file.
    file_kind: &'static str,
    /// Output of the examining process.
    printed: String,
    salvaged: Option<Salvaged>,
}

#[derive(Debug)]
struct Salvaged {
    items: u64,
    fault: Option<String>,
}

/// Runs trials.
struct Runner<'a> {
    plan: Plan,
    bases: &'a [Base],
    scratch: &'a Path,
}

impl Runner<'_> {
    fn run(&self, trial: u64) -> Result<Outcome, Failure> {
        let random = SeededRandom::new(splitmix64(self.plan.seed ^ splitmix64(trial)));
        let at = usize::try_from(trial).unwrap_or(0) % self.bases.len().max(1);
        let base = self.bases.get(at);
        let base = base.ok_or_else(|| Failure::broken("no store to damage"))?;
        let work_dir = tempfile::tempdir_in(self.scratch)?;
        let copy = work_dir.path().join("copy");
        tree::copy(base.folder(), &copy)?;
        let damage = Damage::choose(base, &random)?;
        damage.apply(&copy)?;

        let command = examine::command(&copy, base.kind(), self.plan.planted)?;
        let output = Process::start(command)?.end_by(Instant::now() + DEADLINE, |_| false)?;
        let (class, printed) = if output.status.is_none() {
            (Class::Hangs, String::new())
        } else if output.panicked() {
            (Class::Panics, output.panic_message())
        } else if output.is_success() {
            let line = output.stdout.lines().last().unwrap_or_default();
            (
                Class::of(&ParsedFigures::parse(line)),
                output.stdout.trim().replace('\n', "; "),
            )
        } else {
            return Err(Failure::broken(format!(
                "the examining process failed: {}",
                output.stderr
            )));
        };
        let is_salvaged = matches!(class, Class::Refused | Class::Reported)
            && trial.is_multiple_of(SALVAGE_EVERY);
        let salvaged = if is_salvaged {
            Some(self.salvage(base, &damage, work_dir.path())?)
        } else {
            None
        };
        Ok(Outcome {
            class,
            what: format!("base={} {damage}", base.kind().name()),
            file_kind: damage.file_kind(),
            printed,
            salvaged,
        })
    }

    /// Salvages another copy with the same damage.
    fn salvage(&self, base: &Base, damage: &Damage, work_dir: &Path) -> Result<Salvaged, Failure> {
        let (copy, target) = (work_dir.join("again"), work_dir.join("salvaged"));
        tree::copy(base.folder(), &copy)?;
        damage.apply(&copy)?;
        let command = salvage::command(&copy, &target, base.kind())?;
        let output = Process::start(command)?.end_by(Instant::now() + DEADLINE, |_| false)?;
        let facts = ParsedFigures::parse(output.stdout.lines().last().unwrap_or_default());
        let is_acceptable = output.is_success()
            && !output.panicked()
            && facts.get("opened") == 1
            && facts.get("wrong") + facts.get("errors") + facts.get("doctor") == 0
            // All missing items must be listed in the report.
            && (facts.get("different") == 0 || facts.get("reported") > 0);
        let printed = || format!("{} {}", output.stdout.trim(), output.stderr.trim());
        Ok(Salvaged {
            items: facts.get("items"),
            fault: (!is_acceptable).then(printed),
        })
    }
}

/// The results of all trials.
#[derive(Debug, Default)]
struct Total {
    trials: u64,
    classes: BTreeMap<Class, u64>,
    /// Number of trials that damaged a file of each kind.
    files: BTreeMap<&'static str, u64>,
    salvages: u64,
    salvaged_items: u64,
    salvages_failed: u64,
    notes: Vec<String>,
}

impl Total {
    fn record(&mut self, trial: u64, outcome: Outcome) {
        self.trials += 1;
        *self.classes.entry(outcome.class).or_default() += 1;
        *self.files.entry(outcome.file_kind).or_default() += 1;
        let (name, what) = (outcome.class.name(), &outcome.what);
        if !outcome.class.is_acceptable() {
            let printed = &outcome.printed;
            self.notes
                .push(format!("{name}: trial={trial} {what} {printed}"));
        }
        if let Some(salvaged) = outcome.salvaged {
            self.salvages += 1;
            self.salvaged_items += salvaged.items;
            if let Some(fault) = salvaged.fault {
                self.salvages_failed += 1;
                self.notes
                    .push(format!("salvage failed: trial={trial} {what} {fault}"));
            }
        }
    }

    fn count(&self, class: Class) -> u64 {
        self.classes.get(&class).copied().unwrap_or_default()
    }

    fn verdict(mut self, plan: Plan, started: Instant) -> Verdict {
        if plan.planted.is_none() {
            self.notes.sort();
            let notes = self.notes.iter().take(NOTES_MAX);
            notes.for_each(|note| out::note(note));
        }
        let mut figures = Figures::new(CHECK.name)
            .put("seed", plan.seed)
            .put("trials", self.trials);
        for (kind, trials) in &self.files {
            figures = figures.put(&format!("{kind}_files"), trials);
        }
        for class in Class::ALL {
            figures = figures.put(class.name(), self.count(class));
        }
        let figures = figures
            .put("salvages", self.salvages)
            .put("salvaged_items", self.salvaged_items)
            .put("salvages_failed", self.salvages_failed)
            .put("seconds", started.elapsed().as_secs());
        let is_clean = self.trials > 0
            && self.salvages_failed == 0
            && self.classes.keys().all(|class| class.is_acceptable());
        let found = plan.planted.map(|bug| match bug {
            Bug::WrongAnswer => self.count(Class::Wrong) > 0,
            _ => self.count(Class::Silent) > 0,
        });
        Verdict::new(figures, is_clean, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreported_loss_is_silent() {
        let cases = [
            ("opened=0", Class::Refused),
            ("opened=1", Class::Intact),
            ("opened=1 different=3", Class::Silent),
            ("opened=1 different=3 errors=1", Class::Reported),
            ("opened=1 different=3 doctor=1", Class::Reported),
            ("opened=1 dropped=40 different=1", Class::Reported),
            ("opened=1 wrong=1 doctor=1", Class::Wrong),
        ];
        for (line, class) in cases {
            assert_eq!(Class::of(&ParsedFigures::parse(line)), class, "{line}");
        }
    }
}
