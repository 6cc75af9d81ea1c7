//! A number that is incremented and read.

use std::fmt::{self, Display};

use super::{Effect, Operation};

/// An operation on a counter. An absent item counts as zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CounterOp {
    /// Read this value.
    Read(i64),
    /// Added this value.
    Add(i64),
    /// Added a value; the response contained the sum.
    AddReturning {
        /// The value added.
        by: i64,
        /// The number after the addition.
        sum: i64,
    },
}

impl Operation for CounterOp {
    /// The number, if it is known.
    type State = Option<i64>;

    fn initial() -> Self::State {
        Some(0)
    }

    fn unknown() -> Self::State {
        None
    }

    fn step(&self, state: &Self::State) -> Option<Self::State> {
        match *self {
            Self::Read(found) => state
                .is_none_or(|held| held == found)
                .then_some(Some(found)),
            Self::Add(by) => Some(state.map(|held| held.wrapping_add(by))),
            Self::AddReturning { by, sum } => state
                .is_none_or(|held| held.wrapping_add(by) == sum)
                .then_some(Some(sum)),
        }
    }

    fn effect(&self) -> Effect {
        match self {
            Self::Read(_) => Effect::Observes,
            Self::Add(_) | Self::AddReturning { .. } => Effect::Depends,
        }
    }

    fn needs(&self) -> Option<Self::State> {
        match *self {
            Self::Read(found) => Some(Some(found)),
            Self::Add(_) => None,
            Self::AddReturning { by, sum } => Some(Some(sum.wrapping_sub(by))),
        }
    }

    fn makes(&self) -> Option<Self::State> {
        match *self {
            Self::AddReturning { sum, .. } => Some(Some(sum)),
            Self::Read(_) | Self::Add(_) => None,
        }
    }
}

impl Display for CounterOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(found) => write!(f, "read: found {found}"),
            Self::Add(by) => write!(f, "add {by}"),
            Self::AddReturning { by, sum } => write!(f, "add {by}: got {sum}"),
        }
    }
}
