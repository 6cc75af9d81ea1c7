//! Telemetry of what the graph does in steps: deletions and rebuilds. Its other calls are transactions.

use tracing::Span;
use tracing::field::Empty;

use crate::telemetry::debug_span;

/// Around a deletion, or around what was left of some.
pub(crate) fn delete() -> Span {
    debug_span!(target: "floe::graph", "delete in steps", floe.graph.entities = Empty)
}

/// Around the rebuild of an index.
pub(crate) fn rebuild(index: &str) -> Span {
    debug_span!(
        target: "floe::graph",
        "rebuild",
        floe.graph.index = index,
        floe.graph.entities = Empty,
        floe.graph.changed = Empty,
    )
}
