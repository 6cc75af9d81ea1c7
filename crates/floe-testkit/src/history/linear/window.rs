//! Reduces a history that no order explains to the operations that contradict each other.
//!
//! Every prefix of a linearizable history is linearizable, and so is every interval if nothing is assumed about the
//! state before it. So a violation has a shortest prefix that cannot be explained, and within that prefix a latest
//! start from which it cannot be explained from any state.

use super::search::{Outcome, Problem};
use super::{Event, Operation, Violation};
use crate::history::Stamp;

/// The smallest contradictory interval of a contradictory history.
pub(super) fn smallest<K: Clone, O: Operation>(
    key: &K,
    events: &[&Event<K, O>],
    configurations_max: u64,
) -> Violation<K, O> {
    let contradicts = |from, until, start| {
        let found = Problem::interval(events, from, until, start).solve(configurations_max);
        found.outcome == Outcome::Contradicted
    };
    let mut ends: Vec<Stamp> = events.iter().filter_map(|e| e.returned).collect();
    ends.sort_unstable();
    // The last end covers the whole history, which is contradictory, so the partition point exists.
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

/// The operations that overlap an interval. An operation of unknown outcome may take effect long after its
/// invocation; those invoked before the interval are left out, because they are many and do not help a reader.
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
