//! Tombstones: the items that replace expired versions.
//!
//! A tombstone depends only on the removed version: its time of deletion is the expiry, from which on all readers saw
//! the version as deleted. So it is the same whichever process writes it, however often and however late, and it is
//! written only if no item exists. A [router](crate::changes::Router::on_expired) writes it after its handler.

use floe_store::op::PutItem;
use floe_store::{Error as StoreError, Item, Name};

use super::Versions;
use super::content::Content;
use super::keys::version_of;
use super::schema::{PARTITION_KEY, RegistrySchema, SORT_KEY};
use super::stored::{self, Metadata, expiry_time};
use super::version::Version;
use crate::error::Result;
use crate::request::{Budget, repeat};

/// The tombstone of a version that the store removed after its expiry; `None` for other items: a pointer, an alias, a
/// tombstone, a version without expiry.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) if the item does not match the registry.
fn tombstone(schema: &RegistrySchema, removed: &Item) -> Result<Option<Item>> {
    if version_of(schema, removed).is_none() {
        return Ok(None);
    }
    let metadata = Metadata::of(schema, removed)?;
    let expired = metadata.expires.filter(|_| metadata.deleted.is_none());
    Ok(expired.map(|expired| stored::tombstone(schema, removed, expiry_time(expired))))
}

impl<R: Content> Versions<'_, R> {
    /// Returns a version that the store removed after its expiry, as a deleted version. Returns `None` if its tombstone
    /// or the version itself exists again, and for items that are not versions with an expiry.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the item does not match the registry,
    /// [`Store`](crate::ErrorKind::Store) if the store is unavailable.
    pub(crate) async fn expired(&self, removed: &Item) -> Result<Option<Version<R>>> {
        if tombstone(self.schema, removed)?.is_none() {
            return Ok(None);
        }
        let key = removed.pick(&[PARTITION_KEY, SORT_KEY].map(Name::from));
        let existing = self.reads().item(self.schema.table, &key).await?;
        if existing.is_some() {
            return Ok(None);
        }
        Version::of_item(self.schema, removed, self.now()).map(Some)
    }

    /// Writes the tombstone of a version that the store removed after its expiry: the version without status and
    /// expiry, deleted at the time of its expiry. It is written immediately, even in a transaction.
    /// `Router::on_expired` of the change router calls it.
    ///
    /// Returns whether it was written. It is not written if it exists already, if the version exists again, or if the
    /// removed item was not a version with an expiry.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) if the item does not match the registry,
    /// [`Store`](crate::ErrorKind::Store) if the store is unavailable.
    pub async fn write_tombstone(&self, removed: &Item) -> Result<bool> {
        let Some(tombstone) = tombstone(self.schema, removed)? else {
            return Ok(false);
        };
        let put = PutItem::new(self.schema.table, tombstone).condition(stored::is_absent());
        let write = || self.db.engine().write_item(put.clone().into());
        match repeat(&self.db, Budget::for_read(), write).await {
            Ok(_) => Ok(true),
            Err(StoreError::ConditionalCheckFailed { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
