//! Items and values, converted in both directions without loss: numbers keep all digits, bytes stay bytes.

use std::collections::HashMap;

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;
use floe_store::{Item, Number, Result, Set, SetError, Value};

use super::invalid_response;

/// Converts an item for a request.
pub(super) fn attributes(item: &Item) -> HashMap<String, AttributeValue> {
    let attributes = item.iter();
    attributes
        .map(|(name, value)| (name.to_string(), attribute(value)))
        .collect()
}

/// Converts a value for a request.
pub(super) fn attribute(value: &Value) -> AttributeValue {
    match value {
        Value::S(text) => AttributeValue::S(text.to_string()),
        Value::N(number) => AttributeValue::N(number.to_string()),
        Value::B(bytes) => AttributeValue::B(Blob::new(bytes.clone())),
        Value::Bool(bool) => AttributeValue::Bool(*bool),
        Value::Null => AttributeValue::Null(true),
        Value::M(map) => AttributeValue::M(attributes(map)),
        Value::L(list) => AttributeValue::L(list.iter().map(attribute).collect()),
        Value::Ss(set) => AttributeValue::Ss(set.iter().map(ToString::to_string).collect()),
        Value::Ns(set) => AttributeValue::Ns(set.iter().map(ToString::to_string).collect()),
        Value::Bs(set) => AttributeValue::Bs(set.iter().map(|b| Blob::new(b.clone())).collect()),
    }
}

/// The value types of the table and stream services are identical except for their names.
macro_rules! readers {
    ($value:ident, $item:ident, $attribute:path) => {
        /// Converts a value of a response.
        fn $value(attribute: $attribute) -> Result<Value> {
            use $attribute as Attribute;
            Ok(match attribute {
                Attribute::S(text) => Value::from(text),
                Attribute::N(text) => Value::N(number(&text)?),
                Attribute::B(blob) => Value::B(blob.into_inner()),
                Attribute::Bool(bool) => Value::Bool(bool),
                Attribute::Null(_) => Value::Null,
                Attribute::M(map) => Value::M($item(map)?),
                Attribute::L(list) => {
                    let list: Result<_> = list.into_iter().map($value).collect();
                    Value::L(list?)
                }
                Attribute::Ss(texts) => Value::Ss(set(texts.into_iter().map(Into::into))?),
                Attribute::Ns(texts) => {
                    let numbers: Result<Vec<_>> = texts.iter().map(|text| number(text)).collect();
                    Value::Ns(set(numbers?)?)
                }
                Attribute::Bs(blobs) => Value::Bs(set(blobs.into_iter().map(|b| b.into_inner()))?),
                _ => return Err(invalid_response("a value of an unknown type")),
            })
        }

        /// Converts an item of a response.
        pub(super) fn $item(attributes: HashMap<String, $attribute>) -> Result<Item> {
            let attributes = attributes.into_iter();
            attributes
                .map(|(name, attribute)| Ok((name, $value(attribute)?)))
                .collect()
        }
    };
}

readers!(value, item, aws_sdk_dynamodb::types::AttributeValue);
readers!(
    stream_value,
    stream_item,
    aws_sdk_dynamodbstreams::types::AttributeValue
);

fn number(text: &str) -> Result<Number> {
    text.parse()
        .map_err(|error| invalid_response(format_args!("{error} number={text}")))
}

fn set<T: Ord>(elements: impl IntoIterator<Item = T>) -> Result<Set<T>> {
    Set::new(elements).map_err(|error: SetError| invalid_response(error))
}

/// Converts the items of a response.
pub(super) fn items(response: Vec<HashMap<String, AttributeValue>>) -> Result<Vec<Item>> {
    response.into_iter().map(item).collect()
}

#[cfg(test)]
mod tests;
