//! The figures of a check: one line of `key=value`, and whether its floor was met.

use std::fmt::Display;
use std::time::{Duration, Instant};

use crate::out;

/// Figures in the order in which they were put.
#[derive(Clone, Debug)]
pub(super) struct Figures(String);

impl Figures {
    /// The figures of the check of this name.
    pub(super) fn new(check: &str) -> Self {
        Self(format!("verify={check}"))
    }

    /// Adds a figure.
    #[must_use]
    pub(super) fn put(mut self, key: &str, value: impl Display) -> Self {
        self.0 += &format!(" {key}={value}");
        self
    }

    /// The line.
    pub(super) fn line(&self) -> &str {
        &self.0
    }
}

/// What a check came to.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) figures: Figures,
    /// Whether the floor was met: nothing wrong was found, or the planted bug was.
    pub(super) is_met: bool,
}

impl Verdict {
    /// The verdict on an engine as it is, or with a planted bug if `planted` says whether it was
    /// found.
    pub(super) fn new(figures: Figures, is_clean: bool, planted: Option<bool>) -> Self {
        match planted {
            None => Self {
                figures,
                is_met: is_clean,
            },
            Some(found) => Self {
                figures: figures.put("found", found),
                is_met: found,
            },
        }
    }
}

/// Tells whoever watches how far a long check has got, every few seconds.
#[derive(Debug)]
pub(super) struct Progress {
    check: &'static str,
    told: Instant,
}

impl Progress {
    const EVERY: Duration = Duration::from_secs(4);

    /// The progress of the check of this name.
    pub(super) fn new(check: &'static str) -> Self {
        Self {
            check,
            told: Instant::now(),
        }
    }

    /// Tells how far it is, if it is time to.
    pub(super) fn tick(&mut self, how_far: impl FnOnce() -> String) {
        if self.told.elapsed() >= Self::EVERY {
            self.told = Instant::now();
            out::note(&format!("{}: {}", self.check, how_far()));
        }
    }
}

/// The value in the middle; zero if there is none.
pub(super) fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_bug_turns_the_verdict_around() {
        let figures = Figures::new("kill").put("lost", 3);
        assert_eq!(figures.line(), "verify=kill lost=3");
        assert!(!Verdict::new(figures.clone(), false, None).is_met);
        let found = Verdict::new(figures.clone(), false, Some(true));
        assert_eq!(found.figures.line(), "verify=kill lost=3 found=true");
        assert!(found.is_met);
        assert!(!Verdict::new(figures, true, Some(false)).is_met);
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[5, 1, 9]), 5);
        assert_eq!(median(&[]), 0);
    }
}
