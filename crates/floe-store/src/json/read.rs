//! Reads values and items directly from a text, as DynamoDB does.
//!
//! A value that parses but is invalid (an empty set, a number out of range) does not stop the reading: DynamoDB reports
//! it later, after checking the names and numbers of the request. It is recorded as a [`ValueFault`].

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::fault::{DepthFault, FlagForm, NameKind, SetKind, ValueFault};
use super::reader::{Malformed, Reader, Token};
use crate::item::Item;
use crate::limits::NESTING_LEVELS_MAX;
use crate::number::Number;
use crate::text::{Name, Text};
use crate::value::{Set, Value};

/// Why a text cannot be read as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The text is not JSON.
    Malformed,
    /// The text has something else than expected.
    Mismatch {
        /// What was expected.
        expected: Expected,
        /// What was found.
        found: Found,
    },
    /// The text in place of a boolean is not one of the accepted words.
    InvalidFlag,
    /// The text in place of bytes is not base64.
    Base64 {
        /// The length of the text.
        chars: usize,
    },
}

/// What was expected at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// An object of attributes: an item, a key, the value of a map.
    Attributes,
    /// A value passed by the caller: an object of a type and its content.
    Value,
    /// A value inside an item, a map or a list.
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

/// What was found at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// An object.
    Object,
    /// An array.
    Array,
    /// Text.
    Text,
    /// A number.
    Number {
        /// Whether it is written with a point or an exponent.
        is_decimal: bool,
    },
    /// True or false.
    Bool(bool),
    /// `null`
    Null,
}

type Result<T> = std::result::Result<T, ReadError>;

impl ReadError {
    /// The error for unexpected content. DynamoDB only distinguishes scalars where a scalar is expected.
    #[cold]
    pub(super) fn mismatch(expected: Expected, reader: &mut Reader<'_>) -> Self {
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
    /// Reads what comes next. Consumes it if it is a number or a boolean.
    ///
    /// # Errors
    ///
    /// Returns an error if it is not JSON.
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

impl From<Malformed> for ReadError {
    #[inline]
    fn from(_: Malformed) -> Self {
        Self::Malformed
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("the text is not JSON"),
            Self::Mismatch { expected, found } => {
                let expected = match expected {
                    Expected::Attributes => "an object of attributes",
                    Expected::Value | Expected::Element => "an object of a type and a value",
                    Expected::Text => "a string",
                    Expected::Flag => "true or false",
                    Expected::List => "a list",
                    Expected::Bytes => "bytes as base64",
                    Expected::Object => "an object",
                };
                let found = match found {
                    Found::Object => "an object",
                    Found::Array => "a list",
                    Found::Text => "a string",
                    Found::Number { .. } => "a number",
                    Found::Bool(_) => "a boolean",
                    Found::Null => "null",
                };
                write!(f, "expected {expected}, found {found}")
            }
            Self::InvalidFlag => f.write_str("the text is neither true nor false"),
            Self::Base64 { .. } => f.write_str("the text is not base64"),
        }
    }
}

impl std::error::Error for ReadError {}

/// What was read, and its fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed<T> {
    /// What was read; meaningless if there is a fault.
    pub value: T,
    /// The fault that DynamoDB reports, if any.
    pub fault: Option<ValueFault>,
}

/// Keeps the fault that DynamoDB reports first, of all faults found so far.
#[derive(Debug, Default)]
pub(super) struct FaultLog {
    pub(super) fault: Option<ValueFault>,
    /// The position of the reader when it was found.
    pub(super) position: usize,
}

impl FaultLog {
    /// Records a fault, unless one was recorded that DynamoDB reports first.
    #[cold]
    fn record(&mut self, fault: ValueFault, reader: &Reader<'_>) {
        let recorded = self.fault.as_ref();
        if recorded.is_none_or(|recorded| fault.rank() < recorded.rank()) {
            *self = Self {
                fault: Some(fault),
                position: reader.position(),
            };
        }
    }
}

/// A level of nesting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    /// The current level, starting with 1 for the values of an item.
    current: usize,
    /// The deepest level allowed.
    max: usize,
}

impl Level {
    const fn first(max: usize) -> Self {
        Self { current: 1, max }
    }

    const fn deeper(self) -> Self {
        Self {
            current: self.current + 1,
            ..self
        }
    }
}

/// Reads attributes by name: an item or a key.
///
/// # Errors
///
/// Returns an error if the text is not JSON, or has another shape.
pub fn read_item(reader: &mut Reader<'_>) -> Result<Parsed<Item>> {
    with_fault_log(|faults| read_item_with_faults(reader, faults))
}

/// Reads, and returns the recorded fault along with the value.
fn with_fault_log<T>(read: impl FnOnce(&mut FaultLog) -> Result<T>) -> Result<Parsed<T>> {
    let mut faults = FaultLog::default();
    let value = read(&mut faults)?;
    let fault = faults.fault;
    Ok(Parsed { value, fault })
}

/// Like [`read_item`], but records the fault with its position.
pub(super) fn read_item_with_faults(
    reader: &mut Reader<'_>,
    faults: &mut FaultLog,
) -> Result<Item> {
    attributes(reader, Level::first(NESTING_LEVELS_MAX), faults)
}

/// Reads a value with at most this many levels of maps and lists.
///
/// # Errors
///
/// Returns an error if the text is not JSON, or has another shape.
pub fn read_value(reader: &mut Reader<'_>, levels_max: usize) -> Result<Parsed<Value>> {
    with_fault_log(|faults| value(reader, Expected::Value, Level::first(levels_max), faults))
}

/// Reads a string.
///
/// # Errors
///
/// Returns an error if something else was found.
#[inline]
pub fn read_text<'a>(reader: &mut Reader<'a>) -> Result<Cow<'a, str>> {
    expect(reader, Token::String, Expected::Text)?;
    Ok(reader.string()?)
}

/// Reads a boolean. Some words are accepted as well.
///
/// # Errors
///
/// Returns an error if something else was found.
pub fn read_flag(reader: &mut Reader<'_>) -> Result<bool> {
    match reader.peek()? {
        Token::Bool => Ok(reader.bool()?),
        Token::String => match reader.string()?.to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "1" => Ok(true),
            "false" | "f" | "no" | "n" | "0" => Ok(false),
            _ => Err(ReadError::InvalidFlag),
        },
        _ => Err(ReadError::mismatch(Expected::Flag, reader)),
    }
}

/// Returns an error unless this token comes next.
#[inline]
fn expect(reader: &mut Reader<'_>, token: Token, expected: Expected) -> Result<()> {
    if reader.peek()? == token {
        return Ok(());
    }
    Err(ReadError::mismatch(expected, reader))
}

/// Reads attributes by name on this level of nesting.
fn attributes(reader: &mut Reader<'_>, level: Level, faults: &mut FaultLog) -> Result<Item> {
    expect(reader, Token::Object, Expected::Attributes)?;
    reader.begin_object()?;
    let mut attributes = Vec::new();
    while let Some(name) = reader.next_name()? {
        let value = element(reader, level, faults)?;
        if name.is_empty() {
            let kind = match level.current {
                1 => NameKind::Attribute,
                _ => NameKind::Member,
            };
            faults.record(ValueFault::EmptyName(kind), reader);
        }
        attributes.push((Name::from(&*name), value));
    }
    Ok(Item::from(attributes))
}

fn element(reader: &mut Reader<'_>, level: Level, faults: &mut FaultLog) -> Result<Value> {
    if reader.peek()? == Token::Null {
        reader.null()?;
        faults.record(ValueFault::Empty, reader);
        return Ok(Value::Null);
    }
    value(reader, Expected::Element, level, faults)
}

/// Reads a value on this level of nesting. Values below the deepest level are skipped.
fn value(
    reader: &mut Reader<'_>,
    expected: Expected,
    level: Level,
    faults: &mut FaultLog,
) -> Result<Value> {
    if level.current > level.max {
        return skip_deep(reader, level, faults);
    }
    let start = reader.position();
    expect(reader, Token::Object, expected)?;
    reader.begin_object()?;
    let mut found: Option<Value> = None;
    let mut has_several_types = false;
    while let Some(name) = reader.next_name()? {
        let Some(read) = value_reader(&name) else {
            reader.skip()?;
            continue;
        };
        if reader.peek()? == Token::Null {
            reader.null()?;
            continue;
        }
        let value = read(reader, level, faults)?;
        has_several_types |= found.replace(value).is_some();
    }
    if has_several_types {
        reader.needs_older_layer = true;
        *faults = FaultLog {
            fault: Some(fault_of_multiple_types(reader.revisit(start), level)?),
            position: reader.position(),
        };
    }
    Ok(found.unwrap_or_else(|| {
        faults.record(ValueFault::Empty, reader);
        Value::Null
    }))
}

/// Skips a value that is nested too deep.
#[cold]
fn skip_deep(reader: &mut Reader<'_>, level: Level, faults: &mut FaultLog) -> Result<Value> {
    // A level consists of two containers: the object of the value, and the map or list in it.
    let levels = level.current - 1 + reader.skip_depth()? / 2;
    let nesting = DepthFault::of(levels);
    reader.needs_older_layer |= nesting == DepthFault::InParser;
    faults.record(ValueFault::TooDeep(nesting), reader);
    Ok(Value::Null)
}

/// Returns the fault that DynamoDB reports for a value with several types: a fault of one of its contents, or the types
/// themselves.
#[cold]
fn fault_of_multiple_types(mut reader: Reader<'_>, level: Level) -> Result<ValueFault> {
    let mut reported = ValueFault::MultipleTypes;
    reader.begin_object()?;
    while let Some(name) = reader.next_name()? {
        match value_reader(&name) {
            Some(read) if reader.peek()? != Token::Null => {
                let parsed = with_fault_log(|faults| read(&mut reader, level, faults))?;
                let faults = std::iter::once(reported).chain(parsed.fault);
                reported = faults
                    .min_by_key(ValueFault::rank_within)
                    .unwrap_or(ValueFault::MultipleTypes);
            }
            _ => reader.skip()?,
        }
    }
    Ok(reported)
}

type ReadValue = fn(&mut Reader<'_>, Level, &mut FaultLog) -> Result<Value>;

/// Returns the function that reads the content of this type.
fn value_reader(type_name: &str) -> Option<ReadValue> {
    Some(match type_name {
        "S" => |reader, _, faults| Ok(Value::S(string(reader, faults)?)),
        "N" => |reader, _, faults| Ok(Value::N(number(reader, faults)?)),
        "B" => |reader, _, faults| Ok(Value::B(bytes(reader, faults)?)),
        "BOOL" => |reader, _, _| Ok(Value::Bool(flag(reader)?.0)),
        "NULL" => |reader, _, faults| null(reader, faults),
        "M" => |reader, level, faults| Ok(Value::M(attributes(reader, level.deeper(), faults)?)),
        "L" => list,
        "SS" => |reader, _, faults| {
            set(
                reader,
                faults,
                SetKind::S,
                string,
                Text::to_string,
                Value::Ss,
            )
        },
        "NS" => |reader, _, faults| {
            set(
                reader,
                faults,
                SetKind::N,
                number,
                Number::to_string,
                Value::Ns,
            )
        },
        "BS" => |reader, _, faults| {
            set(
                reader,
                faults,
                SetKind::B,
                bytes,
                |b| STANDARD.encode(b),
                Value::Bs,
            )
        },
        _ => return None,
    })
}

fn string(reader: &mut Reader<'_>, _: &mut FaultLog) -> Result<Text> {
    Ok(Text::from(&*read_text(reader)?))
}

/// Reads a number from a string. Returns an arbitrary number if it is invalid.
fn number(reader: &mut Reader<'_>, faults: &mut FaultLog) -> Result<Number> {
    let text = read_text(reader)?;
    Ok(text.parse().unwrap_or_else(|error| {
        faults.record(ValueFault::Number(error, text.into_owned()), reader);
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

fn null(reader: &mut Reader<'_>, faults: &mut FaultLog) -> Result<Value> {
    if let (false, form) = flag(reader)? {
        faults.record(ValueFault::NullFalse(form), reader);
    }
    Ok(Value::Null)
}

fn begin_list(reader: &mut Reader<'_>) -> Result<()> {
    expect(reader, Token::Array, Expected::List)?;
    Ok(reader.begin_array()?)
}

fn list(reader: &mut Reader<'_>, level: Level, faults: &mut FaultLog) -> Result<Value> {
    begin_list(reader)?;
    let mut elements = Vec::new();
    while reader.next_element()? {
        elements.push(element(reader, level.deeper(), faults)?);
    }
    Ok(Value::L(elements))
}

/// Reads a set. Returns an arbitrary value if its elements are invalid.
fn set<T: Ord + Clone>(
    reader: &mut Reader<'_>,
    faults: &mut FaultLog,
    kind: SetKind,
    read: fn(&mut Reader<'_>, &mut FaultLog) -> Result<T>,
    show: fn(&T) -> String,
    make: fn(Set<T>) -> Value,
) -> Result<Value> {
    begin_list(reader)?;
    let mut elements = Vec::new();
    while reader.next_element()? {
        if reader.peek()? == Token::Null {
            reader.null()?;
            faults.record(ValueFault::NullElement(kind), reader);
        } else {
            elements.push(read(reader, faults)?);
        }
    }
    if elements.is_empty() {
        faults.record(ValueFault::EmptySet(kind), reader);
        return Ok(Value::Null);
    }
    // The elements in the order of the request are needed only for duplicates, which are rare.
    Ok(match Set::new(elements.iter().cloned()) {
        Ok(set) => make(set),
        Err(_) => {
            faults.record(ValueFault::duplicates(kind, &elements, show), reader);
            Value::Null
        }
    })
}

/// Reads bytes as base64.
fn bytes(reader: &mut Reader<'_>, _: &mut FaultLog) -> Result<Vec<u8>> {
    expect(reader, Token::String, Expected::Bytes)?;
    let text = reader.string()?;
    let bytes = STANDARD.decode(text.as_bytes());
    bytes.map_err(|_| ReadError::Base64 { chars: text.len() })
}
