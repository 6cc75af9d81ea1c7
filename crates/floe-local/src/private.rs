//! Files and directories that other users cannot open, and the identity of files independent of their names.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Identity of a file or directory, independent of its name: device and inode. The same for all files on systems other
/// than Unix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    number: u64,
}

impl FileId {
    #[cfg(unix)]
    pub(crate) fn of(found: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;

        Self {
            device: found.dev(),
            number: found.ino(),
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn of(_: &Metadata) -> Self {
        Self {
            device: 0,
            number: 0,
        }
    }

    /// The identity of the file at this path. Does not follow links.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::of(&fs::symlink_metadata(path)?))
    }
}

/// Whether an open file is the one at this path.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = FileId::of(&file.metadata()?);
    match FileId::at(path) {
        Ok(found) => Ok(found == open),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// A file that is locked until this is dropped. Dropping unlocks it explicitly, because closing is not enough: a child
/// process that is being started shares the open file until it executes its program, and would hold the lock until
/// then.
#[derive(Debug)]
pub(crate) struct LockedFile(pub(crate) File);

impl LockedFile {
    /// Prevents other processes from locking a file exclusively. Writes nothing. `None` if there is no such file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::WouldBlock`] if another process has locked it.
    pub(crate) fn share(path: &Path) -> io::Result<Option<Self>> {
        let is_file = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        let Some(file) = is_file.then(|| File::open(path).ok()).flatten() else {
            return Ok(None);
        };
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
            // A file system without locks can still be read.
            _ => Ok(Some(Self(file))),
        }
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // If this fails, closing the file unlocks it.
        let _ = self.0.unlock();
    }
}

/// Whether two paths have the same owner. Does not follow links.
#[cfg(unix)]
pub(crate) fn have_same_owner(one: &Path, other: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    Ok(fs::symlink_metadata(one)?.uid() == fs::symlink_metadata(other)?.uid())
}

#[cfg(not(unix))]
pub(crate) fn have_same_owner(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Whether a directory is the root of another file system.
#[cfg(unix)]
pub(crate) fn is_mount_point(directory: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    Ok(fs::metadata(directory)?.dev() != fs::metadata(directory.join(".."))?.dev())
}

#[cfg(not(unix))]
pub(crate) fn is_mount_point(_: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Creates a directory that other users cannot enter, with its parents, unless it exists.
pub(crate) fn create_dir_all(path: &Path) -> io::Result<()> {
    dirs().recursive(true).create(path)
}

/// Creates a directory that other users cannot enter. Fails if it exists.
pub(crate) fn create_dir(path: &Path) -> io::Result<()> {
    dirs().create(path)
}

fn dirs() -> DirBuilder {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder
}

/// Creates a file that other users cannot open. Fails if it exists.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    let mut options = options();
    options.create_new(true).open(path)
}

/// Options for opening a file for writing without following links. Opening a pipe does not wait for a reader.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits() as i32);
    }
    options
}

/// Creates a file, and replaces one of the same name that a crash may have left. If that is a link, its target is kept.
pub(crate) fn replace_file(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    create_file(path)
}

/// Writes a file atomically.
pub(crate) fn write_atomically(folder: &Path, new: &str, name: &str, text: &str) -> io::Result<()> {
    let new = folder.join(new);
    let mut file = replace_file(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, folder.join(name))?;
    sync_directory(folder)
}

/// The names in a directory.
pub(crate) fn names(path: &Path) -> io::Result<Vec<OsString>> {
    let names = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name()));
    names.collect()
}

/// Syncs the entries of a directory to disk.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    // On other systems a directory cannot be opened as a file, and its entries are synced with the files.
    if cfg!(unix) {
        File::open(path)?.sync_all()?;
    }
    Ok(())
}
