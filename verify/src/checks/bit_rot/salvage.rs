//! The process that salvages a damaged store into a new one and examines the result.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use floe_local::doctor;

use super::super::child;
use super::base::Kind;
use super::examine::ReadReport;
use crate::checks::role::Role;
use crate::{Failure, out};

/// The name of the role.
pub(super) const ROLE: &str = "bit-rot-salvage";

/// Returns the command of the process for a store of this kind.
pub(super) fn command(folder: &Path, target: &Path, kind: Kind) -> std::io::Result<Command> {
    let mut command = child::command(ROLE)?;
    command.arg("--folder").arg(folder);
    command.arg("--target").arg(target);
    command.arg("--kind").arg(kind.name());
    Ok(command)
}

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct SalvageRole {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    target: PathBuf,
    #[arg(long)]
    kind: Kind,
}

impl Role for SalvageRole {
    const NAME: &str = ROLE;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure> {
        let report = doctor::salvage(&self.folder, &self.target, |_| {})?;
        for lost in report.lost.iter().take(3) {
            out::figures(&format!("lost: {}", lost.replace('=', ":")));
        }
        let reported = report.lost_total + report.uncertain;
        ReadReport::of(&self.target, self.kind.content())?.print(reported);
        Ok(ExitCode::SUCCESS)
    }
}
