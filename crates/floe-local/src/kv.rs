//! The ordered key-value store below the engine, on disk or in memory.
//!
//! This is the only file that names `fjall` or `imbl`. It knows nothing of tables and items: spaces
//! of bytes to bytes, snapshots of all spaces, and batches that are applied as a whole.
//!
//! # Who may do what
//!
//! One thread at a time, the committer, calls [`Kv::commit`], [`Kv::get_latest`], [`Kv::refresh`] and the
//! functions that make and drop spaces. Everybody reads through [`Kv::snapshot`], which never waits
//! for a write: the committer publishes a snapshot after each batch, and readers share it. Snapshots
//! are taken between batches only, because the store below moves its visible sequence number from
//! its background threads too, and a snapshot taken in the middle of a batch could see half of it.
//!
//! # What is durable when
//!
//! A batch is written to the journal, synced ([`Sync::Data`]), applied in memory, and only then
//! published. So what a reader sees is on disk, unless the caller chose [`Sync::None`]. A failed
//! commit leaves it open whether the batch is in the journal; [`CommitError`] tells the cases apart.
//!
//! # Damage
//!
//! The store below checks an xxh3 checksum of every block when it is read from disk and of every
//! batch when a journal is replayed, so values carry no checksum of their own.

mod salvage;

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::ops::{Bound, Deref};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use fjall::config::{BlockSizePolicy, CompressionPolicy, PinningPolicy};
use fjall::{
    AbstractTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable,
};
use floe_store::{Error, Result};
use xxhash_rust::xxh3::Xxh3Default;

use crate::journal::Ahead;
pub(crate) use salvage::{Gap, Salvage};

/// Bytes that are cheap to clone: a view of a block of the store, or an allocation of their own.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Bytes(fjall::Slice);

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl std::borrow::Borrow<[u8]> for Bytes {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
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
    /// Nothing of it was written.
    Refused(String),
    /// Writing or syncing failed: it may be there after the store is opened again.
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

/// A named set of keys and values. A handle that is cheap to clone.
#[derive(Clone)]
pub(crate) struct Space {
    id: SpaceId,
    keyspace: Option<Keyspace>,
}

/// Tells spaces apart within one run of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SpaceId(u64);

impl Space {
    /// Tells it from all others of this run.
    pub(crate) const fn id(&self) -> SpaceId {
        self.id
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Space").field(&self.id.0).finish()
    }
}

/// The store.
pub(crate) struct Kv {
    backing: Backing,
    /// The state that readers see.
    published: RwLock<Snapshot>,
    spaces: Mutex<HashMap<String, Space>>,
    next_space: AtomicU64,
    /// What the next commit fails with.
    #[cfg(test)]
    pub(crate) next_failure: Mutex<Option<CommitError>>,
}

enum Backing {
    Disk(Disk),
    Memory,
}

struct Disk {
    db: Database,
    write_buffer_bytes: u64,
    /// Bytes committed since the write buffers were last looked at.
    unchecked_bytes: AtomicU64,
    ahead: Mutex<Ahead>,
}

/// One moment of all spaces. Cheap to clone; as long as one is held, what it sees is kept.
#[derive(Clone)]
pub(crate) enum Snapshot {
    /// Of a store on disk.
    Disk(Arc<fjall::Snapshot>),
    /// Of a store in memory.
    Memory(Arc<MemoryState>),
}

type MemoryState = imbl::OrdMap<SpaceId, imbl::OrdMap<Bytes, Bytes>>;

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
    /// Opens or makes a store in this directory, which nobody else may use meanwhile.
    pub(crate) fn open(dir: &Path, options: &KvOptions) -> Result<Self> {
        let db = Database::builder(dir)
            .cache_size(options.cache_bytes)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            // Compressing would keep everybody waiting who shares the commit.
            .journal_compression(CompressionType::None)
            // Every commit names its durability itself.
            .manual_journal_persist(true)
            .worker_threads(WORKER_THREADS)
            .open()
            .map_err(|e| open_error(dir, &e))?;
        let published = RwLock::new(Snapshot::Disk(Arc::new(db.snapshot())));
        let kv = Self {
            published,
            spaces: Mutex::default(),
            next_space: AtomicU64::new(0),
            #[cfg(test)]
            next_failure: Mutex::default(),
            backing: Backing::Disk(Disk {
                db,
                write_buffer_bytes: options.write_buffer_bytes,
                unchecked_bytes: AtomicU64::new(0),
                ahead: Mutex::new(Ahead::new(dir)),
            }),
        };
        for name in kv.stored_names() {
            kv.space(&name)?;
        }
        Ok(kv)
    }

    /// An empty store in memory.
    pub(crate) fn memory() -> Self {
        Self {
            backing: Backing::Memory,
            published: RwLock::new(Snapshot::Memory(Arc::default())),
            spaces: Mutex::default(),
            next_space: AtomicU64::new(0),
            #[cfg(test)]
            next_failure: Mutex::default(),
        }
    }

    /// Whether nothing is kept on a disk.
    pub(crate) const fn is_memory(&self) -> bool {
        matches!(self.backing, Backing::Memory)
    }

    /// The space of that name; made if it is not there.
    pub(crate) fn space(&self, name: &str) -> Result<Space> {
        let mut spaces = lock(&self.spaces);
        if let Some(space) = spaces.get(name) {
            return Ok(space.clone());
        }
        let keyspace = match &self.backing {
            Backing::Disk(disk) => Some(disk.keyspace(name)?),
            Backing::Memory => None,
        };
        let id = SpaceId(self.next_space.fetch_add(1, Ordering::Relaxed));
        let space = Space { id, keyspace };
        spaces.insert(name.to_owned(), space.clone());
        Ok(space)
    }

    /// Removes a space with all that is in it. Snapshots and handles that are still held keep it
    /// readable until they are gone.
    pub(crate) fn drop_space(&self, name: &str) -> Result<()> {
        let Some(space) = lock(&self.spaces).remove(name) else {
            return Ok(());
        };
        match (&self.backing, space.keyspace) {
            (Backing::Disk(disk), Some(keyspace)) => disk
                .db
                .delete_keyspace(keyspace)
                .map_err(|e| storage("a space could not be removed", &e)),
            _ => {
                if let Snapshot::Memory(state) = self.snapshot() {
                    self.publish(Snapshot::Memory(Arc::new(state.without(&space.id))));
                }
                Ok(())
            }
        }
    }

    /// The names of all spaces.
    pub(crate) fn space_names(&self) -> Vec<String> {
        lock(&self.spaces).keys().cloned().collect()
    }

    /// The space of that name, if it is there.
    pub(crate) fn find_space(&self, name: &str) -> Option<Space> {
        lock(&self.spaces).get(name).cloned()
    }

    /// Fills an empty space of a store on disk that nobody else uses yet with entries in the order of
    /// their keys. They are on the disk when this returns, and take no way through the journal.
    pub(crate) fn load(
        &self,
        space: &Space,
        entries: impl IntoIterator<Item = Result<(Bytes, Bytes)>>,
    ) -> Result<()> {
        let failed = |e| storage("a space could not be filled", &e);
        let keyspace = space.keyspace.as_ref().ok_or_else(foreign_space)?;
        let mut ingestion = keyspace.start_ingestion().map_err(failed)?;
        let mut last: Option<Bytes> = None;
        for entry in entries {
            let (key, value) = entry?;
            // The store below panics on keys out of order.
            if last.is_some_and(|last| last >= key) {
                return Err(Error::Storage(format!(
                    "keys are out of order: key={key:?}"
                )));
            }
            ingestion.write(key.0.clone(), value.0).map_err(failed)?;
            last = Some(key);
        }
        ingestion.finish().map_err(failed)?;
        self.refresh();
        Ok(())
    }

    /// Reads every sorted file of a space and compares it with the checksum that was noted when it was
    /// written. Tells the bytes as they are read, and answers which files are damaged and how.
    pub(crate) fn damaged_files(
        &self,
        space: &Space,
        mut tell: impl FnMut(u64),
    ) -> Vec<(PathBuf, String)> {
        let Some(keyspace) = &space.keyspace else {
            return Vec::new();
        };
        // Files of a version that is held are not removed.
        let version = keyspace.tree.current_version();
        let mut damaged = Vec::new();
        for table in version.iter_tables() {
            let expected = table.checksum().into_u128();
            let fault = match file_checksum(&table.path, &mut tell) {
                Ok(found) if found == expected => continue,
                Ok(_) => "the checksum of the file does not match".to_owned(),
                Err(e) => format!("the file could not be read: {e}"),
            };
            damaged.push((table.path.to_path_buf(), fault));
        }
        damaged
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
    pub(crate) fn get_latest(&self, space: &Space, key: &[u8]) -> Result<Option<Bytes>> {
        match &space.keyspace {
            Some(keyspace) => match keyspace.get(key) {
                Ok(value) => Ok(value.map(Bytes)),
                Err(e) => Err(read_failed(e)),
            },
            None => self.snapshot().get(space, key),
        }
    }

    /// Applies a batch as a whole and publishes it.
    pub(crate) fn commit(&self, batch: Batch, sync: Sync) -> Result<(), CommitError> {
        debug_assert!(batch.has_each_key_once(), "a key stands in a batch twice");
        #[cfg(test)]
        if let Some(error) = lock(&self.next_failure).take() {
            return Err(error);
        }
        match &self.backing {
            Backing::Disk(disk) => {
                disk.commit(batch, sync)?;
                self.publish(Snapshot::Disk(Arc::new(disk.db.snapshot())));
            }
            Backing::Memory => {
                if let Snapshot::Memory(state) = self.snapshot() {
                    self.publish(Snapshot::Memory(Arc::new(batch.applied_to(&state))));
                }
            }
        }
        Ok(())
    }

    /// Keeps the write buffers within their bound, and zeros ahead of the journal. Called by the committer when it has answered, so that
    /// nobody waits for it whose write is done.
    pub(crate) fn maintain(&self) {
        if let Backing::Disk(disk) = &self.backing {
            disk.bound_write_buffers(|| lock(&self.spaces).values().cloned().collect());
            lock(&disk.ahead).keep_up();
        }
    }

    /// Publishes the present state anew, so that readers leave behind the files that a compaction has
    /// replaced since. Called by the committer when it is idle.
    pub(crate) fn refresh(&self) {
        if let (Backing::Disk(disk), Snapshot::Disk(seen)) = (&self.backing, self.snapshot())
            && seen.seqno() != disk.db.visible_seqno()
        {
            self.publish(Snapshot::Disk(Arc::new(disk.db.snapshot())));
        }
    }

    /// Writes everything committed so far through to the disk.
    pub(crate) fn persist(&self) -> Result<()> {
        match &self.backing {
            Backing::Disk(disk) => disk
                .db
                .persist(PersistMode::SyncAll)
                .map_err(|e| storage("a sync failed", &e)),
            Backing::Memory => Ok(()),
        }
    }

    /// Bytes that the whole store takes on disk with its journals; 0 in memory.
    pub(crate) fn disk_bytes(&self) -> Result<u64> {
        match &self.backing {
            Backing::Disk(disk) => disk
                .db
                .disk_space()
                .map_err(|e| storage("sizes could not be read", &e)),
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

    fn stored_names(&self) -> Vec<String> {
        match &self.backing {
            Backing::Disk(disk) => {
                let names = disk.db.list_keyspace_names();
                names.iter().map(ToString::to_string).collect()
            }
            Backing::Memory => Vec::new(),
        }
    }
}

impl Disk {
    /// Opens or makes a keyspace. The store below syncs the files of a new one and not the directory
    /// that names it, so a power cut could take the whole keyspace away.
    fn keyspace(&self, name: &str) -> Result<Keyspace> {
        let is_new = !self.db.keyspace_exists(name);
        let keyspace = self
            .db
            .keyspace(name, space_options)
            .map_err(|e| storage("a space could not be opened", &e))?;
        if is_new && let Some(parent) = keyspace.path().parent() {
            let synced = std::fs::File::open(parent).and_then(|parent| parent.sync_all());
            synced.map_err(|e| storage("a space could not be synced", &e.into()))?;
        }
        Ok(keyspace)
    }

    fn commit(&self, batch: Batch, sync: Sync) -> Result<(), CommitError> {
        self.wait_for_workers(&batch)?;
        let mode = match sync {
            Sync::Data => PersistMode::SyncData,
            Sync::None => PersistMode::Buffer,
        };
        let mut writes = fjall::OwnedWriteBatch::with_capacity(self.db.clone(), batch.writes.len())
            .durability(Some(mode));
        for (space, key, value) in batch.writes {
            let Some(keyspace) = &space.keyspace else {
                continue;
            };
            match value {
                Some(value) => writes.insert(keyspace, key.0, value.0),
                None => writes.remove(keyspace, key.0),
            }
        }
        self.unchecked_bytes
            .fetch_add(batch.bytes as u64, Ordering::Relaxed);
        if sync == Sync::Data {
            lock(&self.ahead).note(batch.bytes as u64);
        }
        writes.commit().map_err(|e| match e {
            // An earlier failure, found before anything of this batch was written.
            fjall::Error::Poisoned => failed_before(),
            e => CommitError::Unknown(format!("a commit failed: {e}")),
        })
    }

    /// Waits while the threads that write and merge files are far behind. The store below would do so
    /// after the batch is written, with everybody waiting, and for ever if those threads have failed.
    fn wait_for_workers(&self, batch: &Batch) -> Result<(), CommitError> {
        let mut seen: Vec<SpaceId> = Vec::new();
        for (space, _, _) in &batch.writes {
            let Some(keyspace) = space
                .keyspace
                .as_ref()
                .filter(|_| !seen.contains(&space.id))
            else {
                continue;
            };
            seen.push(space.id);
            while keyspace.tree.sealed_memtable_count() >= SEALED_BUFFERS_MAX
                || keyspace.tree.l0_run_count() >= UNMERGED_RUNS_MAX
            {
                self.pause()?;
            }
        }
        Ok(())
    }

    /// Sleeps a little, if there is still something to wait for.
    fn pause(&self) -> Result<(), CommitError> {
        // Passes on whether one of the threads below has failed; there is nothing to write here.
        self.db
            .persist(PersistMode::Buffer)
            .map_err(|_| failed_before())?;
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    }

    /// Starts to write the fullest buffers into sorted files once all together are over the bound.
    /// The store below bounds each space on its own only, so without this the memory, and the
    /// journal to replay when opening, would grow with the number of tables.
    fn bound_write_buffers(&self, spaces: impl FnOnce() -> Vec<Space>) {
        let look_every = self.write_buffer_bytes / 8;
        if self.unchecked_bytes.load(Ordering::Relaxed) < look_every {
            return;
        }
        self.unchecked_bytes.store(0, Ordering::Relaxed);
        let mut buffers: Vec<(u64, Keyspace)> = spaces()
            .into_iter()
            .filter_map(|space| space.keyspace)
            .map(|keyspace| (keyspace.tree.active_memtable().size(), keyspace))
            .collect();
        buffers.sort_unstable_by_key(|(size, _)| std::cmp::Reverse(*size));
        let mut total: u64 = buffers.iter().map(|(size, _)| size).sum();
        for (size, keyspace) in buffers {
            if total <= self.write_buffer_bytes {
                break;
            }
            // One round at a time, so that those on their way to disk are bounded too.
            while self.db.outstanding_flushes() >= FLUSHES_MAX {
                if self.pause().is_err() {
                    return;
                }
            }
            // A failure here shows in the next commit: the store below refuses to go on.
            if keyspace.rotate_memtable().is_ok() {
                total = total.saturating_sub(size);
            }
        }
    }
}

impl Snapshot {
    /// The value of a key.
    pub(crate) fn get(&self, space: &Space, key: &[u8]) -> Result<Option<Bytes>> {
        match (self, &space.keyspace) {
            (Self::Disk(snapshot), Some(keyspace)) => match snapshot.get(keyspace, key) {
                Ok(value) => Ok(value.map(Bytes)),
                Err(e) => Err(read_failed(e)),
            },
            (Self::Memory(state), None) => {
                Ok(state.get(&space.id).and_then(|map| map.get(key)).cloned())
            }
            _ => Err(foreign_space()),
        }
    }

    /// The keys and values within bounds, in one direction.
    pub(crate) fn range(&self, space: &Space, bounds: KeyBounds, direction: Direction) -> Walk {
        let source = match (self, &space.keyspace) {
            (Self::Disk(_), Some(_))
                if is_empty_range(as_slice(&bounds.0), as_slice(&bounds.1)) =>
            {
                Source::Empty
            }
            (Self::Disk(snapshot), Some(keyspace)) => {
                Source::Disk(snapshot.range(keyspace, bounds))
            }
            (Self::Memory(state), None) => Source::Memory(MemoryWalk {
                map: state.get(&space.id).cloned().unwrap_or_default(),
                bounds,
                ahead: Vec::new(),
            }),
            _ => Source::Failed(Some(foreign_space())),
        };
        Walk { source, direction }
    }

    /// All keys and values of which the key begins so.
    pub(crate) fn prefix(&self, space: &Space, prefix: &[u8], direction: Direction) -> Walk {
        self.range(space, prefix_bounds(prefix), direction)
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

/// A walk through keys and values in order.
pub(crate) struct Walk {
    source: Source,
    direction: Direction,
}

enum Source {
    Disk(fjall::Iter),
    Memory(MemoryWalk),
    Empty,
    Failed(Option<Error>),
}

/// A walk through a persistent map. It borrows nothing, so it fetches a few entries at a time.
struct MemoryWalk {
    map: imbl::OrdMap<Bytes, Bytes>,
    bounds: KeyBounds,
    /// The entries that come next, the next one last.
    ahead: Vec<(Bytes, Bytes)>,
}

impl Iterator for Walk {
    type Item = Result<(Bytes, Bytes)>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::Disk(iter) => {
                let guard = match self.direction {
                    Direction::Forward => iter.next()?,
                    Direction::Backward => iter.next_back()?,
                };
                Some(match guard.into_inner() {
                    Ok((key, value)) => Ok((Bytes(key), Bytes(value))),
                    Err(e) => Err(read_failed(e)),
                })
            }
            Source::Memory(walk) => walk.next(self.direction).map(Ok),
            Source::Empty => None,
            Source::Failed(error) => error.take().map(Err),
        }
    }
}

impl MemoryWalk {
    fn next(&mut self, direction: Direction) -> Option<(Bytes, Bytes)> {
        if self.ahead.is_empty() {
            self.fetch(direction);
        }
        self.ahead.pop()
    }

    fn fetch(&mut self, direction: Direction) {
        let (start, end) = (as_slice(&self.bounds.0), as_slice(&self.bounds.1));
        if is_empty_range(start, end) {
            return;
        }
        let range = self.map.range::<_, [u8]>((start, end));
        let entry = |(key, value): (&Bytes, &Bytes)| (key.clone(), value.clone());
        self.ahead = match direction {
            Direction::Forward => range.take(FETCH).map(entry).collect(),
            Direction::Backward => range.rev().take(FETCH).map(entry).collect(),
        };
        if let Some((last, _)) = self.ahead.last() {
            let last = Bound::Excluded(last.to_vec());
            match direction {
                Direction::Forward => self.bounds.0 = last,
                Direction::Backward => self.bounds.1 = last,
            }
        }
        self.ahead.reverse();
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
    /// Sets a key to a value, or removes it.
    pub(crate) fn push(&mut self, space: &Space, key: Bytes, value: Option<Bytes>) {
        self.bytes += key.len() + value.as_ref().map_or(0, |value| value.len());
        self.writes.push((space.clone(), key, value));
    }

    /// Sets a key to a value.
    pub(crate) fn put(&mut self, space: &Space, key: impl Into<Bytes>, value: impl Into<Bytes>) {
        self.push(space, key.into(), Some(value.into()));
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
            .all(|(space, key, _)| seen.insert((space.id, key)))
    }

    fn applied_to(self, state: &MemoryState) -> MemoryState {
        let mut state = state.clone();
        for (space, key, value) in self.writes {
            let map = state.entry(space.id).or_default();
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        state
    }
}

/// The least that the store below accepts. It is the size at which a journal is closed, so opening
/// never replays much more than two of them.
const JOURNAL_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One thread to write buffers into files while the other compacts.
const WORKER_THREADS: usize = 2;

/// A space with so many full buffers on their way to disk takes no further writes.
const SEALED_BUFFERS_MAX: usize = 3;

/// A space with so many files that overlap takes no further writes until some are merged.
const UNMERGED_RUNS_MAX: usize = 20;

/// No further buffers are closed while so many are on their way to disk.
const FLUSHES_MAX: usize = 4;

/// Entries that a walk in memory fetches at once.
const FETCH: usize = 64;

/// The write buffer of one space. A journal is closed at the first full buffer after 64 MB, so this is
/// also what opening may have to replay beyond that.
const SPACE_BUFFER_BYTES: u64 = 32 * 1024 * 1024;

/// Measured with a million items of 200 bytes: blocks of 4 KB with the store's own spacing of restart
/// points are the best for point reads and within a tenth of the best for short scans. Compressing the
/// deeper levels takes 64 % off the disk for 10 to 20 % of a read that misses the cache. Filters are
/// pinned where they are small, so that memory does not grow with the data.
/// The size of the blocks that are read, checked and cached as one. A page of small items is in one or two of
/// them.
const DATA_BLOCK_BYTES: u32 = 8 * 1024;

fn space_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(SPACE_BUFFER_BYTES)
        .manual_journal_persist(true)
        .data_block_size_policy(BlockSizePolicy::all(DATA_BLOCK_BYTES))
        .data_block_compression_policy(CompressionPolicy::new([
            CompressionType::None,
            CompressionType::None,
            CompressionType::Lz4,
        ]))
        .filter_block_pinning_policy(PinningPolicy::new([true, true, false]))
}

fn file_checksum(path: &Path, mut tell: impl FnMut(u64)) -> std::io::Result<u128> {
    let mut file = File::open(path)?;
    let mut hasher = Xxh3Default::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(hasher.digest128());
        }
        hasher.update(buffer.get(..count).unwrap_or_default());
        tell(count as u64);
    }
}

fn open_error(dir: &Path, error: &fjall::Error) -> Error {
    let dir = dir.display();
    Error::Storage(match error {
        fjall::Error::Locked => {
            format!("the directory is in use by another process: directory={dir}")
        }
        fjall::Error::InvalidVersion(_) => {
            format!("the directory was written by another version of the store: directory={dir}")
        }
        e => format!("the directory could not be opened: {e} directory={dir}"),
    })
}

fn storage(what: &str, error: &fjall::Error) -> Error {
    Error::Storage(format!("{what}: {error}"))
}

fn read_failed(error: impl Into<fjall::Error>) -> Error {
    storage("a read failed", &error.into())
}

fn failed_before() -> CommitError {
    CommitError::Refused("the store below has failed before".to_owned())
}

fn foreign_space() -> Error {
    Error::Storage("a space of another store was asked for".to_owned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
