//! What the parts of an engine share, and how it is opened and closed.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;

use floe_store::{Error, Result};

use crate::catalog::{Catalog, Table};
use crate::commit::{CommitState, Seat, run_committer};
use crate::dir::Directory;
use crate::fresh;
use crate::journal::{Tail, trim_torn_tail};
use crate::kv::{Direction, Kv, KvOptions, Snapshot, Space};
use crate::layout::record::{self, Counts, Instance, ShardRecord, StreamRecord, TableRecord};
use crate::layout::{
    CHANGES_SPACE, META_SPACE, TOKENS_SPACE, damaged, table_of_space_name, table_space_name,
};
use crate::options::{Durability, Options};
use crate::queue::Queue;
use crate::streams::{OpenShard, Position, Streams};
use crate::tokens::{self, RecentTokens, WriteTokens};
use crate::versions::check_versions;

/// What the parts of an engine share.
pub(crate) struct Shared {
    /// The key-value store.
    pub(crate) kv: Kv,
    /// The space of the catalog.
    pub(crate) meta: Space,
    /// The space of change records.
    pub(crate) changes: Space,
    /// The space of idempotency tokens.
    pub(crate) tokens: Space,
    /// Which of them may have been used lately.
    recent_tokens: Mutex<RecentTokens>,
    /// The tokens of single writes.
    write_tokens: Mutex<WriteTokens>,
    /// The tables.
    pub(crate) catalog: Catalog,
    /// The change streams.
    pub(crate) streams: Streams,
    /// The settings.
    pub(crate) options: Options,
    /// Tells the change records of this store from those of others.
    pub(crate) instance: u64,
    /// The writes that wait.
    pub(crate) queue: Queue,
    /// Who holds it commits them.
    pub(crate) seat: Mutex<Seat>,
    /// Whether a commit has failed.
    pub(crate) poisoned: AtomicBool,
    /// Why.
    pub(crate) poison_reason: OnceLock<String>,
    /// Wakes the background thread.
    pub(crate) background: Alarm,
    background_error: Mutex<Option<Error>>,
    /// Keeps other processes out; none in memory.
    _directory: Option<Directory>,
}

impl Shared {
    /// Why the last round of background work failed, if it did.
    pub(crate) fn background_error(&self) -> Option<Error> {
        let error = self.background_error.lock();
        error.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Which tokens may have been used lately. The committer alone asks, so nobody ever waits.
    pub(crate) fn recent_tokens(&self) -> MutexGuard<'_, RecentTokens> {
        let recent = self.recent_tokens.lock();
        recent.unwrap_or_else(PoisonError::into_inner)
    }

    /// The tokens of single writes. The committer alone asks for them too.
    pub(crate) fn write_tokens(&self) -> MutexGuard<'_, WriteTokens> {
        let tokens = self.write_tokens.lock();
        tokens.unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how a round of background work ended.
    pub(crate) fn set_background_error(&self, error: Option<Error>) {
        let last = self.background_error.lock();
        *last.unwrap_or_else(PoisonError::into_inner) = error;
    }
}

/// An engine that runs: its threads, and what they share.
pub(crate) struct Running {
    /// What the parts share.
    pub(crate) shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Running {
    /// Opens the store in a directory.
    pub(crate) fn open(path: &Path, options: Options) -> Result<Self> {
        let directory = Directory::open(path)?;
        let complete = directory.is_complete()?;
        if !complete {
            fresh::make(&directory.data(), &kv_options(&options))?;
        }
        let kv = open_kv(&directory, &options)?;
        directory.set_relaxed(options.durability == Durability::Relaxed)?;
        Self::start(kv, options, Some((directory, complete)))
    }

    /// An empty store in memory.
    pub(crate) fn memory(options: Options) -> Result<Self> {
        Self::start(Kv::memory(), options, None)
    }

    fn start(kv: Kv, options: Options, directory: Option<(Directory, bool)>) -> Result<Self> {
        let meta = kv.space(META_SPACE)?;
        let changes = kv.space(CHANGES_SPACE)?;
        let tokens_space = kv.space(TOKENS_SPACE)?;
        let snapshot = kv.snapshot();
        let complete = directory.as_ref().is_some_and(|(_, complete)| *complete);
        let instance = match snapshot.get(&meta, record::INSTANCE_KEY)? {
            Some(bytes) => Instance::decode(&bytes)?,
            None if complete => return Err(damaged("store without instance record")),
            None => make_instance(&kv, &meta, &options)?,
        };
        let directory = match directory {
            Some((directory, complete)) => {
                if !complete {
                    directory.complete()?;
                }
                Some(directory)
            }
            None => None,
        };
        let catalog = load_catalog(&kv, &meta, &snapshot)?;
        let (streams, position) = load_streams(&meta, &snapshot)?;
        remove_unknown_spaces(&kv, &catalog)?;
        let recent_tokens = tokens::load(&snapshot, &tokens_space, options.env.now())?;
        let state = CommitState { instance, position };
        let shared = Arc::new(Shared {
            kv,
            meta,
            changes,
            recent_tokens: Mutex::new(recent_tokens),
            write_tokens: Mutex::default(),
            tokens: tokens_space,
            catalog,
            streams,
            instance: state.instance.number,
            queue: Queue::default(),
            seat: Mutex::new(Seat::new(state)),
            poisoned: AtomicBool::new(false),
            poison_reason: OnceLock::new(),
            background: Alarm::default(),
            background_error: Mutex::default(),
            options,
            _directory: directory,
        });
        let running = Self {
            shared,
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
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.push(thread);
        Ok(())
    }

    /// Takes no further writes, finishes those that wait, and writes everything to the disk.
    pub(crate) fn close(&self) -> Result<()> {
        self.shared.background.stop();
        self.shared.queue.close();
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
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
        match self.shared.poisoned() {
            Some(error) => Err(error),
            None if stopped_here => self.shared.kv.persist(),
            None => Ok(()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever wants to know how it ended calls `close`.
        let _ = self.close();
    }
}

/// Opens the key-value store of a directory, after looking for damage that it would not notice and cutting a
/// torn tail off its journal.
pub(crate) fn open_kv(directory: &Directory, options: &Options) -> Result<Kv> {
    let tail = match directory.is_relaxed() {
        true => Tail::Unsynced,
        false => Tail::LastBatch,
    };
    check_versions(&directory.data())?;
    trim_torn_tail(&directory.data(), tail)?;
    let kv = Kv::open(&directory.data(), &kv_options(options))?;
    // What could be read is on the disk before the next write says how it will be written.
    kv.persist()?;
    Ok(kv)
}

const fn kv_options(options: &Options) -> KvOptions {
    KvOptions {
        cache_bytes: options.cache_bytes,
        write_buffer_bytes: options.write_buffer_bytes,
    }
}

fn make_instance(kv: &Kv, meta: &Space, options: &Options) -> Result<Instance> {
    let instance = Instance {
        number: options.env.next_u64(),
        created: options.env.now(),
        next_id: 1,
    };
    let mut batch = crate::kv::Batch::default();
    batch.put(meta, record::INSTANCE_KEY, instance.encode());
    match kv.commit(batch, crate::kv::Sync::Data) {
        Ok(()) => Ok(instance),
        Err(e) => Err(Error::Storage(format!(
            "the store could not be made: {e:?}"
        ))),
    }
}

fn load_catalog(kv: &Kv, meta: &Space, snapshot: &Snapshot) -> Result<Catalog> {
    let catalog = Catalog::default();
    for entry in snapshot.prefix(meta, record::TABLES_PREFIX, Direction::Forward) {
        let record = TableRecord::decode(&entry?.1)?;
        let counts = match snapshot.get(meta, &record::counts_key(record.id))? {
            Some(bytes) => Counts::decode(&bytes)?,
            None => Counts::default(),
        };
        let space = kv.space(&table_space_name(record.id))?;
        catalog.insert(Arc::new(Table::new(record, space, counts)));
    }
    Ok(catalog)
}

fn load_streams(meta: &Space, snapshot: &Snapshot) -> Result<(Streams, Position)> {
    let streams = Streams::default();
    let mut position = Position::default();
    if let Some(bytes) = snapshot.get(meta, record::SEQUENCE_KEY)? {
        position.sequence = record::decode_sequence(&bytes)?;
    }
    for entry in snapshot.prefix(meta, record::STREAMS_PREFIX, Direction::Forward) {
        let stream = StreamRecord::decode(&entry?.1)?;
        if stream.disabled.is_none() {
            let prefix = record::shards_prefix(stream.id);
            let mut shards = snapshot.prefix(meta, &prefix, Direction::Backward);
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

/// Removes the spaces of tables that were being made or removed when the process died.
fn remove_unknown_spaces(kv: &Kv, catalog: &Catalog) -> Result<()> {
    let known: HashSet<u32> = catalog.tables().iter().map(|table| table.id()).collect();
    for name in kv.space_names() {
        if table_of_space_name(&name).is_some_and(|id| !known.contains(&id)) {
            kv.drop_space(&name)?;
        }
    }
    Ok(())
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
