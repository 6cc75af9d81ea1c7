//! A value that is read, written, compared and set, and deleted.

use std::fmt::{self, Debug, Display};
use std::hash::Hash;

use super::{Effect, Operation};

/// An operation on a register. `None` stands for an item that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RegisterOp<V> {
    /// Found this.
    Read(Option<V>),
    /// Set this, whatever was there.
    Write(V),
    /// Removed what was there, if anything.
    Delete,
    /// Found the one and left the other: a write or delete whose condition held, or an unconditional one
    /// that returned what it replaced.
    Swap {
        /// What was there.
        expected: Option<V>,
        /// What is there now.
        new: Option<V>,
    },
    /// A write whose condition did not hold: something else than `expected` was there.
    Refused {
        /// What was not there.
        expected: Option<V>,
    },
    /// A write whose condition did not hold and that returned what was there instead.
    RefusedBy {
        /// What should not have been there.
        expected: Option<V>,
        /// What was there.
        found: Option<V>,
    },
}

/// What is known of a register.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RegisterState<V> {
    /// It holds this.
    Holds(Option<V>),
    /// Nothing.
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
            Self::Refused { expected } => (held != Some(expected)).then(|| state.clone()),
            Self::RefusedBy { expected, found } => (found != expected && could_hold(found))
                .then(|| RegisterState::Holds(found.clone())),
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Self::Read(_) | Self::Refused { .. } | Self::RefusedBy { .. } => Effect::Observes,
            Self::Write(_) | Self::Delete => Effect::Overwrites,
            Self::Swap { .. } => Effect::Depends,
        }
    }

    fn needs(&self) -> Option<Self::State> {
        match self {
            Self::Read(held)
            | Self::Swap { expected: held, .. }
            | Self::RefusedBy { found: held, .. } => Some(RegisterState::Holds(held.clone())),
            Self::Write(_) | Self::Delete | Self::Refused { .. } => None,
        }
    }

    fn makes(&self) -> Option<Self::State> {
        match self {
            Self::Write(value) => Some(RegisterState::Holds(Some(value.clone()))),
            Self::Delete => Some(RegisterState::Holds(None)),
            Self::Swap { new, .. } => Some(RegisterState::Holds(new.clone())),
            Self::Read(_) | Self::Refused { .. } | Self::RefusedBy { .. } => None,
        }
    }
}

impl<V: Debug> Display for RegisterOp<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(found) => write!(f, "read: found {}", Held(found)),
            Self::Write(value) => write!(f, "write {value:?}"),
            Self::Delete => f.write_str("delete"),
            Self::Swap { expected, new } => write!(f, "swap {} for {}", Held(expected), Held(new)),
            Self::Refused { expected } => write!(f, "refused: expected {}", Held(expected)),
            Self::RefusedBy { expected, found } => {
                write!(
                    f,
                    "refused: expected {}, found {}",
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
