//! Temporary directories in a folder that other users can write to.
//!
//! Each directory contains the [marker](crate::dir) of an unfinished store, locked by its process. So a directory left
//! by a killed process has an unlocked marker, and the next process of the same user that creates one removes it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dir::Staging;
use crate::private;

/// Maximum number of names to try.
const ATTEMPTS_MAX: u32 = 100;

/// A directory that is removed when dropped.
#[derive(Debug)]
pub(crate) struct ScratchDir {
    path: PathBuf,
    staging: Option<Staging>,
}

impl ScratchDir {
    /// Creates a directory whose name starts with `prefix`.
    pub(crate) fn create(parent: &Path, prefix: &str) -> io::Result<Self> {
        let path = new_directory(parent, prefix)?;
        let staging = Staging::create(&path).map_err(io::Error::other)?;
        remove_stale(parent, prefix, &path);
        Ok(Self {
            path,
            staging: Some(staging),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        // Created by this process; links in it are removed, not followed. A later process removes anything left.
        drop(self.staging.take().map(Staging::remove));
    }
}

/// Creates a directory. An existing one belongs to another program, or to a killed process that had the same id.
fn new_directory(parent: &Path, prefix: &str) -> io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut attempts = 0;
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{prefix}{}-{count}", std::process::id()));
        attempts += 1;
        match private::create_dir(&path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists && attempts < ATTEMPTS_MAX => {}
            made => return made.map(|()| path),
        }
    }
}

/// Removes directories left by killed processes of the same user. Ignores errors: a stale directory does no harm.
fn remove_stale(parent: &Path, prefix: &str, own: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().and_then(|name| name.to_str());
        let numbers = name.and_then(|name| name.strip_prefix(prefix)?.split_once('-'));
        let is_named = numbers.is_some_and(|(id, count)| is_number(id) && is_number(count));
        if is_named
            && path != own
            && private::have_same_owner(&path, own).is_ok_and(|same| same)
            && let Ok(Some(left)) = Staging::find(&path)
        {
            let _ = left.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn directories_are_removed_on_drop() {
        let folder = tempfile::tempdir().unwrap();
        let create = || ScratchDir::create(folder.path(), "floe-").unwrap();
        let (one, two) = (create(), create());
        assert_ne!(one.path(), two.path());
        fs::write(one.path().join("file"), "x").unwrap();
        drop((one, two));
        assert_eq!(count(folder.path()), 0);
        assert!(ScratchDir::create(Path::new("/nowhere"), "floe-").is_err());
    }

    #[test]
    fn only_directories_of_killed_processes_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        // As a killed process leaves it: with an unlocked marker.
        let left = folder.path().join("floe-4711-0");
        drop(Staging::create(&left).unwrap());
        fs::create_dir(left.join("data")).unwrap();
        let used = Staging::create(&folder.path().join("floe-4712-0")).unwrap();
        let foreign = ["floe-4713-0", "floe-bench", "floe-1-x", "other-1-0"];
        for name in foreign {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("mine"), "x").unwrap();
        }
        let scratch = ScratchDir::create(folder.path(), "floe-").unwrap();
        assert!(!left.exists());
        assert!(used.path().exists() && scratch.path().exists());
        drop(scratch);
        assert_eq!(count(folder.path()), 1 + foreign.len());
    }
}
