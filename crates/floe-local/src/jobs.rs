//! The jobs on tables that are not done: indexes and expiry entries to fill or to remove, and what is left of deleted
//! tables. The [background](crate::background) does them, step by step.

use std::collections::BTreeMap;
use std::sync::Mutex;

use floe_store::Result;

use crate::kv::{Direction, Snapshot, Space};
use crate::layout::record::{self, JobRecord};
use crate::locks::lock;

/// The jobs that are not done, with their tables. Known here so that nothing has to be looked for in the catalog, where
/// the traces of those that are done are in the way.
#[derive(Default)]
pub(crate) struct Jobs {
    tables: Mutex<BTreeMap<u32, u32>>,
}

impl Jobs {
    /// The jobs that a catalog holds.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`](floe_store::Error::Storage) when they cannot be read.
    pub(crate) fn load(snapshot: &Snapshot) -> Result<Self> {
        let jobs = Self::default();
        for entry in snapshot.prefix(Space::Meta, record::JOBS_PREFIX, Direction::Forward) {
            let (key, value) = entry?;
            // One that cannot be read fails when its turn comes, and keeps no store from being opened.
            let table = JobRecord::decode(&value).map_or(0, |job| job.table);
            jobs.insert(record::job_of_key(&key)?, table);
        }
        Ok(jobs)
    }

    /// Publishes a job, after a commit.
    pub(crate) fn insert(&self, job: u32, table: u32) {
        lock(&self.tables).insert(job, table);
    }

    /// Takes a job out, after a commit.
    pub(crate) fn remove(&self, job: u32) {
        lock(&self.tables).remove(&job);
    }

    /// Publishes other jobs instead of these.
    pub(crate) fn replace(&self, other: &Self) {
        *lock(&self.tables) = std::mem::take(&mut *lock(&other.tables));
    }

    /// The jobs of a table.
    pub(crate) fn of_table(&self, table: u32) -> Vec<u32> {
        let tables = lock(&self.tables);
        let of_table = tables.iter().filter(|(_, of)| **of == table);
        of_table.map(|(job, _)| *job).collect()
    }

    /// The job that was added first.
    pub(crate) fn oldest(&self) -> Option<u32> {
        lock(&self.tables).keys().next().copied()
    }
}
