//! The store on disk.
//!
//! It has four fjall keyspaces, independent of the number of tables: the catalog, the change records, the tokens, and
//! all tables together.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use fjall::config::{BlockSizePolicy, CompressionPolicy, PinningPolicy};
use fjall::{
    AbstractTree, CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable,
};
use floe_store::env::Stopwatch;
use floe_store::{Error, Result};
use xxhash_rust::xxh3::Xxh3Default;

use super::{
    Batch, Bytes, CommitError, KeyBounds, KvOptions, Snapshot, Space, Sync, TablePrefix, closed,
    failure::describe,
};
use crate::journal::{self, JournalZeroing};
use crate::locks::{lock, read, write};
use crate::private;

/// The names of the keyspaces, in order of creation.
const KEYSPACES: [&str; 4] = ["meta", "changes", "tokens", "tables"];

/// The minimum that fjall accepts. A journal is closed at this size, so opening rarely replays more than two of
/// them.
const JOURNAL_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One thread flushes buffers to files while the other compacts.
const WORKER_THREADS: usize = 2;

/// Maximum full buffers of a keyspace on their way to disk before its writes wait.
const SEALED_BUFFERS_MAX: usize = 3;

/// Maximum overlapping files of a keyspace before its writes wait for a merge.
const UNMERGED_RUNS_MAX: usize = 20;

/// Maximum buffers on their way to disk before no further one is closed.
const FLUSHES_MAX: usize = 4;

/// Size of a keyspace's write buffer. A journal is closed at the first full buffer after 64 MB, so opening may have to
/// replay this much more.
const BUFFER_BYTES: u64 = 32 * 1024 * 1024;

/// Size of the blocks in which data is read, verified and cached. A page of small items is in one or two blocks.
const DATA_BLOCK_BYTES: u32 = 8 * 1024;

/// Maximum time for which [`Disk::reopen`] waits for readers.
const READERS_WAIT_MAX: Duration = Duration::from_secs(2);

/// Size of the file that tests whether the disk is writable.
const PROBE_BYTES: usize = 1 << 20;

/// Name of the file that tests whether the disk is writable.
const PROBE_FILE: &str = "probe.tmp";

/// The store on disk.
pub(super) struct Disk {
    folder: PathBuf,
    options: KvOptions,
    /// The open database; `None` while it could not be reopened.
    opened: RwLock<Option<Arc<OpenDatabase>>>,
    /// Every batch with a smaller sequence number is committed.
    committed_below: AtomicU64,
    /// Bytes committed since the write buffers were last checked.
    unchecked_bytes: AtomicU64,
    zeroing: Mutex<JournalZeroing>,
}

/// The open fjall database.
pub(super) struct OpenDatabase {
    db: Database,
    keyspaces: [Keyspace; KEYSPACES.len()],
}

/// The store on disk at one point in time.
pub(crate) struct DiskSnapshot {
    snapshot: fjall::Snapshot,
    opened: Arc<OpenDatabase>,
}

impl OpenDatabase {
    /// Opens the database in a folder. `keyspace` opens or creates each keyspace.
    fn open(folder: &Path, options: &KvOptions, keyspace: OpenKeyspace) -> Result<Self> {
        let db = Database::builder(folder)
            .cache_size(options.cache_bytes)
            .max_journaling_size(JOURNAL_BYTES_MAX)
            // Compression would delay every writer that shares the commit.
            .journal_compression(CompressionType::None)
            // Every commit specifies its own durability.
            .manual_journal_persist(true)
            .worker_threads(WORKER_THREADS)
            .open()
            .map_err(|e| open_error(folder, &e))?;
        let [meta, changes, tokens, tables] = KEYSPACES.map(|name| keyspace(&db, name));
        Ok(Self {
            keyspaces: [meta?, changes?, tokens?, tables?],
            db,
        })
    }

    pub(super) const fn keyspace(&self, space: Space) -> &Keyspace {
        let [meta, changes, tokens, tables] = &self.keyspaces;
        match space {
            Space::Meta => meta,
            Space::Changes => changes,
            Space::Tokens => tokens,
            Space::Table(_) => tables,
        }
    }
}

/// Opens or creates the keyspace with this name.
type OpenKeyspace = fn(&Database, &str) -> Result<Keyspace>;

/// Opens a keyspace.
fn open_keyspace(db: &Database, name: &str) -> Result<Keyspace> {
    if !db.keyspace_exists(name) {
        return Err(Error::Storage(format!(
            "a keyspace is missing: name={name}"
        )));
    }
    db.keyspace(name, keyspace_options)
        .map_err(|e| storage("a keyspace could not be opened", &e))
}

/// Creates a keyspace. Fjall syncs the files of a new keyspace but not their parent directory, so a power failure could
/// lose the whole keyspace.
fn create_keyspace(db: &Database, name: &str) -> Result<Keyspace> {
    let keyspace = db
        .keyspace(name, keyspace_options)
        .map_err(|e| storage("a keyspace could not be created", &e))?;
    if let Some(parent) = keyspace.path().parent() {
        let synced = File::open(parent).and_then(|parent| parent.sync_all());
        synced.map_err(|e| storage("a keyspace could not be synced", &e.into()))?;
    }
    Ok(keyspace)
}

/// Measured with a million items of 200 bytes: this block size with fjall's default restart interval is the best for
/// point reads and within a tenth of the best for short scans. Compressing the deeper levels saves 64 % of disk space
/// and costs 10 to 20 % of a read that misses the cache. Filters are pinned where they are small, so that memory does
/// not grow with the data.
fn keyspace_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(BUFFER_BYTES)
        .manual_journal_persist(true)
        .data_block_size_policy(BlockSizePolicy::all(DATA_BLOCK_BYTES))
        .data_block_compression_policy(CompressionPolicy::new([
            CompressionType::None,
            CompressionType::None,
            CompressionType::Lz4,
        ]))
        .filter_block_pinning_policy(PinningPolicy::new([true, true, false]))
}

impl Disk {
    /// Creates an empty store.
    pub(super) fn create(folder: &Path, options: &KvOptions) -> Result<Self> {
        Self::with(folder, options, create_keyspace)
    }

    /// Opens an existing store.
    pub(super) fn open(folder: &Path, options: &KvOptions) -> Result<Self> {
        Self::with(folder, options, open_keyspace)
    }

    fn with(folder: &Path, options: &KvOptions, keyspace: OpenKeyspace) -> Result<Self> {
        let opened = OpenDatabase::open(folder, options, keyspace)?;
        Ok(Self {
            folder: folder.to_owned(),
            options: *options,
            committed_below: AtomicU64::new(opened.db.visible_seqno()),
            opened: RwLock::new(Some(Arc::new(opened))),
            unchecked_bytes: AtomicU64::new(0),
            zeroing: Mutex::new(JournalZeroing::new(folder)),
        })
    }

    fn opened(&self) -> Option<Arc<OpenDatabase>> {
        read(&self.opened).clone()
    }

    /// Takes a snapshot. Only the committer calls this.
    pub(super) fn snapshot(&self) -> Snapshot {
        self.opened().map_or(Snapshot::Closed, |opened| {
            Snapshot::Disk(Arc::new(DiskSnapshot {
                snapshot: opened.db.snapshot(),
                opened,
            }))
        })
    }

    pub(super) fn has_failed(&self) -> bool {
        // Returns an error if a thread has failed. The committer calls this between two commits, so it writes nothing.
        let persisted = self
            .opened()
            .map(|opened| opened.db.persist(PersistMode::Buffer));
        persisted.is_none_or(|persisted| persisted.is_err())
    }

    pub(super) fn journal_count(&self) -> Option<usize> {
        Some(self.opened()?.db.journal_count())
    }

    /// Whether a new snapshot would differ.
    pub(super) fn has_changed_since(&self, seen: &DiskSnapshot) -> bool {
        seen.snapshot.seqno() != seen.opened.db.visible_seqno()
    }

    pub(super) fn get_latest(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        let opened = self.opened().ok_or_else(closed)?;
        let value = space.with_full_key(key, |key| opened.keyspace(space).get(key));
        Ok(value.map_err(read_failed)?.map(Bytes::whole))
    }

    pub(super) fn commit(&self, batch: Batch, sync: Sync) -> Result<(), CommitError> {
        let opened = self
            .opened()
            .ok_or_else(|| CommitError::Rejected(closed().to_string()))?;
        self.wait_for_workers(&opened, &batch)?;
        let mode = match sync {
            Sync::Data => PersistMode::SyncData,
            Sync::None => PersistMode::Buffer,
        };
        let mut writes =
            fjall::OwnedWriteBatch::with_capacity(opened.db.clone(), batch.writes.len())
                .durability(Some(mode));
        let bytes = batch.bytes() as u64;
        for (space, key, value) in batch.writes {
            let keyspace = opened.keyspace(space);
            match value {
                Some(value) => writes.insert(keyspace, key.slice, value.slice),
                None => writes.remove(keyspace, key.slice),
            }
        }
        self.unchecked_bytes.fetch_add(bytes, Ordering::Relaxed);
        if sync == Sync::Data {
            lock(&self.zeroing).record_commit(bytes);
        }
        writes.commit().map_err(|e| match e {
            // An earlier failure, detected before any part of this batch was written.
            fjall::Error::Poisoned => self.worker_failed(),
            e if is_full(&e) => CommitError::Full("no space left on the device".to_owned()),
            e => CommitError::Unknown(format!("a commit failed: {}", describe(&e))),
        })?;
        self.committed_below
            .store(opened.db.visible_seqno(), Ordering::Relaxed);
        Ok(())
    }

    /// The error for a store whose flush or compaction threads have failed. Fjall does not report their error, so this
    /// writes to the disk to find the cause.
    fn worker_failed(&self) -> CommitError {
        match self.probe() {
            Ok(()) => CommitError::Rejected("a thread that writes files has failed".to_owned()),
            Err(e) if is_full_io(&e) => {
                CommitError::RejectedFull("no space left on the device to write files".to_owned())
            }
            Err(e) => CommitError::Rejected(format!("files cannot be written: {e}")),
        }
    }

    /// Tests whether a file can be written and synced.
    pub(super) fn probe(&self) -> io::Result<()> {
        let path = self.folder.join(PROBE_FILE);
        let mut file = private::replace_file(&path)?;
        let written = file.write_all(&vec![1; PROBE_BYTES]);
        let written = written.and_then(|()| file.sync_all());
        // The name belongs to this store, and a later probe replaces a file that stays.
        let removed = fs::remove_file(&path);
        written.and(removed)
    }

    /// Waits while the flush and compaction threads are far behind. Fjall itself would wait after writing the batch,
    /// which blocks every writer, and forever if those threads have failed.
    fn wait_for_workers(&self, opened: &OpenDatabase, batch: &Batch) -> Result<(), CommitError> {
        let mut seen = [false; KEYSPACES.len()];
        for (space, _, _) in &batch.writes {
            let Some(seen) = seen.get_mut(keyspace_index(*space)).filter(|seen| !**seen) else {
                continue;
            };
            *seen = true;
            let tree = &opened.keyspace(*space).tree;
            while tree.sealed_memtable_count() >= SEALED_BUFFERS_MAX
                || tree.l0_run_count() >= UNMERGED_RUNS_MAX
            {
                self.pause(opened)?;
            }
        }
        Ok(())
    }

    /// Sleeps briefly, unless the threads have failed.
    fn pause(&self, opened: &OpenDatabase) -> Result<(), CommitError> {
        // Returns an error if one of fjall's threads has failed; there is nothing to write here.
        opened
            .db
            .persist(PersistMode::Buffer)
            .map_err(|_| self.worker_failed())?;
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    }

    /// Keeps the write buffers within their limit, and zeros ahead of the journal.
    pub(super) fn maintain(&self) {
        if let Some(opened) = self.opened() {
            self.bound_write_buffers(&opened);
            lock(&self.zeroing).write_if_due();
        }
    }

    /// Starts flushing the largest buffers once all buffers together exceed the limit. Fjall limits each keyspace
    /// separately only.
    fn bound_write_buffers(&self, opened: &OpenDatabase) {
        let look_every = self.options.write_buffer_bytes / 8;
        if self.unchecked_bytes.load(Ordering::Relaxed) < look_every {
            return;
        }
        self.unchecked_bytes.store(0, Ordering::Relaxed);
        let size = |keyspace: &Keyspace| keyspace.tree.active_memtable().size();
        let mut buffers: Vec<(u64, &Keyspace)> =
            opened.keyspaces.iter().map(|k| (size(k), k)).collect();
        buffers.sort_unstable_by_key(|(size, _)| std::cmp::Reverse(*size));
        let mut total: u64 = buffers.iter().map(|(size, _)| size).sum();
        for (size, keyspace) in buffers {
            if total <= self.options.write_buffer_bytes {
                break;
            }
            // Wait for outstanding flushes, so that the buffers being flushed are limited, too.
            while opened.db.outstanding_flushes() >= FLUSHES_MAX {
                if self.pause(opened).is_err() {
                    return;
                }
            }
            // A failure here shows in the next commit, which fjall rejects.
            if keyspace.rotate_memtable().is_ok() {
                total = total.saturating_sub(size);
            }
        }
    }

    /// Closes and reopens the database, without uncommitted batches.
    pub(super) fn reopen(&self) -> Result<()> {
        if !self.close() {
            return Err(Error::Unavailable(
                "the store is waiting for readers before it can be reopened".to_owned(),
            ));
        }
        let mut opened = write(&self.opened);
        // The zeroing has the truncated journal open.
        *lock(&self.zeroing) = JournalZeroing::new(&self.folder);
        journal::truncate_from(&self.folder, self.committed_below.load(Ordering::Relaxed))?;
        let reopened = OpenDatabase::open(&self.folder, &self.options, open_keyspace)?;
        reopened
            .db
            .persist(PersistMode::SyncAll)
            .map_err(|e| storage("a sync failed", &e))?;
        self.committed_below
            .store(reopened.db.visible_seqno(), Ordering::Relaxed);
        *opened = Some(Arc::new(reopened));
        Ok(())
    }

    /// Closes the database, unless readers hold snapshots too long.
    pub(super) fn close(&self) -> bool {
        let mut opened = write(&self.opened);
        let Some(old) = opened.take() else {
            return true;
        };
        match wait_for_readers(old) {
            // Dropping it stops fjall's threads and releases its files.
            Ok(old) => drop(old),
            Err(held) => *opened = Some(held),
        }
        opened.is_none()
    }

    /// Removes the sorted files that contain only keys of this space.
    pub(super) fn drop_files(&self, space: Space) -> Result<()> {
        let opened = self.opened().ok_or_else(closed)?;
        let tree = &opened.keyspace(space).tree;
        let bounds = space.full_bounds((Bound::Unbounded, Bound::Unbounded));
        let within =
            |key: &[u8]| std::ops::RangeBounds::<Vec<u8>>::contains(&bounds, &key.to_vec());
        let version = tree.current_version();
        let has_any = version.iter_tables().any(|table| {
            let range = &table.metadata.key_range;
            within(range.min()) && within(range.max())
        });
        if has_any {
            // Fjall writes its list of files even if nothing is dropped.
            tree.drop_range::<Vec<u8>, _>(bounds)
                .map_err(|e| storage("files could not be removed", &e.into()))?;
        }
        Ok(())
    }

    pub(super) fn load(
        &self,
        entries: impl IntoIterator<Item = Result<(Space, Bytes, Bytes)>>,
    ) -> Result<()> {
        let failed = |e| storage("a keyspace could not be filled", &e);
        let opened = self.opened().ok_or_else(closed)?;
        let mut entries = entries.into_iter().peekable();
        while let Some(first) = entries.peek() {
            let &(first, _, _) = first.as_ref().map_err(Error::clone)?;
            let mut ingestion = opened.keyspace(first).start_ingestion().map_err(failed)?;
            let mut last: Option<(Space, Bytes)> = None;
            let same = |entry: &Result<(Space, Bytes, Bytes)>| {
                let space = entry.as_ref().map(|(space, _, _)| *space);
                space.map_or(true, |space| keyspace_index(space) == keyspace_index(first))
            };
            while let Some(entry) = entries.next_if(same) {
                let (space, key, value) = entry?;
                let key = space.key(&key);
                // Fjall panics on keys out of order.
                if last.is_some_and(|last| last >= (space, key.clone())) {
                    return Err(Error::Storage(format!(
                        "keys are out of order: space={space:?} key={key:?}"
                    )));
                }
                ingestion
                    .write(key.slice.clone(), value.slice)
                    .map_err(failed)?;
                last = Some((space, key));
            }
            ingestion.finish().map_err(failed)?;
        }
        Ok(())
    }

    pub(super) fn damaged_files(&self, mut read: impl FnMut(u64)) -> Vec<(PathBuf, String)> {
        let mut damaged = Vec::new();
        let Some(opened) = self.opened() else {
            return damaged;
        };
        for keyspace in &opened.keyspaces {
            // Files of a version that is held are not removed meanwhile.
            let version = keyspace.tree.current_version();
            for table in version.iter_tables() {
                let expected = table.checksum().into_u128();
                let fault = match file_checksum(&table.path, &mut read) {
                    Ok(found) if found == expected => continue,
                    Ok(_) => "the checksum of the file does not match".to_owned(),
                    Err(e) => format!("the file could not be read: {e}"),
                };
                damaged.push((table.path.to_path_buf(), fault));
            }
        }
        damaged
    }

    /// Total size of the write buffers.
    #[cfg(test)]
    pub(super) fn buffered_bytes(&self) -> u64 {
        let opened = self.opened().unwrap();
        let sizes = opened
            .keyspaces
            .iter()
            .map(|k| k.tree.active_memtable().size());
        sizes.sum()
    }

    #[cfg(test)]
    pub(super) fn committed_below(&self) -> u64 {
        self.committed_below.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(super) fn set_committed_below(&self, sequence: u64) {
        self.committed_below.store(sequence, Ordering::Relaxed);
    }

    pub(super) fn persist(&self) -> Result<()> {
        let opened = self.opened().ok_or_else(closed)?;
        let persisted = opened.db.persist(PersistMode::SyncAll);
        persisted.map_err(|e| storage("a sync failed", &e))
    }

    pub(super) fn disk_bytes(&self) -> Result<u64> {
        let opened = self.opened().ok_or_else(closed)?;
        let bytes = opened.db.disk_space();
        bytes.map_err(|e| storage("sizes could not be read", &e))
    }
}

/// Waits until no reader holds a snapshot, up to a limit.
fn wait_for_readers(mut opened: Arc<OpenDatabase>) -> Result<OpenDatabase, Arc<OpenDatabase>> {
    let begun = Stopwatch::start();
    loop {
        opened = match Arc::try_unwrap(opened) {
            Ok(opened) => return Ok(opened),
            Err(held) if begun.elapsed() >= READERS_WAIT_MAX => return Err(held),
            Err(held) => held,
        };
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl DiskSnapshot {
    pub(super) fn get(&self, space: Space, key: &[u8]) -> Result<Option<Bytes>> {
        let keyspace = self.opened.keyspace(space);
        let value = space.with_full_key(key, |key| self.snapshot.get(keyspace, key));
        Ok(value.map_err(read_failed)?.map(Bytes::whole))
    }

    pub(super) fn range(&self, space: Space, bounds: KeyBounds) -> fjall::Iter {
        let keyspace = self.opened.keyspace(space);
        self.snapshot.range(keyspace, space.full_bounds(bounds))
    }

    /// The keyspace of a space.
    pub(super) fn keyspace(&self, space: Space) -> &Keyspace {
        self.opened.keyspace(space)
    }

    /// Iterates over the keys and values of all tables, from the table with id `from` on.
    pub(super) fn tables_from(
        self: &Arc<Self>,
        from: u32,
    ) -> impl Iterator<Item = Result<(u32, Bytes, Bytes)>> + use<> {
        let held = self.clone();
        let all: KeyBounds = (
            Bound::Included(TablePrefix::of(from).to_vec()),
            Bound::Unbounded,
        );
        let iter = self
            .snapshot
            .range(self.opened.keyspace(Space::Table(0)), all);
        iter.map(move |guard| {
            let _held = &held;
            let (key, value) = guard.into_inner().map_err(read_failed)?;
            let (id, skip) = TablePrefix::parse(&key).ok_or_else(damaged_table_key)?;
            Ok((id, Bytes { slice: key, skip }, Bytes::whole(value)))
        })
    }
}

fn damaged_table_key() -> Error {
    let what = "table key without a table id";
    Error::Storage(format!("stored bytes are damaged: what={what}"))
}

/// The index of a space's keyspace.
const fn keyspace_index(space: Space) -> usize {
    match space {
        Space::Meta => 0,
        Space::Changes => 1,
        Space::Tokens => 2,
        Space::Table(_) => 3,
    }
}

fn file_checksum(path: &Path, mut read: impl FnMut(u64)) -> io::Result<u128> {
    let mut file = File::open(path)?;
    let mut hasher = Xxh3Default::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(hasher.digest128());
        }
        hasher.update(buffer.get(..count).unwrap_or_default());
        read(count as u64);
    }
}

/// Whether the disk is full.
fn is_full(error: &fjall::Error) -> bool {
    match error {
        fjall::Error::Io(e) => is_full_io(e),
        fjall::Error::Storage(fjall::LsmError::Io(e)) => is_full_io(e),
        _ => false,
    }
}

fn is_full_io(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}

fn open_error(folder: &Path, error: &fjall::Error) -> Error {
    let folder = folder.display();
    Error::Storage(match error {
        fjall::Error::Locked => {
            format!("the directory is in use by another process: directory={folder}")
        }
        fjall::Error::InvalidVersion(_) => {
            format!("the directory was written by another version of the store: directory={folder}")
        }
        e => format!(
            "the directory could not be opened: {}: restore a backup, or run floe doctor with --salvage: \
            directory={folder}",
            describe(e)
        ),
    })
}

fn storage(what: &str, error: &fjall::Error) -> Error {
    Error::Storage(format!("{what}: {}", describe(error)))
}

pub(super) fn read_failed(error: impl Into<fjall::Error>) -> Error {
    storage("a read failed", &error.into())
}
