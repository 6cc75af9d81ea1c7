//! A copy of a store's files that can be opened without changing the store.
//!
//! The store below writes while it opens: it cuts journals and removes files that its lists do not name. Where nothing
//! may be written, a mirror is opened instead: sorted files, which are never changed, are links to the originals, and
//! all else is small and copied.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use floe_store::{Error, Result};

use crate::files::TABLES_FOLDER;
use crate::fresh::copy_file;
use crate::private::{create_dir, create_dir_all};

/// A mirror, in the folder for temporary files. It is removed in the end.
#[derive(Debug)]
pub(crate) struct Mirror {
    path: PathBuf,
}

impl Mirror {
    /// A mirror of the key-value store in `data`.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if it cannot be made.
    pub(crate) fn of(data: &Path) -> Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("floe-mirror-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let failed = |e: io::Error| {
            Error::Storage(format!(
                "a copy of the store's journals could not be made: {e}: path={}",
                path.display()
            ))
        };
        // One that is there already is not ours.
        create_dir(&path).map_err(failed)?;
        let mirror = Self { path: path.clone() };
        copy_folder(data, &mirror.data()).map_err(failed)?;
        Ok(mirror)
    }

    /// Where the key-value store is.
    pub(crate) fn data(&self) -> PathBuf {
        self.path.join("data")
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        // Made by this process, in the folder for temporary files; links are removed, not what they lead to.
        drop(fs::remove_dir_all(&self.path));
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
