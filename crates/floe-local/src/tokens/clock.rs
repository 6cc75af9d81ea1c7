//! The time by which tokens are remembered.
//!
//! Tokens are filed by a time that follows the clock of the machine and never goes back. While the clock is behind it,
//! because it was set back, it goes on at the pace of a stopwatch, and follows the clock again as soon as that has passed
//! it. So setting the clock back and right again moves it by nothing.
//!
//! A clock that is set ahead takes this time with it, and tokens would be forgotten too early. So there is a second moment,
//! the horizon: tokens that expire after it are remembered. It never goes faster than the stopwatch over the time for which
//! tokens are remembered.

use std::collections::VecDeque;
use std::time::Duration;

use floe_store::Timestamp;
use floe_store::env::Env;
use floe_store::limits::TOKEN_RETENTION;

/// How far apart the moments are at which the lead is kept.
const STEP: Duration = Duration::from_secs(1);

/// A moment as tokens count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenMoment {
    /// By which tokens are filed.
    pub(crate) now: Timestamp,
    /// Tokens that expire after this moment are remembered. Not after `now`.
    pub(crate) horizon: Timestamp,
    /// The stopwatch, for what the process alone remembers.
    pub(crate) uptime: Timestamp,
}

/// The time by which tokens are remembered.
#[derive(Clone, Debug, Default)]
pub(crate) struct TokenClock {
    /// The latest moment that was given out.
    latest_millis: u64,
    /// What the stopwatch showed then.
    uptime_millis: u64,
    /// Whether the clock of the machine was behind it.
    is_behind: bool,
    /// The oldest first.
    leads: VecDeque<Lead>,
}

/// By how much the time of tokens was ahead of the stopwatch, at least, while that showed these moments.
#[derive(Clone, Copy, Debug)]
struct Lead {
    first: u64,
    last: u64,
    least: i64,
}

impl TokenClock {
    /// A clock that starts with the one of the machine.
    pub(crate) fn new(env: &Env) -> Self {
        let now = env.now();
        Self::among(now, now, env)
    }

    /// A clock of a store whose tokens were used between these moments. Over a restart there is only the clock of the
    /// machine. If that is behind the newest token, it was set back: then it is not known how long ago the oldest was used,
    /// so the horizon begins there.
    pub(crate) fn among(oldest: Timestamp, newest: Timestamp, env: &Env) -> Self {
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
        clock.keep_lead();
        clock.latest_millis = newest.as_millis();
        clock
    }

    /// The present moment.
    pub(crate) fn read(&mut self, env: &Env) -> TokenMoment {
        self.at(env.now(), env.uptime())
    }

    fn at(&mut self, now: Timestamp, uptime: Duration) -> TokenMoment {
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
        let ahead = self.keep_lead();
        TokenMoment {
            now: Timestamp::from_millis(self.latest_millis),
            horizon: Timestamp::from_millis(self.latest_millis.saturating_sub(ahead)),
            uptime: Timestamp::from_millis(self.uptime_millis),
        }
    }

    /// Keeps the present lead, and answers by how much it has grown at most since a token was used that is to be
    /// remembered.
    fn keep_lead(&mut self) -> u64 {
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
                newest.least = newest.least.min(lead);
            }
            _ => self.leads.push_back(Lead {
                first: uptime,
                last: uptime,
                least: lead,
            }),
        }
        let least = self.leads.iter().map(|lead| lead.least).min();
        (lead - least.unwrap_or(lead)).unsigned_abs()
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

    /// A clock that can be set, beside a stopwatch that cannot.
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

        fn read(&mut self) -> TokenMoment {
            let now = Timestamp::from_millis(self.now);
            self.clock.at(now, Duration::from_millis(self.uptime))
        }

        fn token_time(&mut self) -> u64 {
            self.read().now.as_millis()
        }
    }

    #[test]
    fn time_goes_on_by_the_stopwatch_while_the_clock_is_behind_and_follows_it_again() {
        let mut machine = Machine::at(10_000 * SECOND);
        assert_eq!(machine.token_time(), 10_000 * SECOND);
        machine.pass(SECOND);
        assert_eq!(machine.token_time(), 10_001 * SECOND);
        machine.now -= 660 * SECOND;
        assert_eq!(machine.token_time(), 10_001 * SECOND);
        machine.pass(2 * SECOND);
        assert_eq!(machine.token_time(), 10_003 * SECOND);
        // The clock is set right: nothing is added to what it shows.
        machine.now += 660 * SECOND;
        assert_eq!(machine.token_time(), 10_003 * SECOND);
        machine.pass(SECOND);
        assert_eq!(machine.token_time(), 10_004 * SECOND);
        machine.now += 50 * SECOND;
        assert_eq!(machine.token_time(), 10_054 * SECOND);
    }

    #[test]
    fn horizon_lags_behind_a_clock_that_was_set_ahead_until_older_tokens_are_forgotten() {
        let mut machine = Machine::at(10_000 * SECOND);
        machine.read();
        machine.now += 3600 * SECOND;
        machine.pass(SECOND);
        assert_eq!(machine.read().horizon.as_millis(), 10_001 * SECOND);
        machine.pass(598 * SECOND);
        assert_eq!(machine.read().horizon.as_millis(), 10_599 * SECOND);
        machine.pass(SECOND);
        let moment = machine.read();
        assert_eq!(moment.horizon, moment.now);
    }

    /// What a store knows of its tokens: when they were used, by their time and by real time.
    #[derive(Default)]
    struct Used(Vec<(u64, u64)>);

    impl Used {
        /// The clock after the process started again while the machine's was set back, with a stopwatch that shows this
        /// moment. It knows the slots.
        fn restarted(&self, uptime: u64) -> TokenClock {
            let moments = self
                .0
                .iter()
                .map(|(moment, _)| moment - moment % (300 * SECOND));
            let moment = |millis: Option<u64>| Timestamp::from_millis(millis.unwrap());
            let (oldest, newest) = (moment(moments.clone().min()), moment(moments.max()));
            let clock = ManualClock::at(Timestamp::from_millis(newest.as_millis() - 1 - uptime));
            clock.advance(Duration::from_millis(uptime));
            TokenClock::among(oldest, newest, &Env::manual(clock, 1))
        }
    }

    #[test]
    fn token_is_remembered_for_its_time_whatever_is_done_to_the_clock() {
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
                let moment = machine.read();
                assert!(moment.now >= last.now && moment.horizon >= last.horizon);
                assert!(moment.horizon <= moment.now);
                last = moment;
                for (used, at) in &used.0 {
                    let is_remembered = used + RETENTION > moment.horizon.as_millis();
                    assert!(is_remembered || real - at >= RETENTION, "seed={seed}");
                    assert!(used / (300 * SECOND) <= moment.now.as_millis() / (300 * SECOND));
                }
                let horizon = moment.horizon.as_millis();
                used.0.retain(|(used, _)| used + RETENTION > horizon);
                used.0.push((moment.now.as_millis(), real));
                assert!(machine.clock.leads.len() <= 602);
            }
            // Without further steps, nothing is remembered longer than it has to be.
            machine.pass(RETENTION);
            machine.read();
            machine.pass(RETENTION);
            let moment = machine.read();
            assert_eq!(moment.horizon, moment.now, "seed={seed}");
        }
    }
}
