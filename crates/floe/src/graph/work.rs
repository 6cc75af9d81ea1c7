//! Changes of the graph inside of a transaction: the caller's, or one of their own.

use super::changes::Changes;
use super::handle::Graph;
use super::keys::{EntityKey, Place};
use super::reads::Reads;
use super::schema::GraphSchema;
use super::stored::Stored;
use super::writes::missing;
use crate::error::{Error, ErrorKind, Result};
use crate::tx::Tx;

/// A change of the graph. Its transaction may run several times.
pub(super) trait Operation: Sync {
    /// What it has done.
    type Done: Send;

    fn apply(&self, work: Work<'_>) -> impl Future<Output = Result<Self::Done>> + Send;
}

/// What became of a change that may be more than one commit holds.
pub(super) enum Outcome<T> {
    Done(T),
    /// It does not fit, and nothing was done.
    Wide,
}

/// A transaction, and the scope in which it works.
#[derive(Clone, Copy)]
pub(super) struct Work<'a> {
    pub(super) tx: &'a Tx,
    pub(super) scope: &'a str,
    /// Whether the transaction holds this change alone. In the caller's it meets others, so only the commit knows its size.
    pub(super) is_own: bool,
}

impl Graph<'_> {
    /// Applies a change as part of the caller's transaction, or in one of its own.
    pub(super) async fn run<O: Operation>(&self, op: &O) -> Result<O::Done> {
        if let Some(tx) = self.tx {
            return op.apply(self.work(tx)).await;
        }
        let body = async |tx: &Tx| op.apply(self.work(tx)).await;
        self.options().run(body).await
    }

    /// Applies a change in one commit, or where that is too narrow, in steps, which a transaction does not have.
    ///
    /// # Errors
    ///
    /// [`TooLarge`](ErrorKind::TooLarge) when it does not fit into the commit of a transaction.
    pub(super) async fn run_or_step<O, T>(
        &self,
        op: &O,
        of: &EntityKey,
        steps: impl Future<Output = Result<T>>,
    ) -> Result<T>
    where
        O: Operation<Done = Outcome<T>>,
    {
        if let Outcome::Done(done) = self.run(op).await? {
            return Ok(done);
        }
        if self.tx.is_none() {
            return steps.await;
        }
        let (scope, items_max) = (&self.scope, self.items_max());
        let what =
            "the change does not fit into one transaction; outside of one, it is done in steps";
        let message = format!("{what}: scope={scope} entity={of} items_max={items_max}");
        Err(Error::new(ErrorKind::TooLarge, message))
    }

    pub(super) fn work<'a>(&'a self, tx: &'a Tx) -> Work<'a> {
        Work {
            tx,
            scope: &self.scope,
            is_own: self.tx.is_none(),
        }
    }
}

impl<'a> Work<'a> {
    pub(super) fn reads(&self) -> Reads<'a> {
        Reads::of_graph(self.tx.db(), Some(self.tx))
    }

    pub(super) fn schema(&self) -> &'a GraphSchema {
        self.tx.db().graph_schema()
    }

    /// How many items a commit may have.
    pub(super) fn items_max(&self) -> usize {
        self.reads().items_max()
    }

    pub(super) fn place(&self, key: &EntityKey) -> Result<Place> {
        Place::new(self.scope, key.clone())
    }

    /// Looks at what the transaction has read and changed, or adds to it.
    pub(super) fn changes<T>(&self, change: impl FnOnce(&mut Changes) -> T) -> Result<T> {
        self.tx.session().with(change)
    }

    /// The entity as the transaction sees it.
    pub(super) async fn load(&self, place: &Place) -> Result<Option<Stored>> {
        if let Some(known) = self.changes(|changes| changes.known(place))? {
            return Ok(known);
        }
        let read = self.reads().entity(place).await?;
        self.changes(|changes| {
            changes.settle(place, read);
            changes.known(place).flatten()
        })
    }

    /// The entity, which is there.
    pub(super) async fn require(&self, place: &Place) -> Result<Stored> {
        self.load(place).await?.ok_or_else(|| missing(place))
    }
}
