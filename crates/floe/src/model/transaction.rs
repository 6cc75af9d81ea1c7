//! Models in transactions: the calls on [`Tx`] that get, create, change and delete their items.

use floe_store::Item;

use super::blind;
use super::changes::{Items, Known, Origin};
use super::keys::{EncodedKey, IntoKey};
use super::many::{self, Keys};
use super::row::{Row, RowCore};
use super::schema::Schema;
use super::{Key, Model, Patch};
use crate::error::Result;
use crate::request::ItemRequest;
use crate::tx::Tx;

impl Tx {
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
        Items::of(self).enter_unread(M::SCHEMA, key.encoded(), origin)
    }

    /// Reads an item, unless it is known already.
    async fn look_up(
        &self,
        schema: &'static Schema,
        key: &EncodedKey,
        consistent: bool,
    ) -> Result<Known> {
        let reservation = match Items::of(self).reserve(schema, key).await? {
            Ok(reservation) => reservation,
            Err(known) => return Ok(known),
        };
        let request = ItemRequest {
            table: schema.table,
            key: key.to_item(),
            consistent,
        };
        let item = self.read_item(request).await?;
        Ok(reservation.settle(self.unexpired(schema, item)))
    }

    /// What was read, unless it has expired: then it is not there.
    pub(super) fn unexpired(&self, schema: &Schema, item: Option<Item>) -> Option<Item> {
        match schema.expires {
            Some(_) => item.filter(|item| !schema.is_expired(item, self.db().engine().now())),
            None => item,
        }
    }

    pub(super) fn row_of<M: Model>(&self, known: Known) -> Result<Option<M::Row<'_>>> {
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
        let known = Items::of(self).enter_found(M::SCHEMA, &key, item)?;
        self.row_of::<M>(known)
    }

    fn new_row<M: Model>(&self, key: &Key<M>, item: Item, value: M) -> Result<M::Row<'_>> {
        let slot = Items::of(self).enter_new(M::SCHEMA, key.encoded(), item)?;
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
