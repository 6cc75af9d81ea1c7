//! `verify bit-rot`: damaged files are found, whatever is damaged: no read returns what was never written, and nothing
//! is missing without a report.
//!
//! | file | what it holds |
//! |---|---|
//! | `content` | what the stores hold, known without looking |
//! | `base` | the stores that are damaged, and the process that makes one |
//! | `damage` | what is done to a file |
//! | `examine` | the process that opens a damaged store, reads everything and compares |
//! | `salvage` | the process that saves what is readable into another store |

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

use super::cores::sum_up;
use super::figures::{Facts, Figures, Verdict};
use super::planted::Bug;
use super::program::Process;
use super::stage::mixed;
use super::{Check, Common, Work, tree};
use crate::{Failure, out};
pub(super) use base::Making;
use base::{Base, Kind};
use damage::Damage;
pub(super) use examine::Examining;
pub(super) use salvage::Salvaging;

pub(super) const CHECK: Check = Check {
    name: "bit-rot",
    proves: "damaged files are refused or reported: no wrong value, no silent loss, no panic, no hang",
    how: "Makes stores with known items in several tables with indexes and a stream: one with everything in its journal,\n\
          one with sorted files, one whose process was killed. Each trial copies one and damages one file: a flipped bit\n\
          (also in the number of a batch, which no checksum covers), a zeroed sector, a truncation, a removal. A process\n\
          opens the copy, reads everything and lets the doctor look at it. Fine are: refused, reported, or intact, where\n\
          the damage hit bytes that nothing needs. Wrong are: a value that was never written, and items that are missing or old while nothing reports it. Some that are refused or\n\
          reported are salvaged into another store, which must be clean.",
    flags: Flags::augment_args,
    planted: &[Bug::WrongAnswer, Bug::HiddenDamage],
    prepare,
};

/// A process that has not ended by then hangs.
const DEADLINE: Duration = Duration::from_secs(30);
/// One in this many damaged stores is salvaged.
const SALVAGE_EVERY: u64 = 10;
/// The most notes that are printed.
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
    /// Copies to damage [default: 2000; quick: 60]
    #[arg(long, value_name = "N")]
    trials: Option<u64>,

    /// Only this trial of the seed
    #[arg(long, value_name = "N")]
    trial: Option<u64>,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<Work, Failure> {
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
    let bench = Bench {
        plan,
        bases: &bases,
        scratch: folder.path(),
    };
    let trials: Vec<u64> = match plan.trial {
        Some(trial) => vec![trial],
        None => (0..plan.trials).collect(),
    };
    let total = sum_up(
        CHECK.name,
        &trials,
        |trial| bench.run(*trial),
        |total: &mut Total, trial, outcome| total.take(*trial, outcome),
        |total| format!("trials={} of={}", total.trials, plan.trials),
    )?;
    Ok(total.verdict(plan, started))
}

/// What became of a damaged store.
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

    const fn is_fine(self) -> bool {
        matches!(self, Self::Intact | Self::Refused | Self::Reported)
    }

    /// The class that follows from what the examining process found.
    fn of(facts: &Facts) -> Self {
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

/// What one trial has come to.
#[derive(Debug)]
struct Outcome {
    class: Class,
    /// The base, the file and the damage.
    what: String,
    /// The kind of file.
    file_kind: &'static str,
    /// What the process printed.
    printed: String,
    salvaged: Option<Salvaged>,
}

#[derive(Debug)]
struct Salvaged {
    items: u64,
    fault: Option<String>,
}

/// Where trials are run.
struct Bench<'a> {
    plan: Plan,
    bases: &'a [Base],
    scratch: &'a Path,
}

impl Bench<'_> {
    fn run(&self, trial: u64) -> Result<Outcome, Failure> {
        let random = SeededRandom::new(mixed(self.plan.seed ^ mixed(trial)));
        let at = usize::try_from(trial).unwrap_or(0) % self.bases.len().max(1);
        let base = self.bases.get(at);
        let base = base.ok_or_else(|| Failure::broken("there is no store to damage"))?;
        let place = tempfile::tempdir_in(self.scratch)?;
        let copy = place.path().join("copy");
        tree::copy(base.folder(), &copy)?;
        let damage = Damage::choose(base, &random)?;
        damage.apply(&copy)?;

        let command = examine::command(&copy, base.kind(), self.plan.planted)?;
        let ended = Process::start(command)?.end_by(Instant::now() + DEADLINE, |_| false)?;
        let (class, printed) = if ended.status.is_none() {
            (Class::Hangs, String::new())
        } else if ended.panicked() {
            (Class::Panics, ended.panic_message())
        } else if ended.is_success() {
            let line = ended.stdout.lines().last().unwrap_or_default();
            (
                Class::of(&Facts::parse(line)),
                ended.stdout.trim().replace('\n', "; "),
            )
        } else {
            return Err(Failure::broken(format!(
                "the examining process failed: {}",
                ended.stderr
            )));
        };
        let is_salvaged = matches!(class, Class::Refused | Class::Reported)
            && trial.is_multiple_of(SALVAGE_EVERY);
        let salvaged = if is_salvaged {
            Some(self.salvage(base, &damage, place.path())?)
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

    /// Salvages a copy with the same damage.
    fn salvage(&self, base: &Base, damage: &Damage, place: &Path) -> Result<Salvaged, Failure> {
        let (copy, target) = (place.join("again"), place.join("salvaged"));
        tree::copy(base.folder(), &copy)?;
        damage.apply(&copy)?;
        let command = salvage::command(&copy, &target, base.kind())?;
        let ended = Process::start(command)?.end_by(Instant::now() + DEADLINE, |_| false)?;
        let facts = Facts::parse(ended.stdout.lines().last().unwrap_or_default());
        let is_fine = ended.is_success()
            && !ended.panicked()
            && facts.get("opened") == 1
            && facts.get("wrong") + facts.get("errors") + facts.get("doctor") == 0
            // What is not there must be listed.
            && (facts.get("different") == 0 || facts.get("reported") > 0);
        let printed = || format!("{} {}", ended.stdout.trim(), ended.stderr.trim());
        Ok(Salvaged {
            items: facts.get("items"),
            fault: (!is_fine).then(printed),
        })
    }
}

/// What all trials have come to.
#[derive(Debug, Default)]
struct Total {
    trials: u64,
    classes: BTreeMap<Class, u64>,
    /// How many trials damaged a file of each kind.
    files: BTreeMap<&'static str, u64>,
    salvages: u64,
    salvaged_items: u64,
    salvages_failed: u64,
    notes: Vec<String>,
}

impl Total {
    fn take(&mut self, trial: u64, outcome: Outcome) {
        self.trials += 1;
        *self.classes.entry(outcome.class).or_default() += 1;
        *self.files.entry(outcome.file_kind).or_default() += 1;
        let (name, what) = (outcome.class.name(), &outcome.what);
        if !outcome.class.is_fine() {
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
                    .push(format!("not salvaged: trial={trial} {what} {fault}"));
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
            && self.classes.keys().all(|class| class.is_fine());
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
    fn what_is_missing_without_a_report_is_silent() {
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
            assert_eq!(Class::of(&Facts::parse(line)), class, "{line}");
        }
    }
}
