//! Benchmarks that print ratios measured side by side in one run, one line per case.
//!
//! A figure on its own says more about the machine than about the program, so every case runs against
//! something else doing the same work at the same time: the raw key-value store, another emulator, or the
//! same work written by hand. The exit code is non-zero when a floor is missed.
//!
//! | benchmark | what stands beside what | where |
//! |---|---|---|
//! | `changes` | changes that a router delivers, changes that the engine commits | [`changes`] |
//! | `engine` | the embedded engine, the raw key-value store, another emulator | [`engine`] |
//! | `events` | appends to streams, the same updates made by hand; a long stream, a short one | [`events`] |
//! | `graph` | requests of an include and of a lookup; pages of a long list, of a short one | [`graph`] |
//! | `models` | transactions of models, the same requests made by hand | [`models`] |
//! | `wire` | the server of DynamoDB's protocol, another emulator serving it | [`wire`] |

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that prints figures"
)]

mod cases;
mod changes;
mod engine;
mod events;
mod graph;
mod measure;
mod models;
mod play;
mod wire;

use std::error::Error;
use std::process::ExitCode;

use clap::{ArgMatches, Args, Command};

pub(crate) type Fallible<T> = Result<T, Box<dyn Error>>;

/// One of the benchmarks.
struct Benchmark {
    name: &'static str,
    about: &'static str,
    /// Its cases, and what they print.
    details: &'static str,
    /// Adds its flags.
    flags: fn(Command) -> Command,
    /// Takes its flags and makes of them the work to do, or tells what is wrong with them.
    prepare: fn(&ArgMatches) -> Result<Work, String>,
}

/// What a benchmark does; true if every floor was reached.
type Work = Box<dyn FnOnce() -> Fallible<bool>>;

const BENCHMARKS: [&Benchmark; 6] = [
    &changes::BENCHMARK,
    &engine::BENCHMARK,
    &events::BENCHMARK,
    &graph::BENCHMARK,
    &models::BENCHMARK,
    &wire::BENCHMARK,
];

/// A role that a benchmark starts this program in, which is no benchmark and in no list.
const SERVE_DYNOXIDE: &Benchmark = &wire::dynoxide::ROLE;

fn main() -> ExitCode {
    match prepare(&command().get_matches()) {
        Ok(work) => match work() {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                eprintln!("floe-bench: {error}");
                ExitCode::FAILURE
            }
        },
        Err(message) => {
            eprintln!("floe-bench: {message}; try --help");
            ExitCode::from(2)
        }
    }
}

/// The command line, called as it is started: by `cargo xtask`.
fn command() -> Command {
    Command::new("floe-bench")
        .bin_name("cargo xtask bench")
        .about(
            "Run a benchmark in release mode, which prints ratios measured side by side in one run",
        )
        .after_help("The flags of a benchmark: cargo xtask bench NAME --help")
        .subcommand_value_name("NAME")
        .subcommand_help_heading("Benchmarks")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommands(BENCHMARKS.map(Benchmark::command))
        .subcommand(SERVE_DYNOXIDE.command().hide(true))
}

/// The work that the arguments ask for.
fn prepare(matches: &ArgMatches) -> Result<Work, String> {
    let (name, flags) = matches.subcommand().unwrap_or(("", matches));
    let mut known = BENCHMARKS.into_iter().chain([SERVE_DYNOXIDE]);
    let benchmark = known.find(|known| known.name == name);
    let benchmark = benchmark.ok_or_else(|| format!("unknown benchmark: name={name}"))?;
    (benchmark.prepare)(flags)
}

/// The flags of a benchmark.
fn parsed<F: Args>(flags: &ArgMatches) -> Result<F, String> {
    F::from_arg_matches(flags).map_err(|error| error.to_string())
}

impl Benchmark {
    fn command(&self) -> Command {
        // Last, because flags describe themselves as well.
        (self.flags)(Command::new(self.name))
            .about(self.about)
            .after_help(self.details)
    }
}
