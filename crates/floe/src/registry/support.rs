//! What derived code calls. It is public for that alone and changes without notice.

pub use floe_store::{Item, Value};

use crate::error::{Error, Result};
use crate::model::attribute::Invalid;

/// Stores a field, unless it is absent.
pub fn write_field(
    registry: &str,
    field: &'static str,
    attribute: &'static str,
    value: Result<Option<Value>, Invalid>,
    attributes: &mut Item,
) -> Result<()> {
    let value = value.map_err(|invalid| Error::invalid(registry, field, &invalid))?;
    if let Some(value) = value {
        attributes.insert(attribute, value);
    }
    Ok(())
}

/// Reads a field.
pub fn read_field<T>(
    registry: &str,
    field: &'static str,
    attribute: &'static str,
    item: &Item,
    read: impl FnOnce(Option<&Value>) -> Result<T, Invalid>,
) -> Result<T> {
    read(item.get(attribute)).map_err(|invalid| Error::invalid(registry, field, &invalid))
}
