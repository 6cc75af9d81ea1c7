//! Encodings of stored event bodies, uncompressed or compressed.
//!
//! | number | encoding | write | read |
//! |---|---|---|---|
//! | absent, 0 | uncompressed | yes | yes |
//! | 1 | raw DEFLATE, possibly without its end | never | yes |
//! | 2 | Brotli | on request | yes |
//! | 3 | zstd, a Floe extension: no other program reads it | on request, with the feature `zstd` | with the feature `zstd` |

use std::io::Read;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

use crate::error::{Error, ErrorKind, Result};

/// Smaller bodies are stored uncompressed.
const COMPRESS_BYTES_MIN: usize = 48;

/// Maximum size of a decoded body. An item holds 400 KB, so a larger body is an attack.
const BODY_BYTES_MAX: usize = 64 << 20;

/// Compression of event bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// Bodies of at least 48 bytes are stored compressed with Brotli if that is smaller.
    Brotli,
    /// Like [`Brotli`](Self::Brotli), for bodies of at least this many bytes: for streams of small events with a few
    /// that would not fit into an item.
    BrotliFrom(usize),
    /// Bodies of at least 48 bytes are stored compressed with zstd if that is smaller. Faster than Brotli with less
    /// compression. Neither Equinox nor a program built without the feature can read it.
    #[cfg(feature = "zstd")]
    Zstd,
}

impl Compression {
    /// The encoding to try for a body of this size.
    fn of_body(self, bytes: usize) -> Encoding {
        match self {
            _ if bytes < COMPRESS_BYTES_MIN => Encoding::Raw,
            Self::None => Encoding::Raw,
            Self::Brotli => Encoding::Brotli,
            Self::BrotliFrom(least) if bytes >= least => Encoding::Brotli,
            Self::BrotliFrom(_) => Encoding::Raw,
            #[cfg(feature = "zstd")]
            Self::Zstd => Encoding::Zstd,
        }
    }
}

/// The number of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Raw = 0,
    Deflate = 1,
    Brotli = 2,
    Zstd = 3,
}

impl Encoding {
    pub(crate) const fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn of_number(number: u64) -> Option<Self> {
        let all = [Self::Raw, Self::Deflate, Self::Brotli, Self::Zstd];
        all.into_iter()
            .find(|one| u64::from(one.number()) == number)
    }
}

/// An encoded body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) encoding: Encoding,
    pub(crate) bytes: Vec<u8>,
}

impl Body {
    /// Encodes a body.
    pub(crate) fn encode(bytes: Vec<u8>, compression: Compression) -> Self {
        let encoding = compression.of_body(bytes.len());
        let smaller = match encoding {
            Encoding::Raw | Encoding::Deflate => None,
            Encoding::Brotli => brotli(&bytes),
            Encoding::Zstd => zstd(&bytes),
        };
        match smaller.filter(|smaller| smaller.len() < bytes.len()) {
            Some(bytes) => Self { encoding, bytes },
            None => Self {
                encoding: Encoding::Raw,
                bytes,
            },
        }
    }
}

fn brotli(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: 5,
        size_hint: bytes.len(),
        ..Default::default()
    };
    brotli::BrotliCompress(&mut &*bytes, &mut out, &parameters).ok()?;
    Some(out)
}

#[cfg(feature = "zstd")]
fn zstd(bytes: &[u8]) -> Option<Vec<u8>> {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    Some(compress_to_vec(bytes, CompressionLevel::Fastest))
}

#[cfg(not(feature = "zstd"))]
const fn zstd(_: &[u8]) -> Option<Vec<u8>> {
    None
}

/// Decodes a stored body.
///
/// # Errors
///
/// [`InvalidEvent`](ErrorKind::InvalidEvent) if it is damaged or too large, [`Unsupported`](ErrorKind::Unsupported)
/// if the program was built without its encoding.
pub(crate) fn decode(encoding: Encoding, stored: &[u8]) -> Result<Vec<u8>> {
    let decoded = match encoding {
        Encoding::Raw => Some(stored.to_vec()),
        Encoding::Deflate => inflate(stored),
        Encoding::Brotli => read_whole(brotli::Decompressor::new(stored, 4096)),
        #[cfg(feature = "zstd")]
        Encoding::Zstd => unzstd(stored),
        #[cfg(not(feature = "zstd"))]
        Encoding::Zstd => return Err(without_zstd()),
    };
    decoded.ok_or_else(|| {
        let (encoding, bytes) = (encoding.number(), stored.len());
        let message = format!("cannot read an event body: encoding={encoding} bytes={bytes}");
        Error::new(ErrorKind::InvalidEvent, message)
    })
}

fn read_whole(reader: impl Read) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut reader = reader.take(BODY_BYTES_MAX as u64 + 1);
    reader.read_to_end(&mut out).ok()?;
    (out.len() <= BODY_BYTES_MAX).then_some(out)
}

#[cfg(feature = "zstd")]
fn unzstd(stored: &[u8]) -> Option<Vec<u8>> {
    read_whole(ruzstd::decoding::StreamingDecoder::new(stored).ok()?)
}

#[cfg(not(feature = "zstd"))]
fn without_zstd() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "the event body is compressed with zstd, which requires the feature `zstd` of floe: encoding=3",
    )
}

/// Decodes raw DEFLATE. Some writers flush without ending the last block, so a missing end is accepted.
fn inflate(stored: &[u8]) -> Option<Vec<u8>> {
    let mut state = DecompressorOxide::new();
    let mut out = vec![0; (stored.len() * 4).clamp(64, BODY_BYTES_MAX)];
    let (mut read, mut written) = (0, 0);
    loop {
        let rest = stored.get(read..)?;
        let flags = inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        let (status, taken, made) = decompress(&mut state, rest, &mut out, written, flags);
        read += taken;
        written += made;
        match status {
            TINFLStatus::HasMoreOutput if out.len() < BODY_BYTES_MAX => {
                let longer = (out.len() * 2).min(BODY_BYTES_MAX);
                out.resize(longer, 0);
            }
            TINFLStatus::Done => break,
            TINFLStatus::NeedsMoreInput | TINFLStatus::FailedCannotMakeProgress
                if read == stored.len() =>
            {
                break;
            }
            _ => return None,
        }
    }
    out.truncate(written);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(bytes: &[u8], compression: Compression) -> (Encoding, usize) {
        let body = Body::encode(bytes.to_vec(), compression);
        assert_eq!(decode(body.encoding, &body.bytes).unwrap(), bytes);
        (body.encoding, body.bytes.len())
    }

    fn check_compression(compression: Compression, encoding: Encoding) {
        let round_trip = |bytes: &[u8]| round_trip(bytes, compression);
        assert_eq!(round_trip(&[b'a'; 47]), (Encoding::Raw, 47));
        let (found, bytes) = round_trip(&[b'a'; 48]);
        assert!(found == encoding && bytes < 48, "{found:?} {bytes}");
        let random: Vec<u8> = (0..100_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        assert_eq!(round_trip(&random).0, Encoding::Raw);
        assert_eq!(round_trip(b""), (Encoding::Raw, 0));
        assert_eq!(round_trip(&vec![b'a'; 1 << 20]).0, encoding);
    }

    #[test]
    fn bodies_are_compressed_from_48_bytes_if_that_is_smaller() {
        check_compression(Compression::Brotli, Encoding::Brotli);
        check_compression(Compression::BrotliFrom(0), Encoding::Brotli);
        #[cfg(feature = "zstd")]
        check_compression(Compression::Zstd, Encoding::Zstd);
        let plain = Body::encode(vec![b'a'; 1000], Compression::None);
        assert_eq!(plain.encoding, Encoding::Raw);
    }

    #[test]
    fn only_large_bodies_can_be_compressed() {
        let compression = Compression::BrotliFrom(1000);
        assert_eq!(round_trip(&[b'a'; 999], compression).0, Encoding::Raw);
        assert_eq!(round_trip(&[b'a'; 1000], compression).0, Encoding::Brotli);
    }

    #[test]
    fn encodings_have_unique_numbers() {
        for number in 0..4 {
            let encoding = Encoding::of_number(number).unwrap();
            assert_eq!(u64::from(encoding.number()), number);
        }
        assert_eq!(Encoding::of_number(4), None);
    }

    /// A frame of 300 letters `a`, written by the zstd program, version 1.5.4.
    const ZSTD_FRAME: [u8; 18] = [
        0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x4d, 0x00, 0x00, 0x10, 0x61, 0x61, 0x01, 0x00, 0x27,
        0x2a, 0xc0, 0x02,
    ];

    #[cfg(feature = "zstd")]
    #[test]
    fn zstd_frames_of_other_programs_are_read() {
        assert_eq!(decode(Encoding::Zstd, &ZSTD_FRAME).unwrap(), [b'a'; 300]);
    }

    #[cfg(not(feature = "zstd"))]
    #[test]
    fn zstd_without_the_feature_is_an_error() {
        let error = decode(Encoding::Zstd, &ZSTD_FRAME).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("feature `zstd`"), "{error}");
    }

    #[test]
    fn deflate_is_read_with_and_without_its_end() {
        let text = "the quick brown fox ".repeat(500);
        let whole = miniz_oxide::deflate::compress_to_vec(text.as_bytes(), 6);
        assert_eq!(decode(Encoding::Deflate, &whole).unwrap(), text.as_bytes());
        // A stored block that is not the last one.
        let unterminated = [&[0, 3, 0, 0xfc, 0xff][..], b"abc"].concat();
        assert_eq!(decode(Encoding::Deflate, &unterminated).unwrap(), b"abc");
        assert_eq!(decode(Encoding::Deflate, b"").unwrap(), b"");
    }

    #[test]
    fn damaged_bodies_are_rejected() {
        for encoding in [
            Encoding::Deflate,
            Encoding::Brotli,
            #[cfg(feature = "zstd")]
            Encoding::Zstd,
        ] {
            let error = decode(encoding, &[0xff; 20]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidEvent, "{encoding:?}");
        }
    }

    #[test]
    fn decompression_bombs_are_rejected() {
        let bomb = miniz_oxide::deflate::compress_to_vec(&vec![0; BODY_BYTES_MAX + 1], 9);
        assert!(decode(Encoding::Deflate, &bomb).is_err());
        let mut out = Vec::new();
        let zeros = vec![0; BODY_BYTES_MAX + 1];
        let fast = brotli::enc::BrotliEncoderParams {
            quality: 1,
            ..Default::default()
        };
        brotli::BrotliCompress(&mut &*zeros, &mut out, &fast).unwrap();
        assert!(decode(Encoding::Brotli, &out).is_err());
        #[cfg(feature = "zstd")]
        assert!(decode(Encoding::Zstd, &super::zstd(&zeros).unwrap()).is_err());
    }
}
