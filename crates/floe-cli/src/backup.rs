//! `floe backup` and `floe restore`: copies of a whole store.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::{
    Failure, IN_USE_HINT, IfMissing, NO_STORE_HINT, OpenStore, Output, Progress, Result, bytes,
    check_store, grouped, print, write_members,
};

/// Copy a whole store into a new directory
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe backup ./backups/monday --data ./shop
  floe backup ./backups/monday --data ./shop --json

The copy is a consistent snapshot and a complete store: `floe serve --data ./backups/monday` serves it. It appears under its \
name only when it is complete and synced to disk. A directory that `floe serve` has open cannot be copied: export its tables \
with --endpoint, or stop the server first.")]
pub(super) struct Backup {
    /// Directory of the copy; must not exist, or be empty
    target: PathBuf,

    /// Directory of the store
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    #[command(flatten)]
    output: Output,
}

/// Create a store from a backup
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  floe restore ./backups/monday --data ./shop-again

The target directory must not exist, or be empty: nothing is overwritten. It appears under its name only when it is complete \
and synced to disk; until then its name ends with .tmp. If the command was interrupted, run it again: the partial copy is \
removed.")]
pub(super) struct Restore {
    /// Directory of the backup
    backup: PathBuf,

    /// Directory of the new store; must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    #[command(flatten)]
    output: Output,
}

impl Backup {
    pub(super) fn run(&self) -> Result {
        copy(
            &self.data,
            &self.target,
            "backup",
            NO_STORE_HINT,
            self.output,
        )
    }
}

impl Restore {
    pub(super) fn run(&self) -> Result {
        let hint = "`floe backup` creates a backup";
        copy(&self.backup, &self.data, "restored", hint, self.output)
    }
}

/// Copies a store. The hint says how to create the source.
fn copy(source: &Path, target: &Path, verb: &str, hint: &'static str, output: Output) -> Result {
    check_store(source, hint)?;
    let opened = OpenStore::of_directory(source, IfMissing::Fail(hint), IN_USE_HINT)?;
    let Some(engine) = &opened.local else {
        return Ok(());
    };
    let progress = Progress::new(!output.is_json());
    progress.only_step("copying entries");
    let copied = engine.backup_with(target, |report| progress.at(report.entries, None));
    progress.end();
    let report = copied.map_err(Failure::failed)?;
    let shown = target.display();
    let (tables, entries, size) = (report.tables, grouped(report.entries), bytes(report.bytes));
    let printed = output.either(
        &|w| {
            let (entries, bytes) = (report.entries, report.bytes);
            w.object(|w| {
                w.name(verb).string(&shown.to_string());
                write_members!(w; "tables": tables, "entries": entries, "bytes": bytes);
            });
        },
        &|| {
            print(format!(
                "{verb}: {tables} tables, {entries} entries, {size} in {shown}"
            ))
        },
    );
    printed.and(opened.close())
}
