//! What can be wrong with a value that can be read, in DynamoDB's words.

use std::collections::BTreeSet;

use super::writer::Writer;
use crate::number::NumberError;

/// DynamoDB validates values in two layers of code, which word some faults differently: a newer one, and an older
/// one that still serves some operations, and requests that hold what the newer one does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Single items, BatchGetItem, Query and Scan.
    Current,
    /// BatchWriteItem and the transactions; any request with a flag written as text, a value of two types or one that
    /// is nested very deep.
    Older,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueFault {
    /// It has no type.
    Empty,
    /// It has several types.
    Several,
    /// It is `NULL` and says that it is not.
    NullFalse(FlagForm),
    /// It is a number that cannot be, as it was written.
    Number(NumberError, String),
    /// An attribute has no name, or what is in a map.
    EmptyName(Named),
    /// It is a set without elements.
    EmptySet(SetKind),
    /// It is a set with an element that is `null`.
    NullElement(SetKind),
    /// It is a set with the same element twice; the elements as they are shown.
    Duplicates(SetKind, Duplicates),
    /// It is nested too deep, by how much.
    TooDeep(Nesting),
}

/// What has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// An attribute of an item.
    Attribute,
    /// What is in a map that is a value.
    Member,
}

/// How a flag was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagForm {
    /// As `true` or `false`.
    Plain,
    /// As text that is taken for it.
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

/// How deep a value is nested that is nested too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// So deep that the layers of validation still read it.
    Read,
    /// So deep that what reads the request finds it, before the layers do.
    Unread,
}

impl Nesting {
    /// The most maps and lists inside one another that the layers of validation read.
    const LEVELS_READ_MAX: usize = 62;

    /// That of a value inside so many maps and lists.
    pub(super) const fn of(levels: usize) -> Self {
        if levels > Self::LEVELS_READ_MAX {
            Self::Unread
        } else {
            Self::Read
        }
    }
}

/// The elements of a set that repeats one.
#[derive(Clone, Debug, PartialEq)]
pub struct Duplicates {
    /// As they were sent.
    sent: Vec<String>,
    /// As the newer layer has them when it finds the first repeat: those before it in their order, the repeated one,
    /// and the rest as they were sent.
    read: Vec<String>,
}

const INVALID: &str = "One or more parameter values were invalid: ";
const MUST_CONTAIN: &str = ", must contain exactly one of the supported datatypes";
const NESTING: &str = "Nesting Levels have exceeded supported limits: Attributes in the item have nested \
                       levels beyond supported limit";

impl ValueFault {
    /// The fault of a set that repeats an element.
    pub(super) fn duplicates<T: Ord>(
        kind: SetKind,
        elements: &[T],
        show: impl Fn(&T) -> String,
    ) -> Self {
        let mut seen = BTreeSet::new();
        let first_repeat = elements.iter().position(|element| !seen.insert(element));
        let rest = elements.iter().skip(first_repeat.unwrap_or(elements.len()));
        let first = seen.iter().copied().take(first_repeat.unwrap_or(0));
        let read = first.chain(rest).map(&show).collect();
        let sent = elements.iter().map(&show).collect();
        Self::Duplicates(kind, Duplicates { sent, read })
    }

    /// What is found while values are read comes before what is found in values that have been read, and there
    /// the names of attributes come first, then what is nested too deep, and names inside of values.
    pub(super) const fn rank(&self) -> u8 {
        match self {
            Self::Empty | Self::Several | Self::NullFalse(_) | Self::Number(..) => 0,
            Self::EmptyName(Named::Attribute) => 1,
            Self::TooDeep(_) => 2,
            Self::EmptyName(Named::Member) => 3,
            Self::EmptySet(_) | Self::NullElement(_) | Self::Duplicates(..) => 4,
        }
    }

    /// Whether something has no name.
    pub const fn is_nameless(&self) -> bool {
        matches!(self, Self::EmptyName(_))
    }

    /// Which of several faults of one value that has several types is told.
    pub(super) const fn rank_within(&self) -> u8 {
        match self {
            Self::EmptySet(_) => 0,
            Self::Number(..) => 1,
            Self::NullFalse(_) => 2,
            _ => 3,
        }
    }

    /// Of the faults of several values the one that is reported.
    pub fn first<'f>(faults: impl Iterator<Item = &'f Self>) -> Option<&'f Self> {
        faults.min_by_key(|fault| fault.rank())
    }

    /// DynamoDB's words for it.
    pub fn message(&self, layer: Layer) -> String {
        let invalid = match self {
            Self::Empty => return format!("Supplied AttributeValue is empty{MUST_CONTAIN}"),
            Self::Several => {
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

/// The words for text that is not a number.
fn number_message(error: NumberError, text: &str, layer: Layer) -> String {
    match layer {
        Layer::Current if text.is_empty() => format!("{error}: "),
        Layer::Current => error.message(text),
        Layer::Older => older_number_error(error, text).message(text),
    }
}

/// The older layer reads numbers as Java's `BigDecimal` does, whose exponents have 32 bits.
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
        // The sum wraps around.
        NumberError::Underflow
    } else {
        error
    }
}

impl Duplicates {
    fn message(&self, kind: SetKind, layer: Layer) -> String {
        let shown = |between: &str| match layer {
            Layer::Older => self.sent.join(", "),
            Layer::Current => {
                let quoted: Vec<String> = self.read.iter().map(|text| quote(text)).collect();
                quoted.join(between)
            }
        };
        let what = match (kind, layer) {
            (SetKind::S, _) => format!(" [{}] contains duplicates.", shown(", ")),
            (SetKind::B, _) => format!(" [{}]of type BS contains duplicates.", shown(",")),
            (SetKind::N, Layer::Current) => " contains duplicates.".to_owned(),
            (SetKind::N, Layer::Older) => return "Input collection contains duplicates".to_owned(),
        };
        format!("{INVALID}Input collection{what}")
    }
}

/// Text in quotes, as JSON.
fn quote(text: &str) -> String {
    let mut writer = Writer::default();
    writer.string(text);
    writer.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_shown_as_each_layer_has_them() {
        let check = |elements: &[&str], current: &str, older: &str| {
            let show = |text: &&str| (*text).to_owned();
            let fault = ValueFault::duplicates(SetKind::S, elements, show);
            let message =
                |shown: &str| format!("{INVALID}Input collection {shown} contains duplicates.");
            assert_eq!(fault.message(Layer::Current), message(current));
            assert_eq!(fault.message(Layer::Older), message(older));
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
            bytes.message(Layer::Current),
            format!(
                r#"{INVALID}Input collection ["/w==","AA==","AA=="]of type BS contains duplicates."#
            )
        );
    }

    #[test]
    fn the_layers_read_numbers_differently() {
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
            assert_eq!(number_message(error, text, Layer::Current), current);
            assert_eq!(number_message(error, text, Layer::Older), older);
        }
    }
}
