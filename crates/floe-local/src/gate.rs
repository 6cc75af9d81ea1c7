//! Decides whether writes are accepted: not on a read-only file system, not while the disk is almost full or the
//! directory is missing, and not after a failed commit until the store was reopened.
//!
//! | state | writes | until |
//! |---|---|---|
//! | [`ReadOnly`](WriteBlock::ReadOnly) | rejected | never |
//! | [`LowSpace`](WriteBlock::LowSpace) | deletes only; none below a quarter of the reserve | there is space again |
//! | [`DirectoryGone`](WriteBlock::DirectoryGone) | rejected | the directory is back |
//! | [`AwaitingReopen`](WriteBlock::AwaitingReopen) | rejected | the store was reopened, which is retried automatically |
//! | [`Broken`](WriteBlock::Broken) | rejected | never: a sync may have failed, so the page cache may differ from the disk |
//!
//! Only the committer calls the gate, before each group; readers are not affected.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use floe_store::env::Stopwatch;
use floe_store::{Error, Health, Result};

use crate::dir::Directory;
use crate::kv::CommitError;
use crate::load::CommitState;
use crate::locks::lock;
use crate::shared::Shared;

/// The reserve on a sufficiently large file system.
const RESERVE_BYTES: u64 = 256 << 20;

/// The reserve as a fraction (one nth) of a small file system.
const RESERVE_SHARE: u64 = 8;

/// The fraction (one nth) of the reserve below which even deletes are rejected.
const DELETES_SHARE: u64 = 4;

/// Interval between checks of the free space.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// Bytes written between checks of the free space under load.
const CHECK_BYTES: u64 = 1 << 20;

/// Interval between attempts to reopen the store.
const REOPEN_EVERY: Duration = Duration::from_millis(500);

/// Interval between attempts to reopen while not even deletes fit. Reopening releases removed and unfinished files that
/// the key-value store still holds, which may be the only space that can be freed.
const REOPEN_FULL_EVERY: Duration = Duration::from_secs(10);

/// Why writes are rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WriteBlock {
    /// The file system is read-only.
    ReadOnly,
    /// Free space is below the reserve.
    LowSpace { free: u64, reserve: u64 },
    /// The directory, or a file in it, was removed or replaced.
    DirectoryGone,
    /// A commit failed for lack of space, and reopening the store determines its outcome.
    AwaitingReopen(String),
    /// A commit failed, and the content of the disk is unknown.
    Broken(String),
}

impl WriteBlock {
    /// The error for a rejected write; `None` if the write is accepted nevertheless.
    fn error(&self, grows: bool) -> Option<Error> {
        Some(match self {
            Self::ReadOnly => {
                Error::Unavailable("the file system of the store is read-only".to_owned())
            }
            Self::LowSpace { free, reserve } if *free < reserve / DELETES_SHARE => Error::Unavailable(
                "the disk of the store is full: no writes are accepted until space is freed".to_owned(),
            ),
            Self::LowSpace { .. } if grows => Error::Unavailable(
                "the disk of the store is almost full: only deletes are accepted until space is freed"
                    .to_owned(),
            ),
            Self::LowSpace { .. } => return None,
            Self::DirectoryGone => Error::Unavailable(
                "the directory of the store, or a file in it, was removed or replaced while the store was in use"
                    .to_owned(),
            ),
            Self::AwaitingReopen(cause) => Error::Unavailable(format!(
                "the store cannot write at present and will retry: {cause}"
            )),
            Self::Broken(cause) => Error::Storage(format!(
                "the engine rejects writes after a failed commit until it is reopened: reason={cause}"
            )),
        })
    }

    /// Description for operators.
    fn describe(&self, directory: Option<&Directory>) -> String {
        let at = directory.map_or_else(String::new, |directory| {
            format!(": directory={}", directory.path().display())
        });
        match self {
            Self::ReadOnly => format!("the file system is read-only{at}"),
            Self::LowSpace { free, reserve } => {
                let what = if *free < reserve / DELETES_SHARE {
                    "the disk is full, no writes are accepted"
                } else {
                    "the disk is almost full, only deletes are accepted"
                };
                format!("{what} until space is freed{at} free_bytes={free} reserve_bytes={reserve}")
            }
            Self::DirectoryGone => {
                format!("the directory, or a file in it, was removed or replaced{at}")
            }
            Self::AwaitingReopen(cause) => {
                format!("{cause}; writes are accepted again when there is space{at}")
            }
            Self::Broken(cause) => {
                format!("a commit failed: {cause}; the store must be reopened{at}")
            }
        }
    }
}

/// Whether writes are accepted.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    block: Option<WriteBlock>,
    /// Time since free space was last checked.
    checked: Option<Stopwatch>,
    unchecked_bytes: u64,
    /// Whether free space was below the reserve at any time since the last commit.
    was_low: bool,
    /// Time since the last attempt to reopen.
    reopened: Option<Stopwatch>,
}

impl Gate {
    /// Creates the gate of a store that was just opened.
    pub(crate) fn new(is_read_only: bool) -> Self {
        Self {
            state: Mutex::new(State {
                block: is_read_only.then_some(WriteBlock::ReadOnly),
                checked: None,
                unchecked_bytes: 0,
                was_low: false,
                reopened: None,
            }),
        }
    }

    /// Whether a write is accepted in the present state.
    pub(crate) fn accepts(&self, grows: bool) -> bool {
        self.rejection(grows).is_none()
    }

    fn rejection(&self, grows: bool) -> Option<Error> {
        lock(&self.state).block.as_ref()?.error(grows)
    }

    /// Records the size of a batch before it is written.
    pub(crate) fn record_written(&self, bytes: usize) {
        lock(&self.state).unchecked_bytes += bytes as u64;
    }

    /// Whether writes are accepted, and if not, the reason.
    pub(crate) fn health(&self, shared: &Shared) -> Health {
        match &lock(&self.state).block {
            None => Health::Ready,
            Some(WriteBlock::ReadOnly) => Health::ReadOnly,
            Some(block) => Health::WritesRefused {
                reason: block.describe(shared.directory.as_ref()),
            },
        }
    }

    /// Checks the disk while there is nothing to commit, so that health is up to date and the store recovers without
    /// waiting for a write. Only the committer calls this.
    pub(crate) fn maintain(&self, shared: &Shared, state: &mut CommitState) {
        self.check_disk(shared);
        self.reopen_if_due(shared, state);
    }

    /// Checks before a group whether a write is accepted. Reopens the store if a commit failed and the next attempt is
    /// due. Only the committer calls this.
    pub(crate) fn admit(
        &self,
        shared: &Shared,
        state: &mut CommitState,
        grows: bool,
    ) -> Result<()> {
        self.maintain(shared, state);
        self.rejection(grows).map_or(Ok(()), Err)
    }

    /// The error of all writes after a commit failed permanently.
    pub(crate) fn broken(&self) -> Option<Error> {
        match &lock(&self.state).block {
            Some(block @ WriteBlock::Broken(_)) => block.error(true),
            _ => None,
        }
    }

    /// Whether the disk contains everything that was acknowledged and nothing else.
    pub(crate) fn is_sealable(&self) -> bool {
        matches!(
            lock(&self.state).block,
            None | Some(WriteBlock::LowSpace { .. })
        )
    }

    /// Records a failed commit, and returns the error for its requests.
    pub(crate) fn commit_failed(&self, shared: &Shared, error: CommitError) -> Error {
        let is_low = (shared.directory.as_ref()).is_some_and(|it| low_space(shared, it).is_some());
        let mut gate = lock(&self.state);
        let (block, error) = match error {
            CommitError::Rejected(cause) if !is_low && !gate.was_low => {
                let error = Error::Storage(format!("the store cannot write: {cause}"));
                (WriteBlock::Broken(cause), error)
            }
            CommitError::Rejected(cause) | CommitError::RejectedFull(cause) => (
                WriteBlock::AwaitingReopen(cause.clone()),
                Error::Unavailable(format!("the store cannot write at present: {cause}")),
            ),
            CommitError::Full(cause) => (
                WriteBlock::AwaitingReopen(cause.clone()),
                Error::OutcomeUnknown(format!("a commit failed: {cause}")),
            ),
            CommitError::Unknown(cause) => (
                WriteBlock::Broken(cause.clone()),
                Error::OutcomeUnknown(cause),
            ),
        };
        // The first cause is the relevant one.
        if !matches!(
            gate.block,
            Some(WriteBlock::AwaitingReopen(_) | WriteBlock::Broken(_))
        ) {
            gate.block = Some(block);
        }
        error
    }

    /// Checks after a commit that the directory still exists: writes to removed files are lost.
    pub(crate) fn check_in_place(&self, shared: &Shared) -> Result<()> {
        let is_gone = |directory: &Directory| !shared.is_in_place(directory);
        let is_gone = shared.directory.as_ref().is_some_and(is_gone);
        let mut gate = lock(&self.state);
        if !is_gone {
            gate.was_low = matches!(gate.block, Some(WriteBlock::LowSpace { .. }));
            return Ok(());
        }
        // Only reopening the directory can determine what was committed.
        gate.block = Some(WriteBlock::AwaitingReopen(
            "the directory, or a file in it, was removed or replaced during a commit".to_owned(),
        ));
        Err(Error::OutcomeUnknown(
            "the directory of the store, or a file in it, was removed or replaced during the commit"
                .to_owned(),
        ))
    }

    /// Checks free space and the directory, if a check is due.
    fn check_disk(&self, shared: &Shared) {
        let Some(directory) = &shared.directory else {
            return;
        };
        let mut gate = lock(&self.state);
        let is_due = gate.unchecked_bytes >= CHECK_BYTES
            || gate
                .checked
                .is_none_or(|checked| checked.elapsed() >= CHECK_EVERY);
        let is_passing = matches!(
            gate.block,
            None | Some(WriteBlock::LowSpace { .. } | WriteBlock::DirectoryGone)
        );
        if !is_due || !is_passing {
            return;
        }
        gate.checked = Some(Stopwatch::start());
        gate.unchecked_bytes = 0;
        gate.block = if shared.is_in_place(directory) {
            low_space(shared, directory)
        } else {
            Some(WriteBlock::DirectoryGone)
        };
        gate.was_low |= matches!(gate.block, Some(WriteBlock::LowSpace { .. }));
    }

    /// Reopens the store after a failed commit. It is enough that deletes fit: a store that stopped at its reserve
    /// stays below it, and space is freed by deletes. While deletes do not fit, attempts are less frequent.
    pub(crate) fn reopen_if_due(&self, shared: &Shared, state: &mut CommitState) {
        let (tried, block) = {
            let gate = lock(&self.state);
            (gate.reopened, gate.block.clone())
        };
        let is_due = |every| tried.is_none_or(|tried| tried.elapsed() >= every);
        if !is_due(REOPEN_EVERY) {
            return;
        }
        let has_failed = match block {
            Some(WriteBlock::AwaitingReopen(_)) => true,
            Some(WriteBlock::LowSpace { .. }) => shared.kv.has_failed(),
            _ => false,
        };
        let directory = shared.directory.as_ref();
        if !has_failed || directory.is_some_and(|it| !shared.is_in_place(it)) {
            return;
        }
        let low = || directory.and_then(|it| low_space(shared, it));
        let is_full = low().is_some_and(|low| low.error(false).is_some());
        if is_full && !is_due(REOPEN_FULL_EVERY) {
            return;
        }
        lock(&self.state).reopened = Some(Stopwatch::start());
        // On failure it is retried later, and the first cause is kept.
        if let Ok(reopened) = shared.reopen() {
            *state = reopened;
            let low = low();
            let mut gate = lock(&self.state);
            (gate.was_low, gate.block) = (low.is_some(), low);
        }
    }
}

fn low_space(shared: &Shared, directory: &Directory) -> Option<WriteBlock> {
    let space = disk_space(&directory.data())?;
    let reserve = shared.options.disk_reserve_bytes;
    let reserve = reserve.unwrap_or_else(|| RESERVE_BYTES.min(space.total / RESERVE_SHARE));
    (space.free < reserve).then_some(WriteBlock::LowSpace {
        free: space.free,
        reserve,
    })
}

/// Space on a file system.
struct DiskSpace {
    total: u64,
    free: u64,
}

#[cfg(unix)]
fn disk_space(path: &Path) -> Option<DiskSpace> {
    let found = rustix::fs::statvfs(path).ok()?;
    Some(DiskSpace {
        total: found.f_blocks.saturating_mul(found.f_frsize),
        free: found.f_bavail.saturating_mul(found.f_frsize),
    })
}

#[cfg(not(unix))]
fn disk_space(_: &Path) -> Option<DiskSpace> {
    None
}

#[cfg(test)]
mod tests;
