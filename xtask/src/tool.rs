//! Starts the tools that are packages of their own, in release mode: what they depend on is heavy, and they measure.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use crate::Failure;

/// Runs a command of the package `floe-verify`.
pub(crate) fn verify(command: &str, arguments: &[OsString]) -> Result<ExitCode, Failure> {
    let mut run = release("run", "floe-verify");
    run.args(["--", command]).args(arguments);
    become_command(run)
}

/// Runs a benchmark of the package `floe-bench`.
pub(crate) fn bench(arguments: &[OsString]) -> Result<ExitCode, Failure> {
    if arguments.first().is_some_and(|name| name == "wire") {
        // On its own, so that it is the program that users build: built together with the benchmark it
        // would get the features that the benchmark needs.
        let built = release("build", "floe-cli").status()?;
        if !built.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    let mut run = release("run", "floe-bench");
    run.arg("--").args(arguments);
    become_command(run)
}

/// Cargo on a package in release mode.
fn release(command: &str, package: &str) -> Command {
    // Cargo sets CARGO for what it runs, so that the same toolchain is used below.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(cargo);
    cargo.args([command, "--quiet", "--release", "--package", package]);
    cargo
}

/// Puts a command in the place of this process, so that signals reach it and its exit code is told as it is. Cargo does
/// the same with the program that it runs.
#[cfg(unix)]
fn become_command(mut command: Command) -> Result<ExitCode, Failure> {
    use std::os::unix::process::CommandExt;

    Err(command.exec().into())
}

/// Runs a command, and passes its exit code on.
#[cfg(not(unix))]
fn become_command(mut command: Command) -> Result<ExitCode, Failure> {
    let code = command.status()?.code();
    let code = code.and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
