//! Cuts a history that no order explains down to the operations that contradict each other.
//!
//! What holds of a linearizable history holds of each of its beginnings, and of each of its stretches
//! when nothing is assumed about the state before. So there is a shortest beginning that cannot be
//! explained, and within it a latest moment from which on it cannot be explained from any state.

use super::search::{Outcome, Problem};
use super::{Event, Operation, Violation};
use crate::history::Stamp;

/// The smallest stretch of a contradictory history that is contradictory in itself.
pub(super) fn smallest<K: Clone, O: Operation>(
    key: &K,
    events: &[&Event<K, O>],
    configurations_max: u64,
) -> Violation<K, O> {
    let contradicts = |from, until, start| {
        let found = Problem::stretch(events, from, until, start).solve(configurations_max);
        found.outcome == Outcome::Contradicted
    };
    let mut ends: Vec<Stamp> = events.iter().filter_map(|e| e.returned).collect();
    ends.sort_unstable();
    // The last end is contradictory: it is the whole history. So the one found is, too.
    let shortest = ends.partition_point(|&end| !contradicts(0, end, O::initial()));
    let until = ends.get(shortest).copied().unwrap_or(Stamp::MAX);

    let starts: Vec<Stamp> = events
        .iter()
        .map(|e| e.invoked)
        .filter(|&invoked| invoked <= until)
        .collect();
    let contradictory = starts.partition_point(|&from| contradicts(from, until, O::unknown()));
    let from = contradictory
        .checked_sub(1)
        .and_then(|last| starts.get(last).copied());
    Violation {
        key: key.clone(),
        from_any_state: from.is_some(),
        window: overlapping(events, from.unwrap_or(0), until),
    }
}

/// The operations that were under way at some moment of the stretch. One of unknown outcome may have its
/// effect long after its invocation; those from before the stretch are left out, being many and of no use
/// to a reader.
fn overlapping<K: Clone, O: Operation>(
    events: &[&Event<K, O>],
    from: Stamp,
    until: Stamp,
) -> Vec<Event<K, O>> {
    events
        .iter()
        .filter(|e| e.invoked <= until && e.returned.unwrap_or(e.invoked) >= from)
        .map(|&e| e.clone())
        .collect()
}
