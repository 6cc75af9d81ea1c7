//! Checks the files of the store below before that store opens them.
//!
//! The store below removes directories that its own list does not name, removes files that look like its own, and
//! aborts on names that it does not expect. So each name is checked here first: what could be removed or would abort is
//! refused with its path, and what the store below ignores is ignored.
//!
//! Each keyspace has a file `current`, which names the file with the list of its sorted files (`v7`) and holds
//! the checksum of that list. The store below writes the checksum and does not check it: it believes what a
//! damaged list says, or panics. So it is checked here. Sorted files and blocks have checksums that the store does
//! check.
//!
//! The format is that of the store's version 3, whose number `kv.rs` pins: `current` is the number of the list
//! (`u64`), the checksum (`u128`, xxh3) and a zero, all little-endian.

use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};
use xxhash_rust::xxh3::xxh3_128;

/// The keyspaces by their numbers: that of the store below, and the four of [`kv`](crate::kv).
pub(crate) const KEYSPACES: std::ops::RangeInclusive<u32> = 0..=4;

/// The folder of the keyspaces.
pub(crate) const KEYSPACES_FOLDER: &str = "keyspaces";

/// The folder of the sorted files of a keyspace.
pub(crate) const TABLES_FOLDER: &str = "tables";

/// The file that says of which version the store below is.
const VERSION_FILE: &str = "version";

/// The file that names the list of files of a keyspace.
const CURRENT_FILE: &str = "current";

/// Checks the names of all files below `data`, and the lists of files.
///
/// # Errors
///
/// [`Error::Storage`] when something is missing, has a name that the store below does not expect, or is not as it was
/// written.
pub(crate) fn check_files(data: &Path) -> Result<()> {
    check_top(data)?;
    let folder = data.join(KEYSPACES_FOLDER);
    for entry in entries(&folder)? {
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_keyspace = number(&entry).is_some_and(|n| KEYSPACES.contains(&n));
        let is_expected = is_file || (is_dir && is_keyspace);
        if !is_expected {
            return Err(unexpected(&entry.path()));
        }
    }
    for keyspace in KEYSPACES {
        check_keyspace(&folder.join(keyspace.to_string()))?;
    }
    Ok(())
}

/// Files beside the journals are ignored.
fn check_top(data: &Path) -> Result<()> {
    require_file(&data.join(VERSION_FILE))?;
    for entry in entries(data)? {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return Err(unexpected(&entry.path()));
        };
        let is_journal = name.to_ascii_lowercase().ends_with(".jnl");
        if is_journal {
            let number = name.strip_suffix(".jnl").map(str::parse::<u64>);
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            if !is_file || !matches!(number, Some(Ok(_))) {
                return Err(unexpected(&entry.path()));
            }
        }
    }
    Ok(())
}

fn check_keyspace(folder: &Path) -> Result<()> {
    require_file(&folder.join(CURRENT_FILE))?;
    for entry in entries(folder)? {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // The store below removes files whose names begin so, but for the current one.
        let is_list = name.strip_prefix('v').map(str::parse::<u64>);
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_dir && is_list.is_some_and(|number| number.is_err()) {
            return Err(unexpected(&entry.path()));
        }
    }
    check_list(folder)?;
    for entry in entries(&folder.join(TABLES_FOLDER))? {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_ignored = name == ".DS_Store" || name.starts_with("._");
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let is_table = is_file && name.parse::<u64>().is_ok();
        if !is_ignored && !is_table {
            return Err(unexpected(&entry.path()));
        }
    }
    Ok(())
}

/// Compares the list of files of a keyspace with its checksum.
fn check_list(folder: &Path) -> Result<()> {
    let list = current_list(folder)?;
    let path = folder.join(format!("v{}", list.number));
    let bytes = fs::read(&path).map_err(|e| unreadable(&path, &e))?;
    if xxh3_128(&bytes) == list.checksum {
        Ok(())
    } else {
        Err(damaged(&path))
    }
}

/// What `current` says.
struct CurrentList {
    number: u64,
    checksum: u128,
}

fn current_list(folder: &Path) -> Result<CurrentList> {
    let path = folder.join(CURRENT_FILE);
    let bytes = fs::read(&path).map_err(|e| unreadable(&path, &e))?;
    let (number, rest) = bytes.split_first_chunk().ok_or_else(|| damaged(&path))?;
    let (checksum, kind) = rest.split_first_chunk().ok_or_else(|| damaged(&path))?;
    if kind != [0] {
        return Err(damaged(&path));
    }
    Ok(CurrentList {
        number: u64::from_le_bytes(*number),
        checksum: u128::from_le_bytes(*checksum),
    })
}

fn entries(folder: &Path) -> Result<Vec<DirEntry>> {
    let listed: io::Result<Vec<_>> = fs::read_dir(folder).and_then(Iterator::collect);
    listed.map_err(|e| unreadable(folder, &e))
}

fn number(entry: &DirEntry) -> Option<u32> {
    entry.file_name().to_str()?.parse().ok()
}

fn require_file(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(unexpected(path)),
        Err(e) => Err(unreadable(path, &e)),
    }
}

fn unexpected(path: &Path) -> Error {
    Error::Storage(format!(
        "the store holds something that is not part of it; move it out of the store's directory: path={}",
        path.display()
    ))
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let what = if error.kind() == ErrorKind::NotFound {
        "a file of the store is missing".to_owned()
    } else {
        format!("a file of the store cannot be read: {error}")
    };
    salvageable(&what, path)
}

fn damaged(path: &Path) -> Error {
    salvageable("a list of files is damaged", path)
}

fn salvageable(what: &str, path: &Path) -> Error {
    Error::Storage(format!(
        "{what}; restore a backup, or run floe doctor with --salvage: path={}",
        path.display()
    ))
}

/// All sorted files of a keyspace, by their numbers.
pub(crate) fn sorted_files(keyspace: &Path) -> Vec<(u64, PathBuf)> {
    let entries = entries(&keyspace.join(TABLES_FOLDER)).unwrap_or_default();
    let number = |entry: &DirEntry| entry.file_name().to_str()?.parse().ok();
    let mut files: Vec<_> = entries
        .iter()
        .filter_map(|entry| Some((number(entry)?, entry.path())))
        .collect();
    files.sort();
    files
}

/// The list of the sorted files of a keyspace, if it is as it was written.
///
/// # Errors
///
/// [`Error::Storage`] if it is not.
pub(crate) fn checked_list(keyspace: &Path) -> Result<PathBuf> {
    check_list(keyspace)?;
    let list = current_list(keyspace)?;
    Ok(keyspace.join(format!("v{}", list.number)))
}

#[cfg(test)]
mod tests;
