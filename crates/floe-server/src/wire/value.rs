//! Reads values and items straight from the text of a request.
//!
//! What is wrong with a value but can be read (an empty set, a number out of range) does not stop the reading:
//! DynamoDB finds it later, after the names and the numbers of the request. It is noted as a [`ValueFault`].

use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use floe_store::limits::{LITERAL_LEVELS_MAX, NESTING_LEVELS_MAX};
use floe_store::{Item, Name, Number, Set, Text, Value};

use super::json::{Reader, Token};
use super::read::{Place, Read, Str, begin_structure, check_parameterized, service_class};
use super::refusal::{Refusal, Result};
use super::value_fault::{FlagForm, Named, Nesting, SetKind, ValueFault, Voice};

/// Attributes by name: an item or a key.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Attributes {
    /// The attributes, of no worth if there is a fault.
    pub(crate) item: Item,
    /// What is wrong with them.
    pub(crate) fault: Option<ValueFault>,
}

/// A value, for instance of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Attribute {
    /// The value, of no worth if there is a fault.
    pub(crate) value: Value,
    /// What is wrong with it.
    pub(crate) fault: Option<ValueFault>,
}

/// A value of an expression in a transaction, where DynamoDB lets values be as deep as expressions can hold them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TransactAttribute(pub(crate) Attribute);

/// A level of nesting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Level {
    /// From 1, for the values of an item.
    at: usize,
    /// The deepest one.
    max: usize,
}

impl Level {
    /// That of the values of an item.
    const FIRST: Self = Self {
        at: 1,
        max: NESTING_LEVELS_MAX,
    };

    const fn deeper(self) -> Self {
        Self {
            at: self.at + 1,
            ..self
        }
    }
}

impl Attributes {
    /// The attributes, or what is wrong with them.
    pub(crate) fn sound(self, voice: impl Into<Voice>) -> Result<Item> {
        match self.fault {
            None => Ok(self.item),
            Some(fault) => Err(voice.into().refuse_value(&fault)),
        }
    }
}

impl<'a> Read<'a> for Attributes {
    fn class() -> String {
        format!(
            "java.util.Map<java.lang.String, {}>",
            service_class("AttributeValue")
        )
    }

    fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self> {
        check_parameterized(reader, place)?;
        let mut fault = None;
        let item = read_item(reader, Level::FIRST, &mut fault)?;
        Ok(Self { item, fault })
    }
}

impl<'a> Read<'a> for Attribute {
    fn class() -> String {
        format!("class {}", service_class("AttributeValue"))
    }

    fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self> {
        let mut fault = None;
        let value = read_value(reader, place, Level::FIRST, &mut fault)?;
        Ok(Self { value, fault })
    }

    fn absent() -> Option<Self> {
        Some(Self {
            value: Value::Null,
            fault: Some(ValueFault::Empty),
        })
    }
}

impl<'a> Read<'a> for TransactAttribute {
    fn class() -> String {
        <Attribute as Read<'_>>::class()
    }

    fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self> {
        let mut fault = None;
        let level = Level {
            max: LITERAL_LEVELS_MAX,
            ..Level::FIRST
        };
        let value = read_value(reader, place, level, &mut fault)?;
        Ok(Self(Attribute { value, fault }))
    }

    fn absent() -> Option<Self> {
        <Attribute as Read<'_>>::absent().map(Self)
    }
}

/// Reads attributes by name, which stand on this level of nesting.
fn read_item(
    reader: &mut Reader<'_>,
    level: Level,
    fault: &mut Option<ValueFault>,
) -> Result<Item> {
    begin_structure(reader, Place::Member, <Attributes as Read<'_>>::class)?;
    let mut attributes = Vec::new();
    while let Some(name) = reader.next_name()? {
        let value = read_element(reader, level, fault)?;
        if name.is_empty() {
            let named = match level.at {
                1 => Named::Attribute,
                _ => Named::Member,
            };
            ValueFault::EmptyName(named).note(fault);
        }
        attributes.push((Name::from(&*name), value));
    }
    Ok(Item::from(attributes))
}

fn read_element(
    reader: &mut Reader<'_>,
    level: Level,
    fault: &mut Option<ValueFault>,
) -> Result<Value> {
    if reader.peek()? == Token::Null {
        reader.null()?;
        ValueFault::Empty.note(fault);
        return Ok(Value::Null);
    }
    read_value(reader, Place::Element, level, fault)
}

/// Reads a value on this level of nesting. Beyond the deepest level, values are passed over.
fn read_value(
    reader: &mut Reader<'_>,
    place: Place,
    level: Level,
    fault: &mut Option<ValueFault>,
) -> Result<Value> {
    if level.at > level.max {
        return skip_deep(reader, level, fault);
    }
    let start = reader.position();
    begin_structure(reader, place, <Attribute as Read<'_>>::class)?;
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
        let value = read(reader, level, fault)?;
        several |= found.replace(value).is_some();
    }
    if several {
        reader.needs_older_layer = true;
        *fault = fault_of_several(reader.revisit(start), level)?.or(fault.take());
    }
    Ok(found.unwrap_or_else(|| {
        ValueFault::Empty.note(fault);
        Value::Null
    }))
}

/// Passes over a value that is nested too deep.
#[cold]
fn skip_deep(
    reader: &mut Reader<'_>,
    level: Level,
    fault: &mut Option<ValueFault>,
) -> Result<Value> {
    // A level is two containers: the value, and the map or list in it.
    let levels = level.at - 1 + reader.skip_depth()? / 2;
    let nesting = Nesting::of(levels);
    reader.needs_older_layer |= nesting == Nesting::Unread;
    ValueFault::TooDeep(nesting).note(fault);
    Ok(Value::Null)
}

/// The fault that is told of a value with several types: something wrong with one of them, or that there are several.
#[cold]
fn fault_of_several(mut reader: Reader<'_>, level: Level) -> Result<Option<ValueFault>> {
    let mut told = ValueFault::Several;
    reader.begin_object()?;
    while let Some(name) = reader.next_name()? {
        match reader_of(&name) {
            Some(read) if reader.peek()? != Token::Null => {
                let mut fault = None;
                read(&mut reader, level, &mut fault)?;
                if let Some(fault) = fault
                    && fault.rank_within() < told.rank_within()
                {
                    told = fault;
                }
            }
            _ => reader.skip()?,
        }
    }
    Ok(Some(told))
}

type ReadValue = fn(&mut Reader<'_>, Level, &mut Option<ValueFault>) -> Result<Value>;

/// How the value of a type of this name is read.
fn reader_of(type_name: &str) -> Option<ReadValue> {
    Some(match type_name {
        "S" => |reader, _, _| Ok(Value::S(Text::from(&*text(reader)?))),
        "N" => |reader, _, fault| Ok(Value::N(number(&text(reader)?, fault))),
        "B" => |reader, _, _| Ok(Value::B(bytes(reader)?)),
        "BOOL" => |reader, _, _| Ok(Value::Bool(flag(reader)?.0)),
        "NULL" => |reader, _, fault| null(reader, fault),
        "M" => |reader, level, fault| Ok(Value::M(read_item(reader, level.deeper(), fault)?)),
        "L" => list,
        "SS" => string_set,
        "NS" => number_set,
        "BS" => binary_set,
        _ => return None,
    })
}

fn text<'a>(reader: &mut Reader<'a>) -> Result<Str<'a>> {
    Str::read(reader, Place::Member)
}

/// The number of this text; any number if it is none.
fn number(text: &str, fault: &mut Option<ValueFault>) -> Number {
    text.parse().unwrap_or_else(|error| {
        ValueFault::Number(error, text.to_owned()).note(fault);
        Number::from(0)
    })
}

fn flag(reader: &mut Reader<'_>) -> Result<(bool, FlagForm)> {
    let form = match reader.peek()? {
        Token::String => FlagForm::Text,
        // Unlike the flags of a request, this one finds no words for it.
        Token::Array => return Err(Refusal::Serialization(None)),
        _ => FlagForm::Plain,
    };
    reader.needs_older_layer |= form == FlagForm::Text;
    Ok((bool::read(reader, Place::Member)?, form))
}

fn null(reader: &mut Reader<'_>, fault: &mut Option<ValueFault>) -> Result<Value> {
    if let (false, form) = flag(reader)? {
        ValueFault::NullFalse(form).note(fault);
    }
    Ok(Value::Null)
}

fn list(reader: &mut Reader<'_>, level: Level, fault: &mut Option<ValueFault>) -> Result<Value> {
    begin_list(reader)?;
    let mut elements = Vec::new();
    while reader.next_element()? {
        elements.push(read_element(reader, level.deeper(), fault)?);
    }
    Ok(Value::L(elements))
}

fn string_set(reader: &mut Reader<'_>, _: Level, fault: &mut Option<ValueFault>) -> Result<Value> {
    let read = |reader: &mut Reader<'_>, _: &mut _| Ok(Text::from(&*text(reader)?));
    read_set(reader, SetKind::S, fault, read, Value::Ss)
}

fn number_set(reader: &mut Reader<'_>, _: Level, fault: &mut Option<ValueFault>) -> Result<Value> {
    let read = |reader: &mut Reader<'_>, fault: &mut _| Ok(number(&text(reader)?, fault));
    read_set(reader, SetKind::N, fault, read, Value::Ns)
}

fn binary_set(reader: &mut Reader<'_>, _: Level, fault: &mut Option<ValueFault>) -> Result<Value> {
    read_set(
        reader,
        SetKind::B,
        fault,
        |reader, _| bytes(reader),
        Value::Bs,
    )
}

fn read_set<T: Ord + Clone + ShowElement>(
    reader: &mut Reader<'_>,
    kind: SetKind,
    fault: &mut Option<ValueFault>,
    mut read: impl FnMut(&mut Reader<'_>, &mut Option<ValueFault>) -> Result<T>,
    make: fn(Set<T>) -> Value,
) -> Result<Value> {
    begin_list(reader)?;
    let mut elements = Vec::new();
    while reader.next_element()? {
        if reader.peek()? == Token::Null {
            reader.null()?;
            ValueFault::NullElement(kind).note(fault);
        } else {
            elements.push(read(reader, fault)?);
        }
    }
    Ok(set(&elements, kind, fault, make))
}

fn begin_list(reader: &mut Reader<'_>) -> Result<()> {
    match reader.peek()? {
        Token::Array => Ok(reader.begin_array()?),
        Token::Object => Err(Refusal::shape(
            "Start of structure or map found where not expected",
        )),
        _ => Err(Refusal::shape("Unexpected field type")),
    }
}

/// A set of these elements; any value if they are none.
fn set<T: Ord + Clone + ShowElement>(
    elements: &[T],
    kind: SetKind,
    fault: &mut Option<ValueFault>,
    make: fn(Set<T>) -> Value,
) -> Value {
    if elements.is_empty() {
        ValueFault::EmptySet(kind).note(fault);
        return Value::Null;
    }
    // The elements are wanted as they were sent only if they repeat, which is rare.
    match Set::new(elements.iter().cloned()) {
        Ok(set) => make(set),
        Err(_) => {
            ValueFault::duplicates(kind, elements, T::show).note(fault);
            Value::Null
        }
    }
}

/// How an element of a set is shown in an error.
trait ShowElement {
    fn show(&self) -> String;
}

impl ShowElement for Text {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl ShowElement for Number {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl ShowElement for Vec<u8> {
    fn show(&self) -> String {
        STANDARD.encode(self)
    }
}

/// Bytes in base 64.
fn bytes(reader: &mut Reader<'_>) -> Result<Vec<u8>> {
    let text = match reader.peek()? {
        Token::String => reader.string()?,
        Token::Object => {
            return Err(Refusal::shape(
                "Start of structure or map found where not expected",
            ));
        }
        Token::Array => {
            return Err(Refusal::shape(
                "Unrecognized collection type class java.nio.ByteBuffer",
            ));
        }
        _ => {
            return Err(Refusal::shape(
                "only base-64-encoded strings are convertible to bytes",
            ));
        }
    };
    STANDARD.decode(text.as_bytes()).map_err(|_| {
        Refusal::shape(match text.len().rem_euclid(4).cmp(&0) {
            Ordering::Greater => format!(
                "Base64 encoded length is expected a multiple of 4 bytes but found: {}",
                text.len()
            ),
            _ => "Invalid last non-pad Base64 character dectected".to_owned(),
        })
    })
}

pub(crate) use super::value_fault::Layer;
