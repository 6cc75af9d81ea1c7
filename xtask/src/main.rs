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

use clap::{Args, Parser, Subcommand};

/// Start the project's own tools
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
#[command(after_help = "Every command prints its own help with --help.")]
struct Xtask {
    #[command(subcommand)]
    command: Command,
}

/// The commands. One that is light is a module here with its flags; one that is heavy is a package.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run a reliability check, or `all` of them
    #[command(disable_help_flag = true)]
    Verify(Passed),
    /// Run a benchmark
    #[command(disable_help_flag = true)]
    Bench(Passed),
    /// Exchange data with another implementation of the same format
    #[command(disable_help_flag = true)]
    Interop(Passed),
    Fuzz(fuzz::Fuzz),
    /// Check the structure of the source tree
    #[command(long_about = xtask::tidy::HELP)]
    Tidy {
        /// Also print what is known and not mended yet
        #[arg(long)]
        known: bool,
    },
}

/// What is passed on to a tool.
#[derive(Debug, Args)]
struct Passed {
    #[arg(
        value_name = "ARGUMENT",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    arguments: Vec<OsString>,
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
    let done = match Xtask::parse().command {
        Command::Verify(passed) => tool::verify("verify", &passed.arguments),
        Command::Interop(passed) => tool::verify("interop", &passed.arguments),
        Command::Bench(passed) => tool::bench(&passed.arguments),
        Command::Fuzz(fuzz) => fuzz.run(),
        Command::Tidy { known } => Ok(xtask::tidy::run(known)),
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
