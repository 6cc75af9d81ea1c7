//! Functions called by derived code. Not part of the public API: they may change at any time.

pub use floe_store::Item;

use super::keys::Id;
use super::node::Node;
use crate::attribute::Invalid;
pub use crate::attribute::support::{read_field, write_field};
use crate::error::{Error, Result};

/// Decodes the id.
pub fn read_id<T: Id>(entity: &str, field: &'static str, node: &Node) -> Result<T> {
    T::from_id(node.key.id()).ok_or_else(|| {
        let reason = format!(
            "the id does not match the type of the field: id={}",
            node.key.id()
        );
        Error::invalid(entity, field, &Invalid::new(reason))
    })
}
