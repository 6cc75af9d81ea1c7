//! Reads items of which nothing may be wrong, and says where what is wrong stands.

use std::borrow::Cow;
use std::fmt;

use super::fault::Layer;
use super::read::{Expected, Noted, Unreadable, noting_item};
use super::reader::{Malformed, Reader, Token};
use crate::error::ensure_none;
use crate::item::Item;

/// Why a text is not what it should be, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsound {
    /// It is not JSON.
    Malformed,
    /// Something in it is wrong.
    Wrong {
        /// What is wrong.
        what: String,
        /// The way to it from the beginning of the text, as in `Item.lines.L[2].S`; empty at the beginning itself.
        path: String,
    },
}

impl Unsound {
    /// Something is wrong where the reader is.
    #[cold]
    pub(super) fn here(what: impl Into<String>, reader: &Reader<'_>) -> Self {
        Self::at(reader.position(), what, reader)
    }

    /// What the reader has found instead of what it should read.
    #[cold]
    pub(super) fn unreadable(found: Unreadable, reader: &Reader<'_>) -> Self {
        match found {
            Unreadable::Malformed => Self::Malformed,
            wrong => Self::here(wrong.to_string(), reader),
        }
    }

    #[cold]
    fn at(position: usize, what: impl Into<String>, reader: &Reader<'_>) -> Self {
        let (what, path) = (what.into(), path(reader.text, position));
        Self::Wrong { what, path }
    }
}

impl From<Malformed> for Unsound {
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => Unreadable::Malformed.fmt(f),
            Self::Wrong { what, path } if path.is_empty() => f.write_str(what),
            Self::Wrong { what, path } => write!(f, "{what} at={path}"),
        }
    }
}

impl std::error::Error for Unsound {}

/// Reads an item or a key of which nothing may be wrong.
///
/// # Errors
///
/// When the text is no item, or none that DynamoDB would take.
pub fn sound_item(reader: &mut Reader<'_>) -> Result<Item, Unsound> {
    let mut noted = Noted::default();
    let read = noting_item(reader, &mut noted);
    let item = read.map_err(|found| Unsound::unreadable(found, reader))?;
    ensure_none(noted.fault, |fault| {
        Unsound::at(noted.at, fault.message(Layer::Current), reader)
    })?;
    Ok(item)
}

/// Reads the members of an object, each with the function, but for those that are `null`.
///
/// # Errors
///
/// When the text is no object, or what the function returns.
pub fn read_members<'a>(
    reader: &mut Reader<'a>,
    mut read: impl FnMut(&str, &mut Reader<'a>) -> Result<(), Unsound>,
) -> Result<(), Unsound> {
    if reader.peek()? != Token::Object {
        let found = Unreadable::instead_of(Expected::Object, reader);
        return Err(Unsound::unreadable(found, reader));
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

/// A container that the way to a place leads into.
enum Step<'a> {
    /// An object, and the name of the member that the reader is at.
    Member(Cow<'a, str>),
    /// An array, and the element that the reader is at.
    Element(Option<usize>),
}

/// The way to a position from the beginning of a text.
#[cold]
fn path(text: &str, position: usize) -> String {
    let mut steps = Vec::new();
    // What comes before the position has been read, so it is well-formed.
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
    fn an_unsound_item_is_reported_with_its_place() {
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
                "expected an object of a type and a value, found a text at=Item.a",
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
                "expected a text, found a number at=Item.a.S",
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
                "expected a text, found a number at=Item.a.M.b.L[1].SS[1]",
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
            let unsound = sound_item(&mut reader).unwrap_err();
            assert_eq!(unsound.to_string(), expected, "{text}");
        }
        let alone = sound_item(&mut Reader::new("null")).unwrap_err();
        assert_eq!(
            alone.to_string(),
            "expected an object of attributes, found null"
        );
    }
}
