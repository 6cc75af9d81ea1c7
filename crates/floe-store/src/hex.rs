//! Bytes as lowercase hexadecimal text, which sorts like the bytes.

use std::fmt::Write;

/// Encodes bytes as text.
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _infallible = write!(text, "{byte:02x}");
    }
    text
}

/// Decodes text written by [`encode`]. Returns `None` for any other text.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(byte).collect()
}

fn byte([high, low]: &[u8; 2]) -> Option<u8> {
    Some(digit(*high)? << 4 | digit(*low)?)
}

const fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}
