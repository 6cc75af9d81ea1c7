//! The clock that determines how long tokens are valid.
//!
//! Tokens are recorded with a time that follows the machine's clock and never goes back. If the machine's clock is set
//! back, the token time advances with a monotonic stopwatch until the machine's clock has caught up. So setting the
//! clock back and then forward again does not change the token time.
//!
//! If the machine's clock is set forward, the token time follows, and tokens would expire too early. So there is a
//! second time, the horizon: tokens that expire after it are valid. Over the retention of tokens, it never advances
//! faster than the stopwatch.

use std::collections::VecDeque;
use std::time::Duration;

use floe_store::Timestamp;
use floe_store::env::Env;
use floe_store::limits::TOKEN_RETENTION;

/// Interval at which the lead is recorded.
const STEP: Duration = Duration::from_secs(1);

/// A reading of the token clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenTime {
    /// The time with which tokens are recorded.
    pub(crate) now: Timestamp,
    /// Tokens that expire after this time are valid. Never later than `now`.
    pub(crate) horizon: Timestamp,
    /// The stopwatch, for tokens that are only in memory.
    pub(crate) uptime: Timestamp,
}

/// The clock that determines how long tokens are valid.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenClock {
    /// The latest token time that was returned.
    latest_millis: u64,
    /// The reading of the stopwatch at that time.
    uptime_millis: u64,
    /// Whether the machine's clock was behind the token time.
    is_behind: bool,
    /// Recent leads, oldest first.
    leads: VecDeque<Lead>,
}

/// The minimum lead of the token time over the stopwatch, while the stopwatch read `first` to `last`.
#[derive(Clone, Copy, Debug)]
struct Lead {
    first: u64,
    last: u64,
    min_lead: i64,
}

impl TokenClock {
    /// Creates a clock that starts at the time of the machine's clock.
    pub(crate) fn new(env: &Env) -> Self {
        let now = env.now();
        Self::between(now, now, env)
    }

    /// Creates the clock of a store whose tokens were used between these times. Only the machine's clock measures time
    /// across a restart. If it is behind the newest token, it was set back. Then the age of the oldest token is
    /// unknown, so the horizon starts there.
    pub(crate) fn between(oldest: Timestamp, newest: Timestamp, env: &Env) -> Self {
        let now = env.now();
        let (oldest, newest) = if now >= newest {
            (now, now)
        } else {
            (oldest, newest)
        };
        let mut clock = Self {
            latest_millis: oldest.as_millis(),
            uptime_millis: millis(env.uptime()),
            ..Self::default()
        };
        clock.record_lead();
        clock.latest_millis = newest.as_millis();
        clock
    }

    /// Reads the clock.
    pub(crate) fn read(&mut self, env: &Env) -> TokenTime {
        self.at(env.now(), env.uptime())
    }

    fn at(&mut self, now: Timestamp, uptime: Duration) -> TokenTime {
        let uptime = millis(uptime);
        let passed = uptime.saturating_sub(self.uptime_millis);
        let now = now.as_millis();
        let by_stopwatch = self.latest_millis.saturating_add(passed);
        self.is_behind = now
            < if self.is_behind {
                by_stopwatch
            } else {
                self.latest_millis
            };
        self.latest_millis = if self.is_behind { by_stopwatch } else { now };
        self.uptime_millis = uptime.max(self.uptime_millis);
        let ahead = self.record_lead();
        TokenTime {
            now: Timestamp::from_millis(self.latest_millis),
            horizon: Timestamp::from_millis(self.latest_millis.saturating_sub(ahead)),
            uptime: Timestamp::from_millis(self.uptime_millis),
        }
    }

    /// Records the present lead, and returns its maximum growth since the oldest token that must still be valid was used.
    fn record_lead(&mut self) -> u64 {
        let retention = millis(TOKEN_RETENTION);
        let lead = self.latest_millis.cast_signed() - self.uptime_millis.cast_signed();
        let uptime = self.uptime_millis;
        while let Some(first) = self.leads.front()
            && first.last.saturating_add(retention) <= uptime
        {
            self.leads.pop_front();
        }
        match self.leads.back_mut() {
            Some(newest) if uptime - newest.first < millis(STEP) => {
                newest.last = uptime;
                newest.min_lead = newest.min_lead.min(lead);
            }
            _ => self.leads.push_back(Lead {
                first: uptime,
                last: uptime,
                min_lead: lead,
            }),
        }
        let min_lead = self.leads.iter().map(|lead| lead.min_lead).min();
        (lead - min_lead.unwrap_or(lead)).unsigned_abs()
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use floe_store::env::{ManualClock, SeededRandom};

    use super::*;

    const SECOND: u64 = 1000;
    const RETENTION: u64 = 600 * SECOND;

    /// A machine with a clock that can be set and a stopwatch that cannot.
    struct Machine {
        clock: TokenClock,
        now: u64,
        uptime: u64,
    }

    impl Machine {
        fn at(now: u64) -> Self {
            Self {
                clock: TokenClock::default(),
                now,
                uptime: 5 * SECOND,
            }
        }

        fn pass(&mut self, millis: u64) {
            self.now += millis;
            self.uptime += millis;
        }

        fn read(&mut self) -> TokenTime {
            let now = Timestamp::from_millis(self.now);
            self.clock.at(now, Duration::from_millis(self.uptime))
        }

        fn token_time(&mut self) -> u64 {
            self.read().now.as_millis()
        }
    }

    #[test]
    fn token_time_never_goes_back_and_catches_up_with_the_clock() {
        let mut machine = Machine::at(10_000 * SECOND);
        assert_eq!(machine.token_time(), 10_000 * SECOND);
        machine.pass(SECOND);
        assert_eq!(machine.token_time(), 10_001 * SECOND);
        machine.now -= 660 * SECOND;
        assert_eq!(machine.token_time(), 10_001 * SECOND);
        machine.pass(2 * SECOND);
        assert_eq!(machine.token_time(), 10_003 * SECOND);
        // The clock is corrected: the token time does not jump.
        machine.now += 660 * SECOND;
        assert_eq!(machine.token_time(), 10_003 * SECOND);
        machine.pass(SECOND);
        assert_eq!(machine.token_time(), 10_004 * SECOND);
        machine.now += 50 * SECOND;
        assert_eq!(machine.token_time(), 10_054 * SECOND);
    }

    #[test]
    fn horizon_waits_for_older_tokens_after_the_clock_is_set_forward() {
        let mut machine = Machine::at(10_000 * SECOND);
        machine.read();
        machine.now += 3600 * SECOND;
        machine.pass(SECOND);
        assert_eq!(machine.read().horizon.as_millis(), 10_001 * SECOND);
        machine.pass(598 * SECOND);
        assert_eq!(machine.read().horizon.as_millis(), 10_599 * SECOND);
        machine.pass(SECOND);
        let time = machine.read();
        assert_eq!(time.horizon, time.now);
    }

    /// The times at which tokens were used: token time and real time.
    #[derive(Default)]
    struct Used(Vec<(u64, u64)>);

    impl Used {
        /// The clock after a restart with a machine clock that was set back, given the stopwatch reading. It is derived
        /// from the slots of the tokens.
        fn restarted(&self, uptime: u64) -> TokenClock {
            let times = self.0.iter().map(|(time, _)| time - time % (300 * SECOND));
            let time = |millis: Option<u64>| Timestamp::from_millis(millis.unwrap());
            let (oldest, newest) = (time(times.clone().min()), time(times.max()));
            let clock = ManualClock::at(Timestamp::from_millis(newest.as_millis() - 1 - uptime));
            clock.advance(Duration::from_millis(uptime));
            TokenClock::between(oldest, newest, &Env::manual(clock, 1))
        }
    }

    #[test]
    fn token_is_valid_for_its_retention_despite_clock_changes() {
        for seed in 0..200 {
            let random = SeededRandom::new(seed);
            let mut machine = Machine::at(1_000_000_000 + random.below(1 << 40));
            let mut used = Used::default();
            let mut real = 0;
            let mut last = machine.read();
            for _ in 0..2000 {
                let passed = random.below(20 * SECOND);
                machine.pass(passed);
                real += passed;
                match random.below(20) {
                    0 => machine.now = machine.now.saturating_sub(random.below(5000 * SECOND)),
                    1 => machine.now += random.below(5000 * SECOND),
                    // Drift.
                    2 => machine.now -= 1,
                    3 => machine.now += 1,
                    _ => {}
                }
                if random.below(100) == 0 && !used.0.is_empty() {
                    machine.uptime = random.below(100 * SECOND);
                    machine.clock = used.restarted(machine.uptime);
                    last = machine.read();
                }
                let time = machine.read();
                assert!(time.now >= last.now && time.horizon >= last.horizon);
                assert!(time.horizon <= time.now);
                last = time;
                for (used, at) in &used.0 {
                    let is_remembered = used + RETENTION > time.horizon.as_millis();
                    assert!(is_remembered || real - at >= RETENTION, "seed={seed}");
                    assert!(used / (300 * SECOND) <= time.now.as_millis() / (300 * SECOND));
                }
                let horizon = time.horizon.as_millis();
                used.0.retain(|(used, _)| used + RETENTION > horizon);
                used.0.push((time.now.as_millis(), real));
                assert!(machine.clock.leads.len() <= 602);
            }
            // Without further clock changes, no token is valid longer than necessary.
            machine.pass(RETENTION);
            machine.read();
            machine.pass(RETENTION);
            let time = machine.read();
            assert_eq!(time.horizon, time.now, "seed={seed}");
        }
    }
}
