//! The process that saves what is readable of a damaged store into another one, and looks at that.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use floe_local::doctor;

use super::super::child;
use super::base::Kind;
use super::examine::Reading;
use crate::args::Args;
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

/// Runs the role.
pub(super) fn run(mut args: Args) -> Result<ExitCode, Failure> {
    let folder: PathBuf = args.required("--folder")?;
    let target: PathBuf = args.required("--target")?;
    let kind: Kind = args.required("--kind")?;
    args.finish("cargo xtask child")?;
    let report = doctor::salvage(&folder, &target, |_| {})?;
    for lost in report.lost.iter().take(3) {
        out::figures(&format!("lost: {}", lost.replace('=', ":")));
    }
    let reported = report.lost_total + report.uncertain;
    Reading::of(&target, kind.content())?.print(reported);
    Ok(ExitCode::SUCCESS)
}
