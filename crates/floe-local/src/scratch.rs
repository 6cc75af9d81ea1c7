//! Directories for a while, in a folder that other users write to as well.
//!
//! Each has the [marker](crate::dir) of an unfinished store, locked by its process. So what a process left behind that was
//! killed is known by a marker that is not locked, and cleared by the next process of the same user that makes one.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dir::Staging;
use crate::private;

/// How many names are tried.
const ATTEMPTS_MAX: u32 = 100;

/// A directory that is gone in the end.
#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    staging: Option<Staging>,
}

impl Scratch {
    /// A new directory, whose name begins with this.
    pub(crate) fn make(parent: &Path, prefix: &str) -> io::Result<Self> {
        let path = new_directory(parent, prefix)?;
        let staging = Staging::create(&path).map_err(io::Error::other)?;
        clear_left(parent, prefix, &path);
        Ok(Self {
            path,
            staging: Some(staging),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Made by this process; links in it are removed, not followed. What is left, a later process clears.
        drop(self.staging.take().map(Staging::remove));
    }
}

/// Makes a directory. One that is there already is not ours, or the rest of a process that had the same id.
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

/// Removes what processes of the same user left behind. What cannot be removed is left: it does no harm.
fn clear_left(parent: &Path, prefix: &str, own: &Path) {
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
    fn directories_are_gone_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let make = || Scratch::make(folder.path(), "floe-").unwrap();
        let (one, two) = (make(), make());
        assert_ne!(one.path(), two.path());
        fs::write(one.path().join("file"), "x").unwrap();
        drop((one, two));
        assert_eq!(count(folder.path()), 0);
        assert!(Scratch::make(Path::new("/nowhere"), "floe-").is_err());
    }

    #[test]
    fn rest_of_a_process_that_was_killed_is_cleared_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        // As a killed process leaves it: its marker is no longer locked.
        let left = folder.path().join("floe-4711-0");
        drop(Staging::create(&left).unwrap());
        fs::create_dir(left.join("data")).unwrap();
        let used = Staging::create(&folder.path().join("floe-4712-0")).unwrap();
        let foreign = ["floe-4713-0", "floe-bench", "floe-1-x", "other-1-0"];
        for name in foreign {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("mine"), "x").unwrap();
        }
        let scratch = Scratch::make(folder.path(), "floe-").unwrap();
        assert!(!left.exists());
        assert!(used.path().exists() && scratch.path().exists());
        drop(scratch);
        assert_eq!(count(folder.path()), 1 + foreign.len());
    }
}
