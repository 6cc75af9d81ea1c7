//! What derived code calls. It is public for that alone and changes without notice.

pub use floe_store::{Item, Value};

use super::key::version_of;
use super::schema::RegistrySchema;
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

/// Whether an item is a version that is not gone.
pub fn is_version(schema: &RegistrySchema, item: &Item) -> bool {
    version_of(schema, item).is_some() && !item.contains(schema.deleted)
}
