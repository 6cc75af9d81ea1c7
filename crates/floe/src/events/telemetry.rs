//! Telemetry of streams: loads, decisions, appends and prunes. A stream is named by its category, since its id is a key.

use tracing::Span;
use tracing::field::Empty;

use super::StreamName;
use crate::error::{Error, Result};
use crate::telemetry::{debug_span, metrics};

macro_rules! stream_span {
    ($name:literal, $table:expr, $stream:expr $(, $($fields:tt)*)?) => {
        debug_span!(
            target: "floe::events",
            $name,
            floe.stream.category = $stream.category(),
            db.collection.name = $table,
            "error.type" = Empty,
            $($($fields)*)?
        )
    };
}

/// Creates the span of a decision, from the load to the append.
pub(crate) fn decide(table: &str, stream: &StreamName) -> Span {
    stream_span!("decide", table, stream, floe.stream.resyncs = Empty)
}

/// Creates the span of a load of a state.
pub(crate) fn load(table: &str, stream: &StreamName) -> Span {
    stream_span!("load", table, stream)
}

/// Creates the span of an append that is sent until its outcome is known.
pub(crate) fn append(table: &str, stream: &StreamName, events: usize, calves: bool) -> Span {
    stream_span!(
        "append",
        table,
        stream,
        floe.stream.events = events,
        floe.stream.calves = calves,
        floe.stream.outcome = Empty,
    )
}

/// Creates the span of a prune.
pub(crate) fn prune(table: &str, stream: &StreamName) -> Span {
    stream_span!("prune", table, stream, floe.stream.deleted = Empty)
}

/// Counts appended events.
pub(crate) fn appended(table: &str, stream: &StreamName, events: usize) {
    metrics::appended(table, stream.category(), events as u64);
}

/// Records that another writer appended to the stream.
pub(crate) fn conflict(table: &str, stream: &StreamName) {
    tracing::event!(
        target: "floe::events",
        tracing::Level::DEBUG,
        floe.stream.category = stream.category(),
        db.collection.name = table,
        "lost a race"
    );
    metrics::conflict(Some(table), Some(stream.category()), None);
}

/// Records the outcome of an append whose response was lost, found by reading the stream.
pub(crate) fn reconciled(table: &str, stream: &StreamName, is_applied: bool) {
    tracing::event!(
        target: "floe::events",
        tracing::Level::DEBUG,
        floe.stream.category = stream.category(),
        db.collection.name = table,
        floe.applied = is_applied,
        "a lost answer is settled"
    );
}

/// Records an error in the span. Returns the result unchanged.
pub(crate) fn record_result<T>(span: &Span, result: Result<T>) -> Result<T> {
    result.inspect_err(|error| record_error(span, error))
}

/// Records an error in the span.
pub(crate) fn record_error(span: &Span, error: &Error) {
    if !span.is_disabled() {
        span.record("error.type", tracing::field::debug(error.kind()));
    }
}
