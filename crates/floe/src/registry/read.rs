//! Requests that read a registry, and what is done when one fails.

use floe_store::op::{Page, Query};
use floe_store::{BoxFuture, Error as StoreError, Item};

use super::group::GroupPlace;
use super::key::Place;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::tx::Tx;
use crate::tx::backoff::Backoff;
use crate::tx::gather::{Request, batch_get};

/// How often a request that fails for a reason that may pass is sent, outside of a transaction.
const SENDS_MAX: u32 = 10;

/// Who reads: a transaction, which runs again if a request fails, or nobody in particular.
#[derive(Clone, Copy)]
pub(super) struct Reads<'a> {
    pub(super) db: &'a Db,
    pub(super) tx: Option<&'a Tx>,
}

impl Reads<'_> {
    async fn send<'f, T>(&self, request: impl Fn() -> BoxFuture<'f, Result<T>>) -> Result<T> {
        let mut sent = 0;
        loop {
            sent += 1;
            let error = match request().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if let Some(tx) = self.tx {
                return Err(tx.note(with_missing_table(error)));
            }
            let may_pass = error.store_error().is_some_and(StoreError::is_retryable);
            if !may_pass || sent >= SENDS_MAX {
                return Err(with_missing_table(error));
            }
            let pause = Backoff::resync().pause(sent, self.db.env().next_u64());
            self.db.timer().sleep(pause).await;
        }
    }

    /// The items of up to 100 keys as they are, in their order: one by one request, several by one batch.
    pub(super) async fn items(&self, places: &[Place]) -> Result<Vec<Option<Item>>> {
        let requests: Vec<Request> = places
            .iter()
            .map(|place| Request {
                table: place.table,
                key: place.key(),
                consistent: true,
            })
            .collect();
        let get = || -> BoxFuture<'_, Result<Vec<Option<Item>>>> {
            match requests.as_slice() {
                [only] => Box::pin(async { Ok(vec![get(self.db, only).await?]) }),
                several => Box::pin(batch_get(self.db, several)),
            }
        };
        self.send(get).await
    }

    pub(super) async fn item(&self, place: &Place) -> Result<Option<Item>> {
        let mut items = self.items(std::slice::from_ref(place)).await?;
        Ok(items.pop().flatten())
    }

    pub(super) async fn page(&self, query: &Query) -> Result<Page> {
        let send = || -> BoxFuture<'_, Result<Page>> {
            Box::pin(async { Ok(self.db.engine().query(query.clone()).await?) })
        };
        self.send(send).await
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

/// Sends a write again while the store is busy or its answers get lost. To write it twice must be to write it once.
pub(super) async fn settled<'f, T>(
    db: &Db,
    write: impl Fn() -> BoxFuture<'f, Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let mut sent = 0;
    loop {
        sent += 1;
        let error = match write().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let may_pass = error.is_retryable() || error.may_have_applied();
        if !may_pass || sent >= SENDS_MAX {
            return Err(error);
        }
        let pause = Backoff::resync().pause(sent, db.env().next_u64());
        db.timer().sleep(pause).await;
    }
}

async fn get(db: &Db, request: &Request) -> Result<Option<Item>> {
    let get = floe_store::op::GetItem::new(request.table, request.key.clone());
    Ok(db.engine().get_item(get).await?.item)
}

/// Says what to do where a table is missing.
fn with_missing_table(error: Error) -> Error {
    match error.store_error() {
        Some(source @ StoreError::ResourceNotFound(_)) => Error::new(
            ErrorKind::Table,
            "the table of the registry is missing; call ensure_registries",
        )
        .with_source(source.clone()),
        _ => error,
    }
}
