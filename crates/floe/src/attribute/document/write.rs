//! A serde serializer that writes stored values.

use std::fmt;

use floe_store::{Item, Number, Value};
use serde::ser::{self, Serialize, Serializer};

use super::super::{Invalid, check_name, in_list, in_map, lost_some};
use super::map_key::KeyWriter;
use super::{deeper, stored_number};

/// The struct name under which serde_json serializes a number as text, if a program enables its
/// `arbitrary_precision`.
const JSON_NUMBER: &str = "$serde_json::private::Number";

impl ser::Error for Invalid {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

/// Writes one value at a nesting level of an attribute. Returns `None` for serde's `None`, whose meaning depends on the
/// container.
#[derive(Clone, Copy)]
pub(super) struct Writer {
    pub(super) level: usize,
}

type Written = Result<Option<Value>, Invalid>;

impl Writer {
    fn below(self) -> Result<Self, Invalid> {
        let level = deeper(self.level)?;
        Ok(Self { level })
    }

    /// Writes an element of a container that has no absent elements.
    fn part<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Invalid> {
        let written = value.serialize(self.below()?)?;
        Ok(written.unwrap_or(Value::Null))
    }
}

/// Wraps the content of an enum variant in a map under its name. Other values are unchanged.
fn of_variant(variant: Option<&'static str>, value: Value) -> Written {
    Ok(Some(match variant {
        Some(name) => Value::M(Item::with_capacity(1).with(name, value)),
        None => value,
    }))
}

macro_rules! numbers {
    ($($method:ident: $number:ty => |$value:ident| $written:expr;)*) => {$(
        fn $method(self, $value: $number) -> Written {
            $written.map(|number| Some(Value::N(number)))
        }
    )*};
}

impl Serializer for Writer {
    type Ok = Option<Value>;
    type Error = Invalid;
    type SerializeSeq = ListWriter;
    type SerializeTuple = ListWriter;
    type SerializeTupleStruct = ListWriter;
    type SerializeTupleVariant = ListWriter;
    type SerializeMap = MapWriter;
    type SerializeStruct = StructWriter;
    type SerializeStructVariant = StructWriter;

    numbers! {
        serialize_i8: i8 => |value| Ok(Number::from(value));
        serialize_i16: i16 => |value| Ok(Number::from(value));
        serialize_i32: i32 => |value| Ok(Number::from(value));
        serialize_i64: i64 => |value| Ok(Number::from(value));
        serialize_i128: i128 => |value| stored_number(&value.to_string());
        serialize_u8: u8 => |value| Ok(Number::from(value));
        serialize_u16: u16 => |value| Ok(Number::from(value));
        serialize_u32: u32 => |value| Ok(Number::from(value));
        serialize_u64: u64 => |value| Ok(Number::from(value));
        serialize_u128: u128 => |value| stored_number(&value.to_string());
        // The scientific form is the shortest decimal that reads back as the same float.
        serialize_f32: f32 => |value| stored_number(&format!("{value:e}"));
        serialize_f64: f64 => |value| stored_number(&format!("{value:e}"));
    }

    fn serialize_bool(self, value: bool) -> Written {
        Ok(Some(Value::Bool(value)))
    }

    fn serialize_char(self, value: char) -> Written {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Written {
        Ok(Some(Value::from(value)))
    }

    fn serialize_bytes(self, value: &[u8]) -> Written {
        Ok(Some(Value::from(value)))
    }

    fn serialize_none(self) -> Written {
        Ok(None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Written {
        value.serialize(self)?.map(Some).ok_or_else(lost_some)
    }

    fn serialize_unit(self) -> Written {
        Ok(Some(Value::Null))
    }

    fn serialize_unit_struct(self, _: &'static str) -> Written {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Written {
        self.serialize_str(variant)
    }

    // A struct around `None` is not `None`: serde would not read it from an absent field.
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Written {
        let written = value.serialize(self)?;
        Ok(Some(written.unwrap_or(Value::Null)))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Written {
        let value = self.part(value).map_err(in_map(variant))?;
        of_variant(Some(variant), value)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<ListWriter, Invalid> {
        Ok(ListWriter::new(self, None, length.unwrap_or(0)))
    }

    fn serialize_tuple(self, length: usize) -> Result<ListWriter, Invalid> {
        Ok(ListWriter::new(self, None, length))
    }

    fn serialize_tuple_struct(self, _: &'static str, length: usize) -> Result<ListWriter, Invalid> {
        Ok(ListWriter::new(self, None, length))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<ListWriter, Invalid> {
        let inner = self.below().map_err(in_map(variant))?;
        Ok(ListWriter::new(inner, Some(variant), length))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<MapWriter, Invalid> {
        Ok(MapWriter {
            writer: self,
            map: Item::new(),
            key: String::new(),
        })
    }

    fn serialize_struct(self, name: &'static str, length: usize) -> Result<StructWriter, Invalid> {
        let mut writer = StructWriter::new(self, None, length);
        writer.is_json_number = name == JSON_NUMBER;
        Ok(writer)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        length: usize,
    ) -> Result<StructWriter, Invalid> {
        let inner = self.below().map_err(in_map(variant))?;
        Ok(StructWriter::new(inner, Some(variant), length))
    }
}

/// Writes the elements of a list, which may be the content of an enum variant.
pub(super) struct ListWriter {
    writer: Writer,
    variant: Option<&'static str>,
    list: Vec<Value>,
}

/// Maximum preallocated elements: the length that a type announces is only a hint.
const ELEMENTS_HINT_MAX: usize = 1024;

impl ListWriter {
    fn new(writer: Writer, variant: Option<&'static str>, length: usize) -> Self {
        Self {
            writer,
            variant,
            list: Vec::with_capacity(length.min(ELEMENTS_HINT_MAX)),
        }
    }

    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Invalid> {
        let at = self.list.len();
        let written = self.writer.part(value).map_err(in_list(at));
        self.list.push(written.map_err(in_variant(self.variant))?);
        Ok(())
    }

    fn finish(self) -> Written {
        of_variant(self.variant, Value::L(self.list))
    }
}

fn in_variant(variant: Option<&'static str>) -> impl FnOnce(Invalid) -> Invalid {
    move |invalid| match variant {
        Some(variant) => in_map(variant)(invalid),
        None => invalid,
    }
}

macro_rules! list_writer {
    ($($of:ident $method:ident;)*) => {$(
        impl ser::$of for ListWriter {
            type Ok = Option<Value>;
            type Error = Invalid;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Invalid> {
                self.push(value)
            }

            fn end(self) -> Written {
                self.finish()
            }
        }
    )*};
}

list_writer! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

/// Writes the fields of a struct, which may be the content of an enum variant.
pub(super) struct StructWriter {
    writer: Writer,
    variant: Option<&'static str>,
    map: Item,
    /// Whether the struct represents a number by its text, as [`JSON_NUMBER`] does.
    is_json_number: bool,
}

impl StructWriter {
    fn new(writer: Writer, variant: Option<&'static str>, length: usize) -> Self {
        Self {
            writer,
            variant,
            map: Item::with_capacity(length.min(ELEMENTS_HINT_MAX)),
            is_json_number: false,
        }
    }

    fn write<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Invalid> {
        let written = if self.is_json_number {
            // The text of the number does not count as a nesting level.
            value.serialize(self.writer)
        } else {
            let inner = self.writer.below();
            inner.and_then(|inner| value.serialize(inner))
        };
        let in_field = |invalid| in_variant(self.variant)(in_map(name)(invalid));
        match written.map_err(in_field)? {
            Some(value) => insert(&mut self.map, name, value),
            None => Ok(()),
        }
    }

    fn finish(self) -> Written {
        if self.is_json_number {
            let text = self.map.get(JSON_NUMBER).and_then(Value::as_s);
            return stored_number(text.unwrap_or_default()).map(|number| Some(Value::N(number)));
        }
        of_variant(self.variant, Value::M(self.map))
    }
}

/// Inserts an entry. Rejects a duplicate name, because one of the two values would be lost.
fn insert(map: &mut Item, name: &str, value: Value) -> Result<(), Invalid> {
    if map.insert(name, value).is_some() {
        let duplicate = Invalid::new("two entries of the map have the same name");
        return Err(in_map(name)(duplicate));
    }
    Ok(())
}

macro_rules! struct_writer {
    ($($of:ident)*) => {$(
        impl ser::$of for StructWriter {
            type Ok = Option<Value>;
            type Error = Invalid;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Invalid> {
                self.write(name, value)
            }

            fn end(self) -> Written {
                self.finish()
            }
        }
    )*};
}

struct_writer!(SerializeStruct SerializeStructVariant);

/// Writes the entries of a map.
pub(super) struct MapWriter {
    writer: Writer,
    map: Item,
    /// The key whose value comes next.
    key: String,
}

impl ser::SerializeMap for MapWriter {
    type Ok = Option<Value>;
    type Error = Invalid;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Invalid> {
        self.key = key.serialize(KeyWriter)?;
        check_name(&self.key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Invalid> {
        let value = self.writer.part(value).map_err(in_map(&self.key))?;
        insert(&mut self.map, &self.key, value)
    }

    fn end(self) -> Written {
        Ok(Some(Value::M(self.map)))
    }
}
