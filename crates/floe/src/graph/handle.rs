//! The handle of a graph: a scope of a database, inside or outside of a transaction. Its methods are defined next to
//! their implementation: `entity`, `list`, `delete`, `query`, `index`, `check`, `resume`.

use std::fmt;

use super::keys::{self, EntityKey, ScopedKey};
use super::reads::Reads;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::tx::{Tx, TxOptions};

/// Maximum attempts of a change after conflicts.
const RETRIES: u32 = 50;

/// The graph of one scope; see the [module](crate::graph). Calls on the handle of a transaction are part of it.
#[derive(Clone)]
pub struct Graph<'tx> {
    pub(super) db: Db,
    pub(super) scope: String,
    pub(super) tx: Option<&'tx Tx>,
}

impl Db {
    /// Returns the graph of a scope. Scopes are isolated from each other.
    pub fn graph(&self, scope: impl Into<String>) -> Graph<'static> {
        Graph {
            db: self.clone(),
            scope: scope.into(),
            tx: None,
        }
    }
}

impl Tx {
    /// Returns the graph of a scope, as part of the transaction.
    pub fn graph(&self, scope: impl Into<String>) -> Graph<'_> {
        Graph {
            db: self.db().clone(),
            scope: scope.into(),
            tx: Some(self),
        }
    }
}

impl fmt::Debug for Graph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

impl Graph<'_> {
    /// The scope.
    pub fn scope(&self) -> &str {
        &self.scope
    }

    pub(super) fn check_outside(&self) -> Result<()> {
        if self.tx.is_none() {
            return Ok(());
        }
        let message = "the operation takes several steps and cannot be part of a transaction: call it on Db::graph";
        Err(Error::new(ErrorKind::InvalidUse, message))
    }

    /// The options of a call that runs its own transaction.
    pub(super) fn options(&self) -> TxOptions<'_> {
        TxOptions::of_pattern(&self.db, "graph", RETRIES)
    }

    pub(super) fn reads(&self) -> Reads<'_> {
        Reads::of_graph(&self.db, self.tx)
    }

    pub(super) fn items_max(&self) -> usize {
        self.reads().items_max()
    }

    pub(super) fn scoped_key(&self, key: &EntityKey) -> Result<ScopedKey> {
        ScopedKey::new(&self.scope, key.clone())
    }

    pub(super) fn scoped_keys<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k EntityKey>,
    ) -> Result<Vec<ScopedKey>> {
        keys::scoped_keys(&self.scope, keys)
    }
}
