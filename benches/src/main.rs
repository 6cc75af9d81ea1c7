//! Benchmarks that print ratios, measured in alternating rounds of one run, one line per case.
//!
//! An absolute number depends on the machine more than on the program, so every case is compared with another program
//! that does the same work in the same run: the raw key-value store, another emulator, or the same work as raw
//! requests. The exit code is non-zero if a floor is missed.
//!
//! | benchmark | comparison | module |
//! |---|---|---|
//! | `changes` | changes delivered by a router, changes committed by the engine | [`changes`] |
//! | `engine` | the embedded engine, the raw key-value store, another emulator | [`engine`] |
//! | `events` | appends to streams, the same updates as raw requests; a long stream, a short one | [`events`] |
//! | `graph` | requests of an include and of a lookup; pages of a long list, of a short one | [`graph`] |
//! | `models` | transactions of models, the same requests made directly | [`models`] |
//! | `wire` | the server of DynamoDB's protocol, another emulator | [`wire`] |

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the program prints its results"
)]

mod cases;
mod changes;
mod engine;
mod events;
mod graph;
mod measure;
mod models;
mod rounds;
mod wire;

use std::error::Error;
use std::process::ExitCode;

use clap::{ArgMatches, Args, Command};

pub(crate) type Fallible<T> = Result<T, Box<dyn Error>>;

/// A benchmark.
struct Benchmark {
    name: &'static str,
    about: &'static str,
    /// Describes its cases and their output.
    details: &'static str,
    /// Adds its flags.
    flags: fn(Command) -> Command,
    /// Validates its flags and returns its work, or a message about invalid flags.
    prepare: fn(&ArgMatches) -> Result<BenchmarkRun, String>,
}

/// The run of a benchmark. Returns whether every floor was reached.
type BenchmarkRun = Box<dyn FnOnce() -> Fallible<bool>>;

const BENCHMARKS: [&Benchmark; 6] = [
    &changes::BENCHMARK,
    &engine::BENCHMARK,
    &events::BENCHMARK,
    &graph::BENCHMARK,
    &models::BENCHMARK,
    &wire::BENCHMARK,
];

/// A role in which a benchmark starts this program. It is not a benchmark, and not listed.
const SERVE_DYNOXIDE: &Benchmark = &wire::dynoxide::ROLE;

fn main() -> ExitCode {
    match prepare(&command().get_matches()) {
        Ok(run) => match run() {
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

/// The command line, as `cargo xtask` starts it.
fn command() -> Command {
    Command::new("floe-bench")
        .bin_name("cargo xtask bench")
        .about(
            "Run a benchmark in release mode, which prints ratios measured in alternating rounds of one run",
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

/// Returns the work for the arguments.
fn prepare(matches: &ArgMatches) -> Result<BenchmarkRun, String> {
    let (name, flags) = matches.subcommand().unwrap_or(("", matches));
    let mut known = BENCHMARKS.into_iter().chain([SERVE_DYNOXIDE]);
    let benchmark = known.find(|known| known.name == name);
    let benchmark = benchmark.ok_or_else(|| format!("unknown benchmark: name={name}"))?;
    (benchmark.prepare)(flags)
}

/// Parses the flags of a benchmark.
fn parsed<F: Args>(flags: &ArgMatches) -> Result<F, String> {
    F::from_arg_matches(flags).map_err(|error| error.to_string())
}

impl Benchmark {
    fn command(&self) -> Command {
        // Last, because the flags set a description as well.
        (self.flags)(Command::new(self.name))
            .about(self.about)
            .after_help(self.details)
    }
}
