//! Numbers operations, decides which faults they get, and keeps the fault log.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use floe_store::{Error, Result};

use super::faults::{Faults, Lag};
use super::kind::{FaultKind, Operation, Request};
use super::random;
use crate::lock::lock;

/// Maximum number of faults in the log.
const LOG_LEN_MAX: usize = 100_000;

/// An injected fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The number of the operation.
    pub number: u64,
    /// The operation.
    pub operation: Operation,
    /// The kind of fault.
    pub kind: FaultKind,
    /// Details as `key=value`.
    pub detail: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, number, operation) = (self.kind, self.number, self.operation);
        write!(f, "{kind}: number={number} operation={operation}")?;
        if !self.detail.is_empty() {
            write!(f, " {}", self.detail)?;
        }
        Ok(())
    }
}

/// The settings and the state of a [`FaultEngine`](super::FaultEngine).
#[derive(Debug)]
pub(super) struct Control {
    faults: RwLock<Arc<Faults>>,
    paused: AtomicBool,
    scripts: Mutex<BTreeMap<Operation, VecDeque<FaultKind>>>,
    operations: AtomicU64,
    log: Mutex<VecDeque<Fault>>,
}

impl Control {
    pub(super) fn new(faults: Faults) -> Self {
        Self {
            faults: RwLock::new(Arc::new(faults)),
            paused: AtomicBool::new(false),
            scripts: Mutex::default(),
            operations: AtomicU64::new(0),
            log: Mutex::default(),
        }
    }

    pub(super) fn set_faults(&self, faults: Faults) {
        let mut current = self.faults.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(faults);
    }

    pub(super) fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::SeqCst);
    }

    pub(super) fn operations(&self) -> u64 {
        self.operations.load(Ordering::SeqCst)
    }

    pub(super) fn faults(&self) -> Vec<Fault> {
        lock(&self.log).iter().cloned().collect()
    }

    pub(super) fn script(&self, operation: Operation, kind: FaultKind) -> Result<()> {
        let faults = self.current();
        let configured = match kind {
            FaultKind::IndexLag => faults.index_lag.is_some(),
            FaultKind::StaleRead => faults.stale_lag.is_some(),
            _ => true,
        };
        if !kind.applies_to(operation) || !configured {
            return Err(Error::Validation(format!(
                "this fault does not apply to this operation, or its lag is not configured: kind={kind} operation={operation}"
            )));
        }
        let mut scripts = lock(&self.scripts);
        scripts.entry(operation).or_default().push_back(kind);
        Ok(())
    }

    /// Numbers an operation and decides how its faults are chosen.
    pub(super) fn begin<'n>(
        &self,
        operation: Operation,
        resources: impl IntoIterator<Item = &'n str>,
        index_name: Option<&str>,
    ) -> Attempt<'_> {
        let faults = self.current();
        let request = Request {
            number: self.operations.fetch_add(1, Ordering::SeqCst) + 1,
            operation,
            resources: resources.into_iter().map(str::to_owned).collect(),
            index_name: index_name.map(str::to_owned),
        };
        let scripted = lock(&self.scripts)
            .get_mut(&operation)
            .and_then(VecDeque::pop_front);
        let paused = self.paused.load(Ordering::SeqCst);
        let choice = match (scripted, faults.chosen_for(request.number)) {
            (Some(kind), _) => FaultChoice::Scripted(kind),
            _ if paused => FaultChoice::Disabled,
            (None, Some(kinds)) => FaultChoice::Fixed(kinds.clone()),
            _ if !faults.accepts(&request) => FaultChoice::Disabled,
            _ => FaultChoice::ByRate,
        };
        Attempt {
            control: self,
            faults,
            request,
            choice,
        }
    }

    fn current(&self) -> Arc<Faults> {
        let faults = self.faults.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&faults)
    }

    fn log(&self, fault: Fault) {
        let mut log = lock(&self.log);
        if log.len() == LOG_LEN_MAX {
            log.pop_front();
        }
        log.push_back(fault);
    }
}

/// How the faults of an operation are chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FaultChoice {
    /// By the rates.
    ByRate,
    /// Only this fault, with its maximum effect.
    Scripted(FaultKind),
    /// Only these faults; the seed decides their effect.
    Fixed(BTreeSet<FaultKind>),
    /// No faults.
    Disabled,
}

/// One numbered operation.
pub(super) struct Attempt<'c> {
    control: &'c Control,
    faults: Arc<Faults>,
    request: Request,
    choice: FaultChoice,
}

impl Attempt<'_> {
    pub(super) fn faults(&self) -> &Faults {
        &self.faults
    }

    pub(super) fn number(&self) -> u64 {
        self.request.number
    }

    pub(super) fn operation(&self) -> Operation {
        self.request.operation
    }

    /// Whether this operation gets this fault.
    pub(super) fn has_fault(&self, kind: FaultKind) -> bool {
        let is_chosen = match &self.choice {
            FaultChoice::ByRate => {
                random::is_hit(self.faults.rate_of(kind), self.random(kind, &[]))
            }
            FaultChoice::Scripted(scripted) => *scripted == kind,
            FaultChoice::Fixed(kinds) => kinds.contains(&kind),
            FaultChoice::Disabled => false,
        };
        is_chosen && kind.applies_to(self.request.operation)
    }

    /// Which changes this read does not see in an index yet. `None` if it sees all.
    pub(super) fn index_lags(&self) -> Option<Late> {
        match &self.choice {
            FaultChoice::ByRate => Some(Late::Some),
            FaultChoice::Fixed(kinds) if kinds.contains(&FaultKind::IndexLag) => Some(Late::Some),
            FaultChoice::Scripted(FaultKind::IndexLag) => Some(Late::All),
            FaultChoice::Scripted(_) | FaultChoice::Fixed(_) | FaultChoice::Disabled => None,
        }
    }

    /// How far this read lags behind the current state of an item, in units of the lag.
    pub(super) fn stale_units(&self, lag: Lag, key: u64) -> u64 {
        match &self.choice {
            FaultChoice::Scripted(_) => lag.units_max(),
            FaultChoice::ByRate | FaultChoice::Fixed(_) | FaultChoice::Disabled => {
                at_most(lag, self.random(FaultKind::StaleRead, &[key]))
            }
        }
    }

    /// A pseudorandom number for a decision about this operation.
    pub(super) fn random(&self, kind: FaultKind, parts: &[u64]) -> u64 {
        let mut all = vec![self.request.number, kind.salt()];
        all.extend_from_slice(parts);
        random::value(self.faults.seed(), &all)
    }

    /// Adds a fault to the log.
    pub(super) fn record_fault(&self, kind: FaultKind, detail: String) {
        self.control.log(Fault {
            number: self.request.number,
            operation: self.request.operation,
            kind,
            detail,
        });
    }
}

/// Which changes are delayed on their way into an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// The share given by the rate, each by its own lag.
    Some,
    /// All of them, by the maximum lag.
    All,
}

/// How long a change is delayed on its way into an index, in units of the lag.
pub(super) fn index_units(faults: &Faults, lag: Lag, late: Late, change: &[u64]) -> u64 {
    let roll = |part: u64| {
        let mut parts = vec![part, FaultKind::IndexLag.salt()];
        parts.extend_from_slice(change);
        random::value(faults.seed(), &parts)
    };
    match late {
        Late::All => lag.units_max(),
        Late::Some if random::is_hit(faults.rate_of(FaultKind::IndexLag), roll(0)) => {
            at_most(lag, roll(1))
        }
        Late::Some => 0,
    }
}

/// A lag from one unit to the maximum; 0 if the maximum is 0.
fn at_most(lag: Lag, roll: u64) -> u64 {
    roll.checked_rem(lag.units_max()).map_or(0, |rest| rest + 1)
}
