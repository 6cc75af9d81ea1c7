//! A value that is read, written, compared and set, and deleted.

use std::fmt::{self, Debug, Display};
use std::hash::Hash;

use super::{Effect, Operation};

/// An operation on a register. `None` is an absent item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RegisterOp<V> {
    /// Read this value.
    Read(Option<V>),
    /// Wrote this value.
    Write(V),
    /// Deleted the value, if any.
    Delete,
    /// Replaced one value by another: a write or delete whose condition held, or an unconditional one that returned
    /// the old value.
    Swap {
        /// The value before.
        expected: Option<V>,
        /// The value after.
        new: Option<V>,
    },
    /// A write whose condition failed: the value was not `expected`.
    Rejected {
        /// The value that the condition required.
        expected: Option<V>,
    },
    /// A write whose condition failed and that returned the current value.
    RejectedWith {
        /// The value that the condition required.
        expected: Option<V>,
        /// The current value.
        found: Option<V>,
    },
}

/// What is known about a register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RegisterState<V> {
    /// It has this value.
    Holds(Option<V>),
    /// Its value is unknown.
    Unknown,
}

impl<V: Clone + Eq + Hash + Debug> Operation for RegisterOp<V> {
    type State = RegisterState<V>;

    fn initial() -> Self::State {
        RegisterState::Holds(None)
    }

    fn unknown() -> Self::State {
        RegisterState::Unknown
    }

    fn step(&self, state: &Self::State) -> Option<Self::State> {
        let held = match state {
            RegisterState::Holds(held) => Some(held),
            RegisterState::Unknown => None,
        };
        let could_hold = |value: &Option<V>| held.is_none_or(|held| held == value);
        match self {
            Self::Read(found) => could_hold(found).then(|| RegisterState::Holds(found.clone())),
            Self::Write(value) => Some(RegisterState::Holds(Some(value.clone()))),
            Self::Delete => Some(RegisterState::Holds(None)),
            Self::Swap { expected, new } => {
                could_hold(expected).then(|| RegisterState::Holds(new.clone()))
            }
            Self::Rejected { expected } => (held != Some(expected)).then(|| state.clone()),
            Self::RejectedWith { expected, found } => (found != expected && could_hold(found))
                .then(|| RegisterState::Holds(found.clone())),
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Self::Read(_) | Self::Rejected { .. } | Self::RejectedWith { .. } => Effect::Observes,
            Self::Write(_) | Self::Delete => Effect::Overwrites,
            Self::Swap { .. } => Effect::Depends,
        }
    }

    fn needs(&self) -> Option<Self::State> {
        match self {
            Self::Read(held)
            | Self::Swap { expected: held, .. }
            | Self::RejectedWith { found: held, .. } => Some(RegisterState::Holds(held.clone())),
            Self::Write(_) | Self::Delete | Self::Rejected { .. } => None,
        }
    }

    fn makes(&self) -> Option<Self::State> {
        match self {
            Self::Write(value) => Some(RegisterState::Holds(Some(value.clone()))),
            Self::Delete => Some(RegisterState::Holds(None)),
            Self::Swap { new, .. } => Some(RegisterState::Holds(new.clone())),
            Self::Read(_) | Self::Rejected { .. } | Self::RejectedWith { .. } => None,
        }
    }
}

impl<V: Debug> Display for RegisterOp<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(found) => write!(f, "read: found {}", Held(found)),
            Self::Write(value) => write!(f, "write {value:?}"),
            Self::Delete => f.write_str("delete"),
            Self::Swap { expected, new } => {
                write!(f, "replace {} by {}", Held(expected), Held(new))
            }
            Self::Rejected { expected } => write!(f, "rejected: expected {}", Held(expected)),
            Self::RejectedWith { expected, found } => {
                write!(
                    f,
                    "rejected: expected {}, found {}",
                    Held(expected),
                    Held(found)
                )
            }
        }
    }
}

struct Held<'a, V>(&'a Option<V>);

impl<V: Debug> Display for Held<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(f, "{value:?}"),
            None => f.write_str("nothing"),
        }
    }
}
