//! Decides whether writes are accepted: not on a read-only file system, not while the disk is almost full or the
//! directory is gone, and not after a failed commit until the store could be opened again.
//!
//! | state | writes | ends |
//! |---|---|---|
//! | [`ReadOnly`](Trouble::ReadOnly) | refused | never |
//! | [`Low`](Trouble::Low) | deletes only; none below a quarter of the reserve | when there is space again |
//! | [`Gone`](Trouble::Gone) | refused | when the directory is back |
//! | [`Failed`](Trouble::Failed) | refused | when the store was opened again, which is tried by itself |
//! | [`Broken`](Trouble::Broken) | refused | never: a sync may have failed, so the page cache may not be what is on the disk |
//!
//! The committer asks before each group, so nothing here is in the way of readers.

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

/// The reserve of a file system that is large enough.
const RESERVE_BYTES: u64 = 256 << 20;

/// The share of a small file system that is the reserve.
const RESERVE_SHARE: u64 = 8;

/// The share of the reserve below which not even deletes are accepted.
const DELETES_SHARE: u64 = 4;

/// How often the free space is asked for.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// How often the free space is asked for under load: each time so much was written.
const CHECK_BYTES: u64 = 1 << 20;

/// How often opening again is tried.
const REOPEN_EVERY: Duration = Duration::from_millis(500);

/// How often opening again is tried while not even deletes would fit. It gives back what the store below holds of removed
/// and unfinished files, which may be all that can be freed.
const REOPEN_FULL_EVERY: Duration = Duration::from_secs(10);

/// Why writes are not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Trouble {
    /// The file system is read-only.
    ReadOnly,
    /// Free space is below the reserve.
    Low { free: u64, reserve: u64 },
    /// The directory, or a file in it, is no longer where it was opened.
    Gone,
    /// A commit failed for want of space, and opening the store again leaves no doubt about it.
    Failed(String),
    /// A commit failed, and what is on the disk cannot be known.
    Broken(String),
}

impl Trouble {
    /// The error with which a write is refused; none if it is accepted all the same.
    fn refuse(&self, grows: bool) -> Option<Error> {
        Some(match self {
            Self::ReadOnly => {
                Error::Unavailable("the file system of the store is read-only".to_owned())
            }
            Self::Low { free, reserve } if *free < reserve / DELETES_SHARE => Error::Unavailable(
                "the disk of the store is full: no writes are accepted until space is freed".to_owned(),
            ),
            Self::Low { .. } if grows => Error::Unavailable(
                "the disk of the store is almost full: only deletes are accepted until space is freed"
                    .to_owned(),
            ),
            Self::Low { .. } => return None,
            Self::Gone => Error::Unavailable(
                "the directory of the store, or a file in it, was removed or replaced while it was in use"
                    .to_owned(),
            ),
            Self::Failed(cause) => Error::Unavailable(format!(
                "the store cannot write at present, and goes on when it can: {cause}"
            )),
            Self::Broken(cause) => Error::Storage(format!(
                "the engine refuses to write after a failed commit until it is opened again: reason={cause}"
            )),
        })
    }

    /// What an operator should know.
    fn describe(&self, directory: Option<&Directory>) -> String {
        let at = directory.map_or_else(String::new, |directory| {
            format!(": directory={}", directory.path().display())
        });
        match self {
            Self::ReadOnly => format!("the file system is read-only{at}"),
            Self::Low { free, reserve } => {
                let what = if *free < reserve / DELETES_SHARE {
                    "the disk is full, no writes are accepted"
                } else {
                    "the disk is almost full, only deletes are accepted"
                };
                format!("{what} until space is freed{at} free_bytes={free} reserve_bytes={reserve}")
            }
            Self::Gone => format!("the directory, or a file in it, was removed or replaced{at}"),
            Self::Failed(cause) => {
                format!("{cause}; writes are accepted again when there is space{at}")
            }
            Self::Broken(cause) => {
                format!("a commit failed: {cause}; the store must be opened again{at}")
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
    trouble: Option<Trouble>,
    /// Since free space was last asked for.
    checked: Option<Stopwatch>,
    unchecked_bytes: u64,
    /// Whether free space was below the reserve since the last commit.
    was_low: bool,
    /// Since opening again was last tried.
    reopened: Option<Stopwatch>,
}

impl Gate {
    /// The gate of a store that has just been opened.
    pub(crate) fn new(is_read_only: bool) -> Self {
        Self {
            state: Mutex::new(State {
                trouble: is_read_only.then_some(Trouble::ReadOnly),
                checked: None,
                unchecked_bytes: 0,
                was_low: false,
                reopened: None,
            }),
        }
    }

    /// Whether a write is accepted as things stand.
    pub(crate) fn accepts(&self, grows: bool) -> bool {
        self.refusal(grows).is_none()
    }

    fn refusal(&self, grows: bool) -> Option<Error> {
        lock(&self.state).trouble.as_ref()?.refuse(grows)
    }

    /// Records the size of a batch that is about to be written.
    pub(crate) fn note_written(&self, bytes: usize) {
        lock(&self.state).unchecked_bytes += bytes as u64;
    }

    /// Whether writes are accepted, and if not, why.
    pub(crate) fn health(&self, shared: &Shared) -> Health {
        match &lock(&self.state).trouble {
            None => Health::Ready,
            Some(Trouble::ReadOnly) => Health::ReadOnly,
            Some(trouble) => Health::WritesRefused {
                reason: trouble.describe(shared.directory.as_ref()),
            },
        }
    }

    /// Checks the disk while there is nothing to commit, so that health is reported and the store goes on without a write
    /// that asks for it. For the committer alone.
    pub(crate) fn look_after(&self, shared: &Shared, state: &mut CommitState) {
        self.check_disk(shared);
        self.reopen_if_due(shared, state);
    }

    /// Checks before a group whether a write is accepted. Opens the store again if a commit has failed and it is time
    /// to. For the committer alone.
    pub(crate) fn admit(
        &self,
        shared: &Shared,
        state: &mut CommitState,
        grows: bool,
    ) -> Result<()> {
        self.look_after(shared, state);
        self.refusal(grows).map_or(Ok(()), Err)
    }

    /// The error with which every write is refused for good, once a commit has failed.
    pub(crate) fn broken(&self) -> Option<Error> {
        match &lock(&self.state).trouble {
            Some(trouble @ Trouble::Broken(_)) => trouble.refuse(true),
            _ => None,
        }
    }

    /// Whether everything that was acknowledged is on the disk and nothing else is.
    pub(crate) fn is_sealable(&self) -> bool {
        matches!(lock(&self.state).trouble, None | Some(Trouble::Low { .. }))
    }

    /// Records that a commit failed, and returns what its requests are answered with.
    pub(crate) fn commit_failed(&self, shared: &Shared, error: CommitError) -> Error {
        let is_low = (shared.directory.as_ref()).is_some_and(|it| low_space(shared, it).is_some());
        let mut gate = lock(&self.state);
        let (trouble, error) = match error {
            CommitError::Refused(cause) if !is_low && !gate.was_low => {
                let error = Error::Storage(format!("the store cannot write: {cause}"));
                (Trouble::Broken(cause), error)
            }
            CommitError::Refused(cause) | CommitError::RefusedFull(cause) => (
                Trouble::Failed(cause.clone()),
                Error::Unavailable(format!("the store cannot write at present: {cause}")),
            ),
            CommitError::Full(cause) => (
                Trouble::Failed(cause.clone()),
                Error::OutcomeUnknown(format!("a commit failed: {cause}")),
            ),
            CommitError::Unknown(cause) => {
                (Trouble::Broken(cause.clone()), Error::OutcomeUnknown(cause))
            }
        };
        // The first cause is the one to know.
        if !matches!(gate.trouble, Some(Trouble::Failed(_) | Trouble::Broken(_))) {
            gate.trouble = Some(trouble);
        }
        error
    }

    /// Checks after a commit that the directory is still there: what was written to removed files is lost.
    pub(crate) fn check_in_place(&self, shared: &Shared) -> Result<()> {
        let is_gone = |directory: &Directory| !shared.is_in_place(directory);
        let is_gone = shared.directory.as_ref().is_some_and(is_gone);
        let mut gate = lock(&self.state);
        if !is_gone {
            gate.was_low = matches!(gate.trouble, Some(Trouble::Low { .. }));
            return Ok(());
        }
        // What was committed is only known when the directory is opened again.
        gate.trouble = Some(Trouble::Failed(
            "the directory, or a file in it, was removed or replaced during a commit".to_owned(),
        ));
        Err(Error::OutcomeUnknown(
            "the directory of the store, or a file in it, was removed or replaced during the commit"
                .to_owned(),
        ))
    }

    /// Asks for the free space and for the directory, now and then.
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
            gate.trouble,
            None | Some(Trouble::Low { .. } | Trouble::Gone)
        );
        if !is_due || !is_passing {
            return;
        }
        gate.checked = Some(Stopwatch::start());
        gate.unchecked_bytes = 0;
        gate.trouble = if shared.is_in_place(directory) {
            low_space(shared, directory)
        } else {
            Some(Trouble::Gone)
        };
        gate.was_low |= matches!(gate.trouble, Some(Trouble::Low { .. }));
    }

    /// Opens the store again after a failed commit. A store that stopped at its reserve stays below it, and deletes are how
    /// space is freed, so it is enough that deletes fit; while they do not, it is tried less often.
    pub(crate) fn reopen_if_due(&self, shared: &Shared, state: &mut CommitState) {
        let (tried, trouble) = {
            let gate = lock(&self.state);
            (gate.reopened, gate.trouble.clone())
        };
        let is_due = |every| tried.is_none_or(|tried| tried.elapsed() >= every);
        if !is_due(REOPEN_EVERY) {
            return;
        }
        let has_failed = match trouble {
            Some(Trouble::Failed(_)) => true,
            Some(Trouble::Low { .. }) => shared.kv.has_failed(),
            _ => false,
        };
        let directory = shared.directory.as_ref();
        if !has_failed || directory.is_some_and(|it| !shared.is_in_place(it)) {
            return;
        }
        let low = || directory.and_then(|it| low_space(shared, it));
        let is_full = low().is_some_and(|low| low.refuse(false).is_some());
        if is_full && !is_due(REOPEN_FULL_EVERY) {
            return;
        }
        lock(&self.state).reopened = Some(Stopwatch::start());
        // It is tried again later. What failed first stays the cause.
        if let Ok(reopened) = shared.reopen() {
            *state = reopened;
            let low = low();
            let mut gate = lock(&self.state);
            (gate.was_low, gate.trouble) = (low.is_some(), low);
        }
    }
}

fn low_space(shared: &Shared, directory: &Directory) -> Option<Trouble> {
    let space = disk_space(&directory.data())?;
    let reserve = shared.options.disk_reserve_bytes;
    let reserve = reserve.unwrap_or_else(|| RESERVE_BYTES.min(space.total / RESERVE_SHARE));
    (space.free < reserve).then_some(Trouble::Low {
        free: space.free,
        reserve,
    })
}

/// The space of a file system.
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
