//! Owned time: a clock that a test moves, and events that happen when it gets there.
//!
//! The clock and the randomness themselves are [`floe_store::env`]'s. Here is what tests do with them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use floe_store::env::ManualClock;
use floe_store::{Clock, Env, Timestamp};

/// An environment whose time and ids a test owns.
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
    /// What an engine takes.
    pub env: Env,
    /// The clock behind it.
    pub clock: Arc<ManualClock>,
}

impl TestEnv {
    /// Where the clock starts: 2025-01-01T00:00:00Z.
    pub const START: Timestamp = Timestamp::from_millis(1_735_689_600_000);

    /// A clock that stands at [`START`](TestEnv::START), and ids that follow from the seed.
    pub fn seeded(seed: u64) -> Self {
        let clock = ManualClock::at(Self::START);
        Self {
            env: Env::manual(clock.clone(), seed),
            clock,
        }
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The time that has passed since the start.
    pub fn elapsed(&self) -> Duration {
        self.now().since(Self::START)
    }

    /// Moves the clock ahead.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Moves the clock to a moment; does nothing if it is there or later.
    pub fn advance_to(&self, moment: Timestamp) {
        self.advance(moment.since(self.now()));
    }
}

/// Events at moments to come. Taking the next one moves the clock to its moment, so that a test runs
/// through hours in no time and always in the same order.
///
/// ```
/// use std::time::Duration;
/// use floe_testkit::time::{TestEnv, Timeline};
///
/// let test = TestEnv::seeded(7);
/// let mut timeline = Timeline::new(&test);
/// timeline.after(Duration::from_secs(600), "the token is forgotten");
/// timeline.after(Duration::from_secs(5), "the client gives up");
/// assert_eq!(timeline.next(), Some("the client gives up"));
/// assert_eq!(test.elapsed(), Duration::from_secs(5));
/// ```
#[derive(Debug)]
pub struct Timeline<E> {
    test: TestEnv,
    /// By moment, and at one moment in the order in which they were added.
    events: BTreeMap<(Timestamp, u64), E>,
    added: u64,
}

impl<E> Timeline<E> {
    /// A timeline without events.
    pub fn new(test: &TestEnv) -> Self {
        Self {
            test: test.clone(),
            events: BTreeMap::new(),
            added: 0,
        }
    }

    /// Adds an event at a moment. One in the past happens at once.
    pub fn at(&mut self, moment: Timestamp, event: E) {
        self.events.insert((moment, self.added), event);
        self.added += 1;
    }

    /// Adds an event so much later than now.
    pub fn after(&mut self, delay: Duration, event: E) {
        self.at(self.test.now().plus(delay), event);
    }
}

impl<E> Iterator for Timeline<E> {
    type Item = E;

    /// Moves the clock to the next event and takes it.
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
    fn events_come_in_the_order_of_their_moments_and_then_of_their_adding() {
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
            "the clock never goes back"
        );
    }

    #[test]
    fn events_may_add_events() {
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
