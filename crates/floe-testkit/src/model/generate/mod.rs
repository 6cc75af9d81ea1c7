//! Random steps: mostly sensible, sometimes wrong, always the same for the same seed.
//!
//! Keys come from small sets, so that items meet again and again. The generator keeps its own idea of
//! the tables there are, good enough to make most requests fit; it never asks an engine.

mod expressions;
mod requests;
mod tables;
mod values;

use std::time::Duration;

use floe_store::TableDef;
use floe_store::env::{SeededRandom, Timestamp};
use floe_store::op::{TransactWriteItems, WriteItem};

use super::step::Step;

/// How far the clock of one sequence may move: change records are kept for a day.
const TIME_MAX: Duration = Duration::from_secs(20 * 60 * 60);

/// A random sequence of so many steps, for an engine whose clock starts at this moment.
pub(super) fn generate(seed: u64, start: Timestamp, length: usize) -> Vec<Step> {
    let mut generator = Generator {
        dice: Dice::new(seed),
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

/// What the generator knows.
struct Generator {
    dice: Dice,
    start: Timestamp,
    now: Timestamp,
    /// Steps since the tables were made.
    steps: usize,
    /// A step that belongs to the one before.
    next: Option<Step>,
    /// The tables that should be there.
    tables: Vec<TableDef>,
    /// Transactions with tokens that were sent, to be sent again.
    transactions: Vec<TransactWriteItems>,
    /// Writes with tokens that were sent since the engine was opened, to be sent again.
    writes: Vec<WriteItem>,
    /// How often the engine was reopened. Their tokens may be forgotten then, so no other has one of them.
    reopens: usize,
}

impl Generator {
    fn step(&mut self) -> Step {
        if let Some(next) = self.next.take() {
            return next;
        }
        // A sequence begins with tables; one without would be dull.
        if self.tables.len() < 2 {
            return self.create_table();
        }
        // Then items, so that there is something to read.
        self.steps += 1;
        if self.steps < 40 && self.dice.chance(60) {
            return if self.dice.chance(70) {
                self.write()
            } else {
                self.batch_write()
            };
        }
        match self.dice.below(1000) {
            0..300 => self.write(),
            300..303 => self.heavy_write(),
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
            905..925 => Step::ReadStreams(1 + self.dice.below(20)),
            925..940 => self.describe(),
            940..960 => self.change_table(),
            960..970 => self.switch_ttl(),
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
        let millis = match self.dice.below(4) {
            0 => 1 + self.dice.below(2_000),
            1 => 1_000 * (1 + self.dice.below(60)) + self.dice.below(1000),
            2 => 60_000 * (1 + self.dice.below(12)) + self.dice.below(1000),
            _ => 60_000 * (1 + self.dice.below(120)) + self.dice.below(1000),
        };
        let by = Duration::from_millis(millis as u64);
        if self.now.since(self.start) + by > TIME_MAX {
            return Step::Sweep;
        }
        self.now = self.now.plus(by);
        Step::Advance(by)
    }

    /// One of the tables.
    fn table(&self) -> TableDef {
        let table = self.dice.pick(&self.tables);
        table.cloned().unwrap_or_else(tables::fallback)
    }
}

/// Random choices.
struct Dice(SeededRandom);

impl Dice {
    const fn new(seed: u64) -> Self {
        Self(SeededRandom::new(seed))
    }

    /// A number below the bound; 0 if the bound is 0.
    fn below(&self, bound: usize) -> usize {
        usize::try_from(self.0.below(bound as u64)).unwrap_or(0)
    }

    /// True so many times in a hundred.
    fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// True so many times in a thousand.
    fn rarely(&self, permille: usize) -> bool {
        self.below(1000) < permille
    }

    /// One of the choices, if there is one.
    fn pick<'a, T>(&self, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.below(choices.len()))
    }

    /// One of these.
    fn one_of<T: Copy, const COUNT: usize>(&self, choices: &[T; COUNT]) -> T {
        const { assert!(COUNT > 0, "nothing to choose from") };
        let [first, ..] = choices.as_slice() else {
            unreachable!("there is a first choice");
        };
        *self.pick(choices).unwrap_or(first)
    }

    /// One of these texts.
    fn text<const COUNT: usize>(&self, choices: &[&'static str; COUNT]) -> &'static str {
        self.one_of(choices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_steps_again() {
        let start = Timestamp::from_millis(1_700_000_000_000);
        assert_eq!(generate(7, start, 300), generate(7, start, 300));
        assert_ne!(generate(7, start, 50), generate(8, start, 50));
    }

    #[test]
    fn every_kind_of_step_comes_up() {
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
