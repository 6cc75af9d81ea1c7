//! What is left of a version that has expired: the store has removed it, and its tombstone takes its place.
//!
//! The tombstone depends on what was removed alone: the moment of deletion is that of the expiry, from which on every reader
//! has seen it as gone. So it is the same however often, by whomever and however late it is written.

use floe_store::op::PutItem;
use floe_store::{Error as StoreError, Item};

use super::key::version_of;
use super::schema::RegistrySchema;
use super::stored::{self, Facts, moment_of};
use super::{Registry, Versions};
use crate::error::Result;
use crate::tx::backoff::Backoff;

/// How often a tombstone is sent while the store is busy or its answers get lost.
const SENDS_MAX: u32 = 10;

/// The tombstone of a version that the store has removed because its time had come; `None` for whatever is not such a
/// version: a pointer, an alias, a tombstone, a version that never was to expire.
///
/// # Errors
///
/// [`InvalidField`](crate::ErrorKind::InvalidField) when the item is of another form.
pub(super) fn tombstone(schema: &RegistrySchema, removed: &Item) -> Result<Option<Item>> {
    if version_of(schema, removed).is_none() {
        return Ok(None);
    }
    let facts = Facts::of(schema, removed)?;
    let expired = facts.expires.filter(|_| facts.deleted.is_none());
    Ok(expired.map(|expired| stored::tombstone(schema, removed, moment_of(expired))))
}

impl<R: Registry> Versions<'_, R> {
    /// Writes the tombstone of a version that the store has removed because its time had come: all that it was, without
    /// status and expiry, deleted at the moment at which it expired. It is written at once, also in a transaction.
    ///
    /// Tells whether it was written: not if it is there already, if the version was published again meanwhile, or if what
    /// was removed is no version that was to expire.
    ///
    /// # Errors
    ///
    /// [`InvalidField`](crate::ErrorKind::InvalidField) when the item is of another form,
    /// [`Store`](crate::ErrorKind::Store) when the store cannot write.
    pub async fn bury(&self, removed: &Item) -> Result<bool> {
        let Some(tombstone) = tombstone(R::SCHEMA, removed)? else {
            return Ok(false);
        };
        let mut put = PutItem::new(R::SCHEMA.table, tombstone);
        put.condition = Some(stored::is_absent());
        let mut sent = 0;
        loop {
            sent += 1;
            let error = match self.db.engine().write_item(put.clone().into()).await {
                Ok(_) => return Ok(true),
                Err(StoreError::ConditionalCheckFailed { .. }) => return Ok(false),
                Err(error) => error,
            };
            // To write it twice is to write it once, so a lost answer is no reason to stop.
            let may_pass = error.is_retryable() || error.may_have_applied();
            if !may_pass || sent >= SENDS_MAX {
                return Err(error.into());
            }
            let pause = Backoff::resync().pause(sent, self.db.env().next_u64());
            self.db.timer().sleep(pause).await;
        }
    }
}
