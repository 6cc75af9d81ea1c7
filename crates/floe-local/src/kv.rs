//! The ordered key-value store below the engine, on disk or in memory.
//!
//! This folder alone names `fjall`, `lsm_tree` and `imbl`. It knows nothing of items: [spaces](Space) of bytes to
//! bytes, snapshots of all spaces, and batches that are applied as a whole.
//!
//! | file | what it holds |
//! |---|---|
//! | `kv.rs` | what the engine uses: the store, its snapshots and walks |
//! | `space`, `bytes`, `range`, `batch` | spaces, keys and values, ranges of keys, writes applied as a whole |
//! | `disk` | the store on disk: commits, write buffers, reopening after a failure |
//! | `memory` | the store in memory |
//! | `salvage` | walks that read on behind damaged blocks |
//! | `raw` | what is intact in the files of a store that cannot be opened |
//!
//! # Spaces
//!
//! The tables share one keyspace of the store below, separated by their id in front of each key. A keyspace per table
//! costs files and descriptors for every table, and the store below never shrinks its list of keyspaces while it
//! runs. So creating a table writes nothing here, and removing one removes its keys.
//!
//! # Threads
//!
//! One thread at a time, the committer, calls [`Kv::commit`], [`Kv::get_latest`], [`Kv::refresh`] and
//! [`Kv::reopen`]. Every thread reads through [`Kv::snapshot`], which never waits for a write: the committer publishes
//! a snapshot after each batch, and readers share it. Snapshots are taken between batches only, because the store
//! below moves its visible sequence number from its background threads too, and a snapshot taken in the middle of a
//! batch could see half of it.
//!
//! # Durability
//!
//! A batch is written to the journal, synced ([`Sync::Data`]), applied in memory, and only then published. So what a
//! reader sees is on disk, unless the caller chose [`Sync::None`]. A failed commit leaves it open whether the batch is
//! in the journal; [`CommitError`] distinguishes the cases.
//!
//! # Damage
//!
//! The store below checks an xxh3 checksum of every block when it is read from disk and of every batch when a journal
//! is replayed, so values carry no checksum of their own.

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
use memory::{MemoryState, MemoryWalk};
pub(crate) use range::{KeyBounds, prefix_bounds, prefix_end};
use range::{as_slice, is_empty_range};
pub(crate) use salvage::{Gap, Salvage};
pub(crate) use space::Space;
use space::TablePrefix;

/// How far a batch has got when [`Kv::commit`] returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sync {
    /// On the disk: it survives the loss of power.
    Data,
    /// With the operating system: it survives the death of the process.
    None,
}

/// Why a batch was not committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommitError {
    /// Nothing of it was written: a thread that writes or merges files has failed before. It does not say why. If there
    /// is too little space, [reopening](Kv::reopen) helps, since what was committed is in the journal. Otherwise a sync
    /// may have failed, after which files that seem to be there need not be on the disk.
    Refused(String),
    /// Nothing of it was written: there was no space before it. [Reopening](Kv::reopen) helps when there is.
    RefusedFull(String),
    /// There was no space for it. [Reopening](Kv::reopen) drops whatever of it was written.
    Full(String),
    /// Writing or syncing failed: it may be there after the store is opened by another process.
    Unknown(String),
}

impl CommitError {
    /// What has happened, in words.
    pub(crate) fn cause(&self) -> &str {
        match self {
            Self::Refused(cause)
            | Self::RefusedFull(cause)
            | Self::Full(cause)
            | Self::Unknown(cause) => cause,
        }
    }
}

/// What bounds the memory of a store on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KvOptions {
    /// Memory for blocks that were read.
    pub(crate) cache_bytes: u64,
    /// Memory for writes that are not yet in sorted files, over all spaces.
    pub(crate) write_buffer_bytes: u64,
}

/// The store.
pub(crate) struct Kv {
    /// None in memory.
    disk: Option<Disk>,
    /// The state that readers see.
    published: RwLock<Snapshot>,
    /// What the next commit fails with.
    #[cfg(test)]
    pub(crate) next_failure: Mutex<Option<CommitError>>,
}

/// One moment of all spaces. Cheap to clone; as long as one is held, what it sees is kept.
#[derive(Clone)]
pub(crate) enum Snapshot {
    /// Of a store on disk.
    Disk(Arc<DiskSnapshot>),
    /// Of a store in memory.
    Memory(Arc<MemoryState>),
    /// Of a store that could not be opened again after a failure.
    Closed,
}

/// The direction of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

impl Kv {
    /// Makes an empty store in this directory, which is empty or absent.
    pub(crate) fn create(dir: &Path, options: &KvOptions) -> Result<Self> {
        Disk::create(dir, options).map(Self::of_disk)
    }

    /// Opens the store in this directory, which no other process may use meanwhile.
    pub(crate) fn open(dir: &Path, options: &KvOptions) -> Result<Self> {
        Disk::open(dir, options).map(Self::of_disk)
    }

    fn of_disk(disk: Disk) -> Self {
        let snapshot = disk.snapshot();
        Self::new(Some(disk), snapshot)
    }

    /// An empty store in memory.
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

    /// Whether nothing is kept on a disk.
    pub(crate) const fn is_memory(&self) -> bool {
        self.disk.is_none()
    }

    /// Removes what it can of the keys of a table at once: all of them in memory, on disk the files that hold nothing
    /// else. For a table that the catalog no longer has.
    pub(crate) fn drop_files(&self, table: u32) -> Result<()> {
        let disk = self.disk.as_ref();
        disk.map_or(Ok(()), |disk| disk.drop_files(Space::Table(table)))
    }

    /// Fills the spaces of an empty store on disk that has no other user yet with entries in the order of their spaces
    /// and keys. They are on the disk when this returns, and take no way through the journal.
    pub(crate) fn load(
        &self,
        entries: impl IntoIterator<Item = Result<(Space, Bytes, Bytes)>>,
    ) -> Result<()> {
        let disk = self.disk.as_ref().ok_or_else(foreign_space)?;
        disk.load(entries)?;
        self.refresh();
        Ok(())
    }

    /// Reads every sorted file of the keyspace that holds a space and compares it with the checksum that was noted
    /// when it was written. Reports the bytes as they are read, and returns which files are damaged and how.
    pub(crate) fn damaged_files(&self, read: impl FnMut(u64)) -> Vec<(PathBuf, String)> {
        let disk = self.disk.as_ref();
        disk.map_or_else(Vec::new, |disk| disk.damaged_files(read))
    }

    /// The last state that was published.
    pub(crate) fn snapshot(&self) -> Snapshot {
        read(&self.published).clone()
    }

    /// The value of a key after the last commit. For the committer alone: while another thread is in
    /// the middle of [`commit`](Self::commit), half of its batch may be seen.
    pub(crate) fn get_latest(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        match &self.disk {
            Some(disk) => disk.get_latest(space, key),
            None => self.snapshot().get(space, key),
        }
    }

    /// Applies a batch as a whole and publishes it.
    pub(crate) fn commit(&self, batch: Batch, sync: Sync) -> Result<(), CommitError> {
        debug_assert!(batch.has_each_key_once(), "a key stands in a batch twice");
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

    /// Keeps the write buffers within their bound, and zeros ahead of the journal. Called by the committer when it has
    /// answered, so that no finished write waits for it.
    pub(crate) fn maintain(&self) {
        if let Some(disk) = &self.disk {
            disk.maintain();
        }
    }

    /// Publishes the present state anew, so that readers leave behind the files that a compaction has replaced since.
    /// Called by the committer when it is idle.
    pub(crate) fn refresh(&self) {
        if let (Some(disk), Snapshot::Disk(seen)) = (&self.disk, self.snapshot())
            && disk.has_changed_since(&seen)
        {
            self.publish(disk.snapshot());
        }
    }

    /// Whether a thread that writes or merges files has failed, or the store is closed because it could not be opened
    /// again.
    pub(crate) fn has_failed(&self) -> bool {
        self.disk.as_ref().is_some_and(Disk::has_failed)
    }

    /// How many journals the store on disk has; none while it is closed.
    pub(crate) fn journal_count(&self) -> Option<usize> {
        self.disk.as_ref()?.journal_count()
    }

    /// Opens the store on disk again after a failed commit, without what the failed commit may have left in the
    /// journal. Readers wait meanwhile. If some hold snapshots for long, or opening fails, it returns an error and can
    /// be called again.
    pub(crate) fn reopen(&self) -> Result<()> {
        let Some(disk) = &self.disk else {
            return Ok(());
        };
        let mut published = write(&self.published);
        // The published snapshot is one of the handles that must be gone.
        *published = Snapshot::Closed;
        let reopened = disk.reopen();
        *published = disk.snapshot();
        reopened
    }

    /// Ends the store on disk: nothing writes to its files any more when this returns `true`. `false` if readers hold
    /// snapshots for long.
    pub(crate) fn close(&self) -> bool {
        let Some(disk) = &self.disk else {
            return true;
        };
        self.publish(Snapshot::Closed);
        disk.close()
    }

    /// Writes everything committed so far through to the disk.
    pub(crate) fn persist(&self) -> Result<()> {
        self.disk.as_ref().map_or(Ok(()), Disk::persist)
    }

    /// Bytes that the whole store takes on disk with its journals; 0 in memory.
    pub(crate) fn disk_bytes(&self) -> Result<u64> {
        self.disk.as_ref().map_or(Ok(0), Disk::disk_bytes)
    }

    fn publish(&self, snapshot: Snapshot) {
        let mut published = write(&self.published);
        let replaced = std::mem::replace(&mut *published, snapshot);
        // Readers need not wait until a snapshot has been taken apart.
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

    /// The keys and values within bounds, in one direction.
    pub(crate) fn range(&self, space: Space, bounds: KeyBounds, direction: Direction) -> Walk {
        let source = match self {
            _ if is_empty_range(as_slice(&bounds.0), as_slice(&bounds.1)) => Source::Empty,
            Self::Disk(snapshot) => Source::Disk {
                iter: snapshot.range(space, bounds),
                skip: space.skip(),
                _held: snapshot.clone(),
            },
            Self::Memory(state) => Source::Memory(MemoryWalk::new(state, space, bounds)),
            Self::Closed => Source::Failed(Some(closed())),
        };
        Walk { source, direction }
    }

    /// All keys and values of which the key begins so.
    pub(crate) fn prefix(&self, space: Space, prefix: &[u8], direction: Direction) -> Walk {
        self.range(space, prefix_bounds(prefix), direction)
    }

    /// The first id not below this one of a table that has keys.
    pub(crate) fn first_table(&self, from: u32) -> Result<Option<u32>> {
        let first = self.tables_from(from).next().transpose()?;
        Ok(first.map(|(id, _, _)| id))
    }

    /// All keys and values of all tables, in the order of their ids and keys.
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
                    let walk = snapshot.range(space, all, Direction::Forward);
                    Box::new(walk.map(move |entry| entry.map(|(key, value)| (id, key, value))))
                }))
            }
            Self::Closed => Box::new(std::iter::once(Err(closed()))),
        }
    }
}

/// A walk through keys and values in order. It ends with the first error.
pub(crate) struct Walk {
    source: Source,
    direction: Direction,
}

enum Source {
    Disk {
        iter: fjall::Iter,
        skip: u8,
        /// The store stays open as long as the walk goes on.
        _held: Arc<DiskSnapshot>,
    },
    Memory(MemoryWalk),
    Empty,
    Failed(Option<Error>),
}

impl Iterator for Walk {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::Disk { iter, skip, .. } => {
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
                        // The store below returns the same error again and again.
                        self.source = Source::Empty;
                        Some(Err(disk::read_failed(e)))
                    }
                }
            }
            Source::Memory(walk) => walk.next(self.direction).map(Ok),
            Source::Empty => None,
            Source::Failed(error) => error.take().map(Err),
        }
    }
}

fn closed() -> Error {
    Error::Unavailable("the store could not be opened again after a failure".to_owned())
}

fn foreign_space() -> Error {
    Error::Storage("a space of another store was asked for".to_owned())
}

#[cfg(test)]
mod tests;
