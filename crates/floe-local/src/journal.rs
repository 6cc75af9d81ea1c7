//! Cuts a torn tail off the journal of the key-value store, before the store opens it.
//!
//! When the power fails during a sync, the last batch of the journal can be partly on disk: some of its sectors
//! written, others still zero. This batch was never acknowledged, so it must be removed. The key-value store drops a
//! batch without an end, but refuses to open if the end is there and a part before it is missing, and it trusts the
//! lengths that it reads. So the journal is parsed here first, by the same rules but without trust, and truncated after
//! its last valid batch.
//!
//! A broken batch followed by a valid one is different: the later batch was only started after the earlier one was
//! synced, so acknowledged data is damaged, and truncating would hide that. Such a journal is rejected. Under relaxed
//! durability nothing is synced in between, so there the torn tail is everything from the first broken batch on.
//!
//! The format is that of version 3 of the key-value store, which `kv.rs` pins:
//!
//! ```text
//! start  01  items:u32  sequence:u64
//! item   02  kind:u8  compression:u8  space:u64  key_len:u16  value_len:u32  stored_len:u32  key  value
//! clear  04  space:u64
//! end    03  checksum:u64 (xxh3 of all items as written)  "FJL" 03
//! ```
//!
//! All numbers are little-endian; the rest of a preallocated journal is zero.

mod mark;
mod salvage;
mod zeroing;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use floe_store::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;

use crate::files::KEYSPACES;
pub(crate) use salvage::{JournalSalvage, UncertainKey};
pub(crate) use zeroing::JournalZeroing;

/// What may be lost if the tail is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TailPolicy {
    /// Only the last batch: every batch was synced before the next one was started.
    LastBatch,
    /// Everything from the first broken batch on: batches were not synced individually.
    Unsynced,
}

/// Truncates the journals in `folder` after the last valid batch, and returns the number of removed bytes. On an error
/// about their content, nothing is changed. `is_sealed` states that the journals are as they were when the store was
/// closed.
///
/// # Errors
///
/// [`Error::Storage`] if acknowledged data is damaged or missing, or on an I/O error.
pub(crate) fn trim_torn_tail(folder: &Path, tail: TailPolicy, is_sealed: bool) -> Result<u64> {
    let journals = journals(folder)?;
    let mut torn: Option<TornTail> = None;
    let mut later = Vec::new();
    let mut last_sequence = None;
    let mut has_batch = false;
    for (_, path) in &journals {
        let bytes = read(path)?;
        let valid = valid_prefix(&bytes, &mut last_sequence);
        has_batch |= valid > 0;
        let last = last_sequence;
        let rest = bytes.get(valid..).unwrap_or_default();
        match &torn {
            Some(torn) if valid > 0 && tail == TailPolicy::LastBatch => return Err(torn.damaged()),
            Some(_) if valid > 0 => {
                // Nothing was synced in between, so the torn tail starts at the first broken batch.
                later.push(path);
                continue;
            }
            _ => {}
        }
        let used = rest.iter().rposition(|byte| *byte != 0);
        let Some(last_used) = used else { continue };
        let found = TornTail {
            path: path.clone(),
            valid_end: valid as u64,
            bytes: last_used as u64 + 1,
        };
        let rest = rest.get(..=last_used).unwrap_or_default();
        if tail == TailPolicy::LastBatch && has_later_batch(rest, last) {
            return Err(found.damaged());
        }
        torn.get_or_insert(found);
    }
    let bytes = torn.as_ref().map_or(0, |torn| torn.bytes);
    if !has_batch {
        return mark::mark_newest(folder, &journals, is_sealed).map(|()| bytes);
    }
    for path in later {
        truncate(path, 0).map_err(|e| failed("truncated", path, &e))?;
    }
    if let Some(torn) = torn {
        truncate(&torn.path, torn.valid_end).map_err(|e| failed("truncated", &torn.path, &e))?;
    }
    Ok(bytes)
}

/// A journal with a torn tail.
struct TornTail {
    path: PathBuf,
    /// Offset of the end of its valid batches.
    valid_end: u64,
    /// Number of bytes written after them.
    bytes: u64,
}

impl TornTail {
    fn damaged(&self) -> Error {
        Error::Storage(format!(
            "the journal is damaged in the middle, so acknowledged writes may be lost: restore a backup, or run floe \
            doctor with --salvage: file={} offset={}",
            self.path.display(),
            self.valid_end
        ))
    }
}

/// Removes all batches from `sequence` on from the journals in `folder`, with everything after them. They belong to a
/// failed commit.
///
/// # Errors
///
/// [`Error::Storage`] on an I/O error.
pub(crate) fn truncate_from(folder: &Path, sequence: u64) -> Result<()> {
    for (_, path) in journals(folder)? {
        let bytes = read(&path)?;
        let mut at = 0;
        while let Some(batch) = bytes.get(at..).and_then(valid_batch)
            && batch.sequence < sequence
        {
            at += batch.length;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        if rest.iter().any(|byte| *byte != 0) {
            truncate(&path, at as u64).map_err(|e| failed("truncated", &path, &e))?;
        }
    }
    Ok(())
}

/// The journals in `folder` with their numbers, oldest first.
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

/// Reads the written part of a journal.
///
/// # Errors
///
/// [`Error::Storage`] if it cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    read_data(path).map_err(|e| failed("read", path, &e))
}

/// Reads a file up to the last position that was ever written. A journal is created at full length and filled later;
/// its unwritten zeros are neither read nor kept in memory.
pub(crate) fn read_data(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let length = data_length(&file)?;
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Offset of the end of the last written part of a file.
#[cfg(target_os = "linux")]
fn data_length(file: &File) -> io::Result<u64> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    let mut end = 0;
    loop {
        match seek(file, SeekFrom::Data(end)) {
            Ok(start) => end = seek(file, SeekFrom::Hole(start))?,
            Err(Errno::NXIO) => return Ok(end),
            // A file system without this operation has no holes to skip.
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

fn truncate(path: &Path, length: u64) -> io::Result<()> {
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

/// The length of the longest prefix of valid batches with ascending sequence numbers. The sequence number is the only
/// part of a batch that no checksum covers.
fn valid_prefix(bytes: &[u8], last_sequence: &mut Option<u64>) -> usize {
    let mut at = 0;
    while let Some(batch) = bytes.get(at..).and_then(valid_batch) {
        // A mark has no items and no sequence number.
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

/// Whether a batch with this sequence number can come after `last`.
fn follows(last: Option<u64>, sequence: u64) -> bool {
    last.is_none_or(|last| {
        let step = sequence.checked_sub(last);
        step.is_some_and(|step| (1..SEQUENCE_STEP_MAX).contains(&step))
    })
}

/// Whether a batch can come `bytes` bytes after the batch `last`: its length limits how many batches the lost part
/// can contain. The key-value store uses a few sequence numbers itself.
fn follows_directly(last: Option<u64>, sequence: u64, bytes: usize) -> bool {
    let batches = (bytes / BATCH_BYTES_MIN) as u64;
    last.is_none_or(|last| {
        let step = sequence.checked_sub(last);
        step.is_some_and(|step| (1..=batches + 1 + SEQUENCES_TAKEN_MAX).contains(&step))
    })
}

/// Whether a valid batch follows the broken one at the start of `bytes`, which end with a nonzero byte. Bytes inside
/// the items of the broken batch are values, even if they look like a batch.
fn has_later_batch(bytes: &[u8], last: Option<u64>) -> bool {
    let broken = parse_batch(bytes).map(|batch| batch.length);
    let mut at = broken.unwrap_or_else(|| parse_items(bytes).confirmed_end);
    while let Some(found) = next_batch(bytes, at) {
        let batch = bytes.get(found..).and_then(valid_batch);
        if batch.is_some_and(|batch| follows_directly(last, batch.sequence, found)) {
            return true;
        }
        at = found + 1;
    }
    false
}

/// Result of parsing the items of a broken batch.
struct ParsedItems {
    /// End of the last complete item that is followed by something that can follow an item.
    confirmed_end: usize,
    /// End of the next item, according to its lengths.
    claimed_end: usize,
}

/// Parses the items of the batch at the start of `bytes`, as far as possible.
fn parse_items(bytes: &[u8]) -> ParsedItems {
    let mut parsed = ParsedItems {
        confirmed_end: 0,
        claimed_end: 0,
    };
    let mut head = ByteReader(bytes);
    let items = match (head.byte(), head.u32(), head.u64()) {
        (Some(START), Some(items), Some(_)) => items,
        _ => return parsed,
    };
    let mut at = bytes.len() - head.0.len();
    for left in (0..items).rev() {
        let Some(end) = item_end(bytes, at) else {
            return parsed;
        };
        parsed.claimed_end = end;
        let is_confirmed = match bytes.get(end) {
            // It is the last thing in the journal.
            None => end == bytes.len(),
            Some(&END) => left == 0,
            Some(byte) => left > 0 && is_item(*byte, bytes, end),
        };
        if !is_confirmed {
            return parsed;
        }
        parsed.confirmed_end = end;
        at = end;
    }
    parsed
}

/// Whether an item starts at this offset, or the truncated start of one.
fn is_item(byte: u8, bytes: &[u8], at: usize) -> bool {
    let is_cut = bytes.len() - at < ITEM_HEAD_BYTES && matches!(byte, ITEM | CLEAR);
    is_cut || item_end(bytes, at).is_some()
}

/// The end of the item at this offset according to its lengths, if it looks like an item.
fn item_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut rest = ByteReader(bytes.get(at..)?);
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

/// The offset of the next valid batch.
fn next_batch(bytes: &[u8], from: usize) -> Option<usize> {
    let bytes_from = bytes.get(from..)?;
    let starts = bytes_from.iter().enumerate();
    let mut starts = starts.filter(|(_, byte)| **byte == START);
    let is_whole = |at: usize| bytes_from.get(at..).and_then(valid_batch).is_some();
    let found = starts.find(|(at, _)| is_whole(*at));
    found.map(|(at, _)| from + at)
}

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
/// Highest kind of item: values, and three kinds of removals.
const KIND_MAX: u8 = 4;
const MAGIC: [u8; 4] = *b"FJL\x03";

/// Maximum gap between the sequence numbers of two batches.
const SEQUENCE_STEP_MAX: u64 = 1 << 32;

/// Bytes before the key of an item.
const ITEM_HEAD_BYTES: usize = 21;

/// Size of a batch without items.
const BATCH_BYTES_MIN: usize = 26;

/// Maximum number of sequence numbers that the key-value store itself uses between two batches.
const SEQUENCES_TAKEN_MAX: u64 = 1 << 16;

/// A batch that can be parsed to its end.
struct Batch {
    /// Size in bytes.
    length: usize,
    sequence: u64,
    /// Whether its checksum matches.
    is_valid: bool,
}

/// The batch at the start of `bytes`, if it can be parsed and its checksum matches.
fn valid_batch(bytes: &[u8]) -> Option<Batch> {
    parse_batch(bytes).filter(|batch| batch.is_valid)
}

/// The batch at the start of `bytes`, if it can be parsed to its end.
fn parse_batch(bytes: &[u8]) -> Option<Batch> {
    let mut rest = ByteReader(bytes);
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
        is_valid: checksum == xxh3_64(body),
    })
}

fn skip_item(rest: &mut ByteReader<'_>) -> Option<()> {
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

/// The remaining bytes.
struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
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

    /// A batch as the key-value store writes it.
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

    /// Writes a journal with preallocated space, trims it, and returns what is left (without the space).
    fn trim(journal: &[u8], tail: TailPolicy) -> Result<Vec<u8>> {
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
    fn unwritten_part_of_a_file_is_not_read() {
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
    fn key_value_store_writes_batches_of_this_format() {
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
        let valid = valid_prefix(&bytes, &mut None);
        assert!(valid > 3 * 5000, "only {valid} bytes were parsed");
        assert!(bytes[valid..].iter().all(|b| *b == 0));
    }

    #[test]
    fn intact_journal_is_unchanged() {
        let journal = [batch(1, &[b"a"]), batch(2, &[b"b", b""])].concat();
        assert_eq!(trim(&journal, TailPolicy::LastBatch).unwrap(), journal);
        assert_eq!(
            trim(&[], TailPolicy::LastBatch).unwrap(),
            mark::empty_batch()
        );
    }

    #[test]
    fn torn_last_batch_is_removed_wherever_it_is_torn() {
        let first = batch(1, &[b"first"]);
        let last = batch(2, &[b"the second", b"and the third"]);
        for at in 0..last.len() {
            let cut = [&first[..], &last[..at]].concat();
            assert_eq!(
                trim(&cut, TailPolicy::LastBatch).unwrap(),
                first,
                "ends at {at}"
            );
            let mut hole = [&first[..], &last[..]].concat();
            if hole[first.len() + at] != 0 {
                hole[first.len() + at] = 0;
                let left = trim(&hole, TailPolicy::LastBatch).unwrap();
                // No checksum covers the sequence number: here it changes from 2 to 0.
                let uncovered = (5..13).contains(&at) && at != 5;
                assert!(left == first || uncovered, "a hole at {at}");
            }
        }
    }

    /// A value that contains what looks like batches with this sequence number.
    fn forged(sequence: u64) -> Vec<u8> {
        let lie = batch(sequence, &[b"forged"]);
        [&b"text "[..], &lie, b" and ", &lie, b" more text"].concat()
    }

    #[test]
    fn torn_batch_whose_value_looks_like_a_batch_is_removed() {
        let first = batch(1, &[b"first"]);
        for number in [0, 1, 1 << 40, u64::MAX] {
            let last = batch(2, &[b"a", &forged(number), b"the end"]);
            for at in 0..last.len() {
                let cut = [&first[..], &last[..at]].concat();
                assert_eq!(
                    trim(&cut, TailPolicy::LastBatch).unwrap(),
                    first,
                    "ends at {at}"
                );
            }
        }
        // A batch right after is also treated as a value, once its item is complete.
        let (before, later) = (batch(2, &[b"a", &forged(3)]), b"the end");
        let last = batch(2, &[b"a", &forged(3), later]);
        for at in before.len() - 13..last.len() {
            let cut = [&first[..], &last[..at]].concat();
            assert_eq!(
                trim(&cut, TailPolicy::LastBatch).unwrap(),
                first,
                "ends at {at}"
            );
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
                let left = trim(&damaged, TailPolicy::LastBatch);
                // The length before compression is not looked at, but covered by the checksum.
                assert!(left.is_err(), "byte {byte} bit {bit}");
            }
        }
    }

    #[test]
    fn broken_batch_before_a_valid_one_is_rejected_if_batches_are_synced() {
        let mut journal = [batch(1, &[b"a"]), batch(2, &[b"bbbb"]), batch(3, &[b"c"])].concat();
        let kept = batch(1, &[b"a"]).len();
        let value = journal.windows(4).position(|w| w == b"bbbb").unwrap();
        journal[value] = b'x';
        let error = trim(&journal, TailPolicy::LastBatch)
            .unwrap_err()
            .to_string();
        assert!(error.contains(&format!("offset={kept}")), "{error}");
        assert_eq!(
            trim(&journal, TailPolicy::Unsynced).unwrap(),
            journal[..kept]
        );
    }

    #[test]
    fn false_lengths_are_not_trusted() {
        let mut lie = batch(1, &[b"a"]);
        lie[1..5].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(
            trim(&lie, TailPolicy::LastBatch).unwrap(),
            mark::empty_batch()
        );
        let mut lie = batch(1, &[b"a"]);
        let stored_len = 13 + 11 + 2 + 4;
        lie[stored_len..stored_len + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(
            trim(&lie, TailPolicy::LastBatch).unwrap(),
            mark::empty_batch()
        );
    }

    #[test]
    fn missing_or_emptied_journal_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let check_rejected = |expected: &str| {
            let trimmed = trim_torn_tail(folder.path(), TailPolicy::LastBatch, false);
            let message = trimmed.unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
            assert!(message.contains("--salvage"), "{message}");
        };
        check_rejected("no journal");
        for (name, length) in [("0.jnl", 0), ("0.jnl", 4096), ("3.jnl", 0)] {
            let path = folder.path().join(name);
            fs::write(&path, vec![0; length]).unwrap();
            check_rejected("is empty");
            assert_eq!(fs::read(&path).unwrap(), vec![0; length]);
            // Accepted if it was empty when the store was closed.
            trim_torn_tail(folder.path(), TailPolicy::LastBatch, true).unwrap();
            assert_eq!(fs::read(&path).unwrap(), mark::empty_batch());
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn new_journal_without_a_batch_is_marked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("3.jnl");
        // As it is right after its creation, or if its first batch was torn.
        for written in [&b""[..], &batch(9, &[b"torn"])[..30]] {
            fs::write(&path, [written, &[0; 4096]].concat()).unwrap();
            for _ in 0..2 {
                trim_torn_tail(folder.path(), TailPolicy::LastBatch, false).unwrap();
                assert_eq!(fs::read(&path).unwrap(), mark::empty_batch());
            }
        }
        let both = [mark::empty_batch(), batch(70_000, &[b"a"])].concat();
        fs::write(&path, &both).unwrap();
        trim_torn_tail(folder.path(), TailPolicy::LastBatch, false).unwrap();
        assert_eq!(fs::read(&path).unwrap(), both);
    }

    #[test]
    fn key_value_store_accepts_the_mark() {
        let folder = tempfile::tempdir().unwrap();
        let options = crate::kv::KvOptions {
            cache_bytes: 1 << 20,
            write_buffer_bytes: 1 << 24,
        };
        drop(crate::kv::Kv::create(folder.path(), &options).unwrap());
        trim_torn_tail(folder.path(), TailPolicy::LastBatch, true).unwrap();
        for n in 0..3_u8 {
            let kv = crate::kv::Kv::open(folder.path(), &options).unwrap();
            let mut batch = crate::kv::Batch::default();
            batch.put(crate::kv::Space::Meta, [n], vec![n]);
            kv.commit(batch, crate::kv::Sync::Data).unwrap();
            let read = |n| kv.snapshot().get(crate::kv::Space::Meta, &[n]).unwrap();
            assert!((0..=n).all(|n| read(n).is_some()));
            drop(kv);
            assert_eq!(
                trim_torn_tail(folder.path(), TailPolicy::LastBatch, false),
                Ok(0)
            );
        }
        let path = newest_journal(folder.path()).unwrap().unwrap();
        assert!(fs::read(path).unwrap().starts_with(&mark::empty_batch()));
    }
}
