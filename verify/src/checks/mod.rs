//! The reliability checks, `cargo xtask verify NAME`.
//!
//! Each check is a file that declares a [`Check`]: what it proves, its flags, the bugs that it must
//! find when they are planted. It prints its figures on one line and fails when its floor is missed.
//!
//! | file | what it holds |
//! |---|---|
//! | `kill`, `linear`, `isolation`, `model`, `contention`, `io_errors`, `power_cut`, `infrastructure`, `deploy`, `clients`, `hostile`, `feed`, `graph`, `expiry`, `foreign`, `tables`, `full_disk`, `bit_rot`, `soak` | the checks |
//! | `stage`, `client`, `preload` | the table they play on, and who writes to it |
//! | `all` | all checks, several at once |
//! | `concurrent` | many clients at once that record what they do |
//! | `cores` | work on all cores |
//! | `record`, `ledger` | what a writing process tells, and what follows from it |
//! | `audit`, `replay`, `findings` | looking over a directory afterwards |
//! | `directory`, `child`, `role`, `roles`, `writer` | opening the engine, and processes that do |
//! | `planted` | bugs on purpose |
//! | `program` | the program `floe`, and what a process uses |
//! | `http` | just enough of HTTP to call a server |
//! | `tmpfs` | small disks, to fill them up |
//! | `tree` | directories as wholes: compared, copied, measured |
//! | `tool` | programs of others |
//! | `figures` | the line, the verdict, the progress |

mod all;
mod audit;
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
mod findings;
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
mod stage;
mod tables;
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
    /// One line on what it proves.
    proves: &'static str,
    /// A few lines on how it does.
    how: &'static str,
    /// The bugs that can be planted.
    planted: &'static [Bug],
    /// Adds its own flags.
    flags: fn(Command) -> Command,
    /// Takes its own flags, and makes of them the work to do.
    prepare: Prepare,
}

/// Makes of the flags of a check the work to do.
type Prepare = fn(&Common, &ArgMatches) -> Result<Work, Failure>;

/// What a check does once its flags are known to be right.
type Work = Box<dyn FnOnce() -> Result<Verdict, Failure>>;

/// The flags that all checks have.
#[derive(Debug, Args)]
struct CommonFlags {
    /// The short form, as CI runs it
    #[arg(long)]
    quick: bool,

    /// Choose as in an earlier run, by the seed that it printed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Plant a bug; succeeds only if the check finds it
    #[arg(long, value_name = "BUG")]
    planted: Option<Bug>,
}

/// What all checks are told.
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
                "--planted: this check does not know the bug: {bug}"
            ))),
            planted => Ok(Self {
                quick: flags.quick,
                // Short enough to be typed again.
                seed: flags
                    .seed
                    .unwrap_or_else(|| Env::system().next_u64() % 1_000_000),
                planted,
            }),
        }
    }

    /// The number that fits the form of the check.
    const fn pick(&self, quick: u64, full: u64) -> u64 {
        if self.quick { quick } else { full }
    }
}

/// The flags of a check that has none of its own.
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

/// Runs the check that was asked for.
pub(crate) fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    let (name, flags) = matches.subcommand().unwrap_or(("", matches));
    if name == all::NAME {
        return all::run(flags);
    }
    let check = CHECKS.into_iter().find(|check| check.name == name);
    let check = check.ok_or_else(|| Failure::usage(format!("no such check: {name}")))?;
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
    fn run(&self, common: &Common, work: Work) -> Result<bool, Failure> {
        let verdict = work()?;
        out::figures(verdict.figures.line());
        if !verdict.is_met {
            let missed = if common.planted.is_some() {
                "the planted bug was not found"
            } else {
                "the floor is missed"
            };
            out::note(&format!("{}: {missed}", self.name));
        }
        Ok(verdict.is_met)
    }

    /// Runs it without flags of its own.
    fn run_by_default(&self, common: &Common) -> Result<bool, Failure> {
        let flags = (self.flags)(Command::new(self.name)).try_get_matches_from([self.name])?;
        let work = (self.prepare)(common, &flags)?;
        self.run(common, work)
    }

    /// Its command.
    fn command(&self) -> Command {
        let mut bugs = String::from("Bugs to plant:\n");
        for bug in self.planted {
            bugs += &format!("  {:<20} {}\n", bug.name(), bug.describe());
        }
        // Last, because flags describe themselves as well.
        (self.flags)(CommonFlags::augment_args(Command::new(self.name)))
            .about(self.proves)
            .long_about(format!("{}\n\n{}", self.proves, self.how))
            .after_help(bugs + "\nTemporary files go where TMPDIR says.")
    }
}

/// The runtime on which a check calls an engine.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build();
    Ok(runtime?)
}

/// Waits until all tasks have come to their end. With the first that fails, the others are ended.
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
