//! The trait of roles: a check starts this binary again in a role, to write, serve or examine, and may kill it.

use std::process::ExitCode;

use clap::Args;

use crate::Failure;

/// The arguments of a process that a check starts, and its work.
pub(super) trait Role: Args {
    /// The name of the role on the command line.
    const NAME: &str;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure>;
}
