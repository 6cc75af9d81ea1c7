//! Telemetry of the feed and its consumers. A parked stream is named by its category, since its id is a key.

use std::time::Duration;

use tracing::field::Empty;
use tracing::{Level, Span};

use super::lag::Lag;
use super::partition::Partition;
use crate::error::Error;
use crate::events::StreamName;
use crate::telemetry::{debug_span, measure, metrics};

macro_rules! tell {
    ($level:ident, $($fields:tt)*) => {
        tracing::event!(target: "floe::feed", Level::$level, $($fields)*)
    };
}

/// Whether it is worth to measure how far a group is behind.
pub(crate) fn is_measured() -> bool {
    metrics::are_heard()
}

/// Around a step of an indexer.
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

/// What a step of an indexer has done.
pub(crate) fn stepped(
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

/// A step of an indexer has failed, and is tried again.
pub(crate) fn step_failed(table: &str, error: &Error, pause: Duration) {
    tell!(
        WARN,
        db.collection.name = table,
        "error.type" = debug(error.kind()),
        floe.pause_seconds = pause.as_secs_f64(),
        "the indexer could not go on"
    );
}

/// Around a read of the feed.
pub(crate) fn read(partition: Partition, epoch: u32) -> Span {
    debug_span!(
        target: "floe::feed",
        "read",
        floe.feed.partition = partition.number(),
        floe.feed.epoch = epoch,
        floe.feed.batches = Empty,
    )
}

/// Around a handler.
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

/// How far a group is behind in a partition.
pub(crate) fn lag(group: &str, partition: Partition, lag: &Lag) {
    measure!(
        gauge.floe.feed.lag_events = lag.events,
        gauge.floe.feed.lag = lag.age.as_secs_f64(),
        gauge.floe.feed.parked_events = lag.parked,
        floe.feed.group = group,
        floe.feed.partition = partition.number(),
    );
}

/// A stream was parked.
pub(crate) fn parked(group: &str, partition: Partition, stream: &StreamName) {
    tell!(
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

/// The store could not answer a consumer.
pub(crate) fn failed(group: &str, error: &Error) {
    tell!(
        WARN,
        floe.feed.group = group,
        "error.type" = debug(error.kind()),
        "the consumer could not go on"
    );
}
