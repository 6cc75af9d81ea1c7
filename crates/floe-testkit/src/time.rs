//! A manual clock for tests, and a timeline of events.
//!
//! The clock and the random numbers are defined in [`floe_store::env`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use floe_store::env::ManualClock;
use floe_store::{Clock, Env, Timestamp};

/// An environment with a manual clock and seeded ids.
///
/// ```
/// use std::time::Duration;
/// use floe_testkit::time::TestEnv;
///
/// let test = TestEnv::seeded(7);
/// test.advance(Duration::from_secs(60));
/// assert_eq!(test.elapsed(), Duration::from_secs(60));
/// assert_eq!(test.env.uuid(), TestEnv::seeded(7).env.uuid());
/// ```
#[derive(Clone, Debug)]
pub struct TestEnv {
    /// The environment to pass to an engine.
    pub env: Env,
    /// The clock of the environment.
    pub clock: Arc<ManualClock>,
}

impl TestEnv {
    /// The start of the clock: 2025-01-01T00:00:00Z.
    pub const START: Timestamp = Timestamp::from_millis(1_735_689_600_000);

    /// Creates an environment whose clock starts at [`START`](TestEnv::START); the seed determines its ids.
    pub fn seeded(seed: u64) -> Self {
        let clock = ManualClock::at(Self::START);
        Self {
            env: Env::manual(clock.clone(), seed),
            clock,
        }
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.now().since(Self::START)
    }

    /// Advances the clock.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Advances the clock to a time. Does nothing if that time has passed.
    pub fn advance_to(&self, moment: Timestamp) {
        self.advance(moment.since(self.now()));
    }
}

/// Future events. Taking the next event advances the clock to its time, so a test covers hours at once and always
/// in the same order.
///
/// ```
/// use std::time::Duration;
/// use floe_testkit::time::{TestEnv, Timeline};
///
/// let test = TestEnv::seeded(7);
/// let mut timeline = Timeline::new(&test);
/// timeline.after(Duration::from_secs(600), "the token expires");
/// timeline.after(Duration::from_secs(5), "the client gives up");
/// assert_eq!(timeline.next(), Some("the client gives up"));
/// assert_eq!(test.elapsed(), Duration::from_secs(5));
/// ```
#[derive(Debug)]
pub struct Timeline<E> {
    test: TestEnv,
    /// By time; events at the same time are in the order in which they were added.
    events: BTreeMap<(Timestamp, u64), E>,
    added: u64,
}

impl<E> Timeline<E> {
    /// Creates an empty timeline.
    pub fn new(test: &TestEnv) -> Self {
        Self {
            test: test.clone(),
            events: BTreeMap::new(),
            added: 0,
        }
    }

    /// Adds an event at a time. An event in the past is due at once.
    pub fn at(&mut self, moment: Timestamp, event: E) {
        self.events.insert((moment, self.added), event);
        self.added += 1;
    }

    /// Adds an event after a delay.
    pub fn after(&mut self, delay: Duration, event: E) {
        self.at(self.test.now().plus(delay), event);
    }
}

impl<E> Iterator for Timeline<E> {
    type Item = E;

    /// Advances the clock to the next event and returns it.
    fn next(&mut self) -> Option<E> {
        let ((moment, _), event) = self.events.pop_first()?;
        self.test.advance_to(moment);
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_ordered_by_time_and_then_by_insertion() {
        let test = TestEnv::seeded(1);
        let mut timeline = Timeline::new(&test);
        for (secs, event) in [(3, 'c'), (1, 'a'), (3, 'd'), (2, 'b')] {
            timeline.after(Duration::from_secs(secs), event);
        }
        assert_eq!(timeline.by_ref().collect::<String>(), "abcd");
        assert_eq!(test.elapsed(), Duration::from_secs(3));
        timeline.at(TestEnv::START, 'e');
        assert_eq!(timeline.next(), Some('e'));
        assert_eq!(
            test.elapsed(),
            Duration::from_secs(3),
            "the clock never goes backward"
        );
    }

    #[test]
    fn an_event_can_add_events() {
        let test = TestEnv::seeded(1);
        let mut timeline = Timeline::new(&test);
        timeline.after(Duration::from_secs(1), 3_u64);
        let mut moments = Vec::new();
        while let Some(left) = timeline.next() {
            moments.push(test.elapsed().as_secs());
            if left > 1 {
                timeline.after(Duration::from_secs(left), left - 1);
            }
        }
        assert_eq!(moments, [1, 4, 6]);
    }
}
