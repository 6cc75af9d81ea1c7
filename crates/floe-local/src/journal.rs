//! Cuts a torn tail off the journal of the store below, before that store opens it.
//!
//! When the power fails in the middle of a sync, the last batch of the journal can be on disk in part:
//! some of its sectors written, others still zero. This batch was never acknowledged, so it has to go. The store below drops a batch without an end by itself, but refuses to open when the end
//! is there and the middle is not, and it believes the lengths that it finds. So the journal is walked
//! here first, with the same rules and no trust, and cut behind its last whole batch.
//!
//! A broken batch with a whole one behind it is another matter: the later batch was only begun after
//! the earlier was synced, so acknowledged data is damaged, and cutting would hide that. Such a
//! journal is refused. Under relaxed durability nothing is synced in between, so there the tail is
//! everything from the first broken batch on.
//!
//! The format is that of the store's version 3, whose number `kv.rs` pins:
//!
//! ```text
//! start  01  items:u32  sequence:u64
//! item   02  kind:u8  compression:u8  space:u64  key_len:u16  value_len:u32  stored_len:u32  key  value
//! clear  04  space:u64
//! end    03  checksum:u64 (xxh3 of all items as they stand)  "FJL" 03
//! ```
//!
//! All numbers are little-endian; the rest of a preallocated journal is zero.

mod ahead;
mod contents;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

pub(crate) use ahead::Ahead;
pub(crate) use contents::{Contents, Doubt};

/// What may be lost when the tail is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The last batch only: every batch was synced before the next was begun.
    LastBatch,
    /// Everything from the first broken batch on: batches were not synced one by one.
    Unsynced,
}

/// Cuts what is behind the last whole batch off the journals in `folder`, and returns how many bytes that were.
///
/// # Errors
///
/// [`Error::Storage`] if acknowledged data is damaged, or on a failing disk.
pub(crate) fn trim_torn_tail(folder: &Path, tail: Tail) -> Result<u64> {
    let mut torn: Option<Torn> = None;
    let mut last_sequence = None;
    for (_, path) in journals(folder)? {
        let bytes = read(&path)?;
        let whole = whole_batches(&bytes, &mut last_sequence);
        let rest = bytes.get(whole..).unwrap_or_default();
        match &torn {
            Some(torn) if whole > 0 && tail == Tail::LastBatch => return Err(torn.damaged()),
            Some(_) if whole > 0 => {
                // Nothing was synced in between, so the end begins with the first broken batch.
                cut(&path, 0).map_err(|e| failed("cut", &path, &e))?;
                continue;
            }
            _ => {}
        }
        let used = rest.iter().rposition(|byte| *byte != 0);
        let Some(last) = used else { continue };
        let found = Torn {
            path,
            whole: whole as u64,
            bytes: last as u64 + 1,
        };
        if tail == Tail::LastBatch && holds_whole_batch(rest) {
            return Err(found.damaged());
        }
        torn.get_or_insert(found);
    }
    let Some(torn) = torn else { return Ok(0) };
    cut(&torn.path, torn.whole).map_err(|e| failed("cut", &torn.path, &e))?;
    Ok(torn.bytes)
}

/// A journal whose end is not whole.
struct Torn {
    path: PathBuf,
    /// Where its whole batches end.
    whole: u64,
    /// How many bytes were written behind them.
    bytes: u64,
}

impl Torn {
    fn damaged(&self) -> Error {
        Error::Storage(format!(
            "the journal is damaged in the middle, so acknowledged writes may be lost; restore a backup, or run floe \
             doctor with --salvage: file={} offset={}",
            self.path.display(),
            self.whole
        ))
    }
}

/// Cuts every batch off the journals in `folder` whose sequence number is not below this one, and everything behind it.
/// They belong to a commit that failed.
///
/// # Errors
///
/// [`Error::Storage`] on a failing disk.
pub(crate) fn cut_from(folder: &Path, sequence: u64) -> Result<()> {
    for (_, path) in journals(folder)? {
        let bytes = read(&path)?;
        let mut at = 0;
        while let Some(batch) = bytes.get(at..).and_then(whole_batch)
            && batch.sequence < sequence
        {
            at += batch.length;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        if rest.iter().any(|byte| *byte != 0) {
            cut(&path, at as u64).map_err(|e| failed("cut", &path, &e))?;
        }
    }
    Ok(())
}

/// The journals in `folder` with their numbers, the oldest first.
///
/// # Errors
///
/// [`Error::Storage`] if the folder cannot be listed.
pub(crate) fn journals(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed("listed", folder, &e)),
    };
    let mut journals = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| failed("listed", folder, &e))?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_suffix(".jnl")?.parse().ok());
        journals.extend(number.map(|number| (number, path)));
    }
    journals.sort_unstable();
    Ok(journals)
}

/// What was written to a journal.
///
/// # Errors
///
/// [`Error::Storage`] if it cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    read_data(path).map_err(|e| failed("read", path, &e))
}

/// What is in a file up to the last place where something was ever written. A journal is made long and filled later,
/// and the zeros behind are neither read nor kept in memory.
pub(crate) fn read_data(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = data_length(&file)?;
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where the last written part of a file ends.
#[cfg(target_os = "linux")]
fn data_length(file: &File) -> io::Result<u64> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    let mut end = 0;
    loop {
        match seek(file, SeekFrom::Data(end)) {
            Ok(start) => end = seek(file, SeekFrom::Hole(start))?,
            Err(Errno::NXIO) => return Ok(end),
            // A file system that does not tell has nothing to leave out.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(file.metadata()?.len()),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn data_length(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

/// The journal with the highest number: the only one that was open when the process ended.
fn newest_journal(folder: &Path) -> Result<Option<PathBuf>> {
    Ok(journals(folder)?.pop().map(|(_, path)| path))
}

fn cut(path: &Path, length: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.set_len(length)?;
    file.sync_all()
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::Storage(format!(
        "the journal could not be {what}: {error} path={}",
        path.display()
    ))
}

/// The length of the longest beginning that consists of whole batches whose sequence numbers ascend from the last one.
/// The sequence number is the one part of a batch that no checksum covers.
fn whole_batches(bytes: &[u8], last_sequence: &mut Option<u64>) -> usize {
    let mut at = 0;
    while let Some(batch) = bytes.get(at..).and_then(whole_batch) {
        if !follows(*last_sequence, batch.sequence) {
            break;
        }
        *last_sequence = Some(batch.sequence);
        at += batch.length;
    }
    at
}

/// Whether a batch of this number can come behind one of the last number.
fn follows(last: Option<u64>, sequence: u64) -> bool {
    last.is_none_or(|last| {
        let step = sequence.checked_sub(last);
        step.is_some_and(|step| (1..SEQUENCE_STEP_MAX).contains(&step))
    })
}

/// Whether a whole batch begins anywhere in these bytes, behind one at their beginning that is whole but for its sequence
/// number.
fn holds_whole_batch(bytes: &[u8]) -> bool {
    let first = whole_batch(bytes).map_or(0, |batch| batch.length);
    next_batch(bytes, first).is_some()
}

/// Where the next whole batch begins.
fn next_batch(bytes: &[u8], from: usize) -> Option<usize> {
    let bytes_from = bytes.get(from..)?;
    let starts = bytes_from.iter().enumerate();
    let mut starts = starts.filter(|(_, byte)| **byte == START);
    let is_whole = |at: usize| bytes_from.get(at..).and_then(whole_batch).is_some();
    let found = starts.find(|(at, _)| is_whole(*at));
    found.map(|(at, _)| from + at)
}

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const MAGIC: [u8; 4] = *b"FJL\x03";

/// More numbers than this are never skipped between two batches.
const SEQUENCE_STEP_MAX: u64 = 1 << 32;

/// A batch that can be walked item by item to its end.
struct Batch<'a> {
    /// How many bytes it takes.
    length: usize,
    sequence: u64,
    /// How many items there are in the body.
    items: u32,
    body: &'a [u8],
    /// Whether its checksum is right.
    is_whole: bool,
}

/// The batch at the beginning, if it is whole and its checksum is right.
fn whole_batch(bytes: &[u8]) -> Option<Batch<'_>> {
    walk_batch(bytes).filter(|batch| batch.is_whole)
}

/// The batch at the beginning, if it can be walked to its end.
fn walk_batch(bytes: &[u8]) -> Option<Batch<'_>> {
    let mut rest = Cursor(bytes);
    (rest.byte()? == START).then_some(())?;
    let items = rest.u32()?;
    let sequence = rest.u64()?;
    let body = rest.0;
    for _ in 0..items {
        skip_item(&mut rest)?;
    }
    let body = body.get(..body.len() - rest.0.len())?;
    (rest.byte()? == END).then_some(())?;
    let checksum = rest.u64()?;
    (rest.take(MAGIC.len())? == MAGIC).then_some(())?;
    Some(Batch {
        length: bytes.len() - rest.0.len(),
        sequence,
        items,
        body,
        is_whole: checksum == xxh3_64(body),
    })
}

fn skip_item(rest: &mut Cursor<'_>) -> Option<()> {
    match rest.byte()? {
        ITEM => {
            // Kind, compression and space.
            rest.take(10)?;
            let key = usize::from(rest.u16()?);
            rest.u32()?;
            let stored = usize::try_from(rest.u32()?).ok()?;
            rest.take(key)?;
            rest.take(stored)?;
        }
        CLEAR => {
            rest.take(8)?;
        }
        _ => return None,
    }
    Some(())
}

/// What is left to read.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const LEN: usize>(&mut self) -> Option<[u8; LEN]> {
        self.take(LEN)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A batch as the store below writes it.
    fn batch(sequence: u64, values: &[&[u8]]) -> Vec<u8> {
        let mut body = Vec::new();
        for (n, value) in values.iter().enumerate() {
            let key = format!("key-{n}");
            body.extend([ITEM, 0, 0]);
            body.extend(7_u64.to_le_bytes());
            body.extend(u16::try_from(key.len()).unwrap().to_le_bytes());
            let length = u32::try_from(value.len()).unwrap().to_le_bytes();
            body.extend(length);
            body.extend(length);
            body.extend(key.as_bytes());
            body.extend(*value);
        }
        let mut bytes = vec![START];
        bytes.extend(u32::try_from(values.len()).unwrap().to_le_bytes());
        bytes.extend(sequence.to_le_bytes());
        bytes.extend(&body);
        bytes.push(END);
        bytes.extend(xxh3_64(&body).to_le_bytes());
        bytes.extend(MAGIC);
        bytes
    }

    /// Writes a journal with room behind it, trims it, and gives back what is left (without the room).
    fn trim(journal: &[u8], tail: Tail) -> Result<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("3.jnl");
        fs::write(folder.path().join("2.jnl"), [0; 64]).unwrap();
        fs::write(&path, [journal, &[0; 4096]].concat()).unwrap();
        trim_torn_tail(folder.path(), tail)?;
        let mut left = fs::read(&path).unwrap();
        let used = left.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
        left.truncate(used);
        Ok(left)
    }

    #[test]
    fn what_was_never_written_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.jnl");
        let mut file = File::create_new(&path).unwrap();
        file.set_len(64 << 20).unwrap();
        assert!(read_data(&path).unwrap().iter().all(|byte| *byte == 0));
        file.write_all(&[7; 10_000]).unwrap();
        file.seek(io::SeekFrom::Start(1 << 20)).unwrap();
        file.write_all(&[9; 100]).unwrap();
        let bytes = read_data(&path).unwrap();
        assert_eq!(bytes[9999..10_001], [7, 0]);
        assert_eq!(bytes[1 << 20..][..100], [9; 100]);
        assert!(bytes.len() > 1 << 20);
        if cfg!(target_os = "linux") {
            assert!(bytes.len() < 2 << 20, "{}", bytes.len());
        }
    }

    #[test]
    fn the_real_store_writes_batches_of_this_format() {
        let folder = tempfile::tempdir().unwrap();
        let options = crate::kv::KvOptions {
            cache_bytes: 1 << 20,
            write_buffer_bytes: 1 << 24,
        };
        let kv = crate::kv::Kv::create(folder.path(), &options).unwrap();
        let space = crate::kv::Space::Table(7);
        for n in 0..3_u8 {
            let mut batch = crate::kv::Batch::default();
            batch.put(space, vec![n], vec![n; 5000]);
            batch.push(space, space.key(&[n, n]), None);
            kv.commit(batch, crate::kv::Sync::Data).unwrap();
        }
        drop(kv);
        let path = newest_journal(folder.path()).unwrap().unwrap();
        let bytes = fs::read(path).unwrap();
        let whole = whole_batches(&bytes, &mut None);
        assert!(whole > 3 * 5000, "only {whole} bytes were understood");
        assert!(bytes[whole..].iter().all(|b| *b == 0));
    }

    #[test]
    fn a_whole_journal_is_left_alone() {
        let journal = [batch(1, &[b"a"]), batch(2, &[b"b", b""])].concat();
        assert_eq!(trim(&journal, Tail::LastBatch).unwrap(), journal);
        assert_eq!(trim(&[], Tail::LastBatch).unwrap(), [0u8; 0]);
    }

    #[test]
    fn a_last_batch_torn_at_any_byte_is_cut() {
        let first = batch(1, &[b"first"]);
        let last = batch(2, &[b"the second", b"and the third"]);
        for at in 0..last.len() {
            let cut = [&first[..], &last[..at]].concat();
            assert_eq!(trim(&cut, Tail::LastBatch).unwrap(), first, "ends at {at}");
            let mut hole = [&first[..], &last[..]].concat();
            if hole[first.len() + at] != 0 {
                hole[first.len() + at] = 0;
                let left = trim(&hole, Tail::LastBatch).unwrap();
                // The sequence number is the one part that no checksum covers: here it is 2, and then 0.
                let uncovered = (5..13).contains(&at) && at != 5;
                assert!(left == first || uncovered, "a hole at {at}");
            }
        }
    }

    #[test]
    fn a_broken_batch_before_a_whole_one_is_refused_unless_nothing_was_synced() {
        let mut journal = [batch(1, &[b"a"]), batch(2, &[b"bbbb"]), batch(3, &[b"c"])].concat();
        let kept = batch(1, &[b"a"]).len();
        let value = journal.windows(4).position(|w| w == b"bbbb").unwrap();
        journal[value] = b'x';
        let error = trim(&journal, Tail::LastBatch).unwrap_err().to_string();
        assert!(error.contains(&format!("offset={kept}")), "{error}");
        assert_eq!(trim(&journal, Tail::Unsynced).unwrap(), journal[..kept]);
    }

    #[test]
    fn lengths_that_lie_are_not_believed() {
        let mut lie = batch(1, &[b"a"]);
        lie[1..5].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(trim(&lie, Tail::LastBatch).unwrap(), [0u8; 0]);
        let mut lie = batch(1, &[b"a"]);
        let stored_len = 13 + 11 + 2 + 4;
        lie[stored_len..stored_len + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(trim(&lie, Tail::LastBatch).unwrap(), [0u8; 0]);
    }

    #[test]
    fn a_folder_without_journals_is_fine() {
        let folder = tempfile::tempdir().unwrap();
        trim_torn_tail(folder.path(), Tail::LastBatch).unwrap();
        trim_torn_tail(&folder.path().join("absent"), Tail::LastBatch).unwrap();
    }
}
