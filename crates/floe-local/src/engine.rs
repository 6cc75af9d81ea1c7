//! Opening an engine, starting its threads, and closing it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use floe_store::{Error, Result};

use crate::background;
use crate::commit::{Committer, run_committer};
use crate::dir::{Directory, SEAL_FILE};
use crate::files::check_files;
use crate::fresh;
use crate::journal::{TailPolicy, trim_torn_tail};
use crate::kv::{self, Batch, Kv, Space, Sync};
use crate::layout::record::{self, Instance};
use crate::locks::lock;
use crate::mirror::Mirror;
use crate::options::{Durability, Options};
use crate::shared::Shared;

/// Result of the recovery when a store is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Bytes dropped from the end of the journal because they were not a complete commit: the process that had the
    /// store open died while writing them, before acknowledging them.
    pub dropped_bytes: u64,
}

/// A running engine.
pub(crate) struct RunningEngine {
    /// Commits the engine's writes.
    pub(crate) committer: Arc<Committer>,
    /// Result of the recovery when the store was opened.
    pub(crate) recovery: Recovery,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// A key-value store with its directory.
pub(crate) struct OpenedStore {
    pub(crate) directory: Directory,
    pub(crate) kv: Kv,
    mirror: Option<Mirror>,
    pub(crate) recovery: Recovery,
}

impl RunningEngine {
    /// Opens the store in a directory.
    pub(crate) fn open(path: &Path, options: Options) -> Result<Self> {
        let directory = Directory::open(path, |data| fresh::create(data, &options))?;
        let opened = OpenedStore::open(directory, &options)?;
        Self::from_opened(opened, options)
    }

    /// Starts an engine on an opened store.
    pub(crate) fn from_opened(opened: OpenedStore, options: Options) -> Result<Self> {
        if !opened.directory.is_read_only() {
            let relaxed = options.durability == Durability::Relaxed;
            opened.directory.set_relaxed(relaxed)?;
        }
        let mut running = Self::start(opened.kv, options, Some(opened.directory), opened.mirror)?;
        running.recovery = opened.recovery;
        Ok(running)
    }

    /// Creates an empty store in memory.
    pub(crate) fn memory(options: Options) -> Result<Self> {
        let kv = Kv::memory();
        let mut batch = Batch::default();
        let instance = Instance::new(&options.env);
        batch.put(Space::Meta, record::INSTANCE_KEY, instance.encode());
        let made = kv.commit(batch, Sync::None);
        made.map_err(|e| Error::Storage(format!("failed to create the store: {e:?}")))?;
        Self::start(kv, options, None, None)
    }

    /// Starts an engine on a key-value store. `directory` is `None` for a store in memory.
    pub(crate) fn start(
        kv: Kv,
        options: Options,
        directory: Option<Directory>,
        mirror: Option<Mirror>,
    ) -> Result<Self> {
        let (shared, state) = Shared::load(kv, options, directory, mirror)?;
        let running = Self {
            committer: Arc::new(Committer::new(shared, state)),
            recovery: Recovery::default(),
            threads: Mutex::default(),
        };
        running.spawn("floe-commit", run_committer)?;
        if running.shared().options.background {
            running.spawn("floe-background", background::run)?;
        }
        Ok(running)
    }

    /// The state shared by the modules.
    pub(crate) fn shared(&self) -> &Shared {
        &self.committer.shared
    }

    fn spawn(&self, name: &str, run: impl FnOnce(&Committer) + Send + 'static) -> Result<()> {
        let committer = self.committer.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&committer))
            .map_err(|e| Error::Storage(format!("failed to start a thread: {e}")))?;
        lock(&self.threads).push(thread);
        Ok(())
    }

    /// Rejects new writes, completes the queued ones, and writes everything to disk.
    pub(crate) fn close(&self) -> Result<()> {
        let committer = &*self.committer;
        let (shared, gate) = (&committer.shared, &committer.gate);
        shared.background.stop();
        committer.queue.close();
        let threads = std::mem::take(&mut *lock(&self.threads));
        let stopped_here = !threads.is_empty();
        for thread in threads {
            if thread.join().is_err() {
                return Err(Error::Internal(
                    "a thread of the engine panicked".to_owned(),
                ));
            }
        }
        if committer.lock.is_poisoned() {
            return Err(Error::Internal("a request panicked".to_owned()));
        }
        match gate.broken() {
            Some(error) => Err(error),
            None if stopped_here && gate.is_sealable() => shared.kv.persist(),
            None => Ok(()),
        }
    }
}

impl Drop for RunningEngine {
    fn drop(&mut self) {
        // A caller that needs the outcome calls `close`.
        let _ = self.close();
    }
}

impl OpenedStore {
    /// Opens the key-value store of a directory. First checks for damage that the store itself would not notice, and
    /// cuts a torn tail off its journal. On a read-only file system, opens a mirror of it.
    pub(crate) fn open(directory: Directory, options: &Options) -> Result<Self> {
        check_files(&directory.data())?;
        // Nothing is changed before all locks are held.
        let lock = if directory.is_read_only() {
            None
        } else {
            Some(kv::lock::acquire(&directory.data())?)
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
            TailPolicy::Unsynced
        } else {
            TailPolicy::LastBatch
        };
        let dropped_bytes = trim_torn_tail(&data, tail, is_sealed)?;
        // The key-value store acquires the lock itself. Another process that interferes in between could have done so
        // before.
        drop(lock);
        let kv = Kv::open(&data, &options.kv)?;
        // Recovered data must be on disk before the next write changes how the journal is synced.
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
        let closed = self.kv.close();
        drop((self.kv, self.mirror));
        if closed && !self.directory.is_read_only() {
            self.directory.seal()?;
        }
        Ok(())
    }
}
