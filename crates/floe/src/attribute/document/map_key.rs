//! Map keys, which are stored as text: conversion of other types to text and back.

use serde::de::{Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde::ser::{Impossible, Serialize, Serializer};

use super::super::Invalid;

/// Writes the key of a map as text.
pub(super) struct KeyWriter;

type Unsupported = Impossible<String, Invalid>;

fn not_text<T>() -> Result<T, Invalid> {
    Err(Invalid::new("a map key is neither text nor an integer"))
}

macro_rules! text_keys {
    ($($method:ident: $key:ty;)*) => {$(
        fn $method(self, key: $key) -> Result<String, Invalid> {
            Ok(key.to_string())
        }
    )*};
}

/// Types that cannot be keys of a map.
macro_rules! other_keys {
    ($($method:ident($($part:ty),*) -> $written:ty;)*) => {$(
        fn $method(self, $(_: $part),*) -> Result<$written, Invalid> {
            not_text()
        }
    )*};
}

impl Serializer for KeyWriter {
    type Ok = String;
    type Error = Invalid;
    type SerializeSeq = Unsupported;
    type SerializeTuple = Unsupported;
    type SerializeTupleStruct = Unsupported;
    type SerializeTupleVariant = Unsupported;
    type SerializeMap = Unsupported;
    type SerializeStruct = Unsupported;
    type SerializeStructVariant = Unsupported;

    text_keys! {
        serialize_bool: bool;
        serialize_i8: i8;
        serialize_i16: i16;
        serialize_i32: i32;
        serialize_i64: i64;
        serialize_i128: i128;
        serialize_u8: u8;
        serialize_u16: u16;
        serialize_u32: u32;
        serialize_u64: u64;
        serialize_u128: u128;
        serialize_char: char;
        serialize_str: &str;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<String, Invalid> {
        value.serialize(self)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<String, Invalid> {
        Ok(variant.to_owned())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<String, Invalid> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<String, Invalid> {
        not_text()
    }

    other_keys! {
        serialize_f32(f32) -> String;
        serialize_f64(f64) -> String;
        serialize_bytes(&[u8]) -> String;
        serialize_none() -> String;
        serialize_unit() -> String;
        serialize_unit_struct(&'static str) -> String;
        serialize_seq(Option<usize>) -> Unsupported;
        serialize_tuple(usize) -> Unsupported;
        serialize_tuple_struct(&'static str, usize) -> Unsupported;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Unsupported;
        serialize_map(Option<usize>) -> Unsupported;
        serialize_struct(&'static str, usize) -> Unsupported;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Unsupported;
    }
}

/// Reads the key of a map from its text.
pub(super) struct KeyReader<'de>(pub(super) &'de str);

macro_rules! parsed_keys {
    ($($method:ident $visit:ident: $key:ty;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
            match self.0.parse::<$key>() {
                Ok(key) => visitor.$visit(key),
                Err(_) => visitor.visit_borrowed_str(self.0),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for KeyReader<'de> {
    type Error = Invalid;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        visitor.visit_borrowed_str(self.0)
    }

    parsed_keys! {
        deserialize_bool visit_bool: bool;
        deserialize_i8 visit_i8: i8;
        deserialize_i16 visit_i16: i16;
        deserialize_i32 visit_i32: i32;
        deserialize_i64 visit_i64: i64;
        deserialize_i128 visit_i128: i128;
        deserialize_u8 visit_u8: u8;
        deserialize_u16 visit_u16: u16;
        deserialize_u32 visit_u32: u32;
        deserialize_u64 visit_u64: u64;
        deserialize_u128 visit_u128: u128;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Invalid> {
        visitor.visit_some(self)
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
        visitor.visit_enum(self.0.into_deserializer())
    }

    forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct
        identifier ignored_any
    }
}
