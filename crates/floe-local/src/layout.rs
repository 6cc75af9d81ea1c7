//! The encoding of everything that the engine stores: keys, items, change records and the catalog.
//!
//! No other module encodes or decodes bytes. Decoders treat their input as untrusted: each bounds its work by the size
//! of the input and returns [`Error::Storage`] for bytes that its encoder never writes.
//!
//! # Spaces
//!
//! | space | key | value |
//! |---|---|---|
//! | `meta` | a letter, then as described in [`record`] | catalog, streams, shards, jobs, counters |
//! | `changes` | stream (4), sequence (8) | [change record](change) |
//! | `tokens` | time slot (4), operation (1), token | [recorded response](record::TokenRecord) |
//! | table | tag 0 | a copy of the [record](record::TableRecord) of the table |
//! | table | tag 1, partition hash (2), partition key, sort key | [item](item) |
//! | table | tag 2, index (4), partition hash (2), index key, table key | the attributes that the index projects |
//! | table | tag 3, generation (4), epoch seconds (8), item key without its tag | nothing |
//! | table | tag 4, partition hash (2), partition key | size of the items and local index entries (8), in tables with
//! local indexes |
//!
//! Integers in keys are big-endian, so that byte order is numeric order. Every table has its own
//! [space](crate::kv::Space). The [hash](key::partition_hash) before the partition key spreads partitions over the key
//! range as DynamoDB does, and makes each segment of a parallel scan a key range.

pub(crate) mod change;
mod definition;
mod fields;
pub(crate) mod item;
pub(crate) mod key;
pub(crate) mod record;

use floe_store::{Error, Result};

/// Version of the encoding in this module. A directory with a higher version is rejected.
pub(crate) const FORMAT_VERSION: u32 = 2;

/// The error for bytes that no encoder of this module writes.
pub(crate) fn damaged(what: &str) -> Error {
    Error::Storage(format!("stored bytes are damaged: what={what}"))
}

/// Appends a number, seven bits per byte, lowest bits first.
pub(crate) fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bytes with a length prefix.
pub(crate) fn push_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads encoded bytes from the front, with bounds checks.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// Creates a reader; `what` describes the bytes in errors.
    pub(crate) const fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what }
    }

    /// The error for invalid bytes.
    #[cold]
    pub(crate) fn damaged(&self) -> Error {
        damaged(self.what)
    }

    /// The number of remaining bytes.
    pub(crate) const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// All remaining bytes.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads a byte.
    pub(crate) fn byte(&mut self) -> Result<u8> {
        let (&byte, rest) = self.rest.split_first().ok_or_else(|| self.damaged())?;
        self.rest = rest;
        Ok(byte)
    }

    /// Reads `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let split = self.rest.split_at_checked(count);
        let (bytes, rest) = split.ok_or_else(|| self.damaged())?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads an array of bytes.
    pub(crate) fn array<const LEN: usize>(&mut self) -> Result<[u8; LEN]> {
        let split = self.rest.split_first_chunk();
        let (array, rest) = split.ok_or_else(|| self.damaged())?;
        self.rest = rest;
        Ok(*array)
    }

    /// Reads a number written by [`push_varint`].
    pub(crate) fn varint(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte may contain one bit only, and a final zero byte would not be the shortest form.
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

    /// Reads the number of elements that follow, each at least one byte long.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let count = self.varint()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.rest.len() => Ok(count),
            _ => Err(self.damaged()),
        }
    }

    /// Reads bytes written by [`push_prefixed`].
    pub(crate) fn prefixed(&mut self) -> Result<&'a [u8]> {
        let count = self.count()?;
        self.bytes(count)
    }

    /// Checks that all bytes were read.
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
    fn varint_round_trips_and_has_one_form() {
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
    fn count_above_the_remaining_bytes_is_rejected() {
        let mut bytes = Vec::new();
        push_varint(&mut bytes, 3);
        bytes.extend([1, 2]);
        assert!(Reader::new(&bytes, "test").count().is_err());
        bytes.push(3);
        assert_eq!(Reader::new(&bytes, "test").prefixed().unwrap(), [1, 2, 3]);
    }
}
