//! `cargo xtask`: starts the tools of the project.
//!
//! | command | what it does | where |
//! |---|---|---|
//! | `verify NAME` | a reliability check | the package `floe-verify` |
//! | `interop NAME` | data exchange with another implementation of the same format | the package `floe-verify` |
//! | `bench NAME` | benchmarks | the package `floe-bench` |
//! | `fuzz TARGET` | fuzzing of all parsers | [`mod@fuzz`], which builds the package in `fuzz/` |
//! | `tidy` | checks the structure of the source tree: cycles, layers, unreached files | [`xtask::tidy`] |
//!
//! Heavy tools are separate packages that [`tool`] builds and starts, so that this one builds in seconds. Arguments,
//! exit codes and signals pass through.

#![forbid(unsafe_code)]

mod fuzz;
mod tool;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

// Commands that are passed to a tool.
const VERIFY: &str = "verify";
const BENCH: &str = "bench";
const INTEROP: &str = "interop";
/// The arguments after the command.
const ARGUMENTS: &str = "arguments";

const TIDY: &str = "tidy";
const LANGUAGE: &str = "language";

/// The command line. Light commands are modules here with their own flags; heavy ones are packages.
fn command() -> Command {
    Command::new("xtask")
        .bin_name("cargo xtask")
        .about("Start the tools of the project")
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
                        .help("Also print each banned word and each unclear test name"),
                ),
        )
}

/// A command that is passed to a tool with all its arguments, including `--help`.
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

/// Why a command failed.
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
        None => Err(Failure("a command is required".to_owned())),
    };
    done.unwrap_or_else(|Failure(message)| {
        note(&format!("xtask: {message}"));
        ExitCode::FAILURE
    })
}

/// Prints a result. A closed output is not a failure.
fn figures(line: &str) {
    let mut stdout = io::stdout().lock();
    drop(writeln!(stdout, "{line}").and_then(|()| stdout.flush()));
}

/// Prints a note.
fn note(line: &str) {
    drop(writeln!(io::stderr().lock(), "{line}"));
}
