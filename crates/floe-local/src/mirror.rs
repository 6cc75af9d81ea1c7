//! A copy of a store's files that can be opened without changing the store.
//!
//! The store below writes while it opens: it cuts journals and removes files that its lists do not name. Where nothing
//! may be written, a mirror is opened instead: sorted files, which are never changed, are links to the originals, and
//! all else is small and copied.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};

use crate::files::TABLES_FOLDER;
use crate::fresh::copy_file;
use crate::private::create_dir_all;
use crate::scratch::Scratch;

/// How the names of mirrors begin.
const PREFIX: &str = "floe-mirror-";

/// A mirror, in the folder for temporary files. It is removed in the end.
#[derive(Debug)]
pub(crate) struct Mirror(Scratch);

impl Mirror {
    /// A mirror of the key-value store in `data`.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if it cannot be made.
    pub(crate) fn of(data: &Path) -> Result<Self> {
        let folder = std::env::temp_dir();
        let failed = |e: io::Error| {
            Error::Storage(format!(
                "a copy of the store's journals could not be made: {e}: directory={}",
                folder.display()
            ))
        };
        let mirror = Self(Scratch::make(&folder, PREFIX).map_err(failed)?);
        copy_folder(data, &mirror.data()).map_err(failed)?;
        Ok(mirror)
    }

    /// Where the key-value store is.
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
