//! A copy of a store's files that can be opened without changing the store.
//!
//! The key-value store writes while it opens: it truncates journals and removes files that are not in its lists. On a
//! read-only file system, a mirror is opened instead: sorted files, which are immutable, are linked to the originals,
//! and all other files, which are small, are copied.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};

use crate::files::TABLES_FOLDER;
use crate::fresh::copy_file;
use crate::private::create_dir_all;
use crate::scratch::ScratchDir;

/// Prefix of the names of mirrors.
const PREFIX: &str = "floe-mirror-";

/// A mirror in the temporary directory. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Mirror(ScratchDir);

impl Mirror {
    /// Creates a mirror of the key-value store in `data`.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if it cannot be created.
    pub(crate) fn of(data: &Path) -> Result<Self> {
        let folder = std::env::temp_dir();
        let failed = |e: io::Error| {
            Error::Storage(format!(
                "failed to copy the store's journals: {e}: directory={}",
                folder.display()
            ))
        };
        let mirror = Self(ScratchDir::create(&folder, PREFIX).map_err(failed)?);
        copy_folder(data, &mirror.data()).map_err(failed)?;
        Ok(mirror)
    }

    /// The folder of the key-value store.
    pub(crate) fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }
}

fn copy_folder(source: &Path, target: &Path) -> io::Result<()> {
    create_dir_all(target)?;
    let is_sorted = source.file_name().is_some_and(|name| name == TABLES_FOLDER);
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let (from, to) = (entry.path(), target.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_folder(&from, &to)?;
        } else if is_sorted {
            link(&fs::canonicalize(&from)?, &to)?;
        } else if entry.file_type()?.is_file() {
            copy_file(&from, &to)?;
        }
    }
    Ok(())
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(from, to)
}

#[cfg(not(unix))]
fn link(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to).map(drop)
}
