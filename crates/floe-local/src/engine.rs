//! What the parts of an engine share, and how it is opened, reopened and closed.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use floe_store::{Error, Result};

use crate::catalog::{Catalog, Table};
use crate::commit::{CommitState, Seat, run_committer};
use crate::dir::{Directory, SEAL_FILE};
use crate::files::check_files;
use crate::fresh;
use crate::gate::Gate;
use crate::jobs::Jobs;
use crate::journal::{Tail, trim_torn_tail};
use crate::kv::lock::FolderLock;
use crate::kv::{Direction, Kv, KvOptions, Snapshot, Space};
use crate::layout::damaged;
use crate::layout::record::{self, Counts, Instance, ShardRecord, StreamRecord, TableRecord};
use crate::mirror::Mirror;
use crate::options::{Durability, Options};
use crate::queue::Queue;
use crate::streams::{OpenShard, Position, Streams};
use crate::tokens::{self, RecentTokens, TokenClock, WriteTokens};

/// What the parts of an engine share.
pub(crate) struct Shared {
    /// The key-value store.
    pub(crate) kv: Kv,
    /// Which tokens may have been used lately.
    recent_tokens: Mutex<RecentTokens>,
    /// The tokens of single writes.
    write_tokens: Mutex<WriteTokens>,
    /// The time by which tokens are remembered.
    token_clock: Mutex<TokenClock>,
    /// The tables.
    pub(crate) catalog: Catalog,
    /// The change streams.
    pub(crate) streams: Streams,
    /// The work on tables that is not done.
    pub(crate) jobs: Jobs,
    /// The settings.
    pub(crate) options: Options,
    /// Tells the change records of this store from those of others.
    pub(crate) instance: u64,
    /// The writes that wait.
    pub(crate) queue: Queue,
    /// The thread that holds it commits them.
    pub(crate) seat: Mutex<Seat>,
    /// Whether writes are accepted.
    pub(crate) gate: Gate,
    /// Wakes the background thread.
    pub(crate) background: Alarm,
    background_error: Mutex<Option<Error>>,
    /// What opening found.
    pub(crate) recovery: Recovery,
    /// Keeps other processes out; none in memory.
    pub(crate) directory: Option<Directory>,
    /// What is read instead of a directory that cannot be written.
    _mirror: Option<Mirror>,
}

/// What opening a store found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Bytes at the end of the journal that belonged to no whole commit, and were dropped: the process that had the store
    /// open died while it wrote them, before it acknowledged them.
    pub dropped_bytes: u64,
}

impl Shared {
    /// Why the last round of background work failed, if it did.
    pub(crate) fn background_error(&self) -> Option<Error> {
        lock(&self.background_error).clone()
    }

    /// Which tokens may have been used lately. The committer alone asks, so it never waits.
    pub(crate) fn recent_tokens(&self) -> MutexGuard<'_, RecentTokens> {
        lock(&self.recent_tokens)
    }

    /// The tokens of single writes. The committer alone asks for them too.
    pub(crate) fn write_tokens(&self) -> MutexGuard<'_, WriteTokens> {
        lock(&self.write_tokens)
    }

    /// The time by which tokens are remembered.
    pub(crate) fn token_clock(&self) -> MutexGuard<'_, TokenClock> {
        lock(&self.token_clock)
    }

    /// Notes how a round of background work ended.
    pub(crate) fn set_background_error(&self, error: Option<Error>) {
        *lock(&self.background_error) = error;
    }

    /// Opens the key-value store again after a failed commit, and reads from it what the parts know of it. For the
    /// committer alone.
    pub(crate) fn reopen(&self) -> Result<CommitState> {
        self.kv.reopen()?;
        let loaded = Loaded::read(&self.kv.snapshot())?;
        self.catalog.replace(loaded.catalog);
        self.streams.replace(loaded.streams);
        self.jobs.replace(loaded.jobs);
        Ok(loaded.state)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(directory) = &self.directory
            && !directory.is_read_only()
            && self.is_sealable()
            && self.is_in_place(directory)
            && self.kv.close()
        {
            // Without a seal the store is opened as after a crash, which loses nothing.
            let _ = directory.seal();
        }
    }
}

/// An engine that runs: its threads, and what they share.
pub(crate) struct Running {
    /// What the parts share.
    pub(crate) shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A key-value store and where it is.
pub(crate) struct Opened {
    pub(crate) directory: Directory,
    pub(crate) kv: Kv,
    mirror: Option<Mirror>,
    pub(crate) recovery: Recovery,
}

impl Running {
    /// Opens the store in a directory.
    pub(crate) fn open(path: &Path, options: Options) -> Result<Self> {
        let directory = Directory::open(path, |data| fresh::make(data, &options))?;
        let opened = Opened::open(directory, &options)?;
        Self::of(opened, options)
    }

    /// Starts on an opened store.
    pub(crate) fn of(opened: Opened, options: Options) -> Result<Self> {
        if !opened.directory.is_read_only() {
            let relaxed = options.durability == Durability::Relaxed;
            opened.directory.set_relaxed(relaxed)?;
        }
        Self::start(opened.kv, options, |shared| {
            shared.gate = Gate::new(opened.directory.is_read_only());
            shared.recovery = opened.recovery;
            shared._mirror = opened.mirror;
            shared.directory = Some(opened.directory);
        })
    }

    /// An empty store in memory.
    pub(crate) fn memory(options: Options) -> Result<Self> {
        let kv = Kv::memory();
        let mut batch = crate::kv::Batch::default();
        let instance = Instance::new(&options.env);
        batch.put(Space::Meta, record::INSTANCE_KEY, instance.encode());
        let made = kv.commit(batch, crate::kv::Sync::None);
        made.map_err(|e| Error::Storage(format!("the store could not be made: {e:?}")))?;
        Self::start(kv, options, |_| {})
    }

    /// Starts on a key-value store. `place` says where it is, if it is not in memory.
    pub(crate) fn start(kv: Kv, options: Options, place: impl FnOnce(&mut Shared)) -> Result<Self> {
        let snapshot = kv.snapshot();
        let loaded = Loaded::read(&snapshot)?;
        let mut token_clock = tokens::load_clock(&snapshot, &options.env)?;
        let horizon = token_clock.read(&options.env).horizon;
        let mut shared = Shared {
            kv,
            recent_tokens: Mutex::new(tokens::load(&snapshot, horizon)?),
            write_tokens: Mutex::default(),
            token_clock: Mutex::new(token_clock),
            catalog: loaded.catalog,
            streams: loaded.streams,
            jobs: loaded.jobs,
            instance: loaded.state.instance.number,
            queue: Queue::default(),
            seat: Mutex::new(Seat::new(loaded.state)),
            gate: Gate::new(false),
            background: Alarm::default(),
            background_error: Mutex::default(),
            recovery: Recovery::default(),
            options,
            directory: None,
            _mirror: None,
        };
        drop(snapshot);
        place(&mut shared);
        let running = Self {
            shared: Arc::new(shared),
            threads: Mutex::default(),
        };
        running.spawn("floe-commit", run_committer)?;
        if running.shared.options.background {
            running.spawn("floe-background", crate::background::run)?;
        }
        Ok(running)
    }

    fn spawn(&self, name: &str, run: impl FnOnce(&Shared) + Send + 'static) -> Result<()> {
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&shared))
            .map_err(|e| Error::Storage(format!("a thread could not be started: {e}")))?;
        lock(&self.threads).push(thread);
        Ok(())
    }

    /// Takes no further writes, finishes those that wait, and writes everything to the disk.
    pub(crate) fn close(&self) -> Result<()> {
        self.shared.background.stop();
        self.shared.queue.close();
        let threads = std::mem::take(&mut *lock(&self.threads));
        let stopped_here = !threads.is_empty();
        for thread in threads {
            if thread.join().is_err() {
                return Err(Error::Internal(
                    "a thread of the engine panicked".to_owned(),
                ));
            }
        }
        if self.shared.seat.is_poisoned() {
            return Err(Error::Internal("a request panicked".to_owned()));
        }
        match self.shared.broken() {
            Some(error) => Err(error),
            None if stopped_here && self.shared.is_sealable() => self.shared.kv.persist(),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A caller that needs the outcome calls `close`.
        let _ = self.close();
    }
}

impl Opened {
    /// Opens the key-value store of a directory, after checking for damage that it would not notice and cutting a
    /// torn tail off its journal. On a read-only file system, opens a mirror of it.
    pub(crate) fn open(directory: Directory, options: &Options) -> Result<Self> {
        check_files(&directory.data())?;
        // Nothing is changed before all locks are held.
        let lock = if directory.is_read_only() {
            None
        } else {
            Some(FolderLock::take(&directory.data())?)
        };
        directory.check_seal()?;
        let is_sealed = directory.path().join(SEAL_FILE).exists();
        let mirror = if directory.is_read_only() {
            Some(Mirror::of(&directory.data())?)
        } else {
            directory.break_seal()?;
            None
        };
        let data = mirror.as_ref().map_or(directory.data(), Mirror::data);
        let tail = if directory.is_relaxed() {
            Tail::Unsynced
        } else {
            Tail::LastBatch
        };
        let dropped_bytes = trim_torn_tail(&data, tail, is_sealed)?;
        // The store below takes it itself. What another process could do in between, it could have done before.
        drop(lock);
        let kv = Kv::open(&data, &kv_options(options))?;
        // What could be read is on the disk before the next write says how it will be written.
        kv.persist()?;
        Ok(Self {
            directory,
            kv,
            mirror,
            recovery: Recovery { dropped_bytes },
        })
    }

    /// Closes the store and seals it.
    pub(crate) fn close(self) -> Result<()> {
        let Self {
            directory,
            kv,
            mirror,
            recovery: _,
        } = self;
        let closed = kv.close();
        drop((kv, mirror));
        if closed && !directory.is_read_only() {
            directory.seal()?;
        }
        Ok(())
    }
}

pub(crate) const fn kv_options(options: &Options) -> KvOptions {
    KvOptions {
        cache_bytes: options.cache_bytes,
        write_buffer_bytes: options.write_buffer_bytes,
    }
}

/// What the parts know of the key-value store.
struct Loaded {
    catalog: Catalog,
    streams: Streams,
    jobs: Jobs,
    state: CommitState,
}

impl Loaded {
    fn read(snapshot: &Snapshot) -> Result<Self> {
        let instance = snapshot.get(Space::Meta, record::INSTANCE_KEY)?;
        let instance = instance.ok_or_else(|| damaged("store without instance record"))?;
        let instance = Instance::decode(&instance)?;
        let catalog = load_catalog(snapshot)?;
        let (streams, position) = load_streams(snapshot)?;
        Ok(Self {
            catalog,
            streams,
            jobs: Jobs::load(snapshot)?,
            state: CommitState { instance, position },
        })
    }
}

fn load_catalog(snapshot: &Snapshot) -> Result<Catalog> {
    let catalog = Catalog::default();
    for entry in snapshot.prefix(Space::Meta, record::TABLES_PREFIX, Direction::Forward) {
        let record = TableRecord::decode(&entry?.1)?;
        let counts = match snapshot.get(Space::Meta, &record::counts_key(record.id))? {
            Some(bytes) => Counts::decode(&bytes)?,
            None => Counts::default(),
        };
        catalog.insert(Arc::new(Table::new(record, counts)));
    }
    Ok(catalog)
}

fn load_streams(snapshot: &Snapshot) -> Result<(Streams, Position)> {
    let streams = Streams::default();
    let mut position = Position::default();
    if let Some(bytes) = snapshot.get(Space::Meta, record::SEQUENCE_KEY)? {
        position.sequence = record::decode_sequence(&bytes)?;
    }
    for entry in snapshot.prefix(Space::Meta, record::STREAMS_PREFIX, Direction::Forward) {
        let stream = StreamRecord::decode(&entry?.1)?;
        if stream.disabled.is_none() {
            let prefix = record::shards_prefix(stream.id);
            let mut shards = snapshot.prefix(Space::Meta, &prefix, Direction::Backward);
            let newest = shards
                .next()
                .ok_or_else(|| damaged("stream without shard"))?;
            let open = OpenShard {
                shard: ShardRecord::decode(&newest?.1)?,
                view: stream.view,
                records: 0,
            };
            position.open.insert(stream.id, open);
        }
        streams.insert(stream);
    }
    Ok((streams, position))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakes a thread that sleeps between its rounds, and tells it to stop.
#[derive(Default)]
pub(crate) struct Alarm {
    state: Mutex<AlarmState>,
    rung: Condvar,
}

#[derive(Default)]
struct AlarmState {
    rung: bool,
    stopped: bool,
}

impl Alarm {
    /// Wakes the thread, or keeps it from going to sleep.
    pub(crate) fn ring(&self) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .rung = true;
        self.rung.notify_all();
    }

    /// Tells the thread to stop.
    pub(crate) fn stop(&self) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .stopped = true;
        self.rung.notify_all();
    }

    /// Whether the thread was told to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .stopped
    }

    /// Sleeps for so long, or until it is rung or stopped.
    pub(crate) fn sleep(&self, duration: std::time::Duration) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let asleep = |state: &mut AlarmState| !state.rung && !state.stopped;
        let (mut state, _) = self
            .rung
            .wait_timeout_while(state, duration, asleep)
            .unwrap_or_else(PoisonError::into_inner);
        state.rung = false;
    }
}
