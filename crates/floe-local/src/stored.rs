//! An item with its stored bytes.

use floe_store::size::item_size;
use floe_store::{Item, Result};

use crate::kv::Bytes;
use crate::layout::item::{decode_sized, encode_sized};

/// An item with its stored bytes.
pub(crate) struct StoredItem {
    /// The decoded item.
    pub(crate) item: Item,
    /// The stored bytes.
    pub(crate) bytes: Bytes,
    /// The size by DynamoDB's rules.
    pub(crate) size: usize,
}

impl StoredItem {
    /// Decodes an item.
    pub(crate) fn decode(bytes: Bytes) -> Result<Self> {
        let (size, item) = decode_sized(&bytes)?;
        Ok(Self { item, bytes, size })
    }

    /// Encodes an item.
    pub(crate) fn encode(item: Item) -> Self {
        let size = item_size(&item);
        let bytes = encode_sized(&item, size).into();
        Self { item, bytes, size }
    }
}
