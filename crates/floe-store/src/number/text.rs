//! Parsing and printing of numbers, as in DynamoDB.

use std::fmt::{self, Write};
use std::str::FromStr;

use super::{Number, NumberError, power_of_ten};

/// Parses DynamoDB's syntax: an optional sign, digits with at most one decimal point before, between or after them, and
/// an optional exponent; no spaces. Leading and trailing zeros are not significant.
///
/// The range of zero is checked as if its last written digit were 1: `0e126` is rejected, `0.0e126` is not.
impl FromStr for Number {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Self, NumberError> {
        parse(text.as_bytes())
    }
}

fn parse(text: &[u8]) -> Result<Number, NumberError> {
    let (negative, unsigned) = split_sign(text);
    if let Some(value) = parse_short_integer(unsigned) {
        return Ok(Number::from_u64(negative, value));
    }
    let (whole, rest) = split_digits(unsigned);
    let (fraction, rest) = match rest {
        [b'.', rest @ ..] => split_digits(rest),
        rest => (&[][..], rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(NumberError::Malformed);
    }
    let exponent = match rest {
        [] => Some(0),
        [b'e' | b'E', exponent @ ..] => parse_exponent(exponent)?,
        _ => return Err(NumberError::Malformed),
    };
    let mut significand = Significand::default();
    let digits = whole.iter().chain(fraction);
    digits.for_each(|byte| significand.push(byte - b'0'));
    let exponent = exponent.ok_or(NumberError::Malformed)?;
    let last_digit = exponent.saturating_sub_unsigned(fraction.len() as u64);
    if significand.digits == 0 {
        return Number::new(false, 1, last_digit).map(|_| Number::ZERO);
    }
    let digits = significand.digits - significand.zeros;
    if digits > Number::DIGITS_MAX as u64 {
        return Err(NumberError::TooManyDigits);
    }
    let exponent = last_digit.saturating_add_unsigned(significand.zeros);
    Number::new(negative, significand.coefficient, exponent)
}

/// The common case: up to 19 digits without sign, point or exponent.
fn parse_short_integer(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 19 {
        return None;
    }
    text.iter().try_fold(0, |value, byte| match byte {
        b'0'..=b'9' => Some(value * 10 + u64::from(byte - b'0')),
        _ => None,
    })
}

fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    }
}

fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

/// The exponent; `None` if it is well-formed but does not fit into 64 bits.
fn parse_exponent(text: &[u8]) -> Result<Option<i64>, NumberError> {
    let (negative, digits) = split_sign(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(NumberError::Malformed);
    }
    Ok(digits.iter().try_fold(0_i64, |value, byte| {
        let digit = i64::from(byte - b'0');
        let signed = if negative { -digit } else { digit };
        value.checked_mul(10)?.checked_add(signed)
    }))
}

/// The digits of a number of any length, as they are parsed.
#[derive(Default)]
struct Significand {
    /// The digits up to the last nonzero one, if these are at most 38.
    coefficient: u128,
    /// The number of digits from the first nonzero one.
    digits: u64,
    /// The number of zeros since the last nonzero digit.
    zeros: u64,
}

impl Significand {
    fn push(&mut self, digit: u8) {
        if digit == 0 {
            let counted = u64::from(self.digits > 0);
            self.digits += counted;
            self.zeros += counted;
            return;
        }
        self.digits += 1;
        if self.digits <= Number::DIGITS_MAX as u64 {
            let shift = power_of_ten(self.zeros as usize + 1);
            self.coefficient = self.coefficient * shift + u128::from(digit);
        }
        self.zeros = 0;
    }
}

impl Number {
    /// Writes the number like [`Display`](fmt::Display), but without a formatter and without allocating.
    ///
    /// ```
    /// let mut json = String::from("{\"N\":\"");
    /// floe_store::Number::from(-3).write(&mut json)?;
    /// json.push_str("\"}");
    /// assert_eq!(json, r#"{"N":"-3"}"#);
    /// # Ok::<(), std::fmt::Error>(())
    /// ```
    pub fn write<W: Write + ?Sized>(&self, out: &mut W) -> fmt::Result {
        if self.negative {
            out.write_char('-')?;
        }
        self.write_unsigned(out)
    }

    fn write_unsigned<W: Write + ?Sized>(&self, out: &mut W) -> fmt::Result {
        let places = usize::from(self.exponent.unsigned_abs());
        if self.exponent < 0 {
            // Beyond the 38 digits of a coefficient, the divisor only has to be larger than it.
            let unit = power_of_ten(places);
            let (whole, fraction) = (self.coefficient() / unit, self.coefficient() % unit);
            return write!(out, "{whole}.{fraction:0places$}");
        }
        if self.high == 0 {
            write!(out, "{}", self.low)?;
        } else {
            write!(out, "{}", self.coefficient())?;
        }
        (0..places).try_for_each(|_| out.write_char('0'))
    }
}

/// Prints the number as DynamoDB returns it: plain decimal, without exponent or superfluous zeros.
///
/// ```
/// use floe_store::Number;
///
/// for (stored, returned) in [("1E5", "100000"), ("+007.50", "7.5"), ("-0", "0"), (".5", "0.5")] {
///     assert_eq!(stored.parse::<Number>()?.to_string(), returned);
/// }
/// # Ok::<(), floe_store::NumberError>(())
/// ```
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.width().is_none() && !f.sign_plus() {
            return self.write(f);
        }
        let mut text = Text::default();
        self.write_unsigned(&mut text)?;
        f.pad_integral(!self.negative, "", text.as_str())
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Number({self})")
    }
}

/// A fixed-size text buffer on the stack for the longest number.
pub(super) struct Text {
    bytes: [u8; Self::BYTES_MAX],
    length: usize,
}

impl Text {
    /// The length of `-0.`, 129 zeros and 38 digits.
    pub(super) const BYTES_MAX: usize = 170;

    pub(super) fn as_str(&self) -> &str {
        let written = self.bytes.get(..self.length).unwrap_or_default();
        // Only complete strings are copied in, so this is valid UTF-8.
        str::from_utf8(written).unwrap_or_default()
    }
}

impl Default for Text {
    fn default() -> Self {
        Self {
            bytes: [0; Self::BYTES_MAX],
            length: 0,
        }
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        let room = self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}
