//! Generates random steps: mostly valid, sometimes invalid, always the same for the same seed.
//!
//! Keys come from small sets, so that steps often use the same items. The generator tracks the tables that should
//! exist, well enough to make most requests valid; it never calls an engine.

mod expressions;
mod requests;
mod tables;
mod values;

use std::time::Duration;

use floe_store::TableDef;
use floe_store::env::{SeededRandom, Timestamp};
use floe_store::op::{TransactWriteItems, WriteItem};

use super::step::Step;

/// Maximum time by which a sequence advances the clock: change records are kept for a day.
const TIME_MAX: Duration = Duration::from_secs(20 * 60 * 60);

/// Generates a sequence of `length` steps for an engine whose clock starts at `start`.
pub(super) fn generate(seed: u64, start: Timestamp, length: usize) -> Vec<Step> {
    let mut generator = Generator {
        random: RandomChoices::new(seed),
        start,
        now: start,
        steps: 0,
        next: None,
        tables: Vec::new(),
        transactions: Vec::new(),
        writes: Vec::new(),
        reopens: 0,
    };
    (0..length).map(|_| generator.step()).collect()
}

/// The state of the generator.
struct Generator {
    random: RandomChoices,
    start: Timestamp,
    now: Timestamp,
    /// The number of steps since the tables were created.
    steps: usize,
    /// A step that must follow the previous one.
    next: Option<Step>,
    /// The tables that should exist.
    tables: Vec<TableDef>,
    /// Transactions sent with tokens, to be sent again.
    transactions: Vec<TransactWriteItems>,
    /// Writes sent with tokens since the engine was opened, to be sent again.
    writes: Vec<WriteItem>,
    /// How often the engine was reopened. Reopening may discard tokens, so tokens of writes are never reused after
    /// it.
    reopens: usize,
}

impl Generator {
    fn step(&mut self) -> Step {
        if let Some(next) = self.next.take() {
            return next;
        }
        // A sequence begins by creating tables, because few other steps work without them.
        if self.tables.len() < 2 {
            return self.create_table();
        }
        // Then it writes items, so that there is something to read.
        self.steps += 1;
        if self.steps < 40 && self.random.chance(60) {
            return if self.random.chance(70) {
                self.write()
            } else {
                self.batch_write()
            };
        }
        match self.random.below(1000) {
            0..300 => self.write(),
            300..303 => self.large_batch_write(),
            303..360 => self.batch_write(),
            360..470 => self.transact_write(),
            470..540 => self.get(),
            540..570 => self.batch_get(),
            570..600 => self.transact_get(),
            600..760 => self.query(),
            760..840 => self.scan(),
            840..870 => self.advance(),
            870..890 => Step::Sweep,
            890..905 => self.reopen(),
            905..925 => Step::ReadStreams(1 + self.random.below(20)),
            925..940 => self.describe(),
            940..960 => self.change_table(),
            960..970 => self.update_ttl(),
            970..978 => self.change_tags(),
            978..982 => self.list_tables(),
            982..986 => self.list_streams(),
            986..993 => self.create_table(),
            _ => self.delete_table(),
        }
    }

    fn reopen(&mut self) -> Step {
        self.writes.clear();
        self.reopens += 1;
        Step::Reopen
    }

    fn advance(&mut self) -> Step {
        let millis = match self.random.below(4) {
            0 => 1 + self.random.below(2_000),
            1 => 1_000 * (1 + self.random.below(60)) + self.random.below(1000),
            2 => 60_000 * (1 + self.random.below(12)) + self.random.below(1000),
            _ => 60_000 * (1 + self.random.below(120)) + self.random.below(1000),
        };
        let by = Duration::from_millis(millis as u64);
        if self.now.since(self.start) + by > TIME_MAX {
            return Step::Sweep;
        }
        self.now = self.now.plus(by);
        Step::Advance(by)
    }

    /// A random table.
    fn table(&self) -> TableDef {
        let table = self.random.pick(&self.tables);
        table.cloned().unwrap_or_else(tables::default_table)
    }
}

/// A source of random choices.
struct RandomChoices(SeededRandom);

impl RandomChoices {
    const fn new(seed: u64) -> Self {
        Self(SeededRandom::new(seed))
    }

    /// A number below `bound`; 0 if `bound` is 0.
    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.0.below(bound as u64)).unwrap_or(0)
    }

    /// Returns `true` with this probability in percent.
    fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns `true` with this probability in per mille.
    fn rarely(&self, permille: usize) -> bool {
        self.below(1000) < permille
    }

    /// A random element, or `None` if there are none.
    fn pick<'a, T>(&self, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.below(choices.len()))
    }

    /// A random element.
    fn one_of<T: Copy, const COUNT: usize>(&self, choices: &[T; COUNT]) -> T {
        const { assert!(COUNT > 0, "`choices` must not be empty") };
        let [first, ..] = choices.as_slice() else {
            unreachable!("`choices` is not empty");
        };
        *self.pick(choices).unwrap_or(first)
    }

    /// A random text.
    fn text<const COUNT: usize>(&self, choices: &[&'static str; COUNT]) -> &'static str {
        self.one_of(choices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_generates_the_same_steps() {
        let start = Timestamp::from_millis(1_700_000_000_000);
        assert_eq!(generate(7, start, 300), generate(7, start, 300));
        assert_ne!(generate(7, start, 50), generate(8, start, 50));
    }

    #[test]
    fn every_kind_of_step_is_generated() {
        let start = Timestamp::from_millis(1_700_000_000_000);
        let steps = generate(1, start, 3000);
        let kinds: std::collections::BTreeSet<String> = steps
            .iter()
            .map(|step| {
                let text = format!("{step:?}");
                text.split(['(', ' ']).next().unwrap_or_default().to_owned()
            })
            .collect();
        assert_eq!(kinds.len(), 20, "{kinds:?}");
    }
}
