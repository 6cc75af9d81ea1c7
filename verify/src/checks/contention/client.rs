//! A task that runs transactions, and the counters of all tasks of a workload.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use floe::{Db, Error, ErrorKind};
use floe_store::env::SeededRandom;

use super::watch::Activity;
use crate::{Failure, out};

/// A transaction that never gives up after conflicts, with pauses that suit an embedded engine.
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
    pub(super) activity: Arc<Activity>,
}

impl Client {
    /// Records the result of a call whose body ran `runs` times. Returns whether it was committed.
    pub(super) fn record_result<T>(&self, runs: &Count, result: &Result<T, Fault>) -> bool {
        let tally = &self.tally;
        tally.conflicts.add(runs.get().saturating_sub(1));
        match result {
            Ok(_) => {
                tally.commits.add(1);
                self.activity.record_commit();
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

    /// Like [`Client::record_result`], for a call that no other transaction may conflict with.
    pub(super) fn record_uncontended<T>(&self, runs: &Count, result: &Result<T, Fault>) -> bool {
        let needless = runs.get().saturating_sub(1);
        self.tally.needless_conflicts.add(needless);
        self.record_result(runs, result)
    }
}

/// The counters of all tasks of a workload.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Committed calls.
    pub(super) commits: Count,
    /// Runs of bodies after the first run of their call.
    pub(super) conflicts: Count,
    /// Those among them that no other transaction caused.
    pub(super) needless_conflicts: Count,
    /// Calls rejected by the model or the body, as intended.
    pub(super) refused: Count,
    /// Snapshot reads of many items.
    pub(super) snapshots: Count,
    /// Snapshots that no single moment can have shown.
    pub(super) torn: Count,
    /// Calls that failed for another reason.
    pub(super) errors: Count,
}

/// A counter shared by many tasks.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// Adds one and returns the previous value.
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
    /// The model does not allow the values.
    Refused,
    /// An unexpected error.
    Failed(String),
}

impl Fault {
    /// An item that must exist is missing.
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
            Fault::Refused => Self::broken("an item of the check was rejected"),
            Fault::Failed(why) => Self::Broken(why),
        }
    }
}
