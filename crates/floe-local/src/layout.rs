//! Every byte that the engine stores: keys, items, change records and the catalog.
//!
//! No other module knows how anything is encoded. What is read back is treated as foreign: each
//! decoder bounds its work by its input and answers [`Error::Storage`] for bytes that its encoder
//! never writes.
//!
//! # Spaces
//!
//! | space | key | value |
//! |---|---|---|
//! | `meta` | a letter, then what [`record`] says | catalog, streams, shards, jobs, counters |
//! | `changes` | stream (4), sequence (8) | [change record](change) |
//! | `tokens` | time slot (4), operation (1), token | [what was answered](record::TokenRecord) |
//! | table | tag 0 | a copy of the [record](record::TableRecord) of the table |
//! | table | tag 1, partition hash (2), partition key, sort key | [item](item) |
//! | table | tag 2, index (4), partition hash (2), index key, table key | the part of the item that the index copies |
//! | table | tag 3, generation (4), epoch seconds (8), item key without its tag | nothing |
//! | table | tag 4, partition hash (2), partition key | weight of the items and local index entries (8), in tables with local indexes |
//!
//! Whole numbers in keys are big-endian, so that their order is the order of bytes. Every table has a
//! [space](crate::kv::Space) of its own. The [hash](key::partition_hash) before
//! the partition key spreads partitions over the key range as DynamoDB does, and makes the segments of
//! a parallel scan ranges of keys.

pub(crate) mod change;
mod definition;
mod fields;
pub(crate) mod item;
pub(crate) mod key;
pub(crate) mod record;

use floe_store::{Error, Result};

/// The version of everything in this module. A directory that says a higher one is refused.
pub(crate) const FORMAT_VERSION: u32 = 2;

/// The error for bytes that no encoder of this module writes.
pub(crate) fn damaged(what: &str) -> Error {
    Error::Storage(format!("stored bytes are damaged: what={what}"))
}

/// Appends a number in seven bits per byte, lowest first.
pub(crate) fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bytes behind their length.
pub(crate) fn push_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads encoded bytes from the front. Every read checks what is left.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// Reads these bytes; `what` names them in errors.
    pub(crate) const fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what }
    }

    /// The error for bytes that cannot be.
    #[cold]
    pub(crate) fn damaged(&self) -> Error {
        damaged(self.what)
    }

    /// How many bytes are left.
    pub(crate) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// All bytes that are left.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) = self.rest.split_first().ok_or_else(|| self.damaged())?;
        self.rest = rest;
        Ok(byte)
    }

    /// So many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let split = self.rest.split_at_checked(count);
        let (bytes, rest) = split.ok_or_else(|| self.damaged())?;
        self.rest = rest;
        Ok(bytes)
    }

    /// An array of bytes.
    pub(crate) fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN]> {
        let split = self.rest.split_first_chunk();
        let (array, rest) = split.ok_or_else(|| self.damaged())?;
        self.rest = rest;
        Ok(*array)
    }

    /// A number that [`push_varint`] wrote.
    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit, and a last byte of zero says nothing.
            if (shift == 63 && bits > 1) || (shift > 0 && byte == 0) {
                return Err(self.damaged());
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.damaged())
    }

    /// A number of things that are still to come, each at least one byte long.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() => Ok(count),
            _ => Err(self.damaged()),
        }
    }

    /// Bytes that [`push_prefixed`] wrote.
    pub(crate) fn prefixed(&mut self) -> Result<&'a [u8]> {
        let count = self.count()?;
        self.bytes(count)
    }

    /// Checks that nothing is left.
    pub(crate) fn finish(self) -> Result<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(self.damaged())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_come_back_and_have_one_form() {
        for number in [
            0,
            1,
            127,
            128,
            16_383,
            16_384,
            u64::from(u32::MAX),
            u64::MAX,
        ] {
            let mut bytes = Vec::new();
            push_varint(&mut bytes, number);
            let mut reader = Reader::new(&bytes, "test");
            assert_eq!(reader.varint().unwrap(), number);
            reader.finish().unwrap();
        }
        for bad in [&[0x80][..], &[0x80, 0], &[0xff; 10], &[]] {
            assert!(Reader::new(bad, "test").varint().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_count_is_never_more_than_what_is_left() {
        let mut bytes = Vec::new();
        push_varint(&mut bytes, 3);
        bytes.extend([1, 2]);
        assert!(Reader::new(&bytes, "test").count().is_err());
        bytes.push(3);
        assert_eq!(Reader::new(&bytes, "test").prefixed().unwrap(), [1, 2, 3]);
    }
}
