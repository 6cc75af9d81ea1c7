//! `cargo xtask verify NAME`: the reliability checks.
//!
//! Each check is a file that declares a [`Check`]: what it proves, its flags, the bugs that it must
//! find when they are planted. It prints its figures on one line and fails when its floor is missed.
//!
//! | file | what it holds |
//! |---|---|
//! | `kill`, `linear`, `isolation`, `model`, `contention`, `io_errors`, `power_cut`, `infrastructure`, `deploy`, `clients`, `hostile`, `feed`, `graph`, `expiry`, `foreign`, `tables`, `full_disk`, `bit_rot`, `soak` | the checks |
//! | `stage`, `client`, `preload` | the table they play on, and who writes to it |
//! | `record`, `ledger` | what a writing process tells, and what follows from it |
//! | `audit`, `replay` | looking over a directory afterwards |
//! | `directory`, `child`, `writer` | opening the engine, and processes that do |
//! | `planted` | bugs on purpose |
//! | `program` | the program `floe`, and what a process uses |
//! | `http` | just enough of HTTP to call a server |
//! | `tmpfs` | small disks, to fill them up |
//! | `tree` | directories as wholes: compared, copied, measured |
//! | `tool` | programs of others |
//! | `figures` | the line, the verdict, the progress |

mod audit;
mod bit_rot;
mod child;
mod client;
mod clients;
mod contention;
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
mod soak;
mod stage;
mod tables;
mod tmpfs;
pub(crate) mod tool;
mod tree;
mod writer;

use std::process::ExitCode;

use floe_store::Env;

use crate::args::Args;
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
    /// Its own flags: how they are written, and what they set.
    flags: &'static [(&'static str, &'static str)],
    /// The bugs that can be planted.
    planted: &'static [Bug],
    /// Takes its own flags, and makes of them the work to do.
    prepare: fn(&Common, &mut Args) -> Result<Work, Failure>,
}

/// What a check does once its flags are known to be right.
type Work = Box<dyn FnOnce() -> Result<Verdict, Failure>>;

/// The flags that all checks have.
#[derive(Clone, Copy, Debug)]
struct Common {
    quick: bool,
    seed: u64,
    planted: Option<Bug>,
}

impl Common {
    const FLAGS: [(&'static str, &'static str); 3] = [
        ("--quick", "the short form, as CI runs it"),
        (
            "--seed N",
            "choose as in an earlier run, by the seed that it printed",
        ),
        (
            "--planted BUG",
            "plant a bug; succeeds only if the check finds it",
        ),
    ];

    fn take(args: &mut Args, allowed: &[Bug]) -> Result<Self, Failure> {
        let quick = args.flag("--quick");
        // Short enough to be typed again.
        let seed = args.value("--seed")?;
        let seed = seed.unwrap_or_else(|| Env::system().next_u64() % 1_000_000);
        let planted = args.value("--planted")?;
        match planted {
            Some(bug) if !allowed.contains(&bug) => Err(Failure::usage(format!(
                "--planted: this check does not know the bug: {bug}"
            ))),
            _ => Ok(Self {
                quick,
                seed,
                planted,
            }),
        }
    }

    /// The number that fits the form of the check.
    const fn pick(&self, quick: u64, full: u64) -> u64 {
        if self.quick { quick } else { full }
    }
}

/// Runs `cargo xtask verify`.
pub(crate) fn run(mut args: Args) -> Result<ExitCode, Failure> {
    let Some(name) = args.command() else {
        let asked = args.help();
        args.finish("cargo xtask verify")?;
        out::figures(&help());
        return Ok(if asked {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(2)
        });
    };
    if name == "all" {
        return run_all(args);
    }
    let check = CHECKS.into_iter().find(|check| check.name == name);
    let check = check.ok_or_else(|| {
        Failure::usage(format!(
            "no such check: {name}; see cargo xtask verify --help"
        ))
    })?;
    if args.help() {
        out::figures(&check.help());
        return Ok(ExitCode::SUCCESS);
    }
    let common = Common::take(&mut args, check.planted)?;
    let is_met = check.run(&common, args)?;
    Ok(if is_met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn run_all(mut args: Args) -> Result<ExitCode, Failure> {
    if args.help() {
        out::figures(&help());
        return Ok(ExitCode::SUCCESS);
    }
    let common = Common::take(&mut args, &[])?;
    args.finish("cargo xtask verify")?;
    let mut missed = Vec::new();
    for check in CHECKS {
        let is_met = check
            .run(&common, Args::new::<&str>([]))
            .unwrap_or_else(|failure| {
                let (Failure::Usage(message) | Failure::Broken(message)) = failure;
                out::note(&format!("{}: {message}", check.name));
                false
            });
        missed.extend((!is_met).then_some(check.name));
    }
    if missed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    out::note(&format!(
        "checks that missed their floor: {}",
        missed.join(" ")
    ));
    Ok(ExitCode::FAILURE)
}

impl Check {
    fn run(&self, common: &Common, mut args: Args) -> Result<bool, Failure> {
        let work = (self.prepare)(common, &mut args)?;
        args.finish(&format!("cargo xtask verify {}", self.name))?;
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

    fn help(&self) -> String {
        let mut text = format!(
            "{}\n\n{}\n\nUsage: cargo xtask verify {} [flags]\n\nFlags:\n",
            self.proves, self.how, self.name
        );
        for (flag, what) in Common::FLAGS.iter().chain(self.flags) {
            text += &format!("  {flag:<16} {what}\n");
        }
        text += "\nBugs to plant:\n";
        for bug in self.planted {
            text += &format!("  {:<20} {}\n", bug.name(), bug.describe());
        }
        text + "\nTemporary files go where TMPDIR says."
    }
}

fn help() -> String {
    let mut text = String::from(
        "Reliability checks. Each prints its figures on one line as key=value, and fails when its \
         floor is missed.\n\nUsage: cargo xtask verify NAME [flags]\n\nChecks:\n",
    );
    for check in CHECKS {
        text += &format!("  {:<14} {}\n", check.name, check.proves);
    }
    text += "  all            all of them in turn\n\nFlags:\n";
    for (flag, what) in Common::FLAGS {
        text += &format!("  {flag:<16} {what}\n");
    }
    text + "\nMore flags and the bugs to plant: cargo xtask verify NAME --help"
}

/// Runs a process that a check has started.
pub(crate) fn run_child(mut args: Args) -> Result<ExitCode, Failure> {
    let role = args.command().unwrap_or_default();
    match role.as_str() {
        writer::ROLE => writer::run(args),
        io_errors::ROLE => io_errors::run_child(args),
        hostile::ROLE => hostile::run_child(args),
        role if role.starts_with(feed::ROLES) => feed::run_child(role, args),
        graph::ROLE => graph::run_child(args),
        graph::HUB_ROLE => graph::run_hub(args),
        expiry::ROLE => expiry::run_child(args),
        role if role.starts_with(bit_rot::ROLES) => bit_rot::run_child(role, args),
        foreign::ROLE => foreign::run_child(args),
        soak::ROLE => soak::run_child(args),
        tables::ROLE => tables::run_child(args),
        _ => Err(Failure::usage(format!("no such role: {role}"))),
    }
}

/// The runtime on which a check calls an engine.
fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_time()
        .build();
    Ok(runtime?)
}

/// Does the work once on each core, until all have come to their end.
fn on_all_cores(work: impl Fn() -> Result<(), Failure> + Sync) -> Result<(), Failure> {
    std::thread::scope(|scope| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(&work)).collect();
        workers.into_iter().try_for_each(|worker| {
            let ended = worker.join();
            ended.map_err(|_| Failure::broken("a thread of the check panicked"))?
        })
    })
}
