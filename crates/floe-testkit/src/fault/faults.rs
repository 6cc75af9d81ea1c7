//! The configuration of faults and their rates.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::kind::{FaultKind, Operation, Request};

/// How far a stale result may lag behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lag {
    /// Up to this number of operations of the [`FaultEngine`](super::FaultEngine).
    Operations(u64),
    /// Up to this duration on the engine's clock. With a manual clock, the lag ends only when the test advances the
    /// clock.
    Time(Duration),
}

impl Lag {
    /// The largest lag, in operations or milliseconds.
    pub(super) fn units_max(self) -> u64 {
        match self {
            Self::Operations(operations) => operations,
            Self::Time(time) => u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Selects the requests that may get faults.
type Filter = Arc<dyn Fn(&Request) -> bool + Send + Sync>;

/// A set of faults with their rates: the share of the applicable operations that get the fault, from 0 to 1.
///
/// ```
/// use floe_testkit::fault::{Faults, Lag, Operation};
///
/// let faults = Faults::seeded(42)
///     .throttle(0.05)
///     .lost_after(0.1)
///     .index_lag(0.5, Lag::Operations(20))
///     .only(|request| request.operation != Operation::Scan);
/// assert_eq!(faults.seed(), 42);
/// ```
#[derive(Clone)]
#[must_use = "faults have no effect until they are passed to an engine"]
pub struct Faults {
    seed: u64,
    rates: BTreeMap<FaultKind, f64>,
    pub(super) index_lag: Option<Lag>,
    pub(super) stale_lag: Option<Lag>,
    pub(super) monotonic: bool,
    at: BTreeMap<u64, BTreeSet<FaultKind>>,
    filter: Option<Filter>,
}

impl Faults {
    /// No faults yet; faults added later use this seed.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed,
            rates: BTreeMap::new(),
            index_lag: None,
            stale_lag: None,
            monotonic: false,
            at: BTreeMap::new(),
            filter: None,
        }
    }

    /// Throttles requests: any operation, before anything is applied.
    pub fn throttle(self, rate: f64) -> Self {
        self.rate(FaultKind::Throttle, rate)
    }

    /// Rejects requests because another transaction holds an item: transactions and single writes.
    pub fn conflict(self, rate: f64) -> Self {
        self.rate(FaultKind::Conflict, rate)
    }

    /// Loses requests before they are applied: any operation.
    pub fn lost_before(self, rate: f64) -> Self {
        self.rate(FaultKind::LostBefore, rate)
    }

    /// Loses responses after the request was applied: any operation.
    pub fn lost_after(self, rate: f64) -> Self {
        self.rate(FaultKind::LostAfter, rate)
    }

    /// Processes only a part of a batch of two or more.
    pub fn partial_batches(self, rate: f64) -> Self {
        self.rate(FaultKind::PartialBatch, rate)
    }

    /// Delays changes on their way into global indexes: this share of the changes, each by up to the lag.
    pub fn index_lag(mut self, rate: f64, lag: Lag) -> Self {
        self.index_lag = Some(lag);
        self.rate(FaultKind::IndexLag, rate)
    }

    /// Serves eventually consistent reads of tables and local indexes from a replica that lags: this share of the
    /// reads, each item by up to the lag.
    pub fn stale_reads(mut self, rate: f64, lag: Lag) -> Self {
        self.stale_lag = Some(lag);
        self.rate(FaultKind::StaleRead, rate)
    }

    /// Eventually consistent reads never go back to an older state of an item than an earlier one returned. All
    /// items that a page covers count as returned, also those that it filters out.
    pub fn monotonic_reads(mut self) -> Self {
        self.monotonic = true;
        self
    }

    /// Splits shards when a stream is described or read.
    pub fn shard_splits(self, rate: f64) -> Self {
        self.rate(FaultKind::ShardSplit, rate)
    }

    /// Repeats records: reading a shard continues at an earlier position, in the same order.
    pub fn repeated_records(self, rate: f64) -> Self {
        self.rate(FaultKind::RepeatedRecords, rate)
    }

    /// Delays records: a page has only a few records or none, the rest follows with later pages.
    pub fn late_records(self, rate: f64) -> Self {
        self.rate(FaultKind::LateRecords, rate)
    }

    /// Injects this fault into the operation with this number, whatever the rates; rates no longer apply to that
    /// operation. Can be called several times for one operation. The seed decides the effect, so the same seed and
    /// lags repeat the faults of a [log](super::FaultEngine::faults). (Index lag always follows its rate, because
    /// the write determines the delay.) A fault that does not apply to the operation has no effect.
    pub fn at(mut self, number: u64, kind: FaultKind) -> Self {
        self.at.entry(number).or_default().insert(kind);
        self
    }

    /// Injects faults only into requests for which `filter` returns `true`. Several filters are combined with
    /// "and".
    pub fn only(mut self, filter: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(match self.filter {
            Some(other) => Arc::new(move |request| other(request) && filter(request)),
            None => Arc::new(filter),
        });
        self
    }

    /// Injects faults only into these operations.
    pub fn only_on(self, operations: impl IntoIterator<Item = Operation>) -> Self {
        let operations: Vec<Operation> = operations.into_iter().collect();
        self.only(move |request| operations.contains(&request.operation))
    }

    /// The seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    fn rate(mut self, kind: FaultKind, rate: f64) -> Self {
        self.rates.insert(kind, rate);
        self
    }

    pub(super) fn rate_of(&self, kind: FaultKind) -> f64 {
        self.rates.get(&kind).copied().unwrap_or(0.0)
    }

    pub(super) fn chosen_for(&self, number: u64) -> Option<&BTreeSet<FaultKind>> {
        self.at.get(&number)
    }

    pub(super) fn accepts(&self, request: &Request) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter(request))
    }

    /// Whether stale results are configured, so that earlier versions of items must be kept.
    pub(super) const fn keeps_versions(&self) -> bool {
        self.index_lag.is_some() || self.stale_lag.is_some()
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults")
            .field("seed", &self.seed)
            .field("rates", &self.rates)
            .field("index_lag", &self.index_lag)
            .field("stale_lag", &self.stale_lag)
            .field("monotonic", &self.monotonic)
            .field("at", &self.at)
            .field("filtered", &self.filter.is_some())
            .finish()
    }
}
