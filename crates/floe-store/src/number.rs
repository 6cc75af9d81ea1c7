//! DynamoDB's number: an exact decimal of up to 38 significant digits.
//!
//! A [`Number`] is parsed and printed as in DynamoDB; comparison, addition and subtraction are exact. It has two
//! encodings: [`Number::encode_ordered`] for keys, whose bytes sort like the numbers, and [`Number::encode_compact`]
//! for items, which is the fastest to decode.
//!
//! Not a general decimal type: like DynamoDB, it only adds and subtracts. [`value`](crate::value) has values of all
//! types.

use std::cmp::Ordering;
use std::error::Error;
use std::fmt::{self, Write};
use std::ops::Neg;

mod encode;
mod text;

use text::Text;

/// An exact decimal number: zero, or up to 38 significant digits with a magnitude from 1E-130 to
/// 9.9999999999999999999999999999999999999E+125.
///
/// Equality, order and hash are those of the numeric value: `1`, `1.0` and `10e-1` are the same
/// number, and there is no negative zero.
///
/// ```
/// use floe_store::Number;
///
/// let price: Number = "19.990".parse()?;
/// assert_eq!(price.to_string(), "19.99");
/// assert_eq!(price, "1999e-2".parse()?);
/// assert!(price < Number::from(20));
/// assert_eq!(price.checked_add("0.01".parse()?)?, Number::from(20));
/// # Ok::<(), floe_store::NumberError>(())
/// ```
// The value is `coefficient * 10^exponent`. The coefficient has no trailing decimal zero, and zero has all fields zero.
// So each number has one representation, and the derived `Eq` and `Hash` are numeric. The coefficient is stored as two
// halves because a `u128` would raise the alignment to 16 and the size to 32.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Number {
    high: u64,
    low: u64,
    exponent: i16,
    negative: bool,
}

const _: () = assert!(size_of::<Number>() == 24 && align_of::<Number>() == 8);

/// Why a text or a result is not a [`Number`].
///
/// [`Display`](fmt::Display) prints DynamoDB's message; [`NumberError::message`] includes the rejected text, as
/// DynamoDB does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NumberError {
    /// The text is not a decimal number (`abc`, `1e`, ` 1`, `NaN`), or its exponent does not fit 64
    /// bits. Send a number.
    Malformed,
    /// The number has more than 38 significant digits. Round it, or keep it as a string.
    TooManyDigits,
    /// The magnitude is above 9.99…E+125, or the exact result of a sum or difference needs more than 38 digits, which
    /// DynamoDB reports with the same message.
    Overflow,
    /// The magnitude is below 1E-130 and not zero.
    Underflow,
}

impl NumberError {
    /// Returns DynamoDB's message for `input`, which includes a text that cannot be converted.
    ///
    /// ```
    /// use floe_store::Number;
    ///
    /// let error = "abc".parse::<Number>().unwrap_err();
    /// assert_eq!(
    ///     error.message("abc"),
    ///     "The parameter cannot be converted to a numeric value: abc",
    /// );
    /// ```
    pub fn message(self, input: &str) -> String {
        match self {
            Self::Malformed if !input.is_empty() => format!("{self}: {input}"),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for NumberError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "The parameter cannot be converted to a numeric value",
            Self::TooManyDigits => {
                "Attempting to store more than 38 significant digits in a Number"
            }
            Self::Overflow => {
                "Number overflow. Attempting to store a number with magnitude larger than \
                 supported range"
            }
            Self::Underflow => {
                "Number underflow. Attempting to store a number with magnitude smaller than \
                 supported range"
            }
        })
    }
}

impl Error for NumberError {}

impl Number {
    /// Maximum number of significant digits.
    pub const DIGITS_MAX: usize = 38;
    /// The power of ten of the leading digit of the largest numbers.
    pub const MAGNITUDE_MAX: i32 = 125;
    /// The power of ten of the leading digit of the smallest numbers.
    pub const MAGNITUDE_MIN: i32 = -130;
    /// Zero.
    pub const ZERO: Self = Self {
        high: 0,
        low: 0,
        exponent: 0,
        negative: false,
    };

    /// Whether the number is zero.
    pub const fn is_zero(&self) -> bool {
        self.high == 0 && self.low == 0
    }

    /// Whether the number is below zero.
    pub const fn is_negative(&self) -> bool {
        self.negative
    }

    /// Returns the number of significant digits: 3 for `1.02` and for `10200`, 0 for zero.
    pub fn digits(&self) -> usize {
        decimal_digits(self.coefficient()) as usize
    }

    /// Returns the size of the number by DynamoDB's rules: 1 for zero; otherwise one byte, plus one per pair of digits
    /// and one for a minus sign, at most 21.
    ///
    /// Digits are paired around the decimal point: `1.5` takes two pairs (`01` and `50`), `15` one.
    pub fn size_bytes(&self) -> usize {
        if self.is_zero() {
            return 1;
        }
        // A digit at an even power of ten is the right half of its pair; the left half is zero.
        let padding = usize::from(self.magnitude() % 2 == 0);
        let pairs = (self.digits() + padding).div_ceil(2);
        (1 + pairs + usize::from(self.negative)).min(21)
    }

    /// Returns the exact sum.
    ///
    /// # Errors
    ///
    /// [`NumberError::Overflow`] if the sum is too large or has more than 38 digits: DynamoDB does not round, and
    /// reports `1E50 + 1` as an overflow. [`NumberError::Underflow`] if operands nearly cancel and the result is below
    /// 1E-130.
    pub fn checked_add(self, other: Self) -> Result<Self, NumberError> {
        if self.is_zero() {
            return Ok(other);
        }
        if other.is_zero() {
            return Ok(self);
        }
        let (mut coarse, mut fine) = (self, other);
        if coarse.exponent < fine.exponent {
            std::mem::swap(&mut coarse, &mut fine);
        }
        // The last digit of `fine` is not zero, and if the exponents differ it is also the last digit of the result. So
        // if the scaled `coarse` exceeds 128 bits (3.4E38), the result has 39 digits or more even after subtracting at
        // most 1E38: wider arithmetic is never needed.
        let power = POWERS_OF_TEN.get(usize::from(coarse.exponent.abs_diff(fine.exponent)));
        let scaled = power.and_then(|power| coarse.coefficient().checked_mul(*power));
        let (scaled, rest) = (scaled.ok_or(NumberError::Overflow)?, fine.coefficient());
        let (negative, coefficient) = if coarse.negative == fine.negative {
            let sum = scaled.checked_add(rest).ok_or(NumberError::Overflow)?;
            (coarse.negative, sum)
        } else {
            let larger = if scaled > rest { coarse } else { fine };
            (larger.negative, scaled.abs_diff(rest))
        };
        Self::new(negative, coefficient, fine.exponent.into()).map_err(|error| match error {
            NumberError::TooManyDigits => NumberError::Overflow,
            error => error,
        })
    }

    /// Returns the exact difference.
    ///
    /// # Errors
    ///
    /// Those of [`checked_add`](Self::checked_add).
    pub fn checked_sub(self, other: Self) -> Result<Self, NumberError> {
        self.checked_add(-other)
    }

    /// Returns the negated number. Never fails, because the range is symmetric; it exists for symmetry with the other
    /// operations, and `-number` does the same.
    pub fn checked_neg(self) -> Result<Self, NumberError> {
        Ok(-self)
    }

    /// Normalizes the number and checks its range.
    fn new(negative: bool, coefficient: u128, exponent: i64) -> Result<Self, NumberError> {
        if coefficient == 0 {
            return Ok(Self::ZERO);
        }
        let (coefficient, zeros) = strip_zeros(coefficient);
        let exponent = exponent.saturating_add(zeros.into());
        let digits = decimal_digits(coefficient);
        if digits as usize > Self::DIGITS_MAX {
            return Err(NumberError::TooManyDigits);
        }
        match exponent.saturating_add(i64::from(digits) - 1) {
            magnitude if magnitude > Self::MAGNITUDE_MAX.into() => Err(NumberError::Overflow),
            magnitude if magnitude < Self::MAGNITUDE_MIN.into() => Err(NumberError::Underflow),
            // The exponent is within 37 of the magnitude, so it fits.
            _ => Ok(Self::pack(negative, coefficient, exponent as i16)),
        }
    }

    /// A number from a coefficient without trailing zeros that is in range with its exponent.
    const fn pack(negative: bool, coefficient: u128, exponent: i16) -> Self {
        Self {
            high: (coefficient >> 64) as u64,
            low: coefficient as u64,
            exponent,
            negative,
        }
    }

    fn from_u64(negative: bool, value: u64) -> Self {
        let (low, zeros) = strip_zeros_u64(value);
        Self {
            high: 0,
            low,
            exponent: zeros as i16,
            negative: negative && value != 0,
        }
    }

    /// Returns the sign (true for negative), the coefficient, and the power of ten to multiply it by. The coefficient
    /// has no trailing zeros, except for zero itself.
    ///
    /// ```
    /// use floe_store::Number;
    ///
    /// assert_eq!("-12.50".parse::<Number>()?.to_parts(), (true, 125, -1));
    /// assert_eq!(Number::from(300).to_parts(), (false, 3, 2));
    /// # Ok::<(), floe_store::NumberError>(())
    /// ```
    pub fn to_parts(&self) -> (bool, u128, i32) {
        (self.negative, self.coefficient(), i32::from(self.exponent))
    }

    const fn coefficient(&self) -> u128 {
        (self.high as u128) << 64 | self.low as u128
    }

    /// Returns the power of ten of the leading digit. Meaningless for zero.
    fn magnitude(&self) -> i32 {
        i32::from(self.exponent) + decimal_digits(self.coefficient()) as i32 - 1
    }

    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        if self.exponent == other.exponent {
            return self.coefficient().cmp(&other.coefficient());
        }
        let by_magnitude = self.magnitude().cmp(&other.magnitude());
        by_magnitude.then_with(|| {
            // With equal magnitudes, neither coefficient exceeds 38 digits after scaling to a common exponent.
            let shift = usize::from(self.exponent.abs_diff(other.exponent));
            let (mine, theirs) = (self.coefficient(), other.coefficient());
            if self.exponent > other.exponent {
                (mine * power_of_ten(shift)).cmp(&theirs)
            } else {
                mine.cmp(&(theirs * power_of_ten(shift)))
            }
        })
    }

    const fn signum(&self) -> i8 {
        match (self.is_zero(), self.negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }
}

impl Neg for Number {
    type Output = Self;

    fn neg(self) -> Self {
        Self {
            negative: !self.negative && !self.is_zero(),
            ..self
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_sign = self.signum().cmp(&other.signum());
        if self.negative {
            by_sign.then_with(|| other.cmp_magnitude(self))
        } else {
            by_sign.then_with(|| self.cmp_magnitude(other))
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
// Conversions

macro_rules! from_signed {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Number {
            fn from(value: $integer) -> Self {
                Self::from_u64(value < 0, value.unsigned_abs().into())
            }
        }
    )*};
}

macro_rules! from_unsigned {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Number {
            fn from(value: $integer) -> Self {
                Self::from_u64(false, value.into())
            }
        }
    )*};
}

from_signed!(i8, i16, i32, i64);
from_unsigned!(u8, u16, u32, u64);

impl TryFrom<u128> for Number {
    type Error = NumberError;

    fn try_from(value: u128) -> Result<Self, NumberError> {
        Self::new(false, value, 0)
    }
}

impl TryFrom<i128> for Number {
    type Error = NumberError;

    fn try_from(value: i128) -> Result<Self, NumberError> {
        Self::new(value < 0, value.unsigned_abs(), 0)
    }
}

/// Converts to the shortest decimal that parses back to the same float: `0.1` becomes `0.1`, not the 55 digits of the
/// float's exact value. NaN and the infinities are [`NumberError::Malformed`].
///
/// ```
/// use floe_store::Number;
///
/// assert_eq!(Number::try_from(0.1)?, "0.1".parse()?);
/// assert!(Number::try_from(f64::NAN).is_err());
/// # Ok::<(), floe_store::NumberError>(())
/// ```
impl TryFrom<f64> for Number {
    type Error = NumberError;

    fn try_from(value: f64) -> Result<Self, NumberError> {
        let mut text = Text::default();
        // A float in this form takes at most 24 bytes. NaN and infinities have no digits, so parsing rejects them.
        write!(text, "{value:e}").map_err(|_| NumberError::Malformed)?;
        text.as_str().parse()
    }
}

impl Number {
    /// Returns the number as an `i64` if it is an integer within range.
    pub fn to_i64(&self) -> Option<i64> {
        self.to_i128()?.try_into().ok()
    }

    /// Returns the number as a `u64` if it is an integer within range.
    pub fn to_u64(&self) -> Option<u64> {
        self.to_i128()?.try_into().ok()
    }

    /// Returns the number as an `i128` if it is an integer within range.
    pub fn to_i128(&self) -> Option<i128> {
        // A negative exponent means a fraction, because the coefficient has no trailing zero.
        let power = POWERS_OF_TEN.get(usize::try_from(self.exponent).ok()?)?;
        let magnitude = self.coefficient().checked_mul(*power)?;
        if self.negative {
            0_i128.checked_sub_unsigned(magnitude)
        } else {
            magnitude.try_into().ok()
        }
    }

    /// Returns the nearest float.
    pub fn to_f64(&self) -> f64 {
        // Neither step fails: the text is short, well-formed and within the range of floats.
        let mut text = Text::default();
        let sign = if self.negative { "-" } else { "" };
        let written = write!(text, "{sign}{}e{}", self.coefficient(), self.exponent);
        debug_assert!(written.is_ok(), "a coefficient and an exponent fit");
        text.as_str().parse().unwrap_or(f64::NAN)
    }
}
// Decimal helpers

/// 10^0 to 10^38: all powers of ten that fit into 128 bits.
const POWERS_OF_TEN: [u128; 39] = {
    let mut powers = [1; 39];
    let mut index = 1;
    while index < powers.len() {
        #[expect(clippy::indexing_slicing, reason = "checked at compile time")]
        {
            powers[index] = powers[index - 1] * 10;
        }
        index += 1;
    }
    powers
};

/// 10^`exponent`, or `u128::MAX` if that does not fit. Either way at least as large as any coefficient.
fn power_of_ten(exponent: usize) -> u128 {
    POWERS_OF_TEN.get(exponent).copied().unwrap_or(u128::MAX)
}

/// Returns the number of decimal digits, 0 for zero.
fn decimal_digits(value: u128) -> u32 {
    // 1233 / 4096 approximates log10(2) closely enough for 128 bits.
    let bits = u128::BITS - value.leading_zeros();
    let at_least = (bits * 1233) >> 12;
    at_least + u32::from(value >= power_of_ten(at_least as usize))
}

/// Strips the trailing decimal zeros of a nonzero integer, and counts them.
fn strip_zeros(mut value: u128) -> (u128, u32) {
    if let Ok(value) = u64::try_from(value) {
        let (value, zeros) = strip_zeros_u64(value);
        return (value.into(), zeros);
    }
    let mut zeros = 0;
    for step in [32, 16, 8, 4, 2, 1] {
        // A multiple of 10^n has at least n trailing zero bits, which most values do not.
        let power = power_of_ten(step as usize);
        if value.trailing_zeros() >= step && value.is_multiple_of(power) {
            value /= power;
            zeros += step;
        }
    }
    (value, zeros)
}

/// [`strip_zeros`] for 64 bits; zero has no trailing zeros.
fn strip_zeros_u64(mut value: u64) -> (u64, u32) {
    if value == 0 || !value.is_multiple_of(10) {
        return (value, 0);
    }
    let mut zeros = 0;
    for (step, power) in [
        (16, 10_000_000_000_000_000),
        (8, 100_000_000),
        (4, 10_000),
        (2, 100),
        (1, 10),
    ] {
        if value.is_multiple_of(power) {
            value /= power;
            zeros += step;
        }
    }
    (value, zeros)
}
#[cfg(test)]
mod tests;
