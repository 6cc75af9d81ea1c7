//! What derived code calls. It is public for that alone and changes without notice.

pub use floe_store::Item;

use floe_store::Value;

use super::keys::Id;
use super::node::Node;
use crate::error::{Error, Result};
use crate::model::attribute::Invalid;

/// Stores a field, unless it is absent.
pub fn write_field(
    entity: &str,
    field: &'static str,
    attribute: &'static str,
    value: Result<Option<Value>, Invalid>,
    attributes: &mut Item,
) -> Result<()> {
    let value = value.map_err(|invalid| Error::invalid(entity, field, &invalid))?;
    if let Some(value) = value {
        attributes.insert(attribute, value);
    }
    Ok(())
}

/// Reads a field.
pub fn read_field<T>(
    entity: &str,
    field: &'static str,
    attribute: &'static str,
    node: &Node,
    read: impl FnOnce(Option<&Value>) -> Result<T, Invalid>,
) -> Result<T> {
    read(node.get(attribute)).map_err(|invalid| Error::invalid(entity, field, &invalid))
}

/// Reads the id.
pub fn read_id<T: Id>(entity: &str, field: &'static str, node: &Node) -> Result<T> {
    T::from_id(node.key.id()).ok_or_else(|| {
        let reason = format!("the id is not one of this type: id={}", node.key.id());
        Error::invalid(entity, field, &Invalid::new(reason))
    })
}
