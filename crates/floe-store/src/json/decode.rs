//! Reads valid items only, and reports the path of a fault.

use std::borrow::Cow;
use std::fmt;

use super::fault::ValidationLayer;
use super::read::{Expected, FaultLog, ReadError, read_item_with_faults};
use super::reader::{Malformed, Reader, Token};
use crate::error::ensure_none;
use crate::item::Item;

/// Why a text could not be decoded, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The text is not JSON.
    Malformed,
    /// The content is invalid.
    Invalid {
        /// What is wrong.
        reason: String,
        /// The path from the start of the text, as in `Item.lines.L[2].S`; empty for the start.
        path: String,
    },
}

impl DecodeError {
    /// An error at the reader's position.
    #[cold]
    pub(super) fn here(reason: impl Into<String>, reader: &Reader<'_>) -> Self {
        Self::at(reader.position(), reason, reader)
    }

    /// Converts an error of the reader, adding the path.
    #[cold]
    pub(super) fn from_read_error(error: ReadError, reader: &Reader<'_>) -> Self {
        match error {
            ReadError::Malformed => Self::Malformed,
            error => Self::here(error.to_string(), reader),
        }
    }

    #[cold]
    fn at(position: usize, reason: impl Into<String>, reader: &Reader<'_>) -> Self {
        let (reason, path) = (reason.into(), path(reader.text, position));
        Self::Invalid { reason, path }
    }
}

impl From<Malformed> for DecodeError {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => ReadError::Malformed.fmt(f),
            Self::Invalid { reason, path } if path.is_empty() => f.write_str(reason),
            Self::Invalid { reason, path } => write!(f, "{reason} at={path}"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// Reads an item or a key, and rejects any fault.
///
/// # Errors
///
/// Returns an error if the text is not an item, or one that DynamoDB rejects.
pub fn decode_item(reader: &mut Reader<'_>) -> Result<Item, DecodeError> {
    let mut faults = FaultLog::default();
    let read = read_item_with_faults(reader, &mut faults);
    let item = read.map_err(|error| DecodeError::from_read_error(error, reader))?;
    ensure_none(faults.fault, |fault| {
        DecodeError::at(
            faults.position,
            fault.message(ValidationLayer::Current),
            reader,
        )
    })?;
    Ok(item)
}

/// Calls the function for each member of an object whose value is not `null`.
///
/// # Errors
///
/// Returns an error if the text is not an object, or any error of the function.
pub fn read_members<'a>(
    reader: &mut Reader<'a>,
    mut read: impl FnMut(&str, &mut Reader<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    if reader.peek()? != Token::Object {
        let error = ReadError::mismatch(Expected::Object, reader);
        return Err(DecodeError::from_read_error(error, reader));
    }
    reader.begin_object()?;
    while let Some(name) = reader.next_name()? {
        match reader.peek()? {
            Token::Null => reader.null()?,
            _ => read(&name, reader)?,
        }
    }
    Ok(())
}

/// A container on the path to a position.
enum Step<'a> {
    /// An object, and the name of the current member.
    Member(Cow<'a, str>),
    /// An array, and the index of the current element.
    Element(Option<usize>),
}

/// Returns the path to a position from the start of the text.
#[cold]
fn path(text: &str, position: usize) -> String {
    let mut steps = Vec::new();
    // Everything before the position has been read, so it is well-formed.
    let walked = walk(&mut Reader::new(text), position, &mut steps);
    debug_assert!(walked.is_ok(), "at={position} text={text}");
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Element(Some(index)) => path += &format!("[{index}]"),
            Step::Member(name) if path.is_empty() => path += &name,
            Step::Member(name) if !name.is_empty() => path += &format!(".{name}"),
            Step::Member(_) | Step::Element(None) => {}
        }
    }
    path
}

fn walk<'a>(
    reader: &mut Reader<'a>,
    position: usize,
    steps: &mut Vec<Step<'a>>,
) -> Result<(), Malformed> {
    loop {
        let token = reader.peek()?;
        if reader.position() >= position {
            return Ok(());
        }
        match token {
            Token::Object => {
                reader.begin_object()?;
                steps.push(Step::Member(Cow::Borrowed("")));
            }
            Token::Array => {
                reader.begin_array()?;
                steps.push(Step::Element(None));
            }
            _ => reader.skip()?,
        }
        loop {
            if reader.position() >= position {
                return Ok(());
            }
            let has_more = match steps.last_mut() {
                None => return Ok(()),
                Some(Step::Member(current)) => {
                    let next = reader.next_name()?;
                    next.map(|name| *current = name).is_some()
                }
                Some(Step::Element(current)) => {
                    let next = current.map_or(0, |index| index + 1);
                    *current = reader.next_element()?.then_some(next);
                    current.is_some()
                }
            };
            if has_more {
                break;
            }
            steps.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_errors_report_the_path() {
        let item = |attributes: &str| format!(r#" {{"Item" : {attributes} }}"#);
        for (attributes, expected) in [
            (
                "7",
                "expected an object of attributes, found a number at=Item",
            ),
            (
                "[]",
                "expected an object of attributes, found a list at=Item",
            ),
            (
                r#"{"a":"b"}"#,
                "expected an object of a type and a value, found a string at=Item.a",
            ),
            (
                r#"{"z":{"S":"x"}, "a": {}}"#,
                "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes at=Item.a",
            ),
            (
                r#"{"a":{"S":"x","N":"1"}}"#,
                "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported \
                 datatypes at=Item.a",
            ),
            (
                r#"{"a":{"S":1}}"#,
                "expected a string, found a number at=Item.a.S",
            ),
            (
                r#"{"a":{"N":"x"}}"#,
                "The parameter cannot be converted to a numeric value: x at=Item.a.N",
            ),
            (r#"{"a":{"B":"?"}}"#, "the text is not base64 at=Item.a.B"),
            (
                r#"{"a":{"NULL":"maybe"}}"#,
                "the text is neither true nor false at=Item.a.NULL",
            ),
            (
                r#"{"a":{"BOOL":[]}}"#,
                "expected true or false, found a list at=Item.a.BOOL",
            ),
            (
                r#"{"a":{"NULL":false}}"#,
                "One or more parameter values were invalid: Null attribute value types must have the value of true \
                 at=Item.a.NULL",
            ),
            (
                r#"{"b":{"L":[]},"a":{"M":{"b":{"L":[ {"S":""} , {"SS":["x", 2]}]}}}}"#,
                "expected a string, found a number at=Item.a.M.b.L[1].SS[1]",
            ),
            (
                r#"{"a":{"SS": [] }}"#,
                "One or more parameter values were invalid: An string set  may not be empty at=Item.a.SS",
            ),
            (r#"{"a":{"S""#, "the text is not JSON"),
        ] {
            let text = item(attributes);
            let mut reader = Reader::new(&text);
            reader.begin_object().unwrap();
            reader.next_name().unwrap();
            let error = decode_item(&mut reader).unwrap_err();
            assert_eq!(error.to_string(), expected, "{text}");
        }
        let alone = decode_item(&mut Reader::new("null")).unwrap_err();
        assert_eq!(
            alone.to_string(),
            "expected an object of attributes, found null"
        );
    }
}
