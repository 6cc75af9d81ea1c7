//! A directory in which a store is made before it has its name.
//!
//! It is made new, and the first thing in it is a marker. Only a directory with the marker is ever removed, so a
//! directory of the same name that something else made is safe: it is refused.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};

use super::{
    DATA_DIR, FORMAT_FILE, FORMAT_FILE_NEW, LockedFile, failed, format_text, private_dirs,
    private_file, sync_directory, write_whole,
};

/// The file that says that a directory may be removed.
pub(super) const MARKER_FILE: &str = "FLOE-UNFINISHED";

const MARKER: &str = "floe-local: an unfinished store; it may be removed\n";

/// A directory in which a store is made.
#[derive(Debug)]
pub(crate) struct Staging {
    path: PathBuf,
    /// The marker.
    pub(super) marker: LockedFile,
}

impl Staging {
    /// Makes an empty one. One that was left behind is removed.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when something else has the name, or another process uses it.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        if let Some(left) = Self::find(path)? {
            left.remove()?;
        }
        Self::make(path).map_err(|e| failed("could not be made", path, &e))
    }

    fn make(path: &Path) -> io::Result<Self> {
        if let Err(e) = private_dirs().create(path) {
            // A process that died before it wrote the marker leaves an empty directory.
            let is_empty = || fs::read_dir(path).is_ok_and(|mut found| found.next().is_none());
            if e.kind() != ErrorKind::AlreadyExists || !is_empty() {
                return Err(e);
            }
        }
        let mut marker = private_file()
            .create_new(true)
            .open(path.join(MARKER_FILE))?;
        marker.write_all(MARKER.as_bytes())?;
        marker.sync_all()?;
        sync_directory(path)?;
        marker.try_lock().map_err(io::Error::from)?;
        Ok(Self {
            path: path.to_owned(),
            marker: LockedFile(marker),
        })
    }

    /// The one of this path that an earlier process left behind, if it is there.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when something else has the name, or another process uses it.
    pub(crate) fn find(path: &Path) -> Result<Option<Self>> {
        let found = match fs::symlink_metadata(path) {
            Ok(found) => found,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed("could not be read", path, &e)),
        };
        let marker = path.join(MARKER_FILE);
        let is_marker = fs::symlink_metadata(&marker).is_ok_and(|found| found.is_file());
        if !found.is_dir() || !is_marker {
            let is_empty = || fs::read_dir(path).is_ok_and(|mut found| found.next().is_none());
            if found.is_dir() && is_empty() {
                return Ok(None);
            }
            return Err(foreign(path));
        }
        let mut marker =
            File::open(&marker).map_err(|e| failed("could not be read", &marker, &e))?;
        let mut text = String::new();
        let is_read = marker.read_to_string(&mut text).is_ok();
        // A marker that was cut short by a crash was the only thing written.
        let is_alone = || fs::read_dir(path).is_ok_and(|found| found.count() == 1);
        let is_ours = is_read && (text == MARKER || (MARKER.starts_with(&text) && is_alone()));
        if !is_ours {
            return Err(foreign(path));
        }
        match marker.try_lock() {
            Ok(()) => Ok(Some(Self {
                path: path.to_owned(),
                marker: LockedFile(marker),
            })),
            Err(TryLockError::WouldBlock) => Err(Error::Storage(format!(
                "another process is writing to the directory: directory={}",
                path.display()
            ))),
            Err(TryLockError::Error(e)) => Err(failed("could not be locked", path, &e)),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the key-value store is made.
    pub(crate) fn data(&self) -> PathBuf {
        self.path.join(DATA_DIR)
    }

    /// Whether the store was complete and its data has been moved away.
    pub(super) fn is_moved(&self) -> bool {
        self.path.join(FORMAT_FILE).exists() && !self.data().exists()
    }

    /// Says that the store in it is whole.
    pub(crate) fn complete(&self) -> Result<()> {
        write_whole(&self.path, FORMAT_FILE_NEW, FORMAT_FILE, &format_text())
            .map_err(|e| failed("could not be written to", &self.path, &e))
    }

    /// Gives the whole directory its name, and takes the marker away.
    pub(crate) fn publish(&self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        fs::remove_file(target.join(MARKER_FILE))?;
        sync_directory(target)
    }

    /// Removes it with everything in it.
    pub(crate) fn remove(self) -> Result<()> {
        // The marker goes last, so that a removal that was interrupted can go on.
        let removed = fs::read_dir(&self.path).and_then(|entries| {
            for entry in entries {
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
            sync_directory(&self.path)?;
            fs::remove_file(self.path.join(MARKER_FILE))?;
            fs::remove_dir(&self.path)
        });
        drop(self.marker);
        removed.map_err(|e| failed("could not be removed", &self.path, &e))
    }
}

fn foreign(path: &Path) -> Error {
    Error::Storage(format!(
        "the name is taken by something that floe did not make, so nothing was changed; move it away or choose another \
         name: path={}",
        path.display()
    ))
}
