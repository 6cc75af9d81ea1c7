//! Spaces, and how the keys of all tables share one keyspace of fjall.

use std::ops::{Bound, Deref};

use super::bytes::Bytes;
use super::range::{KeyBounds, prefix_bounds};

/// A separate set of keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Space {
    /// The catalog.
    Meta,
    /// Change records.
    Changes,
    /// Idempotency tokens.
    Tokens,
    /// The data of the table with this id.
    Table(u32),
}

/// Keys up to this length are assembled without an allocation.
const SHORT_KEY_BYTES: usize = 192;

impl Space {
    /// Calls `then` with the full key as fjall stores it, which starts with the table id.
    pub(super) fn with_full_key<T>(self, key: &[u8], then: impl FnOnce(&[u8]) -> T) -> T {
        let Self::Table(id) = self else {
            return then(key);
        };
        let prefix = TablePrefix::of(id);
        let mut short = [0; TablePrefix::BYTES_MAX + SHORT_KEY_BYTES];
        match short.get_mut(..prefix.len() + key.len()) {
            Some(full) => {
                let (front, rest) = full.split_at_mut(prefix.len());
                front.copy_from_slice(&prefix);
                rest.copy_from_slice(key);
                then(full)
            }
            None => then(&[&prefix, key].concat()),
        }
    }

    /// A key of this space, in the form that a batch requires.
    pub(crate) fn key(self, key: &[u8]) -> Bytes {
        let skip = self.skip();
        self.with_full_key(key, |full| Bytes {
            slice: full.into(),
            skip,
        })
    }

    /// Length of the prefix in keys returned by fjall.
    pub(super) fn skip(self) -> u8 {
        match self {
            Self::Table(id) => TablePrefix::of(id).len,
            _ => 0,
        }
    }

    /// Converts bounds within the space to bounds of full keys.
    pub(super) fn full_bounds(self, (start, end): KeyBounds) -> KeyBounds {
        let Self::Table(id) = self else {
            return (start, end);
        };
        let prefix = TablePrefix::of(id);
        let full = |key: Vec<u8>| [&prefix, &key[..]].concat();
        let (first, behind) = prefix_bounds(&prefix);
        (
            if start == Bound::Unbounded {
                first
            } else {
                start.map(full)
            },
            if end == Bound::Unbounded {
                behind
            } else {
                end.map(full)
            },
        )
    }
}

/// The encoded table id in front of its keys: one byte for the first 241 ids, two for the next 2048, and so on. No id
/// is a prefix of another, and they sort by id.
///
/// It is short because fjall first compares the first four bytes of keys, which should distinguish items.
#[derive(Clone, Copy, Debug)]
pub(super) struct TablePrefix {
    bytes: [u8; Self::BYTES_MAX],
    len: u8,
}

impl TablePrefix {
    const BYTES_MAX: usize = 5;
    const ONE_BYTE_END: u32 = 241;
    const TWO_BYTES_END: u32 = Self::ONE_BYTE_END + 8 * 256;
    const THREE_BYTES_END: u32 = Self::TWO_BYTES_END + (1 << 16);
    const TWO_BYTES: u8 = 241;
    const THREE_BYTES: u8 = 249;
    const FIVE_BYTES: u8 = 250;

    pub(super) const fn of(id: u32) -> Self {
        let (bytes, len) = if id < Self::ONE_BYTE_END {
            ([id as u8, 0, 0, 0, 0], 1)
        } else if id < Self::TWO_BYTES_END {
            let [_, _, high, low] = (id - Self::ONE_BYTE_END).to_be_bytes();
            ([Self::TWO_BYTES + high, low, 0, 0, 0], 2)
        } else if id < Self::THREE_BYTES_END {
            let [_, _, high, low] = (id - Self::TWO_BYTES_END).to_be_bytes();
            ([Self::THREE_BYTES, high, low, 0, 0], 3)
        } else {
            let [a, b, c, d] = id.to_be_bytes();
            ([Self::FIVE_BYTES, a, b, c, d], 5)
        };
        Self { bytes, len }
    }

    /// Decodes the id at the start of a full key, and returns it with its length.
    pub(super) fn parse(key: &[u8]) -> Option<(u32, u8)> {
        let two = |high: u8, low: u8| u32::from(u16::from_be_bytes([high, low]));
        let (id, len) = match *key {
            [id, ..] if id < Self::TWO_BYTES => (u32::from(id), 1),
            [high, low, ..] if high < Self::THREE_BYTES => {
                (Self::ONE_BYTE_END + two(high - Self::TWO_BYTES, low), 2)
            }
            [Self::THREE_BYTES, high, low, ..] => (Self::TWO_BYTES_END + two(high, low), 3),
            [Self::FIVE_BYTES, a, b, c, d, ..] => (u32::from_be_bytes([a, b, c, d]), 5),
            _ => return None,
        };
        // Each id has exactly one encoding.
        (Self::of(id).len == len).then_some((id, len))
    }
}

impl Deref for TablePrefix {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}
