//! `cargo xtask`: the one way to start the project's own tools.
//!
//! | command | what it does | where |
//! |---|---|---|
//! | `verify NAME` | a reliability check | the package `floe-verify` |
//! | `interop NAME` | data exchanged with another implementation of the same format | the package `floe-verify` |
//! | `bench NAME` | benchmarks | the package `floe-bench` |
//! | `fuzz TARGET` | fuzzing of everything that parses | [`mod@fuzz`], which builds the package in `fuzz/` |
//! | `tidy` | checks the structure of the source tree: cycles, layers, unseen lines | [`xtask::tidy`] |
//!
//! What is heavy is a package of its own that [`tool`] builds and starts, so that this one is built in seconds. Its
//! arguments, its exit code and signals pass through.

#![forbid(unsafe_code)]

mod fuzz;
mod tool;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

// The commands that are passed on to a tool.
const VERIFY: &str = "verify";
const BENCH: &str = "bench";
const INTEROP: &str = "interop";
/// What stands behind them.
const ARGUMENTS: &str = "arguments";

const TIDY: &str = "tidy";
const LANGUAGE: &str = "language";

/// The commands. One that is light is a module here with its flags; one that is heavy is a package.
fn command() -> Command {
    Command::new("xtask")
        .bin_name("cargo xtask")
        .about("Start the project's own tools")
        .after_help("Every command prints its own help with --help.")
        .disable_help_subcommand(true)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(passed(VERIFY, "Run a reliability check, or `all` of them"))
        .subcommand(passed(BENCH, "Run a benchmark"))
        .subcommand(passed(
            INTEROP,
            "Exchange data with another implementation of the same format",
        ))
        .subcommand(fuzz::command())
        .subcommand(
            Command::new(TIDY)
                .about("Check the structure of the source tree")
                .long_about(xtask::tidy::HELP)
                .arg(
                    Arg::new(LANGUAGE)
                        .long(LANGUAGE)
                        .action(ArgAction::SetTrue)
                        .help(
                            "Also print each banned word and each riddle among the names of tests",
                        ),
                ),
        )
}

/// A command that is passed on to a tool with all that stands behind it, also `--help`.
fn passed(name: &'static str, about: &'static str) -> Command {
    Command::new(name).about(about).disable_help_flag(true).arg(
        Arg::new(ARGUMENTS)
            .value_name("ARGUMENT")
            .num_args(1..)
            .action(ArgAction::Append)
            .value_parser(value_parser!(OsString))
            .trailing_var_arg(true)
            .allow_hyphen_values(true),
    )
}

fn arguments(matches: &ArgMatches) -> Vec<OsString> {
    let arguments = matches.get_many(ARGUMENTS);
    arguments.unwrap_or_default().cloned().collect()
}

/// Why a command could not be carried out.
#[derive(Debug)]
struct Failure(String);

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}

fn main() -> ExitCode {
    let done = match command().get_matches().subcommand() {
        Some((INTEROP, matches)) => tool::verify(INTEROP, &arguments(matches)),
        Some((BENCH, matches)) => tool::bench(&arguments(matches)),
        Some((fuzz::NAME, matches)) => fuzz::run(matches),
        Some((TIDY, arguments)) => Ok(xtask::tidy::run(arguments.get_flag(LANGUAGE))),
        Some((_, matches)) => tool::verify(VERIFY, &arguments(matches)),
        None => Err(Failure("which command?".to_owned())),
    };
    done.unwrap_or_else(|Failure(message)| {
        note(&format!("xtask: {message}"));
        ExitCode::FAILURE
    })
}

/// Prints a result. A reader that has gone away is no reason to fail.
fn figures(line: &str) {
    let mut stdout = io::stdout().lock();
    drop(writeln!(stdout, "{line}").and_then(|()| stdout.flush()));
}

/// Prints a line for people.
fn note(line: &str) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}
