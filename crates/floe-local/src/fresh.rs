//! The empty store of a new directory, made where syncing costs nothing.
//!
//! The store below syncs some seventy times while it makes an empty store, which takes longer than everything else
//! that opening does. None of it has to be on the disk before the store is [complete](crate::dir). So it is made in
//! memory and copied, and each file is synced once, all at the same time.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use floe_store::{Error, Result};

use crate::engine::kv_options;
use crate::journal::read_data;
use crate::kv::{Batch, Kv, Space, Sync};
use crate::layout::record::{self, Instance};
use crate::options::Options;
use crate::private::{create_dir, create_dir_all, create_file};

/// Where files are in memory. Elsewhere the store is made in place.
const MEMORY: &str = "/dev/shm";

/// How many files are synced at a time. The system writes down together what is asked for together.
const SYNCS_AT_A_TIME: usize = 8;

/// Makes an empty store in the folder `data`, which is not there.
///
/// # Errors
///
/// [`Error::Storage`] if it cannot be written.
pub(crate) fn make(data: &Path, options: &Options) -> Result<()> {
    match Scratch::make(Path::new(MEMORY)) {
        // Where there is no room for it in memory, it is made in place.
        Some(scratch) if make_empty(&scratch.store(), options).is_ok() => {
            copy(&scratch.store(), data)
        }
        _ => {
            create_dir_all(data).map_err(|e| failed(data, &e))?;
            make_empty(data, options)
        }
    }
}

/// Makes an empty store: its spaces, and the record that tells it from others.
fn make_empty(path: &Path, options: &Options) -> Result<()> {
    let kv = Kv::create(path, &kv_options(options))?;
    let instance = Instance::new(&options.env);
    let mut batch = Batch::default();
    batch.put(Space::Meta, record::INSTANCE_KEY, instance.encode());
    match kv.commit(batch, Sync::Data) {
        Ok(()) => kv.persist(),
        Err(e) => Err(Error::Storage(format!(
            "an empty store could not be written: {e:?}"
        ))),
    }
}

fn copy(scratch: &Path, data: &Path) -> Result<()> {
    let copied = copy_all(scratch, data).and_then(|paths| sync_all(&paths));
    copied.map_err(|e| failed(data, &e))
}

fn failed(data: &Path, error: &io::Error) -> Error {
    Error::Storage(format!(
        "an empty store could not be made: {error}: path={}",
        data.display()
    ))
}

/// A directory that is gone in the end.
struct Scratch(PathBuf);

impl Scratch {
    /// A new directory, if there can be one.
    fn make(parent: &Path) -> Option<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("floe-{}-{count}", std::process::id()));
        // One that is there already is not ours.
        create_dir(&path).ok().map(|()| Self(path))
    }

    fn store(&self) -> PathBuf {
        self.0.join("data")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Made by this process. What is left there is gone with the next start of the machine.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Copies a directory with all that is in it, and lists what has to be synced.
fn copy_all(source: &Path, target: &Path) -> io::Result<Vec<PathBuf>> {
    create_dir_all(target)?;
    let mut paths = vec![target.to_owned()];
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let to = target.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            paths.extend(copy_all(&entry.path(), &to)?);
        } else {
            copy_file(&entry.path(), &to)?;
            paths.push(to);
        }
    }
    Ok(paths)
}

/// Copies a file with its length, and without reading what was never written.
pub(crate) fn copy_file(source: &Path, target: &Path) -> io::Result<()> {
    let mut copy = create_file(target)?;
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

    #[test]
    fn what_is_copied_is_what_is_made_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::make(folder.path()).unwrap();
        let data = folder.path().join("data");
        let options = Options::new();
        make_empty(&scratch.store(), &options).unwrap();
        copy(&scratch.store(), &data).unwrap();
        let mut files = Vec::new();
        let mut open = vec![(scratch.store(), data.clone())];
        while let Some((made, copied)) = open.pop() {
            for entry in fs::read_dir(&made).unwrap() {
                let name = entry.unwrap().file_name();
                let (made, copied) = (made.join(&name), copied.join(&name));
                if made.is_dir() {
                    open.push((made, copied));
                } else {
                    files.push((fs::read(made).unwrap(), fs::read(copied).unwrap()));
                }
            }
        }
        assert!(files.len() > 5, "{}", files.len());
        assert!(files.iter().all(|(made, copied)| made == copied));
        crate::files::check_files(&data).unwrap();
        let kv = Kv::open(&data, &kv_options(&options)).unwrap();
        let instance = kv.snapshot().get(Space::Meta, record::INSTANCE_KEY);
        assert!(instance.unwrap().is_some());
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
