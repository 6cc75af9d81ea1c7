//! Backups: a copy of the whole store into a new directory, while the engine goes on.
//!
//! The copy is of one snapshot, so it holds a beginning of the history: every commit up to some moment,
//! whole, and nothing after it. It has the shape of any store and is opened like one. It appears under its
//! name only when it is complete and on the disk; until then it has the name with `.tmp` behind it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};

use crate::LocalEngine;
use crate::dir::{Directory, sync_directory};
use crate::engine::Shared;
use crate::kv::{Direction, Kv, KvOptions, Snapshot, Space};
use crate::layout::{CHANGES_SPACE, META_SPACE, TOKENS_SPACE, table_space_name};
use crate::moment::Moment;

/// How many entries lie between two reports of progress.
const PROGRESS_ENTRIES: u64 = 10_000;

/// Sorted entries are written straight into files, so that little memory is needed.
const COPY_OPTIONS: KvOptions = KvOptions {
    cache_bytes: 1 << 20,
    write_buffer_bytes: 1 << 20,
};

/// How far a backup has come, and in the end what it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// The tables copied so far.
    pub tables: u64,
    /// The entries copied so far: items, index entries, change records and all else.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl LocalEngine {
    /// Copies the whole store, as it is at one moment, into a new directory that [`open`](Self::open)
    /// opens. Reads and writes go on meanwhile. Works for an engine in memory, too.
    ///
    /// It blocks until the copy is complete and on the disk. If it fails, there is no directory.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when the target is there and not empty, or when the store cannot be read or the
    /// copy not be written.
    ///
    /// ```
    /// use floe_local::LocalEngine;
    ///
    /// # let dir = tempfile::tempdir().map_err(|e| floe_store::Error::Storage(e.to_string()))?;
    /// let engine = LocalEngine::memory()?;
    /// engine.backup(dir.path().join("monday"))?;
    /// let restored = LocalEngine::open(dir.path().join("monday"))?;
    /// # Ok::<(), floe_store::Error>(())
    /// ```
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<BackupReport> {
        self.backup_with(target, |_| {})
    }

    /// As [`backup`](Self::backup), and tells how far it has come.
    ///
    /// # Errors
    ///
    /// As [`backup`](Self::backup).
    pub fn backup_with(
        &self,
        target: impl AsRef<Path>,
        progress: impl FnMut(&BackupReport),
    ) -> Result<BackupReport> {
        backup(&self.running.shared, target.as_ref(), progress)
    }
}

fn backup(
    shared: &Shared,
    target: &Path,
    progress: impl FnMut(&BackupReport),
) -> Result<BackupReport> {
    refuse_used(target)?;
    let unfinished = unfinished_path(target)?;
    let directory = Directory::open(&unfinished)?;
    let copied = copy(shared, &directory, progress).and_then(|report| {
        drop(directory);
        publish(&unfinished, target).map_err(|e| failed(target, &e))?;
        Ok(report)
    });
    if copied.is_err() {
        // What is left of it is never taken for a store, and a later backup clears it away.
        let _ = fs::remove_dir_all(&unfinished);
    }
    copied
}

fn refuse_used(target: &Path) -> Result<()> {
    let used = match fs::read_dir(target) {
        Ok(mut entries) => entries.next().is_some(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => false,
        Err(e) => return Err(failed(target, &e)),
    };
    match used {
        true => Err(Error::Storage(format!(
            "the target of a backup is there already and not empty: target={}",
            target.display()
        ))),
        false => Ok(()),
    }
}

fn unfinished_path(target: &Path) -> Result<PathBuf> {
    let name = target.file_name().ok_or_else(|| {
        Error::Storage(format!(
            "the target of a backup has no name: target={}",
            target.display()
        ))
    })?;
    let mut unfinished = OsString::from(name);
    unfinished.push(".tmp");
    Ok(target.with_file_name(unfinished))
}

fn copy(
    shared: &Shared,
    directory: &Directory,
    progress: impl FnMut(&BackupReport),
) -> Result<BackupReport> {
    directory.clear()?;
    let moment = Moment::now(&shared.kv)?;
    moment.check()?;
    let target = Kv::open(&directory.data(), &COPY_OPTIONS)?;
    let mut copy = Copy {
        snapshot: &moment.snapshot,
        target,
        report: BackupReport::default(),
        progress,
    };
    copy.space(META_SPACE, &shared.meta)?;
    copy.space(CHANGES_SPACE, &shared.changes)?;
    copy.space(TOKENS_SPACE, &shared.tokens)?;
    for table in &moment.tables {
        copy.space(&table_space_name(table.record.id), &table.space)?;
        copy.report.tables += 1;
    }
    copy.target.persist()?;
    (copy.progress)(&copy.report);
    let report = copy.report;
    drop(copy);
    directory.complete()?;
    Ok(report)
}

struct Copy<'a, P> {
    snapshot: &'a Snapshot,
    target: Kv,
    report: BackupReport,
    progress: P,
}

impl<P: FnMut(&BackupReport)> Copy<'_, P> {
    fn space(&mut self, name: &str, source: &Space) -> Result<()> {
        let target = self.target.space(name)?;
        let all = (Bound::Unbounded, Bound::Unbounded);
        let entries = self.snapshot.range(source, all, Direction::Forward);
        let (report, progress) = (&mut self.report, &mut self.progress);
        let counted = entries.inspect(|entry| {
            if let Ok((key, value)) = entry {
                report.entries += 1;
                report.bytes += (key.len() + value.len()) as u64;
                if report.entries.is_multiple_of(PROGRESS_ENTRIES) {
                    progress(report);
                }
            }
        });
        self.target.load(&target, counted)
    }
}

/// Writes a finished copy through to the disk and gives it its name.
fn publish(unfinished: &Path, target: &Path) -> io::Result<()> {
    sync_tree(unfinished)?;
    match fs::remove_dir(target) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => fs::rename(unfinished, target)?,
    }
    match target.parent() {
        Some(parent) if parent != Path::new("") => sync_directory(parent),
        _ => sync_directory(Path::new(".")),
    }
}

fn sync_tree(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => sync_tree(&entry.path())?,
            false => File::open(entry.path())?.sync_all()?,
        }
    }
    sync_directory(path)
}

fn failed(target: &Path, error: &io::Error) -> Error {
    Error::Storage(format!(
        "a backup failed: {error} target={}",
        target.display()
    ))
}
