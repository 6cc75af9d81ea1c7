//! The lock of the key-value store, in its folder.
//!
//! The lock of the [directory](crate::dir) keeps other processes out, unless its file is removed while the store is
//! open. So code that reads or changes files before the key-value store is open also holds the store's own lock.

use std::fs::{OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;

use floe_store::{Error, Result};

use crate::private::LockedFile;

/// The name of the file that the key-value store locks.
const LOCK_FILE: &str = "lock";

/// Acquires the lock that the key-value store acquires when it is opened. Drop it before opening the store.
///
/// # Errors
///
/// [`Error::Storage`] if another process has the store open, or the lock file does not exist.
pub(crate) fn acquire(data: &Path) -> Result<LockedFile> {
    let path = data.join(LOCK_FILE);
    let file = OpenOptions::new().read(true).write(true).open(&path);
    let file = file.map_err(|e| failed(&path, &e))?;
    match file.try_lock() {
        Ok(()) => Ok(LockedFile(file)),
        Err(TryLockError::WouldBlock) => Err(in_use(data)),
        Err(TryLockError::Error(e)) => Err(failed(&path, &e)),
    }
}

/// Fails if another process has the store open, and prevents other processes from opening it. Writes nothing. Returns
/// `None` if the lock file is missing, because then no process can open the store.
///
/// # Errors
///
/// [`Error::Storage`] if another process has the store open.
pub(crate) fn share(data: &Path) -> Result<Option<LockedFile>> {
    LockedFile::share(&data.join(LOCK_FILE)).map_err(|_| in_use(data))
}

fn in_use(data: &Path) -> Error {
    Error::Storage(format!(
        "the directory is in use by another process: directory={}",
        data.display()
    ))
}

fn failed(path: &Path, error: &io::Error) -> Error {
    let what = if error.kind() == ErrorKind::NotFound {
        "a file of the store is missing: restore a backup, or run floe doctor with --salvage"
            .to_owned()
    } else {
        format!("the store could not be locked: {error}")
    };
    Error::Storage(format!("{what}: path={}", path.display()))
}
