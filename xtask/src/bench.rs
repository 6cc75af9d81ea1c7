//! Starts the benchmarks, which are a package of their own (`floe-bench`): what they compare
//! against is heavy, and the checks should not have to build it.

use std::process::{Command, ExitCode};

use crate::args::Args;
use crate::{Failure, out};

const HELP: &str = "\
Runs a benchmark in release mode and prints ratios measured side by side in one run.

Usage: cargo xtask bench NAME [flags]

Benchmarks:
  changes  changes that a router delivers against those that the engine commits
  engine   the embedded engine against the raw key-value store and against dynoxide-rs
  events   appends to streams against the same made by hand, long streams against short ones, the tail of the feed
  graph    what includes, lookups, pages and the deletion of a node with many edges take
  models   transactions of models against the same requests made by hand
  wire     the server of DynamoDB's protocol against dynoxide-rs serving it

The flags of a benchmark: cargo xtask bench NAME --help";

/// Runs `cargo xtask bench`: passes the arguments and the exit code through.
pub(crate) fn run(mut args: Args) -> Result<ExitCode, Failure> {
    let Some(name) = args.command() else {
        let asked = args.help();
        args.finish("cargo xtask bench")?;
        out::figures(HELP);
        return Ok(if asked {
            ExitCode::SUCCESS
        } else {
            ExitCode::from(2)
        });
    };
    if !["changes", "engine", "events", "graph", "models", "wire"].contains(&name.as_str()) {
        let message = format!("no such benchmark: {name}; see cargo xtask bench --help");
        return Err(Failure::Usage(message));
    }
    if name == "wire" {
        // On its own, so that it is the program that users build: built together with the benchmark it
        // would get the features that the benchmark needs.
        let built = release("build", "floe-cli").status()?;
        if !built.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    let status = release("run", "floe-bench")
        .args(["--", &name])
        .args(args.rest())
        .status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Cargo on a package in release mode.
fn release(command: &str, package: &str) -> Command {
    // Cargo sets CARGO for what it runs, so that the same toolchain is used below.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(cargo);
    cargo.args([command, "--quiet", "--release", "--package", package]);
    cargo
}
