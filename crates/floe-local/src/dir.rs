//! The directory of a store: which process uses it, of which format it is, and how one is made.
//!
//! | name | what |
//! |---|---|
//! | `LOCK` | locked by the process that has the store open, and holds its id |
//! | `FORMAT` | `floe-local` and the version of the [layout](crate::layout) |
//! | `SEAL` | the [seal](crate::seal) of a store that was closed |
//! | `RELAXED` | is there while writes are not synced one by one, and after a crash meanwhile |
//! | `data/` | the key-value store |
//! | `.floe-new/` | a store that is being made |
//!
//! Opening never removes what it did not make. A new store is made in a [directory of its own](Staging) with a marker in
//! it, and moved to its place when it is complete; only a directory with the marker is ever removed. A directory that
//! holds anything else, and `data/` without `FORMAT`, is refused and left as it is.

mod place;
mod staging;

use std::ffi::OsString;
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};

use crate::layout::FORMAT_VERSION;
use crate::private::{self, FileId, LockedFile, sync_directory, write_whole};
use crate::seal;
use place::Place;
use staging::Look;
pub(crate) use staging::Staging;

pub(crate) const LOCK_FILE: &str = "LOCK";
const FORMAT_FILE: &str = "FORMAT";
const FORMAT_FILE_NEW: &str = "FORMAT.new";
pub(crate) const SEAL_FILE: &str = "SEAL";
const SEAL_FILE_NEW: &str = "SEAL.new";
const RELAXED_FILE: &str = "RELAXED";
const DATA_DIR: &str = "data";
const STAGING_DIR: &str = ".floe-new";
const FORMAT_NAME: &str = "floe-local";

/// File systems make it in their root.
const LOST_AND_FOUND: &str = "lost+found";

/// A directory that this process alone uses.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// None on a read-only file system.
    lock: Option<Lock>,
    /// Where its data is; none until it is known to be a store, and on a read-only file system.
    place: Option<Place>,
    is_read_only: bool,
}

/// The lock of a directory.
#[derive(Debug)]
struct Lock {
    #[cfg_attr(not(test), expect(dead_code, reason = "held for its lock"))]
    file: LockedFile,
    id: FileId,
}

/// What is in a directory.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    /// A store.
    Store,
    /// Nothing, or a store that was never finished.
    Nothing,
    /// A store that was finished but for its `FORMAT`.
    Moved,
}

impl Directory {
    /// Locks the directory, made if it is not there, and makes a store in it if it is empty. `make` makes the key-value
    /// store in the folder that it is given.
    pub(crate) fn open(path: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<Self> {
        let path = std::path::absolute(path).map_err(|e| failed("cannot be found", path, &e))?;
        if fs::metadata(&path).is_ok_and(|found| !found.is_dir()) {
            return Err(Error::Storage(format!(
                "the store's path is a file and not a directory: path={}",
                path.display()
            )));
        }
        private::create_dir_all(&path).map_err(|e| failed("could not be made", &path, &e))?;
        // Before the lock, which makes a file.
        inspect(&path)?;
        let mut directory = Self::lock(path)?;
        // Another process may have made a store meanwhile.
        match inspect(&directory.path)? {
            Content::Store if directory.is_read_only => {}
            Content::Nothing | Content::Moved if directory.is_read_only => {
                return Err(Error::Storage(format!(
                    "the file system is read-only and there is no store: directory={}",
                    directory.path.display()
                )));
            }
            Content::Store => directory.clear_markers(),
            Content::Nothing => directory.initialise(make)?,
            Content::Moved => directory.finish()?,
        }
        if !directory.is_read_only {
            let data = directory.data();
            let place = Place::of(&data).map_err(|e| failed("could not be read", &data, &e))?;
            directory.place = Some(place);
        }
        Ok(directory)
    }

    /// Locks the directory of a store that is there.
    pub(crate) fn open_existing(path: &Path) -> Result<Self> {
        if !Self::is_store(path)? {
            return Err(Error::Storage(format!(
                "there is no store: directory={}",
                path.display()
            )));
        }
        Self::open(path, |_| Ok(()))
    }

    /// Whether a whole store is in the directory of this path, of whatever version.
    pub(crate) fn is_store(path: &Path) -> Result<bool> {
        Ok(format_file(path)?.is_some_and(|found| found.is_file()))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the key-value store is.
    pub(crate) fn data(&self) -> PathBuf {
        data_of(&self.path)
    }

    /// Whether nothing can be written to it.
    pub(crate) const fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// Whether the last writes may have reached the disk in any order.
    pub(crate) fn is_relaxed(&self) -> bool {
        fs::symlink_metadata(self.path.join(RELAXED_FILE)).is_ok()
    }

    /// Says whether writes are synced one by one from now on.
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

    /// Compares the journals with the seal, if the store was closed.
    pub(crate) fn check_seal(&self) -> Result<()> {
        let path = self.path.join(SEAL_FILE);
        match fs::read_to_string(&path) {
            Ok(seal) => seal::check(&seal, &self.data()),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(e) => Err(failed("could not be read", &path, &e)),
        }
    }

    /// Removes the seal: the store is about to be written to.
    pub(crate) fn break_seal(&self) -> Result<()> {
        let path = self.path.join(SEAL_FILE);
        match fs::remove_file(&path) {
            Ok(()) => sync_directory(&self.path),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
        }
        .map_err(|e| failed("could not be removed", &path, &e))
    }

    /// Seals the journals of a store that was closed.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when its files were removed or replaced while it was open, or the seal cannot be written.
    pub(crate) fn seal(&self) -> Result<()> {
        if !self.is_in_place(|| None) {
            return Err(Error::Storage(format!(
                "the store is not sealed, because its files were removed or replaced while it was open: directory={}",
                self.path.display()
            )));
        }
        let seal = seal::make(&self.data())?;
        // A journal that was removed must not be back after a loss of power.
        sync_directory(&self.data())
            .map_err(|e| failed("could not be synced", &self.data(), &e))?;
        write_whole(&self.path, SEAL_FILE_NEW, SEAL_FILE, &seal)
            .map_err(|e| failed("could not be sealed", &self.path, &e))
    }

    /// Whether the directory is still where it was opened, with its files. `journal_count` returns how many journals the
    /// key-value store has; none if it is closed.
    pub(crate) fn is_in_place(&self, journal_count: impl Fn() -> Option<usize>) -> bool {
        let Some(lock) = &self.lock else {
            return true;
        };
        let found = FileId::at(&self.path.join(LOCK_FILE));
        let is_at = |place: &Place| place.is_at(&self.data(), journal_count);
        found.is_ok_and(|found| found == lock.id) && self.place.as_ref().is_none_or(is_at)
    }

    /// The same as on a read-only file system.
    #[cfg(test)]
    pub(crate) fn into_read_only(mut self) -> Self {
        self.is_read_only = true;
        self
    }

    fn lock(path: PathBuf) -> Result<Self> {
        match open_lock(&path.join(LOCK_FILE)) {
            Ok(mut file) => {
                take_lock(&path, &mut file)?;
                // The id is for people: a failure to write it does no harm.
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
                    place: None,
                    is_read_only: false,
                })
            }
            Err(e) if e.kind() == ErrorKind::ReadOnlyFilesystem => Ok(Self {
                // Other processes can only read, too.
                path,
                lock: None,
                place: None,
                is_read_only: true,
            }),
            Err(e) => Err(failed("could not be opened", &path.join(LOCK_FILE), &e)),
        }
    }

    /// Makes a store in the empty directory.
    fn initialise(&self, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let staging = Staging::create(&self.path.join(STAGING_DIR))?;
        make(&staging.data())?;
        staging.complete()?;
        self.take_over(&staging)
            .map_err(|e| failed("could not be made into a store", &self.path, &e))?;
        staging.remove()
    }

    /// Finishes a store whose data was moved to its place before the process died.
    fn finish(&self) -> Result<()> {
        let unfinished = |e: io::Error| failed("could not be made into a store", &self.path, &e);
        let staging = Staging::find(&self.path.join(STAGING_DIR))?;
        let staging = staging.ok_or_else(|| unfinished(ErrorKind::NotFound.into()))?;
        self.take_over(&staging).map_err(unfinished)?;
        staging.remove()
    }

    /// Removes what a process left behind that died just after the store was complete.
    fn clear_markers(&self) {
        // It does no harm where it is, and what another program made there is not ours to judge.
        let _ = staging::remove_marker(&self.path);
        if let Ok(Some(left)) = Staging::find(&self.path.join(STAGING_DIR)) {
            let _ = left.remove();
        }
    }

    /// Moves a complete store to its place. A crash in between leaves the marker, by which the next opening goes on.
    fn take_over(&self, staging: &Staging) -> io::Result<()> {
        let (new, data) = (staging.data(), self.data());
        if new.try_exists()? {
            if fs::symlink_metadata(&data).is_ok() {
                return Err(io::Error::from(ErrorKind::AlreadyExists));
            }
            fs::rename(&new, &data)?;
            sync_directory(staging.path())?;
            sync_directory(&self.path)?;
        }
        // Not moved but written again: until it is on the disk, the one beside the marker says that the store is complete.
        write_whole(&self.path, FORMAT_FILE_NEW, FORMAT_FILE, &format_text())
    }
}

/// Where the key-value store of the store at this path is.
pub(crate) fn data_of(path: &Path) -> PathBuf {
    path.join(DATA_DIR)
}

/// Says what is in a directory, or refuses it. Changes and locks nothing. While another process makes a store in it,
/// every moment of that is one that is accepted.
fn inspect(path: &Path) -> Result<Content> {
    let names = private::names(path).map_err(|e| failed("could not be read", path, &e))?;
    if is_formatted(path)? {
        return Ok(Content::Store);
    }
    let staging = Staging::look(&path.join(STAGING_DIR))?;
    let is_moved = staging == Look::Moved && data_of(path).is_dir();
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
            Content::Moved
        } else {
            Content::Nothing
        });
    };
    // What was there may have been a store on its way, which is finished by now.
    if is_formatted(path)? {
        return Ok(Content::Store);
    }
    let shown = path.display();
    let count = found.len();
    Err(Error::Storage(
        if found.iter().any(|name| name == DATA_DIR) {
            format!(
                "the directory holds data/ but no FORMAT, so it is not opened and nothing in it was changed: if it was a \
             store, copy what is intact with floe doctor --data {shown} --salvage TARGET; otherwise choose another \
             directory: found={first} names={count} directory={shown}"
            )
        } else {
            format!(
                "the directory holds other files and no store, so nothing in it was changed; choose an empty or a new \
             directory: found={first} names={count} directory={shown}"
            )
        },
    ))
}

/// Whether there is a file that names the format. One that names another is refused.
fn is_formatted(path: &Path) -> Result<bool> {
    let Some(found) = format_file(path)? else {
        return Ok(false);
    };
    check_format(path, &found).map(|()| true)
}

/// What has the name of the file that names the format, if anything has; no link is followed.
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
            "the file that names the format {what}, so the directory is not opened; if it is a store, copy what is \
             intact with floe doctor --data {} --salvage TARGET: path={}",
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
            "the directory was written by a newer version of floe, which this one cannot read: format={version} \
             supported={FORMAT_VERSION} directory={shown}"
        ))),
        std::cmp::Ordering::Less => Err(Error::Storage(format!(
            "the directory was written by an older version of floe: export its tables with that version and import them \
             with this one: format={version} supported={FORMAT_VERSION} directory={shown}"
        ))),
        std::cmp::Ordering::Equal if !data_of(path).is_dir() => Err(Error::Storage(format!(
            "the directory names a format but has no data/: restore a backup: directory={shown}"
        ))),
        std::cmp::Ordering::Equal => Ok(()),
    }
}

/// What `FORMAT` says.
fn format_text() -> String {
    format!("{FORMAT_NAME} {FORMAT_VERSION}\n")
}

/// Whether a file is a lock of ours: empty, or the id of a process, or zeros where a loss of power took that away.
fn is_our_lock(path: &Path) -> bool {
    let is_file =
        fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() <= 10);
    let is_id = |byte: &u8| byte.is_ascii_digit() || *byte == 0;
    is_file && fs::read(path).is_ok_and(|id| id.iter().all(is_id))
}

/// Opens the lock file, made if it is not there, and no other file by a link. Other users cannot open it, so they
/// cannot hold a lock on it.
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
                "LOCK is a hard link, and its other name may be of something else; remove LOCK",
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
