//! The process that saves what is readable of a damaged store into another one, and looks at that.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use floe_local::doctor;

use super::super::child;
use super::base::Kind;
use super::examine::Reading;
use crate::checks::role::Role;
use crate::{Failure, out};

/// The name of the role.
pub(super) const ROLE: &str = "bit-rot-salvage";

/// The process for a store of this kind.
pub(super) fn command(folder: &Path, target: &Path, kind: Kind) -> std::io::Result<Command> {
    let mut command = child::command(ROLE)?;
    command.arg("--folder").arg(folder);
    command.arg("--target").arg(target);
    command.arg("--kind").arg(kind.name());
    Ok(command)
}

/// What the process is told.
#[derive(Debug, Args)]
pub(in crate::checks) struct Salvaging {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    target: PathBuf,
    #[arg(long)]
    kind: Kind,
}

impl Role for Salvaging {
    const NAME: &str = ROLE;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure> {
        let report = doctor::salvage(&self.folder, &self.target, |_| {})?;
        for lost in report.lost.iter().take(3) {
            out::figures(&format!("lost: {}", lost.replace('=', ":")));
        }
        let reported = report.lost_total + report.uncertain;
        Reading::of(&self.target, self.kind.content())?.print(reported);
        Ok(ExitCode::SUCCESS)
    }
}
