//! Backups: a copy of the whole store in a new directory, made while the engine runs.
//!
//! The copy is of one snapshot: it contains every commit up to a point in time, complete, and none after it. It is a
//! normal store and is opened like one. Until the copy is complete and on disk, its directory has the suffix `.tmp`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};

use crate::LocalEngine;
use crate::dir::{Directory, Staging};
use crate::kv::{Batch, Bytes, Direction, Kv, KvOptions, Space, Sync};
use crate::layout::damaged;
use crate::layout::record::INSTANCE_KEY;
use crate::private::{is_mount_point, sync_directory};
use crate::shared::Shared;
use crate::store_snapshot::StoreSnapshot;

/// Number of entries between two progress reports.
const PROGRESS_ENTRIES: u64 = 10_000;

/// Sorted entries are written directly to files, which needs little memory.
const COPY_OPTIONS: KvOptions = KvOptions {
    cache_bytes: 1 << 20,
    write_buffer_bytes: 1 << 20,
};

/// Progress of a backup, and its final result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Tables copied so far.
    pub tables: u64,
    /// Entries copied so far: items, index entries, change records and everything else.
    pub entries: u64,
    /// Bytes copied so far.
    pub bytes: u64,
}

impl LocalEngine {
    /// Copies a snapshot of the whole store to a new directory that [`open`](Self::open) can open. Reads and writes are
    /// not blocked. Also works for an engine in memory.
    ///
    /// Blocks until the copy is complete and on disk. If it fails, no directory is left.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if the target exists and is not empty, if the store cannot be read, or if the copy cannot be
    /// written.
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

    /// Like [`backup`](Self::backup), and reports its progress.
    ///
    /// # Errors
    ///
    /// As [`backup`](Self::backup).
    pub fn backup_with(
        &self,
        target: impl AsRef<Path>,
        progress: impl FnMut(&BackupReport),
    ) -> Result<BackupReport> {
        backup(self.running.shared(), target.as_ref(), progress)
    }
}

fn backup(
    shared: &Shared,
    target: &Path,
    progress: impl FnMut(&BackupReport),
) -> Result<BackupReport> {
    let store = shared.directory.as_ref().map(Directory::path);
    write_copy(target, store, |staging| copy(shared, staging, progress))
}

/// Writes a copy of the store at `store` to a staging directory, which is renamed to `target` once it is complete and
/// on disk. If that fails, no directory is left.
pub(crate) fn write_copy<T>(
    target: &Path,
    store: Option<&Path>,
    copy: impl FnOnce(&Staging) -> Result<T>,
) -> Result<T> {
    reject_used(target)?;
    if let Some(store) = store {
        reject_inside(target, store)?;
    }
    let staging = Staging::create(&unfinished_path(target)?)?;
    // Another process may have published a copy under this name while it held the staging directory.
    let copied = reject_used(target).and_then(|()| copy(&staging));
    let published = copied.and_then(|report| {
        staging.complete()?;
        publish(&staging, target).map_err(|e| match e.kind() {
            io::ErrorKind::ResourceBusy => mount_point(target),
            _ => failed(target, &e),
        })?;
        Ok(report)
    });
    if published.is_err() {
        // Anything left carries the marker, and a later copy removes it.
        let _ = staging.remove();
    }
    published
}

/// A backup inside its own store would be lost with it, and would be mistaken for a part of it.
fn reject_inside(target: &Path, store: &Path) -> Result<()> {
    let absolute = std::path::absolute(target).map_err(|e| failed(target, &e))?;
    // The target need not exist: its nearest existing parent determines where it will be.
    let real = absolute
        .ancestors()
        .find_map(|path| path.canonicalize().ok());
    let store = store.canonicalize().map_err(|e| failed(store, &e))?;
    if real.is_some_and(|real| real.starts_with(&store)) {
        return Err(Error::Storage(format!(
            "cannot write a copy of a store into the store itself: choose a directory outside of it: target={} \
             store={}",
            target.display(),
            store.display()
        )));
    }
    Ok(())
}

fn reject_used(target: &Path) -> Result<()> {
    let used = match fs::symlink_metadata(target) {
        Ok(found) if found.is_dir() => {
            if is_mount_point(target).map_err(|e| failed(target, &e))? {
                return Err(mount_point(target));
            }
            let mut entries = fs::read_dir(target).map_err(|e| failed(target, &e))?;
            entries.next().is_some()
        }
        Ok(_) => {
            return Err(Error::Storage(format!(
                "the target is not a directory: target={}",
                target.display()
            )));
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => false,
        Err(e) => return Err(failed(target, &e)),
    };
    if used {
        return Err(Error::Storage(format!(
            "the target exists and is not empty: target={}",
            target.display()
        )));
    }
    Ok(())
}

/// A copy is published by renaming it, and a rename cannot replace a mount point.
fn mount_point(target: &Path) -> Error {
    Error::Storage(format!(
        "the target is a mount point, which a copy cannot replace: choose a directory inside it: target={}",
        target.display()
    ))
}

fn unfinished_path(target: &Path) -> Result<PathBuf> {
    let name = target.file_name().ok_or_else(|| {
        Error::Storage(format!(
            "the target has no file name: target={}",
            target.display()
        ))
    })?;
    let mut unfinished = OsString::from(name);
    unfinished.push(".tmp");
    Ok(target.with_file_name(unfinished))
}

fn copy(
    shared: &Shared,
    staging: &Staging,
    mut progress: impl FnMut(&BackupReport),
) -> Result<BackupReport> {
    let store = StoreSnapshot::take(&shared.kv);
    store.check()?;
    let target = Kv::create(&staging.data(), &COPY_OPTIONS)?;
    let mut report = BackupReport {
        tables: store.tables.len() as u64,
        ..BackupReport::default()
    };
    let counted = entries(&store).inspect(|entry| {
        if let Ok((_, key, value)) = entry {
            report.entries += 1;
            report.bytes += (key.len() + value.len()) as u64;
            if report.entries.is_multiple_of(PROGRESS_ENTRIES) {
                progress(&report);
            }
        }
    });
    target.load(counted)?;
    begin_journal(&target)?;
    target.persist()?;
    progress(&report);
    Ok(report)
}

/// Writes a first batch, without changes, to the journal of a copy: an empty journal would look like one that was
/// truncated.
pub(crate) fn begin_journal(copy: &Kv) -> Result<()> {
    let instance = copy.snapshot().get(Space::Meta, INSTANCE_KEY)?;
    let instance = instance.ok_or_else(|| damaged("store without instance record"))?;
    let mut batch = Batch::default();
    batch.put(Space::Meta, INSTANCE_KEY, instance.to_vec());
    let begun = copy.commit(batch, Sync::Data);
    begun.map_err(|e| Error::Storage(format!("failed to begin the journal of a copy: {e:?}")))
}

/// All entries at one point in time, ordered by space and key, except those of tables that are being removed.
fn entries(store: &StoreSnapshot) -> impl Iterator<Item = Result<(Space, Bytes, Bytes)>> {
    let all = || (Bound::Unbounded, Bound::Unbounded);
    let shared = [Space::Meta, Space::Changes, Space::Tokens].into_iter();
    let shared = shared.flat_map(move |space| {
        let iterator = store.snapshot.range(space, all(), Direction::Forward);
        iterator.map(move |entry| entry.map(|(key, value)| (space, key, value)))
    });
    let tables = store.snapshot.tables().filter(|entry| {
        let removed = |id: &u32| store.removing.contains(id);
        !entry.as_ref().is_ok_and(|(id, _, _)| removed(id))
    });
    let of_table = |(id, key, value)| (Space::Table(id), key, value);
    shared.chain(tables.map(move |entry| entry.map(of_table)))
}

/// Syncs a finished copy to disk and renames it to its final name.
fn publish(staging: &Staging, target: &Path) -> io::Result<()> {
    sync_tree(staging.path())?;
    // Removes an empty directory of this name; a non-empty one cannot be removed like this.
    match fs::remove_dir(target) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => staging.publish(target)?,
    }
    match target.parent() {
        Some(parent) if parent != Path::new("") => sync_directory(parent),
        _ => sync_directory(Path::new(".")),
    }
}

fn sync_tree(path: &Path) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        } else {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_directory(path)
}

fn failed(target: &Path, error: &io::Error) -> Error {
    Error::Storage(format!(
        "failed to write the copy: {error}: target={}",
        target.display()
    ))
}
