//! Bit sets.

/// A set of small numbers.
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn zeros(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }

    pub(super) fn has(&self, at: usize) -> bool {
        self.0
            .get(at / 64)
            .is_some_and(|word| word & (1 << (at % 64)) != 0)
    }

    pub(super) fn set(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    pub(super) fn clear(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word &= !(1 << (at % 64));
        }
    }

    /// The words that contain the numbers `from..to`, without empty words at the end.
    pub(super) fn words(&self, from: usize, to: usize) -> Box<[u64]> {
        let words = self.0.get(from / 64..to.div_ceil(64)).unwrap_or_default();
        let len = words.iter().rposition(|&w| w != 0).map_or(0, |at| at + 1);
        words.get(..len).unwrap_or_default().into()
    }
}

/// Whether a set is a subset of another, both given as [words](Bits::words).
pub(super) fn is_subset(small: &[u64], large: &[u64]) -> bool {
    small.len() <= large.len() && small.iter().zip(large).all(|(s, l)| s & !l == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cover_a_range_without_trailing_zeros() {
        let mut bits = Bits::zeros(200);
        bits.set(3);
        bits.set(70);
        assert!(bits.has(70) && !bits.has(71));
        assert_eq!(*bits.words(0, 200), [8, 64]);
        assert_eq!(*bits.words(65, 200), [64]);
        bits.clear(70);
        assert_eq!(*bits.words(0, 200), [8]);
        assert!(bits.words(64, 200).is_empty());
    }

    #[test]
    fn subset_relation_ignores_trailing_words() {
        assert!(is_subset(&[], &[1]));
        assert!(is_subset(&[1], &[3, 1]));
        assert!(!is_subset(&[1, 1], &[3]));
        assert!(!is_subset(&[4], &[3]));
    }
}
