//! The lock that the store below has of its own, in its folder.
//!
//! The lock of the [directory](crate::dir) keeps other processes out, unless its file is removed under a running one. So what
//! changes or reads files before the store below is open holds the lock of that, too.

use std::fs::{OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;

use floe_store::{Error, Result};

use crate::private::LockedFile;

/// The name of the file that the store below locks.
const LOCK_FILE: &str = "lock";

/// Takes the lock that the store below will take when it is opened, for which this must be dropped.
///
/// # Errors
///
/// [`Error::Storage`] if another process has the store open, or there is no such file.
pub(crate) fn take(data: &Path) -> Result<LockedFile> {
    let path = data.join(LOCK_FILE);
    let file = OpenOptions::new().read(true).write(true).open(&path);
    let file = file.map_err(|e| failed(&path, &e))?;
    match file.try_lock() {
        Ok(()) => Ok(LockedFile(file)),
        Err(TryLockError::WouldBlock) => Err(in_use(data)),
        Err(TryLockError::Error(e)) => Err(failed(&path, &e)),
    }
}

/// Refuses a store that a process has open, and keeps others from opening it. Writes nothing. A store that has lost
/// the file cannot be opened by any process.
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
        "a file of the store is missing; restore a backup, or run floe doctor with --salvage"
            .to_owned()
    } else {
        format!("the store could not be locked: {error}")
    };
    Error::Storage(format!("{what}: path={}", path.display()))
}
