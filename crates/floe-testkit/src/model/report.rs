//! What a property run tells: figures, or a mismatch.

use std::fmt;

use super::step::Step;

/// Figures of a property run without a mismatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Operations whose answers were compared.
    pub operations: usize,
    /// Of them, those that failed, on both sides with the same error.
    pub errors: usize,
    /// Sequences, each on a fresh engine.
    pub sequences: usize,
    /// Tables that were made.
    pub tables: usize,
    /// Pages of queries and scans.
    pub pages: usize,
    /// How often an engine was reopened.
    pub reopens: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            operations,
            errors,
            sequences,
            tables,
            pages,
            reopens,
        } = self;
        write!(
            f,
            "operations={operations} errors={errors} sequences={sequences} tables={tables} \
             pages={pages} reopens={reopens}"
        )
    }
}

/// An answer that differs from the model's, with the shortest sequence found that leads to it.
#[derive(Clone, PartialEq)]
pub struct Mismatch {
    /// The seed of the run.
    pub seed: u64,
    /// The sequence, counted from 0.
    pub sequence: usize,
    /// The operations of the run up to the mismatch.
    pub operations: usize,
    /// The steps that lead to it; the last one was answered differently, or the state after it differs.
    pub steps: Vec<Step>,
    /// What the model answered.
    pub expected: String,
    /// What the engine answered.
    pub actual: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seed, sequence) = (self.seed, self.sequence);
        write!(
            f,
            "the engine and the model disagree: seed={seed} sequence={sequence}"
        )?;
        writeln!(f, " operations={}", self.operations)?;
        for (n, step) in self.steps.iter().enumerate() {
            writeln!(f, "    {n}. {step}")?;
        }
        writeln!(f, "  expected: {}", self.expected)?;
        write!(f, "  actual:   {}", self.actual)
    }
}

impl fmt::Debug for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for Mismatch {}
