//! The deserializer whose input is a value of the store.

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

/// What was found, without the text or bytes, which may be long and nobody else's business.
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

/// A value as it is seen where it stands: by itself or as an element of a set.
#[derive(Clone, Copy)]
enum Seen<'de> {
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

impl<'de> From<&'de Value> for Seen<'de> {
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
    seen: Option<Seen<'de>>,
    level: usize,
}

impl<'de> Reader<'de> {
    /// For the value of an attribute.
    pub(super) fn top(value: Option<&'de Value>) -> Self {
        Self {
            seen: value.map(Seen::from),
            level: 1,
        }
    }

    /// For a part of the value.
    fn part(self, seen: impl Into<Seen<'de>>) -> Result<Self, Invalid> {
        Ok(Self {
            seen: Some(seen.into()),
            level: deeper(self.level)?,
        })
    }

    fn seen(self) -> Result<Seen<'de>, Invalid> {
        self.seen.ok_or_else(missing)
    }

    fn list<V, I, S>(self, elements: I, visitor: V) -> Result<V::Value, Invalid>
    where
        V: Visitor<'de>,
        I: ExactSizeIterator<Item = S>,
        S: Into<Seen<'de>>,
    {
        let count = elements.len();
        let mut elements = Elements {
            reader: self,
            elements: elements.enumerate(),
        };
        let value = visitor.visit_seq(&mut elements)?;
        let left = elements.elements.len();
        if left > 0 {
            let read = count - left;
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

/// Hands a number to a visitor that has not asked for a type, by the narrowest that holds it exactly.
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

/// Hands a number to a visitor that expects an integer.
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

/// Hands a number to a visitor that expects a float of 32 bits, rounded once.
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
            match self.seen()? {
                Seen::Number(number) => $visit(number, visitor),
                _ => self.deserialize_any(visitor),
            }
        }
    )*)*};
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Invalid;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        match self.seen()? {
            Seen::Text(text) => visitor.visit_borrowed_str(text),
            Seen::Number(number) => visit_number(number, visitor),
            Seen::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            Seen::Bool(flag) => visitor.visit_bool(flag),
            Seen::Null => visitor.visit_unit(),
            Seen::Map(map) => visitor.visit_map(self.entries(map)),
            Seen::List(list) => self.list(list.iter(), visitor),
            Seen::Texts(set) => self.list(set.iter().map(|text| Seen::Text(text)), visitor),
            Seen::Numbers(set) => {
                self.list(set.iter().map(|number| Seen::Number(*number)), visitor)
            }
            Seen::Binaries(set) => self.list(set.iter().map(|bytes| Seen::Bytes(bytes)), visitor),
        }
    }

    numbers! {
        visit_integer: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128;
        visit_integer: deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128;
        visit_f32: deserialize_f32;
        visit_f64: deserialize_f64;
    }

    // Visitors of text take bytes that are UTF-8, and some of bytes take text.
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        match self.seen()? {
            Seen::Bytes(bytes) => Err(de::Error::invalid_type(Unexpected::Bytes(bytes), &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        match self.seen()? {
            Seen::Text(text) => Err(de::Error::invalid_type(Unexpected::Str(text), &visitor)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        match self.seen {
            None | Some(Seen::Null) => visitor.visit_none(),
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
        match self.seen()? {
            Seen::Text(text) => visitor.visit_enum(text.into_deserializer()),
            Seen::Map(map) if map.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(Entries {
                    is_variant: true,
                    ..self.entries(map)
                }))
            }
            Seen::Map(map) => {
                let reason = "the stored map is no variant: expected=1 entry";
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
    S: Into<Seen<'de>>,
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
    /// The entry of which only the name has been read.
    value: Option<(&'de Name, &'de Value)>,
    /// The map is a variant: its only name is no place in it.
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
        let asked = "a value of a map was read before its key";
        let (name, value) = self.value.take().ok_or_else(|| Invalid::new(asked))?;
        let value = self.reader.part(value);
        value
            .and_then(|value| seed.deserialize(value))
            .map_err(in_map(name))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}
