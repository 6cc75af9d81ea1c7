//! A task that runs transactions, and what all tasks of a workload have come to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use floe::{Db, Error, ErrorKind};
use floe_store::env::SeededRandom;

use super::watch::Pulse;
use crate::{Failure, out};

/// A transaction that contention never makes give up, with pauses that fit an embedded engine.
macro_rules! patient {
    ($client:expr) => {
        $client
            .db
            .tx()
            .retries(1_000_000)
            .initial_backoff_ms(1)
            .max_backoff_ms(20)
    };
}
pub(super) use patient;

/// One of the tasks.
pub(super) struct Client {
    pub(super) db: Db,
    pub(super) number: u64,
    pub(super) random: SeededRandom,
    pub(super) tally: Arc<Tally>,
    pub(super) pulse: Arc<Pulse>,
}

impl Client {
    /// Takes note of how a call ended, of which the body ran so often. True if it was committed.
    pub(super) fn ended<T>(&self, runs: &Count, ended: &Result<T, Fault>) -> bool {
        let tally = &self.tally;
        tally.conflicts.add(runs.get().saturating_sub(1));
        match ended {
            Ok(_) => {
                tally.commits.add(1);
                self.pulse.beat();
                return true;
            }
            Err(Fault::Refused) => tally.refused.add(1),
            Err(Fault::Failed(why)) => {
                if tally.errors.get() == 0 {
                    out::note(&format!("{}: {why}", super::CHECK.name));
                }
                tally.errors.add(1);
            }
        }
        false
    }

    /// The same of a call that nobody had a reason to be in the way of.
    pub(super) fn ended_unhindered<T>(&self, runs: &Count, ended: &Result<T, Fault>) -> bool {
        let needless = runs.get().saturating_sub(1);
        self.tally.needless_conflicts.add(needless);
        self.ended(runs, ended)
    }
}

/// What the tasks of a workload have come to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Calls that were committed.
    pub(super) commits: Count,
    /// Runs of a body beyond the first of its call.
    pub(super) conflicts: Count,
    /// Those among them for which there was no reason.
    pub(super) needless_conflicts: Count,
    /// Calls that the model or the body refused, as it should.
    pub(super) refused: Count,
    /// Looks at many items as of one moment.
    pub(super) snapshots: Count,
    /// Those among them that no moment can have shown.
    pub(super) torn: Count,
    /// Calls that failed in another way.
    pub(super) errors: Count,
}

/// Something that many tasks count.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Adds one, and gives the number before.
    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a call was not committed.
#[derive(Debug)]
pub(super) enum Fault {
    /// What it would have written is not allowed.
    Refused,
    /// For a reason that should not be.
    Failed(String),
}

impl Fault {
    /// An item that must be there is not.
    pub(super) fn missing(what: &str, id: u64) -> Self {
        Self::Failed(format!("an item is missing: model={what} id={id}"))
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        match error.kind() {
            ErrorKind::InvalidField => Self::Refused,
            kind => Self::Failed(format!("{kind:?}: {error}")),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused => Self::broken("an item of the check was refused"),
            Fault::Failed(why) => Self::Broken(why),
        }
    }
}
