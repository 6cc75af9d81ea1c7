//! A snapshot of the whole store with its tables, for operations that read everything: backups and the doctor.

use std::collections::HashSet;

use floe_store::{Error, Result};

use crate::kv::{Direction, Kv, Snapshot, Space};
use crate::layout::record::{self, JobKind, JobRecord, TableRecord};

/// A snapshot of the whole store.
pub(crate) struct StoreSnapshot {
    /// The key-value snapshot.
    pub(crate) snapshot: Snapshot,
    /// The tables. A table that is removed later remains readable.
    pub(crate) tables: Vec<TableRecord>,
    /// Deleted tables whose data is still being removed.
    pub(crate) removing: HashSet<u32>,
    /// Errors of tables that could not be read from the catalog.
    pub(crate) table_errors: Vec<Error>,
}

impl StoreSnapshot {
    /// Takes a snapshot of the present state.
    pub(crate) fn take(kv: &Kv) -> Self {
        let snapshot = kv.snapshot();
        let (mut tables, mut table_errors) = (Vec::new(), Vec::new());
        for entry in snapshot.prefix(Space::Meta, record::TABLES_PREFIX, Direction::Forward) {
            match entry.and_then(|(_, value)| TableRecord::decode(&value)) {
                Ok(record) => tables.push(record),
                Err(error) => table_errors.push(error),
            }
        }
        let jobs = snapshot.prefix(Space::Meta, record::JOBS_PREFIX, Direction::Forward);
        let removing = jobs
            .filter_map(|entry| JobRecord::decode(&entry.ok()?.1).ok())
            .filter(|job| job.kind == JobKind::RemoveTable)
            .map(|job| job.table)
            .collect();
        Self {
            snapshot,
            tables,
            removing,
            table_errors,
        }
    }

    /// Checks that all tables could be read.
    pub(crate) fn check(&self) -> Result<()> {
        match self.table_errors.first() {
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        }
    }

    /// Whether the snapshot contains a table with this id.
    pub(crate) fn has_table(&self, id: u32) -> bool {
        self.tables.iter().any(|record| record.id == id)
    }
}
