//! What the parts of an engine share: the key-value store, and what is kept in memory of it.
//!
//! The queue of writes, and whether writes are accepted, belong to the [committer](crate::commit), which is above this.

use std::sync::Mutex;

use floe_store::{Error, Result};

use crate::alarm::Alarm;
use crate::catalog::Catalog;
use crate::dir::Directory;
use crate::jobs::Jobs;
use crate::kv::Kv;
use crate::load::{CommitState, Loaded};
use crate::mirror::Mirror;
use crate::options::Options;
use crate::streams::Streams;
use crate::tokens::{self, RecentTokens, TokenClock, WriteTokens};

/// What the parts of an engine share.
pub(crate) struct Shared {
    /// The key-value store.
    pub(crate) kv: Kv,
    /// Which tokens may have been used lately. The committer alone asks, so it never waits.
    pub(crate) recent_tokens: Mutex<RecentTokens>,
    /// The tokens of single writes. The committer alone asks for them too.
    pub(crate) write_tokens: Mutex<WriteTokens>,
    /// The time by which tokens are remembered.
    pub(crate) token_clock: Mutex<TokenClock>,
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
    /// Wakes the background thread.
    pub(crate) background: Alarm,
    /// Why the last round of background work failed, if it did.
    pub(crate) background_error: Mutex<Option<Error>>,
    /// Keeps other processes out; none in memory.
    pub(crate) directory: Option<Directory>,
    /// What is read instead of a directory that cannot be written.
    _mirror: Option<Mirror>,
}

impl Shared {
    /// Reads what is kept in memory of a key-value store, and returns it with the state that the committer starts with.
    /// `directory` is where the store is, if it is not in memory.
    ///
    /// # Errors
    ///
    /// [`Error::Storage`] when it cannot be read.
    pub(crate) fn load(
        kv: Kv,
        options: Options,
        directory: Option<Directory>,
        mirror: Option<Mirror>,
    ) -> Result<(Self, CommitState)> {
        let snapshot = kv.snapshot();
        let loaded = Loaded::read(&snapshot)?;
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
            background: Alarm::default(),
            background_error: Mutex::default(),
            directory,
            _mirror: mirror,
        };
        Ok((shared, loaded.state))
    }

    /// Opens the key-value store again after a failed commit, and reads from it what the parts know of it. For the
    /// committer alone.
    pub(crate) fn reopen(&self) -> Result<CommitState> {
        self.kv.reopen()?;
        let loaded = Loaded::read(&self.kv.snapshot())?;
        self.catalog.replace(&loaded.catalog);
        self.streams.replace(&loaded.streams);
        self.jobs.replace(&loaded.jobs);
        Ok(loaded.state)
    }

    /// Whether the files of the store are still where it was opened.
    pub(crate) fn is_in_place(&self, directory: &Directory) -> bool {
        directory.is_in_place(|| self.kv.journal_count())
    }
}
