//! The directory of a store: its lock, its format, and how it is created.
//!
//! | name | content |
//! |---|---|
//! | `LOCK` | id of the process that has the store open, which holds a lock on this file |
//! | `FORMAT` | `floe-local` and the version of the [layout](crate::layout) |
//! | `SEAL` | the [seal](crate::seal) of a closed store |
//! | `RELAXED` | exists while writes are not synced individually, and after a crash in that mode |
//! | `data/` | the key-value store |
//! | `.floe-new/` | a store that is being created |
//!
//! Opening never removes files that it did not create. A new store is created in a [staging directory](Staging) that
//! contains a marker, and moved into place when it is complete; only a directory with the marker is ever removed. A
//! directory with any other content, or with `data/` but no `FORMAT`, is rejected and left unchanged.

mod data_folder;
mod staging;

use std::ffi::OsString;
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};

use crate::layout::FORMAT_VERSION;
use crate::private::{self, FileId, LockedFile, sync_directory, write_atomically};
use crate::seal;
use data_folder::DataFolder;
pub(crate) use staging::Staging;
use staging::StagingState;

pub(crate) const LOCK_FILE: &str = "LOCK";
const FORMAT_FILE: &str = "FORMAT";
const FORMAT_FILE_NEW: &str = "FORMAT.new";
pub(crate) const SEAL_FILE: &str = "SEAL";
const SEAL_FILE_NEW: &str = "SEAL.new";
const RELAXED_FILE: &str = "RELAXED";
const DATA_DIR: &str = "data";
const STAGING_DIR: &str = ".floe-new";
const FORMAT_NAME: &str = "floe-local";

/// File systems create it in their root directory.
const LOST_AND_FOUND: &str = "lost+found";

/// A directory that is locked by this process.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// `None` on a read-only file system.
    lock: Option<Lock>,
    /// Identifies the folder of its data; `None` until it is known to contain a store, and on a read-only file system.
    data_folder: Option<DataFolder>,
    is_read_only: bool,
}

/// The lock of a directory.
#[derive(Debug)]
struct Lock {
    #[cfg_attr(not(test), expect(dead_code, reason = "keeps the file locked"))]
    file: LockedFile,
    id: FileId,
}

/// The content of a directory.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    /// A store.
    Store,
    /// Nothing, or a store whose creation was not finished.
    Nothing,
    /// A store that is complete except for its `FORMAT`.
    WithoutFormat,
}

impl Directory {
    /// Locks the directory, and creates it if it does not exist. If it is empty, creates a store in it: `make` creates
    /// the key-value store in a given folder.
    pub(crate) fn open(path: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let path =
            std::path::absolute(path).map_err(|e| failed("could not be resolved", path, &e))?;
        if fs::metadata(&path).is_ok_and(|found| !found.is_dir()) {
            return Err(Error::Storage(format!(
                "the store's path is not a directory: path={}",
                path.display()
            )));
        }
        private::create_dir_all(&path).map_err(|e| failed("could not be created", &path, &e))?;
        // Checked before locking, because locking creates a file.
        inspect(&path)?;
        let mut directory = Self::lock(path)?;
        // Another process may have created a store meanwhile.
        match inspect(&directory.path)? {
            Content::Store if directory.is_read_only => {}
            Content::Nothing | Content::WithoutFormat if directory.is_read_only => {
                return Err(Error::Storage(format!(
                    "the file system is read-only and contains no store: directory={}",
                    directory.path.display()
                )));
            }
            Content::Store => directory.remove_leftovers(),
            Content::Nothing => directory.create_store(make)?,
            Content::WithoutFormat => directory.finish_creation()?,
        }
        if !directory.is_read_only {
            let data = directory.data();
            let data_folder =
                DataFolder::of(&data).map_err(|e| failed("could not be read", &data, &e))?;
            directory.data_folder = Some(data_folder);
        }
        Ok(directory)
    }

    /// Locks the directory of an existing store.
    pub(crate) fn open_existing(path: &Path) -> Result<Self> {
        if !Self::is_store(path)? {
            return Err(Error::Storage(format!(
                "no store found: directory={}",
                path.display()
            )));
        }
        Self::open(path, |_| Ok(()))
    }

    /// Whether the directory contains a complete store, of any version.
    pub(crate) fn is_store(path: &Path) -> Result<bool> {
        Ok(format_file(path)?.is_some_and(|found| found.is_file()))
    }

    /// The path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder of the key-value store.
    pub(crate) fn data(&self) -> PathBuf {
        data_of(&self.path)
    }

    /// Whether it is on a read-only file system.
    pub(crate) const fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Whether the latest writes may have reached the disk in any order.
    pub(crate) fn is_relaxed(&self) -> bool {
        fs::symlink_metadata(self.path.join(RELAXED_FILE)).is_ok()
    }

    /// Records whether writes are synced individually from now on.
    pub(crate) fn set_relaxed(&self, relaxed: bool) -> Result<()> {
        if relaxed == self.is_relaxed() {
            return Ok(());
        }
        let path = self.path.join(RELAXED_FILE);
        let written = if relaxed {
            private::replace_file(&path).and_then(|file| file.sync_all())
        } else {
            fs::remove_file(&path)
        };
        written
            .and_then(|()| sync_directory(&self.path))
            .map_err(|e| failed("could not be written", &path, &e))
    }

    /// Checks the journals against the seal, if the store was closed.
    pub(crate) fn check_seal(&self) -> Result<()> {
        let path = self.path.join(SEAL_FILE);
        match fs::read_to_string(&path) {
            Ok(seal) => seal::check(&seal, &self.data()),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(e) => Err(failed("could not be read", &path, &e)),
        }
    }

    /// Removes the seal, before the store is written to.
    pub(crate) fn break_seal(&self) -> Result<()> {
        let path = self.path.join(SEAL_FILE);
        match fs::remove_file(&path) {
            Ok(()) => sync_directory(&self.path),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
        }
        .map_err(|e| failed("could not be removed", &path, &e))
    }

    /// Seals the journals of a closed store.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if its files were removed or replaced while it was open, or if the seal cannot be written.
    pub(crate) fn seal(&self) -> Result<()> {
        if !self.is_in_place(|| None) {
            return Err(Error::Storage(format!(
                "the store was not sealed, because its files were removed or replaced while it was open: directory={}",
                self.path.display()
            )));
        }
        let seal = seal::compute(&self.data())?;
        // A removed journal must not reappear after power loss.
        sync_directory(&self.data())
            .map_err(|e| failed("could not be synced", &self.data(), &e))?;
        write_atomically(&self.path, SEAL_FILE_NEW, SEAL_FILE, &seal)
            .map_err(|e| failed("could not be sealed", &self.path, &e))
    }

    /// Whether the directory and its files are still where they were opened. `journal_count` returns the number of
    /// journals of the key-value store; `None` if it is closed.
    pub(crate) fn is_in_place(&self, journal_count: impl Fn() -> Option<usize>) -> bool {
        let Some(lock) = &self.lock else {
            return true;
        };
        let found = FileId::at(&self.path.join(LOCK_FILE));
        let is_at = |data_folder: &DataFolder| data_folder.is_at(&self.data(), journal_count);
        found.is_ok_and(|found| found == lock.id) && self.data_folder.as_ref().is_none_or(is_at)
    }

    /// Returns the directory as if it were on a read-only file system.
    #[cfg(test)]
    pub(crate) fn into_read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    fn lock(path: PathBuf) -> Result<Self> {
        match open_lock(&path.join(LOCK_FILE)) {
            Ok(mut file) => {
                take_lock(&path, &mut file)?;
                // The id is only information for users, so a failed write does no harm.
                let _ = file.set_len(0);
                let _ = write!(file, "{}", std::process::id());
                let found = file.metadata();
                let found = found.map_err(|e| failed("could not be locked", &path, &e))?;
                let lock = Lock {
                    file: LockedFile(file),
                    id: FileId::of(&found),
                };
                Ok(Self {
                    path,
                    lock: Some(lock),
                    data_folder: None,
                    is_read_only: false,
                })
            }
            Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem => Ok(Self {
                // Other processes can only read, too.
                path,
                lock: None,
                data_folder: None,
                is_read_only: true,
            }),
            Err(e) => Err(failed("could not be opened", &path.join(LOCK_FILE), &e)),
        }
    }

    /// Creates a store in the empty directory.
    fn create_store(&self, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let staging = Staging::create(&self.path.join(STAGING_DIR))?;
        make(&staging.data())?;
        staging.complete()?;
        self.move_into_place(&staging)
            .map_err(|e| failed("could not be set up as a store", &self.path, &e))?;
        staging.remove()
    }

    /// Finishes a store whose data was moved into place before the process died.
    fn finish_creation(&self) -> Result<()> {
        let unfinished = |e: io::Error| failed("could not be set up as a store", &self.path, &e);
        let staging = Staging::find(&self.path.join(STAGING_DIR))?;
        let staging = staging.ok_or_else(|| unfinished(ErrorKind::NotFound.into()))?;
        self.move_into_place(&staging).map_err(unfinished)?;
        staging.remove()
    }

    /// Removes leftovers of a process that died just after the store was complete.
    fn remove_leftovers(&self) {
        // Errors are ignored: the marker does no harm, and files that another program put there are not ours to remove.
        let _ = staging::remove_marker(&self.path);
        if let Ok(Some(left)) = Staging::find(&self.path.join(STAGING_DIR)) {
            let _ = left.remove();
        }
    }

    /// Moves a complete store into place. After a crash in between, the marker lets the next opening continue.
    fn move_into_place(&self, staging: &Staging) -> io::Result<()> {
        let (new, data) = (staging.data(), self.data());
        if new.try_exists()? {
            if fs::symlink_metadata(&data).is_ok() {
                return Err(io::Error::from(ErrorKind::AlreadyExists));
            }
            fs::rename(&new, &data)?;
            sync_directory(staging.path())?;
            sync_directory(&self.path)?;
        }
        // Written anew instead of moved: until this file is on disk, the one next to the marker records that the store
        // is complete.
        write_atomically(&self.path, FORMAT_FILE_NEW, FORMAT_FILE, &format_text())
    }
}

/// The folder of the key-value store of the store at this path.
pub(crate) fn data_of(path: &Path) -> PathBuf {
    path.join(DATA_DIR)
}

/// Determines the content of a directory, or rejects it. Changes and locks nothing. Accepts every intermediate state of
/// a store that another process is creating.
fn inspect(path: &Path) -> Result<Content> {
    let names = private::names(path).map_err(|e| failed("could not be read", path, &e))?;
    if is_formatted(path)? {
        return Ok(Content::Store);
    }
    let staging = Staging::state(&path.join(STAGING_DIR))?;
    let is_moved = staging == StagingState::Moved && data_of(path).is_dir();
    let is_ours = |name: &OsString| match name.to_str() {
        Some(LOST_AND_FOUND | STAGING_DIR) => true,
        Some(LOCK_FILE) => is_our_lock(&path.join(LOCK_FILE)),
        Some(FORMAT_FILE_NEW | DATA_DIR) => is_moved,
        _ => false,
    };
    let mut found: Vec<_> = names
        .iter()
        .filter(|name| !is_ours(name))
        .map(|name| name.display().to_string())
        .collect();
    found.sort();
    let Some(first) = found.first() else {
        return Ok(if is_moved {
            Content::WithoutFormat
        } else {
            Content::Nothing
        });
    };
    // The files may have belonged to a store that was being created and is now complete.
    if is_formatted(path)? {
        return Ok(Content::Store);
    }
    let shown = path.display();
    let count = found.len();
    Err(Error::Storage(
        if found.iter().any(|name| name == DATA_DIR) {
            format!(
                "the directory contains data/ but no FORMAT, so it was not opened or changed: if it was a store, copy \
                everything intact with floe doctor --data {shown} --salvage TARGET; otherwise choose another directory: \
                found={first} names={count} directory={shown}"
            )
        } else {
            format!(
                "the directory contains other files and no store, so it was not changed: choose an empty or a new directory: \
                found={first} names={count} directory={shown}"
            )
        },
    ))
}

/// Whether there is a format file. Rejects an unsupported format.
fn is_formatted(path: &Path) -> Result<bool> {
    let Some(found) = format_file(path)? else {
        return Ok(false);
    };
    check_format(path, &found).map(|()| true)
}

/// Metadata of the format file, if it exists. Does not follow links.
fn format_file(path: &Path) -> Result<Option<Metadata>> {
    let format = path.join(FORMAT_FILE);
    match fs::symlink_metadata(&format) {
        Ok(found) => Ok(Some(found)),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(failed("could not be read", &format, &e)),
    }
}

fn check_format(path: &Path, found: &Metadata) -> Result<()> {
    let format = &path.join(FORMAT_FILE);
    let damaged = |what: &str| {
        Error::Storage(format!(
            "the format file {what}, so the directory was not opened: if it is a store, copy everything intact with floe \
            doctor --data {} --salvage TARGET: path={}",
            path.display(),
            format.display()
        ))
    };
    if !found.is_file() {
        return Err(damaged("is not a file"));
    }
    let bytes = fs::read(format).map_err(|e| failed("could not be read", format, &e))?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let version = text
        .strip_prefix(FORMAT_NAME)
        .and_then(|rest| rest.strip_prefix(' '));
    let version = version.and_then(|rest| rest.strip_suffix('\n'));
    let version: u32 = version
        .and_then(|version| version.parse().ok())
        .ok_or_else(|| damaged("is damaged"))?;
    let shown = path.display();
    match version.cmp(&FORMAT_VERSION) {
        std::cmp::Ordering::Greater => Err(Error::Storage(format!(
            "the directory was written by a newer version of floe, which this version cannot read: format={version} \
             supported={FORMAT_VERSION} directory={shown}"
        ))),
        std::cmp::Ordering::Less => Err(Error::Storage(format!(
            "the directory was written by an older version of floe: export its tables with that version and import them \
            with this version: format={version} supported={FORMAT_VERSION} directory={shown}"
        ))),
        std::cmp::Ordering::Equal if !data_of(path).is_dir() => Err(Error::Storage(format!(
            "the directory has a format file but no data/: restore a backup: directory={shown}"
        ))),
        std::cmp::Ordering::Equal => Ok(()),
    }
}

/// The content of `FORMAT`.
fn format_text() -> String {
    format!("{FORMAT_NAME} {FORMAT_VERSION}\n")
}

/// Whether a file is a lock file of floe: empty, a process id, or zeros if power loss erased the id.
fn is_our_lock(path: &Path) -> bool {
    let is_file =
        fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() <= 10);
    let is_id = |byte: &u8| byte.is_ascii_digit() || *byte == 0;
    is_file && fs::read(path).is_ok_and(|id| id.iter().all(is_id))
}

/// Opens the lock file without following links, and creates it if it does not exist. Other users cannot open it, so
/// they cannot lock it.
fn open_lock(path: &Path) -> io::Result<File> {
    let file = private::options().create(true).truncate(false).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        if file.metadata()?.nlink() > 1 {
            return Err(io::Error::other(
                "LOCK is a hard link, whose other name may belong to something else: remove LOCK",
            ));
        }
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
    }
    Ok(file)
}

fn take_lock(path: &Path, file: &mut File) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(in_use(path, file)),
        Err(TryLockError::Error(e)) => Err(failed("could not be locked", path, &e)),
    }
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

fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    Error::Storage(format!("{} {what}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
