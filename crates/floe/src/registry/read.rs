//! Requests that read a registry, and what is done when one fails.

use floe_store::op::{Page, Query};
use floe_store::{BoxFuture, Error as StoreError, Item};

use super::group::GroupPlace;
use super::key::Place;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::request::{Budget, ItemRequest, batch_get, get, repeat};
use crate::tx::Tx;

/// Who reads: a transaction, which runs again if a request fails, or nobody in particular.
#[derive(Clone, Copy)]
pub(super) struct Reads<'a> {
    pub(super) db: &'a Db,
    pub(super) tx: Option<&'a Tx>,
}

impl Reads<'_> {
    async fn send<'f, T>(
        &self,
        request: impl Fn() -> BoxFuture<'f, floe_store::Result<T>>,
    ) -> Result<T> {
        let budget = if self.tx.is_some() {
            Budget::once()
        } else {
            Budget::for_read()
        };
        let sent = repeat(self.db, budget, request).await;
        sent.map_err(|error| match self.tx {
            Some(tx) => tx.note(failed(error)),
            None => failed(error),
        })
    }

    /// The items of up to 100 keys as they are, in their order: one by one request, several by one batch.
    pub(super) async fn items(&self, places: &[Place]) -> Result<Vec<Option<Item>>> {
        let requests: Vec<ItemRequest<'_>> = places
            .iter()
            .map(|place| ItemRequest {
                table: place.table,
                key: place.key(),
                consistent: true,
            })
            .collect();
        self.send(|| match requests.as_slice() {
            [only] => Box::pin(async { Ok(vec![get(self.db, only.clone()).await?]) }),
            several => Box::pin(batch_get(self.db, several)),
        })
        .await
    }

    pub(super) async fn item(&self, place: &Place) -> Result<Option<Item>> {
        let mut items = self.items(std::slice::from_ref(place)).await?;
        Ok(items.pop().flatten())
    }

    pub(super) async fn page(&self, query: &Query) -> Result<Page> {
        self.send(|| self.db.engine().query(query.clone())).await
    }

    /// All items of a query.
    pub(super) async fn query(&self, mut query: Query) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        loop {
            let page = self.page(&query).await?;
            items.extend(page.items);
            query.start_key = page.last_key;
            if query.start_key.is_none() {
                return Ok(items);
            }
        }
    }

    /// Items of a group as the transaction sees them, or as they are.
    pub(super) async fn load(
        &self,
        group: &GroupPlace,
        places: &[Place],
    ) -> Result<Vec<Option<Item>>> {
        let Some(tx) = self.tx else {
            return self.items(places).await;
        };
        let session = tx.session();
        let is_unread = |place: &&Place| {
            let known = session.registry(|changes| changes.known(place));
            matches!(known, Ok(None))
        };
        let unread: Vec<Place> = places.iter().filter(is_unread).cloned().collect();
        let read = match unread.is_empty() {
            true => Vec::new(),
            false => self.items(&unread).await?,
        };
        session.registry(|changes| {
            for (place, item) in unread.iter().zip(read) {
                changes.settle(group, place, item);
            }
            let known = places.iter().map(|place| changes.known(place).flatten());
            known.collect()
        })
    }
}

/// Says what to do where a table is missing.
fn failed(error: StoreError) -> Error {
    match error {
        StoreError::ResourceNotFound(_) => Error::new(
            ErrorKind::Table,
            "the table of the registry is missing; call ensure_registries",
        )
        .with_source(error),
        error => error.into(),
    }
}
