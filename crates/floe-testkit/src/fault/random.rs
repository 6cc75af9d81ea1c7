//! Pseudorandom decisions from a seed.
//!
//! Every decision is a hash of its inputs, not the next number of a sequence: decisions about one operation do not
//! depend on how many decisions were made before.

use floe_store::env::splitmix64;
use floe_store::hash::fnv1a;

/// A pseudorandom number determined by the seed and all parts.
pub(crate) fn value(seed: u64, parts: &[u64]) -> u64 {
    parts.iter().fold(splitmix64(seed), |hash, part| {
        splitmix64(hash ^ splitmix64(*part))
    })
}

/// Whether an event with this probability occurs for this random number.
#[expect(clippy::cast_precision_loss, reason = "53 bits fit exactly")]
pub(crate) fn is_hit(rate: f64, number: u64) -> bool {
    const STEPS: f64 = (1_u64 << 53) as f64;
    ((number >> 11) as f64) < rate * STEPS
}

/// The hash of a text.
pub(super) fn hash_text(text: &str) -> u64 {
    splitmix64(fnv1a(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hit_ratio_matches_the_rate() {
        for rate in [0.0, 0.05, 0.5, 1.0] {
            let hits = (0..20_000)
                .filter(|&n| is_hit(rate, value(1, &[n, 3])))
                .count();
            let measured = hits as f64 / 20_000.0;
            assert!(
                (measured - rate).abs() < 0.01,
                "rate={rate} measured={measured}"
            );
        }
    }

    #[test]
    fn values_depend_on_seed_order_and_number_of_parts() {
        assert_eq!(value(1, &[2, 3]), value(1, &[2, 3]));
        assert_ne!(value(1, &[2, 3]), value(1, &[3, 2]));
        assert_ne!(value(1, &[2, 3]), value(2, &[2, 3]));
        assert_ne!(value(1, &[2]), value(1, &[2, 0]));
        assert_ne!(hash_text("a"), hash_text("b"));
    }

    /// A seed in a bug report must reproduce the run in later versions.
    #[test]
    fn values_are_stable_across_versions() {
        assert_eq!(value(42, &[1, 2, 3]), 4_582_405_886_570_937_924);
        assert_eq!(hash_text("floe"), 12_516_011_814_201_170_791);
    }
}
