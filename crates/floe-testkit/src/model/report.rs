//! The result of a property run: figures, or a mismatch.

use std::fmt;

use super::step::Step;

/// The figures of a property run without a mismatch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of operations compared.
    pub operations: usize,
    /// The number of them that failed, with the same error on both sides.
    pub errors: usize,
    /// The number of sequences, each with a new engine.
    pub sequences: usize,
    /// The number of tables created.
    pub tables: usize,
    /// The number of pages of queries and scans.
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

/// A response that differs from the model's, with a minimal sequence of steps that leads to it.
#[derive(Clone, PartialEq)]
pub struct Mismatch {
    /// The seed of the run.
    pub seed: u64,
    /// The index of the sequence, from 0.
    pub sequence: usize,
    /// The number of operations of the run up to the mismatch.
    pub operations: usize,
    /// The steps that lead to the mismatch. The response to the last one differs, or the state after it.
    pub steps: Vec<Step>,
    /// The response of the model.
    pub expected: String,
    /// The response of the engine.
    pub actual: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seed, sequence) = (self.seed, self.sequence);
        write!(
            f,
            "the engine differs from the model: seed={seed} sequence={sequence}"
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
