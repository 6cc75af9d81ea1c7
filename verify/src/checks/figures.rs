//! The figures of a check: one line of `key=value`, and whether its floor was met.

use std::collections::BTreeMap;
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

    /// The figures that another process of the same check has printed.
    pub(super) const fn of_line(line: String) -> Self {
        Self(line)
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

/// Figures that a process prints for its check, as `key=value`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts(BTreeMap<String, u64>);

impl Facts {
    /// The figures in a line.
    pub(super) fn parse(line: &str) -> Self {
        let pairs = line.split_whitespace();
        let pairs = pairs.filter_map(|word| word.split_once('='));
        let pairs = pairs.filter_map(|(key, value)| Some((key.to_owned(), value.parse().ok()?)));
        Self(pairs.collect())
    }

    /// A figure; zero if it is not there.
    pub(super) fn get(&self, key: &str) -> u64 {
        self.0.get(key).copied().unwrap_or_default()
    }
}

/// The given percentile of the values; zero if there is none.
pub(super) fn percentile(values: &[u64], percent: usize) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let at = sorted.len() * percent / 100;
    let at = at.min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
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
    fn facts_are_read_from_a_line() {
        let facts = Facts::parse("disk=17 name=x bare fds=3");
        assert_eq!((facts.get("disk"), facts.get("fds")), (17, 3));
        assert_eq!((facts.get("name"), facts.get("bare")), (0, 0));
    }

    #[test]
    fn the_slowest_hundredth_is_above_the_percentile() {
        let values: Vec<_> = (0..200).collect();
        assert_eq!(percentile(&values, 50), 100);
        assert_eq!(percentile(&values, 99), 198);
        assert_eq!(percentile(&[], 99), 0);
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[5, 1, 9]), 5);
        assert_eq!(median(&[]), 0);
    }
}
