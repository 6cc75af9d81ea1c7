//! Jobs on whole tables, run in steps between commits: filling an index or the expiry entries from existing items,
//! removing unneeded entries, and removing the data of a deleted table.
//!
//! A step is one atomic commit that includes the job's cursor, so that a job resumes there after a crash. Writes
//! maintain the new entries themselves from the start, wherever the cursor is.

use std::ops::Bound;
use std::sync::Arc;

use floe_store::Result;

use crate::catalog::Table;
use crate::commit::Committer;
use crate::group::{DiskUse, Group};
use crate::indexes::entry;
use crate::kv::{Bytes, Direction, KeyBounds, Space};
use crate::layout::key::{Entries, expiry_bounds, expiry_key};
use crate::layout::record::{self, IndexRecord, JobKind, JobRecord};
use crate::shared::Shared;
use crate::stored::StoredItem;

/// Maximum number of entries in a step.
const STEP_ENTRIES: usize = 500;

/// A step ends once it has read this many bytes.
const STEP_BYTES: usize = 1 << 20;

impl Group<'_> {
    /// Adds a job on a table for the background thread.
    pub(crate) fn add_job(&mut self, table: u32, kind: JobKind) {
        let job = JobRecord {
            id: self.new_id(),
            table,
            kind,
            cursor: Vec::new(),
        };
        self.put(Space::Meta, record::job_key(job.id), job.encode());
        self.on_commit(move |shared| shared.jobs.insert(job.id, table));
    }

    /// Removes a finished job.
    pub(crate) fn remove_job(&mut self, job: u32) {
        self.remove(Space::Meta, record::job_key(job));
        self.on_commit(move |shared| shared.jobs.remove(job));
    }
}

/// Runs one step of the oldest job. `false` if there is none.
pub(super) fn step(committer: &Committer) -> Result<bool> {
    let shared = &committer.shared;
    let Some(id) = shared.jobs.oldest() else {
        return Ok(false);
    };
    let key = record::job_key(id);
    let Some(value) = shared.kv.snapshot().get(Space::Meta, &key)? else {
        // The doctor removed it.
        shared.jobs.remove(id);
        return Ok(true);
    };
    let job = JobRecord::decode(&value)?;
    if job.kind == JobKind::RemoveTable && job.cursor.is_empty() {
        // Not on the committer, because this waits for compactions. Table ids are never reused.
        shared.kv.drop_files(job.table)?;
    }
    let disk_use = match job.kind {
        JobKind::FillIndex(_) | JobKind::FillExpiry(_) => DiskUse::Grows,
        JobKind::RemoveIndex(_) | JobKind::RemoveExpiry(_) | JobKind::RemoveTable => DiskUse::Frees,
    };
    committer
        .run(disk_use, move |group| run(group, &key))
        .wait()?;
    Ok(true)
}

fn run(group: &mut Group<'_>, key: &[u8]) -> Result<()> {
    let shared = group.shared();
    let Some(bytes) = group.get(Space::Meta, key)? else {
        return Ok(());
    };
    let mut job = JobRecord::decode(&bytes)?;
    let space = Space::Table(job.table);
    let table = shared.catalog.get_by_id(job.table);
    let chunk = match &table {
        None if job.kind != JobKind::RemoveTable => Chunk::default(),
        _ => Chunk::read(shared, &job)?,
    };
    for (key, value) in chunk.entries {
        match (job.kind, &table) {
            (JobKind::FillIndex(id), Some(table)) => fill_index(group, table, id, &key, value)?,
            (JobKind::FillExpiry(generation), Some(table)) => {
                fill_expiry(group, table, generation, &key, value)?;
            }
            _ => group.remove(space, key),
        }
    }
    match chunk.next {
        Some(cursor) => {
            job.cursor = cursor;
            group.put(Space::Meta, key, job.encode());
        }
        None => {
            group.remove_job(job.id);
            if let Some(table) = table {
                finish(group, &table, job.kind);
            }
        }
    }
    Ok(())
}

/// The entries of a step.
#[derive(Default)]
struct Chunk {
    entries: Vec<(Bytes, Bytes)>,
    /// Cursor of the next step; `None` if this is the last one.
    next: Option<Vec<u8>>,
}

impl Chunk {
    fn read(shared: &Shared, job: &JobRecord) -> Result<Self> {
        let snapshot = shared.kv.snapshot();
        let mut chunk = Self::default();
        let mut bytes = 0;
        for entry in snapshot.range(Space::Table(job.table), bounds(job), Direction::Forward) {
            let (key, value) = entry?;
            bytes += key.len() + value.len();
            let is_last = bytes >= STEP_BYTES || chunk.entries.len() + 1 == STEP_ENTRIES;
            chunk.next = is_last.then(|| key.to_vec());
            chunk.entries.push((key, value));
            if is_last {
                break;
            }
        }
        Ok(chunk)
    }
}

fn bounds(job: &JobRecord) -> KeyBounds {
    let (start, end) = match job.kind {
        JobKind::FillIndex(_) | JobKind::FillExpiry(_) => Entries::Items.bounds(),
        JobKind::RemoveIndex(id) => Entries::Index(id).bounds(),
        JobKind::RemoveExpiry(generation) => expiry_bounds(generation),
        JobKind::RemoveTable => (Bound::Unbounded, Bound::Unbounded),
    };
    if job.cursor.is_empty() {
        (start, end)
    } else {
        (Bound::Excluded(job.cursor.clone()), end)
    }
}

fn fill_index(
    group: &mut Group<'_>,
    table: &Arc<Table>,
    id: u32,
    key: &[u8],
    value: Bytes,
) -> Result<()> {
    let mut indexes = table.indexes();
    let Some((index, _)) = indexes.find(|(_, record)| record.id == id) else {
        return Ok(());
    };
    let stored = StoredItem::decode(value)?;
    if let Some(entry) = entry(table, index, id, key, &stored)
        && group.get(table.space(), &entry.key)?.is_none()
    {
        let count = group.counts(table).indexes.entry(id).or_default();
        count.items += 1;
        count.bytes += entry.size as u64;
        group.put(table.space(), entry.key, entry.value);
    }
    Ok(())
}

fn fill_expiry(
    group: &mut Group<'_>,
    table: &Table,
    generation: u32,
    key: &[u8],
    value: Bytes,
) -> Result<()> {
    // Expiry may have been disabled since the job was added, or changed to another attribute.
    if table.record.expiry != Some(generation) {
        return Ok(());
    }
    let stored = StoredItem::decode(value)?;
    if let Some(secs) = table.definition().expiry(&stored.item) {
        let entry = expiry_key(generation, secs, key);
        group.put(table.space(), entry, Bytes::from(&[][..]));
    }
    Ok(())
}

fn finish(group: &mut Group<'_>, table: &Arc<Table>, kind: JobKind) {
    let mut record = table.record.clone();
    match kind {
        JobKind::FillIndex(id) => {
            let done = |index: &mut IndexRecord| index.filling &= index.id != id;
            record.indexes.iter_mut().for_each(done);
        }
        JobKind::RemoveIndex(id) => {
            record.removing.retain(|(removed, _)| *removed != id);
            group.counts(table).indexes.remove(&id);
        }
        JobKind::FillExpiry(_) | JobKind::RemoveExpiry(_) | JobKind::RemoveTable => return,
    }
    group.publish(table.with_record(record), None);
}
