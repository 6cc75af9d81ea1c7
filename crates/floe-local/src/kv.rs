//! The ordered key-value store below the engine, on disk or in memory.
//!
//! This folder alone names `fjall`, `lsm_tree` and `imbl`. It knows nothing of items: [spaces](Space) of bytes to
//! bytes, snapshots of all spaces, and batches that are applied as a whole.
//!
//! | file | what it holds |
//! |---|---|
//! | `kv.rs` | what the engine uses: spaces, snapshots, walks, batches |
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

mod disk;
mod memory;
pub(crate) mod raw;
mod salvage;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Bound, Deref};
use std::path::{Path, PathBuf};
#[cfg(test)]
use std::sync::Mutex;
use std::sync::{Arc, PoisonError, RwLock};

use floe_store::{Error, Result};

use disk::{Disk, DiskSnapshot};
use memory::{MemoryState, MemoryWalk};
pub(crate) use salvage::{Gap, Salvage};

/// Bytes that are cheap to clone: a view of a block of the store, or an allocation of their own.
#[derive(Clone)]
pub(crate) struct Bytes {
    slice: fjall::Slice,
    /// How many bytes at the front are not part of it: the id of the table in a key.
    skip: u8,
}

impl Bytes {
    const fn whole(slice: fjall::Slice) -> Self {
        Self { slice, skip: 0 }
    }
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.slice.get(usize::from(self.skip)..).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl std::borrow::Borrow<[u8]> for Bytes {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Bytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Bytes {}

impl PartialOrd for Bytes {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bytes {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self::whole(bytes.into())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self::whole(bytes.into())
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

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
    /// Nothing of it was written: a thread that writes or merges files has failed before. What was committed is in the
    /// journal, so the store can be [reopened](Kv::reopen).
    Refused(String),
    /// There was no space for it. [Reopening](Kv::reopen) drops whatever of it was written.
    Full(String),
    /// Writing or syncing failed: it may be there after the store is opened by another process.
    Unknown(String),
}

/// What bounds the memory of a store on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KvOptions {
    /// Memory for blocks that were read.
    pub(crate) cache_bytes: u64,
    /// Memory for writes that are not yet in sorted files, over all spaces.
    pub(crate) write_buffer_bytes: u64,
}

/// A set of keys and values of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Space {
    /// The catalog.
    Meta,
    /// Change records.
    Changes,
    /// Idempotency tokens.
    Tokens,
    /// What belongs to the table of this id.
    Table(u32),
}

/// Keys up to this length are put together without an allocation.
const SHORT_KEY_BYTES: usize = 192;

impl Space {
    /// The key with the id of the table in front of it, as the store below has it.
    fn with_full_key<T>(self, key: &[u8], then: impl FnOnce(&[u8]) -> T) -> T {
        let Self::Table(id) = self else {
            return then(key);
        };
        let prefix = TablePrefix::of(id);
        let mut short = [0; TablePrefix::BYTES_MAX + SHORT_KEY_BYTES];
        match short.get_mut(..prefix.len() + key.len()) {
            Some(full) => {
                let (front, rest) = full.split_at_mut(prefix.len());
                front.copy_from_slice(&prefix);
                rest.copy_from_slice(key);
                then(full)
            }
            None => then(&[&prefix, key].concat()),
        }
    }

    /// A key of this space, in the form in which a batch takes it.
    pub(crate) fn key(self, key: &[u8]) -> Bytes {
        let skip = self.skip();
        self.with_full_key(key, |full| Bytes {
            slice: full.into(),
            skip,
        })
    }

    /// The bytes in front of a key that the store below returns.
    fn skip(self) -> u8 {
        match self {
            Self::Table(id) => TablePrefix::of(id).len,
            _ => 0,
        }
    }

    /// Bounds within the space as bounds of full keys.
    fn full_bounds(self, (start, end): KeyBounds) -> KeyBounds {
        let Self::Table(id) = self else {
            return (start, end);
        };
        let prefix = TablePrefix::of(id);
        let full = |key: Vec<u8>| [&prefix, &key[..]].concat();
        let (first, behind) = prefix_bounds(&prefix);
        (
            if start == Bound::Unbounded {
                first
            } else {
                start.map(full)
            },
            if end == Bound::Unbounded {
                behind
            } else {
                end.map(full)
            },
        )
    }
}

/// The id of a table in front of its keys: one byte for the first 241, two for the next 2048, and so on. None is the
/// beginning of another, and their order is that of the ids.
///
/// It is short because the store below compares keys by their first four bytes first: those should tell items apart.
#[derive(Clone, Copy, Debug)]
struct TablePrefix {
    bytes: [u8; Self::BYTES_MAX],
    len: u8,
}

impl TablePrefix {
    const BYTES_MAX: usize = 5;
    const ONE_BYTE_END: u32 = 241;
    const TWO_BYTES_END: u32 = Self::ONE_BYTE_END + 8 * 256;
    const THREE_BYTES_END: u32 = Self::TWO_BYTES_END + (1 << 16);
    const TWO_BYTES: u8 = 241;
    const THREE_BYTES: u8 = 249;
    const FIVE_BYTES: u8 = 250;

    const fn of(id: u32) -> Self {
        let (bytes, len) = if id < Self::ONE_BYTE_END {
            ([id as u8, 0, 0, 0, 0], 1)
        } else if id < Self::TWO_BYTES_END {
            let [_, _, high, low] = (id - Self::ONE_BYTE_END).to_be_bytes();
            ([Self::TWO_BYTES + high, low, 0, 0, 0], 2)
        } else if id < Self::THREE_BYTES_END {
            let [_, _, high, low] = (id - Self::TWO_BYTES_END).to_be_bytes();
            ([Self::THREE_BYTES, high, low, 0, 0], 3)
        } else {
            let [a, b, c, d] = id.to_be_bytes();
            ([Self::FIVE_BYTES, a, b, c, d], 5)
        };
        Self { bytes, len }
    }

    /// The id in front of a full key, and how long it is.
    fn parse(key: &[u8]) -> Option<(u32, u8)> {
        let two = |high: u8, low: u8| u32::from(u16::from_be_bytes([high, low]));
        let (id, len) = match *key {
            [id, ..] if id < Self::TWO_BYTES => (u32::from(id), 1),
            [high, low, ..] if high < Self::THREE_BYTES => {
                (Self::ONE_BYTE_END + two(high - Self::TWO_BYTES, low), 2)
            }
            [Self::THREE_BYTES, high, low, ..] => (Self::TWO_BYTES_END + two(high, low), 3),
            [Self::FIVE_BYTES, a, b, c, d, ..] => (u32::from_be_bytes([a, b, c, d]), 5),
            _ => return None,
        };
        // Each id has one form.
        (Self::of(id).len == len).then_some((id, len))
    }
}

impl Deref for TablePrefix {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// The store.
pub(crate) struct Kv {
    backing: Backing,
    /// The state that readers see.
    published: RwLock<Snapshot>,
    /// What the next commit fails with.
    #[cfg(test)]
    pub(crate) next_failure: Mutex<Option<CommitError>>,
}

enum Backing {
    Disk(Disk),
    Memory,
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

/// Where a walk through a space begins and ends.
pub(crate) type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

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
        let published = RwLock::new(disk.snapshot());
        Self {
            published,
            #[cfg(test)]
            next_failure: Mutex::default(),
            backing: Backing::Disk(disk),
        }
    }

    /// An empty store in memory.
    pub(crate) fn memory() -> Self {
        Self {
            backing: Backing::Memory,
            published: RwLock::new(Snapshot::Memory(Arc::default())),
            #[cfg(test)]
            next_failure: Mutex::default(),
        }
    }

    /// Whether nothing is kept on a disk.
    pub(crate) const fn is_memory(&self) -> bool {
        matches!(self.backing, Backing::Memory)
    }

    /// Removes what it can of the keys of a table at once: all of them in memory, on disk the files that hold nothing
    /// else. For a table that the catalog no longer has.
    pub(crate) fn drop_files(&self, table: u32) -> Result<()> {
        match &self.backing {
            Backing::Disk(disk) => disk.drop_files(Space::Table(table)),
            Backing::Memory => Ok(()),
        }
    }

    /// Fills the spaces of an empty store on disk that has no other user yet with entries in the order of their spaces
    /// and keys. They are on the disk when this returns, and take no way through the journal.
    pub(crate) fn load(
        &self,
        entries: impl IntoIterator<Item = Result<(Space, Bytes, Bytes)>>,
    ) -> Result<()> {
        match &self.backing {
            Backing::Disk(disk) => disk.load(entries)?,
            Backing::Memory => return Err(foreign_space()),
        }
        self.refresh();
        Ok(())
    }

    /// Reads every sorted file of the keyspace that holds a space and compares it with the checksum that was noted
    /// when it was written. Reports the bytes as they are read, and returns which files are damaged and how.
    pub(crate) fn damaged_files(&self, read: impl FnMut(u64)) -> Vec<(PathBuf, String)> {
        match &self.backing {
            Backing::Disk(disk) => disk.damaged_files(read),
            Backing::Memory => Vec::new(),
        }
    }

    /// The last state that was published.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let published = self
            .published
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        published.clone()
    }

    /// The value of a key after the last commit. For the committer alone: while another thread is in
    /// the middle of [`commit`](Self::commit), half of its batch may be seen.
    pub(crate) fn get_latest(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        match &self.backing {
            Backing::Disk(disk) => disk.get_latest(space, key),
            Backing::Memory => self.snapshot().get(space, key),
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
        match &self.backing {
            Backing::Disk(disk) => {
                disk.commit(batch, sync)?;
                self.publish(disk.snapshot());
            }
            Backing::Memory => {
                if let Snapshot::Memory(state) = self.snapshot() {
                    let applied = memory::apply(batch, &state);
                    self.publish(Snapshot::Memory(Arc::new(applied)));
                }
            }
        }
        Ok(())
    }

    /// Keeps the write buffers within their bound, and zeros ahead of the journal. Called by the committer when it has
    /// answered, so that no finished write waits for it.
    pub(crate) fn maintain(&self) {
        if let Backing::Disk(disk) = &self.backing {
            disk.maintain();
        }
    }

    /// Publishes the present state anew, so that readers leave behind the files that a compaction has replaced since.
    /// Called by the committer when it is idle.
    pub(crate) fn refresh(&self) {
        if let (Backing::Disk(disk), Snapshot::Disk(seen)) = (&self.backing, self.snapshot())
            && disk.has_changed_since(&seen)
        {
            self.publish(disk.snapshot());
        }
    }

    /// Opens the store on disk again after a failed commit, without what the failed commit may have left in the
    /// journal. Readers wait meanwhile. If some hold snapshots for long, or opening fails, it returns an error and can
    /// be called again.
    pub(crate) fn reopen(&self) -> Result<()> {
        let Backing::Disk(disk) = &self.backing else {
            return Ok(());
        };
        let mut published = self
            .published
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // The published snapshot is one of the handles that must be gone.
        *published = Snapshot::Closed;
        let reopened = disk.reopen();
        *published = disk.snapshot();
        reopened
    }

    /// Ends the store on disk: nothing writes to its files any more when this returns `true`. `false` if readers hold
    /// snapshots for long.
    pub(crate) fn close(&self) -> bool {
        let Backing::Disk(disk) = &self.backing else {
            return true;
        };
        self.publish(Snapshot::Closed);
        disk.close()
    }

    /// Writes everything committed so far through to the disk.
    pub(crate) fn persist(&self) -> Result<()> {
        match &self.backing {
            Backing::Disk(disk) => disk.persist(),
            Backing::Memory => Ok(()),
        }
    }

    /// Bytes that the whole store takes on disk with its journals; 0 in memory.
    pub(crate) fn disk_bytes(&self) -> Result<u64> {
        match &self.backing {
            Backing::Disk(disk) => disk.disk_bytes(),
            Backing::Memory => Ok(0),
        }
    }

    fn publish(&self, snapshot: Snapshot) {
        let mut published = self
            .published
            .write()
            .unwrap_or_else(PoisonError::into_inner);
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
        match self {
            Self::Disk(snapshot) => snapshot.first_table(from),
            Self::Memory(state) => {
                Ok(state
                    .range(Space::Table(from)..)
                    .find_map(|(space, _)| match space {
                        Space::Table(id) => Some(*id),
                        _ => None,
                    }))
            }
            Self::Closed => Err(closed()),
        }
    }

    /// All keys and values of all tables, in the order of their ids and keys.
    pub(crate) fn tables(&self) -> Box<dyn Iterator<Item = Result<(u32, Bytes, Bytes)>>> {
        match self {
            Self::Disk(snapshot) => Box::new(snapshot.tables()),
            Self::Memory(state) => {
                let spaces: Vec<_> = state.keys().copied().collect();
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

/// The bounds of all keys that begin so.
pub(crate) fn prefix_bounds(prefix: &[u8]) -> KeyBounds {
    (
        Bound::Included(prefix.to_vec()),
        prefix_end(prefix).map_or(Bound::Unbounded, Bound::Excluded),
    )
}

/// The first key after all keys that begin so; none if they are the last.
pub(crate) fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut end = prefix.get(..=keep)?.to_vec();
    *end.last_mut()? += 1;
    Some(end)
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

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// Whether no key can be within; ordered maps take such bounds for a mistake and panic.
fn is_empty_range(start: Bound<&[u8]>, end: Bound<&[u8]>) -> bool {
    match (start, end) {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (
            Bound::Included(start) | Bound::Excluded(start),
            Bound::Included(end) | Bound::Excluded(end),
        ) => start >= end,
        _ => false,
    }
}

/// Writes to several spaces that are applied as a whole. A key must stand in it once only.
#[derive(Default)]
pub(crate) struct Batch {
    writes: Vec<(Space, Bytes, Option<Bytes>)>,
    bytes: usize,
}

impl Batch {
    /// Sets a [key](Space::key) to a value, or removes it.
    pub(crate) fn push(&mut self, space: Space, key: Bytes, value: Option<Bytes>) {
        debug_assert_eq!(key.skip, space.skip(), "a key of another space");
        self.bytes += key.len() + value.as_ref().map_or(0, |value| value.len());
        self.writes.push((space, key, value));
    }

    /// Sets a key to a value.
    pub(crate) fn put(&mut self, space: Space, key: impl AsRef<[u8]>, value: impl Into<Bytes>) {
        self.push(space, space.key(key.as_ref()), Some(value.into()));
    }

    /// Replaces the value that a write of this batch sets.
    pub(crate) fn replace(&mut self, write: usize, value: Option<Bytes>) {
        if let Some((_, _, before)) = self.writes.get_mut(write) {
            self.bytes += value.as_ref().map_or(0, |value| value.len());
            *before = value;
        }
    }

    /// The value that a write of this batch sets; `None` if it removes its key.
    pub(crate) fn value(&self, write: usize) -> Option<&Bytes> {
        self.writes.get(write)?.2.as_ref()
    }

    /// How many writes there are.
    pub(crate) const fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there is no write in it.
    pub(crate) const fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// How many bytes it writes, roughly.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn has_each_key_once(&self) -> bool {
        let mut seen = std::collections::HashSet::new();
        self.writes
            .iter()
            .all(|(space, key, _)| seen.insert((space, key)))
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
