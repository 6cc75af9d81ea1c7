//! Handlers of expired versions: the store removes a version, a handler runs, and the tombstone is written.
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
//! A failed handler is called again before the tombstone is written. A repeated change finds the tombstone, and calls
//! no handler.

use std::sync::Arc;

use floe_store::BoxFuture;

use super::change::{Cause, Change};
use super::handler::{Failure, Handler, HandlerResult, Removed};
use super::router::Router;
use crate::db::Db;
use crate::error::{Error, ErrorKind};
use crate::registry::{Registry, Version};

/// An expired version that the store has removed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Expired<R> {
    /// The version as it reads after its removal.
    pub version: Version<R>,
    /// The change that removed it.
    pub change: Change,
}

impl Router {
    /// Calls the handler for each expired version of this registry, and writes its tombstone after the handler
    /// succeeds ([`Versions::write_tombstone`](crate::registry::Versions::write_tombstone)). The handler is called at
    /// least once, and not after the tombstone exists or the version exists again.
    pub fn on_expired<R: Registry>(
        self,
        db: &Db,
        handler: impl AsyncFn(Expired<R>) -> HandlerResult + Handler<Expired<R>>,
    ) -> Self {
        let (handler, db) = (Arc::new(handler), db.clone());
        self.on_removed::<R>(
            Cause::Expired,
            move |removed: Removed<R>| -> BoxFuture<'static, HandlerResult> {
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
) -> HandlerResult {
    let versions = db.registry::<R>();
    let removed = change.item().clone();
    let Some(version) = versions.expired(&removed).await.map_err(failure)? else {
        return Ok(());
    };
    handler.call(Expired { version, change }).await?;
    versions.write_tombstone(&removed).await.map_err(failure)?;
    Ok(())
}

/// An item in an unexpected format stays in it, so retries cannot help.
fn failure(error: Error) -> Failure {
    if error.kind() == ErrorKind::InvalidField {
        Failure::permanent(error)
    } else {
        Failure::new(error)
    }
}
