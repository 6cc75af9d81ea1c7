//! The tables of models: their definitions, created in a store or written as infrastructure code.
//!
//! [`table_definitions`] merges the definitions of models that share a table. [`Db::ensure_tables`] creates missing tables
//! and indexes in a store, and [`infrastructure`] writes the definitions for a tool. Functions that need only definitions
//! are in [`crate::tables`].

mod definition;

use std::time::Duration;

pub use crate::tables::{ENSURE_DEADLINE, InfrastructureFormat, TableChange, infrastructure_of};
pub use definition::table_definitions;

use super::schema::Schema;
use crate::db::Db;
use crate::error::Result;

/// Writes the tables of these models as infrastructure code: billed per request, and retained when they are removed from
/// the code.
///
/// The text does not depend on the order of the models. The name of a resource depends only on the name of its table, so
/// that adding a table never replaces another.
///
/// # Errors
///
/// [`Table`](crate::ErrorKind::Table) as for [`table_definitions`], or if two tables have the same resource name.
pub fn infrastructure(schemas: &[&Schema], format: InfrastructureFormat) -> Result<String> {
    infrastructure_of(table_definitions(schemas)?, format)
}

impl Db {
    /// Creates the missing tables of these models, adds missing indexes, enables expiry and streams, and waits until
    /// everything is active. It never removes anything, and calling it again changes nothing.
    ///
    /// Returns the changes, sorted by table. Several processes can call it concurrently. It waits up to
    /// [ten minutes](ENSURE_DEADLINE); use [`ensure_tables_within`](Db::ensure_tables_within) for an index that takes
    /// longer to fill.
    ///
    /// # Errors
    ///
    /// - [`Table`](crate::ErrorKind::Table) if a table has another key, an index of the same name has another definition,
    ///   the expiry attribute differs, or the stream has other images. The message lists all differences of the table. No
    ///   table has been changed, unless the difference appeared during the call.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported) if the engine does not support such a table.
    /// - [`Deadline`](crate::ErrorKind::Deadline) if something is still missing; the message names it. Changes that were
    ///   started continue in the store.
    /// - [`Store`](crate::ErrorKind::Store) if the store fails.
    pub async fn ensure_tables(&self, schemas: &[&Schema]) -> Result<Vec<TableChange>> {
        self.ensure_tables_within(schemas, ENSURE_DEADLINE).await
    }

    /// Like [`ensure_tables`](Db::ensure_tables), with another deadline.
    ///
    /// # Errors
    ///
    /// As [`ensure_tables`](Db::ensure_tables).
    pub async fn ensure_tables_within(
        &self,
        schemas: &[&Schema],
        deadline: Duration,
    ) -> Result<Vec<TableChange>> {
        self.ensure_definitions(table_definitions(schemas)?, deadline)
            .await
    }
}

#[cfg(test)]
mod tests;
