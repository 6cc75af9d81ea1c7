//! Lag: how many events a reader is behind, and for how long the oldest of them has waited.

use std::time::Duration;

use floe_store::Timestamp;

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
    /// That of one who is so far behind at this moment.
    pub(super) fn at(behind: Behind, now: Timestamp) -> Self {
        Self {
            events: behind.events,
            age: behind
                .since
                .map(|since| now.since(since))
                .unwrap_or_default(),
            parked: 0,
        }
    }

    /// That of several together.
    pub(super) fn add(&mut self, other: Self) {
        self.events += other.events;
        self.age = self.age.max(other.age);
        self.parked += other.parked;
    }
}

/// What lies between a place and the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Behind {
    pub(super) events: u64,
    /// When the oldest came to the feed.
    pub(super) since: Option<Timestamp>,
}
