//! Change records, and the text forms of sequence numbers and shard ids.
//!
//! | bytes | content |
//! |---|---|
//! | 1 | bits 0 and 1: kind; bit 2: written by the expiry sweeper; bits 3 and 4: old and new image follow |
//! | 1 | the view of the stream when the record was written |
//! | varint | time of the change, in milliseconds since 1970 |
//! | prefixed | the key of the item, as an [item](super::item) |
//! | prefixed | the old image, if it follows |
//! | prefixed | the new image, if it follows |
//!
//! Images are the exact bytes of the table, so that no item is encoded twice.

use floe_store::limits::SEQUENCE_NUMBER_CHARS;
use floe_store::op::{ChangeKind, ChangeRecord, ServiceIdentity};
use floe_store::table::StreamView;
use floe_store::{Item, Result, Timestamp};

use super::{Reader, item, push_prefixed, push_varint};
use crate::kv::{KeyBounds, prefix_bounds};

const EXPIRED: u8 = 1 << 2;
const HAS_OLD: u8 = 1 << 3;
const HAS_NEW: u8 = 1 << 4;

/// A change on the commit path; images are encoded items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    /// The kind of change.
    pub(crate) kind: ChangeKind,
    /// The service that made the change; `None` for a user.
    pub(crate) identity: Option<ServiceIdentity>,
    /// When the change was made.
    pub(crate) created: Timestamp,
    /// Which images to keep.
    pub(crate) view: StreamView,
    /// The key attributes of the item.
    pub(crate) keys: &'a Item,
    /// The item before the change, if it existed.
    pub(crate) old: Option<&'a [u8]>,
    /// The item after the change, if it exists.
    pub(crate) new: Option<&'a [u8]>,
}

/// The key of a change record.
pub(crate) fn key(stream: u32, sequence: u64) -> Vec<u8> {
    let mut key = stream.to_be_bytes().to_vec();
    key.extend_from_slice(&sequence.to_be_bytes());
    key
}

/// Decodes the stream and sequence number of a key.
pub(crate) fn decode_key(key: &[u8]) -> Result<(u32, u64)> {
    let mut reader = Reader::new(key, "change key");
    let stream = u32::from_be_bytes(reader.array()?);
    let sequence = u64::from_be_bytes(reader.array()?);
    reader.finish()?;
    Ok((stream, sequence))
}

/// The key range of all records of a stream.
pub(crate) fn bounds(stream: u32) -> KeyBounds {
    prefix_bounds(&stream.to_be_bytes())
}

/// Encodes a record.
pub(crate) fn encode(change: &Change<'_>) -> Vec<u8> {
    let old = change.old.filter(|_| change.view.has_old());
    let new = change.new.filter(|_| change.view.has_new());
    let images = old.map_or(0, <[u8]>::len) + new.map_or(0, <[u8]>::len);
    let keys = item::encode(change.keys);
    let mut out = Vec::with_capacity(images + keys.len() + 24);
    let mut flags = match change.kind {
        ChangeKind::Insert => 1,
        ChangeKind::Modify => 2,
        ChangeKind::Remove => 3,
    };
    flags |= if change.identity.is_some() {
        EXPIRED
    } else {
        0
    };
    flags |= if old.is_some() { HAS_OLD } else { 0 };
    flags |= if new.is_some() { HAS_NEW } else { 0 };
    out.push(flags);
    out.push(view_code(change.view));
    push_varint(&mut out, change.created.as_millis());
    push_prefixed(&mut out, &keys);
    for image in [old, new].into_iter().flatten() {
        push_prefixed(&mut out, image);
    }
    out
}

/// Decodes a record. `instance` makes its event id unique across stores.
pub(crate) fn decode(bytes: &[u8], sequence: u64, instance: u64) -> Result<ChangeRecord> {
    let mut reader = Reader::new(bytes, "change record");
    let flags = reader.byte()?;
    let kind = match flags & 3 {
        1 => ChangeKind::Insert,
        2 => ChangeKind::Modify,
        3 => ChangeKind::Remove,
        _ => return Err(reader.damaged()),
    };
    if flags & !(3 | EXPIRED | HAS_OLD | HAS_NEW) != 0 {
        return Err(reader.damaged());
    }
    let view = view_of_code(reader.byte()?).ok_or_else(|| reader.damaged())?;
    let created = Timestamp::from_millis(reader.varint()?);
    let (keys_bytes, keys) = item::decode_sized(reader.prefixed()?)?;
    if keys.is_empty() {
        return Err(reader.damaged());
    }
    let mut size_bytes = keys_bytes;
    let mut image = |flag| {
        if flags & flag == 0 {
            return Ok(None);
        }
        let (size, image) = item::decode_sized(reader.prefixed()?)?;
        size_bytes += size;
        Ok::<_, floe_store::Error>(Some(image))
    };
    let (old_image, new_image) = (image(HAS_OLD)?, image(HAS_NEW)?);
    reader.finish()?;
    Ok(ChangeRecord {
        event_id: format!("{instance:016x}{sequence:016x}"),
        kind,
        keys,
        old_image,
        new_image,
        sequence: sequence_text(sequence),
        size_bytes,
        view,
        // DynamoDB reports the time of a change in whole seconds.
        created: Timestamp::from_millis(created.as_secs() * 1000),
        identity: (flags & EXPIRED != 0).then_some(ServiceIdentity::Expiry),
    })
}

/// Decodes only the time of a record.
pub(crate) fn decode_created(bytes: &[u8]) -> Result<Timestamp> {
    let mut reader = Reader::new(bytes, "change record");
    reader.array::<2>()?;
    reader.varint().map(Timestamp::from_millis)
}

/// The stored code of a view.
pub(crate) const fn view_code(view: StreamView) -> u8 {
    match view {
        StreamView::KeysOnly => 0,
        StreamView::NewImage => 1,
        StreamView::OldImage => 2,
        StreamView::NewAndOldImages => 3,
    }
}

/// The view with this code.
pub(crate) const fn view_of_code(code: u8) -> Option<StreamView> {
    Some(match code {
        0 => StreamView::KeysOnly,
        1 => StreamView::NewImage,
        2 => StreamView::OldImage,
        3 => StreamView::NewAndOldImages,
        _ => return None,
    })
}

/// Formats a sequence number. All texts have the same length, so that they sort like the numbers.
pub(crate) fn sequence_text(sequence: u64) -> String {
    format!("{sequence:0width$}", width = SEQUENCE_NUMBER_CHARS.start())
}

/// Parses a sequence number.
pub(crate) fn parse_sequence(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// The id of a shard, from the time it was opened and its first sequence number.
pub(crate) fn shard_id(created: Timestamp, start: u64) -> String {
    format!("shardId-{:020}-{start:08x}", created.as_millis())
}

/// Parses a shard id and returns the shard's first sequence number.
pub(crate) fn parse_shard_id(id: &str) -> Option<u64> {
    let (created, start) = id.strip_prefix("shardId-")?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let created = Timestamp::from_millis(created.parse().ok()?);
    (shard_id(created, start) == id).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use floe_store::size::item_size;

    fn check(view: StreamView, kind: ChangeKind, identity: Option<ServiceIdentity>) {
        let keys = Item::new().with("id", "a");
        let old = Item::new().with("id", "a").with("n", 1);
        let new = Item::new().with("id", "a").with("n", 2);
        let (old_bytes, new_bytes) = (item::encode(&old), item::encode(&new));
        let change = Change {
            kind,
            identity,
            created: Timestamp::from_millis(1_700_000_000_123),
            view,
            keys: &keys,
            old: (kind != ChangeKind::Insert).then_some(&*old_bytes),
            new: (kind != ChangeKind::Remove).then_some(&*new_bytes),
        };
        let bytes = encode(&change);
        let record = decode(&bytes, 7, 9).unwrap();
        assert_eq!((record.kind, record.view), (kind, view));
        let to_the_second = Timestamp::from_millis(1_700_000_000_000);
        assert_eq!((&record.keys, record.created), (&keys, to_the_second));
        assert_eq!(record.identity, identity);
        assert_eq!(
            record.old_image,
            change.old.filter(|_| view.has_old()).map(|_| old)
        );
        assert_eq!(
            record.new_image,
            change.new.filter(|_| view.has_new()).map(|_| new)
        );
        let images = record.old_image.iter().chain(&record.new_image);
        let expected = item_size(&keys) + images.map(item_size).sum::<usize>();
        assert_eq!(record.size_bytes, expected);
        assert_eq!(record.event_id, "00000000000000090000000000000007");
        assert_eq!(decode_created(&bytes).unwrap(), change.created);
        for length in 0..bytes.len() {
            assert!(decode(&bytes[..length], 7, 9).is_err());
        }
    }

    #[test]
    fn record_contains_the_images_of_the_view() {
        for code in 0..4 {
            let view = view_of_code(code).unwrap();
            assert_eq!(view_code(view), code);
            check(view, ChangeKind::Insert, None);
            check(view, ChangeKind::Modify, None);
            check(view, ChangeKind::Remove, Some(ServiceIdentity::Expiry));
        }
        assert_eq!(view_of_code(4), None);
    }

    #[test]
    fn record_without_an_item_is_rejected() {
        let record = |keys: &Item| {
            encode(&Change {
                kind: ChangeKind::Remove,
                identity: None,
                created: Timestamp::from_millis(1_700_000_000_123),
                view: StreamView::KeysOnly,
                keys,
                old: None,
                new: None,
            })
        };
        assert!(decode(&record(&Item::new().with("id", "a")), 7, 9).is_ok());
        let error = decode(&record(&Item::new()), 7, 9).unwrap_err();
        assert_eq!(error, crate::layout::damaged("change record"));
    }

    #[test]
    fn sequence_numbers_and_shard_ids_have_dynamodbs_format() {
        assert_eq!(sequence_text(42), "000000000000000000042");
        assert_eq!(parse_sequence(&sequence_text(u64::MAX)), Some(u64::MAX));
        assert_eq!(parse_sequence("+1"), None);
        assert_eq!(parse_sequence(""), None);
        let id = shard_id(Timestamp::from_millis(1_414_576_573_621), 7);
        assert_eq!(id, "shardId-00000001414576573621-00000007");
        assert_eq!(parse_shard_id(&id), Some(7));
        assert_eq!(parse_shard_id("shardId-1414576573621-00000007"), None);
        assert_eq!(decode_key(&key(3, 9)).unwrap(), (3, 9));
    }
}
