//! Reads of items by their keys.

use floe_store::op::{BatchGetItem, GetItem};
use floe_store::{Error as StoreError, Item, Result};

use super::{Attempts, Budget};
use crate::db::Db;

/// Maximum consecutive responses that process none of the keys.
const EMPTY_RESPONSES_MAX: u32 = 9;

/// An item to read.
#[derive(Clone, Debug)]
pub(crate) struct ItemRequest<'a> {
    pub(crate) table: &'a str,
    pub(crate) key: Item,
    pub(crate) consistent: bool,
}

impl ItemRequest<'_> {
    pub(crate) fn is_same_item(&self, other: &Self) -> bool {
        self.table == other.table && self.key == other.key
    }

    fn is_for(&self, table: &str, item: &Item) -> bool {
        let mut key = self.key.iter();
        self.table == table && key.all(|(name, value)| item.get(name) == Some(value))
    }
}

/// Reads one item.
///
/// # Errors
///
/// The engine's error.
pub(crate) async fn get(db: &Db, request: ItemRequest<'_>) -> Result<Option<Item>> {
    let mut get = GetItem::new(request.table, request.key);
    if !request.consistent {
        get = get.eventual();
    }
    Ok(db.engine().get_item(get).await?.item)
}

/// Reads up to 100 items, and returns them in the order of their requests. Unprocessed keys are requested again: at once
/// if the engine processed other keys, else after a pause.
///
/// # Errors
///
/// The engine's error; [`StoreError::Throttling`] if it processes no key for too long.
pub(crate) async fn batch_get(db: &Db, requests: &[ItemRequest<'_>]) -> Result<Vec<Option<Item>>> {
    let mut found: Vec<Option<Item>> = vec![None; requests.len()];
    let mut batch = BatchGetItem::new();
    for request in requests {
        let of_table = batch.requests.entry(request.table.to_owned()).or_default();
        of_table.keys.push(request.key.clone());
        of_table.consistent = request.consistent;
    }
    let mut remaining = requests.len();
    let mut budget = Budget::for_write();
    budget.sends_max = EMPTY_RESPONSES_MAX;
    let mut attempts = Attempts::new(db, budget);
    loop {
        attempts.count();
        let output = db.engine().batch_get_item(batch).await?;
        for (table, items) in output.items {
            for item in items {
                let wanted = requests.iter().zip(&mut found);
                let mut wanted = wanted.filter(|(request, _)| request.is_for(&table, &item));
                if let Some((_, slot)) = wanted.next() {
                    *slot = Some(item);
                }
            }
        }
        let unprocessed = output.unprocessed;
        let remaining_before = remaining;
        remaining = unprocessed.values().map(|keys| keys.keys.len()).sum();
        if remaining == 0 {
            return Ok(found);
        }
        if remaining < remaining_before {
            attempts.reset();
        } else if attempts.has_attempts_left() {
            attempts.pause().await;
        } else {
            return Err(StoreError::Throttling(format!(
                "the store processed no key of a batch: responses={EMPTY_RESPONSES_MAX}"
            )));
        }
        batch = BatchGetItem::new();
        batch.requests = unprocessed;
    }
}
