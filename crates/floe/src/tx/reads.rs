//! Read requests of a pattern: in a transaction, which runs again as a whole when one fails, or outside of one.
//!
//! Reads are not recorded here: each pattern records what its commit depends on.

use floe_store::op::{Page, Query, Scan};
use floe_store::{BoxFuture, Error as StoreError, Item};

use super::Tx;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::request::{Budget, ItemRequest, batch_get, get, repeat};

/// Sends the read requests of a pattern.
#[derive(Clone, Copy)]
pub(crate) struct Reads<'a> {
    pub(crate) db: &'a Db,
    pub(crate) tx: Option<&'a Tx>,
    /// The message of the error about a missing table.
    missing: &'static str,
}

impl<'a> Reads<'a> {
    pub(crate) const fn new(db: &'a Db, tx: Option<&'a Tx>, missing: &'static str) -> Self {
        Self { db, tx, missing }
    }

    async fn send<'f, T>(
        &self,
        request: impl Fn() -> BoxFuture<'f, floe_store::Result<T>>,
    ) -> Result<T> {
        let missing = self.missing;
        let Some(tx) = self.tx else {
            let sent = repeat(self.db, Budget::for_read(), request).await;
            return sent.map_err(|error| failed(missing, error));
        };
        let sent = repeat(self.db, Budget::once(), request).await;
        sent.map_err(|error| tx.note_error(failed(missing, error)))
    }

    /// Reads one item consistently.
    pub(crate) async fn item(&self, table: &str, key: &Item) -> Result<Option<Item>> {
        let request = || ItemRequest {
            table,
            key: key.clone(),
            consistent: true,
        };
        self.send(|| Box::pin(get(self.db, request()))).await
    }

    /// Reads the items of up to 100 keys consistently, in their order: a single key by a plain read, several by a batch.
    pub(crate) async fn items(&self, requests: &[ItemRequest<'_>]) -> Result<Vec<Option<Item>>> {
        match requests {
            [only] => Ok(vec![self.item(only.table, &only.key).await?]),
            several => self.send(|| Box::pin(batch_get(self.db, several))).await,
        }
    }

    pub(crate) async fn page(&self, query: &Query) -> Result<Page> {
        self.send(|| self.db.engine().query(query.clone())).await
    }

    pub(crate) async fn scan(&self, scan: &Scan) -> Result<Page> {
        self.send(|| self.db.engine().scan(scan.clone())).await
    }

    /// Reads the items of a query, up to a maximum.
    pub(crate) async fn query(&self, mut query: Query, max: Option<usize>) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        loop {
            query.limit = max.map(|max| (max - items.len()).max(1));
            let page = self.page(&query).await?;
            items.extend(page.items);
            query.start_key = page.last_key;
            if query.start_key.is_none() || max.is_some_and(|max| items.len() >= max) {
                return Ok(items);
            }
        }
    }
}

/// Converts the error of a request. For a missing table, the message says what to do.
pub(crate) fn failed(missing: &'static str, error: StoreError) -> Error {
    match error {
        StoreError::ResourceNotFound(_) => Error::new(ErrorKind::Table, missing).with_source(error),
        error => error.into(),
    }
}
