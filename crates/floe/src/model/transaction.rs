//! Models in transactions: the methods of [`Tx`] that get, create, change and delete items.

use std::pin::pin;

use floe_store::Item;
use futures_util::future::{Either, select};

use super::blind;
use super::changes::{ItemState, Items, Origin, ReadState};
use super::keys::{EncodedKey, IntoKey};
use super::many::{self, Keys};
use super::row::{Row, RowCore};
use super::schema::Schema;
use super::{Key, Model, Patch};
use crate::error::Result;
use crate::request::ItemRequest;
use crate::tx::Tx;

impl Tx {
    /// Gets an item, if it exists. The commit checks the fields that the body reads.
    ///
    /// # Errors
    ///
    /// [`FetchedTwice`](crate::ErrorKind::FetchedTwice) if the transaction has used the item before,
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the key or the stored item does not fit the model,
    /// [`Store`](crate::ErrorKind::Store) if the request to the store fails.
    pub async fn get<M: Model>(&self, key: impl IntoKey<M>) -> Result<Option<M::Row<'_>>> {
        self.get_with::<M>(&key.into_key()?, true).await
    }

    /// Gets a consistent snapshot of several items, also of different models.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get), and [`TooLarge`](crate::ErrorKind::TooLarge) for more than 100.
    pub async fn get_many<K: Keys>(&self, keys: K) -> Result<K::Rows<'_>> {
        many::get_many(self, keys, true).await
    }

    /// Eventually consistent reads, at half the cost.
    pub const fn eventual(&self) -> Eventual<'_> {
        Eventual { tx: self }
    }

    async fn get_with<M: Model>(
        &self,
        key: &Key<M>,
        consistent: bool,
    ) -> Result<Option<M::Row<'_>>> {
        let known = self.fetch(M::SCHEMA, key.encoded(), consistent).await?;
        self.row_of::<M>(known)
    }

    /// Gets the item with the key of this value, or creates it with this value if it does not exist.
    ///
    /// # Errors
    ///
    /// As for [`get`](Self::get) and [`create`](Self::create).
    pub async fn get_or_create<M: Model>(&self, initial: M) -> Result<M::Row<'_>> {
        let key = initial.key_of()?;
        let item = initial.to_item()?;
        let known = self.fetch(M::SCHEMA, key.encoded(), true).await?;
        match self.row_of::<M>(known)? {
            Some(row) => Ok(row),
            None => self.new_row(&key, item, initial),
        }
    }

    /// Creates an item. The commit checks that it does not exist yet; otherwise the transaction fails with
    /// [`AlreadyExists`](crate::ErrorKind::AlreadyExists) and does not run again, unless the body read the item before and
    /// it did not exist.
    ///
    /// An item that the transaction has deleted can be created again, which replaces it as a whole: attributes that the
    /// model does not know are removed too. After [`delete`](Self::delete), the commit checks the fields that were read of
    /// the old item. After [`delete_key`](Self::delete_key) it checks nothing: whatever is stored is replaced.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a value is not allowed,
    /// [`FetchedTwice`](crate::ErrorKind::FetchedTwice) if the transaction has used the item before and neither found it
    /// missing nor deleted it, or if a row of the deleted item is still held.
    pub fn create<M: Model>(&self, value: M) -> Result<M::Row<'_>> {
        let key = value.key_of()?;
        let item = value.to_item()?;
        self.new_row(&key, item, value)
    }

    /// Deletes an item that was read, on the condition that the fields which were read have not changed.
    pub fn delete<'tx, R: Row<'tx>>(&'tx self, mut row: R) {
        row.core().mark_deleted();
    }

    /// Deletes an item if it exists, without reading it.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the key is not allowed,
    /// [`FetchedTwice`](crate::ErrorKind::FetchedTwice) if the transaction has used the item before.
    pub fn delete_key<M: Model>(&self, key: impl IntoKey<M>) -> Result<()> {
        self.write_blind(key, Origin::Delete)
    }

    /// Updates an item without reading it, on the condition that every field in `expected` has the given value.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if a value is not allowed or a field is read-only,
    /// [`InvalidUse`](crate::ErrorKind::InvalidUse) if the expected value of a changed field is missing,
    /// [`FetchedTwice`](crate::ErrorKind::FetchedTwice) if the transaction has used the item before.
    pub fn update<M: Model>(
        &self,
        key: impl IntoKey<M>,
        expected: impl Into<Patch<M>>,
        new: impl Into<Patch<M>>,
    ) -> Result<()> {
        let blind = blind::update(expected.into(), new.into())?;
        self.write_blind(key, Origin::Update(blind))
    }

    /// Creates or updates an item without reading it. If it exists, every field in `expected` must have the given value.
    ///
    /// # Errors
    ///
    /// As for [`update`](Self::update). Expected values of changed fields are optional here, but `new` must contain all
    /// fields that the model requires.
    pub fn create_or_put<M: Model>(
        &self,
        key: impl IntoKey<M>,
        expected: impl Into<Patch<M>>,
        new: impl Into<Patch<M>>,
    ) -> Result<()> {
        let key = key.into_key()?;
        let blind = blind::put(&key, expected.into(), new.into())?;
        self.write_blind(key, Origin::Put(blind))
    }

    fn write_blind<M: Model>(&self, key: impl IntoKey<M>, origin: Origin) -> Result<()> {
        let key = key.into_key()?;
        Items::of(self).record_blind(M::SCHEMA, key.encoded(), origin)
    }

    /// Reads an item, unless the transaction already has it.
    async fn fetch(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
        consistent: bool,
    ) -> Result<ItemState> {
        let items = Items::of(self);
        let request = || ItemRequest {
            table: schema.table,
            key: key.to_item(),
            consistent,
        };
        loop {
            let read_ended = match items.read_state(schema, key)? {
                ReadState::Vacant(reservation) => {
                    let item = self.read_item(request()).await?;
                    return reservation.fill(self.unexpired(schema, item));
                }
                ReadState::Known(known) => return Ok(known),
                ReadState::Pending(read_ended) => read_ended,
            };
            // The future of the other read may not be polled any more, so this one does not only wait for it.
            let request = request();
            let joined = pin!(self.join_read(&request));
            match select(pin!(read_ended), joined).await {
                Either::Left(_) => {}
                Either::Right((Some(read), _)) => {
                    let item = self.unexpired(schema, read?);
                    return items.record_joined(schema, key, item);
                }
                Either::Right((None, read_ended)) => read_ended.await,
            }
        }
    }

    /// Returns the item unless it has expired.
    pub(super) fn unexpired(&self, schema: &Schema, item: Option<Item>) -> Option<Item> {
        match schema.expires {
            Some(_) => item.filter(|item| !schema.is_expired(item, self.db().engine().now())),
            None => item,
        }
    }

    pub(super) fn row_of<M: Model>(&self, known: ItemState) -> Result<Option<M::Row<'_>>> {
        let Some(item) = known.item else {
            return Ok(None);
        };
        let value = M::from_item(&item)?;
        let core = RowCore::new(self, known.slot, known.is_new);
        self.session().check_open()?;
        Ok(Some(value.into_row(core)))
    }

    /// The row of an item that a query found; `None` if the transaction has deleted it.
    pub(crate) fn row_of_found<M: Model>(&self, item: &Item) -> Result<Option<M::Row<'_>>> {
        let key = EncodedKey::of_item(M::SCHEMA, item)?;
        let known = Items::of(self).record_found(M::SCHEMA, &key, item)?;
        self.row_of::<M>(known)
    }

    fn new_row<M: Model>(&self, key: &Key<M>, item: Item, value: M) -> Result<M::Row<'_>> {
        let slot = Items::of(self).record_new(M::SCHEMA, key.encoded(), item)?;
        let core = RowCore::new(self, slot, true);
        self.session().check_open()?;
        Ok(value.into_row(core))
    }
}

/// Eventually consistent reads: see [`Tx::eventual`].
#[derive(Clone, Copy, Debug)]
pub struct Eventual<'tx> {
    tx: &'tx Tx,
}

impl<'tx> Eventual<'tx> {
    /// Like [`Tx::get`]. The commit still checks the fields that were read.
    ///
    /// # Errors
    ///
    /// As for [`Tx::get`].
    pub async fn get<M: Model>(&self, key: impl IntoKey<M>) -> Result<Option<M::Row<'tx>>> {
        self.tx.get_with::<M>(&key.into_key()?, false).await
    }

    /// Like [`Tx::get_many`], but not a snapshot, and for any number of items.
    ///
    /// # Errors
    ///
    /// As for [`Tx::get`].
    pub async fn get_many<K: Keys>(&self, keys: K) -> Result<K::Rows<'tx>> {
        many::get_many(self.tx, keys, false).await
    }
}
