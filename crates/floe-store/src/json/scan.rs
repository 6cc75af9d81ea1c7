//! Finds the special bytes of a string, eight bytes at a time.

/// Returns the length of the prefix that needs no escape in a JSON string: up to the first quote, backslash or control
/// character.
#[inline]
pub(super) fn plain_length(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks::<8>();
    for (n, word) in words.iter().enumerate() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return n * 8 + special.trailing_zeros() as usize / 8;
        }
    }
    let plain = rest.iter().take_while(|byte| !is_special(**byte)).count();
    words.len() * 8 + plain
}

const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Sets the high bit of each special byte. If there are several, only the lowest one is reliable, which is the one
/// needed.
#[inline]
const fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let below_space = word.wrapping_sub(ONES * 0x20);
    let quote = (word ^ (ONES * b'"' as u64)).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (below_space | quote | backslash) & !word & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_bytes_are_found_at_every_position() {
        for length in 0..40 {
            assert_eq!(plain_length(&vec![b'x'; length]), length);
            for at in 0..length {
                for byte in 0..=u8::MAX {
                    let mut bytes = vec![b'~'; length];
                    bytes[at] = byte;
                    let expected = if is_special(byte) { at } else { length };
                    assert_eq!(
                        plain_length(&bytes),
                        expected,
                        "byte={byte} at={at} length={length}"
                    );
                }
            }
        }
    }

    #[test]
    fn first_of_several_special_bytes_is_found() {
        assert_eq!(plain_length("größer\"\\".as_bytes()), 8);
        assert_eq!(plain_length(b"ab\x1f\"cdefgh"), 2);
        assert_eq!(plain_length(b"\xff\xfe\xfd\"abcdefg\\"), 3);
    }
}
