//! `verify tables`: created and deleted tables leave nothing behind.
//!
//! The files of this check: this one has the plan and the figures, `cycle.rs` the process that creates and deletes.

mod cycle;

use std::time::{Duration, Instant};

use clap::{ArgMatches, Args, FromArgMatches};

use super::child;
use super::figures::{Figures, ParsedFigures, Verdict};
use super::planted::Bug;
use super::program::Process;
use super::{Check, CheckRun, Common};
use crate::{Failure, out};
use cycle::ROLE;
pub(super) use cycle::TableCycleRole;

pub(super) const CHECK: Check = Check {
    name: "tables",
    proves: "created and deleted tables leave no files, descriptors or disk space behind",
    how: "A process opens a directory with permanent tables, and repeatedly creates and deletes tables: plain ones, and\n\
          ones with an index, a stream and items. The disk space, files and descriptors at the end are compared with\n\
          those after the first cycles, and the permanent tables must be intact, also after reopening the directory.\n\
          Then many empty tables are created in another directory, and the disk space of each is measured. Journals\n\
          are counted separately, since they are bounded and not removed after every write.",
    flags: Flags::augment_args,
    planted: &[Bug::LeakedTables],
    prepare,
};

/// Maximum disk space at the end, in percent of that after the first cycles, plus a slack in bytes.
const DISK_PERCENT_MAX: u64 = 150;
const DISK_SLACK_BYTES: u64 = 1 << 20;
/// Descriptors and files allowed at the end, in addition to those after the first cycles.
const DESCRIPTORS_SLACK: u64 = 16;
const FILES_SLACK: u64 = 16;
/// Maximum size of journals: two full ones, and half of a new one.
const JOURNAL_BYTES_MAX: u64 = 160 << 20;
/// Maximum disk space of an empty table.
const TABLE_BYTES_MAX: u64 = 16 << 10;
/// A process that runs longer counts as hanging.
const DEADLINE: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, Debug)]
struct Plan {
    seed: u64,
    planted: Option<Bug>,
    cycles: u64,
    empty: u64,
}

/// The flags of the check.
#[derive(Debug, Args)]
struct Flags {
    /// Number of tables to create and delete [default: 10000; quick: 400]
    #[arg(long, value_name = "N")]
    cycles: Option<u64>,

    /// Number of empty tables [default: 2000; quick: 200]
    #[arg(long, value_name = "N")]
    empty: Option<u64>,
}

fn prepare(common: &Common, flags: &ArgMatches) -> Result<CheckRun, Failure> {
    let flags = Flags::from_arg_matches(flags)?;
    let plan = Plan {
        seed: common.seed,
        planted: common.planted,
        cycles: flags.cycles.unwrap_or(common.pick(400, 10_000)),
        empty: flags.empty.unwrap_or(common.pick(200, 2000)),
    };
    Ok(Box::new(move || run(plan)))
}

fn run(plan: Plan) -> Result<Verdict, Failure> {
    let started = Instant::now();
    let folder = tempfile::tempdir()?;
    let mut command = child::command_on(ROLE, folder.path(), plan.planted)?;
    command.arg("--seed").arg(plan.seed.to_string());
    command.arg("--cycles").arg(plan.cycles.to_string());
    command.arg("--empty").arg(plan.empty.to_string());
    let output = Process::run(command, CHECK.name, started + DEADLINE)?;
    let facts = ParsedFigures::parse(output.stdout.lines().last().unwrap_or_default());
    Ok(verdict(plan, &facts, started))
}

fn verdict(plan: Plan, facts: &ParsedFigures, started: Instant) -> Verdict {
    let get = |key| facts.get(key);
    let mut figures = Figures::new(CHECK.name)
        .put("seed", plan.seed)
        .put("cycles", plan.cycles);
    for key in cycle::FIGURES {
        figures = figures.put(key, get(key));
    }
    let figures = figures.put("seconds", started.elapsed().as_secs());
    let floors = [
        (
            "disk_end",
            get("disk_first") * DISK_PERCENT_MAX / 100 + DISK_SLACK_BYTES,
        ),
        ("fds_end", get("fds_first") + DESCRIPTORS_SLACK),
        ("files_end", get("files_first") + FILES_SLACK),
        ("journal_end", JOURNAL_BYTES_MAX),
        ("table_bytes", TABLE_BYTES_MAX),
        ("tables_left", 0),
        ("lost", 0),
    ];
    let missed: Vec<_> = floors
        .into_iter()
        .filter(|(key, most)| get(key) > *most)
        .collect();
    if plan.planted.is_none() {
        for (key, most) in &missed {
            out::note(&format!("{key}={} at_most={most}", get(key)));
        }
    }
    let leaks = ["disk_end", "fds_end", "files_end"];
    let found = missed.iter().any(|(key, _)| leaks.contains(key));
    let found = plan.planted.map(|_| found);
    Verdict::new(figures, missed.is_empty(), found)
}
