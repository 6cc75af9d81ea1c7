//! Checks the isolation of transactions that append to lists and read them.
//!
//! Every append writes a value that no other append to the same key writes. A read then reveals which versions a
//! transaction saw and in which order all transactions wrote them. Most of the order in which a store must have run
//! the transactions can be inferred from the history alone, as in Elle (Kingsbury and Alvaro, 2020):
//!
//! - *ww*: one transaction appended directly after the other to the same key;
//! - *wr*: one transaction read a list that ends with the other's append;
//! - *rw*: one transaction read a list without the other's append, so it came before it;
//! - *real time*: one transaction ended before the other began.
//!
//! A cycle of these dependencies is a contradiction, and its edges determine the anomaly ([`AnomalyKind`]).
//! Anomalies that need no cycle (a value read from an aborted transaction, two reads that disagree about a list, a
//! duplicate value) are reported as well.
//!
//! Transactions of [unknown](Status::Unknown) outcome count as committed if another transaction read their appends,
//! and impose no constraint otherwise.
//!
//! ```
//! use floe_testkit::history::isolation::{self, AnomalyKind, Level, Recorder};
//!
//! let recorder = Recorder::new();
//! let mut writer = recorder.begin(1);
//! writer.append("x", 1);
//! writer.append("y", 2);
//! writer.committed();
//! let mut reader = recorder.begin(2);
//! reader.read("x", vec![1]);
//! reader.read("y", vec![]);
//! reader.committed();
//!
//! let report = isolation::check(&recorder.into_transactions(), Level::Serializable);
//! assert_eq!(report.kinds(), [AnomalyKind::GSingle], "the reader saw half of a transaction");
//! ```

mod cycles;
mod display;
mod explain;
mod graph;
mod index;
mod record;
mod versions;

use std::fmt::{self, Debug, Display};
use std::hash::Hash;

pub use record::{OpenTransaction, Recorder, Status, Step, Transaction};

use graph::Graph;
use versions::Versions;

/// The isolation level that a history must satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Some order of the transactions explains all reads.
    Serializable,
    /// As [`Serializable`](Self::Serializable), and the order agrees with real time: a transaction that ended
    /// before another began comes first.
    StrictSerializable,
}

/// A kind of anomaly. The first ones violate the weakest guarantees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum AnomalyKind {
    /// The history is not usable: two transactions appended the same value to the same key.
    DuplicateAppend,
    /// A read returned a value that no transaction appended to the key.
    UnknownValue,
    /// A list contains a value twice: an append was applied more than once.
    DuplicateValue,
    /// A transaction did not see its own append, or read a key twice with different results.
    Internal,
    /// Two reads of one key disagree about the order of its values.
    IncompatibleOrder,
    /// G1a: a read returned the append of an aborted transaction.
    G1a,
    /// G1b: a read returned some, but not all, appends of another transaction.
    G1b,
    /// G0, dirty write: a cycle of ww edges.
    G0,
    /// G1c, circular information flow: a cycle of ww and wr edges.
    G1c,
    /// Several committed transactions read the same version of a key and then appended to it.
    LostUpdate,
    /// G-single, read skew: a cycle with exactly one rw edge.
    GSingle,
    /// G2, for example write skew: a cycle with several rw edges.
    G2,
    /// A cycle with a real-time edge: the transactions are serializable, but not in the order in which they ran.
    RealTime,
}

impl Display for AnomalyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DuplicateAppend => "duplicate append",
            Self::UnknownValue => "unknown value",
            Self::DuplicateValue => "duplicate value",
            Self::Internal => "internal inconsistency",
            Self::IncompatibleOrder => "incompatible order",
            Self::G1a => "G1a aborted read",
            Self::G1b => "G1b intermediate read",
            Self::G0 => "G0 dirty write",
            Self::G1c => "G1c circular information flow",
            Self::LostUpdate => "lost update",
            Self::GSingle => "G-single read skew",
            Self::G2 => "G2 anti-dependency cycle",
            Self::RealTime => "real-time violation",
        })
    }
}

/// An observation that contradicts the isolation level.
#[derive(Clone, Debug)]
pub struct Anomaly {
    /// The kind of anomaly.
    pub kind: AnomalyKind,
    /// The transactions involved, as positions in the history; those of a cycle are in its order.
    pub transactions: Vec<usize>,
    /// The transactions and their dependencies as text of several lines.
    pub explanation: String,
}

impl Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        for line in self.explanation.lines() {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

/// The result of a check.
#[derive(Clone, Debug)]
pub struct Report {
    /// The number of transactions checked.
    pub transactions: usize,
    /// The number that committed, including those whose commit was inferred from reads.
    pub committed: usize,
    /// The number whose outcome remained unknown.
    pub unknown: usize,
    /// The number of inferred dependencies.
    pub dependencies: usize,
    /// The anomalies, one entry for each independent finding.
    pub anomalies: Vec<Anomaly>,
}

impl Report {
    /// Whether no anomaly was found.
    pub fn is_ok(&self) -> bool {
        self.anomalies.is_empty()
    }

    /// The kinds of anomalies found, without duplicates, in order.
    pub fn kinds(&self) -> Vec<AnomalyKind> {
        let mut kinds: Vec<_> = self.anomalies.iter().map(|a| a.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "transactions={} committed={} unknown={} dependencies={} anomalies={}",
            self.transactions,
            self.committed,
            self.unknown,
            self.dependencies,
            self.anomalies.len(),
        )?;
        for anomaly in &self.anomalies {
            write!(f, "\n{anomaly}")?;
        }
        Ok(())
    }
}

/// Checks a history.
pub fn check<K, V>(history: &[Transaction<K, V>], level: Level) -> Report
where
    K: Eq + Hash + Debug,
    V: Eq + Hash + Debug,
{
    let (versions, mut anomalies) = Versions::infer(history);
    let graph = Graph::build(&versions, level);
    anomalies.extend(versions.lost_updates());
    anomalies.extend(
        cycles::find(&graph, history.len())
            .into_iter()
            .map(|cycle| explain::cycle(&cycle, &versions)),
    );
    anomalies.sort_by_key(|a| a.kind);
    let committed = (0..history.len())
        .filter(|&t| versions.is_committed(t))
        .count();
    let unknown = (0..)
        .zip(history)
        .filter(|(at, t)| t.status == Status::Unknown && !versions.is_committed(*at))
        .count();
    Report {
        transactions: history.len(),
        committed,
        unknown,
        dependencies: graph.dependencies(),
        anomalies,
    }
}
