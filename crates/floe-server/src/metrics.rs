//! Figures for Prometheus: what was asked, what came of it, how long it took, and what it cost.
//!
//! They are gathered only where [`Service::with_metrics`](crate::Service::with_metrics) asks for it; without, no request goes
//! through anything of this. What failed is counted by the name of its error, so conflicts are the requests whose outcome is
//! `ConditionalCheckFailedException`, `TransactionCanceledException` or `TransactionConflictException`, and throttles those
//! with `ThrottlingException` or `ProvisionedThroughputExceededException`.

mod engine;
pub(crate) mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use floe_store::Error;
use floe_store::capacity::{ConsumedCapacity, Units};
use floe_store::error::CancellationCode;

use crate::answer::Answer;
use crate::wire;

pub(crate) use engine::MeasuredEngine;

/// The upper ends of the buckets of the histogram, in microseconds.
const BUCKETS_MICROS: [u64; 14] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000,
];

/// The name of all that is asked beside the operations, so that no caller can make up names.
const OTHER: &str = "Other";

/// All figures.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// By name, and last what is none of the operations.
    operations: Vec<(&'static str, Mutex<Figures>)>,
    /// How many transactions were canceled for each reason. One that has several counts for each.
    canceled: Mutex<BTreeMap<&'static str, u64>>,
}

/// The figures of an operation.
#[derive(Clone, Debug, Default)]
struct Figures {
    /// How many requests had this outcome: `ok`, or the name of the error.
    outcomes: BTreeMap<String, u64>,
    /// How many took as long as each bucket says, and longer than the one before says.
    buckets: [u64; BUCKETS_MICROS.len()],
    /// All of them, also those that took longer than the last bucket says.
    count: u64,
    sum: Duration,
    read: Units,
    write: Units,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut names: Vec<&str> = wire::operations().collect();
        names.sort_unstable();
        names.push(OTHER);
        let figures = names.into_iter().map(|name| (name, Mutex::default()));
        Self {
            operations: figures.collect(),
            canceled: Mutex::default(),
        }
    }

    /// Notes a call and its answer.
    pub(crate) fn note(&self, target: &str, answer: &Answer, took: Duration) {
        let operation = target
            .split_once('.')
            .map_or("", |(_, operation)| operation);
        let Some(mut figures) = self.figures(operation) else {
            return;
        };
        match figures.outcomes.get_mut(outcome(answer)) {
            Some(count) => *count += 1,
            None => {
                let outcome = outcome(answer).to_owned();
                figures.outcomes.insert(outcome, 1);
            }
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_MICROS.iter().position(|end| micros <= *end);
        if let Some(count) = bucket.and_then(|at| figures.buckets.get_mut(at)) {
            *count += 1;
        }
        figures.count += 1;
        figures.sum += took;
    }

    /// Notes what an operation has consumed.
    fn charge<'c>(
        &self,
        operation: &str,
        consumed: impl IntoIterator<Item = &'c ConsumedCapacity>,
    ) {
        if let Some(mut figures) = self.figures(operation) {
            for cost in consumed {
                figures.read += cost.read;
                figures.write += cost.write;
            }
        }
    }

    /// Notes why a transaction was canceled, if that is what the error says.
    fn cancel(&self, error: &Error) {
        let Error::TransactionCanceled { reasons } = error else {
            return;
        };
        let codes = reasons.iter().map(|reason| reason.code);
        let codes = codes.filter(|code| *code != CancellationCode::None);
        let codes: BTreeSet<&str> = codes.map(CancellationCode::as_str).collect();
        let mut canceled = self.canceled();
        for code in codes {
            *canceled.entry(code).or_default() += 1;
        }
    }

    fn canceled(&self) -> MutexGuard<'_, BTreeMap<&'static str, u64>> {
        self.canceled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn figures(&self, operation: &str) -> Option<MutexGuard<'_, Figures>> {
        let mut known = self.operations.iter();
        let known = known.find(|(name, _)| [operation, OTHER].contains(name));
        known.map(|(_, figures)| figures.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What came of a call: `ok`, or the name of the error.
fn outcome(answer: &Answer) -> &str {
    if answer.status == 200 {
        return "ok";
    }
    let name = answer.body.strip_prefix(br#"{"__type":""#);
    let name = name.and_then(|rest| rest.split(|byte| *byte == b'"').next());
    let name = name.and_then(|name| std::str::from_utf8(name).ok());
    let name = name.map(|name| name.rsplit('#').next().unwrap_or(name));
    name.unwrap_or("Unknown")
}

#[cfg(test)]
mod tests;
