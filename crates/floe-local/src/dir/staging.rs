//! A directory in which a store is made before it has its name.
//!
//! The first thing in it is a marker, which its maker keeps locked. Only a directory with the marker is ever removed, so
//! a directory of the same name that something else made is safe: it is refused.
//!
//! The process that has locked the marker at the path has the directory. A marker that was removed or renamed can be
//! locked, too, by a process that opened it before; so what is locked is compared with what is at the path, and again
//! before anything is removed, renamed or published.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};

use super::{DATA_DIR, FORMAT_FILE, FORMAT_FILE_NEW, failed, format_text};
use crate::private::{self, LockedFile, is_at, sync_directory, write_whole};

/// The file that says that a directory may be removed.
pub(super) const MARKER_FILE: &str = "FLOE-UNFINISHED";

const MARKER: &str = "floe-local: an unfinished store; it may be removed\n";

/// How often making one is tried while other processes make and remove directories of the same name.
const ATTEMPTS_MAX: u32 = 100;

/// A directory in which a store is made. No other process changes it, until this is dropped.
#[derive(Debug)]
pub(crate) struct Staging {
    path: PathBuf,
    /// The marker.
    pub(super) marker: LockedFile,
}

/// What a directory is, seen without a lock: another process may be changing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// It is not there, or empty, or on its way.
    Unfinished,
    /// The store in it was complete, and its data has been moved away.
    Moved,
}

impl Staging {
    /// Makes an empty one. What an earlier process left behind is removed.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when something else has the name, or another process uses it.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        Self::create_with(path, &mut || {})
    }

    /// As [`create`](Self::create). Calls `before_lock` each time that it has made a marker and not locked it yet.
    fn create_with(path: &Path, before_lock: &mut dyn FnMut()) -> Result<Self> {
        for _ in 0..ATTEMPTS_MAX {
            if let Some(mut left) = Self::find(path)? {
                let cleared = left.clear().and_then(|()| left.write_marker());
                cleared.map_err(|e| failed("could not be cleared", path, &e))?;
                return Ok(left);
            }
            if let Some(made) = Self::make(path, before_lock)? {
                return Ok(made);
            }
        }
        Err(in_use(path))
    }

    /// Makes one, unless another process was faster.
    fn make(path: &Path, before_lock: &mut dyn FnMut()) -> Result<Option<Self>> {
        let unmade = |e: io::Error| match e.kind() {
            ErrorKind::AlreadyExists | ErrorKind::NotFound => Ok(None),
            _ => Err(failed("could not be made", path, &e)),
        };
        // A process that died before it made the marker leaves an empty directory.
        match private::create_dir(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return Err(failed("could not be made", path, &e));
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
        written.map_err(|e| failed("could not be made", path, &e))?;
        Ok(Some(staging))
    }

    /// The one of this path that an earlier process left behind, if it is there.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when something else has the name, or another process uses it.
    pub(crate) fn find(path: &Path) -> Result<Option<Self>> {
        if names(path)?.is_none_or(|names| names.is_empty()) {
            return Ok(None);
        }
        let marker = match private::options().open(path.join(MARKER_FILE)) {
            Ok(marker) => marker,
            // It was removed meanwhile, or was never there.
            Err(e) if e.kind() == ErrorKind::NotFound => return Self::look(path).map(|_| None),
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

    /// Looks at what has this path, and changes and locks nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when something else has the name.
    pub(super) fn look(path: &Path) -> Result<Look> {
        let Some(names) = names(path)?.filter(|names| !names.is_empty()) else {
            return Ok(Look::Unfinished);
        };
        if !names.iter().any(|name| name == MARKER_FILE) {
            return Err(foreign(path));
        }
        match private::options().write(false).open(path.join(MARKER_FILE)) {
            Ok(marker) if is_marker(&marker, names.len() == 1) => {}
            // It was removed meanwhile, by the process that has it.
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Look::Unfinished),
            Ok(_) | Err(_) => return Err(foreign(path)),
        }
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        Ok(if has(FORMAT_FILE) && !has(DATA_DIR) {
            Look::Moved
        } else {
            Look::Unfinished
        })
    }

    /// Takes the directory; none if the marker is no longer the one that the path leads to.
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

    /// Fails if the path leads to another directory by now.
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

    /// Where the key-value store is made.
    pub(crate) fn data(&self) -> PathBuf {
        self.path.join(DATA_DIR)
    }

    /// Says that the store in it is whole.
    pub(crate) fn complete(&self) -> Result<()> {
        write_whole(&self.path, FORMAT_FILE_NEW, FORMAT_FILE, &format_text())
            .map_err(|e| failed("could not be written to", &self.path, &e))
    }

    /// Gives the whole directory its name, and takes the marker away.
    pub(crate) fn publish(&self, target: &Path) -> io::Result<()> {
        self.check_in_place()?;
        fs::rename(&self.path, target)?;
        let marker = target.join(MARKER_FILE);
        // A process that has opened the store since may have removed it.
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

    /// Removes it with everything in it.
    pub(crate) fn remove(self) -> Result<()> {
        // The marker goes last, so that a removal that was interrupted can go on.
        let removed = self.clear().and_then(|()| {
            fs::remove_file(self.path.join(MARKER_FILE))?;
            match fs::remove_dir(&self.path) {
                // Another process makes one in the empty directory, or has removed that.
                Err(e) if e.kind() == ErrorKind::DirectoryNotEmpty || is_gone(&e) => Ok(()),
                removed => removed,
            }
        });
        removed.map_err(|e| failed("could not be removed", &self.path, &e))
    }
}

/// Takes the marker out of a store that was given its name just before its process died.
pub(super) fn remove_marker(store: &Path) -> io::Result<()> {
    let path = store.join(MARKER_FILE);
    match private::options().write(false).open(&path) {
        Ok(marker) if is_marker(&marker, false) => remove_if_there(&path),
        _ => Ok(()),
    }
}

/// The names in a directory; none if it is not there.
fn names(path: &Path) -> Result<Option<Vec<std::ffi::OsString>>> {
    let unreadable = |e| failed("could not be read", path, &e);
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Err(foreign(path)),
        Err(e) if is_gone(&e) => return Ok(None),
        Err(e) => return Err(unreadable(e)),
    }
    match private::names(path) {
        Ok(names) => Ok(Some(names)),
        Err(e) if is_gone(&e) => Ok(None),
        Err(e) => Err(unreadable(e)),
    }
}

/// Whether a file is a marker. One that was cut short by a crash, or is just being written, is the only thing there.
fn is_marker(file: &File, is_alone: bool) -> bool {
    let is_file = file.metadata().is_ok_and(|found| found.is_file());
    let mut text = String::new();
    let limit = MARKER.len() as u64 + 1;
    let is_read = is_file && file.take(limit).read_to_string(&mut text).is_ok();
    is_read && (text == MARKER || (is_alone && MARKER.starts_with(&text)))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if !is_gone(&e) => Err(e),
        _ => Ok(()),
    }
}

fn is_gone(error: &io::Error) -> bool {
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
        "the name is taken by something that floe did not make, so nothing was changed; move it away or choose another \
         name: path={}",
        path.display()
    ))
}

#[cfg(test)]
mod tests;
