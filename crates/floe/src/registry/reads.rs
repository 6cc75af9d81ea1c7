//! What is read of a registry: items of groups, as they are or as the transaction sees them.

use floe_store::Item;

use super::changes::Changes;
use super::keys::{GroupPlace, Place};
use crate::db::Db;
use crate::error::Result;
use crate::request::ItemRequest;
use crate::tx::Tx;
pub(super) use crate::tx::reads::Reads;

/// What to do where the table of a registry is missing.
const MISSING: &str = "the table of the registry is missing; call ensure_registries";

impl<'a> Reads<'a> {
    /// Reads of a registry.
    pub(super) const fn of_registry(db: &'a Db, tx: Option<&'a Tx>) -> Self {
        Self::new(db, tx, MISSING)
    }

    /// The items of up to 100 places as they are, in their order.
    pub(super) async fn placed(&self, places: &[Place]) -> Result<Vec<Option<Item>>> {
        let requests = places.iter().map(|place| ItemRequest {
            table: place.table,
            key: place.key(),
            consistent: true,
        });
        let requests: Vec<ItemRequest<'_>> = requests.collect();
        self.items(&requests).await
    }

    /// Items of a group as the transaction sees them, or as they are.
    pub(super) async fn load(
        &self,
        group: &GroupPlace,
        places: &[Place],
    ) -> Result<Vec<Option<Item>>> {
        let Some(tx) = self.tx else {
            return self.placed(places).await;
        };
        let session = tx.session();
        let is_unread = |place: &&Place| {
            let known = session.with(|changes: &mut Changes| changes.known(place));
            matches!(known, Ok(None))
        };
        let unread: Vec<Place> = places.iter().filter(is_unread).cloned().collect();
        let read = if unread.is_empty() {
            Vec::new()
        } else {
            self.placed(&unread).await?
        };
        session.with(|changes: &mut Changes| {
            for (place, item) in unread.iter().zip(read) {
                changes.settle(group, place, item);
            }
            let known = places.iter().map(|place| changes.known(place).flatten());
            known.collect()
        })
    }

    /// As [`load`](Self::load), of one item.
    pub(super) async fn load_one(&self, group: &GroupPlace, place: &Place) -> Result<Option<Item>> {
        let places = std::slice::from_ref(place);
        Ok(self.load(group, places).await?.pop().flatten())
    }
}
