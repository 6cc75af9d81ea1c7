//! Lag: how many events a reader is behind, and for how long the oldest of them has waited.

use std::time::Duration;

/// How far behind a reader is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Lag {
    /// How many events come after its place, of those that its filter lets through.
    pub events: u64,
    /// For how long the oldest of them has been in the feed; zero if there is none.
    pub age: Duration,
    /// How many events are [parked](crate::events::feed::Parked). They count neither as events nor for the age.
    pub parked: u64,
}

impl Lag {
    /// That of several together.
    pub(super) fn add(&mut self, other: Self) {
        self.events += other.events;
        self.age = self.age.max(other.age);
        self.parked += other.parked;
    }
}
