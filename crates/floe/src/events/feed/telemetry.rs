//! Telemetry of the feed and its consumers. Parked streams are identified by category only, because their ids may be
//! confidential.

use std::time::Duration;

use tracing::field::Empty;
use tracing::{Level, Span};

use super::lag::Lag;
use super::partition::Partition;
use crate::error::Error;
use crate::events::StreamName;
use crate::telemetry::{debug_span, measure, metrics};

macro_rules! emit {
    ($level:ident, $($fields:tt)*) => {
        tracing::event!(target: "floe::feed", Level::$level, $($fields)*)
    };
}

/// Whether metrics are enabled, so that the lag of a group is worth its reads.
pub(crate) fn is_measured() -> bool {
    metrics::are_enabled()
}

/// The span of an indexer's step.
pub(crate) fn step(table: &str, indexer: &str) -> Span {
    debug_span!(
        target: "floe::feed",
        "index",
        db.collection.name = table,
        floe.feed.indexer = indexer,
        floe.feed.records = Empty,
        floe.feed.events = Empty,
        floe.feed.lag_seconds = Empty,
    )
}

/// Records the result of an indexer's step.
pub(crate) fn record_step(
    span: &Span,
    (table, indexer): (&str, &str),
    (records, events): (u64, u64),
    lag: Duration,
) {
    span.record("floe.feed.records", records)
        .record("floe.feed.events", events)
        .record("floe.feed.lag_seconds", lag.as_secs_f64());
    measure!(
        monotonic_counter.floe.indexer.records = records,
        monotonic_counter.floe.indexer.events = events,
        gauge.floe.indexer.lag = lag.as_secs_f64(),
        db.collection.name = table,
        floe.feed.indexer = indexer,
    );
}

/// Reports a failed step of an indexer, which is retried.
pub(crate) fn step_failed(table: &str, error: &Error, pause: Duration) {
    emit!(
        WARN,
        db.collection.name = table,
        "error.type" = debug(error.kind()),
        floe.pause_seconds = pause.as_secs_f64(),
        "the indexer failed; it retries"
    );
}

/// The span of a read of the feed.
pub(crate) fn read(partition: Partition, epoch: u32) -> Span {
    debug_span!(
        target: "floe::feed",
        "read",
        floe.feed.partition = partition.number(),
        floe.feed.epoch = epoch,
        floe.feed.batches = Empty,
    )
}

/// The span of a handler call.
pub(crate) fn handle(
    group: &str,
    partition: Partition,
    stream: &StreamName,
    events: usize,
) -> Span {
    debug_span!(
        target: "floe::feed",
        "handle",
        floe.feed.group = group,
        floe.feed.partition = partition.number(),
        floe.stream.category = stream.category(),
        floe.feed.events = events,
    )
}

/// Records the lag of a group in a partition.
pub(crate) fn lag(group: &str, partition: Partition, lag: &Lag) {
    measure!(
        gauge.floe.feed.lag_events = lag.events,
        gauge.floe.feed.lag = lag.age.as_secs_f64(),
        gauge.floe.feed.parked_events = lag.parked,
        floe.feed.group = group,
        floe.feed.partition = partition.number(),
    );
}

/// Reports that a stream was parked.
pub(crate) fn parked(group: &str, partition: Partition, stream: &StreamName) {
    emit!(
        WARN,
        floe.feed.group = group,
        floe.feed.partition = partition.number(),
        floe.stream.category = stream.category(),
        "a stream was parked"
    );
    measure!(
        monotonic_counter.floe.feed.parked_streams = 1_u64,
        floe.feed.group = group,
        floe.feed.partition = partition.number(),
    );
}

/// Reports a failure of the store in a consumer.
pub(crate) fn failed(group: &str, error: &Error) {
    emit!(
        WARN,
        floe.feed.group = group,
        "error.type" = debug(error.kind()),
        "the consumer failed; it retries"
    );
}
