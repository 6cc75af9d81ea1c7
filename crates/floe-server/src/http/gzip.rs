//! The format gzip: members of compressed bytes, each with a header, a checksum and its length.
//!
//! The compression itself is that of `miniz_oxide`; what stands around it is here.

use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

use crate::limits::GZIP_MEMBERS_MAX;

/// How well answers are compressed: as zlib does it when nobody asks for more.
pub(super) const LEVEL: u8 = 6;

/// The beginning of what is compressed here: no name, no time, an unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

const HAS_CHECKSUM: u8 = 1 << 1;
const HAS_EXTRA: u8 = 1 << 2;
const HAS_NAME: u8 = 1 << 3;
const HAS_COMMENT: u8 = 1 << 4;

/// The room that the bytes of a member are given at first. It grows with what they take: if it grew with what came
/// before them, thousands of small members after a large one would cost as much as thousands of large ones.
const ROOM_BYTES_MIN: usize = 256;

/// Why bytes cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// They are not what gzip makes, or not all of it, or in too many pieces.
    Malformed,
    /// They are more than asked for.
    TooLarge,
}

/// Compresses bytes.
pub(super) fn compress(bytes: &[u8]) -> Vec<u8> {
    let mut compressed = HEADER.to_vec();
    compressed.extend(compress_to_vec(bytes, LEVEL));
    compressed.extend(crc32fast::hash(bytes).to_le_bytes());
    compressed.extend(length(bytes).to_le_bytes());
    compressed
}

/// Decompresses bytes, of which there may be several members, to at most so many.
pub(super) fn decompress_to(bytes: &[u8], bytes_max: usize) -> Result<Vec<u8>, Broken> {
    let mut input = Input(bytes);
    let mut output = Vec::new();
    // Large, and members may be small and many.
    let mut state = Box::new(DecompressorOxide::new());
    for _ in 0..GZIP_MEMBERS_MAX {
        input.skip_header()?;
        let begin = output.len();
        state.init();
        let consumed = inflate(&mut state, input.0, &mut output, bytes_max)?;
        input.take(consumed)?;
        let member = output.get(begin..).unwrap_or_default();
        if input.number()? != crc32fast::hash(member) || input.number()? != length(member) {
            return Err(Broken::Malformed);
        }
        if input.0.is_empty() {
            return Ok(output);
        }
    }
    Err(Broken::Malformed)
}

/// The length as a member has it: of very long ones the last 32 bits.
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len() & 0xffff_ffff).unwrap_or_default()
}

/// Adds the bytes of one member to the output, and returns how many of the input they were.
fn inflate(
    state: &mut DecompressorOxide,
    input: &[u8],
    output: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<usize, Broken> {
    // Grows with the output, so that what a member refers to is always there.
    const FLAGS: u32 = inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let begin = output.len();
    let (mut consumed, mut written) = (0, 0);
    loop {
        // One more than may be, to see that it is too much.
        let room = begin + (4 * written).max(ROOM_BYTES_MIN);
        output.resize(room.min(bytes_max + 1), 0);
        let rest = input.get(consumed..).unwrap_or_default();
        let member = output.get_mut(begin..).unwrap_or_default();
        let (status, read, added) = decompress(state, rest, member, written, FLAGS);
        consumed += read;
        written += added;
        if begin + written > bytes_max {
            return Err(Broken::TooLarge);
        }
        match status {
            TINFLStatus::Done => {
                output.truncate(begin + written);
                return Ok(consumed);
            }
            TINFLStatus::HasMoreOutput => {}
            _ => return Err(Broken::Malformed),
        }
    }
}

/// What is left to read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Broken::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u32, Broken> {
        let bytes = self.take(4)?.try_into().map_err(|_| Broken::Malformed)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Passes over text that ends with a zero.
    fn skip_text(&mut self) -> Result<(), Broken> {
        let end = self.0.iter().position(|byte| *byte == 0);
        self.take(end.ok_or(Broken::Malformed)? + 1).map(drop)
    }

    fn skip_header(&mut self) -> Result<(), Broken> {
        let &[0x1f, 0x8b, 8, flags, ..] = self.take(HEADER.len())? else {
            return Err(Broken::Malformed);
        };
        if flags & HAS_EXTRA != 0 {
            let &[low, high] = self.take(2)? else {
                return Err(Broken::Malformed);
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

    /// Text that compresses to some extent.
    fn text(length: usize) -> Vec<u8> {
        let random = SeededRandom::new(7);
        let letters = std::iter::repeat_with(|| b'a' + u8::try_from(random.below(16)).unwrap());
        letters.take(length).collect()
    }

    #[test]
    fn what_was_compressed_comes_back() {
        for length in [0, 1, ROOM_BYTES_MIN, ROOM_BYTES_MIN + 1, 25_000, 1 << 20] {
            let bytes = text(length);
            let compressed = compress(&bytes);
            assert_eq!(decompress_to(&compressed, length).as_ref(), Ok(&bytes));
            let tight = decompress_to(&compressed, length.saturating_sub(1));
            assert_eq!(tight.is_err(), length > 0, "{length}");
        }
    }

    #[test]
    fn members_follow_one_another() {
        let (one, two) = (text(20_000), text(9));
        let none = |count| compress(b"").repeat(count);
        let compressed = [compress(&one), none(3), compress(&two)].concat();
        let both = [one, two].concat();
        assert_eq!(decompress_to(&compressed, 1 << 20), Ok(both));
        let many = none(GZIP_MEMBERS_MAX);
        assert_eq!(decompress_to(&many, 100), Ok(Vec::new()));
        let too_many = none(GZIP_MEMBERS_MAX + 1);
        assert_eq!(decompress_to(&too_many, 100), Err(Broken::Malformed));
        assert_eq!(decompress_to(&compressed, 20_008), Err(Broken::TooLarge));
    }

    #[test]
    fn headers_may_have_more_in_them() {
        let plain = compress(b"floe");
        let body = plain.get(HEADER.len()..).unwrap();
        let flags = HAS_EXTRA | HAS_NAME | HAS_COMMENT | HAS_CHECKSUM;
        let head = [0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
        let long = [&head[..], &[2, 0, 9, 9], b"name\0comment\0", &[1, 2], body].concat();
        assert_eq!(decompress_to(&long, 4), Ok(b"floe".to_vec()));
    }

    #[test]
    fn nothing_but_gzip_is_taken() {
        let whole = compress(b"floe floe floe");
        for length in 0..whole.len() {
            let part = whole.get(..length).unwrap();
            assert_eq!(decompress_to(part, 100), Err(Broken::Malformed), "{length}");
        }
        for at in [0, 1, 2, 12, whole.len() - 1, whole.len() - 5] {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert!(decompress_to(&changed, 100).is_err(), "{at}");
        }
        let junk = [&whole[..], b"junk"].concat();
        assert_eq!(decompress_to(&junk, 100), Err(Broken::Malformed));
        assert_eq!(decompress_to(b"{}", 100), Err(Broken::Malformed));
    }
}
