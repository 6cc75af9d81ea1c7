//! Functions called by derived code. Not part of the public API: they may change at any time.

pub use floe_store::{Item, Value};

use super::keys::version_of;
use super::schema::RegistrySchema;
pub use crate::attribute::support::{read_field, write_field};

/// Whether an item is a version that is not deleted.
pub fn is_version(schema: &RegistrySchema, item: &Item) -> bool {
    version_of(schema, item).is_some() && !item.contains(schema.deleted)
}
