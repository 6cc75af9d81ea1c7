//! State shared by the modules of an engine: the key-value store, and what is cached of it in memory.
//!
//! The queue of writes and the gate belong to the [committer](crate::commit), which is above this module.

use std::sync::Mutex;

use floe_store::{Error, Result};

use crate::catalog::Catalog;
use crate::dir::Directory;
use crate::jobs::Jobs;
use crate::kv::Kv;
use crate::load::{CommitState, LoadedState};
use crate::mirror::Mirror;
use crate::options::Options;
use crate::streams::Streams;
use crate::tokens::{self, RecentTokens, TokenClock, WriteTokens};
use crate::wakeup::Wakeup;

/// State shared by the modules of an engine.
pub(crate) struct Shared {
    /// The key-value store.
    pub(crate) kv: Kv,
    /// Tokens that may have been used recently. Only the committer uses them, so the lock is never contended.
    pub(crate) recent_tokens: Mutex<RecentTokens>,
    /// Tokens of single writes. Only the committer uses them, too.
    pub(crate) write_tokens: Mutex<WriteTokens>,
    /// The clock that token expiry is based on.
    pub(crate) token_clock: Mutex<TokenClock>,
    /// The tables.
    pub(crate) catalog: Catalog,
    /// The change streams.
    pub(crate) streams: Streams,
    /// Unfinished jobs on tables.
    pub(crate) jobs: Jobs,
    /// The options of the engine.
    pub(crate) options: Options,
    /// Distinguishes the change records of this store from those of other stores.
    pub(crate) instance: u64,
    /// Wakes the background thread.
    pub(crate) background: Wakeup,
    /// The error of the last round of background work, if it failed.
    pub(crate) background_error: Mutex<Option<Error>>,
    /// Locks out other processes; `None` in memory.
    pub(crate) directory: Option<Directory>,
    /// The copy that is read instead of a read-only directory.
    _mirror: Option<Mirror>,
}

impl Shared {
    /// Reads the cached state of a key-value store, and returns it with the initial state of the committer. `directory`
    /// is `None` for a store in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] if the store cannot be read.
    pub(crate) fn load(
        kv: Kv,
        options: Options,
        directory: Option<Directory>,
        mirror: Option<Mirror>,
    ) -> Result<(Self, CommitState)> {
        let snapshot = kv.snapshot();
        let loaded = LoadedState::read(&snapshot)?;
        let mut token_clock = tokens::load_clock(&snapshot, &options.env)?;
        let horizon = token_clock.read(&options.env).horizon;
        let recent_tokens = tokens::load(&snapshot, horizon)?;
        drop(snapshot);
        let shared = Self {
            kv,
            recent_tokens: Mutex::new(recent_tokens),
            write_tokens: Mutex::default(),
            token_clock: Mutex::new(token_clock),
            catalog: loaded.catalog,
            streams: loaded.streams,
            jobs: loaded.jobs,
            options,
            instance: loaded.state.instance.number,
            background: Wakeup::default(),
            background_error: Mutex::default(),
            directory,
            _mirror: mirror,
        };
        Ok((shared, loaded.state))
    }

    /// Reopens the key-value store after a failed commit, and reloads the cached state. Only the committer calls this.
    pub(crate) fn reopen(&self) -> Result<CommitState> {
        self.kv.reopen()?;
        let loaded = LoadedState::read(&self.kv.snapshot())?;
        self.catalog.replace(&loaded.catalog);
        self.streams.replace(&loaded.streams);
        self.jobs.replace(&loaded.jobs);
        Ok(loaded.state)
    }

    /// Whether the files of the store are still where they were opened.
    pub(crate) fn is_in_place(&self, directory: &Directory) -> bool {
        directory.is_in_place(|| self.kv.journal_count())
    }
}
