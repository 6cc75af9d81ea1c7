//! What a role is, in which a check starts this program again: a process that writes, serves or looks, to be killed.

use std::process::ExitCode;

use clap::Args;

use crate::Failure;

/// The flags of a process that a check starts, and what it does.
pub(super) trait Role: Args {
    /// The name of the role on the command line.
    const NAME: &str;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure>;
}
