//! Numbers operations, decides which faults strike them, and keeps the log of those that did.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use floe_store::{Error, Result};

use super::dice;
use super::faults::{Faults, Lag};
use super::kind::{FaultKind, Operation, Request};
use crate::lock::lock;

/// How many faults the log keeps.
const LOG_LEN_MAX: usize = 100_000;

/// A fault that struck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The number of the operation.
    pub number: u64,
    /// The operation.
    pub operation: Operation,
    /// What happened to it.
    pub kind: FaultKind,
    /// More about it, as `key=value`.
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

/// What a [`FaultEngine`](super::FaultEngine) decides by.
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
        if !kind.strikes(operation) || !configured {
            return Err(Error::Validation(format!(
                "no such fault can strike such an operation: kind={kind} operation={operation}"
            )));
        }
        let mut scripts = lock(&self.scripts);
        scripts.entry(operation).or_default().push_back(kind);
        Ok(())
    }

    /// Gives an operation its number and settles what can strike it.
    pub(super) fn arrive<'n>(
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
        let fate = match (scripted, faults.fixed(request.number)) {
            (Some(kind), _) => Fate::Scripted(kind),
            _ if paused => Fate::Spared,
            (None, Some(kinds)) => Fate::Fixed(kinds.clone()),
            _ if !faults.lets(&request) => Fate::Spared,
            _ => Fate::Chance,
        };
        Attempt {
            control: self,
            faults,
            request,
            fate,
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

/// How it is decided what strikes an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// By the rates.
    Chance,
    /// This strikes, as hard as it can, and nothing else does.
    Scripted(FaultKind),
    /// These strike, as the seed says, and nothing else does.
    Fixed(BTreeSet<FaultKind>),
    /// Nothing does.
    Spared,
}

/// A numbered operation on its way.
pub(super) struct Attempt<'c> {
    control: &'c Control,
    faults: Arc<Faults>,
    request: Request,
    fate: Fate,
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

    /// Whether a fault strikes.
    pub(super) fn meets(&self, kind: FaultKind) -> bool {
        let is_met = match &self.fate {
            Fate::Chance => dice::comes_true(self.faults.rate_of(kind), self.roll(kind, &[])),
            Fate::Scripted(scripted) => *scripted == kind,
            Fate::Fixed(kinds) => kinds.contains(&kind),
            Fate::Spared => false,
        };
        is_met && kind.strikes(self.request.operation)
    }

    /// Which changes come late into an index for this read.
    pub(super) fn index_lags(&self) -> Option<Late> {
        match &self.fate {
            Fate::Chance => Some(Late::Some),
            Fate::Fixed(kinds) if kinds.contains(&FaultKind::IndexLag) => Some(Late::Some),
            Fate::Scripted(FaultKind::IndexLag) => Some(Late::All),
            Fate::Scripted(_) | Fate::Fixed(_) | Fate::Spared => None,
        }
    }

    /// How far behind an item is for this read.
    pub(super) fn stale_units(&self, lag: Lag, key: u64) -> u64 {
        match &self.fate {
            Fate::Scripted(_) => lag.units_max(),
            Fate::Chance | Fate::Fixed(_) | Fate::Spared => {
                at_most(lag, self.roll(FaultKind::StaleRead, &[key]))
            }
        }
    }

    /// A number for a decision about this operation.
    pub(super) fn roll(&self, kind: FaultKind, parts: &[u64]) -> u64 {
        let mut all = vec![self.request.number, kind.salt()];
        all.extend_from_slice(parts);
        dice::roll(self.faults.seed(), &all)
    }

    /// Writes into the log that a fault struck.
    pub(super) fn struck(&self, kind: FaultKind, detail: String) {
        self.control.log(Fault {
            number: self.request.number,
            operation: self.request.operation,
            kind,
            detail,
        });
    }
}

/// Which changes come late into an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// So many in one as the rate says, each by a lag of its own.
    Some,
    /// All, as late as allowed.
    All,
}

/// How late a change, made by the operation of this number, comes into an index.
pub(super) fn index_units(faults: &Faults, lag: Lag, late: Late, change: &[u64]) -> u64 {
    let roll = |part: u64| {
        let mut parts = vec![part, FaultKind::IndexLag.salt()];
        parts.extend_from_slice(change);
        dice::roll(faults.seed(), &parts)
    };
    match late {
        Late::All => lag.units_max(),
        Late::Some if dice::comes_true(faults.rate_of(FaultKind::IndexLag), roll(0)) => {
            at_most(lag, roll(1))
        }
        Late::Some => 0,
    }
}

/// A lag of at least one unit, if any is allowed.
fn at_most(lag: Lag, roll: u64) -> u64 {
    roll.checked_rem(lag.units_max()).map_or(0, |rest| rest + 1)
}
