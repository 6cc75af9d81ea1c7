//! How long the values of a key are, and what DynamoDB says of those that are empty or too long.
//!
//! The rule is one for keys that are written, read and queried, of tables and of indexes.

use crate::error::Error;
use crate::value::Value;

/// What a value adds to the length of a key. Numbers never make a key too long.
pub(crate) fn key_bytes(value: &Value) -> usize {
    match value {
        Value::S(text) => text.len(),
        Value::B(bytes) => bytes.len(),
        _ => 0,
    }
}

/// The error of a partition key over [its limit](crate::limits::PARTITION_KEY_BYTES_MAX).
pub(crate) fn partition_too_long() -> Error {
    // DynamoDB leaves out the space.
    Error::validation(
        "One or more parameter values were invalid: \
         Size of hashkey has exceeded the maximum size limit of2048 bytes",
    )
}

/// The error of a sort key over [its limit](crate::limits::SORT_KEY_BYTES_MAX).
pub(crate) fn sort_too_long() -> Error {
    Error::validation(
        "One or more parameter values were invalid: \
         Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
    )
}

/// The error of an empty value of a key.
pub(crate) fn empty_value(kind: &str, name: &str) -> Error {
    Error::Validation(format!(
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty \
         {kind} value. Key: {name}"
    ))
}
