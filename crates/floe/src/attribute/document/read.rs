//! A serde deserializer that reads stored values.

use std::fmt;
use std::iter::Enumerate;

use floe_store::{Item, Name, Number, Set, Text, Value};
use serde::de::value::MapAccessDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use super::super::{Invalid, in_list, in_map, missing, out_of_range};
use super::map_key::KeyReader;
use super::{deeper, too_many_digits};

impl de::Error for Invalid {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(actual: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let actual = Brief(actual);
        Self::new(format!(
            "the stored value has another type: expected={expected} actual={actual}"
        ))
    }

    fn invalid_value(actual: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let actual = Brief(actual);
        Self::new(format!(
            "the stored value is not allowed: expected={expected} actual={actual}"
        ))
    }

    fn missing_field(field: &'static str) -> Self {
        in_map(field)(missing())
    }
}

/// The unexpected value without its text or bytes, which may be long or confidential.
struct Brief<'a>(Unexpected<'a>);

impl fmt::Display for Brief<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Str(_) => f.write_str("text"),
            Unexpected::Bytes(_) => f.write_str("bytes"),
            Unexpected::Unit => f.write_str("null"),
            other => other.fmt(f),
        }
    }
}

/// A borrowed value: a stored value, or an element of a set.
#[derive(Clone, Copy)]
enum ValueRef<'de> {
    Text(&'de str),
    Number(Number),
    Bytes(&'de [u8]),
    Bool(bool),
    Null,
    Map(&'de Item),
    List(&'de [Value]),
    Texts(&'de Set<Text>),
    Numbers(&'de Set<Number>),
    Binaries(&'de Set<Vec<u8>>),
}

impl<'de> From<&'de Value> for ValueRef<'de> {
    fn from(value: &'de Value) -> Self {
        match value {
            Value::S(text) => Self::Text(text),
            Value::N(number) => Self::Number(*number),
            Value::B(bytes) => Self::Bytes(bytes),
            Value::Bool(flag) => Self::Bool(*flag),
            Value::Null => Self::Null,
            Value::M(map) => Self::Map(map),
            Value::L(list) => Self::List(list),
            Value::Ss(set) => Self::Texts(set),
            Value::Ns(set) => Self::Numbers(set),
            Value::Bs(set) => Self::Binaries(set),
        }
    }
}

/// Reads one value, or the absence of the whole attribute.
#[derive(Clone, Copy)]
pub(super) struct Reader<'de> {
    value: Option<ValueRef<'de>>,
    level: usize,
}

impl<'de> Reader<'de> {
    /// Returns a reader for the value of an attribute.
    pub(super) fn top(value: Option<&'de Value>) -> Self {
        Self {
            value: value.map(ValueRef::from),
            level: 1,
        }
    }

    /// Returns a reader for a part of the value.
    fn part(self, value: impl Into<ValueRef<'de>>) -> Result<Self, Invalid> {
        Ok(Self {
            value: Some(value.into()),
            level: deeper(self.level)?,
        })
    }

    fn value(self) -> Result<ValueRef<'de>, Invalid> {
        self.value.ok_or_else(missing)
    }

    fn list<V, I, S>(self, elements: I, visitor: V) -> Result<V::Value, Invalid>
    where
        V: Visitor<'de>,
        I: ExactSizeIterator<Item = S>,
        S: Into<ValueRef<'de>>,
    {
        let count = elements.len();
        let mut elements = Elements {
            reader: self,
            elements: elements.enumerate(),
        };
        let value = visitor.visit_seq(&mut elements)?;
        let unread = elements.elements.len();
        if unread > 0 {
            let read = count - unread;
            let reason = format!("the stored list is too long: expected={read} actual={count}");
            return Err(Invalid::new(reason));
        }
        Ok(value)
    }

    fn entries(
        self,
        map: &'de Item,
    ) -> Entries<'de, impl ExactSizeIterator<Item = (&'de Name, &'de Value)>> {
        Entries {
            reader: self,
            entries: map.iter(),
            value: None,
            is_variant: false,
        }
    }
}

/// Passes a number to a visitor without a type hint, as the narrowest type that represents it exactly.
fn visit_number<'de, V: Visitor<'de>>(number: Number, visitor: V) -> Result<V::Value, Invalid> {
    if let Some(natural) = number.to_u64() {
        return visitor.visit_u64(natural);
    }
    if let Some(integer) = number.to_i64() {
        return visitor.visit_i64(integer);
    }
    let float = number.to_f64();
    if Number::try_from(float) == Ok(number) {
        return visitor.visit_f64(float);
    }
    match number.to_i128() {
        Some(wide) => visitor.visit_i128(wide),
        None => Err(too_many_digits(&number)),
    }
}

/// Passes a number to a visitor that expects an integer.
fn visit_integer<'de, V: Visitor<'de>>(number: Number, visitor: V) -> Result<V::Value, Invalid> {
    let Some(wide) = number.to_i128() else {
        return match number.to_string().parse::<u128>() {
            Ok(wide) => visitor.visit_u128(wide),
            Err(_) => visitor.visit_f64(number.to_f64()),
        };
    };
    match (u64::try_from(wide), i64::try_from(wide)) {
        (Ok(narrow), _) => visitor.visit_u64(narrow),
        (_, Ok(narrow)) => visitor.visit_i64(narrow),
        _ => visitor.visit_i128(wide),
    }
}

/// Passes a number to a visitor that expects an `f32`, rounded once.
fn visit_f32<'de, V: Visitor<'de>>(number: Number, visitor: V) -> Result<V::Value, Invalid> {
    match number.to_string().parse::<f32>() {
        Ok(float) if float.is_finite() => visitor.visit_f32(float),
        _ => Err(out_of_range("f32", &number)),
    }
}

fn visit_f64<'de, V: Visitor<'de>>(number: Number, visitor: V) -> Result<V::Value, Invalid> {
    visitor.visit_f64(number.to_f64())
}

macro_rules! numbers {
    ($($visit:ident: $($method:ident)*;)*) => {$($(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
            match self.value()? {
                ValueRef::Number(number) => $visit(number, visitor),
                _ => self.deserialize_any(visitor),
            }
        }
    )*)*};
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Invalid;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        match self.value()? {
            ValueRef::Text(text) => visitor.visit_borrowed_str(text),
            ValueRef::Number(number) => visit_number(number, visitor),
            ValueRef::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            ValueRef::Bool(flag) => visitor.visit_bool(flag),
            ValueRef::Null => visitor.visit_unit(),
            ValueRef::Map(map) => visitor.visit_map(self.entries(map)),
            ValueRef::List(list) => self.list(list.iter(), visitor),
            ValueRef::Texts(set) => self.list(set.iter().map(|text| ValueRef::Text(text)), visitor),
            ValueRef::Numbers(set) => {
                self.list(set.iter().map(|number| ValueRef::Number(*number)), visitor)
            }
            ValueRef::Binaries(set) => {
                self.list(set.iter().map(|bytes| ValueRef::Bytes(bytes)), visitor)
            }
        }
    }

    numbers! {
        visit_integer: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128;
        visit_integer: deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128;
        visit_f32: deserialize_f32;
        visit_f64: deserialize_f64;
    }

    // Visitors of text accept UTF-8 bytes, and some visitors of bytes accept text.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        match self.value()? {
            ValueRef::Bytes(bytes) => {
                Err(de::Error::invalid_type(Unexpected::Bytes(bytes), &visitor))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        match self.value()? {
            ValueRef::Text(text) => Err(de::Error::invalid_type(Unexpected::Str(text), &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        match self.value {
            None | Some(ValueRef::Null) => visitor.visit_none(),
            Some(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Invalid> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Invalid> {
        match self.value()? {
            ValueRef::Text(text) => visitor.visit_enum(text.into_deserializer()),
            ValueRef::Map(map) if map.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(Entries {
                    is_variant: true,
                    ..self.entries(map)
                }))
            }
            ValueRef::Map(map) => {
                let reason = "the stored map is not an enum variant: expected=1 entry";
                Err(Invalid::new(format!("{reason} actual={}", map.len())))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool char unit unit_struct seq tuple tuple_struct map struct identifier
    }
}

/// The elements of a list or a set.
struct Elements<'de, I> {
    reader: Reader<'de>,
    elements: Enumerate<I>,
}

impl<'de, I, S> SeqAccess<'de> for &mut Elements<'de, I>
where
    I: ExactSizeIterator<Item = S>,
    S: Into<ValueRef<'de>>,
{
    type Error = Invalid;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Invalid> {
        let Some((at, element)) = self.elements.next() else {
            return Ok(None);
        };
        let element = self.reader.part(element);
        let read = element.and_then(|element| seed.deserialize(element));
        read.map(Some).map_err(in_list(at))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.elements.len())
    }
}

/// The entries of a map.
struct Entries<'de, I> {
    reader: Reader<'de>,
    entries: I,
    /// The entry whose name was read and whose value comes next.
    value: Option<(&'de Name, &'de Value)>,
    /// Whether the map is an enum variant, whose name is not part of the path.
    is_variant: bool,
}

impl<'de, I> MapAccess<'de> for Entries<'de, I>
where
    I: ExactSizeIterator<Item = (&'de Name, &'de Value)>,
{
    type Error = Invalid;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Invalid> {
        self.value = self.entries.next();
        let Some((name, _)) = self.value else {
            return Ok(None);
        };
        let key = seed.deserialize(KeyReader(name)).map(Some);
        if self.is_variant {
            return key;
        }
        key.map_err(in_map(name))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Invalid> {
        let message = "a value of a map was read before its key";
        let (name, value) = self.value.take().ok_or_else(|| Invalid::new(message))?;
        let value = self.reader.part(value);
        value
            .and_then(|value| seed.deserialize(value))
            .map_err(in_map(name))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}
