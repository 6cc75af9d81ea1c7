//! Faults of values that can be parsed, with DynamoDB's messages.

use std::collections::BTreeSet;

use super::writer::Writer;
use crate::number::NumberError;

/// DynamoDB validates values in two layers, which word some faults differently: a newer one, and an older one that
/// still serves some operations and requests with content that the newer one cannot read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationLayer {
    /// Single items, BatchGetItem, Query and Scan.
    Current,
    /// BatchWriteItem and transactions; also requests with a flag written as text, a value of two types, or very deep
    /// nesting.
    Older,
}

/// A fault of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueFault {
    /// The value has no type.
    Empty,
    /// The value has several types.
    MultipleTypes,
    /// The value has the type `NULL`, but false as its content.
    NullFalse(FlagForm),
    /// The value is not a valid number. Contains its text.
    Number(NumberError, String),
    /// An attribute or a member of a map has an empty name.
    EmptyName(NameKind),
    /// The value is a set without elements.
    EmptySet(SetKind),
    /// The value is a set with a `null` element.
    NullElement(SetKind),
    /// The value is a set with duplicate elements. Contains the elements as printed.
    Duplicates(SetKind, Duplicates),
    /// The value is nested too deep.
    TooDeep(DepthFault),
}

/// What a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    /// An attribute of an item.
    Attribute,
    /// A member of a map value.
    Member,
}

/// How a boolean was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagForm {
    /// As `true` or `false`.
    Plain,
    /// As text with that meaning.
    Text,
}

/// The type of the elements of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetKind {
    /// Text.
    S,
    /// Numbers.
    N,
    /// Bytes.
    B,
}

/// At which stage DynamoDB detects excessive nesting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DepthFault {
    /// In the validation layers.
    InValidation,
    /// Already while parsing the request, before the validation layers.
    InParser,
}

impl DepthFault {
    /// Maximum nesting of maps and lists that reaches the validation layers.
    const VALIDATED_LEVELS_MAX: usize = 62;

    /// The stage for a value inside this many maps and lists.
    pub(super) const fn of(levels: usize) -> Self {
        if levels > Self::VALIDATED_LEVELS_MAX {
            Self::InParser
        } else {
            Self::InValidation
        }
    }
}

/// The elements of a set with duplicates.
#[derive(Clone, Debug, PartialEq)]
pub struct Duplicates {
    /// As they were sent.
    sent: Vec<String>,
    /// As the newer layer prints them: the elements before the first repetition in sorted order, the repeated element,
    /// and the rest in the order of the request.
    sorted: Vec<String>,
}

const INVALID: &str = "One or more parameter values were invalid: ";
const MUST_CONTAIN: &str = ", must contain exactly one of the supported datatypes";
const NESTING: &str = "Nesting Levels have exceeded supported limits: Attributes in the item have nested \
                       levels beyond supported limit";

impl ValueFault {
    /// The fault of a set with duplicate elements.
    pub(super) fn duplicates<T: Ord>(
        kind: SetKind,
        elements: &[T],
        show: impl Fn(&T) -> String,
    ) -> Self {
        let mut seen = BTreeSet::new();
        let first_repeat = elements.iter().position(|element| !seen.insert(element));
        let rest = elements.iter().skip(first_repeat.unwrap_or(elements.len()));
        let first = seen.iter().copied().take(first_repeat.unwrap_or(0));
        let sorted = first.chain(rest).map(&show).collect();
        let sent = elements.iter().map(&show).collect();
        Self::Duplicates(kind, Duplicates { sent, sorted })
    }

    /// The order in which DynamoDB reports faults: first those found while parsing values; then names of attributes,
    /// nesting, names inside values, and sets.
    pub(super) const fn rank(&self) -> u8 {
        match self {
            Self::Empty | Self::MultipleTypes | Self::NullFalse(_) | Self::Number(..) => 0,
            Self::EmptyName(NameKind::Attribute) => 1,
            Self::TooDeep(_) => 2,
            Self::EmptyName(NameKind::Member) => 3,
            Self::EmptySet(_) | Self::NullElement(_) | Self::Duplicates(..) => 4,
        }
    }

    /// Whether the fault is an empty name.
    pub const fn is_empty_name(&self) -> bool {
        matches!(self, Self::EmptyName(_))
    }

    /// The order in which DynamoDB reports the faults of one value with several types.
    pub(super) const fn rank_within(&self) -> u8 {
        match self {
            Self::EmptySet(_) => 0,
            Self::Number(..) => 1,
            Self::NullFalse(_) => 2,
            _ => 3,
        }
    }

    /// Returns the fault that DynamoDB reports, out of the faults of several values.
    pub fn first<'f>(faults: impl Iterator<Item = &'f Self>) -> Option<&'f Self> {
        faults.min_by_key(|fault| fault.rank())
    }

    /// Returns DynamoDB's message.
    pub fn message(&self, layer: ValidationLayer) -> String {
        let invalid = match self {
            Self::Empty => return format!("Supplied AttributeValue is empty{MUST_CONTAIN}"),
            Self::MultipleTypes => {
                return format!(
                    "Supplied AttributeValue has more than one datatypes set{MUST_CONTAIN}"
                );
            }
            Self::NullFalse(_) => "Null attribute value types must have the value of true",
            Self::EmptyName(_) => return "Empty attribute name".to_owned(),
            Self::EmptySet(SetKind::S) => "An string set  may not be empty",
            Self::EmptySet(SetKind::N) => "An number set  may not be empty",
            Self::EmptySet(SetKind::B) => "Binary sets should not be empty",
            Self::NullElement(SetKind::S) => "An string set may not have a null string as a member",
            Self::NullElement(SetKind::N) => "An number set may not have a null number as a member",
            Self::NullElement(SetKind::B) => "Binary sets may not contain null or empty values",
            Self::Duplicates(kind, duplicates) => return duplicates.message(*kind, layer),
            Self::Number(error, text) => return number_message(*error, text, layer),
            Self::TooDeep(_) => return NESTING.to_owned(),
        };
        format!("{INVALID}{invalid}")
    }
}

/// The message for a text that is not a valid number.
fn number_message(error: NumberError, text: &str, layer: ValidationLayer) -> String {
    match layer {
        ValidationLayer::Current if text.is_empty() => format!("{error}: "),
        ValidationLayer::Current => error.message(text),
        ValidationLayer::Older => older_number_error(error, text).message(text),
    }
}

/// The older layer parses numbers like Java's `BigDecimal`, whose exponents have 32 bits.
fn older_number_error(error: NumberError, text: &str) -> NumberError {
    let Some((coefficient, exponent)) = text.split_once(['e', 'E']) else {
        return error;
    };
    if error == NumberError::Malformed {
        return error;
    }
    let Ok(exponent) = exponent.parse::<i32>() else {
        return NumberError::Malformed;
    };
    let fraction = coefficient.split_once('.').map_or("", |(_, digits)| digits);
    let length = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let scale = length(fraction.len()).saturating_sub(exponent.into());
    let digits = coefficient.bytes().filter(u8::is_ascii_digit);
    let significant = digits.skip_while(|digit| *digit == b'0').count().max(1);
    if i32::try_from(scale).is_err() {
        NumberError::Malformed
    } else if length(significant).saturating_sub(scale) >= i64::from(i32::MAX) {
        // The sum overflows.
        NumberError::Underflow
    } else {
        error
    }
}

impl Duplicates {
    fn message(&self, kind: SetKind, layer: ValidationLayer) -> String {
        let shown = |between: &str| match layer {
            ValidationLayer::Older => self.sent.join(", "),
            ValidationLayer::Current => {
                let quoted: Vec<String> = self.sorted.iter().map(|text| quote(text)).collect();
                quoted.join(between)
            }
        };
        let what = match (kind, layer) {
            (SetKind::S, _) => format!(" [{}] contains duplicates.", shown(", ")),
            (SetKind::B, _) => format!(" [{}]of type BS contains duplicates.", shown(",")),
            (SetKind::N, ValidationLayer::Current) => " contains duplicates.".to_owned(),
            (SetKind::N, ValidationLayer::Older) => {
                return "Input collection contains duplicates".to_owned();
            }
        };
        format!("{INVALID}Input collection{what}")
    }
}

/// Quotes a text as JSON.
fn quote(text: &str) -> String {
    let mut writer = Writer::default();
    writer.string(text);
    writer.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duplicates_are_printed_in_the_order_of_each_layer() {
        let check = |elements: &[&str], current: &str, older: &str| {
            let show = |text: &&str| (*text).to_owned();
            let fault = ValueFault::duplicates(SetKind::S, elements, show);
            let message =
                |shown: &str| format!("{INVALID}Input collection {shown} contains duplicates.");
            assert_eq!(fault.message(ValidationLayer::Current), message(current));
            assert_eq!(fault.message(ValidationLayer::Older), message(older));
        };
        check(
            &["b", "a", "b", "C"],
            r#"["a", "b", "b", "C"]"#,
            "[b, a, b, C]",
        );
        check(
            &["c", "a", "c", "a", "b"],
            r#"["a", "c", "c", "a", "b"]"#,
            "[c, a, c, a, b]",
        );
        check(&["q\"q", "q\"q"], r#"["q\"q", "q\"q"]"#, "[q\"q, q\"q]");
        let bytes = ValueFault::duplicates(SetKind::B, &["AA==", "/w==", "AA=="], |text| {
            (*text).to_owned()
        });
        assert_eq!(
            bytes.message(ValidationLayer::Current),
            format!(
                r#"{INVALID}Input collection ["/w==","AA==","AA=="]of type BS contains duplicates."#
            )
        );
    }

    #[test]
    fn validation_layers_parse_numbers_differently() {
        use NumberError::*;
        for (text, current, older) in [
            (
                "",
                "The parameter cannot be converted to a numeric value: ".to_owned(),
                Malformed.to_string(),
            ),
            ("abc", Malformed.message("abc"), Malformed.message("abc")),
            ("1e126", Overflow.to_string(), Overflow.to_string()),
            ("1e2147483647", Overflow.to_string(), Underflow.to_string()),
            (
                "1e2147483648",
                Overflow.to_string(),
                Malformed.message("1e2147483648"),
            ),
            ("1e-131", Underflow.to_string(), Underflow.to_string()),
        ] {
            let error = text.parse::<crate::Number>().unwrap_err();
            assert_eq!(
                number_message(error, text, ValidationLayer::Current),
                current
            );
            assert_eq!(number_message(error, text, ValidationLayer::Older), older);
        }
    }
}
