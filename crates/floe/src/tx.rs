//! Transactions: a body of reads and writes that happens as if at one moment, or not at all.
//!
//! ```text
//! body ──get──▶ Row of Fields ──drop──▶ session ──lock──▶ plans ──commit──▶ one write or one transaction
//!   ▲                                                                            │
//!   └──────────────── again, after a pause, if somebody was faster ◀─────────────┘
//! ```

mod blind;
pub(crate) mod body;
pub(crate) mod commit;
pub(crate) mod gather;
pub mod hooks;
pub(crate) mod lock;
pub mod many;
mod merge;
pub(crate) mod options;
pub(crate) mod part;
pub(crate) mod session;
pub mod streams;

use std::fmt;
use std::sync::Arc;

use floe_store::Item;
use serde::Serialize;

use crate::changes::outbox::OutboxMessage;
use crate::db::Db;
use crate::error::{Error, Result};
use crate::model::key::{EncodedKey, IntoKey};
use crate::model::query::{self, Predicate};
use crate::model::row::{Row, RowCore};
use crate::model::schema::Schema;
use crate::model::{Key, Model, Patch};
use crate::request::ItemRequest;
use gather::Gather;
use hooks::{Hooks, Outcome};
use many::Keys;
pub use options::TxOptions;
use session::{Known, Origin, Session};

/// One run of the body of a transaction.
pub struct Tx {
    inner: Arc<Inner>,
}

struct Inner {
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
    pub(crate) fn new(db: Db, cache_rows: bool) -> Self {
        Self {
            inner: Arc::new(Inner {
                db,
                session: Session::new(cache_rows),
                gather: Gather::default(),
                hooks: Hooks::default(),
            }),
        }
    }

    /// The same run, for those who cannot borrow it.
    #[cfg(feature = "axum")]
    pub(crate) fn share(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.inner.session
    }

    pub(crate) fn db(&self) -> &Db {
        &self.inner.db
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

    /// Finds the items under a key, or under a key of an [index](query::Select::index): `eq` on every field
    /// of the partition key and, if wanted, conditions on the leading fields of the sort key. What is found
    /// is tracked as if it was got; see [`query`].
    pub fn query<M: Model>(
        &self,
        key: impl FnOnce(&M::Fields) -> Predicate<M>,
    ) -> query::Query<&Self, M> {
        query::Query::by_key(self, key)
    }

    /// Reads all items of a model, tracked as if they were got. For more than a few,
    /// [`Db::scan`](crate::Db::scan) is the better choice: it tracks nothing.
    pub fn scan<M: Model>(&self) -> query::Scan<&Self, M> {
        query::Scan::whole(self)
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
        let known = self.look_up(M::SCHEMA, key.encoded(), consistent).await?;
        self.row_of::<M>(known)
    }

    /// Gets the item with the key of this value, or creates it with this value if it is not there.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get) and [`create`](Self::create).
    pub async fn get_or_create<M: Model>(&self, initial: M) -> Result<M::Row<'_>> {
        let key = initial.key_of()?;
        let item = initial.to_item()?;
        let known = self.look_up(M::SCHEMA, key.encoded(), true).await?;
        match self.row_of::<M>(known)? {
            Some(row) => Ok(row),
            None => self.new_row(&key, item, initial),
        }
    }

    /// Creates an item. That it is not there yet is checked when the transaction commits; if it is, the
    /// transaction fails with [`AlreadyExists`](crate::ErrorKind::AlreadyExists) and does not run again,
    /// unless the body has looked for the item before and it was not there.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when a value is not allowed,
    /// [`FetchedTwice`](crate::ErrorKind::FetchedTwice) when the transaction has touched the item before.
    pub fn create<M: Model>(&self, value: M) -> Result<M::Row<'_>> {
        let key = value.key_of()?;
        let item = value.to_item()?;
        self.new_row(&key, item, value)
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
    /// As for [`update`](Self::update). The old values of the fields that are set need not be given; new
    /// values of all fields that the model requires must be.
    pub fn create_or_put<M: Model>(
        &self,
        key: impl IntoKey<M>,
        expected: impl Into<Patch<M>>,
        new: impl Into<Patch<M>>,
    ) -> Result<()> {
        let key = key.into_key()?;
        let blind = blind::put(&key, expected.into(), new.into())?;
        self.write_unread(key, Origin::Put(blind))
    }

    fn write_unread<M: Model>(&self, key: impl IntoKey<M>, origin: Origin) -> Result<()> {
        let key = key.into_key()?;
        self.session()
            .enter_unread(M::SCHEMA, key.encoded(), origin)
    }

    /// Writes a message into the [outbox](crate::changes::outbox), in the same commit: it is there if and
    /// only if the transaction is committed, once, however often the body runs. Needs the table of
    /// [`OutboxRecord`](crate::changes::outbox::OutboxRecord).
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when the topic has not 1 to 255 bytes or has control
    /// characters, or when the message has no form in the store: then the error tells the place in it.
    pub fn outbox<T: Serialize + ?Sized>(&self, topic: &str, message: &T) -> Result<()> {
        let message = OutboxMessage::new(topic, message)?;
        self.session().enter_message(message)
    }

    /// Has something done once the outcome of the transaction is final: it runs once, however often the
    /// body runs, and is told whether the transaction was committed.
    pub fn on_post_commit<F, Fut>(&self, hook: F)
    where
        F: FnOnce(Outcome) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.inner.hooks.add(hook);
    }

    pub(crate) fn take_hooks(&self) -> Vec<hooks::Hook> {
        self.inner.hooks.take()
    }

    /// Asks that the body runs again if it fails with what is returned next.
    pub fn retry<E>(&self, error: E) -> E {
        let cause = Error::new(
            crate::ErrorKind::TransactionFailed,
            "the body asked to run again",
        );
        self.session().ask_retry(cause);
        error
    }

    /// Takes note of an error that may pass.
    pub(crate) fn note(&self, error: Error) -> Error {
        if error
            .store_error()
            .is_some_and(floe_store::Error::is_retryable)
        {
            self.session().ask_retry(error.clone());
        }
        error
    }

    /// Reads an item, unless it is known already.
    async fn look_up(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
        consistent: bool,
    ) -> Result<Known> {
        let reservation = match self.session().reserve(schema, key).await? {
            Ok(reservation) => reservation,
            Err(known) => return Ok(known),
        };
        let request = ItemRequest {
            table: schema.table,
            key: key.to_item(),
            consistent,
        };
        let read = self.inner.gather.read(self.db(), request).await;
        let item = read.map_err(|error| self.note(error))?;
        Ok(reservation.settle(self.unexpired(schema, item)))
    }

    /// What was read, unless it has expired: then it is not there.
    fn unexpired(&self, schema: &Schema, item: Option<Item>) -> Option<Item> {
        match schema.expires {
            Some(_) => item.filter(|item| !schema.is_expired(item, self.db().engine().now())),
            None => item,
        }
    }

    fn row_of<M: Model>(&self, known: Known) -> Result<Option<M::Row<'_>>> {
        let Some(item) = known.item else {
            return Ok(None);
        };
        let value = M::from_item(&item)?;
        let core = RowCore::new(self, known.slot, known.is_new);
        self.session().check_open()?;
        Ok(Some(value.into_row(core)))
    }

    /// The row of an item that a query has found; `None` if the transaction has removed it.
    pub(crate) fn found_row<M: Model>(&self, item: &Item) -> Result<Option<M::Row<'_>>> {
        let key = EncodedKey::of_item(M::SCHEMA, item)?;
        let known = self.session().enter_found(M::SCHEMA, &key, item)?;
        self.row_of::<M>(known)
    }

    fn new_row<M: Model>(&self, key: &Key<M>, item: Item, value: M) -> Result<M::Row<'_>> {
        let slot = self.session().enter_new(M::SCHEMA, key.encoded(), item)?;
        let core = RowCore::new(self, slot, true);
        self.session().check_open()?;
        Ok(value.into_row(core))
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
