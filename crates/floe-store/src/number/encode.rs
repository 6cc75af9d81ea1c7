//! Binary encodings of numbers: one that sorts like the numbers, and a compact one.

use super::{Number, power_of_ten};

/// Maximum number of base-100 digits: 38 decimal digits that start and end in the middle of a pair.
const PAIRS_MAX: usize = 20;

/// Zero in a key: below every positive number, whose first pair is never zero, and above every negative one.
const ORDERED_ZERO: [u8; 2] = [0x80, 0x00];

/// The power of 100 of the smallest numbers, 1E-130.
const PAIR_POWER_MIN: i32 = -65;

impl Number {
    /// Appends bytes that sort like the numbers, for keys.
    ///
    /// Digits are taken in pairs, aligned to the decimal point:
    ///
    /// | bytes | content |
    /// |---|---|
    /// | 1 | `0x80` + 65 + the power of 100 of the first pair |
    /// | 1 to 20 | the pairs, most significant first, as 2 × pair + 1; the last one as 2 × pair |
    ///
    /// For a negative number all bytes are inverted. Zero is `80 00`. Neither the first nor the last pair is `00`, so
    /// each number has exactly one encoding. The lowest bit of each pair says whether another follows, so no encoding
    /// is a prefix of another, and further key parts can follow. Integers take 2 bytes up to 99, 3 up to 9,999, 6 up to
    /// 9,999,999,999; the maximum is 21.
    ///
    /// ```
    /// use floe_store::Number;
    ///
    /// let key = |number: i64| {
    ///     let mut bytes = Vec::new();
    ///     Number::from(number).encode_ordered(&mut bytes);
    ///     bytes
    /// };
    /// assert_eq!(key(7), [0xC1, 14]);
    /// assert!(key(-10) < key(-9) && key(-9) < key(0) && key(0) < key(9) && key(9) < key(10));
    /// ```
    pub fn encode_ordered(&self, out: &mut Vec<u8>) {
        let mut pairs = [0; PAIRS_MAX];
        let count = self.write_pairs(&mut pairs);
        let Some([last, higher @ ..]) = pairs.get(..count) else {
            out.extend_from_slice(&ORDERED_ZERO);
            return;
        };
        let flip = if self.negative { 0xFF } else { 0x00 };
        let power = self.magnitude().div_euclid(2) - PAIR_POWER_MIN;
        out.push((0x80 | power as u8) ^ flip);
        out.extend(higher.iter().rev().map(|pair| (pair * 2 + 1) ^ flip));
        out.push((last * 2) ^ flip);
    }

    /// Writes the pairs of digits, least significant first, and returns their number: zero has none.
    fn write_pairs(&self, pairs: &mut [u8; PAIRS_MAX]) -> usize {
        const CHUNK: u128 = 1_000_000_000_000_000_000;
        let mut slots = pairs.iter_mut();
        let mut push = |pair: u64| {
            if let Some(slot) = slots.next() {
                *slot = pair as u8;
            }
        };
        let mut rest = self.coefficient();
        if self.exponent % 2 != 0 {
            push((rest % 10 * 10) as u64);
            rest /= 10;
        }
        // Nine pairs at a time, because 128-bit division is slow.
        while rest > u64::MAX.into() {
            let mut chunk = (rest % CHUNK) as u64;
            rest /= CHUNK;
            for _ in 0..9 {
                push(chunk % 100);
                chunk /= 100;
            }
        }
        let mut rest = rest as u64;
        while rest != 0 {
            push(rest % 100);
            rest /= 100;
        }
        PAIRS_MAX - slots.len()
    }

    /// Decodes a number written by [`encode_ordered`](Self::encode_ordered) at the start of `input`, and returns its
    /// length in bytes as well. Returns `None` for bytes that are not such an encoding.
    pub fn decode_ordered(input: &[u8]) -> Option<(Self, usize)> {
        let (head, body) = input.split_first()?;
        let negative = *head < 0x80;
        let flip = if negative { 0xFF } else { 0x00 };
        if input.starts_with(&ORDERED_ZERO) {
            return Some((Self::ZERO, ORDERED_ZERO.len()));
        }
        let mut pairs = body.iter().take(PAIRS_MAX).map(|byte| byte ^ flip);
        let higher_count = pairs.position(|byte| byte & 1 == 0)?;
        let (higher, [last, ..]) = body.split_at_checked(higher_count)? else {
            return None;
        };
        let mut coefficient = 0_u128;
        for byte in higher {
            let pair = u128::from((byte ^ flip) >> 1);
            if pair > 99 || (pair == 0 && coefficient == 0) {
                return None;
            }
            // At most 19 pairs: 38 digits.
            coefficient = coefficient * 100 + pair;
        }
        let last = (last ^ flip) >> 1;
        let (shift, digits, odd) = match last {
            1..=99 if last % 10 == 0 => (10, last / 10, 1),
            1..=99 => (100, last, 0),
            _ => return None,
        };
        let coefficient = coefficient.checked_mul(shift)?.checked_add(digits.into())?;
        if coefficient >= power_of_ten(Self::DIGITS_MAX) {
            return None;
        }
        let power = i32::from((head ^ flip) & 0x7F) + PAIR_POWER_MIN - higher_count as i32;
        // Every first pair is in range at any of the 128 powers: 00 was rejected, and 01 to 99 are at least 1E-130.
        let number = Self::pack(negative, coefficient, (2 * power + odd) as i16);
        Some((number, 1 + higher_count + 1))
    }

    /// Appends a short encoding that is fast to decode, for the bodies of items. It does not sort.
    ///
    /// The number is coefficient × 10^exponent; the coefficient has no trailing decimal zeros:
    ///
    /// | bytes | content |
    /// |---|---|
    /// | 1 | bit 7: negative; bits 6 and 5: form; bits 4 to 0: length of the coefficient |
    /// | 0 or 1 | exponent: none if 0 (form 0), a signed byte (form 1), -129 - byte (form 2) |
    /// | 0 to 16 | coefficient, least significant byte first, without its most significant zero bytes |
    ///
    /// Zero is `00`. Each number has exactly one encoding. Integers take 2 bytes up to 255 and 3 up to 65,535; 1,000
    /// and other round numbers take 3, as 1 and an exponent; the maximum is 18.
    ///
    /// ```
    /// use floe_store::Number;
    ///
    /// let mut bytes = Vec::new();
    /// Number::from(300).encode_compact(&mut bytes);
    /// assert_eq!(bytes, [0x21, 2, 3]);
    /// assert_eq!(Number::decode_compact(&bytes), Some((Number::from(300), 3)));
    /// ```
    pub fn encode_compact(&self, out: &mut Vec<u8>) {
        let coefficient = self.coefficient();
        let length = 16 - coefficient.leading_zeros() as usize / 8;
        let (form, exponent) = match self.exponent {
            0 => (FORM_NONE, None),
            near @ -128..=127 => (FORM_NEAR, Some(near as u8)),
            far => (FORM_FAR, Some((-129 - far) as u8)),
        };
        let sign = if self.negative { NEGATIVE_MASK } else { 0 };
        out.push(sign | form | length as u8);
        out.extend(exponent);
        out.extend(coefficient.to_le_bytes().iter().take(length));
    }

    /// Decodes a number written by [`encode_compact`](Self::encode_compact) at the start of `input`, and returns its
    /// length in bytes as well. Returns `None` for bytes that are not such an encoding.
    pub fn decode_compact(input: &[u8]) -> Option<(Self, usize)> {
        let (&head, body) = input.split_first()?;
        if head == 0 {
            return Some((Self::ZERO, 1));
        }
        let (exponent, body) = match (head & FORM_MASK, body) {
            (FORM_NONE, body) => (0, body),
            (FORM_NEAR, [near @ 1..=255, body @ ..]) => (i16::from(*near as i8), body),
            (FORM_FAR, [far, body @ ..]) => (-129 - i16::from(*far), body),
            _ => return None,
        };
        let length = usize::from(head & LENGTH_MASK);
        let (low, high) = match length {
            1..=8 => (read_le_bytes(body, length)?, 0),
            9..=16 => {
                let (low, body) = body.split_first_chunk()?;
                (u64::from_le_bytes(*low), read_le_bytes(body, length - 8)?)
            }
            _ => return None,
        };
        let number = Self {
            high,
            low,
            exponent,
            negative: head & NEGATIVE_MASK != 0,
        };
        let taken = 1 + usize::from(head & FORM_MASK != FORM_NONE) + length;
        number.is_canonical().then_some((number, taken))
    }

    /// Whether a decoded nonzero coefficient and its exponent are normalized as by [`Self::new`].
    fn is_canonical(&self) -> bool {
        // The magnitude exceeds the exponent by at most 37, so most numbers pass without counting digits.
        if self.high == 0 && (-130..=88).contains(&self.exponent) {
            return !self.low.is_multiple_of(10);
        }
        // 2^64 ends in 6: this yields the last decimal digit without 128-bit division.
        if (self.high % 10 * 6 + self.low % 10).is_multiple_of(10) {
            return false;
        }
        let magnitudes = Self::MAGNITUDE_MIN..=Self::MAGNITUDE_MAX;
        self.digits() <= Self::DIGITS_MAX && magnitudes.contains(&self.magnitude())
    }
}

const NEGATIVE_MASK: u8 = 0b1000_0000;
const FORM_MASK: u8 = 0b0110_0000;
const FORM_NONE: u8 = 0b0000_0000;
const FORM_NEAR: u8 = 0b0010_0000;
const FORM_FAR: u8 = 0b0100_0000;
const LENGTH_MASK: u8 = 0b0001_1111;

/// Reads an integer of `length` bytes (1 to 8), least significant first, at the start of `input`. Returns `None` if the
/// most significant byte is zero.
fn read_le_bytes(input: &[u8], length: usize) -> Option<u64> {
    let value = match input.first_chunk() {
        // Usually at least 8 bytes follow: load them at once and mask those beyond the length.
        Some(chunk) => u64::from_le_bytes(*chunk) & (u64::MAX >> (64 - 8 * length)),
        None => {
            let bytes = input.get(..length)?.iter().rev();
            bytes.fold(0, |value, byte| value << 8 | u64::from(*byte))
        }
    };
    (value >> (8 * (length - 1)) != 0).then_some(value)
}
