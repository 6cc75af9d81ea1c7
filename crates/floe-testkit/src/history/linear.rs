//! Linearizability of single keys.
//!
//! A history is linearizable if every operation can be given one moment between its invocation and its
//! answer such that, in the order of those moments, all answers are right. Keys are independent of each
//! other, so each is searched on its own (`search.rs`); when a key fails, the history is cut down to the
//! few operations that contradict each other (`window.rs`).
//!
//! What an operation means is told by its type: [`RegisterOp`] for values that are read, written,
//! compared and set, and deleted; [`CounterOp`] for numbers that are added to. Other types need an
//! [`Operation`] of their own.
//!
//! An operation whose answer was lost may take effect at any moment after its invocation, or never.
//!
//! ```
//! use floe_testkit::history::linear::{self, Recorder, RegisterOp};
//!
//! let recorder = Recorder::new();
//! let write = recorder.call(1, "k", Some(RegisterOp::Write(7)));
//! write.returned(RegisterOp::Write(7));
//! let read = recorder.call(2, "k", None);
//! read.returned(RegisterOp::Read(None));
//!
//! let report = linear::check(&recorder.into_events());
//! assert!(!report.is_linearizable(), "the read came after the write and missed it");
//! ```

mod bits;
mod counter;
mod record;
mod register;
mod search;
mod supply;
mod window;

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};
use std::hash::Hash;

pub use counter::CounterOp;
pub use record::{Call, Event, Recorder};
pub use register::{RegisterOp, RegisterState};

use search::{Outcome, Problem};

/// What an operation means: which states it can happen in, and which state it leaves.
///
/// An operation that was answered includes its answer, so a read that found 7 can happen in one state only.
pub trait Operation: Clone + PartialEq + Display {
    /// What one key holds.
    type State: Clone + Eq + Hash + Debug;

    /// The state of a key before the history.
    fn initial() -> Self::State;

    /// A state of which nothing is known. Every operation can happen in it, and leaves what is known then.
    fn unknown() -> Self::State;

    /// The state that the operation leaves, if it can happen in `state`.
    fn step(&self, state: &Self::State) -> Option<Self::State>;

    /// How the operation depends on the state. The search takes short cuts by it.
    fn effect(&self) -> Effect;

    /// The only known state in which the operation can happen, if there is just one.
    fn needs(&self) -> Option<Self::State>;

    /// The state that the operation leaves, if it is always the same. Not asked of one that observes.
    fn makes(&self) -> Option<Self::State>;
}

/// How an operation depends on the state in which it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It never changes a known state: a read, a refused write.
    Observes,
    /// It can happen in every state, and what it leaves does not depend on it: a write, a delete.
    Overwrites,
    /// All else: a conditional write, an addition.
    Depends,
}

/// How much work [`check_with`] may spend.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most configurations to look at for one key before giving it up as undecided.
    pub configurations_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            configurations_max: 2_000_000,
        }
    }
}

/// What a check found.
#[derive(Clone, Debug)]
pub struct Report<K, O> {
    /// How many operations were judged.
    pub operations: usize,
    /// How many of them have an unknown outcome.
    pub unknown: usize,
    /// How many keys they are about.
    pub keys: usize,
    /// How many configurations the search looked at.
    pub configurations: u64,
    /// The keys whose operations no order explains.
    pub violations: Vec<Violation<K, O>>,
    /// The keys for which the [limit](Limits) was reached before an answer.
    pub undecided: Vec<K>,
}

impl<K, O> Report<K, O> {
    /// Whether every key was decided and none is in violation.
    pub fn is_linearizable(&self) -> bool {
        self.violations.is_empty() && self.undecided.is_empty()
    }
}

impl<K: Debug, O: Operation> Display for Report<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "operations={} unknown={} keys={} configurations={} violations={} undecided={}",
            self.operations,
            self.unknown,
            self.keys,
            self.configurations,
            self.violations.len(),
            self.undecided.len(),
        )?;
        for violation in &self.violations {
            write!(f, "\n{violation}")?;
        }
        for key in &self.undecided {
            write!(f, "\nundecided within the limit: key={key:?}")?;
        }
        Ok(())
    }
}

/// Operations on one key that no order explains.
#[derive(Clone, Debug)]
pub struct Violation<K, O> {
    /// The key.
    pub key: K,
    /// Whether the operations contradict each other whatever the key held before them. If not, they do
    /// so because they start from an untouched key.
    pub from_any_state: bool,
    /// The operations of the smallest stretch of time that is contradictory in itself, in the order of
    /// their invocations.
    pub window: Vec<Event<K, O>>,
}

impl<K: Debug, O: Operation> Display for Violation<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = if self.from_any_state {
            "whatever it held before"
        } else {
            "starting from nothing"
        };
        write!(
            f,
            "no order of these operations explains their answers, {start}: key={:?}",
            self.key
        )?;
        for event in &self.window {
            write!(f, "\n  {event}")?;
        }
        Ok(())
    }
}

/// Judges a history with the default [`Limits`].
pub fn check<K, O>(events: &[Event<K, O>]) -> Report<K, O>
where
    K: Clone + Ord,
    O: Operation,
{
    check_with(events, Limits::default())
}

/// Judges a history.
pub fn check_with<K, O>(events: &[Event<K, O>], limits: Limits) -> Report<K, O>
where
    K: Clone + Ord,
    O: Operation,
{
    let mut by_key: BTreeMap<&K, Vec<&Event<K, O>>> = BTreeMap::new();
    for event in events {
        by_key.entry(&event.key).or_default().push(event);
    }
    let mut report = Report {
        operations: events.len(),
        unknown: events.iter().filter(|e| e.returned.is_none()).count(),
        keys: by_key.len(),
        configurations: 0,
        violations: Vec::new(),
        undecided: Vec::new(),
    };
    for (key, mut events) in by_key {
        events.sort_by_key(|e| e.invoked);
        let found = Problem::whole(&events).solve(limits.configurations_max);
        report.configurations += found.configurations;
        match found.outcome {
            Outcome::Explained => {}
            Outcome::Undecided => report.undecided.push(key.clone()),
            Outcome::Contradicted => {
                let violation = window::smallest(key, &events, limits.configurations_max);
                report.violations.push(violation);
            }
        }
    }
    report
}
