//! Starts the tools that are separate packages, in release mode: they have heavy dependencies, and they measure.

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
        // Built separately, so that it is the program that users build: built together with the benchmark it would get
        // the features that the benchmark needs.
        let built = release("build", "floe-cli").status()?;
        if !built.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    let mut run = release("run", "floe-bench");
    run.arg("--").args(arguments);
    become_command(run)
}

/// Returns a cargo command on a package in release mode.
fn release(command: &str, package: &str) -> Command {
    // Cargo sets CARGO for its child processes, so that the same toolchain is used here.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(cargo);
    cargo.args([command, "--quiet", "--release", "--package", package]);
    cargo
}

/// Replaces this process with a command, so that the command receives signals and its exit code is unchanged. Cargo
/// does the same with the program it runs.
#[cfg(unix)]
fn become_command(mut command: Command) -> Result<ExitCode, Failure> {
    use std::os::unix::process::CommandExt;

    Err(command.exec().into())
}

/// Runs a command and returns its exit code.
#[cfg(not(unix))]
fn become_command(mut command: Command) -> Result<ExitCode, Failure> {
    let code = command.status()?.code();
    let code = code.and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
