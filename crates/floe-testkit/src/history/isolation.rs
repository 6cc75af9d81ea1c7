//! Isolation of transactions, judged from lists that they append to and read.
//!
//! Every append writes a value that no other append to the same key writes. A read then tells not only
//! which versions a transaction saw but in which order all transactions wrote them, so most of the order
//! in which a store must have run the transactions can be inferred from the history alone, in the manner
//! of Elle (Kingsbury and Alvaro, 2020):
//!
//! - *ww*: one transaction appended right after the other to the same key;
//! - *wr*: one read a list that ends with the other's append;
//! - *rw*: one read a list that lacks the other's append, so it came before it;
//! - *real time*: one had ended before the other began.
//!
//! A cycle of these is a contradiction, and its edges name the anomaly ([`AnomalyKind`]). What can be seen
//! without a cycle (a value read from an aborted transaction, a list that two readers disagree about, a
//! value that stands in a list twice) is told as well.
//!
//! Transactions of [unknown](Status::Unknown) outcome count as committed if someone saw what they
//! appended, and constrain nothing if nobody did.
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
//! assert_eq!(report.kinds(), [AnomalyKind::GSingle], "half a transaction was seen");
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

/// What a history is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// There is an order of the transactions that explains all reads.
    Serializable,
    /// And in this order no transaction comes before one that had ended when it began.
    StrictSerializable,
}

/// What is wrong with a history. From the first to the last, a weaker promise is broken by a stranger store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum AnomalyKind {
    /// The history itself is of no use: two transactions appended the same value to the same key.
    DuplicateAppend,
    /// A read returned a value that nobody appended to the key.
    UnknownValue,
    /// A value stands in a list twice: an append was applied more than once.
    DuplicateValue,
    /// A transaction did not see its own append, or two of its reads of one key differ.
    Internal,
    /// Two reads of one key disagree about the order of its values.
    IncompatibleOrder,
    /// G1a: a read returned the append of an aborted transaction.
    G1a,
    /// G1b: a read ended within the appends of another transaction.
    G1b,
    /// G0, dirty write: a cycle of ww edges.
    G0,
    /// G1c, circular information flow: a cycle of ww and wr edges.
    G1c,
    /// Several committed transactions read the same version of a key and then appended to it.
    LostUpdate,
    /// G-single, read skew: a cycle with exactly one rw edge.
    GSingle,
    /// G2, write skew among others: a cycle with several rw edges.
    G2,
    /// A cycle that needs a real-time edge: the transactions can be ordered, but not as they happened.
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

/// Something that no correct store could have answered.
#[derive(Clone, Debug)]
pub struct Anomaly {
    /// What kind of thing.
    pub kind: AnomalyKind,
    /// The transactions that it is about, as positions in the history; a cycle is told in its order.
    pub transactions: Vec<usize>,
    /// The transactions and how they depend on each other, in words and several lines.
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

/// What a check found.
#[derive(Clone, Debug)]
pub struct Report {
    /// How many transactions were judged.
    pub transactions: usize,
    /// How many of them committed, those included of which it was learnt from reads.
    pub committed: usize,
    /// How many have an outcome that stayed unknown.
    pub unknown: usize,
    /// How many dependencies were inferred.
    pub dependencies: usize,
    /// What is wrong, one entry for each independent finding.
    pub anomalies: Vec<Anomaly>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_ok(&self) -> bool {
        self.anomalies.is_empty()
    }

    /// The kinds of anomalies found, each once, in their order.
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

/// Judges a history.
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
