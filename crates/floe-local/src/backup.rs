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
use crate::dir::{Directory, Staging};
use crate::kv::{Batch, Bytes, Direction, Kv, KvOptions, Space, Sync};
use crate::layout::damaged;
use crate::layout::record::INSTANCE_KEY;
use crate::moment::Moment;
use crate::private::{is_mount_point, sync_directory};
use crate::shared::Shared;

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

/// Has a copy of the store at `store` made in a directory of its own, which gets its name when it is complete and on the
/// disk. If that fails, there is no directory.
pub(crate) fn write_copy<T>(
    target: &Path,
    store: Option<&Path>,
    copy: impl FnOnce(&Staging) -> Result<T>,
) -> Result<T> {
    refuse_used(target)?;
    if let Some(store) = store {
        refuse_inside(target, store)?;
    }
    let staging = Staging::create(&unfinished_path(target)?)?;
    // Another process may have given a copy this name while it had the directory.
    let copied = refuse_used(target).and_then(|()| copy(&staging));
    let published = copied.and_then(|report| {
        staging.complete()?;
        publish(&staging, target).map_err(|e| match e.kind() {
            io::ErrorKind::ResourceBusy => mount_point(target),
            _ => failed(target, &e),
        })?;
        Ok(report)
    });
    if published.is_err() {
        // What is left carries the marker, and a later copy clears it away.
        let _ = staging.remove();
    }
    published
}

/// A backup inside of its own store would be lost with it, and would be taken for a part of it.
fn refuse_inside(target: &Path, store: &Path) -> Result<()> {
    let absolute = std::path::absolute(target).map_err(|e| failed(target, &e))?;
    // The target need not be there yet: the nearest folder that is there says where it will be.
    let real = absolute
        .ancestors()
        .find_map(|path| path.canonicalize().ok());
    let store = store.canonicalize().map_err(|e| failed(store, &e))?;
    if real.is_some_and(|real| real.starts_with(&store)) {
        return Err(Error::Storage(format!(
            "a copy cannot be written into the store that it is of; choose a directory outside of it: target={} \
             store={}",
            target.display(),
            store.display()
        )));
    }
    Ok(())
}

fn refuse_used(target: &Path) -> Result<()> {
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
            "the target is there already and not empty: target={}",
            target.display()
        )));
    }
    Ok(())
}

/// A copy gets its name by being renamed, which takes the place of no mount point.
fn mount_point(target: &Path) -> Error {
    Error::Storage(format!(
        "the target is a mount point, which a copy cannot replace; choose a directory inside of it: target={}",
        target.display()
    ))
}

fn unfinished_path(target: &Path) -> Result<PathBuf> {
    let name = target.file_name().ok_or_else(|| {
        Error::Storage(format!(
            "the target has no name: target={}",
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
    let moment = Moment::now(&shared.kv);
    moment.check()?;
    let target = Kv::create(&staging.data(), &COPY_OPTIONS)?;
    let mut report = BackupReport {
        tables: moment.tables.len() as u64,
        ..BackupReport::default()
    };
    let counted = entries(&moment).inspect(|entry| {
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

/// Writes a first batch, which changes nothing, into the journal of a copy: one that is empty would be taken for one that
/// was emptied.
pub(crate) fn begin_journal(copy: &Kv) -> Result<()> {
    let instance = copy.snapshot().get(Space::Meta, INSTANCE_KEY)?;
    let instance = instance.ok_or_else(|| damaged("store without instance record"))?;
    let mut batch = Batch::default();
    batch.put(Space::Meta, INSTANCE_KEY, instance.to_vec());
    let begun = copy.commit(batch, Sync::Data);
    begun.map_err(|e| Error::Storage(format!("the journal of a copy could not be begun: {e:?}")))
}

/// Everything that is stored at one moment, in the order of spaces and keys. Of tables that are being removed, nothing.
fn entries(moment: &Moment) -> impl Iterator<Item = Result<(Space, Bytes, Bytes)>> {
    let all = || (Bound::Unbounded, Bound::Unbounded);
    let shared = [Space::Meta, Space::Changes, Space::Tokens].into_iter();
    let shared = shared.flat_map(move |space| {
        let walk = moment.snapshot.range(space, all(), Direction::Forward);
        walk.map(move |entry| entry.map(|(key, value)| (space, key, value)))
    });
    let tables = moment.snapshot.tables().filter(|entry| {
        let removed = |id: &u32| moment.removing.contains(id);
        !entry.as_ref().is_ok_and(|(id, _, _)| removed(id))
    });
    let of_table = |(id, key, value)| (Space::Table(id), key, value);
    shared.chain(tables.map(move |entry| entry.map(of_table)))
}

/// Writes a finished copy through to the disk and gives it its name.
fn publish(staging: &Staging, target: &Path) -> io::Result<()> {
    sync_tree(staging.path())?;
    // An empty directory of this name makes way; any other cannot be removed like this.
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
        "the copy could not be written: {error}: target={}",
        target.display()
    ))
}
