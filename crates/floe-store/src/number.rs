//! DynamoDB's number: an exact decimal of up to 38 significant digits.
//!
//! A [`Number`] is read from text as DynamoDB reads it, printed as DynamoDB prints it, compared,
//! added and subtracted without rounding, and weighed as DynamoDB weighs it. It has two encodings:
//! [`Number::encode_ordered`] for keys, whose bytes sort as the numbers do, and
//! [`Number::encode_compact`] for the bodies of items, which is the quickest to read back.
//!
//! It is not a general decimal type: DynamoDB only adds and subtracts. Values of all types are in
//! [`value`](crate::value).

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
// The value is `coefficient * 10^exponent`. The coefficient has no trailing decimal zero, and zero
// is all fields zero: each number has one representation, so the derived `Eq` and `Hash` are
// numeric. The coefficient is kept in halves because a `u128` would raise the alignment to 16 and
// the size to 32.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Number {
    high: u64,
    low: u64,
    exponent: i16,
    negative: bool,
}

const _: () = assert!(size_of::<Number>() == 24 && align_of::<Number>() == 8);

/// Why text or a result is not a [`Number`].
///
/// [`Display`](fmt::Display) gives DynamoDB's own words; [`NumberError::message`] gives them with
/// the offending text, as DynamoDB does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NumberError {
    /// The text is not a decimal number (`abc`, `1e`, ` 1`, `NaN`), or its exponent does not fit 64
    /// bits. Send a number.
    Malformed,
    /// The number has more than 38 significant digits. Round it, or keep it as a string.
    TooManyDigits,
    /// The magnitude is above 9.99…E+125; or, of a sum or difference, the exact result needs more
    /// than 38 digits, which DynamoDB reports with the same words.
    Overflow,
    /// The magnitude is below 1E-130 and not zero.
    Underflow,
}

impl NumberError {
    /// DynamoDB's message for `input`: a text that cannot be converted is named in it.
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
    /// The most significant digits that a number can have.
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

    /// How many significant digits the number has: 3 for `1.02` and for `10200`, 0 for zero.
    pub fn digits(&self) -> usize {
        decimal_digits(self.coefficient()) as usize
    }

    /// The bytes that DynamoDB counts for the number in the size of an item: 1 for zero, else one
    /// byte, one for each pair of digits and one for a minus sign, and never more than 21.
    ///
    /// Digits are paired around the decimal point: `1.5` takes two pairs (`01` and `50`), `15` one.
    pub fn size_bytes(&self) -> usize {
        if self.is_zero() {
            return 1;
        }
        // An even power stands in the right half of its pair, with a zero to its left.
        let padding = usize::from(self.magnitude() % 2 == 0);
        let pairs = (self.digits() + padding).div_ceil(2);
        (1 + pairs + usize::from(self.negative)).min(21)
    }

    /// The sum, exact.
    ///
    /// # Errors
    ///
    /// [`NumberError::Overflow`] when the sum is too large or has more than 38 digits: DynamoDB
    /// does not round, and answers `1E50 + 1` with its message for overflow.
    /// [`NumberError::Underflow`] when operands nearly cancel out and leave less than 1E-130.
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
        // The last digit of `fine` is not zero and stays the last one of the result if the
        // exponents differ. So a `coarse` that outgrows 128 bits (3.4E38) leaves, less at most
        // 1E38, a result of 39 digits or more: no wider arithmetic is ever needed.
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

    /// The difference, exact.
    ///
    /// # Errors
    ///
    /// Those of [`checked_add`](Self::checked_add).
    pub fn checked_sub(self, other: Self) -> Result<Self, NumberError> {
        self.checked_add(-other)
    }

    /// The number with its sign turned. The range is symmetric, so this cannot fail; it is here
    /// beside its siblings, and `-number` does the same.
    pub fn checked_neg(self) -> Result<Self, NumberError> {
        Ok(-self)
    }

    /// Normalises and checks the range.
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

    /// The number of a coefficient that has no trailing zero and, with its exponent, is in range.
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

    /// The number as a coefficient, which is below zero if the flag is set, and a power of ten to multiply it with.
    /// The coefficient ends in no zero unless it is one.
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

    /// The power of ten of the leading digit. Has no meaning for zero.
    fn magnitude(&self) -> i32 {
        i32::from(self.exponent) + decimal_digits(self.coefficient()) as i32 - 1
    }

    fn cmp_magnitude(&self, other: &Self) -> Ordering {
        if self.exponent == other.exponent {
            return self.coefficient().cmp(&other.coefficient());
        }
        let by_magnitude = self.magnitude().cmp(&other.magnitude());
        by_magnitude.then_with(|| {
            // Equal magnitudes: brought to one exponent, neither coefficient grows past 38 digits.
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

/// Takes the shortest decimal that reads back as the same float: `0.1` becomes `0.1`, not the 55
/// digits of the float's exact value. NaN and the infinities are [`NumberError::Malformed`].
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
        // A float in this form takes at most 24 bytes; it is NaN or infinite if it has no digits.
        write!(text, "{value:e}").map_err(|_| NumberError::Malformed)?;
        text.as_str().parse()
    }
}

impl Number {
    /// The number as an `i64`, if it is whole and in its range.
    pub fn to_i64(&self) -> Option<i64> {
        self.to_i128()?.try_into().ok()
    }

    /// The number as a `u64`, if it is whole and in its range.
    pub fn to_u64(&self) -> Option<u64> {
        self.to_i128()?.try_into().ok()
    }

    /// The number as an `i128`, if it is whole and in its range.
    pub fn to_i128(&self) -> Option<i128> {
        // A negative exponent means a fraction, as the coefficient has no trailing zero.
        let power = POWERS_OF_TEN.get(usize::try_from(self.exponent).ok()?)?;
        let magnitude = self.coefficient().checked_mul(*power)?;
        if self.negative {
            0_i128.checked_sub_unsigned(magnitude)
        } else {
            magnitude.try_into().ok()
        }
    }

    /// The float nearest to the number.
    pub fn to_f64(&self) -> f64 {
        // Neither step fails: the text is short, well formed and within the range of floats.
        let mut text = Text::default();
        let sign = if self.negative { "-" } else { "" };
        let written = write!(text, "{sign}{}e{}", self.coefficient(), self.exponent);
        debug_assert!(written.is_ok(), "a coefficient and an exponent fit");
        text.as_str().parse().unwrap_or(f64::NAN)
    }
}
// Decimal helpers

/// 10^0 to 10^38, all the powers of ten of 128 bits.
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

/// 10^`exponent`, or the largest integer if that is larger: above every coefficient in any case.
fn power_of_ten(exponent: usize) -> u128 {
    POWERS_OF_TEN.get(exponent).copied().unwrap_or(u128::MAX)
}

/// How many decimal digits the integer has, 0 for zero.
fn decimal_digits(value: u128) -> u32 {
    // 1233 / 4096 is log10(2) to within what 128 bits can show.
    let bits = u128::BITS - value.leading_zeros();
    let at_least = (bits * 1233) >> 12;
    at_least + u32::from(value >= power_of_ten(at_least as usize))
}

/// The integer, not zero, without its trailing decimal zeros, and how many there were.
fn strip_zeros(mut value: u128) -> (u128, u32) {
    if let Ok(value) = u64::try_from(value) {
        let (value, zeros) = strip_zeros_u64(value);
        return (value.into(), zeros);
    }
    let mut zeros = 0;
    for step in [32, 16, 8, 4, 2, 1] {
        // A multiple of 10^n ends in n binary zeros, which most values do not.
        let power = power_of_ten(step as usize);
        if value.trailing_zeros() >= step && value.is_multiple_of(power) {
            value /= power;
            zeros += step;
        }
    }
    (value, zeros)
}

/// [`strip_zeros`] in 64 bits; zero has none.
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
