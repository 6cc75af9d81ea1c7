//! Values and items as members of requests.

use floe_store::json::{
    Expected, Found, Layer, Named, Reader, Sent, Unreadable, ValueFault, read_item, read_value,
};
use floe_store::limits::{LITERAL_LEVELS_MAX, NESTING_LEVELS_MAX};
use floe_store::{Item, Value};

use super::read::{
    Place, Read, Str, check_parameterized, no_structure, unexpected_object, unfit, unrecognized,
};
use super::refusal::{Refusal, Result};
use super::voice::Voice;

/// Attributes by name: an item or a key.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Attributes {
    /// The attributes, of no worth if there is a fault.
    pub(crate) item: Item,
    /// What is wrong with them.
    pub(crate) fault: Option<ValueFault>,
}

/// A value, for instance of an expression.
pub(crate) type Attribute = Sent<Value>;

/// A value of an expression in a transaction, where DynamoDB lets values be as deep as expressions can hold them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TransactAttribute(pub(crate) Attribute);

impl Attributes {
    /// Whether one of them has an empty name, which is refused before everything else.
    pub(crate) fn is_nameless(&self) -> bool {
        self.fault.as_ref().is_some_and(ValueFault::is_nameless)
    }

    /// The attributes, or what is wrong with them.
    pub(crate) fn sound(self, voice: impl Into<Voice>) -> Result<Item> {
        match self.fault {
            None => Ok(self.item),
            Some(fault) => Err(voice.into().refuse_value(&fault)),
        }
    }
}

/// Refuses an attribute with an empty name.
pub(crate) fn nameless(layer: Layer) -> Refusal {
    Refusal::validation(ValueFault::EmptyName(Named::Attribute).message(layer))
}

impl<'a> Read<'a> for Attributes {
    const CLASS: &'static str =
        "java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>";

    fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self> {
        check_parameterized(reader, place)?;
        let Sent { value: item, fault } = read_item(reader)?;
        Ok(Self { item, fault })
    }
}

impl<'a> Read<'a> for Attribute {
    const CLASS: &'static str = "class com.amazonaws.dynamodb.v20120810.AttributeValue";

    fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self> {
        read_nested(reader, place, NESTING_LEVELS_MAX)
    }

    fn absent() -> Option<Self> {
        Some(Self {
            value: Value::Null,
            fault: Some(ValueFault::Empty),
        })
    }
}

impl<'a> Read<'a> for TransactAttribute {
    const CLASS: &'static str = <Attribute as Read<'_>>::CLASS;

    fn read(reader: &mut Reader<'a>, place: Place) -> Result<Self> {
        read_nested(reader, place, LITERAL_LEVELS_MAX).map(Self)
    }

    fn absent() -> Option<Self> {
        <Attribute as Read<'_>>::absent().map(Self)
    }
}

fn read_nested(reader: &mut Reader<'_>, place: Place, levels_max: usize) -> Result<Attribute> {
    read_value(reader, levels_max).map_err(|unreadable| match unreadable {
        Unreadable::Mismatch {
            expected: Expected::Value,
            found,
        } => no_structure(found, place, <Attribute as Read<'_>>::CLASS),
        unreadable => unreadable.into(),
    })
}

impl From<Unreadable> for Refusal {
    /// Refuses a request in the words of DynamoDB's framework.
    fn from(unreadable: Unreadable) -> Self {
        let (expected, found) = match unreadable {
            Unreadable::Mismatch { expected, found } => (expected, found),
            Unreadable::Malformed => return Self::Serialization(None),
            Unreadable::FlagWord => return Self::shape("Unexpected token received from parser"),
            Unreadable::Base64 { chars } => {
                return Self::shape(match chars % 4 {
                    0 => "Invalid last non-pad Base64 character dectected".to_owned(),
                    _ => format!(
                        "Base64 encoded length is expected a multiple of 4 bytes but found: {chars}"
                    ),
                });
            }
        };
        match expected {
            Expected::Attributes | Expected::Object => {
                no_structure(found, Place::Member, <Attributes as Read<'_>>::CLASS)
            }
            Expected::Value | Expected::Element => {
                no_structure(found, Place::Element, <Attribute as Read<'_>>::CLASS)
            }
            Expected::Text => unfit::<Str<'_>>(found, "String"),
            // Unlike the flags of a request, that of a value finds no words for an array.
            Expected::Flag if found == Found::Array => Self::Serialization(None),
            Expected::Flag => unfit::<bool>(found, "Boolean"),
            Expected::List | Expected::Bytes if found == Found::Object => unexpected_object(),
            Expected::Bytes if found == Found::Array => unrecognized("class java.nio.ByteBuffer"),
            Expected::Bytes => Self::shape("only base-64-encoded strings are convertible to bytes"),
            Expected::List => Self::shape("Unexpected field type"),
        }
    }
}
