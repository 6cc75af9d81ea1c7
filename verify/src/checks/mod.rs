//! The reliability checks, `cargo xtask verify NAME`.
//!
//! Each check is a file with a [`Check`]: what it proves, its flags, and the bugs that it must find when they are
//! planted. It prints its figures on one line and fails when its floor is missed.
//!
//! | file | contents |
//! |---|---|
//! | `kill`, `linear`, `isolation`, `model`, `contention`, `io_errors`, `power_cut`, `infrastructure`, `deploy`, `clients`, `hostile`, `feed`, `graph`, `expiry`, `foreign`, `tables`, `full_disk`, `bit_rot`, `soak` | the checks |
//! | `test_table`, `client`, `preload` | the test table, and the clients that write to it |
//! | `all` | runs all checks |
//! | `concurrent` | concurrent clients that record their history |
//! | `cores` | parallel work on all cores |
//! | `record`, `ledger` | the records of a writing process, and the states they allow |
//! | `audit`, `replay`, `audit_report` | the audit of a directory |
//! | `directory`, `child`, `role`, `roles`, `writer` | opening the engine, here and in child processes |
//! | `planted` | deliberate bugs |
//! | `program` | runs the program `floe`, and measures its resources |
//! | `http` | a minimal HTTP client |
//! | `tmpfs` | small disks that can be filled up |
//! | `tree` | compares, copies and measures directories |
//! | `tool` | runs third-party programs |
//! | `figures` | the line of figures, the verdict, progress |

mod all;
mod audit;
mod audit_report;
mod bit_rot;
mod child;
mod client;
mod clients;
mod concurrent;
mod contention;
mod cores;
mod deploy;
mod directory;
mod expiry;
mod feed;
mod figures;
mod foreign;
mod full_disk;
mod graph;
mod hostile;
mod http;
mod infrastructure;
mod io_errors;
mod isolation;
mod kill;
mod ledger;
mod linear;
mod model;
mod planted;
mod power_cut;
mod preload;
mod program;
mod record;
mod replay;
mod role;
pub(crate) mod roles;
mod soak;
mod tables;
mod test_table;
mod tmpfs;
pub(crate) mod tool;
mod tree;
mod writer;

use std::process::ExitCode;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use floe_store::Env;
use tokio::task::JoinSet;

use crate::{Failure, out};
use figures::Verdict;
use planted::Bug;
pub(crate) use program::run_as_floe;

/// The checks, in the order in which `all` runs them.
const CHECKS: [&Check; 19] = [
    &kill::CHECK,
    &linear::CHECK,
    &isolation::CHECK,
    &model::CHECK,
    &contention::CHECK,
    &io_errors::CHECK,
    &power_cut::CHECK,
    &infrastructure::CHECK,
    &deploy::CHECK,
    &clients::CHECK,
    &hostile::CHECK,
    &feed::CHECK,
    &graph::CHECK,
    &expiry::CHECK,
    &foreign::CHECK,
    &tables::CHECK,
    &full_disk::CHECK,
    &bit_rot::CHECK,
    &soak::CHECK,
];

/// A check.
struct Check {
    name: &'static str,
    /// What the check proves, in one line.
    proves: &'static str,
    /// How it works, in a few lines.
    how: &'static str,
    /// The bugs that can be planted.
    planted: &'static [Bug],
    /// Adds the flags of the check.
    flags: fn(Command) -> Command,
    /// Parses the flags of the check.
    prepare: Prepare,
}

/// Turns the flags of a check into a run.
type Prepare = fn(&Common, &ArgMatches) -> Result<CheckRun, Failure>;

/// A run of a check with parsed flags.
type CheckRun = Box<dyn FnOnce() -> Result<Verdict, Failure>>;

/// The flags of all checks.
#[derive(Debug, Args)]
struct CommonFlags {
    /// Run the short form, as in CI
    #[arg(long)]
    quick: bool,

    /// Repeat the random choices of an earlier run, by the seed that it printed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Plant a bug; succeeds only if the check finds it
    #[arg(long, value_name = "BUG")]
    planted: Option<Bug>,
}

/// The parsed flags of all checks.
#[derive(Clone, Copy, Debug)]
struct Common {
    quick: bool,
    seed: u64,
    planted: Option<Bug>,
}

impl Common {
    fn of(flags: &ArgMatches, allowed: &[Bug]) -> Result<Self, Failure> {
        let flags = CommonFlags::from_arg_matches(flags)?;
        match flags.planted {
            Some(bug) if !allowed.contains(&bug) => Err(Failure::usage(format!(
                "--planted: not a bug of this check: {bug}"
            ))),
            planted => Ok(Self {
                quick: flags.quick,
                // Short enough to type.
                seed: flags
                    .seed
                    .unwrap_or_else(|| Env::system().next_u64() % 1_000_000),
                planted,
            }),
        }
    }

    /// Returns the number for the short or the full form.
    const fn pick(&self, quick: u64, full: u64) -> u64 {
        if self.quick { quick } else { full }
    }
}

/// For checks without flags.
const fn no_flags(command: Command) -> Command {
    command
}

/// The command that runs checks.
pub(crate) fn command(name: &'static str) -> Command {
    Command::new(name)
        .about("Run a reliability check, or all of them")
        .long_about(
            "Reliability checks. Each prints its figures on one line as key=value, and fails when its floor is missed.",
        )
        .after_help("More flags and the bugs to plant: cargo xtask verify NAME --help")
        .subcommand_value_name("NAME")
        .subcommand_help_heading("Checks")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(CHECKS.map(Check::command))
        .subcommand(all::command())
}

/// Runs the selected check.
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (name, flags) = matches.subcommand().unwrap_or(("", matches));
    if name == all::NAME {
        return all::run(flags);
    }
    let check = CHECKS.into_iter().find(|check| check.name == name);
    let check = check.ok_or_else(|| Failure::usage(format!("unknown check: {name}")))?;
    let common = Common::of(flags, check.planted)?;
    let work = (check.prepare)(&common, flags)?;
    let is_met = check.run(&common, work)?;
    Ok(if is_met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

impl Check {
    fn run(&self, common: &Common, run: CheckRun) -> Result<bool, Failure> {
        let verdict = run()?;
        out::figures(verdict.figures.line());
        if !verdict.is_met {
            let missed = if common.planted.is_some() {
                "the planted bug was not found"
            } else {
                "the floor was missed"
            };
            out::note(&format!("{}: {missed}", self.name));
        }
        Ok(verdict.is_met)
    }

    /// Runs the check with default flags.
    fn run_by_default(&self, common: &Common) -> Result<bool, Failure> {
        let flags = (self.flags)(Command::new(self.name)).try_get_matches_from([self.name])?;
        let work = (self.prepare)(common, &flags)?;
        self.run(common, work)
    }

    /// The command of the check.
    fn command(&self) -> Command {
        let mut bugs = String::from("Bugs to plant:\n");
        for bug in self.planted {
            bugs += &format!("  {:<20} {}\n", bug.name(), bug.describe());
        }
        // `about` comes last, because augmenting with flags also sets it.
        (self.flags)(CommonFlags::augment_args(Command::new(self.name)))
            .about(self.proves)
            .long_about(format!("{}\n\n{}", self.proves, self.how))
            .after_help(bugs + "\nTemporary files are created below TMPDIR.")
    }
}

/// The runtime on which a check calls an engine.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build();
    Ok(runtime?)
}

/// Waits for all tasks. The first failure aborts the others.
async fn join_all<T, E>(mut tasks: JoinSet<Result<T, E>>) -> Result<(), Failure>
where
    T: 'static,
    E: 'static,
    Failure: From<E>,
{
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| Failure::broken(error.to_string()))??;
    }
    Ok(())
}
