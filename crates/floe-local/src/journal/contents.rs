//! What can be read of a journal, whatever else in it is damaged.

use std::path::Path;

use floe_store::Result;

use super::{CLEAR, Cursor, ITEM, next_batch, read, whole_batch};

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

/// A stretch of a journal that belongs to no whole batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostBytes {
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
}

/// Visits the entries of all whole batches of a journal in their order, and returns what lies between them.
///
/// # Errors
///
/// [`Error::Storage`](floe_store::Error::Storage) if the file cannot be read.
pub(crate) fn contents(path: &Path, mut visit: impl FnMut(JournalEntry)) -> Result<Vec<LostBytes>> {
    let bytes = read(path)?;
    let used = bytes.iter().rposition(|byte| *byte != 0);
    let bytes = bytes
        .get(..used.map_or(0, |last| last + 1))
        .unwrap_or_default();
    let mut lost = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let Some(batch) = bytes.get(at..).and_then(whole_batch) else {
            let next = next_batch(bytes, at).unwrap_or(bytes.len());
            lost.push(LostBytes {
                offset: at,
                bytes: next - at,
            });
            at = next;
            continue;
        };
        let mut body = Cursor(batch.body);
        for _ in 0..batch.items {
            match entry(&mut body, batch.sequence) {
                Some(Some(entry)) => visit(entry),
                Some(None) => {}
                // Its lengths were checked with the batch.
                None => break,
            }
        }
        at += batch.length;
    }
    Ok(lost)
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

    use super::*;
    use crate::kv::{Batch, Kv, KvOptions, Space, Sync};

    #[test]
    fn entries_before_and_behind_damage_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let options = KvOptions {
            cache_bytes: 1 << 20,
            write_buffer_bytes: 1 << 24,
        };
        let kv = Kv::create(folder.path(), &options).unwrap();
        for n in 0..20_u8 {
            let mut batch = Batch::default();
            batch.put(Space::Meta, [n], format!("value-{n}").into_bytes());
            batch.push(Space::Changes, Space::Changes.key(&[n]), None);
            kv.commit(batch, Sync::Data).unwrap();
        }
        drop(kv);
        let path = super::super::journals(folder.path())
            .unwrap()
            .pop()
            .unwrap()
            .1;
        let mut found = Vec::new();
        assert_eq!(contents(&path, |entry| found.push(entry)).unwrap(), []);
        assert_eq!(found.len(), 40);
        assert_eq!(found[6].value.as_deref(), Some(&b"value-3"[..]));
        assert_eq!((found[6].keyspace, &found[6].key[..]), (1, &[3][..]));
        assert_eq!((found[7].keyspace, &found[7].value), (2, &None));

        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.windows(7).position(|w| w == b"value-7").unwrap();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let mut left = Vec::new();
        let lost = contents(&path, |entry| left.push(entry)).unwrap();
        assert_eq!(lost.len(), 1);
        assert!((lost[0].offset..lost[0].offset + lost[0].bytes).contains(&at));
        found.retain(|entry| entry.key != [7]);
        assert_eq!(left, found);
    }
}
