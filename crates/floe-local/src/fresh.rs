//! Creates the empty store of a new directory in memory, where syncing is free.
//!
//! The key-value store syncs about seventy times while it creates an empty store, which takes longer than all other
//! steps of opening. None of it has to be on disk before the store is [complete](crate::dir). So it is created in
//! memory and copied, and each file is synced once, several at a time.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};

use crate::journal::read_data;
use crate::kv::{Batch, Kv, Space, Sync};
use crate::layout::record::{self, Instance};
use crate::options::Options;
use crate::private::{create_dir_all, create_file};
use crate::scratch::ScratchDir;

/// A file system in memory. If it does not exist, the store is created in place.
const MEMORY: &str = "/dev/shm";

/// Prefix of the names of directories there.
const PREFIX: &str = "floe-";

/// Number of parallel syncs. File systems combine syncs that are requested at the same time.
const SYNCS_AT_A_TIME: usize = 8;

/// Creates an empty store in the folder `data`, which must not exist.
///
/// # Errors
///
/// [`Error::Storage`] if it cannot be written.
pub(crate) fn create(data: &Path, options: &Options) -> Result<()> {
    match ScratchDir::create(Path::new(MEMORY), PREFIX).map(|scratch| (store_in(&scratch), scratch))
    {
        // If it does not fit into memory, create it in place.
        Ok((store, _scratch)) if create_empty(&store, options).is_ok() => copy(&store, data),
        _ => {
            create_dir_all(data).map_err(|e| failed(data, &e))?;
            create_empty(data, options)
        }
    }
}

fn store_in(scratch: &ScratchDir) -> PathBuf {
    scratch.path().join("data")
}

/// Creates an empty store: its spaces, and the instance record that identifies it.
fn create_empty(path: &Path, options: &Options) -> Result<()> {
    let kv = Kv::create(path, &options.kv)?;
    let instance = Instance::new(&options.env);
    let mut batch = Batch::default();
    batch.put(Space::Meta, record::INSTANCE_KEY, instance.encode());
    match kv.commit(batch, Sync::Data) {
        Ok(()) => kv.persist(),
        Err(e) => Err(Error::Storage(format!(
            "failed to write an empty store: {}",
            e.cause()
        ))),
    }
}

fn copy(scratch: &Path, data: &Path) -> Result<()> {
    let copied = copy_all(scratch, data).and_then(|paths| sync_all(&paths));
    copied.map_err(|e| failed(data, &e))
}

fn failed(data: &Path, error: &io::Error) -> Error {
    Error::Storage(format!(
        "failed to create an empty store: {error}: path={}",
        data.display()
    ))
}

/// Copies a directory recursively, and lists the paths that must be synced.
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

/// Copies a file with its length, without reading parts that were never written.
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
            let failed = |_| io::Error::other("a sync thread panicked");
            thread.join().map_err(failed)?
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_store_equals_a_store_created_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = ScratchDir::create(folder.path(), PREFIX).unwrap();
        let data = folder.path().join("data");
        let options = Options::new();
        create_empty(&store_in(&scratch), &options).unwrap();
        copy(&store_in(&scratch), &data).unwrap();
        let mut files = Vec::new();
        let mut open = vec![(store_in(&scratch), data.clone())];
        while let Some((created, copied)) = open.pop() {
            for entry in fs::read_dir(&created).unwrap() {
                let name = entry.unwrap().file_name();
                let (created, copied) = (created.join(&name), copied.join(&name));
                if created.is_dir() {
                    open.push((created, copied));
                } else {
                    files.push((fs::read(created).unwrap(), fs::read(copied).unwrap()));
                }
            }
        }
        assert!(files.len() > 5, "{}", files.len());
        assert!(files.iter().all(|(created, copied)| created == copied));
        crate::files::check_files(&data).unwrap();
        let kv = Kv::open(&data, &options.kv).unwrap();
        let instance = kv.snapshot().get(Space::Meta, record::INSTANCE_KEY);
        assert!(instance.unwrap().is_some());
    }
}
