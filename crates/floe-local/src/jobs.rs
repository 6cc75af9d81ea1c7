//! Unfinished jobs on tables: indexes and expiry entries to fill or to remove, and data of deleted tables to remove.
//! The [background](crate::background) thread runs them step by step.

use std::collections::BTreeMap;
use std::sync::Mutex;

use floe_store::Result;

use crate::kv::{Direction, Snapshot, Space};
use crate::layout::record::{self, JobRecord};
use crate::locks::lock;

/// The unfinished jobs, with their tables. Cached here so that finding a job does not have to scan the catalog and skip
/// the tombstones of finished jobs.
#[derive(Default)]
pub(crate) struct Jobs {
    tables: Mutex<BTreeMap<u32, u32>>,
}

impl Jobs {
    /// Reads the jobs from the catalog.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`](floe_store::Error::Storage) if they cannot be read.
    pub(crate) fn load(snapshot: &Snapshot) -> Result<Self> {
        let jobs = Self::default();
        for entry in snapshot.prefix(Space::Meta, record::JOBS_PREFIX, Direction::Forward) {
            let (key, value) = entry?;
            // A job that cannot be decoded fails when it runs, and does not prevent the store from being opened.
            let table = JobRecord::decode(&value).map_or(0, |job| job.table);
            jobs.insert(record::decode_job_key(&key)?, table);
        }
        Ok(jobs)
    }

    /// Publishes a job, after a commit.
    pub(crate) fn insert(&self, job: u32, table: u32) {
        lock(&self.tables).insert(job, table);
    }

    /// Removes a job, after a commit.
    pub(crate) fn remove(&self, job: u32) {
        lock(&self.tables).remove(&job);
    }

    /// Replaces all jobs by those of `other`.
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
