//! Handlers of versions that have expired: the store has removed one, a handler acts, and its tombstone takes its place.
//!
//! ```
//! use floe::changes::{Expired, Router};
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
//! A handler that fails is called again, and the tombstone waits for it. A change that comes again finds the tombstone,
//! and no handler is called.

use std::sync::Arc;

use floe_store::BoxFuture;

use super::change::{Cause, Change};
use super::handler::{Failure, Handled, Handler, Removed};
use super::router::Router;
use crate::db::Db;
use crate::error::{Error, ErrorKind};
use crate::registry::{Registry, Version};

/// A version that has expired, and that the store has removed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Expired<R> {
    /// The version, as it reads once it is gone.
    pub version: Version<R>,
    /// The change that removed it.
    pub change: Change,
}

impl Router {
    /// Calls the handler for each version of this registry that has expired, and writes its tombstone once the handler is
    /// done ([`Versions::bury`](crate::registry::Versions::bury)). The handler is called at least once, and not any more
    /// once the tombstone is there, or the version itself again.
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
    let Some(version) = versions.expired(&removed).await.map_err(failure)? else {
        return Ok(());
    };
    handler.call(Expired { version, change }).await?;
    versions.bury(&removed).await.map_err(failure)?;
    Ok(())
}

/// An item of another form stays one.
fn failure(error: Error) -> Failure {
    if error.kind() == ErrorKind::InvalidField {
        Failure::permanent(error)
    } else {
        Failure::new(error)
    }
}
