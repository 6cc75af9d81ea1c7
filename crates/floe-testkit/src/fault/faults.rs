//! Which faults strike, and how often.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::kind::{FaultKind, Operation, Request};

/// How far behind an old answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lag {
    /// Up to so many operations of the [`FaultEngine`](super::FaultEngine).
    Operations(u64),
    /// Up to so much time on the engine's clock. Where a test owns the clock, nothing catches up until
    /// the test moves it.
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

/// Which requests a filter lets faults strike.
type Filter = Arc<dyn Fn(&Request) -> bool + Send + Sync>;

/// A choice of faults and their rates: of all operations that a fault can strike, so many in one.
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
#[must_use = "faults strike only in an engine"]
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
    /// No faults yet; those to come follow from the seed.
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

    /// Refuses requests because there are too many: any operation, before anything is applied.
    pub fn throttle(self, rate: f64) -> Self {
        self.rate(FaultKind::Throttle, rate)
    }

    /// Refuses requests because another transaction holds an item: transactions and single writes.
    pub fn conflict(self, rate: f64) -> Self {
        self.rate(FaultKind::Conflict, rate)
    }

    /// Loses requests before they are applied: any operation.
    pub fn lost_before(self, rate: f64) -> Self {
        self.rate(FaultKind::LostBefore, rate)
    }

    /// Loses answers after the request was applied: any operation.
    pub fn lost_after(self, rate: f64) -> Self {
        self.rate(FaultKind::LostAfter, rate)
    }

    /// Does a part of a batch only: batches of two or more.
    pub fn partial_batches(self, rate: f64) -> Self {
        self.rate(FaultKind::PartialBatch, rate)
    }

    /// Delays changes on their way into global indexes: so many in one, each by up to the lag.
    pub fn index_lag(mut self, rate: f64, lag: Lag) -> Self {
        self.index_lag = Some(lag);
        self.rate(FaultKind::IndexLag, rate)
    }

    /// Answers eventual reads of tables and local indexes from a replica that is behind: so many in one,
    /// each item by up to the lag.
    pub fn stale_reads(mut self, rate: f64, lag: Lag) -> Self {
        self.stale_lag = Some(lag);
        self.rate(FaultKind::StaleRead, rate)
    }

    /// Never answers an eventual read with a state of an item older than one that an eventual read has
    /// seen. Items on a page count as seen whether or not the page shows them.
    pub fn monotonic_reads(mut self) -> Self {
        self.monotonic = true;
        self
    }

    /// Splits shards when a stream is described or read.
    pub fn shard_splits(self, rate: f64) -> Self {
        self.rate(FaultKind::ShardSplit, rate)
    }

    /// Goes back in a shard when it is read: records that were handed out come once more, in their order.
    pub fn repeated_records(self, rate: f64) -> Self {
        self.rate(FaultKind::RepeatedRecords, rate)
    }

    /// Hands out a few records of a page at most, or none: the others come with later pages.
    pub fn late_records(self, rate: f64) -> Self {
        self.rate(FaultKind::LateRecords, rate)
    }

    /// The operation of this number meets this fault, and no other that is not named for it in the same
    /// way, whatever the rates. How hard it strikes follows from the seed; so with the same seed and lags,
    /// the faults of a [log](super::FaultEngine::faults) repeat themselves. (How late a change comes into
    /// an index is up to the write, so index lag goes by its rate in any case.) A fault that cannot strike
    /// the operation does nothing.
    pub fn at(mut self, number: u64, kind: FaultKind) -> Self {
        self.at.entry(number).or_default().insert(kind);
        self
    }

    /// Strikes only requests for which this holds. Several filters must all hold.
    pub fn only(mut self, filter: impl Fn(&Request) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(match self.filter {
            Some(other) => Arc::new(move |request| other(request) && filter(request)),
            None => Arc::new(filter),
        });
        self
    }

    /// Strikes only these operations.
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

    pub(super) fn fixed(&self, number: u64) -> Option<&BTreeSet<FaultKind>> {
        self.at.get(&number)
    }

    pub(super) fn lets(&self, request: &Request) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter(request))
    }

    /// Whether old answers may be wanted, so that the past must be kept.
    pub(super) const fn keeps_past(&self) -> bool {
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
