//! What clients have written, and what must be there in the end.
//!
//! Each key has one client, which waits for an answer before it goes on. So the last acknowledged state of a key is
//! there in the end, unless a later write has failed in a way that leaves its outcome open.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use floe_store::{Item, Value};

use super::super::stage::mixed;

/// The table.
pub(super) const TABLE: &str = "Disk";
/// The most notes that are kept.
const NOTES_MAX: usize = 20;

/// The stamp of the write that a key shows; `None` if there is no item.
pub(super) type State = Option<u64>;

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It was acknowledged.
    Acked,
    /// It was refused, and nothing was written.
    Refused,
    /// It failed, and may have been written.
    Unknown,
    /// There was no answer. It may be written later.
    None,
}

/// The states that a key may have.
#[derive(Clone, Debug, Default)]
struct History {
    acked: State,
    /// Later states that may be there.
    open: Vec<State>,
    /// States of writes without an answer.
    late: Vec<State>,
    /// Later states that must not be there.
    refused: Vec<State>,
}

/// How many writes had which answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) acked: u64,
    pub(super) refused: u64,
    pub(super) unknown: u64,
    pub(super) unanswered: u64,
    /// Refusals that are not of DynamoDB's shape, or name what is inside.
    pub(super) misshapen: u64,
}

#[derive(Debug, Default)]
struct Inner {
    keys: BTreeMap<String, History>,
    tally: Tally,
    notes: Vec<String>,
}

/// All writes.
#[derive(Debug)]
pub(super) struct Ledger {
    inner: Mutex<Inner>,
    /// The planted bug: refused writes count as acknowledged.
    acks_failed: bool,
}

/// What an audit has come to.
#[derive(Debug, Default)]
pub(super) struct Audited {
    /// Keys that do not show their last acknowledged state.
    pub(super) lost: u64,
    /// Keys that show a state that was refused or never written.
    pub(super) phantom: u64,
    pub(super) doctor: u64,
    pub(super) notes: Vec<String>,
}

impl Audited {
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

    /// Records the answer to a write that was to leave this state.
    pub(super) fn record(&self, key: &str, state: State, answer: Answer) {
        let mut inner = self.lock();
        let inner = &mut *inner;
        let history = inner.keys.entry(key.to_owned()).or_default();
        let counter = match answer {
            Answer::Acked => &mut inner.tally.acked,
            Answer::Refused => &mut inner.tally.refused,
            Answer::Unknown => &mut inner.tally.unknown,
            Answer::None => &mut inner.tally.unanswered,
        };
        *counter += 1;
        match answer {
            Answer::Refused | Answer::Unknown if self.acks_failed => history.ack(state),
            Answer::Acked => history.ack(state),
            Answer::Refused => history.refused.push(state),
            Answer::Unknown => history.open.push(state),
            Answer::None => history.late.push(state),
        }
    }

    /// Records a refusal that is not as it must be.
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

    /// Compares with everything that is in the table.
    pub(super) fn audit(&self, items: &[Item]) -> Audited {
        let mut audited = Audited::default();
        let mut found = BTreeMap::new();
        for item in items {
            match (text(item, "p"), stamp(item)) {
                (Some(key), Some(stamp)) => drop(found.insert(key.to_owned(), stamp)),
                _ => {
                    audited.phantom += 1;
                    audited.note(format!("an item that was never written: {item:?}"));
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
                audited.phantom += 1;
                audited.note(format!(
                    "a refused write is there: key={key} found={state:?}"
                ));
            } else {
                audited.lost += 1;
                let acked = history.acked;
                audited.note(format!("lost: key={key} acked={acked:?} found={state:?}"));
            }
        }
        audited.phantom += found.len() as u64;
        audited
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

/// The payload of a write: text that follows from its stamp.
pub(super) fn payload(stamp: u64, bytes: usize) -> String {
    let words =
        (0..bytes.div_ceil(16) as u64).map(|word| format!("{:016x}", mixed(stamp ^ (word << 40))));
    words.collect()
}

/// The stamp of an item whose payload is the one of its stamp.
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

    fn check(answers: &[(State, Answer)], found: &[Item], lost: u64, phantom: u64) {
        let ledger = Ledger::new(false);
        for (state, answer) in answers {
            ledger.record("k", *state, *answer);
        }
        let audited = ledger.audit(found);
        assert_eq!(
            (audited.lost, audited.phantom),
            (lost, phantom),
            "{answers:?}"
        );
    }

    #[test]
    fn only_open_outcomes_may_replace_what_was_acknowledged() {
        let acked = (Some(1), Answer::Acked);
        check(&[acked], &[item("k", 1)], 0, 0);
        check(&[acked], &[], 1, 0);
        check(&[acked, (Some(2), Answer::Unknown)], &[item("k", 2)], 0, 0);
        check(&[acked, (Some(2), Answer::Refused)], &[item("k", 2)], 0, 1);
        check(&[acked, (None, Answer::Acked)], &[], 0, 0);
        check(&[acked, (None, Answer::Acked)], &[item("k", 1)], 1, 0);
        let torn = item("k", 1).with("stamp", 7);
        check(&[acked], &[torn], 1, 1);
    }
}
