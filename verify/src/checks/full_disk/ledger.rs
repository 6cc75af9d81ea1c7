//! The outcomes of all writes, and the states allowed at the end.
//!
//! Each key is written by one client, one request at a time. So at the end a key has its last acknowledged state, or
//! that of a later write whose outcome is unknown.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use floe_store::{Item, Value};

use super::super::test_table::splitmix64;

/// The table.
pub(super) const TABLE: &str = "Disk";
/// Maximum number of notes kept.
const NOTES_MAX: usize = 20;

/// The stamp of the last write of a key; `None` if there is no item.
pub(super) type State = Option<u64>;

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOutcome {
    /// The write was acknowledged.
    Acked,
    /// The write was rejected, and nothing was stored.
    Refused,
    /// The write failed, and may have been stored.
    Unknown,
    /// There was no response. The write may still be applied later.
    NoResponse,
}

/// The writes of a key.
#[derive(Clone, Debug, Default)]
struct History {
    acked: State,
    /// Later states with an unknown outcome.
    open: Vec<State>,
    /// States of writes without a response.
    late: Vec<State>,
    /// Later states that were rejected.
    refused: Vec<State>,
}

/// The number of writes by outcome.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) acked: u64,
    pub(super) refused: u64,
    pub(super) unknown: u64,
    pub(super) unanswered: u64,
    /// Errors that are not in DynamoDB's format, or expose internals.
    pub(super) misshapen: u64,
}

#[derive(Debug, Default)]
struct Inner {
    keys: BTreeMap<String, History>,
    tally: Tally,
    notes: Vec<String>,
}

/// The outcomes of all writes.
#[derive(Debug)]
pub(super) struct Ledger {
    inner: Mutex<Inner>,
    /// The planted bug: rejected writes count as acknowledged.
    acks_failed: bool,
}

/// The result of an audit.
#[derive(Debug, Default)]
pub(super) struct LedgerReport {
    /// Keys without their last acknowledged state.
    pub(super) lost: u64,
    /// Keys with a state that was rejected or never written.
    pub(super) phantom: u64,
    pub(super) doctor: u64,
    pub(super) notes: Vec<String>,
}

impl LedgerReport {
    pub(super) const fn is_clean(&self) -> bool {
        self.lost == 0 && self.phantom == 0 && self.doctor == 0
    }

    fn note(&mut self, note: String) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        }
    }
}

impl Ledger {
    pub(super) fn new(acks_failed: bool) -> Self {
        Self {
            inner: Mutex::default(),
            acks_failed,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the outcome of a write of this state.
    pub(super) fn record(&self, key: &str, state: State, outcome: WriteOutcome) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let history = inner.keys.entry(key.to_owned()).or_default();
        let counter = match outcome {
            WriteOutcome::Acked => &mut inner.tally.acked,
            WriteOutcome::Refused => &mut inner.tally.refused,
            WriteOutcome::Unknown => &mut inner.tally.unknown,
            WriteOutcome::NoResponse => &mut inner.tally.unanswered,
        };
        *counter += 1;
        match outcome {
            WriteOutcome::Refused | WriteOutcome::Unknown if self.acks_failed => history.ack(state),
            WriteOutcome::Acked => history.ack(state),
            WriteOutcome::Refused => history.refused.push(state),
            WriteOutcome::Unknown => history.open.push(state),
            WriteOutcome::NoResponse => history.late.push(state),
        }
    }

    /// Records an error response with a wrong format.
    pub(super) fn record_misshapen(&self, what: String) {
        let mut inner = self.lock();
        inner.tally.misshapen += 1;
        if inner.notes.len() < NOTES_MAX && !inner.notes.contains(&what) {
            inner.notes.push(what);
        }
    }

    pub(super) fn tally(&self) -> Tally {
        self.lock().tally
    }

    pub(super) fn notes(&self) -> Vec<String> {
        self.lock().notes.clone()
    }

    /// Compares the ledger with the content of the table.
    pub(super) fn audit(&self, items: &[Item]) -> LedgerReport {
        let mut report = LedgerReport::default();
        let mut found = BTreeMap::new();
        for item in items {
            match (text(item, "p"), stamp(item)) {
                (Some(key), Some(stamp)) => drop(found.insert(key.to_owned(), stamp)),
                _ => {
                    report.phantom += 1;
                    report.note(format!("item that was never written: {item:?}"));
                }
            }
        }
        let inner = self.lock();
        for (key, history) in &inner.keys {
            let state = found.remove(key);
            if history.allows(state) {
                continue;
            }
            if history.refused.contains(&state) {
                report.phantom += 1;
                report.note(format!(
                    "a rejected write was stored: key={key} found={state:?}"
                ));
            } else {
                report.lost += 1;
                let acked = history.acked;
                report.note(format!("lost: key={key} acked={acked:?} found={state:?}"));
            }
        }
        report.phantom += found.len() as u64;
        report
    }
}

impl History {
    fn ack(&mut self, state: State) {
        self.acked = state;
        self.open.clear();
        self.refused.clear();
    }

    fn allows(&self, state: State) -> bool {
        let mut allowed = self.open.iter().chain(&self.late);
        self.acked == state || allowed.any(|each| *each == state)
    }
}

/// Returns the payload of a write, a function of its stamp.
pub(super) fn payload(stamp: u64, bytes: usize) -> String {
    let words = (0..bytes.div_ceil(16) as u64)
        .map(|word| format!("{:016x}", splitmix64(stamp ^ (word << 40))));
    words.collect()
}

/// Returns the stamp of an item if the payload matches it.
fn stamp(item: &Item) -> Option<u64> {
    let stamp = item.get("stamp")?.as_n()?.to_u64()?;
    let found = text(item, "payload")?;
    (found == payload(stamp, found.len())).then_some(stamp)
}

fn text<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    item.get(name).and_then(Value::as_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(key: &str, stamp: u64) -> Item {
        Item::new()
            .with("p", key)
            .with("stamp", stamp)
            .with("payload", payload(stamp, 32))
    }

    fn check(outcomes: &[(State, WriteOutcome)], found: &[Item], lost: u64, phantom: u64) {
        let ledger = Ledger::new(false);
        for (state, outcome) in outcomes {
            ledger.record("k", *state, *outcome);
        }
        let report = ledger.audit(found);
        assert_eq!(
            (report.lost, report.phantom),
            (lost, phantom),
            "{outcomes:?}"
        );
    }

    #[test]
    fn only_writes_with_unknown_outcome_may_replace_acknowledged_ones() {
        let acked = (Some(1), WriteOutcome::Acked);
        check(&[acked], &[item("k", 1)], 0, 0);
        check(&[acked], &[], 1, 0);
        check(
            &[acked, (Some(2), WriteOutcome::Unknown)],
            &[item("k", 2)],
            0,
            0,
        );
        check(
            &[acked, (Some(2), WriteOutcome::Refused)],
            &[item("k", 2)],
            0,
            1,
        );
        check(&[acked, (None, WriteOutcome::Acked)], &[], 0, 0);
        check(&[acked, (None, WriteOutcome::Acked)], &[item("k", 1)], 1, 0);
        let torn = item("k", 1).with("stamp", 7);
        check(&[acked], &[torn], 1, 1);
    }
}
