//! Reads the items of registries, as stored or as the transaction sees them.

use floe_store::Item;

use super::changes::Changes;
use super::keys::{GroupKey, ItemKey};
use crate::db::Db;
use crate::error::Result;
use crate::request::ItemRequest;
use crate::tx::Tx;
pub(super) use crate::tx::reads::Reads;

/// The error when the table of a registry is missing.
const MISSING: &str = "the table of the registry is missing: call ensure_registries";

impl<'a> Reads<'a> {
    /// Creates the reader of a registry.
    pub(super) const fn of_registry(db: &'a Db, tx: Option<&'a Tx>) -> Self {
        Self::new(db, tx, MISSING)
    }

    /// Reads the stored items of up to 100 keys, in the same order.
    pub(super) async fn stored(&self, keys: &[ItemKey]) -> Result<Vec<Option<Item>>> {
        let requests = keys.iter().map(|key| ItemRequest {
            table: key.table,
            key: key.to_item(),
            consistent: true,
        });
        let requests: Vec<ItemRequest<'_>> = requests.collect();
        self.items(&requests).await
    }

    /// Reads items of a group as the transaction sees them, or as stored.
    pub(super) async fn load(
        &self,
        group: &GroupKey,
        keys: &[ItemKey],
    ) -> Result<Vec<Option<Item>>> {
        let Some(tx) = self.tx else {
            return self.stored(keys).await;
        };
        let session = tx.session();
        let is_unread = |key: &&ItemKey| {
            let known = session.with(|changes: &mut Changes| changes.current(key));
            matches!(known, Ok(None))
        };
        let unread: Vec<ItemKey> = keys.iter().filter(is_unread).cloned().collect();
        let read = if unread.is_empty() {
            Vec::new()
        } else {
            self.stored(&unread).await?
        };
        session.with(|changes: &mut Changes| {
            for (key, item) in unread.iter().zip(read) {
                changes.record_read(group, key, item);
            }
            let known = keys.iter().map(|key| changes.current(key).flatten());
            known.collect()
        })
    }

    /// Reads one item like [`load`](Self::load).
    pub(super) async fn load_one(&self, group: &GroupKey, key: &ItemKey) -> Result<Option<Item>> {
        let keys = std::slice::from_ref(key);
        Ok(self.load(group, keys).await?.pop().flatten())
    }
}
