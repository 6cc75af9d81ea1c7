//! The time by which tokens are remembered.
//!
//! It follows the clock of the machine, but never goes back: a clock that is set back would put tokens that were used a
//! moment ago into the future, where they are not looked for, and their transactions would be applied twice. After such a
//! step the time of tokens goes on from where it was, at the pace of the clock.

use floe_store::Timestamp;

/// The time by which tokens are remembered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TokenClock {
    /// By how much it is ahead of the clock.
    ahead_millis: u64,
    /// The latest moment that was given out.
    latest_millis: u64,
}

impl TokenClock {
    /// A clock that does not go behind this moment.
    pub(crate) const fn not_before(moment: Timestamp) -> Self {
        Self {
            ahead_millis: 0,
            latest_millis: moment.as_millis(),
        }
    }

    /// The time of tokens when the clock shows `now`.
    pub(crate) fn at(&mut self, now: Timestamp) -> Timestamp {
        let now = now.as_millis();
        let behind = self.latest_millis.saturating_sub(now);
        self.ahead_millis = self.ahead_millis.max(behind);
        self.latest_millis = now.saturating_add(self.ahead_millis);
        Timestamp::from_millis(self.latest_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_goes_back_and_goes_on_at_the_pace_of_the_clock() {
        let mut clock = TokenClock::default();
        let mut at = |millis| clock.at(Timestamp::from_millis(millis)).as_millis();
        assert_eq!(at(1000), 1000);
        assert_eq!(at(5000), 5000);
        assert_eq!(at(2000), 5000);
        assert_eq!(at(2500), 5500);
        assert_eq!(at(1000), 5500);
        assert_eq!(at(1001), 5501);
    }

    #[test]
    fn time_is_not_before_the_newest_token() {
        let mut clock = TokenClock::not_before(Timestamp::from_millis(9000));
        assert_eq!(clock.at(Timestamp::from_millis(10)).as_millis(), 9000);
        assert_eq!(clock.at(Timestamp::from_millis(11)).as_millis(), 9001);
        let mut clock = TokenClock::not_before(Timestamp::from_millis(9000));
        assert_eq!(clock.at(Timestamp::from_millis(9500)).as_millis(), 9500);
    }
}
