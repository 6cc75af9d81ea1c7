//! Reads everything intact from journals, whatever else in them is damaged.
//!
//! A journal is split into pieces: batches that can be parsed to their end, and the bytes between them. A batch is
//! accepted if its checksum matches and its sequence number is in order; no checksum covers that number. The keys of
//! all other batches are uncertain: versions of them found elsewhere may be older than the lost ones.
//!
//! Values may contain bytes that look like batches, since any client that can write an item can forge them. So the
//! inside of a batch that can be parsed is never searched. Batches found after one that cannot be parsed are accepted
//! only if they continue to the end of the journal, or for longer than any value. Otherwise their keys are uncertain as
//! well.

use std::path::Path;

use floe_store::Result;

use super::{
    ByteReader, CLEAR, ITEM, follows, follows_directly, next_batch, parse_batch, parse_items, read,
};

/// Maximum length of a value: the two images of an item in a change record.
const VALUE_BYTES_MAX: usize = 1 << 20;

/// A key that a journal writes or removes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct JournalEntry {
    /// The number of the keyspace.
    pub(crate) keyspace: u64,
    pub(crate) sequence: u64,
    pub(crate) key: Vec<u8>,
    /// `None` if the key is removed.
    pub(crate) value: Option<Vec<u8>>,
}

/// A part of a journal that belongs to no accepted batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostBytes {
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// A key in a lost batch: its versions with these sequence numbers may be outdated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UncertainKey {
    /// The number of the keyspace.
    pub(crate) keyspace: u64,
    pub(crate) key: Vec<u8>,
    pub(crate) sequences: std::ops::Range<u64>,
}

/// The content of a store's journals, read in order.
#[derive(Debug)]
pub(crate) struct JournalSalvage {
    /// Whether the store was closed. Otherwise the end of the last journal may be torn, and was not acknowledged.
    is_closed: bool,
    /// Sequence number of the last accepted batch.
    last: Option<u64>,
    uncertain: Vec<UncertainKey>,
    /// How many of them come before an accepted batch, which bounds their sequence numbers.
    bounded: usize,
    /// Index of the first one from the last piece, if that was not accepted.
    tail: usize,
}

impl JournalSalvage {
    pub(crate) const fn new(is_closed: bool) -> Self {
        Self {
            is_closed,
            last: None,
            uncertain: Vec::new(),
            bounded: 0,
            tail: 0,
        }
    }

    /// Visits the entries of all accepted batches of a journal in order, and returns the parts between them.
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
        let mut accepted_end = 0;
        for (at, piece) in pieces.iter().enumerate() {
            let end = piece.offset + piece.length;
            let content = bytes.get(piece.offset..end).unwrap_or_default();
            let next = [1, 2].map(|ahead| pieces.get(at + ahead).and_then(Piece::number));
            match piece
                .number()
                .filter(|number| self.is_accepted(*number, next))
            {
                Some(number) => {
                    self.accept(number, content);
                    accepted_end = end;
                    entries(content).for_each(&mut visit);
                }
                None => {
                    self.reject(piece, content, piece.offset - accepted_end);
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

    /// Whether no batch was accepted.
    pub(crate) const fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// The keys for which a newer version may be lost.
    pub(crate) fn into_uncertain_keys(mut self) -> Vec<UncertainKey> {
        if !self.is_closed {
            self.uncertain.truncate(self.tail);
        }
        self.uncertain
    }

    /// Whether a valid batch is accepted. If the next two batches follow the last one but not this one, its number is
    /// wrong. Of two batches with the same number one is wrong, and in both cases the second is newer.
    fn is_accepted(&self, number: u64, [next, second]: [Option<u64>; 2]) -> bool {
        let is_next_before = next.is_some_and(|next| follows(self.last, next) && next < number);
        let is_second_before = second.is_none_or(|second| second <= number);
        let is_in_order = follows(self.last, number) || self.last == Some(number);
        is_in_order && !(is_next_before && is_second_before)
    }

    fn accept(&mut self, number: u64, content: &[u8]) {
        for key in self.uncertain.iter_mut().skip(self.bounded) {
            key.sequences.end = number;
        }
        self.bounded = self.uncertain.len();
        if self.last.is_none() {
            // No earlier batch proves that its number is not too small. If a sorted file has a version between it and
            // the next batch, one of the two numbers is wrong.
            self.push_uncertain(content, number.saturating_add(1));
        }
        self.last = Some(number);
        self.tail = self.uncertain.len();
    }

    /// Marks the keys of a piece as uncertain, which starts `bytes` bytes after the last accepted batch.
    fn reject(&mut self, piece: &Piece, content: &[u8], bytes: usize) {
        self.tail = self.uncertain.len();
        let is_forged = match piece.kind {
            PieceKind::Suspect(number) => !follows_directly(self.last, number, bytes),
            PieceKind::Valid(_) | PieceKind::Broken => false,
        };
        if !is_forged {
            self.push_uncertain(content, 0);
        }
    }

    fn push_uncertain(&mut self, content: &[u8], from: u64) {
        let uncertain = entries(content).map(|entry| UncertainKey {
            keyspace: entry.keyspace,
            key: entry.key,
            sequences: from..u64::MAX,
        });
        self.uncertain.extend(uncertain);
    }
}

/// A part of a journal.
#[derive(Debug, PartialEq, Eq)]
struct Piece {
    offset: usize,
    length: usize,
    kind: PieceKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceKind {
    /// A batch with a correct checksum, and its sequence number.
    Valid(u64),
    /// The same, but it may be part of a value.
    Suspect(u64),
    /// A batch with a wrong checksum, or no batch.
    Broken,
}

impl Piece {
    const fn number(&self) -> Option<u64> {
        match self.kind {
            PieceKind::Valid(number) => Some(number),
            PieceKind::Suspect(_) | PieceKind::Broken => None,
        }
    }
}

/// Splits a journal into its batches and the bytes between them. A broken batch that can be parsed to its end is a
/// piece, too, so that nothing inside its values is mistaken for a batch.
fn pieces(bytes: &[u8], is_closed: bool) -> Vec<Piece> {
    let mut pieces = Vec::new();
    // The first piece after the last one that cannot be parsed.
    let mut first_found = None;
    // The end of that piece's last item, according to its lengths.
    let mut inside = 0;
    let mut at = 0;
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        if let Some(batch) = parse_batch(rest) {
            pieces.push(Piece {
                offset: at,
                length: batch.length,
                kind: if batch.is_valid {
                    PieceKind::Valid(batch.sequence)
                } else {
                    PieceKind::Broken
                },
            });
            at += batch.length;
            continue;
        }
        if let Some(first) = first_found.take() {
            mark_suspect(&mut pieces, first);
        }
        let parsed = parse_items(rest);
        let end = next_batch(bytes, at + parsed.confirmed_end.max(1)).unwrap_or(bytes.len());
        inside = inside.max(at + parsed.claimed_end);
        pieces.push(Piece {
            offset: at,
            length: end - at,
            kind: PieceKind::Broken,
        });
        first_found = Some(pieces.len());
        at = end;
    }
    // Batches that continue to the end are not part of a value, unless the end is torn within a value.
    if let Some(first) = first_found
        && !is_closed
        && pieces.get(first).is_some_and(|piece| piece.offset < inside)
    {
        mark_suspect(&mut pieces, first);
    }
    pieces
}

/// Marks all pieces from `first` on as possible parts of a value, if a value can be that long.
fn mark_suspect(pieces: &mut [Piece], first: usize) {
    let pieces = pieces.get_mut(first..).unwrap_or_default();
    let length: usize = pieces.iter().map(|piece| piece.length).sum();
    if length > VALUE_BYTES_MAX {
        return;
    }
    for piece in pieces {
        if let PieceKind::Valid(number) = piece.kind {
            piece.kind = PieceKind::Suspect(number);
        }
    }
}

/// The entries of the batch at the start of `bytes`, as far as it can be parsed.
fn entries(bytes: &[u8]) -> impl Iterator<Item = JournalEntry> {
    let mut rest = ByteReader(bytes);
    // Skip the start byte.
    let head = rest.byte().and_then(|_| Some((rest.u32()?, rest.u64()?)));
    let (items, sequence) = head.unwrap_or_default();
    let all = (0..items).map_while(move |_| entry(&mut rest, sequence));
    all.flatten()
}

/// Reads the next entry; `Some(None)` for one without a key.
fn entry(body: &mut ByteReader<'_>, sequence: u64) -> Option<Option<JournalEntry>> {
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
            // Floe writes uncompressed values and tombstones only.
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

    /// A journal of twenty batches, each of which sets a key of the catalog and removes a change record.
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

    fn contents(path: &Path) -> (Vec<JournalEntry>, Vec<LostBytes>, Vec<UncertainKey>) {
        let mut found = Vec::new();
        let mut contents = JournalSalvage::new(true);
        let lost = contents.read(path, |entry| found.push(entry)).unwrap();
        let mut uncertain = contents.into_uncertain_keys();
        // Those of the first batch affect no version in an undamaged store.
        uncertain.retain(|key| key.sequences.start == 0);
        (found, lost, uncertain)
    }

    #[test]
    fn entries_before_and_after_damage_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(folder.path());
        let (mut found, lost, uncertain) = contents(&path);
        assert_eq!((lost, uncertain), (vec![], vec![]));
        assert_eq!(found.len(), 40);
        assert_eq!(found[6].value.as_deref(), Some(&b"value-3"[..]));
        assert_eq!((found[6].keyspace, &found[6].key[..]), (1, &[3][..]));
        assert_eq!((found[7].keyspace, &found[7].value), (2, &None));

        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.windows(7).position(|w| w == b"value-7").unwrap();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let (left, lost, uncertain) = contents(&path);
        assert_eq!(lost.len(), 1);
        assert!((lost[0].offset..lost[0].offset + lost[0].bytes).contains(&at));
        let next = found[16].sequence;
        found.retain(|entry| entry.key != [7]);
        assert_eq!(left, found);
        let key = |keyspace| UncertainKey {
            keyspace,
            key: vec![7],
            sequences: 0..next,
        };
        assert_eq!(uncertain, [key(1), key(2)]);
    }

    #[test]
    fn batch_with_a_flipped_sequence_number_is_not_accepted() {
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
                let (found, lost, uncertain) = contents(&path);
                let is_last = n == pieces.len() - 1;
                let flipped = pieces[n].number().unwrap() ^ (1 << bit);
                let is_in_order = (n == 0 || pieces[n - 1].number().unwrap() <= flipped)
                    && (is_last || flipped <= pieces[n + 1].number().unwrap());
                let last = n.checked_sub(1).map(|last| pieces[last].number().unwrap());
                let lies_near = last.is_none_or(|last| flipped.saturating_sub(last) < 1 << 32);
                let is_here = |entry: &JournalEntry| entry.key == [u8::try_from(n).unwrap()];
                if is_in_order && lies_near {
                    // Its content is correct, and nothing shows that it is not the newest.
                    assert_eq!(found.iter().filter(|entry| is_here(entry)).count(), 2);
                    assert_eq!(lost, []);
                    continue;
                }
                let others = all.iter().filter(|entry| !is_here(entry));
                assert!(found.iter().eq(others), "batch {n} bit {bit}");
                assert_eq!(lost.len(), 1, "batch {n} bit {bit}");
                assert_eq!(uncertain.len(), 2, "batch {n} bit {bit}");
                let next = pieces.get(n + 1).map(|next| next.number().unwrap());
                let next = next.unwrap_or(u64::MAX);
                assert!(uncertain.iter().all(|key| key.sequences == (0..next)));
            }
        }
    }

    #[test]
    fn first_sequence_number_is_compared_with_sorted_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(folder.path());
        let mut contents = JournalSalvage::new(true);
        let mut found = Vec::new();
        contents.read(&path, |entry| found.push(entry)).unwrap();
        let uncertain = contents.into_uncertain_keys();
        let sequences = found[0].sequence + 1..found[2].sequence;
        assert!(uncertain.iter().all(|key| key.sequences == sequences));
        assert_eq!(uncertain.len(), 2);
    }

    #[test]
    fn torn_end_after_a_crash_makes_no_key_uncertain() {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(folder.path());
        let mut bytes = fs::read(&path).unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        bytes[used - 20..].fill(0);
        fs::write(&path, &bytes).unwrap();
        for is_closed in [true, false] {
            let mut contents = JournalSalvage::new(is_closed);
            let lost = contents.read(&path, |_| {}).unwrap();
            assert_eq!(lost.len(), 1);
            let uncertain = contents.into_uncertain_keys();
            let lost = uncertain.iter().filter(|key| key.sequences.start == 0);
            assert_eq!(lost.count() > 0, is_closed);
        }
    }

    /// A batch that sets keys of the catalog, as the key-value store writes it.
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
            let spoofed = raw_batch(6, &[(b"a", b"b"), (b"evil", &lies), (b"c", b"d")]);
            let later = raw_batch(7, &[(b"other", b"kept")]);
            for at in 0..spoofed.len() {
                for bit in [0, 3, 7] {
                    let mut damaged = spoofed.clone();
                    damaged[at] ^= 1 << bit;
                    fs::write(&path, [&before[..], &damaged, &later].concat()).unwrap();
                    let (found, lost, uncertain) = contents(&path);
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
                    let is_uncertain = uncertain.iter().any(|key| key.key == b"victim");
                    assert!(!is_uncertain || number != 1 << 40, "{context}");
                }
            }
            // Torn in the middle by a crash.
            for end in 0..spoofed.len() {
                fs::write(&path, [&before[..], &spoofed[..end]].concat()).unwrap();
                let mut contents = JournalSalvage::new(false);
                let mut found = Vec::new();
                contents.read(&path, |entry| found.push(entry)).unwrap();
                assert_eq!(found.len(), 1, "{end}");
                assert_eq!(found[0].value.as_deref(), Some(&b"true"[..]));
            }
        }
    }

    #[test]
    fn found_batches_are_accepted_if_longer_than_a_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.jnl");
        let first = raw_batch(1, &[(b"first", b"1")]);
        let value = vec![7; VALUE_BYTES_MAX / 4];
        for count in [1, 5] {
            let mut journal = first.clone();
            // The lengths of the second batch and the end are damaged.
            journal.extend([super::super::START; 100]);
            for n in 0..count {
                journal.extend(raw_batch(3 + n, &[(&[n as u8], &value)]));
            }
            journal.extend(*b"damaged");
            fs::write(&path, journal).unwrap();
            let (found, _, uncertain) = contents(&path);
            if count == 1 {
                assert_eq!((found.len(), uncertain.len()), (1, 1));
            } else {
                assert_eq!((found.len(), uncertain.len()), (6, 0));
            }
        }
    }
}
