//! Checks the files of the key-value store before it opens them.
//!
//! The key-value store removes directories that are not in its list, removes files that look like its own, and aborts
//! on unexpected names. So each name is checked here first: names that it would remove or abort on are rejected with
//! their path, and names that it ignores are ignored.
//!
//! Each keyspace has a file `current` with the name and checksum of the list of its sorted files (`v7`). The key-value
//! store writes this checksum but does not verify it: it trusts a damaged list, or panics. So it is verified here.
//! Sorted files and blocks have checksums that the key-value store does verify.
//!
//! A crash leaves lists and sorted files that are not in the current list, which the key-value store removes. That is
//! allowed only if they start with the bytes that it writes.

mod list;

use std::fs::{self, DirEntry, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};

use list::CURRENT_FILE;
pub(crate) use list::listed;

/// Numbers of the keyspaces: the key-value store's own, and the four of [`kv`](crate::kv).
pub(crate) const KEYSPACES: std::ops::RangeInclusive<u64> = 0..=4;

/// The folder of the keyspaces.
pub(crate) const KEYSPACES_FOLDER: &str = "keyspaces";

/// The folder of the sorted files of a keyspace.
pub(crate) const TABLES_FOLDER: &str = "tables";

/// The file with the version of the key-value store.
const VERSION_FILE: &str = "version";

/// The folder of large values, which Floe does not use.
const BLOBS_FOLDER: &str = "blobs";

/// First bytes of a sorted file: a block header.
const SORTED_FILE_START: [u8; 4] = *b"LSM\x03";

/// First bytes of a list of files: the version of its format, and the version of the key-value store as text.
const LIST_START: [u8; 3] = *b"\x033.";

/// Checks the names of all files in `data`, and the lists of files.
///
/// # Errors
///
/// [`Error::Storage`] if something is missing, damaged, or has a name that the key-value store does not expect.
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

/// Checks the top folder. Files other than journals are ignored.
fn check_top(data: &Path) -> Result<()> {
    require_file(&data.join(VERSION_FILE))?;
    for entry in entries(data)? {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return Err(unexpected(&entry.path()));
        };
        let is_journal = name.to_ascii_lowercase().ends_with(".jnl");
        if is_journal {
            let number = name.strip_suffix(".jnl").and_then(parse_number);
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            if !is_file || number.is_none() {
                return Err(unexpected(&entry.path()));
            }
        }
    }
    Ok(())
}

fn check_keyspace(folder: &Path) -> Result<()> {
    require_file(&folder.join(CURRENT_FILE))?;
    let current = list::check(folder)?;
    for entry in entries(folder)? {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        // The key-value store removes all files with this prefix except the current one.
        if !is_dir && let Some(number) = name.strip_prefix('v') {
            let number = parse_number(number).ok_or_else(|| unexpected(&entry.path()))?;
            check_unlisted(&entry, number == current, &LIST_START)?;
        }
        // It removes files with numeric names from this folder, and fails on others.
        if name == BLOBS_FOLDER {
            check_blobs(&entry)?;
        }
    }
    check_sorted_files(folder)
}

fn check_blobs(folder: &DirEntry) -> Result<()> {
    if !folder.file_type().is_ok_and(|kind| kind.is_dir()) {
        return Err(unexpected(&folder.path()));
    }
    match entries(&folder.path())?.first() {
        Some(entry) => Err(unexpected(&entry.path())),
        None => Ok(()),
    }
}

fn check_sorted_files(keyspace: &Path) -> Result<()> {
    let mut listed = listed(keyspace)?;
    let folder = keyspace.join(TABLES_FOLDER);
    for entry in entries(&folder)? {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name == ".DS_Store" || name.starts_with("._") {
            continue;
        }
        let number = parse_number(&name).ok_or_else(|| unexpected(&entry.path()))?;
        let found = listed.iter().position(|listed| *listed == number);
        check_unlisted(&entry, found.is_some(), &SORTED_FILE_START)?;
        if let Some(found) = found {
            listed.swap_remove(found);
            let path = entry.path();
            // Its table of contents is at the end, with a checksum.
            sfa::Reader::new(&path)
                .map_err(|_| salvageable("a sorted file is damaged or cut short", &path))?;
        }
    }
    match listed.first() {
        Some(missing) => Err(unreadable(
            &folder.join(missing.to_string()),
            &ErrorKind::NotFound.into(),
        )),
        None => Ok(()),
    }
}

/// Rejects a file that is not in the current list, unless it starts with the bytes that the key-value store writes. A
/// crash can have truncated it or zeroed its first bytes.
fn check_unlisted(entry: &DirEntry, is_listed: bool, start: &[u8]) -> Result<()> {
    let path = entry.path();
    if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
        return Err(unexpected(&path));
    }
    if is_listed {
        return Ok(());
    }
    let mut bytes = Vec::new();
    let length = start.len() as u64;
    let read = File::open(&path).and_then(|file| file.take(length).read_to_end(&mut bytes));
    read.map_err(|e| unreadable(&path, &e))?;
    // Within a sector, later bytes can be on disk while earlier ones are lost.
    let is_plausible = |(byte, written): (&u8, &u8)| byte == written || *byte == 0;
    if bytes.iter().zip(start).all(is_plausible) {
        Ok(())
    } else {
        Err(unexpected(&path))
    }
}

/// Parses a number in the key-value store's notation, without leading zeros or signs.
fn parse_number(name: &str) -> Option<u64> {
    let number: u64 = name.parse().ok()?;
    (number.to_string() == name).then_some(number)
}

fn entries(folder: &Path) -> Result<Vec<DirEntry>> {
    let listed: io::Result<Vec<_>> = fs::read_dir(folder).and_then(Iterator::collect);
    listed.map_err(|e| unreadable(folder, &e))
}

fn number(entry: &DirEntry) -> Option<u64> {
    parse_number(entry.file_name().to_str()?)
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
        "the store contains a file that does not belong to it: move it out of the store's directory: path={}",
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

fn salvageable(what: &str, path: &Path) -> Error {
    Error::Storage(format!(
        "{what}: restore a backup, or run floe doctor with --salvage: path={}",
        path.display()
    ))
}

/// All sorted files of a keyspace, with their numbers.
pub(crate) fn sorted_files(keyspace: &Path) -> Vec<(u64, PathBuf)> {
    let entries = entries(&keyspace.join(TABLES_FOLDER)).unwrap_or_default();
    let mut files: Vec<_> = entries
        .iter()
        .filter_map(|entry| Some((number(entry)?, entry.path())))
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests;
