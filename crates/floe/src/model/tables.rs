//! The tables of models: what they must look like, how they are brought to be so, and the same as
//! infrastructure code.
//!
//! [`table_definitions`] makes one definition of all models that share a table.
//! [`Db::ensure_tables`] creates what is missing in a store, and [`infrastructure`] writes the definitions
//! for a tool. What works on definitions alone is in [`crate::tables`].

mod definition;

use std::time::Duration;

pub use crate::tables::{ENSURE_DEADLINE, InfrastructureFormat, TableChange, infrastructure_of};
pub use definition::table_definitions;

use super::schema::Schema;
use crate::db::Db;
use crate::error::Result;

/// The tables of these models as infrastructure code, paid for by the request and kept when the code no
/// longer names them.
///
/// The text depends on the models alone, not on their order. The name of a resource depends on the name of
/// its table alone, so that a new table never makes a tool replace another.
///
/// # Errors
///
/// [`Table`](crate::ErrorKind::Table) as [`table_definitions`], or when two tables come to the same name of a
/// resource.
pub fn infrastructure(schemas: &[&Schema], format: InfrastructureFormat) -> Result<String> {
    infrastructure_of(table_definitions(schemas)?, format)
}

impl Db {
    /// Creates the tables that these models lack, adds missing indexes, switches expiry and streams on, and
    /// waits until all of it can be used. Nothing is ever removed, and calling it again changes nothing.
    ///
    /// It tells what it did, by table in the order of their names. Several processes can call it at once.
    /// It waits up to [ten minutes](ENSURE_DEADLINE); see
    /// [`ensure_tables_within`](Db::ensure_tables_within) for an index that takes longer to fill.
    ///
    /// # Errors
    ///
    /// - [`Table`](crate::ErrorKind::Table) when a table has another key, or an index of the same name another
    ///   definition, or items expire by another attribute, or the stream has other images. The message
    ///   tells all that differs in the table, and no table has been changed unless it came to differ
    ///   meanwhile.
    /// - [`Unsupported`](crate::ErrorKind::Unsupported) when the engine cannot have such a table.
    /// - [`Deadline`](crate::ErrorKind::Deadline) when something is still missing, which the message names. What
    ///   was begun goes on.
    /// - [`Store`](crate::ErrorKind::Store) when the store fails.
    pub async fn ensure_tables(&self, schemas: &[&Schema]) -> Result<Vec<TableChange>> {
        self.ensure_tables_within(schemas, ENSURE_DEADLINE).await
    }

    /// As [`ensure_tables`](Db::ensure_tables), with another deadline.
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
