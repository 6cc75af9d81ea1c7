//! Metrics for Prometheus: requests, outcomes, latency and consumed capacity.
//!
//! They are collected only after [`Service::with_metrics`](crate::Service::with_metrics); otherwise no request passes
//! through this module. Failures are counted by error name: conflicts are the requests with the outcome
//! `ConditionalCheckFailedException`, `TransactionCanceledException` or `TransactionConflictException`, throttles those
//! with `ThrottlingException` or `ProvisionedThroughputExceededException`.

mod engine;
pub(crate) mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use floe_store::Error;
use floe_store::capacity::{ConsumedCapacity, Units};
use floe_store::error::CancellationCode;

use crate::api_response::ApiResponse;
use crate::wire;

pub(crate) use engine::MeasuredEngine;

/// Upper bounds of the latency buckets, in microseconds.
const BUCKETS_MICROS: [u64; 14] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    2_500_000, 10_000_000,
];

/// The label of unknown operations, so that clients cannot create labels.
const OTHER: &str = "Other";

/// All metrics.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Metrics by operation, in the order of names. [`OTHER`] is the last.
    operations: Vec<(&'static str, Mutex<OperationMetrics>)>,
    /// Canceled transactions by reason. A transaction with several reasons counts once for each.
    canceled: Mutex<BTreeMap<&'static str, u64>>,
}

/// The metrics of one operation.
#[derive(Clone, Debug, Default)]
struct OperationMetrics {
    /// Requests by outcome: `ok`, or the name of the error.
    outcomes: BTreeMap<String, u64>,
    /// Requests by latency, each counted in the smallest bucket that fits.
    buckets: [u64; BUCKETS_MICROS.len()],
    /// All requests, including those slower than the last bucket.
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
        let metrics = names.into_iter().map(|name| (name, Mutex::default()));
        Self {
            operations: metrics.collect(),
            canceled: Mutex::default(),
        }
    }

    /// Records a call and its response.
    pub(crate) fn record(&self, target: &str, response: &ApiResponse, took: Duration) {
        let operation = target
            .split_once('.')
            .map_or("", |(_, operation)| operation);
        let Some(mut metrics) = self.metrics(operation) else {
            return;
        };
        match metrics.outcomes.get_mut(outcome(response)) {
            Some(count) => *count += 1,
            None => {
                let outcome = outcome(response).to_owned();
                metrics.outcomes.insert(outcome, 1);
            }
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_MICROS.iter().position(|end| micros <= *end);
        if let Some(count) = bucket.and_then(|at| metrics.buckets.get_mut(at)) {
            *count += 1;
        }
        metrics.count += 1;
        metrics.sum += took;
    }

    /// Records the capacity that an operation consumed.
    fn record_capacity<'c>(
        &self,
        operation: &str,
        consumed: impl IntoIterator<Item = &'c ConsumedCapacity>,
    ) {
        if let Some(mut metrics) = self.metrics(operation) {
            for cost in consumed {
                metrics.read += cost.read;
                metrics.write += cost.write;
            }
        }
    }

    /// Records the reasons if the error is a canceled transaction.
    fn record_cancellation(&self, error: &Error) {
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

    fn metrics(&self, operation: &str) -> Option<MutexGuard<'_, OperationMetrics>> {
        let mut known = self.operations.iter();
        let known = known.find(|(name, _)| [operation, OTHER].contains(name));
        known.map(|(_, metrics)| metrics.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the outcome of a call: `ok`, or the name of the error.
fn outcome(response: &ApiResponse) -> &str {
    if response.status == 200 {
        return "ok";
    }
    let name = response.body.strip_prefix(br#"{"__type":""#);
    let name = name.and_then(|rest| rest.split(|byte| *byte == b'"').next());
    let name = name.and_then(|name| std::str::from_utf8(name).ok());
    let name = name.map(|name| name.rsplit('#').next().unwrap_or(name));
    name.unwrap_or("Unknown")
}

#[cfg(test)]
mod tests;
