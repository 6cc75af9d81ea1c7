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
mod mark;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::files::KEYSPACES;
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

/// Cuts what is behind the last whole batch off the journals in `folder`, and returns how many bytes that were. Changes
/// nothing if it fails on what it finds. `is_sealed` says that the journals are as they were when the store was closed.
///
/// # Errors
///
/// [`Error::Storage`] if acknowledged data is damaged or gone, or on a failing disk.
pub(crate) fn trim_torn_tail(folder: &Path, tail: Tail, is_sealed: bool) -> Result<u64> {
    let journals = journals(folder)?;
    let mut torn: Option<Torn> = None;
    let mut behind = Vec::new();
    let mut last_sequence = None;
    let mut has_batch = false;
    for (_, path) in &journals {
        let bytes = read(path)?;
        let whole = whole_batches(&bytes, &mut last_sequence);
        has_batch |= whole > 0;
        let last = last_sequence;
        let rest = bytes.get(whole..).unwrap_or_default();
        match &torn {
            Some(torn) if whole > 0 && tail == Tail::LastBatch => return Err(torn.damaged()),
            Some(_) if whole > 0 => {
                // Nothing was synced in between, so the end begins with the first broken batch.
                behind.push(path);
                continue;
            }
            _ => {}
        }
        let used = rest.iter().rposition(|byte| *byte != 0);
        let Some(last_used) = used else { continue };
        let found = Torn {
            path: path.clone(),
            whole: whole as u64,
            bytes: last_used as u64 + 1,
        };
        let rest = rest.get(..=last_used).unwrap_or_default();
        if tail == Tail::LastBatch && has_later_batch(rest, last) {
            return Err(found.damaged());
        }
        torn.get_or_insert(found);
    }
    let bytes = torn.as_ref().map_or(0, |torn| torn.bytes);
    if !has_batch {
        return mark::mark(folder, &journals, is_sealed).map(|()| bytes);
    }
    for path in behind {
        cut(path, 0).map_err(|e| failed("cut", path, &e))?;
    }
    if let Some(torn) = torn {
        cut(&torn.path, torn.whole).map_err(|e| failed("cut", &torn.path, &e))?;
    }
    Ok(bytes)
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
        // A mark, which has no items, has no number either.
        if batch.length > BATCH_BYTES_MIN {
            if !follows(*last_sequence, batch.sequence) {
                break;
            }
            *last_sequence = Some(batch.sequence);
        }
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

/// Whether a batch may come so many bytes behind one of the last number: a lost stretch holds so many batches at most, and
/// the store below takes a few numbers for itself.
fn follows_directly(last: Option<u64>, sequence: u64, bytes: usize) -> bool {
    let batches = (bytes / BATCH_BYTES_MIN) as u64;
    last.is_none_or(|last| {
        let step = sequence.checked_sub(last);
        step.is_some_and(|step| (1..=batches + 1 + SEQUENCES_TAKEN_MAX).contains(&step))
    })
}

/// Whether a whole batch comes behind the broken one at the beginning of these bytes, whose last is not zero. What lies
/// inside of the items of the broken one is no batch but a value, whatever it looks like.
fn has_later_batch(bytes: &[u8], last: Option<u64>) -> bool {
    let broken = walk_batch(bytes).map(|batch| batch.length);
    let mut at = broken.unwrap_or_else(|| walk_items(bytes).whole);
    while let Some(found) = next_batch(bytes, at) {
        let batch = bytes.get(found..).and_then(whole_batch);
        if batch.is_some_and(|batch| follows_directly(last, batch.sequence, found)) {
            return true;
        }
        at = found + 1;
    }
    false
}

/// How far the items of a broken batch reach.
struct Walked {
    /// The end of the last one that is there as a whole, with something behind it that can come behind an item.
    whole: usize,
    /// Where the next one ends, by its lengths.
    claimed: usize,
}

/// Walks the items of the batch at the beginning of these bytes, as far as that goes.
fn walk_items(bytes: &[u8]) -> Walked {
    let mut walked = Walked {
        whole: 0,
        claimed: 0,
    };
    let mut head = Cursor(bytes);
    let items = match (head.byte(), head.u32(), head.u64()) {
        (Some(START), Some(items), Some(_)) => items,
        _ => return walked,
    };
    let mut at = bytes.len() - head.0.len();
    for left in (0..items).rev() {
        let Some(end) = item_end(bytes, at) else {
            return walked;
        };
        walked.claimed = end;
        let is_confirmed = match bytes.get(end) {
            // Nothing is behind it.
            None => end == bytes.len(),
            Some(&END) => left == 0,
            Some(byte) => left > 0 && is_item(*byte, bytes, end),
        };
        if !is_confirmed {
            return walked;
        }
        walked.whole = end;
        at = end;
    }
    walked
}

/// Whether an item begins at this place, or as much of one as there is.
fn is_item(byte: u8, bytes: &[u8], at: usize) -> bool {
    let is_cut = bytes.len() - at < ITEM_HEAD_BYTES && matches!(byte, ITEM | CLEAR);
    is_cut || item_end(bytes, at).is_some()
}

/// Where the item at this place ends by its lengths, if it looks like one.
fn item_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut rest = Cursor(bytes.get(at..)?);
    let is_keyspace = |number: u64| number <= *KEYSPACES.end();
    match rest.byte()? {
        ITEM => {
            let (kind, compression) = (rest.byte()?, rest.byte()?);
            let is_known = kind <= KIND_MAX && compression <= 1 && is_keyspace(rest.u64()?);
            let key = usize::from(rest.u16()?);
            rest.u32()?;
            let stored = usize::try_from(rest.u32()?).ok()?;
            let head = bytes.len() - rest.0.len();
            is_known.then(|| head.saturating_add(key).saturating_add(stored))
        }
        CLEAR => is_keyspace(rest.u64()?).then(|| bytes.len() - rest.0.len()),
        _ => None,
    }
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
/// Values, and three kinds of removals.
const KIND_MAX: u8 = 4;
const MAGIC: [u8; 4] = *b"FJL\x03";

/// More numbers than this are never skipped between two batches.
const SEQUENCE_STEP_MAX: u64 = 1 << 32;

/// What is before the key of an item.
const ITEM_HEAD_BYTES: usize = 21;

/// A batch without items.
const BATCH_BYTES_MIN: usize = 26;

/// How many numbers the store below takes for itself between two batches, at most.
const SEQUENCES_TAKEN_MAX: u64 = 1 << 16;

/// A batch that can be walked item by item to its end.
struct Batch {
    /// How many bytes it takes.
    length: usize,
    sequence: u64,
    /// Whether its checksum is right.
    is_whole: bool,
}

/// The batch at the beginning, if it is whole and its checksum is right.
fn whole_batch(bytes: &[u8]) -> Option<Batch> {
    walk_batch(bytes).filter(|batch| batch.is_whole)
}

/// The batch at the beginning, if it can be walked to its end.
fn walk_batch(bytes: &[u8]) -> Option<Batch> {
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
            body.extend(4_u64.to_le_bytes());
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
        trim_torn_tail(folder.path(), tail, false)?;
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
        assert_eq!(trim(&[], Tail::LastBatch).unwrap(), mark::batch());
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

    /// A value that looks like a batch of this number.
    fn forged(sequence: u64) -> Vec<u8> {
        let lie = batch(sequence, &[b"forged"]);
        [&b"text "[..], &lie, b" and ", &lie, b" more text"].concat()
    }

    #[test]
    fn torn_batch_with_a_value_that_looks_like_a_batch_is_cut() {
        let first = batch(1, &[b"first"]);
        for number in [0, 1, 1 << 40, u64::MAX] {
            let last = batch(2, &[b"a", &forged(number), b"the end"]);
            for at in 0..last.len() {
                let cut = [&first[..], &last[..at]].concat();
                assert_eq!(trim(&cut, Tail::LastBatch).unwrap(), first, "ends at {at}");
            }
        }
        // One that follows directly is a value, too, as soon as its item is there.
        let (before, behind) = (batch(2, &[b"a", &forged(3)]), b"the end");
        let last = batch(2, &[b"a", &forged(3), behind]);
        for at in before.len() - 13..last.len() {
            let cut = [&first[..], &last[..at]].concat();
            assert_eq!(trim(&cut, Tail::LastBatch).unwrap(), first, "ends at {at}");
        }
    }

    #[test]
    fn damaged_length_does_not_hide_later_batches() {
        let batches: Vec<_> = (1..40).map(|n| batch(n, &[b"some value", b"b"])).collect();
        let journal = batches.concat();
        let at = batches[..9].concat().len();
        // The number of items, and the lengths of the first one.
        for byte in [1, 2, 3, 4, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33] {
            for bit in 0..8 {
                let mut damaged = journal.clone();
                damaged[at + byte] ^= 1 << bit;
                let left = trim(&damaged, Tail::LastBatch);
                // The length before compression is not looked at, but covered by the checksum.
                assert!(left.is_err(), "byte {byte} bit {bit}");
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
        assert_eq!(trim(&lie, Tail::LastBatch).unwrap(), mark::batch());
        let mut lie = batch(1, &[b"a"]);
        let stored_len = 13 + 11 + 2 + 4;
        lie[stored_len..stored_len + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(trim(&lie, Tail::LastBatch).unwrap(), mark::batch());
    }

    #[test]
    fn journal_that_is_gone_or_was_emptied_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refuse = |expected: &str| {
            let trimmed = trim_torn_tail(folder.path(), Tail::LastBatch, false);
            let message = trimmed.unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(message.contains("--salvage"), "{message}");
        };
        refuse("no journal");
        for (name, length) in [("0.jnl", 0), ("0.jnl", 4096), ("3.jnl", 0)] {
            let path = folder.path().join(name);
            fs::write(&path, vec![0; length]).unwrap();
            refuse("is empty");
            assert_eq!(fs::read(&path).unwrap(), vec![0; length]);
            // Not if it was so when the store was closed.
            trim_torn_tail(folder.path(), Tail::LastBatch, true).unwrap();
            assert_eq!(fs::read(&path).unwrap(), mark::batch());
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn new_journal_without_a_batch_is_marked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("3.jnl");
        // As it is just after it was begun, also if its first batch was torn.
        for written in [&b""[..], &batch(9, &[b"torn"])[..30]] {
            fs::write(&path, [written, &[0; 4096]].concat()).unwrap();
            for _ in 0..2 {
                trim_torn_tail(folder.path(), Tail::LastBatch, false).unwrap();
                assert_eq!(fs::read(&path).unwrap(), mark::batch());
            }
        }
        let both = [mark::batch(), batch(70_000, &[b"a"])].concat();
        fs::write(&path, &both).unwrap();
        trim_torn_tail(folder.path(), Tail::LastBatch, false).unwrap();
        assert_eq!(fs::read(&path).unwrap(), both);
    }

    #[test]
    fn the_real_store_accepts_the_mark() {
        let folder = tempfile::tempdir().unwrap();
        let options = crate::kv::KvOptions {
            cache_bytes: 1 << 20,
            write_buffer_bytes: 1 << 24,
        };
        drop(crate::kv::Kv::create(folder.path(), &options).unwrap());
        trim_torn_tail(folder.path(), Tail::LastBatch, true).unwrap();
        for n in 0..3_u8 {
            let kv = crate::kv::Kv::open(folder.path(), &options).unwrap();
            let mut batch = crate::kv::Batch::default();
            batch.put(crate::kv::Space::Meta, [n], vec![n]);
            kv.commit(batch, crate::kv::Sync::Data).unwrap();
            let read = |n| kv.snapshot().get(crate::kv::Space::Meta, &[n]).unwrap();
            assert!((0..=n).all(|n| read(n).is_some()));
            drop(kv);
            assert_eq!(trim_torn_tail(folder.path(), Tail::LastBatch, false), Ok(0));
        }
        let path = newest_journal(folder.path()).unwrap().unwrap();
        assert!(fs::read(path).unwrap().starts_with(&mark::batch()));
    }
}
