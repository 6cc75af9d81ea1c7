//! The empty store of a new directory, made where syncing costs nothing.
//!
//! The store below syncs some seventy times while it makes an empty store, which takes longer than everything else
//! that opening does, and on a slow disk longer than anybody wants to wait. None of it has to be on the disk before
//! the store is whole: until its directory [says so](crate::dir), nobody has been told about it. So it is made in
//! memory and copied, and each file is synced once, all at the same time.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use floe_store::{Error, Result};

use crate::journal::read_data;
use crate::kv::{Kv, KvOptions};
use crate::layout::{CHANGES_SPACE, META_SPACE, TOKENS_SPACE};

/// Where files are in memory. Elsewhere the store is made in place.
const MEMORY: &str = "/dev/shm";

/// How many files are synced at a time. The system writes down together what is asked for together.
const SYNCS_AT_A_TIME: usize = 8;

/// Makes the files of an empty store, if there is a place to make them in. If not, opening makes them.
pub(crate) fn make(data: &Path, options: &KvOptions) -> Result<()> {
    match Scratch::make(Path::new(MEMORY)) {
        // Where there is no room for it, there is none to make it in.
        Some(scratch) if make_empty(&scratch.0, options).is_ok() => copy(&scratch.0, data),
        _ => Ok(()),
    }
}

/// Makes an empty store. What it has to write at its end is written when it is dropped.
fn make_empty(path: &Path, options: &KvOptions) -> Result<()> {
    let kv = Kv::open(path, options)?;
    for name in [META_SPACE, CHANGES_SPACE, TOKENS_SPACE] {
        kv.space(name)?;
    }
    kv.persist()
}

fn copy(scratch: &Path, data: &Path) -> Result<()> {
    let copied = copy_all(scratch, data).and_then(|paths| sync_all(&paths));
    copied.map_err(|e| {
        Error::Storage(format!(
            "an empty store could not be made: {e}: path={}",
            data.display()
        ))
    })
}

/// A directory that is gone in the end.
struct Scratch(PathBuf);

impl Scratch {
    /// A new directory, if there can be one.
    fn make(parent: &Path) -> Option<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("floe-{}-{count}", std::process::id()));
        // One that is there already is somebody else's.
        fs::create_dir(&path).ok().map(|()| Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left there is gone with the next start of the machine.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Copies a directory with all that is in it, and lists what has to be synced.
fn copy_all(source: &Path, target: &Path) -> io::Result<Vec<PathBuf>> {
    fs::create_dir(target)?;
    let mut paths = vec![target.to_owned()];
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let to = target.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => paths.extend(copy_all(&entry.path(), &to)?),
            false => {
                copy_file(&entry.path(), &to)?;
                paths.push(to);
            }
        }
    }
    Ok(paths)
}

fn copy_file(source: &Path, target: &Path) -> io::Result<()> {
    let mut copy = File::create_new(target)?;
    copy.write_all(&read_data(source)?)?;
    copy.set_len(fs::metadata(source)?.len())
}

/// Syncs files and directories, several at a time.
fn sync_all(paths: &[PathBuf]) -> io::Result<()> {
    let sync = |path: &PathBuf| File::open(path).and_then(|file| file.sync_all());
    let share = paths.len().div_ceil(SYNCS_AT_A_TIME).max(1);
    std::thread::scope(|scope| {
        let shares = paths.chunks(share);
        let threads: Vec<_> = shares
            .map(|share| scope.spawn(move || share.iter().try_for_each(sync)))
            .collect();
        threads.into_iter().try_for_each(|thread| {
            let failed = |_| io::Error::other("a thread that syncs panicked");
            thread.join().map_err(failed)?
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: KvOptions = KvOptions {
        cache_bytes: 1 << 20,
        write_buffer_bytes: 1 << 20,
    };

    #[test]
    fn what_is_copied_is_what_is_made_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::make(folder.path()).unwrap();
        let data = folder.path().join("data");
        make_empty(&scratch.0, &OPTIONS).unwrap();
        copy(&scratch.0, &data).unwrap();
        let mut files = Vec::new();
        let mut open = vec![(scratch.0.clone(), data.clone())];
        while let Some((made, copied)) = open.pop() {
            for entry in fs::read_dir(&made).unwrap() {
                let name = entry.unwrap().file_name();
                let (made, copied) = (made.join(&name), copied.join(&name));
                match made.is_dir() {
                    true => open.push((made, copied)),
                    false => files.push((fs::read(made).unwrap(), fs::read(copied).unwrap())),
                }
            }
        }
        assert!(files.len() > 5, "{}", files.len());
        assert!(files.iter().all(|(made, copied)| made == copied));

        let kv = Kv::open(&data, &OPTIONS).unwrap();
        let mut names = kv.space_names();
        names.sort_unstable();
        let mut expected = [META_SPACE, CHANGES_SPACE, TOKENS_SPACE];
        expected.sort_unstable();
        assert_eq!(names, expected);
    }

    #[test]
    fn the_place_it_is_made_in_is_left_empty() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (
            Scratch::make(folder.path()).unwrap(),
            Scratch::make(folder.path()).unwrap(),
        );
        fs::write(one.0.join("file"), "x").unwrap();
        drop((one, two));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(Scratch::make(Path::new("/nowhere")).is_none());
    }
}
