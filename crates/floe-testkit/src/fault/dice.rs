//! Decisions that follow from a seed.
//!
//! Every decision is a hash of what it is about, not the next number of a sequence: what happens to one
//! operation does not depend on how many others were decided before.

use floe_store::env::splitmix64;
use floe_store::hash::fnv1a;

/// A number that follows from the seed and all parts, and looks unlike that of any other parts.
pub(crate) fn roll(seed: u64, parts: &[u64]) -> u64 {
    parts.iter().fold(splitmix64(seed), |hash, part| {
        splitmix64(hash ^ splitmix64(*part))
    })
}

/// Whether a chance of so much in one comes true for a number.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit exactly")]
pub(crate) fn comes_true(rate: f64, number: u64) -> bool {
    const STEPS: f64 = (1_u64 << 53) as f64;
    ((number >> 11) as f64) < rate * STEPS
}

/// A number that stands for a text.
pub(super) fn of_text(text: &str) -> u64 {
    splitmix64(fnv1a(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_met() {
        for rate in [0.0, 0.05, 0.5, 1.0] {
            let hits = (0..20_000)
                .filter(|&n| comes_true(rate, roll(1, &[n, 3])))
                .count();
            let measured = hits as f64 / 20_000.0;
            assert!(
                (measured - rate).abs() < 0.01,
                "rate={rate} measured={measured}"
            );
        }
    }

    #[test]
    fn parts_and_seeds_differ() {
        assert_eq!(roll(1, &[2, 3]), roll(1, &[2, 3]));
        assert_ne!(roll(1, &[2, 3]), roll(1, &[3, 2]));
        assert_ne!(roll(1, &[2, 3]), roll(2, &[2, 3]));
        assert_ne!(roll(1, &[2]), roll(1, &[2, 0]));
        assert_ne!(of_text("a"), of_text("b"));
    }

    /// A seed written down in a bug report must go on giving the same run.
    #[test]
    fn decisions_are_the_same_in_all_versions() {
        assert_eq!(roll(42, &[1, 2, 3]), 4_582_405_886_570_937_924);
        assert_eq!(of_text("floe"), 12_516_011_814_201_170_791);
    }
}
