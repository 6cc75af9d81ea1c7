//! `verify foreign`: a directory that is not a store is rejected and left unchanged.
//!
//! | file | contents |
//! |---|---|
//! | `kinds` | the kinds of directories |
//! | `methods` | the methods of opening one, and the expectations of each |

mod kinds;
mod methods;

use std::path::Path;
use std::time::Instant;

use clap::{ArgMatches, Args, FromArgMatches};
use floe_store::op::PutItem;
use floe_store::table::KeyKind;
use floe_store::{Item, TableDef};

use super::cores::run_jobs;
use super::directory::{self, Settings};
use super::figures::{Figures, Verdict};
use super::planted::Bug;
use super::program::{Choice, FloeFlags};
use super::{Check, CheckRun, Common, runtime};
use crate::{Failure, out};
use kinds::{Expect, KINDS, Kind};
pub(super) use methods::OpenRole;
use methods::{Fault, OpenMethod, Outcome, Runner};

pub(super) const CHECK: Check = Check {
    name: "foreign",
    proves: "a directory that is not a store is rejected with its reason, and nothing in it changes",
    how: "Creates directories of many kinds that are not stores: projects, other databases, stores without their marker,\n\
          links, files, pipes. Opens each with every method: LocalEngine::open, floe serve, floe import --new, floe doctor,\n\
          floe backup to it, and floe backup with it at the path of the unfinished copy. Each must be rejected at once with\n\
          a message that names what was found, without a panic, and every path, mode, link and content must be unchanged.\n\
          Stores with a stray file must keep it and their items. Empty directories must be accepted.",
    flags: Flags::augment_args,
    planted: &[Bug::ClearsForeign],
    prepare,
};

/// Minimum number of kinds that are not stores.
const KINDS_MIN: usize = 30;
/// The table of the store from which some kinds are made, and its number of items.
const TABLE: &str = "Kept";
const ITEMS: u64 = 20;

#[derive(Clone, Debug)]
struct Plan {
    planted: Option<Bug>,
    kind: Option<String>,
    floe: Choice,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Run only this kind (train_data, ...)
    #[arg(long, value_name = "NAME")]
    kind: Option<String>,

    #[command(flatten)]
    floe: FloeFlags,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        planted: common.planted,
        kind: flags.kind,
        floe: flags.floe.into(),
    };
    Ok(Box::new(move || run(&plan)))
}

fn run(plan: &Plan) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let folder = tempfile::tempdir()?;
    let store = folder.path().join("store");
    make_store(&store)?;
    let runner = Runner {
        floe: plan.floe.prepare()?,
        store: &store,
        scratch: folder.path(),
        planted: plan.planted,
    };
    let is_chosen = |kind: &&Kind| plan.kind.as_ref().is_none_or(|name| kind.name == name);
    let runs: Vec<_> = KINDS
        .iter()
        .filter(is_chosen)
        .flat_map(|kind| OpenMethod::ALL.map(|method| (kind, method)))
        .collect();
    let total = run_jobs(
        CHECK.name,
        &runs,
        |(kind, method)| runner.run(kind, *method),
        |total: &mut Total, (kind, method), outcome| total.record(kind, *method, outcome),
        |total| format!("runs={} of={}", total.runs, runs.len()),
    )?;
    Ok(total.verdict(plan, started))
}

/// Creates a store with some items, and closes it.
fn make_store(folder: &Path) -> Result<(), Failure> {
    let opened = directory::open(folder, Settings::IDLE)?;
    let engine = opened.engine();
    runtime()?.block_on(async {
        let table = TableDef::builder(TABLE, "id", KeyKind::N).build()?;
        engine.create_table(table.into()).await?;
        for id in 0..ITEMS {
            let item = Item::new().with("id", id).with("text", "kept");
            engine.write_item(PutItem::new(TABLE, item).into()).await?;
        }
        Ok::<(), Failure>(())
    })?;
    drop(engine);
    Ok(opened.close()?)
}

/// The results of all runs.
#[derive(Debug, Default)]
struct Total {
    runs: u64,
    /// Each fault found, with the kind of directory.
    faults: Vec<(Fault, &'static str)>,
    /// The kinds of directories tried.
    kinds: Vec<&'static Kind>,
    notes: Vec<String>,
}

impl Total {
    fn record(&mut self, kind: &'static Kind, method: OpenMethod, outcome: Outcome) {
        self.runs += 1;
        if !self.kinds.iter().any(|known| known.name == kind.name) {
            self.kinds.push(kind);
        }
        for (fault, what) in outcome.faults {
            let fault_name = fault.name();
            self.notes.push(format!(
                "{fault_name}: kind={} method={} {what}",
                kind.name,
                method.name()
            ));
            if !self.faults.contains(&(fault, kind.name)) {
                self.faults.push((fault, kind.name));
            }
        }
    }

    /// The number of kinds with this fault.
    fn count(&self, fault: Fault) -> usize {
        self.faults
            .iter()
            .filter(|(each, _)| *each == fault)
            .count()
    }

    fn kinds(&self, expect: Expect) -> usize {
        let kinds = self.kinds.iter();
        kinds.filter(|kind| kind.expect == expect).count()
    }

    fn verdict(mut self, plan: &Plan, started: Instant) -> Verdict {
        if plan.planted.is_none() {
            self.notes.sort();
            self.notes.iter().for_each(|note| out::note(note));
        }
        let foreign = self.kinds(Expect::Refused);
        let mut figures = Figures::new(CHECK.name)
            .put("kinds", foreign)
            .put("strays", self.kinds(Expect::Kept))
            .put("controls", self.kinds(Expect::Accepted))
            .put("ways", OpenMethod::ALL.len())
            .put("runs", self.runs);
        for fault in Fault::ALL {
            figures = figures.put(fault.name(), self.count(fault));
        }
        let figures = figures.put("seconds", started.elapsed().as_secs());
        let is_whole = plan.kind.is_some() || foreign >= KINDS_MIN;
        let found = plan.planted.map(|_| self.count(Fault::Changed) > 0);
        Verdict::new(figures, is_whole && self.faults.is_empty(), found)
    }
}
