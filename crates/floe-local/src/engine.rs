//! Opens an engine, starts its threads, and closes it.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use floe_store::{Error, Result};

use crate::background;
use crate::commit::{Committer, run_committer};
use crate::dir::{Directory, SEAL_FILE};
use crate::files::check_files;
use crate::fresh;
use crate::journal::{Tail, trim_torn_tail};
use crate::kv::{self, Batch, Kv, Space, Sync};
use crate::layout::record::{self, Instance};
use crate::locks::lock;
use crate::mirror::Mirror;
use crate::options::{Durability, Options};
use crate::shared::Shared;

/// What opening a store found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Bytes at the end of the journal that belonged to no whole commit, and were dropped: the process that had the store
    /// open died while it wrote them, before it acknowledged them.
    pub dropped_bytes: u64,
}

/// An engine that runs.
pub(crate) struct Running {
    /// What commits its writes.
    pub(crate) committer: Arc<Committer>,
    /// What opening found.
    pub(crate) recovery: Recovery,
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
        let mut running = Self::start(opened.kv, options, Some(opened.directory), opened.mirror)?;
        running.recovery = opened.recovery;
        Ok(running)
    }

    /// An empty store in memory.
    pub(crate) fn memory(options: Options) -> Result<Self> {
        let kv = Kv::memory();
        let mut batch = Batch::default();
        let instance = Instance::new(&options.env);
        batch.put(Space::Meta, record::INSTANCE_KEY, instance.encode());
        let made = kv.commit(batch, Sync::None);
        made.map_err(|e| Error::Storage(format!("the store could not be made: {e:?}")))?;
        Self::start(kv, options, None, None)
    }

    /// Starts on a key-value store. `directory` is where it is, if it is not in memory.
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

    /// What the parts share.
    pub(crate) fn shared(&self) -> &Shared {
        &self.committer.shared
    }

    fn spawn(&self, name: &str, run: impl FnOnce(&Committer) + Send + 'static) -> Result<()> {
        let committer = self.committer.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&committer))
            .map_err(|e| Error::Storage(format!("a thread could not be started: {e}")))?;
        lock(&self.threads).push(thread);
        Ok(())
    }

    /// Takes no further writes, finishes those that wait, and writes everything to the disk.
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
        if committer.seat.is_poisoned() {
            return Err(Error::Internal("a request panicked".to_owned()));
        }
        match gate.broken() {
            Some(error) => Err(error),
            None if stopped_here && gate.is_sealable() => shared.kv.persist(),
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
            Some(kv::lock::take(&directory.data())?)
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
        let kv = Kv::open(&data, &options.kv)?;
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
        let closed = self.kv.close();
        drop((self.kv, self.mirror));
        if closed && !self.directory.is_read_only() {
            self.directory.seal()?;
        }
        Ok(())
    }
}
