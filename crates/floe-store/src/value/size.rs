//! Sizes of values; [`size`](crate::size) documents the rules.

use super::Value;
use crate::number::Number;

/// The size of a map or list in addition to its entries.
pub const CONTAINER_BYTES: usize = 3;

/// The size of an entry of a map or list in addition to its name and value.
pub const ENTRY_BYTES: usize = 1;

/// Returns the size of an attribute: name and value.
pub fn attribute_size(name: &str, value: &Value) -> usize {
    name.len() + value_size(value)
}

/// Returns the size of a value without a name.
///
/// ```
/// use floe_store::{Value, size::value_size};
///
/// assert_eq!(value_size(&Value::from("häß")), 5);
/// assert_eq!(value_size(&Value::L(vec![])), 3);
/// assert_eq!(value_size(&Value::L(vec![Value::Null])), 3 + 1 + 1);
/// ```
pub fn value_size(value: &Value) -> usize {
    match value {
        Value::S(text) => text.len(),
        Value::N(number) => number.size_bytes(),
        Value::B(bytes) => bytes.len(),
        Value::Bool(_) | Value::Null => 1,
        Value::M(map) => map.iter().fold(CONTAINER_BYTES, |sum, (name, value)| {
            sum + ENTRY_BYTES + attribute_size(name, value)
        }),
        Value::L(list) => list.iter().fold(CONTAINER_BYTES, |sum, value| {
            sum + ENTRY_BYTES + value_size(value)
        }),
        Value::Ss(set) => set.iter().map(|text| text.len()).sum(),
        Value::Ns(set) => set.iter().map(Number::size_bytes).sum(),
        Value::Bs(set) => set.iter().map(Vec::len).sum(),
    }
}
