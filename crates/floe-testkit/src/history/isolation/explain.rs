//! Puts transactions, lists and cycles into words.

use std::fmt::{self, Debug, Display};
use std::hash::Hash;

use super::cycles::{Cycle, Link};
use super::graph::Dependency;
use super::versions::Versions;
use super::{Anomaly, Status, Step, Transaction};

/// How many values of a list are shown; of a longer one, the last.
const VALUES_SHOWN_MAX: usize = 6;

/// Transactions of a history, one line each.
pub(super) struct Told<'a, K, V>(pub(super) &'a [Transaction<K, V>], pub(super) &'a [usize]);

impl<K: Debug, V: Debug> Display for Told<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &id in self.1 {
            if let Some(transaction) = self.0.get(id) {
                writeln!(f, "T{id}: {}", OneLine(transaction))?;
            }
        }
        Ok(())
    }
}

struct OneLine<'a, K, V>(&'a Transaction<K, V>);

impl<K: Debug, V: Debug> Display for OneLine<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Transaction {
            client,
            steps,
            status,
            invoked,
            returned,
        } = self.0;
        write!(f, "client {client} [{invoked}..")?;
        match returned {
            Some(returned) => write!(f, "{returned}] ")?,
            None => f.write_str("unknown] ")?,
        }
        f.write_str(match status {
            Status::Committed => "committed",
            Status::Aborted => "aborted",
            Status::Unknown => "unknown",
        })?;
        for step in steps {
            match step {
                Step::Append { key, value } => write!(f, ", append {value:?} to {key:?}")?,
                Step::Read { key, values } => {
                    write!(f, ", read {key:?} = {}", Listed(values.iter().collect()))?;
                }
            }
        }
        Ok(())
    }
}

/// The values of a list, the first ones left out if there are many.
pub(super) struct Listed<'a, V>(pub(super) Vec<&'a V>);

impl<V: Debug> Display for Listed<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = self.0.len().saturating_sub(VALUES_SHOWN_MAX);
        f.write_str("[")?;
        if hidden > 0 {
            write!(f, "({hidden} more)")?;
        }
        for (n, value) in self.0.iter().skip(hidden).enumerate() {
            let space = if n + hidden == 0 { "" } else { " " };
            write!(f, "{space}{value:?}")?;
        }
        f.write_str("]")
    }
}

/// A cycle as an anomaly.
pub(super) fn cycle<K, V>(cycle: &Cycle, versions: &Versions<'_, K, V>) -> Anomaly
where
    K: Eq + Hash + Debug,
    V: Eq + Hash + Debug,
{
    let transactions: Vec<usize> = cycle.links.iter().map(|link| link.from).collect();
    let mut explanation = Told(versions.history(), &transactions).to_string();
    for link in &cycle.links {
        explanation.push_str(&told(link, versions));
        explanation.push('\n');
    }
    Anomaly {
        kind: cycle.kind,
        transactions,
        explanation,
    }
}

fn told<K, V>(link: &Link, versions: &Versions<'_, K, V>) -> String
where
    K: Eq + Hash + Debug,
    V: Eq + Hash + Debug,
{
    let Link { from, to, .. } = link;
    let append = || {
        link.element
            .map_or_else(String::new, |id| versions.appended(id))
    };
    match link.dependency {
        Dependency::WriteWrite => {
            format!(
                "T{from} before T{to} (ww): it had appended before {}",
                append()
            )
        }
        Dependency::WriteRead => format!("T{from} before T{to} (wr): T{to} read {}", append()),
        Dependency::ReadWrite => {
            format!("T{from} before T{to} (rw): its read lacks {}", append())
        }
        Dependency::RealTime => {
            let stamp = |id: usize| versions.history().get(id);
            let ended = stamp(*from).and_then(|t| t.returned).unwrap_or_default();
            let began = stamp(*to).map(|t| t.invoked).unwrap_or_default();
            format!("T{from} before T{to} (real time): it ended at {ended}, T{to} began at {began}")
        }
    }
}
