//! What is done when a version has expired: the store has removed it, a handler acts, and its tombstone takes its place.
//!
//! ```
//! use floe::changes::Router;
//! use floe::registry::Expired;
//! use floe::{Db, Error, Registry};
//!
//! #[derive(Registry)]
//! #[registry(table = "layers", pk = "lyr#{package}", sk = "v#{version}", latest = "latest",
//!     status = "status", expires = "expires", retention = "30d")]
//! struct Layer { package: String, arn: String }
//!
//! # async fn delete_layer(_: &str) -> Result<(), std::io::Error> { Ok(()) }
//! # fn main() -> Result<(), Error> {
//! let db = Db::memory()?;
//! let router = Router::new().on_expired::<Layer>(&db, async |expired: Expired<Layer>| {
//!     delete_layer(&expired.version.value.arn).await?;
//!     Ok(())
//! });
//! assert_eq!(router.handlers().collect::<Vec<_>>(), ["expired Layer"]);
//! # Ok(())
//! # }
//! ```
//!
//! The tombstone depends on what was removed alone: the moment of deletion is that of the expiry, from which on every
//! reader has seen the version as gone. So it is the same however often, by whomever and however late it is written, and
//! it is written only where nothing is. A handler that fails is called again, and the tombstone waits for it. A change that
//! is told again finds the tombstone, and nobody is called.

use std::sync::Arc;

use floe_store::op::PutItem;
use floe_store::{BoxFuture, Error as StoreError, Item};

use super::content::Content;
use super::key::{Place, version_of};
use super::schema::{PARTITION_KEY, RegistrySchema, SORT_KEY};
use super::stored::{self, Facts, moment_of};
use super::version::Version;
use super::{Registry, Versions};
use crate::changes::{Cause, Change, Failure, Handled, Handler, Removed, Router};
use crate::db::Db;
use crate::error::Result;
use crate::request::{Budget, repeat};

/// A version that has expired, and that the store has removed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Expired<R> {
    /// The version, as it reads once it is gone.
    pub version: Version<R>,
    /// The change that tells of it.
    pub change: Change,
}

impl Router {
    /// Calls the handler for each version of this registry that has expired, and writes its tombstone once the handler is
    /// done: see [`tombstone`](crate::registry::tombstone). The handler is called at least once, and not any more once
    /// the tombstone is there, or the version itself again.
    pub fn on_expired<R: Registry>(
        self,
        db: &Db,
        handler: impl AsyncFn(Expired<R>) -> Handled + Handler<Expired<R>>,
    ) -> Self {
        let (handler, db) = (Arc::new(handler), db.clone());
        self.on_removed::<R>(
            Cause::Expired,
            move |removed: Removed<R>| -> BoxFuture<'static, Handled> {
                let (handler, db) = (handler.clone(), db.clone());
                Box::pin(async move { expire(&db, &*handler, removed.change).await })
            },
        )
    }
}

async fn expire<R: Registry>(
    db: &Db,
    handler: &(impl Handler<Expired<R>> + ?Sized),
    change: Change,
) -> Handled {
    let versions = db.registry::<R>();
    let removed = change.item().clone();
    if tombstone(R::SCHEMA, &removed)
        .map_err(Failure::permanent)?
        .is_none()
    {
        return Ok(());
    }
    let place = place_of(R::SCHEMA, &removed);
    if versions.reads().item(&place).await?.is_some() {
        return Ok(());
    }
    let version =
        Version::of_item(R::SCHEMA, &removed, versions.now()).map_err(Failure::permanent)?;
    handler.call(Expired { version, change }).await?;
    versions.bury(&removed).await?;
    Ok(())
}

fn place_of(schema: &RegistrySchema, item: &Item) -> Place {
    let text = |attribute| item.get(attribute).and_then(|value| value.as_s());
    Place {
        table: schema.table,
        pk: text(PARTITION_KEY).unwrap_or_default().to_owned(),
        sk: text(SORT_KEY).unwrap_or_default().to_owned(),
    }
}

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
        let mut put = PutItem::new(self.schema.table, tombstone);
        put.condition = Some(stored::is_absent());
        let write = || self.db.engine().write_item(put.clone().into());
        match repeat(&self.db, Budget::for_read(), write).await {
            Ok(_) => Ok(true),
            Err(StoreError::ConditionalCheckFailed { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
