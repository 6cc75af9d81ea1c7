//! Spans of wide changes: deletions and rebuilds. Other calls are transactions, which have their own spans.

use tracing::Span;
use tracing::field::Empty;

use crate::telemetry::debug_span;

/// The span of a deletion in steps, new or resumed.
pub(crate) fn delete() -> Span {
    debug_span!(target: "floe::graph", "delete in steps", floe.graph.entities = Empty)
}

/// The span of an index rebuild.
pub(crate) fn rebuild(index: &str) -> Span {
    debug_span!(
        target: "floe::graph",
        "rebuild",
        floe.graph.index = index,
        floe.graph.entities = Empty,
        floe.graph.changed = Empty,
    )
}
