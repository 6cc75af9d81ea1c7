//! Base64 as DynamoDB's JSON has it: the standard alphabet, padded (RFC 4648, section 4).
//!
//! Decoding takes only what encoding writes, so that a text stands for one value and back.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes of a group of four letters.
const GROUP_BYTES: usize = 3;

/// Letters of a group of three bytes.
const GROUP_LETTERS: usize = 4;

/// The text of these bytes.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(GROUP_BYTES) * GROUP_LETTERS);
    for group in bytes.chunks(GROUP_BYTES) {
        let bits = (0..GROUP_BYTES).fold(0, |bits, at| {
            bits << 8 | u32::from(group.get(at).copied().unwrap_or(0))
        });
        for at in 0..GROUP_LETTERS {
            let letter = bits >> (6 * (GROUP_LETTERS - 1 - at)) & 63;
            let letter = ALPHABET.get(letter as usize).copied().unwrap_or_default();
            text.push(if at <= group.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    text
}

/// The bytes of this text; `None` if it is not what [`encode`] writes.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let letters = text.as_bytes();
    if !letters.len().is_multiple_of(GROUP_LETTERS) {
        return None;
    }
    let padding = letters
        .iter()
        .rev()
        .take_while(|letter| **letter == b'=')
        .count();
    let letters = letters.get(..letters.len().checked_sub(padding)?)?;
    let mut bytes = Vec::with_capacity(text.len() / GROUP_LETTERS * GROUP_BYTES);
    for group in letters.chunks(GROUP_LETTERS) {
        let mut bits = 0;
        for letter in group {
            bits = bits << 6 | value(*letter)?;
        }
        let spare = 6 * (GROUP_LETTERS - group.len());
        let bits: u32 = bits << spare;
        let group_bytes = [bits >> 16, bits >> 8, bits].map(|bits| bits as u8);
        // One letter holds no byte, and bits behind the last byte must be zero.
        let (kept, rest) = group_bytes.split_at_checked(group.len().checked_sub(1)?)?;
        if kept.is_empty() || rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    // At most two letters of padding: three would stand for a group of one.
    (padding < 3).then_some(bytes)
}

fn value(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use floe_store::env::{Random, SeededRandom};

    #[test]
    fn the_examples_of_rfc_4648() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).unwrap(), bytes.as_bytes());
        }
        assert_eq!(encode(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn random_bytes_come_back() {
        let random = SeededRandom::new(1);
        for length in 0..300 {
            let bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
            assert_eq!(decode(&encode(&bytes)).unwrap(), bytes);
        }
    }

    #[test]
    fn only_one_text_stands_for_the_same_bytes() {
        for bad in [
            "Zg", "Zg=", "Zg===", "Z===", "====", "=", "Zh==", "Zm9=", "Zm9v=", "Zm9v====",
            "Zg==Zg==", "Zm9v\n", "Zm-v", "Zm_v", "Zm v", "é===", "Zg=a", "=Zg=",
        ] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
    }
}
