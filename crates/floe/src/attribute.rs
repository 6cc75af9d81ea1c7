//! Field types and their stored form.
//!
//! The type of a value determines its stored form: an absent attribute for `None`, a number for a number, a set for a
//! set. Reading rejects every other form. Values of any serde type are [documents](document), and [`Expiry`] is the
//! time at which an item expires. All patterns store the fields of the caller's types in this form.

pub mod document;
pub mod expiry;
#[doc(hidden)]
pub mod support;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::Hash;

use floe_store::table::KeyKind;
use floe_store::{Item, Name, Number, NumberError, Set, Text, Timestamp, Value};
use serde_json::{Value as Json, json};
use uuid::Uuid;

pub use crate::error::Invalid;
pub use expiry::Expiry;

/// A type that a field of a model can have.
#[diagnostic::on_unimplemented(
    message = "a field of a model cannot be a `{Self}`",
    label = "not a storable type",
    note = "implement `floe::Attribute`, or store it through serde with `#[model(serde)]`"
)]
pub trait Attribute: Sized {
    /// Returns the attribute's value; `None` to omit the attribute.
    ///
    /// # Errors
    ///
    /// If the value has no stored form, for example a NaN.
    fn to_value(&self) -> Result<Option<Value>, Invalid>;

    /// Reads the value from an attribute or its absence.
    ///
    /// # Errors
    ///
    /// If the attribute has another form.
    fn from_value(value: Option<&Value>) -> Result<Self, Invalid>;

    /// The JSON Schema of the type.
    fn json_schema() -> Json;

    /// Whether the attribute may be absent.
    const OPTIONAL: bool = false;

    /// The kind of the attribute as part of a key or an index.
    const KIND: FieldKind = FieldKind::Other;
}

/// The kind of an attribute as part of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Text.
    Text,
    /// A number.
    Number,
    /// Bytes.
    Bytes,
    /// Any other type. It cannot be a key of an index; in the key of the model itself it is written as JSON.
    Other,
}

impl FieldKind {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Bytes => "bytes",
            Self::Other => "other",
        }
    }

    /// The type of the attribute in the key of a table or an index; `None` if it cannot be in a key.
    pub(crate) const fn key_kind(self) -> Option<KeyKind> {
        match self {
            Self::Text => Some(KeyKind::S),
            Self::Number => Some(KeyKind::N),
            Self::Bytes => Some(KeyKind::B),
            Self::Other => None,
        }
    }
}

/// Rejects map names that the store would reject.
pub(crate) fn check_name(name: &str) -> Result<(), Invalid> {
    if name.is_empty() {
        return Err(Invalid::new("a name in a map cannot be empty"));
    }
    Ok(())
}

pub(crate) fn missing() -> Invalid {
    Invalid::new("the attribute is missing")
}

pub(crate) fn mismatch(expected: &str, value: &Value) -> Invalid {
    let actual = value.value_type();
    Invalid::new(format!(
        "the stored attribute has another type: expected={expected} actual={actual}"
    ))
}

/// Adds the index of a list to the path of an error.
fn in_list(at: usize) -> impl FnOnce(Invalid) -> Invalid {
    move |invalid| invalid.within(&format!("[{at}]"))
}

/// Adds the name of a map entry to the path of an error.
fn in_map(name: &str) -> impl FnOnce(Invalid) -> Invalid {
    move |invalid| invalid.within(&format!(".{name}"))
}

/// Types whose values are always present, with an expression each for writing and reading.
macro_rules! scalar {
    ($type:ty, $kind:ident, $expected:literal, $schema:expr, |$own:ident| $write:expr, $($pattern:pat => $read:expr),+) => {
        impl Attribute for $type {
            const KIND: FieldKind = FieldKind::$kind;

            fn to_value(&self) -> Result<Option<Value>, Invalid> {
                let $own = self;
                $write.map(Some)
            }
            fn from_value(value: Option<&Value>) -> Result<Self, Invalid> {
                match value.ok_or_else(missing)? {
                    $($pattern => $read,)+
                    other => Err(mismatch($expected, other)),
                }
            }
            fn json_schema() -> Json {
                $schema
            }
        }
    };
}
use scalar;

scalar!(String, Text, "S", json!({"type": "string"}), |own| Ok(Value::from(own.as_str())),
    Value::S(text) => Ok(text.as_str().to_owned()));
scalar!(Text, Text, "S", json!({"type": "string"}), |own| Ok(Value::S(own.clone())),
    Value::S(text) => Ok(text.clone()));
scalar!(bool, Other, "BOOL", json!({"type": "boolean"}), |own| Ok(Value::Bool(*own)),
    Value::Bool(flag) => Ok(*flag));
scalar!(Number, Number, "N", json!({"type": "number"}), |own| Ok(Value::N(*own)),
    Value::N(number) => Ok(*number));
scalar!(Uuid, Text, "S", json!({"type": "string", "format": "uuid"}),
    |own| Ok(Value::from(own.hyphenated().to_string())),
    Value::S(text) => read_uuid(text));
scalar!(Timestamp, Number, "N", json!({"type": "integer", "description": "milliseconds since 1970"}),
    |own| Ok(Value::from(own.as_millis())),
    Value::N(number) => number.to_u64().map(Timestamp::from_millis)
        .ok_or_else(|| Invalid::new("the number is not a timestamp")));

fn read_uuid(text: &str) -> Result<Uuid, Invalid> {
    Uuid::try_parse(text).map_err(|_| Invalid::new("the text is not a uuid"))
}

macro_rules! integers {
    ($($integer:ty)*) => {$(
        scalar!($integer, Number, "N",
            json!({"type": "integer", "minimum": <$integer>::MIN, "maximum": <$integer>::MAX}),
            |own| Ok(Value::N(Number::from(*own))),
            Value::N(number) => integer(stringify!($integer), number));
    )*};
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);

scalar!(usize, Number, "N", json!({"type": "integer", "minimum": 0}),
    |own| stored(Number::try_from(*own as u128)), Value::N(number) => integer("usize", number));
scalar!(isize, Number, "N", json!({"type": "integer"}),
    |own| stored(Number::try_from(*own as i128)), Value::N(number) => integer("isize", number));

// Their bounds exceed JSON's numbers, and their last digits the store's precision.
scalar!(i128, Number, "N", json!({"type": "integer"}), |own| stored(Number::try_from(*own)),
    Value::N(number) => integer("i128", number));
scalar!(u128, Number, "N", json!({"type": "integer", "minimum": 0}), |own| stored(Number::try_from(*own)),
    Value::N(number) => number.to_string().parse().map_err(|_| out_of_range("u128", number)));

fn integer<T: TryFrom<i128>>(name: &str, number: &Number) -> Result<T, Invalid> {
    let integer = number.to_i128().and_then(|wide| T::try_from(wide).ok());
    integer.ok_or_else(|| out_of_range(name, number))
}

fn out_of_range(integer: &str, number: &Number) -> Invalid {
    Invalid::new(format!(
        "the number is not a valid {integer}: value={number}"
    ))
}

fn stored(number: Result<Number, NumberError>) -> Result<Value, Invalid> {
    let too_large = "the number is not finite, out of range, or has more than 38 digits";
    number.map(Value::N).map_err(|_| Invalid::new(too_large))
}

// Both are stored as the shortest decimal that reads back as the same float.
scalar!(f64, Number, "N", json!({"type": "number"}), |own| stored(Number::try_from(*own)),
    Value::N(number) => Ok(number.to_f64()));
scalar!(f32, Number, "N", json!({"type": "number"}), |own| stored(format!("{own:e}").parse()),
    Value::N(number) => number.to_string().parse().ok().filter(|float: &Self| float.is_finite())
        .ok_or_else(|| out_of_range("f32", number)));

impl<T: Attribute> Attribute for Option<T> {
    const OPTIONAL: bool = true;
    const KIND: FieldKind = T::KIND;

    fn to_value(&self) -> Result<Option<Value>, Invalid> {
        let Some(value) = self else {
            return Ok(None);
        };
        value.to_value()?.map(Some).ok_or_else(lost_some)
    }
    fn from_value(value: Option<&Value>) -> Result<Self, Invalid> {
        value.map(|value| T::from_value(Some(value))).transpose()
    }
    fn json_schema() -> Json {
        T::json_schema()
    }
}

/// The error of a `Some` whose content has no stored form of its own: another `None`, or an empty set.
fn lost_some() -> Invalid {
    Invalid::new(
        "`Some(None)` and `Some` of an empty set have no stored form and would be read back as `None`; use one \
         `Option`, or a set without `Option`",
    )
}

/// An element of a list or a map. Absence becomes null, because containers have no absent elements.
fn element<T: Attribute>(value: &T) -> Result<Value, Invalid> {
    Ok(value.to_value()?.unwrap_or(Value::Null))
}

fn read_element<T: Attribute>(value: &Value) -> Result<T, Invalid> {
    match value {
        Value::Null if T::OPTIONAL => T::from_value(None),
        value => T::from_value(Some(value)),
    }
}

impl<T: Attribute> Attribute for Vec<T> {
    fn to_value(&self) -> Result<Option<Value>, Invalid> {
        let elements = self.iter().enumerate();
        let values = elements.map(|(at, value)| element(value).map_err(in_list(at)));
        Ok(Some(Value::L(values.collect::<Result<_, _>>()?)))
    }
    fn from_value(value: Option<&Value>) -> Result<Self, Invalid> {
        match value.ok_or_else(missing)? {
            Value::L(list) => {
                let elements = list.iter().enumerate();
                let read = elements.map(|(at, value)| read_element(value).map_err(in_list(at)));
                read.collect()
            }
            other => Err(mismatch("L", other)),
        }
    }
    fn json_schema() -> Json {
        json!({"type": "array", "items": T::json_schema()})
    }
}

/// Bytes, stored as DynamoDB's binary type. A `Vec<u8>` is stored as a list of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bytes(pub Vec<u8>);

scalar!(Bytes, Bytes, "B", json!({"type": "string", "contentEncoding": "base64"}),
    |own| Ok(Value::B(own.0.clone())),
    Value::B(bytes) => Ok(Self(bytes.clone())));

macro_rules! maps {
    ($($map:ident)*) => {$(
        impl<T: Attribute> Attribute for $map<String, T> {
            fn to_value(&self) -> Result<Option<Value>, Invalid> {
                let mut map = Item::with_capacity(self.len());
                for (name, value) in self {
                    check_name(name)?;
                    let value = element(value).map_err(in_map(name))?;
                    map.insert(name.as_str(), value);
                }
                Ok(Some(Value::M(map)))
            }
            fn from_value(value: Option<&Value>) -> Result<Self, Invalid> {
                let entry = |(name, value): (&Name, &Value)| {
                    let value = read_element(value).map_err(in_map(name))?;
                    Ok((name.as_str().to_owned(), value))
                };
                match value.ok_or_else(missing)? {
                    Value::M(map) => map.iter().map(entry).collect(),
                    other => Err(mismatch("M", other)),
                }
            }
            fn json_schema() -> Json {
                json!({"type": "object", "additionalProperties": T::json_schema()})
            }
        }
    )*};
}

maps!(BTreeMap HashMap);

/// A type that a set can hold: text, numbers or bytes.
pub trait Element: Attribute + Ord + Clone {
    /// Returns a set value of these elements, which must be distinct and at least one.
    ///
    /// # Errors
    ///
    /// If an element has no stored form.
    fn set_value<'a>(elements: impl Iterator<Item = &'a Self>) -> Result<Value, Invalid>
    where
        Self: 'a;

    /// Returns the elements of a set value.
    ///
    /// # Errors
    ///
    /// If the value is not a set of this kind.
    fn elements<C: FromIterator<Self>>(value: &Value) -> Result<C, Invalid>;
}

fn duplicate_element<E>(_: E) -> Invalid {
    Invalid::new("two elements of the set have the same stored value")
}

macro_rules! elements {
    ($($type:ty, $set:ident $expected:literal: |$own:ident| $write:expr, |$stored:ident| $read:expr;)*) => {$(
        impl Element for $type {
            fn set_value<'a>(elements: impl Iterator<Item = &'a Self>) -> Result<Value, Invalid> {
                let elements = elements.map(|$own| $write);
                Set::new(elements).map(Value::$set).map_err(duplicate_element)
            }
            fn elements<C: FromIterator<Self>>(value: &Value) -> Result<C, Invalid> {
                match value {
                    Value::$set(set) => set.iter().map(|$stored| $read).collect(),
                    other => Err(mismatch($expected, other)),
                }
            }
        }
    )*};
}

elements! {
    String, Ss "SS": |text| Text::from(text.as_str()), |text| Ok(text.as_str().to_owned());
    Uuid, Ss "SS": |id| Text::from(id.hyphenated().to_string()), |text| read_uuid(text);
    Bytes, Bs "BS": |bytes| bytes.0.clone(), |bytes| Ok(Self(bytes.clone()));
}

macro_rules! number_elements {
    ($($number:ty)*) => {
        elements! {$(
            $number, Ns "NS": |number| Number::from(*number),
                |number| Self::from_value(Some(&Value::N(*number)));
        )*}
    };
}

number_elements!(i8 i16 i32 i64 u8 u16 u32 u64 Number);

macro_rules! sets {
    ($($set:ident: $($bound:ident)?;)*) => {$(
        impl<T: Element $(+ $bound)?> Attribute for $set<T> {
            // DynamoDB has no empty sets: an empty set is stored as an absent attribute.
            const OPTIONAL: bool = true;

            fn to_value(&self) -> Result<Option<Value>, Invalid> {
                if self.is_empty() {
                    return Ok(None);
                }
                T::set_value(self.iter()).map(Some)
            }
            fn from_value(value: Option<&Value>) -> Result<Self, Invalid> {
                match value {
                    Some(value) => T::elements(value),
                    None => Ok(Self::new()),
                }
            }
            fn json_schema() -> Json {
                json!({"type": "array", "uniqueItems": true, "items": T::json_schema()})
            }
        }
    )*};
}

sets! {
    BTreeSet: ;
    HashSet: Hash;
}

#[cfg(test)]
mod tests;
