//! Changes of the graph as part of a transaction: the caller's, or their own.

use super::changes::Changes;
use super::handle::Graph;
use super::keys::{EntityKey, ScopedKey};
use super::reads::Reads;
use super::schema::GraphSchema;
use super::stored::StoredEntity;
use super::writes::missing;
use crate::error::{Error, ErrorKind, Result};
use crate::tx::Tx;

/// A change of the graph. Its transaction may run several times.
pub(super) trait Operation: Sync {
    /// The result of the change.
    type Output: Send;

    fn apply(
        &self,
        context: OperationContext<'_>,
    ) -> impl Future<Output = Result<Self::Output>> + Send;
}

/// The outcome of a change that may not fit into one commit.
pub(super) enum Outcome<T> {
    Completed(T),
    /// It does not fit, and nothing was changed.
    TooWide,
}

/// A transaction, and the scope of the change.
#[derive(Clone, Copy)]
pub(super) struct OperationContext<'a> {
    pub(super) tx: &'a Tx,
    pub(super) scope: &'a str,
    /// Whether the transaction consists of this change. The caller's transaction has others, so only its commit knows
    /// its size.
    pub(super) is_own: bool,
}

impl Graph<'_> {
    /// Applies a change as part of the caller's transaction, or in its own.
    pub(super) async fn run<O: Operation>(&self, op: &O) -> Result<O::Output> {
        if let Some(tx) = self.tx {
            return op.apply(self.context(tx)).await;
        }
        let body = async |tx: &Tx| op.apply(self.context(tx)).await;
        self.options().run(body).await
    }

    /// Applies a change in one commit. If it does not fit, applies it in steps, unless it is part of a transaction.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) if it does not fit into the caller's transaction.
    pub(super) async fn run_or_step<O, T>(
        &self,
        op: &O,
        of: &EntityKey,
        steps: impl Future<Output = Result<T>>,
    ) -> Result<T>
    where
        O: Operation<Output = Outcome<T>>,
    {
        if let Outcome::Completed(done) = self.run(op).await? {
            return Ok(done);
        }
        if self.tx.is_none() {
            return steps.await;
        }
        let (scope, items_max) = (&self.scope, self.items_max());
        let what = "the change does not fit into one transaction: make it outside of a transaction, in steps";
        let message = format!("{what}: scope={scope} entity={of} items_max={items_max}");
        Err(Error::new(ErrorKind::TooLarge, message))
    }

    pub(super) fn context<'a>(&'a self, tx: &'a Tx) -> OperationContext<'a> {
        OperationContext {
            tx,
            scope: &self.scope,
            is_own: self.tx.is_none(),
        }
    }
}

impl<'a> OperationContext<'a> {
    pub(super) fn reads(&self) -> Reads<'a> {
        Reads::of_graph(self.tx.db(), Some(self.tx))
    }

    pub(super) fn schema(&self) -> &'a GraphSchema {
        self.tx.db().graph_schema()
    }

    /// Maximum number of items in a commit.
    pub(super) fn items_max(&self) -> usize {
        self.reads().items_max()
    }

    /// The graph outside of the transaction, for steps that complete wide changes.
    pub(super) fn outside(&self) -> Graph<'static> {
        self.tx.db().graph(self.scope)
    }

    pub(super) fn scoped_key(&self, key: &EntityKey) -> Result<ScopedKey> {
        ScopedKey::new(self.scope, key.clone())
    }

    /// Reads or extends the recorded reads and changes of the transaction.
    pub(super) fn changes<T>(&self, change: impl FnOnce(&mut Changes) -> T) -> Result<T> {
        self.tx.session().with(change)
    }

    /// The entity as the transaction sees it.
    pub(super) async fn load(&self, scoped_key: &ScopedKey) -> Result<Option<StoredEntity>> {
        if let Some(known) = self.changes(|changes| changes.current(scoped_key))? {
            return Ok(known);
        }
        let read = self.reads().entity(scoped_key).await?;
        self.changes(|changes| {
            changes.record_read(scoped_key, read);
            changes.current(scoped_key).flatten()
        })
    }

    /// Reads those entities whose state was not expected by a commit that failed, so that this attempt knows it.
    pub(super) async fn read_unexpected(&self, keys: Vec<EntityKey>) -> Result<()> {
        for key in keys {
            let scoped_key = self.scoped_key(&key)?;
            if self.schema().take_unexpected(&scoped_key) {
                self.load(&scoped_key).await?;
            }
        }
        Ok(())
    }

    /// The entity as the transaction sees it, which must exist.
    pub(super) async fn require(&self, scoped_key: &ScopedKey) -> Result<StoredEntity> {
        self.load(scoped_key)
            .await?
            .ok_or_else(|| missing(scoped_key))
    }
}
