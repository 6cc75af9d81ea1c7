//! The whole store at one moment: a snapshot, and the tables that it shows. For what reads everything: backups and the
//! doctor.

use std::collections::HashSet;

use floe_store::{Error, Result};

use crate::kv::{Direction, Kv, Snapshot, Space};
use crate::layout::record::{self, JobRecord, TableRecord, Work};

/// The whole store at one moment.
pub(crate) struct Moment {
    /// What was stored.
    pub(crate) snapshot: Snapshot,
    /// The tables. A table that is removed later stays readable.
    pub(crate) tables: Vec<TableRecord>,
    /// Tables that were deleted and whose keys are being removed.
    pub(crate) removing: HashSet<u32>,
    /// Why tables could not be read from the catalog.
    pub(crate) faults: Vec<Error>,
}

impl Moment {
    /// The present moment.
    pub(crate) fn now(kv: &Kv) -> Self {
        let snapshot = kv.snapshot();
        let (mut tables, mut faults) = (Vec::new(), Vec::new());
        for entry in snapshot.prefix(Space::Meta, record::TABLES_PREFIX, Direction::Forward) {
            match entry.and_then(|(_, value)| TableRecord::decode(&value)) {
                Ok(record) => tables.push(record),
                Err(error) => faults.push(error),
            }
        }
        let jobs = snapshot.prefix(Space::Meta, record::JOBS_PREFIX, Direction::Forward);
        let removing = jobs
            .filter_map(|entry| JobRecord::decode(&entry.ok()?.1).ok())
            .filter(|job| job.work == Work::RemoveTable)
            .map(|job| job.table)
            .collect();
        Self {
            snapshot,
            tables,
            removing,
            faults,
        }
    }

    /// Checks that all tables could be read.
    pub(crate) fn check(&self) -> Result<()> {
        match self.faults.first() {
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        }
    }

    /// Whether a table of this id is there.
    pub(crate) fn has_table(&self, id: u32) -> bool {
        self.tables.iter().any(|record| record.id == id)
    }
}
