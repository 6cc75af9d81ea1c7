//! Reads values and items straight from a text, as DynamoDB reads them.
//!
//! What is wrong with a value but can be read (an empty set, a number out of range) does not stop the reading: DynamoDB
//! reports it later, after the names and the numbers of the request. It is noted as a [`ValueFault`].

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::fault::{FlagForm, Named, Nesting, SetKind, ValueFault};
use super::reader::{Malformed, Reader, Token};
use crate::item::Item;
use crate::limits::NESTING_LEVELS_MAX;
use crate::number::Number;
use crate::text::{Name, Text};
use crate::value::{Set, Value};

/// Why a text cannot be read as what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is not JSON.
    Malformed,
    /// Something stands in the place of something else.
    Mismatch {
        /// What should stand there.
        expected: Expected,
        /// What stands there.
        found: Found,
    },
    /// The text in the place of a flag is none of the words that are taken for one.
    FlagWord,
    /// The text in the place of bytes is not base64.
    Base64 {
        /// The length of the text.
        chars: usize,
    },
}

/// What a text should have at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// An object of attributes: an item, a key, the value of a map.
    Attributes,
    /// A value, as an object of a type and what it holds, where the caller reads one.
    Value,
    /// A value in an item, a map or a list.
    Element,
    /// Text.
    Text,
    /// True or false.
    Flag,
    /// A list.
    List,
    /// Bytes, as text in base64.
    Bytes,
    /// An object of any members.
    Object,
}

/// What a text has at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// An object.
    Object,
    /// An array.
    Array,
    /// Text.
    Text,
    /// A number, and whether it is written with a point or an exponent.
    Number {
        /// Whether it is.
        is_decimal: bool,
    },
    /// True or false.
    Bool(bool),
    /// `null`
    Null,
}

type Result<T> = std::result::Result<T, Unreadable>;

impl Unreadable {
    /// The error of what stands next in the place of something else. Only where a scalar is expected does DynamoDB look at
    /// the scalar that it finds.
    #[cold]
    pub(super) fn instead_of(expected: Expected, reader: &mut Reader<'_>) -> Self {
        let found = match expected {
            Expected::Text | Expected::Flag => Found::next(reader),
            _ => reader.peek().map(Found::of),
        };
        match found {
            Ok(found) => Self::Mismatch { expected, found },
            Err(Malformed) => Self::Malformed,
        }
    }
}

impl Found {
    /// What stands next. Goes past it if it is a number or a flag.
    ///
    /// # Errors
    ///
    /// When it is not JSON.
    pub fn next(reader: &mut Reader<'_>) -> std::result::Result<Self, Malformed> {
        Ok(match reader.peek()? {
            Token::Number => Self::Number {
                is_decimal: reader.number()?.contains(['.', 'e', 'E']),
            },
            Token::Bool => Self::Bool(reader.bool()?),
            token => Self::of(token),
        })
    }

    const fn of(token: Token) -> Self {
        match token {
            Token::Object => Self::Object,
            Token::Array => Self::Array,
            Token::String => Self::Text,
            Token::Number => Self::Number { is_decimal: false },
            Token::Bool => Self::Bool(false),
            Token::Null => Self::Null,
        }
    }
}

impl From<Malformed> for Unreadable {
    #[inline]
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("the text is not JSON"),
            Self::Mismatch { expected, found } => {
                let expected = match expected {
                    Expected::Attributes => "an object of attributes",
                    Expected::Value | Expected::Element => "an object of a type and a value",
                    Expected::Text => "a text",
                    Expected::Flag => "true or false",
                    Expected::List => "a list",
                    Expected::Bytes => "bytes as base64",
                    Expected::Object => "an object",
                };
                let found = match found {
                    Found::Object => "an object",
                    Found::Array => "a list",
                    Found::Text => "a text",
                    Found::Number { .. } => "a number",
                    Found::Bool(_) => "a boolean",
                    Found::Null => "null",
                };
                write!(f, "expected {expected}, found {found}")
            }
            Self::FlagWord => f.write_str("the text is neither true nor false"),
            Self::Base64 { .. } => f.write_str("the text is not base64"),
        }
    }
}

impl std::error::Error for Unreadable {}

/// What was read, and what is wrong with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent<T> {
    /// What was read, of no worth if there is a fault.
    pub value: T,
    /// What is wrong with it.
    pub fault: Option<ValueFault>,
}

/// The fault of what was read so far that is reported.
#[derive(Debug, Default)]
pub(super) struct Noted {
    pub(super) fault: Option<ValueFault>,
    /// Where the reader was when it was found.
    pub(super) at: usize,
}

impl Noted {
    /// Notes a fault, unless one was noted that comes first.
    #[cold]
    fn note(&mut self, fault: ValueFault, reader: &Reader<'_>) {
        let noted = self.fault.as_ref();
        if noted.is_none_or(|noted| fault.rank() < noted.rank()) {
            *self = Self {
                fault: Some(fault),
                at: reader.position(),
            };
        }
    }
}

/// A level of nesting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    /// From 1, for the values of an item.
    at: usize,
    /// The deepest one.
    max: usize,
}

impl Level {
    const fn first(max: usize) -> Self {
        Self { at: 1, max }
    }

    const fn deeper(self) -> Self {
        Self {
            at: self.at + 1,
            ..self
        }
    }
}

/// Reads attributes by name: an item or a key.
///
/// # Errors
///
/// When the text is not JSON or of another shape.
pub fn read_item(reader: &mut Reader<'_>) -> Result<Sent<Item>> {
    noting(|noted| noting_item(reader, noted))
}

/// Reads with a note of the first fault.
fn noting<T>(read: impl FnOnce(&mut Noted) -> Result<T>) -> Result<Sent<T>> {
    let mut noted = Noted::default();
    let value = read(&mut noted)?;
    let fault = noted.fault;
    Ok(Sent { value, fault })
}

/// As [`read_item`], and tells where the fault is.
pub(super) fn noting_item(reader: &mut Reader<'_>, noted: &mut Noted) -> Result<Item> {
    attributes(reader, Level::first(NESTING_LEVELS_MAX), noted)
}

/// Reads a value, which may have so many levels of maps and lists.
///
/// # Errors
///
/// When the text is not JSON or of another shape.
pub fn read_value(reader: &mut Reader<'_>, levels_max: usize) -> Result<Sent<Value>> {
    noting(|noted| value(reader, Expected::Value, Level::first(levels_max), noted))
}

/// Reads text.
///
/// # Errors
///
/// When something else stands there.
#[inline]
pub fn read_text<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>> {
    expect(reader, Token::String, Expected::Text)?;
    Ok(reader.string()?)
}

/// Reads a flag, for which some words are taken, too.
///
/// # Errors
///
/// When something else stands there.
pub fn read_flag(reader: &mut Reader<'_>) -> Result<bool> {
    match reader.peek()? {
        Token::Bool => Ok(reader.bool()?),
        Token::String => match reader.string()?.to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "1" => Ok(true),
            "false" | "f" | "no" | "n" | "0" => Ok(false),
            _ => Err(Unreadable::FlagWord),
        },
        _ => Err(Unreadable::instead_of(Expected::Flag, reader)),
    }
}

/// Refuses what is not this token, in the words for what was expected.
#[inline]
fn expect(reader: &mut Reader<'_>, token: Token, expected: Expected) -> Result<()> {
    if reader.peek()? == token {
        return Ok(());
    }
    Err(Unreadable::instead_of(expected, reader))
}

/// Reads attributes by name, which stand on this level of nesting.
fn attributes(reader: &mut Reader<'_>, level: Level, noted: &mut Noted) -> Result<Item> {
    expect(reader, Token::Object, Expected::Attributes)?;
    reader.begin_object()?;
    let mut attributes = Vec::new();
    while let Some(name) = reader.next_name()? {
        let value = element(reader, level, noted)?;
        if name.is_empty() {
            let named = match level.at {
                1 => Named::Attribute,
                _ => Named::Member,
            };
            noted.note(ValueFault::EmptyName(named), reader);
        }
        attributes.push((Name::from(&*name), value));
    }
    Ok(Item::from(attributes))
}

fn element(reader: &mut Reader<'_>, level: Level, noted: &mut Noted) -> Result<Value> {
    if reader.peek()? == Token::Null {
        reader.null()?;
        noted.note(ValueFault::Empty, reader);
        return Ok(Value::Null);
    }
    value(reader, Expected::Element, level, noted)
}

/// Reads a value on this level of nesting. Beyond the deepest level, values are passed over.
fn value(
    reader: &mut Reader<'_>,
    expected: Expected,
    level: Level,
    noted: &mut Noted,
) -> Result<Value> {
    if level.at > level.max {
        return skip_deep(reader, level, noted);
    }
    let start = reader.position();
    expect(reader, Token::Object, expected)?;
    reader.begin_object()?;
    let mut found: Option<Value> = None;
    let mut several = false;
    while let Some(name) = reader.next_name()? {
        let Some(read) = reader_of(&name) else {
            reader.skip()?;
            continue;
        };
        if reader.peek()? == Token::Null {
            reader.null()?;
            continue;
        }
        let value = read(reader, level, noted)?;
        several |= found.replace(value).is_some();
    }
    if several {
        reader.needs_older_layer = true;
        *noted = Noted {
            fault: Some(fault_of_several(reader.revisit(start), level)?),
            at: reader.position(),
        };
    }
    Ok(found.unwrap_or_else(|| {
        noted.note(ValueFault::Empty, reader);
        Value::Null
    }))
}

/// Passes over a value that is nested too deep.
#[cold]
fn skip_deep(reader: &mut Reader<'_>, level: Level, noted: &mut Noted) -> Result<Value> {
    // A level is two containers: the value, and the map or list in it.
    let levels = level.at - 1 + reader.skip_depth()? / 2;
    let nesting = Nesting::of(levels);
    reader.needs_older_layer |= nesting == Nesting::Unread;
    noted.note(ValueFault::TooDeep(nesting), reader);
    Ok(Value::Null)
}

/// The fault that is reported of a value with several types: something wrong with one of them, or that there are several.
#[cold]
fn fault_of_several(mut reader: Reader<'_>, level: Level) -> Result<ValueFault> {
    let mut reported = ValueFault::Several;
    reader.begin_object()?;
    while let Some(name) = reader.next_name()? {
        match reader_of(&name) {
            Some(read) if reader.peek()? != Token::Null => {
                let sent = noting(|noted| read(&mut reader, level, noted))?;
                let faults = std::iter::once(reported).chain(sent.fault);
                reported = faults
                    .min_by_key(ValueFault::rank_within)
                    .unwrap_or(ValueFault::Several);
            }
            _ => reader.skip()?,
        }
    }
    Ok(reported)
}

type ReadValue = fn(&mut Reader<'_>, Level, &mut Noted) -> Result<Value>;

/// How the value of a type of this name is read.
fn reader_of(type_name: &str) -> Option<ReadValue> {
    Some(match type_name {
        "S" => |reader, _, noted| Ok(Value::S(string(reader, noted)?)),
        "N" => |reader, _, noted| Ok(Value::N(number(reader, noted)?)),
        "B" => |reader, _, noted| Ok(Value::B(bytes(reader, noted)?)),
        "BOOL" => |reader, _, _| Ok(Value::Bool(flag(reader)?.0)),
        "NULL" => |reader, _, noted| null(reader, noted),
        "M" => |reader, level, noted| Ok(Value::M(attributes(reader, level.deeper(), noted)?)),
        "L" => list,
        "SS" => |reader, _, noted| {
            set(
                reader,
                noted,
                SetKind::S,
                string,
                Text::to_string,
                Value::Ss,
            )
        },
        "NS" => |reader, _, noted| {
            set(
                reader,
                noted,
                SetKind::N,
                number,
                Number::to_string,
                Value::Ns,
            )
        },
        "BS" => |reader, _, noted| {
            set(
                reader,
                noted,
                SetKind::B,
                bytes,
                |b| STANDARD.encode(b),
                Value::Bs,
            )
        },
        _ => return None,
    })
}

fn string(reader: &mut Reader<'_>, _: &mut Noted) -> Result<Text> {
    Ok(Text::from(&*read_text(reader)?))
}

/// A number as text; any number if it is none.
fn number(reader: &mut Reader<'_>, noted: &mut Noted) -> Result<Number> {
    let text = read_text(reader)?;
    Ok(text.parse().unwrap_or_else(|error| {
        noted.note(ValueFault::Number(error, text.into_owned()), reader);
        Number::from(0)
    }))
}

fn flag(reader: &mut Reader<'_>) -> Result<(bool, FlagForm)> {
    let form = match reader.peek()? {
        Token::String => FlagForm::Text,
        _ => FlagForm::Plain,
    };
    reader.needs_older_layer |= form == FlagForm::Text;
    Ok((read_flag(reader)?, form))
}

fn null(reader: &mut Reader<'_>, noted: &mut Noted) -> Result<Value> {
    if let (false, form) = flag(reader)? {
        noted.note(ValueFault::NullFalse(form), reader);
    }
    Ok(Value::Null)
}

fn begin_list(reader: &mut Reader<'_>) -> Result<()> {
    expect(reader, Token::Array, Expected::List)?;
    Ok(reader.begin_array()?)
}

fn list(reader: &mut Reader<'_>, level: Level, noted: &mut Noted) -> Result<Value> {
    begin_list(reader)?;
    let mut elements = Vec::new();
    while reader.next_element()? {
        elements.push(element(reader, level.deeper(), noted)?);
    }
    Ok(Value::L(elements))
}

/// A set; any value if its elements make none.
fn set<T: Ord + Clone>(
    reader: &mut Reader<'_>,
    noted: &mut Noted,
    kind: SetKind,
    read: fn(&mut Reader<'_>, &mut Noted) -> Result<T>,
    show: fn(&T) -> String,
    make: fn(Set<T>) -> Value,
) -> Result<Value> {
    begin_list(reader)?;
    let mut elements = Vec::new();
    while reader.next_element()? {
        if reader.peek()? == Token::Null {
            reader.null()?;
            noted.note(ValueFault::NullElement(kind), reader);
        } else {
            elements.push(read(reader, noted)?);
        }
    }
    if elements.is_empty() {
        noted.note(ValueFault::EmptySet(kind), reader);
        return Ok(Value::Null);
    }
    // The elements are wanted as they were sent only if they repeat, which is rare.
    Ok(match Set::new(elements.iter().cloned()) {
        Ok(set) => make(set),
        Err(_) => {
            noted.note(ValueFault::duplicates(kind, &elements, show), reader);
            Value::Null
        }
    })
}

/// Bytes in base 64.
fn bytes(reader: &mut Reader<'_>, _: &mut Noted) -> Result<Vec<u8>> {
    expect(reader, Token::String, Expected::Bytes)?;
    let text = reader.string()?;
    let bytes = STANDARD.decode(text.as_bytes());
    bytes.map_err(|_| Unreadable::Base64 { chars: text.len() })
}
