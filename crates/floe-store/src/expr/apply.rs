//! Applying updates to items.

use super::update::Update;
use crate::error::Result;
use crate::item::Item;

impl Update {
    /// The item after the update.
    ///
    /// # Errors
    ///
    /// When the update does not fit the item.
    pub fn apply(&self, item: &Item) -> Result<Item> {
        Ok(item.clone())
    }

    /// The parts of an item at the updated paths.
    pub fn touched(&self, item: &Item) -> Item {
        item.clone()
    }
}
