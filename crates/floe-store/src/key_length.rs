//! The length of key values, and DynamoDB's errors for empty and overlong ones.
//!
//! The rule is the same for keys that are written, read and queried, in tables and indexes.

use crate::error::Error;
use crate::value::Value;

/// Returns the number of bytes that a value adds to the length of a key. Numbers count as zero: they cannot make a key
/// too long.
pub(crate) fn key_bytes(value: &Value) -> usize {
    match value {
        Value::S(text) => text.len(),
        Value::B(bytes) => bytes.len(),
        _ => 0,
    }
}

/// The error for a partition key above [the limit](crate::limits::PARTITION_KEY_BYTES_MAX).
pub(crate) fn partition_too_long() -> Error {
    // The missing space is DynamoDB's.
    Error::validation(
        "One or more parameter values were invalid: \
         Size of hashkey has exceeded the maximum size limit of2048 bytes",
    )
}

/// The error for a sort key above [the limit](crate::limits::SORT_KEY_BYTES_MAX).
pub(crate) fn sort_too_long() -> Error {
    Error::validation(
        "One or more parameter values were invalid: \
         Aggregated size of all range keys has exceeded the size limit of 1024 bytes",
    )
}

/// The error for an empty key value.
pub(crate) fn empty_value(kind: &str, name: &str) -> Error {
    Error::Validation(format!(
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty \
         {kind} value. Key: {name}"
    ))
}
