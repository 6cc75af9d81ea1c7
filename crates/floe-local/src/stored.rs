//! An item with the bytes in which it is stored.

use floe_store::size::item_size;
use floe_store::{Item, Result};

use crate::kv::Bytes;
use crate::layout::item::{decode_sized, encode_sized};

/// An item as the table stores it.
pub(crate) struct StoredItem {
    /// The item.
    pub(crate) item: Item,
    /// Its bytes.
    pub(crate) bytes: Bytes,
    /// Its size as DynamoDB counts it.
    pub(crate) size: usize,
}

impl StoredItem {
    /// The item of these bytes.
    pub(crate) fn decode(bytes: Bytes) -> Result<Self> {
        let (size, item) = decode_sized(&bytes)?;
        Ok(Self { item, bytes, size })
    }

    /// The item, encoded.
    pub(crate) fn encode(item: Item) -> Self {
        let size = item_size(&item);
        let bytes = encode_sized(&item, size).into();
        Self { item, bytes, size }
    }
}
