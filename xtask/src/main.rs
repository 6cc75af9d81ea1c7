//! The project's own tools, started as `cargo xtask`.
//!
//! | command | what it does | where |
//! |---|---|---|
//! | `verify NAME` | a reliability check: prints its figures on one line, fails when a floor is missed | [`verify`] |
//! | `bench NAME` | benchmarks, run by the package `floe-bench` in release mode | [`mod@bench`] |
//! | `interop NAME` | data exchanged with another implementation of the same format | [`mod@interop`] |
//! | `fuzz TARGET` | fuzzing of everything that parses, by the package in `fuzz/` | [`mod@fuzz`] |
//! | `tidy` | checks the structure of the source tree: cycles, layers, unseen lines | [`xtask::tidy`] |
//!
//! Each command prints its own `--help`. Nothing here is part of the library: the checks use the
//! engine as any other program does, and [`shim`] and [`disk`] work below it, on its system calls.

#![forbid(unsafe_code)]

mod args;
mod bench;
mod disk;
mod fuzz;
mod interop;
mod out;
mod shim;
mod verify;

use std::process::ExitCode;

use args::Args;

/// One command of `cargo xtask`.
struct Command {
    name: &'static str,
    /// How it is called, and what it does; absent for the processes that a check starts for itself.
    help: Option<(&'static str, &'static str)>,
    run: fn(Args) -> Result<ExitCode, Failure>,
}

const COMMANDS: &[Command] = &[
    Command {
        name: "verify",
        help: Some((
            "verify NAME [flags]",
            "run a reliability check, or `all` of them",
        )),
        run: verify::run,
    },
    Command {
        name: "bench",
        help: Some(("bench NAME [flags]", "run a benchmark, in release mode")),
        run: bench::run,
    },
    Command {
        name: "fuzz",
        help: Some((
            "fuzz [TARGET] [flags]",
            "feed what parses with generated input",
        )),
        run: fuzz::run,
    },
    Command {
        name: "interop",
        help: Some((
            "interop NAME [flags]",
            "exchange data with another implementation",
        )),
        run: interop::run,
    },
    Command {
        name: "tidy",
        help: Some(("tidy [--known]", "check the structure of the source tree")),
        run: tidy,
    },
    Command {
        name: "child",
        help: None,
        run: verify::run_child,
    },
];

/// Why a command did not do what it was asked to.
#[derive(Debug)]
enum Failure {
    /// It was called wrongly: exit code 2.
    Usage(String),
    /// It could not be carried out: exit code 1.
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

fn main() -> ExitCode {
    if let Some(code) = verify::run_as_floe() {
        return code;
    }
    let result = dispatch(Args::from_env());
    match result {
        Ok(code) => code,
        Err(Failure::Usage(message)) => {
            out::note(&format!("xtask: {message}"));
            ExitCode::from(2)
        }
        Err(Failure::Broken(message)) => {
            out::note(&format!("xtask: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn dispatch(mut args: Args) -> Result<ExitCode, Failure> {
    let Some(name) = args.command() else {
        let asked = args.help();
        args.finish("cargo xtask")?;
        out::figures(&help());
        return Ok(if asked {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(2)
        });
    };
    let command = COMMANDS.iter().find(|command| command.name == name);
    let command = command.ok_or_else(|| {
        Failure::usage(format!("no such command: {name}; see cargo xtask --help"))
    })?;
    (command.run)(args)
}

fn tidy(mut args: Args) -> Result<ExitCode, Failure> {
    if args.help() {
        out::figures(xtask::tidy::HELP);
        return Ok(ExitCode::SUCCESS);
    }
    let with_known = args.flag("--known");
    args.finish("cargo xtask tidy")?;
    Ok(xtask::tidy::run(with_known))
}

fn help() -> String {
    let mut text = String::from("Floe's own tools.\n\nUsage: cargo xtask COMMAND\n\nCommands:\n");
    for (usage, what) in COMMANDS.iter().filter_map(|command| command.help) {
        text += &format!("  {usage:<22} {what}\n");
    }
    text + "\nEvery command prints its own help with --help."
}
