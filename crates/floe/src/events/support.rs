//! Functions that derived code calls to encode and decode the bodies of events. Public only for that; may change without
//! notice.
//!
//! A body is written field by field into one buffer, and read in one pass: each field of a variant is a [`Slot`], and
//! the slots of a variant are nested pairs, `(Slot, (Slot, ()))`. So an enum does not need to derive serde's traits.

use std::fmt;

use serde::Serialize;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value as Json;

use crate::error::{Error, ErrorKind, Result};

/// Encodes a body that is a single value.
pub fn write_whole<T: Serialize + ?Sized>(event_type: &str, value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| encode_error(event_type, None, &error))
}

/// Initial capacity of the buffer: enough for most bodies.
const BODY_BYTES: usize = 256;

/// Encodes a body with fields.
#[derive(Debug)]
pub struct Writer {
    event_type: &'static str,
    json: Vec<u8>,
}

impl Writer {
    /// Starts an object.
    pub fn new(event_type: &'static str) -> Self {
        let mut json = Vec::with_capacity(BODY_BYTES);
        json.push(b'{');
        Self { event_type, json }
    }

    /// Writes a field.
    pub fn field<T: Serialize + ?Sized>(mut self, name: &str, value: &T) -> Result<Self> {
        if self.json.len() > 1 {
            self.json.push(b',');
        }
        self.write(name, name)?;
        self.json.push(b':');
        self.write(name, value)?;
        Ok(self)
    }

    fn write<T: Serialize + ?Sized>(&mut self, field: &str, value: &T) -> Result<()> {
        serde_json::to_writer(&mut self.json, value)
            .map_err(|error| encode_error(self.event_type, Some(field), &error))
    }

    /// Completes the object, and returns the body.
    pub fn finish(mut self) -> Vec<u8> {
        self.json.push(b'}');
        self.json
    }
}

/// A stored body, which is upcast step by step to the current version.
#[derive(Debug)]
pub struct Body<'b> {
    event_type: &'b str,
    version: u32,
    content: Content<'b>,
}

#[derive(Debug)]
enum Content<'b> {
    Stored(&'b [u8]),
    Upcast(Json),
}

impl<'b> Body<'b> {
    /// A body stored in this version.
    pub fn new(event_type: &'b str, version: u32, data: &'b [u8]) -> Self {
        Self {
            event_type,
            version,
            content: Content::Stored(data),
        }
    }

    /// Upcasts a body of this version to the next one. Returns bodies of other versions unchanged.
    pub fn upcast<E: fmt::Display>(
        self,
        version: u32,
        upcaster: impl FnOnce(Json) -> Result<Json, E>,
    ) -> Result<Self> {
        if self.version != version {
            return Ok(self);
        }
        let json = match self.content {
            Content::Stored([]) => Json::Null,
            Content::Stored(data) => serde_json::from_slice(data)
                .map_err(|error| decode_error(self.event_type, None, &error))?,
            Content::Upcast(json) => json,
        };
        let upcast = upcaster(json).map_err(|error| {
            let event_type = self.event_type;
            invalid(format!(
                "cannot upcast the body of an event: {error}: type={event_type} version={version}"
            ))
        })?;
        Ok(Self {
            version: version + 1,
            content: Content::Upcast(upcast),
            ..self
        })
    }

    /// Decodes a body that is a single value.
    pub fn whole<T: DeserializeOwned>(self) -> Result<T> {
        let value = match self.content {
            Content::Stored(data) => serde_json::from_slice(data),
            Content::Upcast(json) => serde_json::from_value(json),
        };
        value.map_err(|error| decode_error(self.event_type, None, &error))
    }

    /// Decodes the fields of the body into slots. An empty body has no fields.
    pub fn fields<F: Fields>(self, fields: &mut F) -> Result<()> {
        let mut field = None;
        let visitor = FieldsVisitor {
            fields,
            field: &mut field,
        };
        let read = match self.content {
            Content::Stored([]) => Ok(()),
            Content::Stored(data) => {
                let mut json = serde_json::Deserializer::from_slice(data);
                json.deserialize_any(visitor).and_then(|()| json.end())
            }
            Content::Upcast(json) => json.deserialize_any(visitor),
        };
        read.map_err(|error| decode_error(self.event_type, field, &error))
    }
}

/// The value of a field while the body is read.
#[derive(Debug)]
pub struct Slot<T> {
    name: &'static str,
    value: Option<T>,
}

/// Creates the slot of a field that was not read yet.
pub const fn slot<T: DeserializeOwned>(name: &'static str) -> Slot<T> {
    Slot { name, value: None }
}

impl<T: DeserializeOwned> Slot<T> {
    /// Returns the value. A missing field is `None` for an `Option`, otherwise an error.
    pub fn required(self, event_type: &str) -> Result<T> {
        let missing = || T::deserialize(Missing(self.name));
        let value = self.value.map_or_else(missing, Ok);
        value.map_err(|error| decode_error(event_type, Some(self.name), &error))
    }

    /// Returns the value, or the default for a missing field.
    pub fn or_else(self, default: impl FnOnce() -> T) -> T {
        self.value.unwrap_or_else(default)
    }
}

/// The slots of a variant.
pub trait Fields {
    /// Returns the position and the name of the slot for a field.
    fn find(&self, name: &str) -> Option<(usize, &'static str)>;

    /// Reads the value of a field into the slot at this position.
    fn read<'de, A: MapAccess<'de>>(&mut self, at: usize, map: &mut A) -> Result<(), A::Error>;
}

impl Fields for () {
    fn find(&self, _: &str) -> Option<(usize, &'static str)> {
        None
    }

    fn read<'de, A: MapAccess<'de>>(&mut self, _: usize, map: &mut A) -> Result<(), A::Error> {
        map.next_value::<IgnoredAny>().map(drop)
    }
}

impl<T: DeserializeOwned, R: Fields> Fields for (Slot<T>, R) {
    fn find(&self, name: &str) -> Option<(usize, &'static str)> {
        if self.0.name == name {
            return Some((0, self.0.name));
        }
        self.1.find(name).map(|(at, name)| (at + 1, name))
    }

    fn read<'de, A: MapAccess<'de>>(&mut self, at: usize, map: &mut A) -> Result<(), A::Error> {
        let Some(at) = at.checked_sub(1) else {
            if self.0.value.is_some() {
                return Err(A::Error::duplicate_field(self.0.name));
            }
            self.0.value = Some(map.next_value()?);
            return Ok(());
        };
        self.1.read(at, map)
    }
}

/// Reads an object into slots. Records the current field for error messages.
struct FieldsVisitor<'f, F> {
    fields: &'f mut F,
    field: &'f mut Option<&'static str>,
}

impl<'de, F: Fields> Visitor<'de> for FieldsVisitor<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the fields of the event")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(found) = map.next_key_seed(FieldName(&*self.fields))? {
            if let Some((at, name)) = found {
                *self.field = Some(name);
                self.fields.read(at, &mut map)?;
                *self.field = None;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Finds the slot for a key of an object.
struct FieldName<'f, F>(&'f F);

impl<'de, F: Fields> DeserializeSeed<'de> for FieldName<'_, F> {
    type Value = Option<(usize, &'static str)>;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Self::Value, D::Error> {
        key.deserialize_str(self)
    }
}

impl<'de, F: Fields> Visitor<'de> for FieldName<'_, F> {
    type Value = Option<(usize, &'static str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.find(name))
    }
}

/// The value of a missing field: `None` for an `Option`, an error for other types.
struct Missing(&'static str);

impl<'de> Deserializer<'de> for Missing {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(serde_json::Error::missing_field(self.0))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_none()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

fn encode_error(event_type: &str, field: Option<&str>, error: &serde_json::Error) -> Error {
    codec_error("encode", event_type, field, error)
}

fn decode_error(event_type: &str, field: Option<&str>, error: &serde_json::Error) -> Error {
    codec_error("decode", event_type, field, error)
}

fn codec_error(
    what: &str,
    event_type: &str,
    field: Option<&str>,
    error: &serde_json::Error,
) -> Error {
    let field = field.map_or_else(String::new, |field| format!(" field={field}"));
    invalid(format!(
        "cannot {what} the body of an event: {error}: type={event_type}{field}"
    ))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidEvent, message)
}
