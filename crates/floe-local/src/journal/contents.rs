//! What can be read of the journals, whatever else in them is damaged.
//!
//! A journal is cut into pieces: batches that can be walked to their end, and what lies between them. A batch counts if its
//! checksum is right and its number follows; no checksum covers the number. The keys of all others are in doubt: what is
//! found of them elsewhere may be older than what was lost.
//!
//! Values may hold bytes that look like batches: anybody who may write an item can make them. So nothing is looked for
//! inside of a batch that can be walked. What is found behind one that cannot be walked counts only if it goes on to the
//! end of the journal, or for longer than any value. Otherwise it is put in doubt itself.

use std::path::Path;

use floe_store::Result;

use super::{
    CLEAR, Cursor, ITEM, follows, follows_directly, next_batch, read, walk_batch, walk_items,
};

/// No value is longer than the two images of an item in a change record.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// A key that a journal sets or removes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JournalEntry {
    /// The number of the keyspace.
    pub(crate) keyspace: u64,
    pub(crate) sequence: u64,
    pub(crate) key: Vec<u8>,
    /// `None` if the key is removed.
    pub(crate) value: Option<Vec<u8>>,
}

/// A stretch of a journal that belongs to no batch that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostBytes {
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// A key that a lost batch sets or removes: its versions with these numbers may be older.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// The number of the keyspace.
    pub(crate) keyspace: u64,
    pub(crate) key: Vec<u8>,
    pub(crate) numbers: std::ops::Range<u64>,
}

/// What the journals of a store hold, read one after the other.
#[derive(Debug)]
pub(crate) struct Contents {
    /// Whether the store was closed. Otherwise the end of the last journal may be torn, and was never acknowledged then.
    is_closed: bool,
    /// The number of the last batch that counts.
    last: Option<u64>,
    doubts: Vec<Doubt>,
    /// How many of them lie before a batch that counts, which ends their numbers.
    settled: usize,
    /// Where the doubts begin that come from the last piece, if that does not count.
    tail: usize,
}

impl Contents {
    pub(crate) const fn new(is_closed: bool) -> Self {
        Self {
            is_closed,
            last: None,
            doubts: Vec::new(),
            settled: 0,
            tail: 0,
        }
    }

    /// Visits the entries of all batches of a journal that count, in their order, and returns what lies between them.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`](floe_store::Error::Storage) if the file cannot be read.
    pub(crate) fn read(
        &mut self,
        path: &Path,
        mut visit: impl FnMut(JournalEntry),
    ) -> Result<Vec<LostBytes>> {
        let bytes = read(path)?;
        let used = bytes.iter().rposition(|byte| *byte != 0);
        let bytes = bytes
            .get(..used.map_or(0, |last| last + 1))
            .unwrap_or_default();
        let pieces = pieces(bytes, self.is_closed);
        let mut lost: Vec<LostBytes> = Vec::new();
        let mut counted = 0;
        for (at, piece) in pieces.iter().enumerate() {
            let end = piece.offset + piece.length;
            let content = bytes.get(piece.offset..end).unwrap_or_default();
            let next = [1, 2].map(|ahead| pieces.get(at + ahead).and_then(Piece::number));
            match piece.number().filter(|number| self.counts(*number, next)) {
                Some(number) => {
                    self.count(number, content);
                    counted = end;
                    entries(content).for_each(&mut visit);
                }
                None => {
                    self.doubt(piece, content, piece.offset - counted);
                    match lost.last_mut() {
                        Some(last) if last.offset + last.bytes == piece.offset => {
                            last.bytes += piece.length;
                        }
                        _ => lost.push(LostBytes {
                            offset: piece.offset,
                            bytes: piece.length,
                        }),
                    }
                }
            }
        }
        Ok(lost)
    }

    /// Whether no batch counts.
    pub(crate) const fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// The keys of which something may be lost.
    pub(crate) fn into_doubts(mut self) -> Vec<Doubt> {
        if !self.is_closed {
            self.doubts.truncate(self.tail);
        }
        self.doubts
    }

    /// Whether a whole batch of this number counts. If the next two follow the last and not this one, this number is wrong.
    /// Of two with the same number one is wrong, and either way the second is the newer.
    fn counts(&self, number: u64, [next, second]: [Option<u64>; 2]) -> bool {
        let is_next_before = next.is_some_and(|next| follows(self.last, next) && next < number);
        let is_second_before = second.is_none_or(|second| second <= number);
        let is_in_order = follows(self.last, number) || self.last == Some(number);
        is_in_order && !(is_next_before && is_second_before)
    }

    fn count(&mut self, number: u64, content: &[u8]) {
        for doubt in self.doubts.iter_mut().skip(self.settled) {
            doubt.numbers.end = number;
        }
        self.settled = self.doubts.len();
        if self.last.is_none() {
            // No batch before it says that its number is not too small. Where a sorted file has a version between it
            // and the next batch, one of the two numbers is wrong.
            self.push_doubts(content, number.saturating_add(1));
        }
        self.last = Some(number);
        self.tail = self.doubts.len();
    }

    /// Puts the keys of a piece in doubt that lies so many bytes behind the last one that counts.
    fn doubt(&mut self, piece: &Piece, content: &[u8], bytes: usize) {
        self.tail = self.doubts.len();
        let is_forged = match piece.kind {
            Kind::Found(number) => !follows_directly(self.last, number, bytes),
            Kind::Whole(_) | Kind::Broken => false,
        };
        if !is_forged {
            self.push_doubts(content, 0);
        }
    }

    fn push_doubts(&mut self, content: &[u8], from: u64) {
        let doubts = entries(content).map(|entry| Doubt {
            keyspace: entry.keyspace,
            key: entry.key,
            numbers: from..u64::MAX,
        });
        self.doubts.extend(doubts);
    }
}

/// A part of a journal.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    offset: usize,
    length: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A batch of this number whose checksum is right.
    Whole(u64),
    /// One that may be a part of a value.
    Found(u64),
    /// A batch whose checksum is wrong, or no batch.
    Broken,
}

impl Piece {
    const fn number(&self) -> Option<u64> {
        match self.kind {
            Kind::Whole(number) => Some(number),
            Kind::Found(_) | Kind::Broken => None,
        }
    }
}

/// Cuts a journal into its batches, and what lies between them. A batch that is broken but can be walked to its end is
/// a piece too, so that nothing in its values is taken for a batch.
fn pieces(bytes: &[u8], is_closed: bool) -> Vec<Piece> {
    let mut pieces = Vec::new();
    // The first piece behind the last one that cannot be walked.
    let mut first_found = None;
    // An item of that one reaches to here.
    let mut inside = 0;
    let mut at = 0;
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        if let Some(batch) = walk_batch(rest) {
            pieces.push(Piece {
                offset: at,
                length: batch.length,
                kind: if batch.is_whole {
                    Kind::Whole(batch.sequence)
                } else {
                    Kind::Broken
                },
            });
            at += batch.length;
            continue;
        }
        if let Some(first) = first_found.take() {
            distrust(&mut pieces, first);
        }
        let walked = walk_items(rest);
        let end = next_batch(bytes, at + walked.whole.max(1)).unwrap_or(bytes.len());
        inside = inside.max(at + walked.claimed);
        pieces.push(Piece {
            offset: at,
            length: end - at,
            kind: Kind::Broken,
        });
        first_found = Some(pieces.len());
        at = end;
    }
    // What goes on to the end is no part of a value, unless the end is torn in the middle of one.
    if let Some(first) = first_found
        && !is_closed
        && pieces.get(first).is_some_and(|piece| piece.offset < inside)
    {
        distrust(&mut pieces, first);
    }
    pieces
}

/// The pieces from this one on may lie in a value, if that can be as long.
fn distrust(pieces: &mut [Piece], first: usize) {
    let pieces = pieces.get_mut(first..).unwrap_or_default();
    let length: usize = pieces.iter().map(|piece| piece.length).sum();
    if length > VALUE_BYTES_MAX {
        return;
    }
    for piece in pieces {
        if let Kind::Whole(number) = piece.kind {
            piece.kind = Kind::Found(number);
        }
    }
}

/// The entries of the batch at the beginning, as far as it can be walked.
fn entries(bytes: &[u8]) -> impl Iterator<Item = JournalEntry> {
    let mut rest = Cursor(bytes);
    // The byte of its start.
    let head = rest.byte().and_then(|_| Some((rest.u32()?, rest.u64()?)));
    let (items, sequence) = head.unwrap_or_default();
    let all = (0..items).map_while(move |_| entry(&mut rest, sequence));
    all.flatten()
}

/// The next entry; `Some(None)` for one that sets no key.
fn entry(body: &mut Cursor<'_>, sequence: u64) -> Option<Option<JournalEntry>> {
    match body.byte()? {
        ITEM => {
            let kind = body.byte()?;
            let compression = body.byte()?;
            let keyspace = body.u64()?;
            let key_len = usize::from(body.u16()?);
            body.u32()?;
            let value_len = usize::try_from(body.u32()?).ok()?;
            let key = body.take(key_len)?.to_vec();
            let value = body.take(value_len)?.to_vec();
            // Values are written as they are, and kinds other than these never.
            let value = match (kind, compression) {
                (VALUE, UNCOMPRESSED) => Some(value),
                (TOMBSTONE, _) => None,
                _ => return Some(None),
            };
            Some(Some(JournalEntry {
                keyspace,
                sequence,
                key,
                value,
            }))
        }
        CLEAR => {
            body.take(8)?;
            Some(None)
        }
        _ => None,
    }
}

const VALUE: u8 = 0;
const TOMBSTONE: u8 = 1;
const UNCOMPRESSED: u8 = 0;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::kv::{Batch, Kv, KvOptions, Space, Sync};

    /// A journal of twenty batches: each sets a key of the catalog and removes a change record.
    fn journal(folder: &Path) -> PathBuf {
        let options = KvOptions {
            cache_bytes: 1 << 20,
            write_buffer_bytes: 1 << 24,
        };
        let kv = Kv::create(folder, &options).unwrap();
        for n in 0..20_u8 {
            let mut batch = Batch::default();
            batch.put(Space::Meta, [n], format!("value-{n}").into_bytes());
            batch.push(Space::Changes, Space::Changes.key(&[n]), None);
            kv.commit(batch, Sync::Data).unwrap();
        }
        drop(kv);
        super::super::newest_journal(folder).unwrap().unwrap()
    }

    fn contents(path: &Path) -> (Vec<JournalEntry>, Vec<LostBytes>, Vec<Doubt>) {
        let mut found = Vec::new();
        let mut contents = Contents::new(true);
        let lost = contents.read(path, |entry| found.push(entry)).unwrap();
        let mut doubts = contents.into_doubts();
        // Those of the first batch concern no version of a sound store.
        doubts.retain(|doubt| doubt.numbers.start == 0);
        (found, lost, doubts)
    }

    #[test]
    fn entries_before_and_behind_damage_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(folder.path());
        let (mut found, lost, doubts) = contents(&path);
        assert_eq!((lost, doubts), (vec![], vec![]));
        assert_eq!(found.len(), 40);
        assert_eq!(found[6].value.as_deref(), Some(&b"value-3"[..]));
        assert_eq!((found[6].keyspace, &found[6].key[..]), (1, &[3][..]));
        assert_eq!((found[7].keyspace, &found[7].value), (2, &None));

        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.windows(7).position(|w| w == b"value-7").unwrap();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let (left, lost, doubts) = contents(&path);
        assert_eq!(lost.len(), 1);
        assert!((lost[0].offset..lost[0].offset + lost[0].bytes).contains(&at));
        let next = found[16].sequence;
        found.retain(|entry| entry.key != [7]);
        assert_eq!(left, found);
        let doubt = |keyspace| Doubt {
            keyspace,
            key: vec![7],
            numbers: 0..next,
        };
        assert_eq!(doubts, [doubt(1), doubt(2)]);
    }

    #[test]
    fn batch_with_a_flipped_number_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(folder.path());
        let sound = fs::read(&path).unwrap();
        let (all, ..) = contents(&path);
        let used = sound.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        let sound = &sound[..used];
        let pieces = pieces(sound, true);
        assert_eq!(pieces.len(), 20);
        for (n, piece) in pieces.iter().enumerate() {
            for bit in 0..64 {
                let mut bytes = sound.to_vec();
                bytes[piece.offset + 5 + bit / 8] ^= 1 << (bit % 8);
                fs::write(&path, &bytes).unwrap();
                let (found, lost, doubts) = contents(&path);
                let is_last = n == pieces.len() - 1;
                let flipped = pieces[n].number().unwrap() ^ (1 << bit);
                let is_in_order = (n == 0 || pieces[n - 1].number().unwrap() <= flipped)
                    && (is_last || flipped <= pieces[n + 1].number().unwrap());
                let last = n.checked_sub(1).map(|last| pieces[last].number().unwrap());
                let lies_near = last.is_none_or(|last| flipped.saturating_sub(last) < 1 << 32);
                let is_here = |entry: &JournalEntry| entry.key == [u8::try_from(n).unwrap()];
                if is_in_order && lies_near {
                    // What it wrote is right, and is the newest for all that is known.
                    assert_eq!(found.iter().filter(|entry| is_here(entry)).count(), 2);
                    assert_eq!(lost, []);
                    continue;
                }
                let others = all.iter().filter(|entry| !is_here(entry));
                assert!(found.iter().eq(others), "batch {n} bit {bit}");
                assert_eq!(lost.len(), 1, "batch {n} bit {bit}");
                assert_eq!(doubts.len(), 2, "batch {n} bit {bit}");
                let next = pieces.get(n + 1).map(|next| next.number().unwrap());
                let next = next.unwrap_or(u64::MAX);
                assert!(doubts.iter().all(|doubt| doubt.numbers == (0..next)));
            }
        }
    }

    #[test]
    fn number_of_the_first_batch_is_compared_with_sorted_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(folder.path());
        let mut contents = Contents::new(true);
        let mut found = Vec::new();
        contents.read(&path, |entry| found.push(entry)).unwrap();
        let doubts = contents.into_doubts();
        let numbers = found[0].sequence + 1..found[2].sequence;
        assert!(doubts.iter().all(|doubt| doubt.numbers == numbers));
        assert_eq!(doubts.len(), 2);
    }

    #[test]
    fn end_that_a_crash_tore_puts_nothing_in_doubt() {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(folder.path());
        let mut bytes = fs::read(&path).unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        bytes[used - 20..].fill(0);
        fs::write(&path, &bytes).unwrap();
        for is_closed in [true, false] {
            let mut contents = Contents::new(is_closed);
            let lost = contents.read(&path, |_| {}).unwrap();
            assert_eq!(lost.len(), 1);
            let doubts = contents.into_doubts();
            let lost = doubts.iter().filter(|doubt| doubt.numbers.start == 0);
            assert_eq!(lost.count() > 0, is_closed);
        }
    }

    /// A batch that sets keys of the catalog, as the store below writes it.
    fn raw_batch(sequence: u64, entries: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut body = Vec::new();
        for (key, value) in entries {
            body.extend([ITEM, VALUE, UNCOMPRESSED]);
            body.extend(1_u64.to_le_bytes());
            body.extend(u16::try_from(key.len()).unwrap().to_le_bytes());
            let length = u32::try_from(value.len()).unwrap().to_le_bytes();
            body.extend([length, length].concat());
            body.extend([*key, *value].concat());
        }
        let mut bytes = vec![super::super::START];
        bytes.extend(u32::try_from(entries.len()).unwrap().to_le_bytes());
        bytes.extend(sequence.to_le_bytes());
        bytes.extend(&body);
        bytes.push(super::super::END);
        bytes.extend(xxhash_rust::xxh3::xxh3_64(&body).to_le_bytes());
        bytes.extend(super::super::MAGIC);
        bytes
    }

    #[test]
    fn value_that_looks_like_a_batch_is_never_applied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.jnl");
        for number in [6, 7, 100, 1 << 40] {
            let lie = raw_batch(number, &[(b"victim", b"forged")]);
            let lies = [&b"text"[..], &lie, &lie, b"more"].concat();
            let before = raw_batch(5, &[(b"victim", b"true")]);
            let evil = raw_batch(6, &[(b"a", b"b"), (b"evil", &lies), (b"c", b"d")]);
            let behind = raw_batch(7, &[(b"other", b"kept")]);
            for at in 0..evil.len() {
                for bit in [0, 3, 7] {
                    let mut damaged = evil.clone();
                    damaged[at] ^= 1 << bit;
                    fs::write(&path, [&before[..], &damaged, &behind].concat()).unwrap();
                    let (found, lost, doubts) = contents(&path);
                    let is_there = |key: &[u8], value: &[u8]| {
                        let mut found = found.iter();
                        found.any(|entry| entry.key == key && entry.value.as_deref() == Some(value))
                    };
                    let context = format!("number={number} at={at} bit={bit}");
                    assert!(is_there(b"victim", b"true"), "{context}");
                    assert!(!is_there(b"victim", b"forged"), "{context}");
                    let is_number = (5..13).contains(&at);
                    assert!(is_there(b"other", b"kept") || is_number, "{context}");
                    assert!(lost.len() == 1 || is_number, "{context}");
                    let is_doubted = doubts.iter().any(|doubt| doubt.key == b"victim");
                    assert!(!is_doubted || number != 1 << 40, "{context}");
                }
            }
            // Torn in its middle by a crash.
            for end in 0..evil.len() {
                fs::write(&path, [&before[..], &evil[..end]].concat()).unwrap();
                let mut contents = Contents::new(false);
                let mut found = Vec::new();
                contents.read(&path, |entry| found.push(entry)).unwrap();
                assert_eq!(found.len(), 1, "{end}");
                assert_eq!(found[0].value.as_deref(), Some(&b"true"[..]));
            }
        }
    }

    #[test]
    fn found_batches_count_if_they_go_on_for_longer_than_a_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.jnl");
        let first = raw_batch(1, &[(b"first", b"1")]);
        let value = vec![7; VALUE_BYTES_MAX / 4];
        for count in [1, 5] {
            let mut journal = first.clone();
            // The lengths of the second are damaged, and the end is.
            journal.extend([super::super::START; 100]);
            for n in 0..count {
                journal.extend(raw_batch(3 + n, &[(&[n as u8], &value)]));
            }
            journal.extend(*b"damaged");
            fs::write(&path, journal).unwrap();
            let (found, _, doubts) = contents(&path);
            if count == 1 {
                assert_eq!((found.len(), doubts.len()), (1, 1));
            } else {
                assert_eq!((found.len(), doubts.len()), (6, 0));
            }
        }
    }
}
