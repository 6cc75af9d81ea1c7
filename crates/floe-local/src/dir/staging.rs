//! A staging directory, in which a store is created before it gets its final name.
//!
//! The first file in it is a marker, which its creator keeps locked. Only a directory with the marker is ever removed,
//! so a directory of the same name that belongs to something else is safe: it is rejected.
//!
//! The process that has locked the marker at the path owns the directory. A marker that was removed or renamed can
//! still be locked by a process that opened it before, so the locked file is compared with the one at the path, and
//! compared again before anything is removed, renamed or published.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};

use super::{DATA_DIR, FORMAT_FILE, FORMAT_FILE_NEW, failed, format_text};
use crate::private::{self, LockedFile, is_at, sync_directory, write_atomically};

/// The file that marks a directory as removable.
pub(super) const MARKER_FILE: &str = "FLOE-UNFINISHED";

const MARKER: &str = "floe-local: an unfinished store; it may be removed\n";

/// Maximum number of attempts to create one while other processes create and remove directories of the same name.
const ATTEMPTS_MAX: u32 = 100;

/// A staging directory. No other process changes it until this is dropped.
#[derive(Debug)]
pub(crate) struct Staging {
    path: PathBuf,
    /// The marker.
    pub(super) marker: LockedFile,
}

/// State of a staging directory, read without a lock while another process may be changing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StagingState {
    /// It does not exist, or is empty or incomplete.
    Unfinished,
    /// It contained a complete store, whose data was moved away.
    Moved,
}

impl Staging {
    /// Creates an empty staging directory. Removes leftovers of an earlier process.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if the path belongs to something else, or another process uses it.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        Self::create_with(path, &mut || {})
    }

    /// Like [`create`](Self::create). Calls `before_lock` whenever it has created a marker and not yet locked it.
    fn create_with(path: &Path, before_lock: &mut dyn FnMut()) -> Result<Self> {
        for _ in 0..ATTEMPTS_MAX {
            if let Some(mut left) = Self::find(path)? {
                let cleared = left.clear().and_then(|()| left.write_marker());
                cleared.map_err(|e| failed("could not be emptied", path, &e))?;
                return Ok(left);
            }
            if let Some(made) = Self::make(path, before_lock)? {
                return Ok(made);
            }
        }
        Err(in_use(path))
    }

    /// Creates the directory, unless another process does so at the same time.
    fn make(path: &Path, before_lock: &mut dyn FnMut()) -> Result<Option<Self>> {
        let unmade = |e: io::Error| match e.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotFound => Ok(None),
            _ => Err(failed("could not be created", path, &e)),
        };
        // A process that died before it created the marker leaves an empty directory.
        match private::create_dir(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(failed("could not be created", path, &e));
            }
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return unmade(e),
            _ => {}
        }
        let marker = match private::create_file(&path.join(MARKER_FILE)) {
            Ok(marker) => marker,
            Err(e) => return unmade(e),
        };
        before_lock();
        let Some(mut staging) = Self::lock(path, marker)? else {
            return Ok(None);
        };
        let written = staging.write_marker();
        written.map_err(|e| failed("could not be created", path, &e))?;
        Ok(Some(staging))
    }

    /// Opens the staging directory that an earlier process left at this path, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if the path belongs to something else, or another process uses it.
    pub(crate) fn find(path: &Path) -> Result<Option<Self>> {
        if names(path)?.is_none_or(|names| names.is_empty()) {
            return Ok(None);
        }
        let marker = match private::options().open(path.join(MARKER_FILE)) {
            Ok(marker) => marker,
            // The marker was removed meanwhile, or never existed.
            Err(e) if e.kind() == ErrorKind::NotFound => return Self::state(path).map(|_| None),
            Err(_) => return Err(foreign(path)),
        };
        let Some(staging) = Self::lock(path, marker)? else {
            return Ok(None);
        };
        let is_alone = names(path)?.is_some_and(|names| names.len() == 1);
        if is_marker(&staging.marker.0, is_alone) {
            Ok(Some(staging))
        } else {
            Err(foreign(path))
        }
    }

    /// Determines the state of the directory at this path, without changing or locking anything.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if the path belongs to something else.
    pub(super) fn state(path: &Path) -> Result<StagingState> {
        let Some(names) = names(path)?.filter(|names| !names.is_empty()) else {
            return Ok(StagingState::Unfinished);
        };
        if !names.iter().any(|name| name == MARKER_FILE) {
            return Err(foreign(path));
        }
        match private::options().write(false).open(path.join(MARKER_FILE)) {
            Ok(marker) if is_marker(&marker, names.len() == 1) => {}
            // It was removed meanwhile by the process that owns it.
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(StagingState::Unfinished),
            Ok(_) | Err(_) => return Err(foreign(path)),
        }
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        Ok(if has(FORMAT_FILE) && !has(DATA_DIR) {
            StagingState::Moved
        } else {
            StagingState::Unfinished
        })
    }

    /// Locks the directory. `None` if the marker is no longer the file at the path.
    fn lock(path: &Path, marker: File) -> Result<Option<Self>> {
        let unlocked = |e: io::Error| failed("could not be locked", path, &e);
        match marker.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(path)),
            Err(TryLockError::Error(e)) => return Err(unlocked(e)),
        }
        let staging = Self {
            path: path.to_owned(),
            marker: LockedFile(marker),
        };
        let is_in_place = staging.is_in_place().map_err(unlocked)?;
        Ok(is_in_place.then_some(staging))
    }

    fn is_in_place(&self) -> io::Result<bool> {
        is_at(&self.marker.0, &self.path.join(MARKER_FILE))
    }

    /// Fails if there is now another directory at the path.
    fn check_in_place(&self) -> io::Result<()> {
        if self.is_in_place()? {
            Ok(())
        } else {
            Err(io::Error::other("it was removed or replaced"))
        }
    }

    fn write_marker(&mut self) -> io::Result<()> {
        self.marker.0.rewind()?;
        self.marker.0.write_all(MARKER.as_bytes())?;
        self.marker.0.sync_all()?;
        sync_directory(&self.path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder for the key-value store.
    pub(crate) fn data(&self) -> PathBuf {
        self.path.join(DATA_DIR)
    }

    /// Marks the store in it as complete.
    pub(crate) fn complete(&self) -> Result<()> {
        write_atomically(&self.path, FORMAT_FILE_NEW, FORMAT_FILE, &format_text())
            .map_err(|e| failed("could not be written to", &self.path, &e))
    }

    /// Renames the complete directory to `target`, and removes the marker.
    pub(crate) fn publish(&self, target: &Path) -> io::Result<()> {
        self.check_in_place()?;
        fs::rename(&self.path, target)?;
        let marker = target.join(MARKER_FILE);
        // A process that has opened the store since then may have removed the marker.
        if is_at(&self.marker.0, &marker)? {
            remove_if_there(&marker)?;
        }
        sync_directory(target)
    }

    /// Removes everything but the marker.
    fn clear(&self) -> io::Result<()> {
        self.check_in_place()?;
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name() == MARKER_FILE {
                continue;
            }
            if entry.file_type()?.is_dir() {
                fs::remove_dir_all(entry.path())?;
            } else {
                fs::remove_file(entry.path())?;
            }
        }
        sync_directory(&self.path)
    }

    /// Removes the directory with its content.
    pub(crate) fn remove(self) -> Result<()> {
        // The marker is removed last, so that an interrupted removal can be continued.
        let removed = self.clear().and_then(|()| {
            fs::remove_file(self.path.join(MARKER_FILE))?;
            match fs::remove_dir(&self.path) {
                // Another process is creating one in the empty directory, or has removed the directory.
                Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty || is_not_found(&e) => Ok(()),
                removed => removed,
            }
        });
        removed.map_err(|e| failed("could not be removed", &self.path, &e))
    }
}

/// Removes the marker from a store that was published just before its process died.
pub(super) fn remove_marker(store: &Path) -> io::Result<()> {
    let path = store.join(MARKER_FILE);
    match private::options().write(false).open(&path) {
        Ok(marker) if is_marker(&marker, false) => remove_if_there(&path),
        _ => Ok(()),
    }
}

/// The names in a directory; `None` if it does not exist.
fn names(path: &Path) -> Result<Option<Vec<std::ffi::OsString>>> {
    let unreadable = |e| failed("could not be read", path, &e);
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(foreign(path)),
        Err(e) if is_not_found(&e) => return Ok(None),
        Err(e) => return Err(unreadable(e)),
    }
    match private::names(path) {
        Ok(names) => Ok(Some(names)),
        Err(e) if is_not_found(&e) => Ok(None),
        Err(e) => Err(unreadable(e)),
    }
}

/// Whether a file is a marker. A marker that is partly written is accepted only if it is alone in its directory.
fn is_marker(file: &File, is_alone: bool) -> bool {
    let is_file = file.metadata().is_ok_and(|found| found.is_file());
    let mut text = String::new();
    let limit = MARKER.len() as u64 + 1;
    let is_read = is_file && file.take(limit).read_to_string(&mut text).is_ok();
    is_read && (text == MARKER || (is_alone && MARKER.starts_with(&text)))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if !is_not_found(&e) => Err(e),
        _ => Ok(()),
    }
}

fn is_not_found(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound
}

fn in_use(path: &Path) -> Error {
    Error::Storage(format!(
        "another process is writing to the directory: directory={}",
        path.display()
    ))
}

fn foreign(path: &Path) -> Error {
    Error::Storage(format!(
        "the path belongs to something that floe did not create, so it was not changed: move it away or choose another \
        name: path={}",
        path.display()
    ))
}

#[cfg(test)]
mod tests;
