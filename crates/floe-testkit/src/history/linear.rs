//! Checks the linearizability of single keys.
//!
//! A history is linearizable if every operation can be assigned a moment between its invocation and its response
//! such that all responses are correct in the order of those moments. Keys are independent, so each is searched
//! separately (`search.rs`). If a key is not linearizable, its history is reduced to the few operations that
//! contradict each other (`window.rs`).
//!
//! The type of an operation defines its meaning: [`RegisterOp`] for values that are read, written, compared and
//! set, and deleted; [`CounterOp`] for numbers that are incremented. Other types implement [`Operation`].
//!
//! An operation whose response was lost may take effect at any moment after its invocation, or never.
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
mod states;
mod window;

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};
use std::hash::Hash;

pub use counter::CounterOp;
pub use record::{Call, Event, Recorder};
pub use register::{RegisterOp, RegisterState};

use search::{Outcome, Problem};

/// The meaning of an operation: the states in which it can happen, and the state after it.
///
/// An operation includes its response, so a read that returned 7 can happen in only one state.
pub trait Operation: Clone + PartialEq + Display {
    /// The state of one key.
    type State: Clone + Eq + Hash + Debug;

    /// The state of a key before the history.
    fn initial() -> Self::State;

    /// The unknown state. Every operation can happen in it; the state after it is what the operation reveals.
    fn unknown() -> Self::State;

    /// The state after the operation, or `None` if the operation cannot happen in `state`.
    fn step(&self, state: &Self::State) -> Option<Self::State>;

    /// How the operation depends on the state; the search uses it to skip work.
    fn effect(&self) -> Effect;

    /// The only known state in which the operation can happen, if there is exactly one.
    fn needs(&self) -> Option<Self::State>;

    /// The state after the operation, if it is always the same. Not called for operations that only observe.
    fn makes(&self) -> Option<Self::State>;
}

/// How an operation depends on the state in which it happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// It never changes a known state: a read, a rejected write.
    Observes,
    /// It can happen in every state, and the state after it is always the same: a write, a delete.
    Overwrites,
    /// Anything else: a conditional write, an increment.
    Depends,
}

/// Limits the work of [`check_with`].
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum number of configurations to visit for one key. Beyond it, the key is undecided. Default: 2,000,000.
    pub configurations_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            configurations_max: 2_000_000,
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Report<K, O> {
    /// The number of operations checked.
    pub operations: usize,
    /// The number whose outcome is unknown.
    pub unknown: usize,
    /// The number of keys.
    pub keys: usize,
    /// The number of configurations visited.
    pub configurations: u64,
    /// The keys whose operations have no explaining order.
    pub violations: Vec<Violation<K, O>>,
    /// The keys for which the [limit](Limits) was reached.
    pub undecided: Vec<K>,
}

impl<K, O> Report<K, O> {
    /// Whether every key was decided and no violation was found.
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

/// Operations on one key whose responses no order explains.
#[derive(Clone, Debug)]
pub struct Violation<K, O> {
    /// The key.
    pub key: K,
    /// Whether the operations contradict each other in any state before them. Otherwise they do so only because the
    /// key starts empty.
    pub from_any_state: bool,
    /// The operations of the smallest contradictory interval, in the order of their invocations.
    pub window: Vec<Event<K, O>>,
}

impl<K: Debug, O: Operation> Display for Violation<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = if self.from_any_state {
            "from any state before them"
        } else {
            "starting from an absent value"
        };
        write!(
            f,
            "no order of these operations explains their responses, {start}: key={:?}",
            self.key
        )?;
        for event in &self.window {
            write!(f, "\n  {event}")?;
        }
        Ok(())
    }
}

/// Checks a history with the default [`Limits`].
pub fn check<K, O>(events: &[Event<K, O>]) -> Report<K, O>
where
    K: Clone + Ord,
    O: Operation,
{
    check_with(events, Limits::default())
}

/// Checks a history.
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
