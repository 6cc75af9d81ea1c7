//! What derived code calls to write and read the bodies of events. It is public for that alone and changes without
//! notice.
//!
//! A body is written field by field into one buffer, and read in one pass: each field of a variant is a [`Slot`], and
//! the slots of a variant are nested pairs, `(Slot, (Slot, ()))`. So nobody has to derive serde's traits for an enum.

use std::fmt;

use serde::Serialize;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::Value as Json;

use crate::error::{Error, ErrorKind, Result};

/// The body of an event that is one value.
pub fn write_whole<T: Serialize + ?Sized>(event_type: &str, value: &T) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| unwritable(event_type, None, &error))
}

/// Room for the body of most events, so that it does not move while it is written.
const BODY_BYTES: usize = 256;

/// The body of an event that has fields.
#[derive(Debug)]
pub struct Writer {
    event_type: &'static str,
    json: Vec<u8>,
}

impl Writer {
    /// An object without fields.
    pub fn new(event_type: &'static str) -> Self {
        let mut json = Vec::with_capacity(BODY_BYTES);
        json.push(b'{');
        Self { event_type, json }
    }

    /// Adds a field.
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
            .map_err(|error| unwritable(self.event_type, Some(field), &error))
    }

    /// The body.
    pub fn finish(mut self) -> Vec<u8> {
        self.json.push(b'}');
        self.json
    }
}

/// A body that was stored, on its way to the version that the program knows.
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
    /// A body that was stored in this version.
    pub fn new(event_type: &'b str, version: u32, data: &'b [u8]) -> Self {
        Self {
            event_type,
            version,
            content: Content::Stored(data),
        }
    }

    /// Makes the next version of a body that is of this one; leaves others as they are.
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
                .map_err(|error| unreadable(self.event_type, None, &error))?,
            Content::Upcast(json) => json,
        };
        let upcast = upcaster(json).map_err(|error| {
            let event_type = self.event_type;
            invalid(format!(
                "the body of an event cannot be upcast: {error}: type={event_type} version={version}"
            ))
        })?;
        Ok(Self {
            version: version + 1,
            content: Content::Upcast(upcast),
            ..self
        })
    }

    /// The one value that the body is.
    pub fn whole<T: DeserializeOwned>(self) -> Result<T> {
        let value = match self.content {
            Content::Stored(data) => serde_json::from_slice(data),
            Content::Upcast(json) => serde_json::from_value(json),
        };
        value.map_err(|error| unreadable(self.event_type, None, &error))
    }

    /// Fills the slots with the fields of the body. A body that says nothing has none.
    pub fn fields<F: Fields>(self, fields: &mut F) -> Result<()> {
        let mut field = None;
        let reader = Reader {
            fields,
            field: &mut field,
        };
        let read = match self.content {
            Content::Stored([]) => Ok(()),
            Content::Stored(data) => {
                let mut json = serde_json::Deserializer::from_slice(data);
                json.deserialize_any(reader).and_then(|()| json.end())
            }
            Content::Upcast(json) => json.deserialize_any(reader),
        };
        read.map_err(|error| unreadable(self.event_type, field, &error))
    }
}

/// The place of a field until the body is read.
#[derive(Debug)]
pub struct Slot<T> {
    name: &'static str,
    value: Option<T>,
}

/// The slot of a field that was not met yet.
pub const fn slot<T: DeserializeOwned>(name: &'static str) -> Slot<T> {
    Slot { name, value: None }
}

impl<T: DeserializeOwned> Slot<T> {
    /// The value, or what the field is without one: `None` for an `Option`, an error for others.
    pub fn required(self, event_type: &str) -> Result<T> {
        let missing = || T::deserialize(Missing(self.name));
        let value = self.value.map_or_else(missing, Ok);
        value.map_err(|error| unreadable(event_type, Some(self.name), &error))
    }

    /// The value, or the default.
    pub fn or_else(self, default: impl FnOnce() -> T) -> T {
        self.value.unwrap_or_else(default)
    }
}

/// The slots of a variant.
pub trait Fields {
    /// The name of the slot for a field, and how many slots stand before it.
    fn find(&self, name: &str) -> Option<(usize, &'static str)>;

    /// Reads the value of a field into the slot that so many stand before.
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

/// Reads an object into slots, and remembers at which field it is.
struct Reader<'f, F> {
    fields: &'f mut F,
    field: &'f mut Option<&'static str>,
}

impl<'de, F: Fields> Visitor<'de> for Reader<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the fields of the event")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(found) = map.next_key_seed(Name(&*self.fields))? {
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

/// Finds the slot that a key of an object names.
struct Name<'f, F>(&'f F);

impl<'de, F: Fields> DeserializeSeed<'de> for Name<'_, F> {
    type Value = Option<(usize, &'static str)>;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Self::Value, D::Error> {
        key.deserialize_str(self)
    }
}

impl<'de, F: Fields> Visitor<'de> for Name<'_, F> {
    type Value = Option<(usize, &'static str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.find(name))
    }
}

/// The value of a field that is not there: none, where that is a value.
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

fn unwritable(event_type: &str, field: Option<&str>, error: &serde_json::Error) -> Error {
    failed("written", event_type, field, error)
}

fn unreadable(event_type: &str, field: Option<&str>, error: &serde_json::Error) -> Error {
    failed("read", event_type, field, error)
}

fn failed(what: &str, event_type: &str, field: Option<&str>, error: &serde_json::Error) -> Error {
    let field = field.map_or_else(String::new, |field| format!(" field={field}"));
    invalid(format!(
        "the body of an event cannot be {what}: {error}: type={event_type}{field}"
    ))
}

fn invalid(message: String) -> Error {
    Error::new(ErrorKind::InvalidEvent, message)
}
