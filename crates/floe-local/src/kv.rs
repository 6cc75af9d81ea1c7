//! The ordered key-value store below the engine, on disk or in memory.
//!
//! Only this folder names `fjall`, `lsm_tree` and `imbl`. It is independent of items: it provides [spaces](Space) that
//! map bytes to bytes, snapshots of all spaces, and atomic batches.
//!
//! In this folder, "fjall" is the store on disk; other modules call it the key-value store.
//!
//! | file | content |
//! |---|---|
//! | `kv.rs` | the interface for the engine: the store, its snapshots and iterators |
//! | `space`, `bytes`, `range`, `batch` | spaces, keys and values, key ranges, atomic batches of writes |
//! | `disk` | the store on disk: commits, write buffers, reopening after a failure |
//! | `memory` | the store in memory |
//! | `salvage` | iterators that skip damaged blocks |
//! | `raw` | reads everything intact from the files of a store that cannot be opened |
//!
//! # Spaces
//!
//! All tables share one keyspace of fjall, with the table id as a prefix of each key. A keyspace per table would cost
//! files and descriptors for every table, and fjall never shrinks its list of keyspaces while it runs. So creating a
//! table writes nothing here, and removing one removes its keys.
//!
//! # Threads
//!
//! Only the committer calls [`Kv::commit`], [`Kv::get_latest`], [`Kv::refresh`] and [`Kv::reopen`], on one thread at a
//! time. Every thread reads through [`Kv::snapshot`], which never waits for a write: the committer publishes a snapshot
//! after each batch, and readers share it. Snapshots are taken only between batches: fjall also advances its visible
//! sequence number from background threads, and a snapshot taken during a batch could see half of it.
//!
//! # Durability
//!
//! A batch is written to the journal, synced ([`Sync::Data`]), applied in memory, and only then published. So
//! everything that readers see is on disk, unless the caller chose [`Sync::None`]. After a failed commit, the batch may
//! or may not be in the journal; [`CommitError`] distinguishes the cases.
//!
//! # Damage
//!
//! Fjall verifies an xxh3 checksum of every block that is read from disk and of every batch when a journal is replayed,
//! so values have no checksum of their own.

mod batch;
mod bytes;
mod disk;
mod failure;
pub(crate) mod lock;
mod memory;
mod range;
pub(crate) mod raw;
mod salvage;
mod space;

use std::ops::Bound;
use std::path::{Path, PathBuf};
#[cfg(test)]
use std::sync::Mutex;
use std::sync::{Arc, RwLock};

use floe_store::{Error, Result};

use crate::locks::{read, write};
pub(crate) use batch::Batch;
pub(crate) use bytes::Bytes;
use disk::{Disk, DiskSnapshot};
use memory::{MemoryRange, MemoryState};
pub(crate) use range::{KeyBounds, prefix_bounds, prefix_end};
use range::{as_slice, is_empty_range};
pub(crate) use salvage::{Gap, SalvageIter};
pub(crate) use space::Space;
use space::TablePrefix;

/// How durable a batch is when [`Kv::commit`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sync {
    /// On disk: it survives power loss.
    Data,
    /// In the operating system: it survives a killed process.
    None,
}

/// Why a batch was not committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommitError {
    /// Nothing was written, because a thread that writes or merges files failed before. Its cause is unknown. If the
    /// disk is full, [reopening](Kv::reopen) helps, since everything committed is in the journal. Otherwise a sync may
    /// have failed, after which files that seem to exist may not be on disk.
    Rejected(String),
    /// Nothing was written, because the disk was full before. [Reopening](Kv::reopen) helps once there is space.
    RejectedFull(String),
    /// The disk is too full for the batch. [Reopening](Kv::reopen) removes any written part of it.
    Full(String),
    /// Writing or syncing failed: the batch may be there after another process opens the store.
    Unknown(String),
}

impl CommitError {
    /// The cause as text.
    pub(crate) fn cause(&self) -> &str {
        match self {
            Self::Rejected(cause)
            | Self::RejectedFull(cause)
            | Self::Full(cause)
            | Self::Unknown(cause) => cause,
        }
    }
}

/// Memory limits of a store on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KvOptions {
    /// Memory in bytes for caching blocks.
    pub(crate) cache_bytes: u64,
    /// Memory in bytes for writes that are not yet in sorted files, over all spaces.
    pub(crate) write_buffer_bytes: u64,
}

/// A key-value store.
pub(crate) struct Kv {
    /// `None` in memory.
    disk: Option<Disk>,
    /// The snapshot that readers get.
    published: RwLock<Snapshot>,
    /// The error that the next commit returns.
    #[cfg(test)]
    pub(crate) next_failure: Mutex<Option<CommitError>>,
}

/// All spaces at one point in time. Cheap to clone; holding one keeps all data that it shows.
#[derive(Clone)]
pub(crate) enum Snapshot {
    /// Of a store on disk.
    Disk(Arc<DiskSnapshot>),
    /// Of a store in memory.
    Memory(Arc<MemoryState>),
    /// Of a store that could not be reopened after a failure.
    Closed,
}

/// The direction of an iterator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

impl Kv {
    /// Creates an empty store in this directory, which must be empty or absent.
    pub(crate) fn create(dir: &Path, options: &KvOptions) -> Result<Self> {
        Disk::create(dir, options).map(Self::from_disk)
    }

    /// Opens the store in this directory. No other process may use it meanwhile.
    pub(crate) fn open(dir: &Path, options: &KvOptions) -> Result<Self> {
        Disk::open(dir, options).map(Self::from_disk)
    }

    fn from_disk(disk: Disk) -> Self {
        let snapshot = disk.snapshot();
        Self::new(Some(disk), snapshot)
    }

    /// Creates an empty store in memory.
    pub(crate) fn memory() -> Self {
        Self::new(None, Snapshot::Memory(Arc::default()))
    }

    fn new(disk: Option<Disk>, snapshot: Snapshot) -> Self {
        Self {
            disk,
            published: RwLock::new(snapshot),
            #[cfg(test)]
            next_failure: Mutex::default(),
        }
    }

    /// Whether the store is in memory.
    pub(crate) const fn is_memory(&self) -> bool {
        self.disk.is_none()
    }

    /// Removes as much of a table's data at once as possible: everything in memory, and on disk the files that contain
    /// nothing else. For a table that is no longer in the catalog.
    pub(crate) fn drop_files(&self, table: u32) -> Result<()> {
        let disk = self.disk.as_ref();
        disk.map_or(Ok(()), |disk| disk.drop_files(Space::Table(table)))
    }

    /// Fills an empty store on disk that is not yet in use. Entries must be ordered by space and key. They bypass the
    /// journal, and are on disk when this returns.
    pub(crate) fn load(
        &self,
        entries: impl IntoIterator<Item = Result<(Space, Bytes, Bytes)>>,
    ) -> Result<()> {
        let disk = self.disk.as_ref().ok_or_else(foreign_space)?;
        disk.load(entries)?;
        self.refresh();
        Ok(())
    }

    /// Reads every sorted file and verifies the checksum that was recorded when it was written. Calls `read` with the
    /// number of bytes as they are read. Returns the damaged files with a description of the damage.
    pub(crate) fn damaged_files(&self, read: impl FnMut(u64)) -> Vec<(PathBuf, String)> {
        let disk = self.disk.as_ref();
        disk.map_or_else(Vec::new, |disk| disk.damaged_files(read))
    }

    /// The latest published snapshot.
    pub(crate) fn snapshot(&self) -> Snapshot {
        read(&self.published).clone()
    }

    /// The value of a key after the latest commit. Only the committer calls this: during a [`commit`](Self::commit) on
    /// another thread, half of its batch may be visible.
    pub(crate) fn get_latest(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        match &self.disk {
            Some(disk) => disk.get_latest(space, key),
            None => self.snapshot().get(space, key),
        }
    }

    /// Applies a batch atomically and publishes it.
    pub(crate) fn commit(&self, batch: Batch, sync: Sync) -> Result<(), CommitError> {
        debug_assert!(batch.has_unique_keys(), "duplicate key in a batch");
        #[cfg(test)]
        if let Some(error) = self
            .next_failure
            .lock()
            .ok()
            .and_then(|mut next| next.take())
        {
            return Err(error);
        }
        if let Some(disk) = &self.disk {
            disk.commit(batch, sync)?;
            self.publish(disk.snapshot());
        } else if let Snapshot::Memory(state) = self.snapshot() {
            let applied = memory::apply(batch, &state);
            self.publish(Snapshot::Memory(Arc::new(applied)));
        }
        Ok(())
    }

    /// Keeps the write buffers within their limit, and zeros ahead of the journal. The committer calls it after it has
    /// sent its responses, so that no finished write waits for it.
    pub(crate) fn maintain(&self) {
        if let Some(disk) = &self.disk {
            disk.maintain();
        }
    }

    /// Publishes the present state again, so that readers release files that a compaction has replaced. The committer
    /// calls it when it is idle.
    pub(crate) fn refresh(&self) {
        if let (Some(disk), Snapshot::Disk(seen)) = (&self.disk, self.snapshot())
            && disk.has_changed_since(&seen)
        {
            self.publish(disk.snapshot());
        }
    }

    /// Whether a thread that writes or merges files has failed, or the store is closed because it could not be reopened.
    pub(crate) fn has_failed(&self) -> bool {
        self.disk.as_ref().is_some_and(Disk::has_failed)
    }

    /// The number of journals of the store on disk; `None` while it is closed.
    pub(crate) fn journal_count(&self) -> Option<usize> {
        self.disk.as_ref()?.journal_count()
    }

    /// Reopens the store on disk after a failed commit, and removes what that commit may have left in the journal.
    /// Readers wait meanwhile. If snapshots are held too long, or opening fails, it returns an error and can be called
    /// again.
    pub(crate) fn reopen(&self) -> Result<()> {
        let Some(disk) = &self.disk else {
            return Ok(());
        };
        let mut published = write(&self.published);
        // The published snapshot is one of the handles that must be dropped.
        *published = Snapshot::Closed;
        let reopened = disk.reopen();
        *published = disk.snapshot();
        reopened
    }

    /// Closes the store on disk. If it returns `true`, its files are no longer written to. `false` if snapshots are
    /// held too long.
    pub(crate) fn close(&self) -> bool {
        let Some(disk) = &self.disk else {
            return true;
        };
        self.publish(Snapshot::Closed);
        disk.close()
    }

    /// Syncs all commits to disk.
    pub(crate) fn persist(&self) -> Result<()> {
        self.disk.as_ref().map_or(Ok(()), Disk::persist)
    }

    /// Bytes of disk space that the store uses, including its journals; 0 in memory.
    pub(crate) fn disk_bytes(&self) -> Result<u64> {
        self.disk.as_ref().map_or(Ok(0), Disk::disk_bytes)
    }

    fn publish(&self, snapshot: Snapshot) {
        let mut published = write(&self.published);
        let replaced = std::mem::replace(&mut *published, snapshot);
        // Readers do not wait while the replaced snapshot is dropped.
        drop(published);
        drop(replaced);
    }
}

impl Snapshot {
    /// The value of a key.
    pub(crate) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        match self {
            Self::Disk(snapshot) => snapshot.get(space, key),
            Self::Memory(state) => Ok(state.get(&space).and_then(|map| map.get(key)).cloned()),
            Self::Closed => Err(closed()),
        }
    }

    /// Iterates over the keys and values within bounds.
    pub(crate) fn range(&self, space: Space, bounds: KeyBounds, direction: Direction) -> RangeIter {
        let source = match self {
            _ if is_empty_range(as_slice(&bounds.0), as_slice(&bounds.1)) => RangeSource::Empty,
            Self::Disk(snapshot) => RangeSource::Disk {
                iter: snapshot.range(space, bounds),
                skip: space.skip(),
                _held: snapshot.clone(),
            },
            Self::Memory(state) => RangeSource::Memory(MemoryRange::new(state, space, bounds)),
            Self::Closed => RangeSource::Failed(Some(closed())),
        };
        RangeIter { source, direction }
    }

    /// Iterates over the keys with this prefix, and their values.
    pub(crate) fn prefix(&self, space: Space, prefix: &[u8], direction: Direction) -> RangeIter {
        self.range(space, prefix_bounds(prefix), direction)
    }

    /// The lowest id, from `from` on, of a table that has keys.
    pub(crate) fn first_table(&self, from: u32) -> Result<Option<u32>> {
        let first = self.tables_from(from).next().transpose()?;
        Ok(first.map(|(id, _, _)| id))
    }

    /// Iterates over the keys and values of all tables, ordered by table id and key.
    pub(crate) fn tables(&self) -> Box<dyn Iterator<Item = Result<(u32, Bytes, Bytes)>>> {
        self.tables_from(0)
    }

    fn tables_from(&self, from: u32) -> Box<dyn Iterator<Item = Result<(u32, Bytes, Bytes)>>> {
        match self {
            Self::Disk(snapshot) => Box::new(snapshot.tables_from(from)),
            Self::Memory(state) => {
                let tables = state.range(Space::Table(from)..);
                let spaces: Vec<_> = tables.map(|(space, _)| *space).collect();
                let snapshot = self.clone();
                Box::new(spaces.into_iter().flat_map(move |space| {
                    let Space::Table(id) = space else {
                        return Box::new(std::iter::empty()) as Box<dyn Iterator<Item = _>>;
                    };
                    let all = (Bound::Unbounded, Bound::Unbounded);
                    let range = snapshot.range(space, all, Direction::Forward);
                    Box::new(range.map(move |entry| entry.map(|(key, value)| (id, key, value))))
                }))
            }
            Self::Closed => Box::new(std::iter::once(Err(closed()))),
        }
    }
}

/// An iterator over keys and values in order. It ends after the first error.
pub(crate) struct RangeIter {
    source: RangeSource,
    direction: Direction,
}

enum RangeSource {
    Disk {
        iter: fjall::Iter,
        skip: u8,
        /// Keeps the store open while the iterator is in use.
        _held: Arc<DiskSnapshot>,
    },
    Memory(MemoryRange),
    Empty,
    Failed(Option<Error>),
}

impl Iterator for RangeIter {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            RangeSource::Disk { iter, skip, .. } => {
                let guard = match self.direction {
                    Direction::Forward => iter.next()?,
                    Direction::Backward => iter.next_back()?,
                };
                match guard.into_inner() {
                    Ok((key, value)) => {
                        let key = Bytes {
                            slice: key,
                            skip: *skip,
                        };
                        Some(Ok((key, Bytes::whole(value))))
                    }
                    Err(e) => {
                        // Fjall would return the same error repeatedly.
                        self.source = RangeSource::Empty;
                        Some(Err(disk::read_failed(e)))
                    }
                }
            }
            RangeSource::Memory(range) => range.next(self.direction).map(Ok),
            RangeSource::Empty => None,
            RangeSource::Failed(error) => error.take().map(Err),
        }
    }
}

fn closed() -> Error {
    Error::Unavailable("the store could not be reopened after a failure".to_owned())
}

fn foreign_space() -> Error {
    Error::Storage("the space belongs to another store".to_owned())
}

#[cfg(test)]
mod tests;
