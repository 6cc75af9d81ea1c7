//! The directory of a store: who may use it, and of which format it is.
//!
//! | name | what |
//! |---|---|
//! | `LOCK` | locked by the process that has the store open, and holds its id |
//! | `FORMAT` | `floe-local` and the version of the [layout](crate::layout) |
//! | `RELAXED` | is there while writes are not synced one by one, and after a crash meanwhile |
//! | `data/` | the key-value store |
//!
//! `FORMAT` is written last when a store is made. A directory without it holds at most a store that
//! was never finished, which nobody has been told about, and is made again from the beginning.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};

use crate::layout::FORMAT_VERSION;

const LOCK_FILE: &str = "LOCK";
const FORMAT_FILE: &str = "FORMAT";
const FORMAT_FILE_NEW: &str = "FORMAT.new";
const RELAXED_FILE: &str = "RELAXED";
const DATA_DIR: &str = "data";
const FORMAT_NAME: &str = "floe-local";

/// A directory that this process alone uses.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Holds the lock until it is closed.
    _lock: File,
}

impl Directory {
    /// Locks the directory, made if it is not there, and checks that this version can read it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        fs::create_dir_all(path).map_err(|e| failed("could not be made", path, &e))?;
        refuse_foreign(path)?;
        let directory = Self {
            path: path.to_owned(),
            _lock: lock(path)?,
        };
        match directory.version()? {
            Some(version) if version > FORMAT_VERSION => Err(Error::Storage(format!(
                "the directory was written by a newer version of floe, which this one cannot read: \
                 format={version} supported={FORMAT_VERSION} directory={}",
                path.display()
            ))),
            Some(_) => Ok(directory),
            None => {
                directory.clear()?;
                Ok(directory)
            }
        }
    }

    /// Whether a whole store is in the directory of this path, of whatever version.
    pub(crate) fn is_store(path: &Path) -> Result<bool> {
        let format = path.join(FORMAT_FILE);
        format
            .try_exists()
            .map_err(|e| failed("could not be read", &format, &e))
    }

    /// Where the key-value store is.
    pub(crate) fn data(&self) -> PathBuf {
        self.path.join(DATA_DIR)
    }

    /// Whether the last writes may have reached the disk in any order.
    pub(crate) fn is_relaxed(&self) -> bool {
        self.path.join(RELAXED_FILE).exists()
    }

    /// Says whether writes are synced one by one from now on.
    pub(crate) fn set_relaxed(&self, relaxed: bool) -> Result<()> {
        if relaxed == self.is_relaxed() {
            return Ok(());
        }
        let path = self.path.join(RELAXED_FILE);
        match relaxed {
            true => File::create(&path).and_then(|file| file.sync_all()),
            false => fs::remove_file(&path),
        }
        .and_then(|()| sync_directory(&self.path))
        .map_err(|e| failed("could not be written", &path, &e))
    }

    /// Whether a whole store is in it.
    pub(crate) fn is_complete(&self) -> Result<bool> {
        Ok(self.version()?.is_some())
    }

    /// Says that a whole store is in it from now on.
    pub(crate) fn complete(&self) -> Result<()> {
        self.write_format()
            .map_err(|e| failed("could not be written to", &self.path, &e))
    }

    fn write_format(&self) -> std::io::Result<()> {
        let new = self.path.join(FORMAT_FILE_NEW);
        let mut file = File::create(&new)?;
        writeln!(file, "{FORMAT_NAME} {FORMAT_VERSION}")?;
        file.sync_all()?;
        fs::rename(&new, self.path.join(FORMAT_FILE))?;
        sync_directory(&self.path)
    }

    fn version(&self) -> Result<Option<u32>> {
        let path = self.path.join(FORMAT_FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed("could not be read", &path, &e)),
        };
        let version = text.trim_end().strip_prefix(FORMAT_NAME);
        let version = version.and_then(|version| version.trim_start().parse().ok());
        version.map(Some).ok_or_else(|| {
            Error::Storage(format!(
                "the file that names the format is damaged: path={}",
                path.display()
            ))
        })
    }

    /// Removes the store, or what is left of one that was never finished.
    pub(crate) fn clear(&self) -> Result<()> {
        let format = fs::remove_file(self.path.join(FORMAT_FILE));
        for removed in [format, fs::remove_dir_all(self.data())] {
            match removed {
                Err(e) if e.kind() != ErrorKind::NotFound => {
                    return Err(failed("could not be cleared", &self.path, &e));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Writes the entries of a directory through to the disk.
pub(crate) fn sync_directory(path: &Path) -> std::io::Result<()> {
    // Elsewhere a directory cannot be opened as a file, and its entries are written with the files.
    if cfg!(unix) {
        File::open(path)?.sync_all()?;
    }
    Ok(())
}

/// A directory that holds other things is not made into a store.
fn refuse_foreign(path: &Path) -> Result<()> {
    let unreadable = |e| failed("could not be read", path, &e);
    let ours = [
        LOCK_FILE,
        FORMAT_FILE,
        FORMAT_FILE_NEW,
        RELAXED_FILE,
        DATA_DIR,
    ];
    let (mut known, mut foreign) = (false, None);
    for entry in fs::read_dir(path).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        match name.to_str().is_some_and(|name| ours.contains(&name)) {
            true => known = true,
            false => foreign = Some(name),
        }
    }
    match foreign {
        Some(name) if !known => Err(Error::Storage(format!(
            "the directory holds other files and no store: found={} directory={}",
            name.display(),
            path.display()
        ))),
        _ => Ok(()),
    }
}

fn lock(path: &Path) -> Result<File> {
    let lock_path = path.join(LOCK_FILE);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&lock_path)
        .map_err(|e| failed("could not be locked", path, &e))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(in_use(path, &mut file)),
        Err(TryLockError::Error(e)) => return Err(failed("could not be locked", path, &e)),
    }
    // Who holds the lock is only told to people: a failure to say it does no harm.
    let _ = file.set_len(0);
    let _ = write!(file, "{}", std::process::id());
    Ok(file)
}

fn in_use(path: &Path, lock: &mut File) -> Error {
    let mut holder = String::new();
    let holder = match lock.read_to_string(&mut holder) {
        Ok(_) if !holder.is_empty() => holder,
        _ => "unknown".to_owned(),
    };
    Error::Storage(format!(
        "the directory is in use: process={holder} directory={}",
        path.display()
    ))
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::Storage(format!("{} {what}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_in_use_is_refused_with_the_process_that_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let first = Directory::open(dir.path()).unwrap();
        let message = Directory::open(dir.path()).unwrap_err().to_string();
        let process = format!("process={}", std::process::id());
        assert!(
            message.contains("in use") && message.contains(&process),
            "{message}"
        );
        drop(first);
        Directory::open(dir.path()).unwrap();
    }

    #[test]
    fn an_unfinished_store_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let store = Directory::open(dir.path()).unwrap();
        fs::create_dir(store.data()).unwrap();
        fs::write(store.data().join("0.jnl"), "torn").unwrap();
        drop(store);
        let store = Directory::open(dir.path()).unwrap();
        assert!(!store.data().exists() && !store.is_complete().unwrap());
        fs::create_dir(store.data()).unwrap();
        store.complete().unwrap();
        drop(store);
        let store = Directory::open(dir.path()).unwrap();
        assert!(store.data().exists() && store.is_complete().unwrap());
    }

    #[test]
    fn other_formats_and_other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let format = dir.path().join(FORMAT_FILE);
        fs::write(&format, "floe-local 99\n").unwrap();
        let message = Directory::open(dir.path()).unwrap_err().to_string();
        assert!(
            message.contains("newer") && message.contains("format=99"),
            "{message}"
        );
        fs::write(&format, "something else").unwrap();
        let message = Directory::open(dir.path()).unwrap_err().to_string();
        assert!(message.contains("damaged"), "{message}");
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("notes.txt"), "mine").unwrap();
        let message = Directory::open(dir.path()).unwrap_err().to_string();
        assert!(message.contains("found=notes.txt"), "{message}");
    }
}
