//! The long-running tools of the project. `cargo xtask` starts them, in release mode.
//!
//! | command | what it does | where |
//! |---|---|---|
//! | `verify NAME` | a reliability check: prints its figures on one line, fails if its floor is missed | [`checks`] |
//! | `interop NAME` | data exchanged with another implementation of the same format | [`mod@interop`] |
//!
//! Nothing here is part of the library: the checks use the engine like any other program, and [`shim`] and [`disk`]
//! intercept its system calls.

#![forbid(unsafe_code)]

mod checks;
mod disk;
mod interop;
mod out;
mod shim;

use std::fmt;
use std::process::ExitCode;

use clap::{ArgMatches, Command};

/// Why a command failed.
#[derive(Debug)]
enum Failure {
    /// A usage error: exit code 2.
    Usage(String),
    /// A failure: exit code 1.
    Broken(String),
}

impl Failure {
    fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    fn broken(message: impl Into<String>) -> Self {
        Self::Broken(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(message) | Self::Broken(message)) = self;
        f.write_str(message)
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<floe::Error> for Failure {
    fn from(error: floe::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

impl From<floe_store::Error> for Failure {
    fn from(error: floe_store::Error) -> Self {
        Self::Broken(error.to_string())
    }
}

/// The name of the command that runs a child process of a check in a role.
const CHILD: &str = "child";
const INTEROP: &str = "interop";
const VERIFY: &str = "verify";

fn main() -> ExitCode {
    if let Some(code) = checks::run_as_floe() {
        return code;
    }
    match run(&command().get_matches()) {
        Ok(code) => code,
        Err(failure) => {
            out::note(&format!("floe-verify: {failure}"));
            match failure {
                Failure::Usage(_) => ExitCode::from(2),
                Failure::Broken(_) => ExitCode::FAILURE,
            }
        }
    }
}

/// The command line, named after its caller `cargo xtask`.
fn command() -> Command {
    Command::new("floe-verify")
        .bin_name("cargo xtask")
        .about("Reliability checks, and data exchanged with other implementations")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(checks::command(VERIFY))
        .subcommand(interop::command(INTEROP))
        .subcommand(checks::roles::command(CHILD))
}

fn run(matches: &ArgMatches) -> Result<ExitCode, Failure> {
    match matches.subcommand() {
        Some((VERIFY, matches)) => checks::run(matches),
        Some((INTEROP, matches)) => interop::run(matches),
        Some((CHILD, matches)) => checks::roles::run(matches),
        _ => Err(Failure::usage("a command is required")),
    }
}
