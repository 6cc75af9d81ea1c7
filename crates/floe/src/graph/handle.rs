//! The handle of a graph: a scope of a database, inside of a transaction or outside of any. The calls stand beside what
//! they do: `entity`, `list`, `delete`, `query`, `index`, `check`, `resume`.

use std::fmt;

use super::keys::{self, EntityKey, Place};
use super::reads::Reads;
use crate::db::Db;
use crate::error::{Error, ErrorKind, Result};
use crate::tx::{Tx, TxOptions};

/// How often a change is tried again because another one was faster.
const RETRIES: u32 = 50;

/// The graph of a scope: see the [module](crate::graph). In a transaction, all calls are part of it.
#[derive(Clone)]
pub struct Graph<'tx> {
    pub(super) db: Db,
    pub(super) scope: String,
    pub(super) tx: Option<&'tx Tx>,
}

impl Db {
    /// The graph of a scope. What is in one scope is not seen from another.
    pub fn graph(&self, scope: impl Into<String>) -> Graph<'static> {
        Graph {
            db: self.clone(),
            scope: scope.into(),
            tx: None,
        }
    }
}

impl Tx {
    /// The graph of a scope, as part of the transaction.
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
        let message = "this is done in many steps, which no transaction can hold";
        Err(Error::new(ErrorKind::InvalidUse, message))
    }

    /// How a call is made that is a transaction of its own.
    pub(super) fn options(&self) -> TxOptions<'_> {
        TxOptions::of_pattern(&self.db, "graph", RETRIES)
    }

    pub(super) fn reads(&self) -> Reads<'_> {
        Reads::of_graph(&self.db, self.tx)
    }

    pub(super) fn items_max(&self) -> usize {
        self.reads().items_max()
    }

    pub(super) fn place(&self, key: &EntityKey) -> Result<Place> {
        Place::new(&self.scope, key.clone())
    }

    pub(super) fn places<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k EntityKey>,
    ) -> Result<Vec<Place>> {
        keys::places(&self.scope, keys)
    }
}
