//! Checks the lists of files of the store below, before that store opens them.
//!
//! Each space has a file `current`, which names the file with the list of its sorted files (`v7`) and holds
//! the checksum of that list. The store below writes the checksum and does not look at it: it takes what a
//! damaged list says for granted, or panics. So it is looked at here. Sorted files and blocks have checksums
//! that the store does check.
//!
//! The format is that of the store's version 3, whose number `kv.rs` pins: `current` is the number of the list
//! (`u64`), the checksum (`u128`, xxh3) and a zero, all little-endian.

use std::fs;
use std::path::Path;

use floe_store::{Error, Result};
use xxhash_rust::xxh3::xxh3_128;

/// Checks the list of files of every space below `folder`. What is missing or too short is left to the store,
/// which tells of it.
///
/// # Errors
///
/// [`Error::Storage`] when a list is not as it was written.
pub(crate) fn check_versions(folder: &Path) -> Result<()> {
    let Ok(spaces) = fs::read_dir(folder.join("keyspaces")) else {
        return Ok(());
    };
    for space in spaces.flatten() {
        let current = fs::read(space.path().join("current")).unwrap_or_default();
        let Some((number, checksum)) = read_current(&current) else {
            continue;
        };
        let path = space.path().join(format!("v{number}"));
        if let Ok(list) = fs::read(&path)
            && xxh3_128(&list) != checksum
        {
            return Err(Error::Storage(format!(
                "a list of files is damaged; restore a backup: file={}",
                path.display()
            )));
        }
    }
    Ok(())
}

fn read_current(bytes: &[u8]) -> Option<(u64, u128)> {
    let (number, rest) = bytes.split_first_chunk()?;
    let (checksum, _kind) = rest.split_first_chunk()?;
    Some((u64::from_le_bytes(*number), u128::from_le_bytes(*checksum)))
}
