//! The gzip format: members of compressed bytes, each with a header, a checksum and its length.
//!
//! `miniz_oxide` compresses and decompresses; this module adds the framing.

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

use crate::limits::GZIP_MEMBERS_MAX;

/// Compression level of responses: the default of zlib.
pub(super) const LEVEL: u8 = 6;

/// The header of compressed output: no name, no time, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

const HAS_CHECKSUM: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;

/// Initial output buffer of a member. It grows with the size of the member: if it grew with the total output, thousands
/// of small members after a large one would cost as much as thousands of large ones.
const OUTPUT_BYTES_MIN: usize = 256;

/// Why bytes cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GzipError {
    /// They are not gzip, incomplete, or have too many members.
    Malformed,
    /// The output exceeds the limit.
    TooLarge,
}

/// Compresses bytes into one member.
pub(super) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = HEADER.to_vec();
    compressed.extend(compress_to_vec(bytes, LEVEL));
    compressed.extend(crc32fast::hash(bytes).to_le_bytes());
    compressed.extend(length(bytes).to_le_bytes());
    compressed
}

/// Decompresses bytes with one or more members to at most `bytes_max` bytes.
pub(super) fn decompress_to(bytes: &[u8], bytes_max: usize) -> Result<Vec<u8>, GzipError> {
    let mut input = Input(bytes);
    let mut output = Vec::new();
    // Reused, because it is large and there may be many small members.
    let mut state = Box::new(DecompressorOxide::new());
    for _ in 0..GZIP_MEMBERS_MAX {
        input.skip_header()?;
        let begin = output.len();
        state.init();
        let consumed = inflate(&mut state, input.0, &mut output, bytes_max)?;
        input.take(consumed)?;
        let member = output.get(begin..).unwrap_or_default();
        if input.number()? != crc32fast::hash(member) || input.number()? != length(member) {
            return Err(GzipError::Malformed);
        }
        if input.0.is_empty() {
            return Ok(output);
        }
    }
    Err(GzipError::Malformed)
}

/// Returns the length field of a member: the length modulo 2^32.
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len() & 0xffff_ffff).unwrap_or_default()
}

/// Appends the content of one member to the output. Returns the number of input bytes consumed.
fn inflate(
    state: &mut DecompressorOxide,
    input: &[u8],
    output: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<usize, GzipError> {
    // The output is not a ring buffer, so that back-references always find their bytes.
    const FLAGS: u32 = inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let begin = output.len();
    let (mut consumed, mut written) = (0, 0);
    loop {
        // One byte more than allowed, to detect that the limit is exceeded.
        let room = begin + (4 * written).max(OUTPUT_BYTES_MIN);
        output.resize(room.min(bytes_max + 1), 0);
        let rest = input.get(consumed..).unwrap_or_default();
        let member = output.get_mut(begin..).unwrap_or_default();
        let (status, read, added) = decompress(state, rest, member, written, FLAGS);
        consumed += read;
        written += added;
        if begin + written > bytes_max {
            return Err(GzipError::TooLarge);
        }
        match status {
            TINFLStatus::Done => {
                output.truncate(begin + written);
                return Ok(consumed);
            }
            TINFLStatus::HasMoreOutput => {}
            _ => return Err(GzipError::Malformed),
        }
    }
}

/// The unread input.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], GzipError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(GzipError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, GzipError> {
        let bytes = self.take(4)?.try_into().map_err(|_| GzipError::Malformed)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Skips text that ends with a zero.
    fn skip_text(&mut self) -> Result<(), GzipError> {
        let end = self.0.iter().position(|byte| *byte == 0);
        self.take(end.ok_or(GzipError::Malformed)? + 1).map(drop)
    }

    fn skip_header(&mut self) -> Result<(), GzipError> {
        let &[0x1f, 0x8b, 8, flags, ..] = self.take(HEADER.len())? else {
            return Err(GzipError::Malformed);
        };
        if flags & HAS_EXTRA != 0 {
            let &[low, high] = self.take(2)? else {
                return Err(GzipError::Malformed);
            };
            self.take(usize::from(u16::from_le_bytes([low, high])))?;
        }
        if flags & HAS_NAME != 0 {
            self.skip_text()?;
        }
        if flags & HAS_COMMENT != 0 {
            self.skip_text()?;
        }
        if flags & HAS_CHECKSUM != 0 {
            self.take(2)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use floe_store::env::SeededRandom;

    use super::*;

    /// Returns text that is moderately compressible.
    fn text(length: usize) -> Vec<u8> {
        let random = SeededRandom::new(7);
        let letters = std::iter::repeat_with(|| b'a' + u8::try_from(random.below(16)).unwrap());
        letters.take(length).collect()
    }

    #[test]
    fn compression_round_trips() {
        for length in [
            0,
            1,
            OUTPUT_BYTES_MIN,
            OUTPUT_BYTES_MIN + 1,
            25_000,
            1 << 20,
        ] {
            let bytes = text(length);
            let compressed = compress(&bytes);
            assert_eq!(decompress_to(&compressed, length).as_ref(), Ok(&bytes));
            let tight = decompress_to(&compressed, length.saturating_sub(1));
            assert_eq!(tight.is_err(), length > 0, "{length}");
        }
    }

    #[test]
    fn members_are_concatenated() {
        let (one, two) = (text(20_000), text(9));
        let none = |count| compress(b"").repeat(count);
        let compressed = [compress(&one), none(3), compress(&two)].concat();
        let both = [one, two].concat();
        assert_eq!(decompress_to(&compressed, 1 << 20), Ok(both));
        let many = none(GZIP_MEMBERS_MAX);
        assert_eq!(decompress_to(&many, 100), Ok(Vec::new()));
        let too_many = none(GZIP_MEMBERS_MAX + 1);
        assert_eq!(decompress_to(&too_many, 100), Err(GzipError::Malformed));
        assert_eq!(decompress_to(&compressed, 20_008), Err(GzipError::TooLarge));
    }

    #[test]
    fn optional_header_fields_are_skipped() {
        let plain = compress(b"floe");
        let body = plain.get(HEADER.len()..).unwrap();
        let flags = HAS_EXTRA | HAS_NAME | HAS_COMMENT | HAS_CHECKSUM;
        let head = [0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
        let long = [&head[..], &[2, 0, 9, 9], b"name\0comment\0", &[1, 2], body].concat();
        assert_eq!(decompress_to(&long, 4), Ok(b"floe".to_vec()));
    }

    #[test]
    fn invalid_gzip_is_rejected() {
        let whole = compress(b"floe floe floe");
        for length in 0..whole.len() {
            let part = whole.get(..length).unwrap();
            assert_eq!(
                decompress_to(part, 100),
                Err(GzipError::Malformed),
                "{length}"
            );
        }
        for at in [0, 1, 2, 12, whole.len() - 1, whole.len() - 5] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(decompress_to(&changed, 100).is_err(), "{at}");
        }
        let junk = [&whole[..], b"junk"].concat();
        assert_eq!(decompress_to(&junk, 100), Err(GzipError::Malformed));
        assert_eq!(decompress_to(b"{}", 100), Err(GzipError::Malformed));
    }
}
