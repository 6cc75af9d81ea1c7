//! Functions called by the derived code of all patterns. Not part of the public API.

use floe_store::{Item, Value};

use super::Invalid;
use crate::error::{Error, Result};

/// Decodes an attribute. If it is absent and the type has no value for absence, such as `None` or an empty set, returns
/// the default.
pub fn or_default<T>(
    stored: Option<&Value>,
    decode: fn(Option<&Value>) -> Result<T, Invalid>,
    default: fn() -> T,
) -> Result<T, Invalid> {
    match (stored, decode(stored)) {
        (None, Err(_)) => Ok(default()),
        (_, decoded) => decoded,
    }
}

/// Writes a field to an item, unless it is absent.
pub fn write_field(
    owner: &str,
    field: &'static str,
    attribute: &'static str,
    value: Result<Option<Value>, Invalid>,
    attributes: &mut Item,
) -> Result<()> {
    let value = value.map_err(|invalid| Error::invalid(owner, field, &invalid))?;
    if let Some(value) = value {
        attributes.insert(attribute, value);
    }
    Ok(())
}

/// Reads a field of an item.
pub fn read_field<T>(
    owner: &str,
    field: &'static str,
    attribute: &'static str,
    item: &Item,
    read: impl FnOnce(Option<&Value>) -> Result<T, Invalid>,
) -> Result<T> {
    read(item.get(attribute)).map_err(|invalid| Error::invalid(owner, field, &invalid))
}
