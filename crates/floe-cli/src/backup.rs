//! `floe backup` and `floe restore`: a store, copied whole.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::{
    Failure, IfMissing, Opened, Output, Progress, Result, bytes, check_store, grouped, print,
    write_members,
};

/// Copy a whole store into a new directory
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe backup ./backups/monday --data ./shop
  floe backup ./backups/monday --data ./shop --json

The copy is of one moment, and a store like any other: `floe serve --data ./backups/monday` serves it. It appears under its \
name only when it is complete and on the disk. A directory that `floe serve` has open cannot be copied by another program: \
export its tables with --endpoint, or stop it first.")]
pub(super) struct Backup {
    /// Where the copy goes: a directory that is not there yet, or empty
    target: PathBuf,

    /// The store
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    #[command(flatten)]
    output: Output,
}

/// Make a store of a backup
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe restore ./backups/monday --data ./shop-again

The directory must not be there, or be empty: nothing is ever overwritten. It appears under its name only when it is complete \
and on the disk; until then its name ends with .tmp. If it was stopped, run it again: what is left of it is cleared away.")]
pub(super) struct Restore {
    /// The backup
    backup: PathBuf,

    /// Where the store goes: a directory that is not there yet, or empty
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    #[command(flatten)]
    output: Output,
}

impl Backup {
    pub(super) fn run(&self) -> Result {
        copy(&self.data, &self.target, "backup", self.output)
    }
}

impl Restore {
    pub(super) fn run(&self) -> Result {
        copy(&self.backup, &self.data, "restored", self.output)
    }
}

fn copy(source: &Path, target: &Path, done: &str, output: Output) -> Result {
    check_store(source)?;
    let opened = Opened::of_directory(source, IfMissing::Refuse)?;
    let Some(engine) = &opened.local else {
        return Ok(());
    };
    let progress = Progress::new(!output.json);
    progress.only_step("copying entries");
    let copied = engine.backup_with(target, |report| progress.at(report.entries, None));
    progress.end();
    let report = copied.map_err(Failure::broken)?;
    let shown = target.display();
    let (tables, entries, size) = (report.tables, grouped(report.entries), bytes(report.bytes));
    output.either(
        &|w| {
            let (entries, bytes) = (report.entries, report.bytes);
            w.object(|w| {
                w.name(done).string(&shown.to_string());
                write_members!(w; "tables": tables, "entries": entries, "bytes": bytes);
            });
        },
        &|| {
            print(format!(
                "{done}: {tables} tables, {entries} entries, {size} in {shown}"
            ));
        },
    );
    opened.close()
}
