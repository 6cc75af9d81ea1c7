//! Transactions: a body of reads and writes that happens as if at one moment, or not at all.
//!
//! ```text
//! body ──get──▶ Row of Fields ──drop──▶ session ──lock──▶ plans ──commit──▶ one write or one transaction
//!   ▲                                                                            │
//!   └──────────────── again, after a pause, if somebody was faster ◀─────────────┘
//! ```

pub(crate) mod backoff;
mod blind;
pub(crate) mod body;
pub(crate) mod commit;
pub(crate) mod gather;
pub mod hooks;
pub(crate) mod lock;
pub mod many;
pub(crate) mod options;
pub(crate) mod session;

use std::fmt;

use floe_store::{Item, Value};

use crate::db::Db;
use crate::error::{Error, Result};
use crate::model::key::{EncodedKey, IntoKey};
use crate::model::row::{Row, RowCore};
use crate::model::schema::Schema;
use crate::model::{Key, Model, Patch};
use gather::{Gather, Request};
use hooks::{Hooks, Outcome};
use many::Keys;
use session::{Origin, Session};

/// One run of the body of a transaction.
pub struct Tx {
    db: Db,
    session: Session,
    gather: Gather,
    hooks: Hooks,
}

impl fmt::Debug for Tx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").finish_non_exhaustive()
    }
}

impl Tx {
    pub(crate) fn new(db: Db) -> Self {
        Self {
            db,
            session: Session::default(),
            gather: Gather::default(),
            hooks: Hooks::default(),
        }
    }

    pub(crate) const fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn into_session(self) -> Session {
        self.session
    }

    pub(crate) const fn db(&self) -> &Db {
        &self.db
    }

    /// Gets an item, if it is there. What the body reads of it is checked when the transaction commits.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](crate::ErrorKind::FetchedTwice) when the transaction has touched the item before,
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when the key or what is stored is not of the
    /// model, [`Store`](crate::ErrorKind::Store) when the store cannot answer.
    pub async fn get<M: Model>(&self, key: impl IntoKey<M>) -> Result<Option<M::Row<'_>>> {
        self.get_how::<M>(&key.into_key()?, true).await
    }

    /// Gets several items, also of different models, as they were at one moment.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get), and [`TooLarge`](crate::ErrorKind::TooLarge) for more than 100.
    pub async fn get_many<K: Keys>(&self, keys: K) -> Result<K::Rows<'_>> {
        many::get_many(self, keys, true).await
    }

    /// Reads that may be a little behind, at half the price.
    pub const fn eventual(&self) -> Eventual<'_> {
        Eventual { tx: self }
    }

    async fn get_how<M: Model>(
        &self,
        key: &Key<M>,
        consistent: bool,
    ) -> Result<Option<M::Row<'_>>> {
        let (slot, item) = self.fetch(M::SCHEMA, key.encoded(), consistent).await?;
        self.settle_row::<M>(slot, item)
    }

    /// Gets the item with the key of this value, or creates it with this value if it is not there.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get) and [`create`](Self::create).
    pub async fn get_or_create<M: Model>(&self, initial: M) -> Result<M::Row<'_>> {
        let key = initial.key_of()?;
        initial.to_item()?;
        let (slot, item) = self.fetch(M::SCHEMA, key.encoded(), true).await?;
        match self.settle_row::<M>(slot, item)? {
            Some(row) => Ok(row),
            None => {
                self.session.settle(slot, Origin::Absent);
                Ok(self.new_row(slot, initial))
            }
        }
    }

    /// Creates an item. That it is not there yet is checked when the transaction commits.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a value is not allowed,
    /// [`FetchedTwice`](crate::ErrorKind::FetchedTwice) when the transaction has touched the item before.
    pub fn create<M: Model>(&self, value: M) -> Result<M::Row<'_>> {
        let key = value.key_of()?;
        value.to_item()?;
        let slot = self
            .session
            .enter(M::SCHEMA, key.encoded(), Origin::Created)?;
        Ok(self.new_row(slot, value))
    }

    /// Removes an item that was got: only if it is still there, and as it was read.
    pub fn delete<'tx, R: Row<'tx>>(&'tx self, mut row: R) {
        row.core().mark_deleted();
    }

    /// Removes an item, whether it is there or not.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when the key is not allowed,
    /// [`FetchedTwice`](crate::ErrorKind::FetchedTwice) when the transaction has touched the item before.
    pub fn delete_key<M: Model>(&self, key: impl IntoKey<M>) -> Result<()> {
        self.write_unread(key, Origin::Delete)
    }

    /// Changes an item without reading it: only if every expected field is as given.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a value is not allowed or a field is
    /// read-only, [`InvalidUse`](crate::ErrorKind::InvalidUse) when a field is changed whose old value is
    /// not given, [`FetchedTwice`](crate::ErrorKind::FetchedTwice) when the transaction has touched the
    /// item before.
    pub fn update<M: Model>(
        &self,
        key: impl IntoKey<M>,
        expected: impl Into<Patch<M>>,
        new: impl Into<Patch<M>>,
    ) -> Result<()> {
        let blind = blind::update(expected.into(), new.into())?;
        self.write_unread(key, Origin::Update(blind))
    }

    /// Creates an item or changes it, without reading it: if it is there, only if every expected field is
    /// as given.
    ///
    /// # Errors
    ///
    /// As for [`update`](Self::update); the old values of the fields that are set need not be given.
    pub fn create_or_put<M: Model>(
        &self,
        key: impl IntoKey<M>,
        expected: impl Into<Patch<M>>,
        new: impl Into<Patch<M>>,
    ) -> Result<()> {
        let blind = blind::put(expected.into(), new.into())?;
        self.write_unread(key, Origin::Put(blind))
    }

    fn write_unread<M: Model>(&self, key: impl IntoKey<M>, origin: Origin) -> Result<()> {
        let key = key.into_key()?;
        let entered = self.session.enter(M::SCHEMA, key.encoded(), origin);
        entered.map(drop)
    }

    /// Has something done once the outcome of the transaction is final: it runs once, however often the
    /// body runs, and is told whether the transaction was committed.
    pub fn on_post_commit<F, Fut>(&self, hook: F)
    where
        F: FnOnce(Outcome) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.hooks.add(hook);
    }

    pub(crate) fn take_hooks(&self) -> Vec<hooks::Hook> {
        self.hooks.take()
    }

    /// Asks that the body runs again if it fails with what is returned next.
    pub fn retry<E>(&self, error: E) -> E {
        let cause = Error::new(
            crate::ErrorKind::TransactionFailed,
            "the body asked to run again",
        );
        self.session.ask_retry(cause);
        error
    }

    /// Takes note of an error that may pass.
    fn note(&self, error: Error) -> Error {
        if error
            .store_error()
            .is_some_and(floe_store::Error::is_retryable)
        {
            self.session.ask_retry(error.clone());
        }
        error
    }

    /// Reads an item that was not touched before.
    async fn fetch(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
        consistent: bool,
    ) -> Result<(usize, Option<Item>)> {
        let slot = self.session.enter(schema, key, Origin::Pending)?;
        let request = Request {
            table: schema.table,
            key: key.to_item(),
            consistent,
        };
        match self.gather.read(&**self.db.engine(), request).await {
            Ok(item) => Ok((slot, item)),
            Err(error) => {
                self.session.forget(slot);
                Err(self.note(error))
            }
        }
    }

    /// The row of an item that was read. One that has expired is not there.
    fn settle_row<M: Model>(&self, slot: usize, item: Option<Item>) -> Result<Option<M::Row<'_>>> {
        let Some(item) = item.filter(|item| !self.is_expired(M::SCHEMA, item)) else {
            self.session.settle(slot, Origin::Missing);
            return Ok(None);
        };
        let value = M::from_item(&item)?;
        self.session.settle(slot, Origin::Found(item));
        self.session.hand_out(slot);
        Ok(Some(value.into_row(RowCore::new(self, slot, false))))
    }

    fn is_expired(&self, schema: &Schema, item: &Item) -> bool {
        let now = Value::from(self.db.engine().now().as_secs());
        let expires = schema.expires.and_then(|attribute| item.get(attribute));
        let order = expires.and_then(|expires| expires.compare(&now));
        order.is_some_and(std::cmp::Ordering::is_le)
    }

    fn new_row<M: Model>(&self, slot: usize, value: M) -> M::Row<'_> {
        self.session.hand_out(slot);
        value.into_row(RowCore::new(self, slot, true))
    }
}

/// Reads that may be a little behind: see [`Tx::eventual`].
#[derive(Clone, Copy, Debug)]
pub struct Eventual<'tx> {
    tx: &'tx Tx,
}

impl<'tx> Eventual<'tx> {
    /// As [`Tx::get`]. What was read is checked when the transaction commits, all the same.
    ///
    /// # Errors
    ///
    /// As for [`Tx::get`].
    pub async fn get<M: Model>(&self, key: impl IntoKey<M>) -> Result<Option<M::Row<'tx>>> {
        self.tx.get_how::<M>(&key.into_key()?, false).await
    }

    /// As [`Tx::get_many`], but not of one moment, and of any number of items.
    ///
    /// # Errors
    ///
    /// As for [`Tx::get`].
    pub async fn get_many<K: Keys>(&self, keys: K) -> Result<K::Rows<'tx>> {
        many::get_many(self.tx, keys, false).await
    }
}
