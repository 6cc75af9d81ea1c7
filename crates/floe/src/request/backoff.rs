//! The pauses before retries.

use std::time::Duration;

use floe_store::env::SeededRandom;

/// The number of retries and the pauses before them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Backoff {
    /// Maximum retries after the first attempt.
    pub(crate) retries: u32,
    /// The first pause.
    pub(crate) initial: Duration,
    /// The longest pause.
    pub(crate) max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(3, 100, 500)
    }
}

impl Backoff {
    const fn new(retries: u32, initial_ms: u64, max_ms: u64) -> Self {
        Self {
            retries,
            initial: Duration::from_millis(initial_ms),
            max: Duration::from_millis(max_ms),
        }
    }

    /// For retries of an append. The pauses are short: the conflicting append has already completed.
    pub(crate) const fn resync() -> Self {
        Self::new(3, 5, 200)
    }

    /// For calls of a pattern that are separate transactions: many may change the same item at once, and each conflict
    /// means that another one has completed.
    pub(crate) const fn contended(retries: u32) -> Self {
        Self::new(retries, 2, 100)
    }

    /// The pause before a retry, counted from 1. It doubles each time up to the longest, with a jitter of a tenth by the
    /// seed.
    pub(crate) fn pause(&self, retry: u32, seed: u64) -> Duration {
        let doubled = 2_u32.saturating_pow(retry.saturating_sub(1));
        let pause = self.initial.saturating_mul(doubled).min(self.max);
        let micros = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        let tenth = micros / 10;
        let random = SeededRandom::new(seed ^ u64::from(retry));
        Duration::from_micros(micros - tenth + random.below(2 * tenth + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum_with_jitter_of_a_tenth() {
        let backoff = Backoff {
            retries: 4,
            ..Backoff::default()
        };
        for (retry, millis) in [(1, 100), (2, 200), (3, 400), (4, 500), (5, 500), (60, 500)] {
            let mut seen = std::collections::BTreeSet::new();
            for seed in 0..200 {
                let pause = backoff.pause(retry, seed);
                assert!(pause >= Duration::from_millis(millis) * 9 / 10);
                assert!(pause <= Duration::from_millis(millis) * 11 / 10);
                assert_eq!(pause, backoff.pause(retry, seed));
                seen.insert(pause);
            }
            assert!(seen.len() > 100);
        }
    }

    #[test]
    fn zero_initial_pause_stays_zero() {
        let backoff = Backoff {
            initial: Duration::ZERO,
            ..Backoff::default()
        };
        assert_eq!(backoff.pause(3, 1), Duration::ZERO);
    }
}
