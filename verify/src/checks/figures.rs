//! The figures of a check: one line of `key=value` pairs, and whether the floor was met.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::{Duration, Instant};

use crate::out;

/// Figures in the order in which they were added.
#[derive(Clone, Debug)]
pub(super) struct Figures(String);

impl Figures {
    /// Creates the figures of a check.
    pub(super) fn new(check: &str) -> Self {
        Self(format!("verify={check}"))
    }

    /// Adds a figure.
    #[must_use]
    pub(super) fn put(mut self, key: &str, value: impl Display) -> Self {
        self.0 += &format!(" {key}={value}");
        self
    }

    /// The figures that another process of the check printed.
    pub(super) const fn of_line(line: String) -> Self {
        Self(line)
    }

    /// The line.
    pub(super) fn line(&self) -> &str {
        &self.0
    }
}

/// The result of a check.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) figures: Figures,
    /// Whether the floor was met: no failure was found, or the planted bug was.
    pub(super) is_met: bool,
}

impl Verdict {
    /// Creates the verdict of a run. With a planted bug, `planted` is whether it was found.
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

/// Prints the progress of a long check, every few seconds.
#[derive(Debug)]
pub(super) struct ProgressPrinter {
    check: &'static str,
    last_printed: Instant,
}

impl ProgressPrinter {
    const EVERY: Duration = Duration::from_secs(4);

    /// Starts the progress of a check.
    pub(super) fn new(check: &'static str) -> Self {
        Self {
            check,
            last_printed: Instant::now(),
        }
    }

    /// Prints the progress, if the interval has passed.
    pub(super) fn tick(&mut self, message: impl FnOnce() -> String) {
        if self.last_printed.elapsed() >= Self::EVERY {
            self.last_printed = Instant::now();
            out::note(&format!("{}: {}", self.check, message()));
        }
    }
}

/// Figures that a child process prints, as `key=value` pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ParsedFigures(BTreeMap<String, u64>);

impl ParsedFigures {
    /// Parses the figures in a line.
    pub(super) fn parse(line: &str) -> Self {
        let pairs = line.split_whitespace();
        let pairs = pairs.filter_map(|word| word.split_once('='));
        let pairs = pairs.filter_map(|(key, value)| Some((key.to_owned(), value.parse().ok()?)));
        Self(pairs.collect())
    }

    /// Returns a figure, or zero if it is missing.
    pub(super) fn get(&self, key: &str) -> u64 {
        self.0.get(key).copied().unwrap_or_default()
    }
}

/// The given percentile of the values, or zero without values.
pub(super) fn percentile(values: &[u64], percent: usize) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let at = sorted.len() * percent / 100;
    let at = at.min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or_default()
}

/// The median of the values, or zero without values.
pub(super) fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_bug_inverts_the_verdict() {
        let figures = Figures::new("kill").put("lost", 3);
        assert_eq!(figures.line(), "verify=kill lost=3");
        assert!(!Verdict::new(figures.clone(), false, None).is_met);
        let found = Verdict::new(figures.clone(), false, Some(true));
        assert_eq!(found.figures.line(), "verify=kill lost=3 found=true");
        assert!(found.is_met);
        assert!(!Verdict::new(figures, true, Some(false)).is_met);
    }

    #[test]
    fn figures_are_parsed_from_a_line() {
        let facts = ParsedFigures::parse("disk=17 name=x bare fds=3");
        assert_eq!((facts.get("disk"), facts.get("fds")), (17, 3));
        assert_eq!((facts.get("name"), facts.get("bare")), (0, 0));
    }

    #[test]
    fn percentile_excludes_the_slowest_hundredth() {
        let values: Vec<_> = (0..200).collect();
        assert_eq!(percentile(&values, 50), 100);
        assert_eq!(percentile(&values, 99), 198);
        assert_eq!(percentile(&[], 99), 0);
    }

    #[test]
    fn median_is_the_middle_value() {
        assert_eq!(median(&[5, 1, 9]), 5);
        assert_eq!(median(&[]), 0);
    }
}
