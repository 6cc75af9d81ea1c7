//! Describes cycles as text.

use std::fmt::Debug;
use std::hash::Hash;

use super::Anomaly;
use super::cycles::{Cycle, Link};
use super::display::Lines;
use super::graph::Dependency;
use super::versions::Versions;

/// Converts a cycle to an anomaly.
pub(super) fn cycle<K, V>(cycle: &Cycle, versions: &Versions<'_, K, V>) -> Anomaly
where
    K: Eq + Hash + Debug,
    V: Eq + Hash + Debug,
{
    let transactions: Vec<usize> = cycle.links.iter().map(|link| link.from).collect();
    let mut explanation = Lines(versions.history(), &transactions).to_string();
    for link in &cycle.links {
        explanation.push_str(&reason(link, versions));
        explanation.push('\n');
    }
    Anomaly {
        kind: cycle.kind,
        transactions,
        explanation,
    }
}

/// Describes why one transaction of a cycle comes before the next.
fn reason<K, V>(link: &Link, versions: &Versions<'_, K, V>) -> String
where
    K: Eq + Hash + Debug,
    V: Eq + Hash + Debug,
{
    let Link { from, to, .. } = link;
    let append = || {
        link.element
            .map_or_else(String::new, |id| versions.describe_append(id))
    };
    match link.dependency {
        Dependency::WriteWrite => {
            format!("T{from} before T{to} (ww): it appended before {}", append())
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
