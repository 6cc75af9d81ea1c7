//! An empty batch at the beginning of a journal that holds none, so that one that was emptied can be told from it.
//!
//! Every store has a journal with a batch in it: a new store and a copy begin with one. There are two moments at which it has
//! none: just after the store below has begun another journal and removed the old one, and when a crash tears the first batch
//! of such a journal. Such a journal has room, of zeros; the store below cuts that off when it opens it. So an empty journal
//! is marked before that, and one that is empty without room, or the first of all, was emptied.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::{END, MAGIC, START, failed};

/// The number of the journal that a store is made with.
const FIRST: u64 = 0;

/// Puts a batch without items into the newest of the journals, none of which has a whole batch.
///
/// # Errors
///
/// [`Error::Storage`] if they cannot be so, unless they are as they were when the store was closed; or on a failing disk.
pub(super) fn mark(folder: &Path, journals: &[(u64, PathBuf)], is_sealed: bool) -> Result<()> {
    let Some((number, path)) = journals.last() else {
        return Err(lost(&format!(
            "the store has no journal, so its last writes are missing: missing={}",
            folder.join("*.jnl").display()
        )));
    };
    let length = fs::metadata(path).map_err(|e| failed("read", path, &e))?;
    if !is_sealed && (*number == FIRST || length.len() == 0) {
        return Err(lost(&format!(
            "the journal of the store is empty, so its last writes are missing: path={}",
            path.display()
        )));
    }
    write(path).map_err(|e| failed("marked", path, &e))
}

fn lost(what: &str) -> Error {
    Error::Storage(format!(
        "{what}; restore a backup, or run floe doctor with --salvage"
    ))
}

/// The mark first, so that the journal is never empty and without room.
fn write(path: &Path) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    let batch = batch();
    file.write_all(&batch)?;
    file.sync_all()?;
    file.set_len(batch.len() as u64)?;
    file.sync_all()
}

/// A batch without items, before all others.
pub(super) fn batch() -> Vec<u8> {
    let mut bytes = vec![START];
    bytes.extend(0_u32.to_le_bytes());
    bytes.extend(0_u64.to_le_bytes());
    bytes.push(END);
    bytes.extend(xxh3_64(&[]).to_le_bytes());
    bytes.extend(MAGIC);
    bytes
}
