//! Items that a table holds before a check starts, so that the check runs on a table of a certain size. They are never
//! written again, and each is a function of its number.

use std::sync::Arc;

use floe_store::op::BatchWriteItem;
use floe_store::{Engine, Item, Result};

use super::test_table::{Key, State, Step, TABLE};

const PARTITION: &str = "old-";
const PARTITION_ITEMS: u64 = 1000;
/// Maximum number of items in a batch.
const BATCH_ITEMS: u64 = floe_store::limits::BATCH_WRITE_ITEMS_MAX as u64;

/// The preloaded items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Preload {
    pub(super) items: u64,
}

impl Preload {
    /// Writes the batch that begins with this item. Returns the first item of the next batch.
    pub(super) async fn load(self, engine: &Arc<dyn Engine>, from: u64) -> Result<u64> {
        let until = (from + BATCH_ITEMS).min(self.items);
        let mut batch = BatchWriteItem::new();
        for number in from..until {
            batch = batch.put(TABLE, self.item(&Self::key(number)));
        }
        while !batch.requests.is_empty() {
            let output = engine.batch_write_item(batch).await?;
            batch = BatchWriteItem {
                requests: output.unprocessed,
                ..BatchWriteItem::new()
            };
        }
        Ok(until)
    }

    /// Whether the key is that of a preloaded item.
    pub(super) fn holds(self, key: &Key) -> bool {
        Self::number(key).is_some_and(|number| number < self.items)
    }

    /// Returns the item with this key. Its group is not one that the clients use.
    pub(super) fn item(self, key: &Key) -> Item {
        let stamp = Self::number(key).unwrap_or_default();
        let step = Step {
            version: 1,
            stamp,
            state: State::Set,
        };
        let mut item = step.item(key).unwrap_or_default();
        if let Some(group) = item.get_mut("group") {
            *group = format!("old-group-{}", stamp / PARTITION_ITEMS).into();
        }
        item
    }

    /// Counts the items that satisfy a predicate.
    pub(super) fn count(self, predicate: impl Fn(&Item) -> bool) -> u64 {
        let items = (0..self.items).map(|number| self.item(&Self::key(number)));
        items.filter(predicate).map(|_| 1).sum()
    }

    fn key(number: u64) -> Key {
        let partition = format!("{PARTITION}{}", number / PARTITION_ITEMS);
        Key::new(partition, number % PARTITION_ITEMS)
    }

    fn number(key: &Key) -> Option<u64> {
        let partition: u64 = key.partition.strip_prefix(PARTITION)?.parse().ok()?;
        Some(partition * PARTITION_ITEMS + key.sort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_is_derived_from_its_key() {
        let preload = Preload { items: 2500 };
        let key = Preload::key(2400);
        assert_eq!(key.to_string(), "old-2/400");
        assert!(preload.holds(&key));
        assert!(!preload.holds(&Preload::key(2500)));
        assert!(!preload.holds(&Key::new("own-1", 1)));
        assert_eq!(Key::of(&preload.item(&key)), Some(key));
        assert_eq!(preload.count(|_| true), 2500);
        assert_eq!(preload.count(|item| item.contains("group")), 2000);
    }
}
