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

/// Around a decision, from the load to the append.
pub(crate) fn decide(table: &str, stream: &StreamName) -> Span {
    stream_span!("decide", table, stream, floe.stream.resyncs = Empty)
}

/// Around a load of a state.
pub(crate) fn load(table: &str, stream: &StreamName) -> Span {
    stream_span!("load", table, stream)
}

/// Around an append that is sent until its outcome is known.
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

/// Around a prune.
pub(crate) fn prune(table: &str, stream: &StreamName) -> Span {
    stream_span!("prune", table, stream, floe.stream.deleted = Empty)
}

/// Events are in their stream.
pub(crate) fn appended(table: &str, stream: &StreamName, events: usize) {
    metrics::appended(table, stream.category(), events as u64);
}

/// Somebody else has appended to the stream.
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

/// The answer to an append was lost, and the stream has told what became of it.
pub(crate) fn settled(table: &str, stream: &StreamName, is_applied: bool) {
    tracing::event!(
        target: "floe::events",
        tracing::Level::DEBUG,
        floe.stream.category = stream.category(),
        db.collection.name = table,
        floe.applied = is_applied,
        "a lost answer is settled"
    );
}

/// Notes an error in the span, and hands on what it was given.
pub(crate) fn noted<T>(span: &Span, result: Result<T>) -> Result<T> {
    result.inspect_err(|error| note(span, error))
}

/// Notes an error in the span.
pub(crate) fn note(span: &Span, error: &Error) {
    if !span.is_disabled() {
        span.record("error.type", tracing::field::debug(error.kind()));
    }
}
