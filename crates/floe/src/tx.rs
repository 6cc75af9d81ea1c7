//! Transactions: a body of reads and writes that is applied atomically or not at all.
//!
//! ```text
//! body ──reads and changes──▶ session ──▶ parts ──commit──▶ one write or one transaction
//!   ▲                                                              │
//!   └──────────── again, after a pause, on a conflict ◀────────────┘
//! ```
//!
//! This module is independent of the patterns. Each pattern keeps its `Changes` in the session and turns them into its
//! `Part` of the commit; its methods on [`Tx`] are defined in its own module.

pub(crate) mod body;
mod body_task;
pub(crate) mod commit;
pub(crate) mod gather;
pub mod hooks;
pub(crate) mod options;
pub(crate) mod part;
pub(crate) mod reads;
pub(crate) mod session;

use std::fmt;
use std::sync::Arc;

use floe_store::{BoxFuture, Item};

use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::request::{ItemRequest, Retryable};
use gather::Gather;
use hooks::{Hooks, Outcome};
pub use options::TxOptions;
use session::Session;

/// One attempt of a transaction.
pub struct Tx {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    session: Session,
    gather: Gather,
    hooks: Hooks,
    /// Whether an item can be fetched more than once.
    caches_rows: bool,
}

impl fmt::Debug for Tx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").finish_non_exhaustive()
    }
}

impl Tx {
    pub(crate) fn new(db: Db, caches_rows: bool) -> Self {
        Self {
            inner: Arc::new(Inner {
                db,
                session: Session::default(),
                gather: Gather::new(caches_rows),
                hooks: Hooks::default(),
                caches_rows,
            }),
        }
    }

    /// The same attempt, for a caller that cannot borrow it.
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

    pub(crate) fn caches_rows(&self) -> bool {
        self.inner.caches_rows
    }

    /// Reads an item, in one request with the other reads awaited at the same time.
    ///
    /// # Errors
    ///
    /// The engine's error.
    pub(crate) async fn read_item(&self, request: ItemRequest<'static>) -> Result<Option<Item>> {
        let read = self.inner.gather.read(self.db(), request).await;
        read.map_err(|error| self.note_error(error))
    }

    /// Reads an item along with a read of it that has begun before. Returns `None` if there is none to join.
    pub(crate) async fn join_read(
        &self,
        request: &ItemRequest<'static>,
    ) -> Option<Result<Option<Item>>> {
        let read = self.inner.gather.join(self.db(), request).await?;
        Some(read.map_err(|error| self.note_error(error)))
    }

    /// Registers a hook that runs once the outcome of the transaction is final. It runs once, however often the body
    /// runs, and receives the outcome.
    ///
    /// A hook that panics does not affect the outcome, the caller or the other hooks; it is reported as an event of
    /// [`telemetry`](crate::telemetry).
    pub fn on_post_commit<F, Fut>(&self, hook: F)
    where
        F: FnOnce(Outcome) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let hook = move |outcome| -> BoxFuture<'static, ()> { Box::pin(hook(outcome)) };
        self.inner.hooks.add(Box::new(hook));
    }

    /// Requests another attempt: return the resulting error from the body, and the body runs again.
    pub fn retry<E>(&self, error: E) -> E {
        let what = "the body requested a retry";
        let cause = Error::new(ErrorKind::TransactionFailed, what);
        self.session().request_retry(cause);
        error
    }

    /// Records a transient error, so that the body runs again if it fails.
    pub(crate) fn note_error(&self, error: Error) -> Error {
        if error.is_retryable() {
            self.session().request_retry(error.clone());
        }
        error
    }
}
