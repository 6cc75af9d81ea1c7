//! What derived code of all patterns calls. It is public for that alone and changes without notice.

use floe_store::{Item, Value};

use super::Invalid;
use crate::error::{Error, Result};

/// The value of an attribute. If the item lacks it and the type has no value for that, as `None` or an
/// empty set, it is the default.
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

/// Stores a field, unless it is absent.
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

/// Reads a field.
pub fn read_field<T>(
    owner: &str,
    field: &'static str,
    attribute: &'static str,
    item: &Item,
    read: impl FnOnce(Option<&Value>) -> Result<T, Invalid>,
) -> Result<T> {
    read(item.get(attribute)).map_err(|invalid| Error::invalid(owner, field, &invalid))
}
