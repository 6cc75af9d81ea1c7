//! Keys of items, index entries and expiry entries, and the key ranges of queries and scans.
//!
//! A key attribute has a fixed type, so its bytes need no type: strings and binaries are written with
//! `00` as `00 FF` and end with `00 00`, numbers in their [ordered](floe_store::Number::encode_ordered)
//! form. No encoded value is a prefix of another, and byte order is value order, so values can be concatenated and the
//! result can start a range.

use std::ops::Bound;

use floe_store::expr::{KeyOp, KeyRange};
use floe_store::hash::fnv1a;
use floe_store::op::Segment;
use floe_store::table::{KeyAttribute, KeyKind, KeySchema};
use floe_store::{Item, Result, Value};

use super::{Reader, damaged};
use crate::kv::{KeyBounds, prefix_bounds, prefix_end};

/// The key of the copy of the table's record that is stored with its items, so that they can be decoded when the
/// catalog is damaged.
pub(crate) const DEFINITION_KEY: [u8; 1] = [0];

/// First byte of the keys of items.
pub(crate) const ITEM_TAG: u8 = 1;

/// First byte of the keys of index entries.
pub(crate) const INDEX_TAG: u8 = 2;

/// First byte of the keys of expiry entries.
pub(crate) const EXPIRY_TAG: u8 = 3;

/// First byte of the keys of item collection sizes.
pub(crate) const COLLECTION_TAG: u8 = 4;

/// Offset of the table key in an item's key: after the tag and the hash.
const ITEM_KEY_HEAD: usize = 3;

const HASHES: u64 = 1 << 16;

/// The items of a table or the entries of one of its indexes, which share a key prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entries {
    /// The items.
    Items,
    /// The entries of the index with this id.
    Index(u32),
}

impl Entries {
    fn prefix(self) -> Vec<u8> {
        let mut key = Vec::with_capacity(64);
        match self {
            Self::Items => key.push(ITEM_TAG),
            Self::Index(id) => {
                key.push(INDEX_TAG);
                key.extend_from_slice(&id.to_be_bytes());
            }
        }
        key
    }

    /// The range of all entries.
    pub(crate) fn bounds(self) -> KeyBounds {
        prefix_bounds(&self.prefix())
    }

    /// The range of one segment of a parallel scan.
    pub(crate) fn segment_bounds(self, segment: Segment) -> KeyBounds {
        let head = self.prefix();
        let (first, end) = segment_hashes(segment);
        if first >= end {
            return empty_bounds();
        }
        let at = |hash: u64| {
            let mut key = head.clone();
            key.extend_from_slice(&(hash as u16).to_be_bytes());
            key
        };
        let end = if end == HASHES {
            prefix_end(&head).map_or(Bound::Unbounded, Bound::Excluded)
        } else {
            Bound::Excluded(at(end))
        };
        (Bound::Included(at(first)), end)
    }

    /// The range that a key condition selects.
    pub(crate) fn query_bounds(self, schema: &KeySchema, range: &KeyRange) -> Result<KeyBounds> {
        query_bounds(self.prefix(), schema, range).ok_or_else(|| damaged("key condition"))
    }
}

/// The kind of an entry in the space of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EntryKind {
    /// An item.
    Item,
    /// An entry of the index with this id.
    Index(u32),
    /// An expiry entry of this generation.
    Expiry(u32),
    /// The size of an item collection.
    Collection,
}

impl EntryKind {
    /// The kind of the entry with this key; `None` if no entry has such a key.
    pub(crate) fn of(key: &[u8]) -> Option<Self> {
        let (tag, rest) = key.split_first()?;
        let id = || rest.first_chunk().copied().map(u32::from_be_bytes);
        match *tag {
            ITEM_TAG => Some(Self::Item),
            INDEX_TAG => id().map(Self::Index),
            EXPIRY_TAG => id().map(Self::Expiry),
            COLLECTION_TAG => Some(Self::Collection),
            _ => None,
        }
    }

    /// The range of all entries of this kind.
    pub(crate) fn bounds(self) -> KeyBounds {
        match self {
            Self::Item => Entries::Items.bounds(),
            Self::Index(id) => Entries::Index(id).bounds(),
            Self::Expiry(generation) => expiry_bounds(generation),
            Self::Collection => prefix_bounds(&[COLLECTION_TAG]),
        }
    }
}

/// The range of the items in a collection, given the key of its size.
pub(crate) fn collection_bounds(key: &[u8]) -> KeyBounds {
    let mut prefix = vec![ITEM_TAG];
    prefix.extend_from_slice(key.get(1..).unwrap_or_default());
    prefix_bounds(&prefix)
}

/// The hashes of a segment: the first, and the end (exclusive).
fn segment_hashes(segment: Segment) -> (u64, u64) {
    let total = segment.total.max(1) as u64;
    let begin = |index: u64| (index * HASHES).div_ceil(total).min(HASHES);
    (begin(segment.index as u64), begin(segment.index as u64 + 1))
}

/// Whether an entry with this key is in the segment.
pub(crate) fn in_segment(key: &[u8], segment: Segment) -> bool {
    let at = if key.first() == Some(&INDEX_TAG) {
        5
    } else {
        1
    };
    let hash = key.get(at..).and_then(<[u8]>::first_chunk).copied();
    let hash = u64::from(u16::from_be_bytes(hash.unwrap_or_default()));
    let (first, end) = segment_hashes(segment);
    (first..end).contains(&hash)
}

const fn empty_bounds() -> KeyBounds {
    (Bound::Included(Vec::new()), Bound::Excluded(Vec::new()))
}

/// The key of an item, or of the item that a key identifies. `None` if a key attribute is missing or has another type.
pub(crate) fn item_key(schema: &KeySchema, item: &Item) -> Option<Vec<u8>> {
    let mut key = Entries::Items.prefix();
    push_partition(&mut key, &schema.partition, item)?;
    push_attributes(&mut key, &schema.sort, item)?;
    Some(key)
}

/// The key of an item's entry in an index. `None` if the index does not contain the item.
pub(crate) fn index_key(
    id: u32,
    schema: &KeySchema,
    item: &Item,
    item_key: &[u8],
) -> Option<Vec<u8>> {
    let mut key = Entries::Index(id).prefix();
    push_partition(&mut key, &schema.partition, item)?;
    push_attributes(&mut key, &schema.sort, item)?;
    key.extend_from_slice(item_key.get(ITEM_KEY_HEAD..)?);
    Some(key)
}

/// The key of the size of an item's collection, which contains only the partition key.
pub(crate) fn collection_key(schema: &KeySchema, item: &Item) -> Option<Vec<u8>> {
    let mut key = vec![COLLECTION_TAG];
    push_partition(&mut key, &schema.partition, item)?;
    Some(key)
}

/// The key of an expiry entry.
pub(crate) fn expiry_key(generation: u32, secs: u64, item_key: &[u8]) -> Vec<u8> {
    let mut key = expiry_prefix(generation);
    key.extend_from_slice(&secs.to_be_bytes());
    key.extend_from_slice(item_key.get(1..).unwrap_or_default());
    key
}

/// Decodes the expiry time in epoch seconds, and the key of the item.
pub(crate) fn decode_expiry_key(key: &[u8]) -> Result<(u64, Vec<u8>)> {
    let mut reader = Reader::new(key, "expiry key");
    if reader.byte()? != EXPIRY_TAG {
        return Err(reader.damaged());
    }
    reader.array::<4>()?;
    let secs = u64::from_be_bytes(reader.array()?);
    let mut item_key = vec![ITEM_TAG];
    item_key.extend_from_slice(reader.rest());
    Ok((secs, item_key))
}

/// The range of all expiry entries of a generation.
pub(crate) fn expiry_bounds(generation: u32) -> KeyBounds {
    prefix_bounds(&expiry_prefix(generation))
}

/// The range of the expiry entries from `first` to `last` in epoch seconds, inclusive.
pub(crate) fn expiry_due_bounds(generation: u32, first: u64, last: u64) -> KeyBounds {
    let at = |secs: u64| {
        let mut key = expiry_prefix(generation);
        key.extend_from_slice(&secs.to_be_bytes());
        key
    };
    let end = prefix_end(&at(last)).map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(at(first)), end)
}

fn expiry_prefix(generation: u32) -> Vec<u8> {
    let mut key = vec![EXPIRY_TAG];
    key.extend_from_slice(&generation.to_be_bytes());
    key
}

/// A stable hash of an encoded partition key (FNV-1a with a finishing mix): part of the format.
pub(crate) fn partition_hash(encoded: &[u8]) -> u16 {
    let mut hash = fnv1a(encoded);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    (hash >> 48) as u16
}

fn push_partition(key: &mut Vec<u8>, attributes: &[KeyAttribute], item: &Item) -> Option<()> {
    let hash_at = key.len();
    key.extend_from_slice(&[0; 2]);
    push_attributes(key, attributes, item)?;
    write_hash(key, hash_at)
}

fn push_attributes(key: &mut Vec<u8>, attributes: &[KeyAttribute], item: &Item) -> Option<()> {
    for attribute in attributes {
        push_value(key, attribute.kind, item.get(&attribute.name)?)?;
    }
    Some(())
}

fn write_hash(key: &mut [u8], hash_at: usize) -> Option<()> {
    let (head, partition) = key.split_at_mut_checked(hash_at + 2)?;
    let hash = partition_hash(partition).to_be_bytes();
    *head.last_chunk_mut()? = hash;
    Some(())
}

fn push_value(key: &mut Vec<u8>, kind: KeyKind, value: &Value) -> Option<()> {
    match (kind, value) {
        (KeyKind::S, Value::S(text)) => push_terminated(key, text.as_bytes()),
        (KeyKind::B, Value::B(bytes)) => push_terminated(key, bytes),
        (KeyKind::N, Value::N(number)) => number.encode_ordered(key),
        _ => return None,
    }
    Some(())
}

fn push_terminated(key: &mut Vec<u8>, bytes: &[u8]) {
    push_escaped(key, bytes);
    key.extend_from_slice(&[0, 0]);
}

fn push_escaped(key: &mut Vec<u8>, bytes: &[u8]) {
    let mut parts = bytes.split(|byte| *byte == 0);
    key.extend_from_slice(parts.next().unwrap_or_default());
    for part in parts {
        key.extend_from_slice(&[0, 0xff]);
        key.extend_from_slice(part);
    }
}

fn query_bounds(mut head: Vec<u8>, schema: &KeySchema, range: &KeyRange) -> Option<KeyBounds> {
    let hash_at = head.len();
    head.extend_from_slice(&[0; 2]);
    push_values(&mut head, &schema.partition, &range.partition)?;
    write_hash(&mut head, hash_at)?;
    push_values(&mut head, &schema.sort, &range.sort_prefix)?;
    let Some(op) = &range.range else {
        return Some(prefix_bounds(&head));
    };
    let kind = schema.sort.get(range.sort_prefix.len())?.kind;
    let with = |value: &Value| {
        let mut key = head.clone();
        push_value(&mut key, kind, value)?;
        Some(key)
    };
    // The first key after all those with this prefix. Every prefix contains a byte below FF, so it exists.
    let after = |value: &Value| prefix_end(&with(value)?);
    let (first, end) = (head.clone(), prefix_end(&head)?);
    let (first, end) = match op {
        KeyOp::Eq(value) => (with(value)?, after(value)?),
        KeyOp::Lt(value) => (first, with(value)?),
        KeyOp::Le(value) => (first, after(value)?),
        KeyOp::Gt(value) => (after(value)?, end),
        KeyOp::Ge(value) => (with(value)?, end),
        KeyOp::Between(low, high) => (with(low)?, after(high)?),
        KeyOp::BeginsWith(Value::S(prefix)) => begins_with(&head, prefix.as_bytes())?,
        KeyOp::BeginsWith(Value::B(prefix)) => begins_with(&head, prefix)?,
        KeyOp::BeginsWith(_) => return None,
    };
    Some((Bound::Included(first), Bound::Excluded(end)))
}

fn push_values(key: &mut Vec<u8>, attributes: &[KeyAttribute], values: &[Value]) -> Option<()> {
    for (attribute, value) in attributes.iter().zip(values) {
        push_value(key, attribute.kind, value)?;
    }
    Some(())
}

fn begins_with(head: &[u8], prefix: &[u8]) -> Option<(Vec<u8>, Vec<u8>)> {
    let mut key = head.to_vec();
    push_escaped(&mut key, prefix);
    let end = prefix_end(&key)?;
    Some((key, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floe_store::env::SeededRandom;
    use floe_store::{Name, Number};

    fn schema(partition: &[(&str, KeyKind)], sort: &[(&str, KeyKind)]) -> KeySchema {
        let attributes = |list: &[(&str, KeyKind)]| {
            let attribute = |(name, kind): &(&str, KeyKind)| KeyAttribute::new(*name, *kind);
            list.iter().map(attribute).collect()
        };
        KeySchema {
            partition: attributes(partition),
            sort: attributes(sort),
        }
    }

    /// Random short values that often collide, with the bytes that the encoding treats specially.
    fn random_value(random: &SeededRandom, kind: KeyKind) -> Value {
        let length = random.below(5);
        let byte = || [0, 1, 0x7f, 0xfe, 0xff][random.below(5) as usize];
        match kind {
            KeyKind::S => {
                let letter = || ['\0', '\u{1}', 'a', 'é', '\u{10ffff}'][random.below(5) as usize];
                Value::from((0..length).map(|_| letter()).collect::<String>())
            }
            KeyKind::B => Value::B((0..length).map(|_| byte()).collect()),
            KeyKind::N => {
                let digits = random.below(2000) as i64 - 1000;
                let exponent = random.below(9) as i64 - 4;
                Value::N(format!("{digits}E{exponent}").parse::<Number>().unwrap())
            }
        }
    }

    #[test]
    fn keys_sort_like_their_values() {
        let random = SeededRandom::new(3);
        for kinds in [
            [KeyKind::S, KeyKind::N],
            [KeyKind::B, KeyKind::S],
            [KeyKind::N, KeyKind::B],
            [KeyKind::S, KeyKind::S],
        ] {
            let schema = schema(&[("p", KeyKind::S)], &[("a", kinds[0]), ("b", kinds[1])]);
            let item = || {
                Item::new()
                    .with("p", "p")
                    .with("a", random_value(&random, kinds[0]))
                    .with("b", random_value(&random, kinds[1]))
            };
            for _ in 0..5_000 {
                let (x, y) = (item(), item());
                let compare = |name| x.get(name)?.compare(y.get(name)?);
                let expected = compare("a").unwrap().then(compare("b").unwrap());
                let keys = [&x, &y].map(|item| item_key(&schema, item).unwrap());
                assert_eq!(keys[0].cmp(&keys[1]), expected, "{x:?} {y:?}");
            }
        }
    }

    #[test]
    fn query_range_matches_the_key_condition() {
        let random = SeededRandom::new(4);
        for kind in [KeyKind::S, KeyKind::B, KeyKind::N] {
            let schema = schema(&[("p", KeyKind::S)], &[("a", kind), ("b", kind)]);
            for _ in 0..10_000 {
                let value = || random_value(&random, kind);
                let item = Item::new()
                    .with("p", "p")
                    .with("a", value())
                    .with("b", value());
                let (op, holds) = random_op(&random, kind, item.get("b").unwrap());
                let range = KeyRange {
                    partition: vec!["p".into()],
                    sort_prefix: vec![item.get("a").unwrap().clone()],
                    range: Some(op.clone()),
                };
                let bounds = Entries::Index(7).query_bounds(&schema, &range).unwrap();
                let base = item_key(&self::schema(&[("p", KeyKind::S)], &[]), &item).unwrap();
                let key = index_key(7, &schema, &item, &base).unwrap();
                let within = std::ops::RangeBounds::contains(&bounds, &key);
                assert_eq!(within, holds, "{item:?} {op:?}");
            }
        }
    }

    fn random_op(random: &SeededRandom, kind: KeyKind, have: &Value) -> (KeyOp, bool) {
        let (value, other) = (random_value(random, kind), random_value(random, kind));
        let order = have.compare(&value).unwrap();
        match random.below(7) {
            0 => (KeyOp::Eq(value), order.is_eq()),
            1 => (KeyOp::Lt(value), order.is_lt()),
            2 => (KeyOp::Le(value), order.is_le()),
            3 => (KeyOp::Gt(value), order.is_gt()),
            4 => (KeyOp::Ge(value), order.is_ge()),
            5 if kind != KeyKind::N => {
                let begins = match (have, &value) {
                    (Value::S(have), Value::S(prefix)) => have.starts_with(prefix.as_str()),
                    (Value::B(have), Value::B(prefix)) => have.starts_with(prefix),
                    _ => unreachable!(),
                };
                (KeyOp::BeginsWith(value), begins)
            }
            _ => {
                let holds = order.is_ge() && have.compare(&other).unwrap().is_le();
                (KeyOp::Between(value, other), holds)
            }
        }
    }

    #[test]
    fn every_key_is_in_exactly_one_segment() {
        let schema = schema(&[("p", KeyKind::N)], &[]);
        for total in [1, 2, 3, 7, 1000, 65_535, 65_536, 65_537, 1_000_000] {
            for n in 0..200 {
                let key = item_key(&schema, &Item::new().with("p", n)).unwrap();
                let hash = u64::from(u16::from_be_bytes([key[1], key[2]]));
                let index = (hash * total / HASHES) as usize;
                for neighbour in index.saturating_sub(2)..=(index + 2).min(total as usize - 1) {
                    let segment = Segment {
                        index: neighbour,
                        total: total as usize,
                    };
                    let bounds = Entries::Items.segment_bounds(segment);
                    let within = std::ops::RangeBounds::contains(&bounds, &key);
                    assert_eq!(within, neighbour == index, "total={total} key={n}");
                    assert_eq!(in_segment(&key, segment), within);
                }
            }
        }
    }

    #[test]
    fn partition_hash_spreads_keys_over_all_segments() {
        let schema = schema(&[("p", KeyKind::S)], &[]);
        let mut counts = [0; 8];
        for n in 0..8000 {
            let item = Item::new().with("p", format!("user#{n}"));
            let key = item_key(&schema, &item).unwrap();
            counts[usize::from(key[1] >> 5)] += 1;
        }
        assert!(
            counts.iter().all(|count| (850..1150).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn key_encoding_is_stable() {
        let schema = schema(&[("p", KeyKind::S)], &[("n", KeyKind::N)]);
        let item = Item::new().with("p", "a\0b").with("n", 7);
        let key = item_key(&schema, &item).unwrap();
        assert_eq!(
            key,
            b"\x01\x8c\x26a\0\xffb\0\0\xc1\x0e".as_slice(),
            "{key:02x?}"
        );
        let entry = index_key(9, &schema, &item, &key).unwrap();
        assert_eq!(entry[..5], [2, 0, 0, 0, 9]);
        assert_eq!(entry[5..], [&key[1..], &key[3..]].concat());
    }

    #[test]
    fn item_without_an_index_key_attribute_has_no_index_entry() {
        let index = schema(&[("g", KeyKind::S)], &[("h", KeyKind::N)]);
        let item = Item::new()
            .with("p", "a")
            .with("g", "b")
            .with("h", "not a number");
        assert_eq!(index_key(1, &index, &item, &[1, 0, 0]), None);
        let name = Name::from("h");
        let item = item.with(name, 5);
        assert!(index_key(1, &index, &item, &[1, 0, 0]).is_some());
    }

    #[test]
    fn expiry_keys_round_trip_and_sort_by_time() {
        let schema = schema(&[("p", KeyKind::S)], &[]);
        let item = item_key(&schema, &Item::new().with("p", "a")).unwrap();
        let key = expiry_key(3, 1000, &item);
        assert_eq!(decode_expiry_key(&key).unwrap(), (1000, item.clone()));
        assert!(key < expiry_key(3, 1001, &item));
        let due =
            |first, last| std::ops::RangeBounds::contains(&expiry_due_bounds(3, first, last), &key);
        assert!(due(1000, 1000) && due(0, 1000) && due(1000, u64::MAX));
        assert!(!due(0, 999) && !due(1001, 2000));
        assert!(decode_expiry_key(&key[..12]).is_err());
    }
}
