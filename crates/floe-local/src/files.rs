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
//! A crash leaves lists and sorted files that the current list does not name, which the store below removes. They are
//! left to it only if they begin as it writes them.

mod list;

use std::fs::{self, DirEntry, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};

use list::CURRENT_FILE;
pub(crate) use list::listed;

/// The keyspaces by their numbers: that of the store below, and the four of [`kv`](crate::kv).
pub(crate) const KEYSPACES: std::ops::RangeInclusive<u64> = 0..=4;

/// The folder of the keyspaces.
pub(crate) const KEYSPACES_FOLDER: &str = "keyspaces";

/// The folder of the sorted files of a keyspace.
pub(crate) const TABLES_FOLDER: &str = "tables";

/// The file that says of which version the store below is.
const VERSION_FILE: &str = "version";

/// The folder of large values, which Floe does not use.
const BLOBS_FOLDER: &str = "blobs";

/// How sorted files begin: with the header of a block.
const SORTED_FILE_START: [u8; 4] = *b"LSM\x03";

/// How lists of files begin: with the version of their format, and that of the store below as a text.
const LIST_START: [u8; 3] = *b"\x033.";

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
        // The store below removes files whose names begin so, but for the current one.
        if !is_dir && let Some(number) = name.strip_prefix('v') {
            let number = parse_number(number).ok_or_else(|| unexpected(&entry.path()))?;
            check_left(&entry, number == current, &LIST_START)?;
        }
        // It removes files with numbers in here, and fails on others.
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
        check_left(&entry, found.is_some(), &SORTED_FILE_START)?;
        if let Some(found) = found {
            listed.swap_remove(found);
            let path = entry.path();
            // Its table of contents is at its end, with a checksum.
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

/// Refuses a file that the current list does not name and that does not begin as the store below would write it. A crash
/// can have cut it short or lost its first bytes, which are zeros then.
fn check_left(entry: &DirEntry, is_listed: bool, start: &[u8]) -> Result<()> {
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
    // What was written first may be lost while what was written next is there, in one sector, too.
    let is_left = |(byte, written): (&u8, &u8)| byte == written || *byte == 0;
    if bytes.iter().zip(start).all(is_left) {
        Ok(())
    } else {
        Err(unexpected(&path))
    }
}

/// The number that a name is, as the store below writes numbers.
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

fn salvageable(what: &str, path: &Path) -> Error {
    Error::Storage(format!(
        "{what}; restore a backup, or run floe doctor with --salvage: path={}",
        path.display()
    ))
}

/// All sorted files of a keyspace, by their numbers.
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
