//! Lag: the number of events a reader is behind, and the age of the oldest of them.

use std::time::Duration;

/// How far a reader is behind the end of the feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Lag {
    /// Number of events after its position that match its filter.
    pub events: u64,
    /// How long the oldest of them has been in the feed; zero if there are none.
    pub age: Duration,
    /// Number of events in [dead letters](crate::events::feed::ParkedStream). Not included in `events` and `age`.
    pub parked: u64,
}

impl Lag {
    /// Adds the lag of another partition.
    pub(super) fn add(&mut self, other: Self) {
        self.events += other.events;
        self.age = self.age.max(other.age);
        self.parked += other.parked;
    }
}
