//! Values and items in requests.

use floe_store::json::{
    Expected, Found, NameKind, Parsed, ReadError, Reader, ValidationLayer, ValueFault, read_item,
    read_value,
};
use floe_store::limits::{LITERAL_LEVELS_MAX, NESTING_LEVELS_MAX};
use floe_store::{Item, Value};

use super::error_style::ErrorStyle;
use super::read::{
    Read, Str, ValueContext, check_parameterized, not_an_object, type_mismatch, unexpected_array,
    unexpected_object,
};
use super::request_error::{RequestError, Result};

/// Attributes by name: an item or a key.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Attributes {
    /// The attributes. Meaningless if there is a fault.
    pub(crate) item: Item,
    /// The first fault of the attributes.
    pub(crate) fault: Option<ValueFault>,
}

/// A value, for example of an expression.
pub(crate) type Attribute = Parsed<Value>;

/// An expression value in a transaction, where DynamoDB allows the nesting depth of expression literals.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TransactAttribute(pub(crate) Attribute);

impl Attributes {
    /// Whether an attribute has an empty name, which is reported before all other faults.
    pub(crate) fn has_empty_name(&self) -> bool {
        self.fault.as_ref().is_some_and(ValueFault::is_empty_name)
    }

    /// Returns the attributes, or their fault as an error.
    pub(crate) fn into_valid(self, style: impl Into<ErrorStyle>) -> Result<Item> {
        match self.fault {
            None => Ok(self.item),
            Some(fault) => Err(style.into().value_error(&fault)),
        }
    }
}

/// Returns the error for an attribute with an empty name.
pub(crate) fn empty_name_error(layer: ValidationLayer) -> RequestError {
    RequestError::validation(ValueFault::EmptyName(NameKind::Attribute).message(layer))
}

impl<'a> Read<'a> for Attributes {
    const CLASS: &'static str =
        "java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>";

    fn read(reader: &mut Reader<'a>, context: ValueContext) -> Result<Self> {
        check_parameterized(reader, context)?;
        let Parsed { value: item, fault } = read_item(reader)?;
        Ok(Self { item, fault })
    }
}

impl<'a> Read<'a> for Attribute {
    const CLASS: &'static str = "class com.amazonaws.dynamodb.v20120810.AttributeValue";

    fn read(reader: &mut Reader<'a>, context: ValueContext) -> Result<Self> {
        read_nested(reader, context, NESTING_LEVELS_MAX)
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

    fn read(reader: &mut Reader<'a>, context: ValueContext) -> Result<Self> {
        read_nested(reader, context, LITERAL_LEVELS_MAX).map(Self)
    }

    fn absent() -> Option<Self> {
        <Attribute as Read<'_>>::absent().map(Self)
    }
}

fn read_nested(
    reader: &mut Reader<'_>,
    context: ValueContext,
    levels_max: usize,
) -> Result<Attribute> {
    read_value(reader, levels_max).map_err(|unreadable| match unreadable {
        ReadError::Mismatch {
            expected: Expected::Value,
            found,
        } => not_an_object(found, context, <Attribute as Read<'_>>::CLASS),
        unreadable => unreadable.into(),
    })
}

impl From<ReadError> for RequestError {
    /// Uses the messages of DynamoDB's framework.
    fn from(unreadable: ReadError) -> Self {
        let (expected, found) = match unreadable {
            ReadError::Mismatch { expected, found } => (expected, found),
            ReadError::Malformed => return Self::Serialization(None),
            ReadError::InvalidFlag => {
                return Self::wrong_type("Unexpected token received from parser");
            }
            ReadError::Base64 { chars } => {
                return Self::wrong_type(match chars % 4 {
                    0 => "Invalid last non-pad Base64 character dectected".to_owned(),
                    _ => format!(
                        "Base64 encoded length is expected a multiple of 4 bytes but found: {chars}"
                    ),
                });
            }
        };
        match expected {
            Expected::Attributes | Expected::Object => {
                not_an_object(found, ValueContext::Member, <Attributes as Read<'_>>::CLASS)
            }
            Expected::Value | Expected::Element => {
                not_an_object(found, ValueContext::Element, <Attribute as Read<'_>>::CLASS)
            }
            Expected::Text => type_mismatch::<Str<'_>>(found, "String"),
            // Unlike a boolean parameter, a boolean value has no message for an array.
            Expected::Flag if found == Found::Array => Self::Serialization(None),
            Expected::Flag => type_mismatch::<bool>(found, "Boolean"),
            Expected::List | Expected::Bytes if found == Found::Object => unexpected_object(),
            Expected::Bytes if found == Found::Array => {
                unexpected_array("class java.nio.ByteBuffer")
            }
            Expected::Bytes => {
                Self::wrong_type("only base-64-encoded strings are convertible to bytes")
            }
            Expected::List => Self::wrong_type("Unexpected field type"),
        }
    }
}
