//! The empty store of a new directory, made where syncing costs nothing.
//!
//! The store below syncs some seventy times while it makes an empty store, which takes longer than everything else
//! that opening does. None of it has to be on the disk before the store is [complete](crate::dir). So it is made in
//! memory and copied, and each file is synced once, all at the same time.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};

use crate::journal::read_data;
use crate::kv::{Batch, Kv, Space, Sync};
use crate::layout::record::{self, Instance};
use crate::options::Options;
use crate::private::{create_dir_all, create_file};
use crate::scratch::Scratch;

/// Where files are in memory. Elsewhere the store is made in place.
const MEMORY: &str = "/dev/shm";

/// How the names there begin.
const PREFIX: &str = "floe-";

/// How many files are synced at a time. The system writes down together what is asked for together.
const SYNCS_AT_A_TIME: usize = 8;

/// Makes an empty store in the folder `data`, which is not there.
///
/// # Errors
///
/// [`Error::Storage`] if it cannot be written.
pub(crate) fn make(data: &Path, options: &Options) -> Result<()> {
    match Scratch::make(Path::new(MEMORY), PREFIX).map(|scratch| (store_in(&scratch), scratch)) {
        // Where there is no room for it in memory, it is made in place.
        Ok((store, _scratch)) if make_empty(&store, options).is_ok() => copy(&store, data),
        _ => {
            create_dir_all(data).map_err(|e| failed(data, &e))?;
            make_empty(data, options)
        }
    }
}

fn store_in(scratch: &Scratch) -> PathBuf {
    scratch.path().join("data")
}

/// Makes an empty store: its spaces, and the record that tells it from others.
fn make_empty(path: &Path, options: &Options) -> Result<()> {
    let kv = Kv::create(path, &options.kv)?;
    let instance = Instance::new(&options.env);
    let mut batch = Batch::default();
    batch.put(Space::Meta, record::INSTANCE_KEY, instance.encode());
    match kv.commit(batch, Sync::Data) {
        Ok(()) => kv.persist(),
        Err(e) => Err(Error::Storage(format!(
            "an empty store could not be written: {}",
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
        "an empty store could not be made: {error}: path={}",
        data.display()
    ))
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
        let scratch = Scratch::make(folder.path(), PREFIX).unwrap();
        let data = folder.path().join("data");
        let options = Options::new();
        make_empty(&store_in(&scratch), &options).unwrap();
        copy(&store_in(&scratch), &data).unwrap();
        let mut files = Vec::new();
        let mut open = vec![(store_in(&scratch), data.clone())];
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
        let kv = Kv::open(&data, &options.kv).unwrap();
        let instance = kv.snapshot().get(Space::Meta, record::INSTANCE_KEY);
        assert!(instance.unwrap().is_some());
    }
}
