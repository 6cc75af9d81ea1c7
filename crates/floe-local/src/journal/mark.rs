//! Writes an empty batch to the start of a journal without batches, to distinguish it from one that was emptied.
//!
//! The journals of a store always contain a batch, because a new store and a copy start with one. There are two
//! exceptions: right after the key-value store has started another journal and removed the old one, and when a crash
//! tears the first batch of such a journal. Such a journal has preallocated zeros, which the key-value store cuts off
//! when it opens it. So an empty journal is marked before that, and one that is empty without preallocated zeros, or is
//! the first of all, was emptied.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::{END, MAGIC, START, failed};

/// Number of the journal that a new store starts with.
const FIRST: u64 = 0;

/// Writes a batch without items to the newest of the journals, none of which contains a valid batch.
///
/// # Errors
///
/// [`Error::Storage`] if this state is impossible, unless it is the same as when the store was closed; or on an I/O
/// error.
pub(super) fn mark_newest(
    folder: &Path,
    journals: &[(u64, PathBuf)],
    is_sealed: bool,
) -> Result<()> {
    let Some((number, path)) = journals.last() else {
        return Err(lost(&format!(
            "the store has no journal, so its latest writes are missing: missing={}",
            folder.join("*.jnl").display()
        )));
    };
    let length = fs::metadata(path).map_err(|e| failed("read", path, &e))?;
    if !is_sealed && (*number == FIRST || length.len() == 0) {
        return Err(lost(&format!(
            "the journal of the store is empty, so its latest writes are missing: path={}",
            path.display()
        )));
    }
    write(path).map_err(|e| failed("marked", path, &e))
}

fn lost(what: &str) -> Error {
    Error::Storage(format!(
        "{what}: restore a backup, or run floe doctor with --salvage"
    ))
}

/// Writes the mark before truncating, so that the journal is never empty and without preallocated zeros.
fn write(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    let batch = empty_batch();
    file.write_all(&batch)?;
    file.sync_all()?;
    file.set_len(batch.len() as u64)?;
    file.sync_all()
}

/// A batch without items and with sequence number 0.
pub(super) fn empty_batch() -> Vec<u8> {
    let mut bytes = vec![START];
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(0_u64.to_le_bytes());
    bytes.push(END);
    bytes.extend(xxh3_64(&[]).to_le_bytes());
    bytes.extend(MAGIC);
    bytes
}
