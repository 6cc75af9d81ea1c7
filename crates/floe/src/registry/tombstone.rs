//! Tombstones: what stands in the place of a version that has expired.
//!
//! A tombstone depends on what was removed alone: the moment of deletion is that of the expiry, from which on every reader
//! has seen the version as gone. So it is the same however often, by whomever and however late it is written, and it is
//! written only where nothing is. A [router](crate::changes::Router::on_expired) writes it after its handler.

use floe_store::op::PutItem;
use floe_store::{Error as StoreError, Item, Name};

use super::Versions;
use super::content::Content;
use super::keys::version_of;
use super::schema::{PARTITION_KEY, RegistrySchema, SORT_KEY};
use super::stored::{self, Facts, moment_of};
use super::version::Version;
use crate::error::Result;
use crate::request::{Budget, repeat};

/// The tombstone of a version that the store has removed because its time had come; `None` for whatever is not such a
/// version: a pointer, an alias, a tombstone, a version that never was to expire.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) when the item is of another form.
fn tombstone(schema: &RegistrySchema, removed: &Item) -> Result<Option<Item>> {
    if version_of(schema, removed).is_none() {
        return Ok(None);
    }
    let facts = Facts::of(schema, removed)?;
    let expired = facts.expires.filter(|_| facts.deleted.is_none());
    Ok(expired.map(|expired| stored::tombstone(schema, removed, moment_of(expired))))
}

impl<R: Content> Versions<'_, R> {
    /// The version that the store has removed because its time had come, as it reads once it is gone. `None` once its
    /// tombstone is there, or the version itself again, and for an item that is no version that was to expire.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when the item is of another form,
    /// [`Store`](crate::ErrorKind::Store) when the store cannot read.
    pub(crate) async fn expired(&self, removed: &Item) -> Result<Option<Version<R>>> {
        if tombstone(self.schema, removed)?.is_none() {
            return Ok(None);
        }
        let key = removed.pick(&[PARTITION_KEY, SORT_KEY].map(Name::from));
        let there = self.reads().item(self.schema.table, &key).await?;
        if there.is_some() {
            return Ok(None);
        }
        Version::of_item(self.schema, removed, self.now()).map(Some)
    }

    /// Writes the tombstone of a version that the store has removed because its time had come: all that it was, without
    /// status and expiry, deleted at the moment at which it expired. It is written at once, also in a transaction.
    /// [`Router::on_expired`] does so by itself.
    ///
    /// Tells whether it was written: not if it is there already, if the version is there again, or if what was removed is
    /// no version that was to expire.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when the item is of another form,
    /// [`Store`](crate::ErrorKind::Store) when the store cannot write.
    pub async fn bury(&self, removed: &Item) -> Result<bool> {
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
