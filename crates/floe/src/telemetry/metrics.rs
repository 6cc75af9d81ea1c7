//! Measurements: events of the target `floe::metrics`, whose fields the metrics layer of `tracing-opentelemetry` reads.
//!
//! A field `monotonic_counter.NAME`, `histogram.NAME` or `gauge.NAME` is a measurement, and the other fields are its attributes.
//! Fields without a value are left out. All measurements of a name have one type of number.

use std::time::Duration;

use floe_store::Error as StoreError;
use floe_store::capacity::ConsumedCapacity;
use tracing::callsite::{DefaultCallsite, Identifier};
use tracing::field::FieldSet;
use tracing::level_filters::{LevelFilter, STATIC_MAX_LEVEL};
use tracing::metadata::Kind as MetadataKind;
use tracing::{Level, Metadata};

use super::engine::Kind;
use crate::changes::consumer::Progress;
use crate::events::feed::Lag;

/// Where measurements are told.
const TARGET: &str = "floe::metrics";

static HEARD: DefaultCallsite = DefaultCallsite::new(&HEARD_AS);

/// What subscribers are asked about: an event as those of requests are.
static HEARD_AS: Metadata<'static> = Metadata::new(
    "measurement",
    TARGET,
    Level::TRACE,
    None,
    None,
    None,
    FieldSet::new(
        &["histogram.db.client.operation.duration"],
        Identifier(&HEARD),
    ),
    MetadataKind::EVENT,
);

/// Whether anybody may listen to measurements.
///
/// Not by `tracing::enabled!`, which asks the filters of layers without telling them of an event after: they would keep
/// their answer for the next one.
pub(super) fn are_heard() -> bool {
    Level::TRACE <= STATIC_MAX_LEVEL
        && Level::TRACE <= LevelFilter::current()
        && !HEARD.interest().is_never()
}

macro_rules! measure {
    ($($fields:tt)*) => {
        tracing::event!(target: TARGET, Level::TRACE, $($fields)*)
    };
}

/// How long a request took, for who made it or for who answered it.
pub(super) fn request(
    kind: Kind,
    operation: &str,
    table: Option<&str>,
    error: Option<&StoreError>,
    seconds: f64,
) {
    measure!(
        histogram.db.client.operation.duration = (kind == Kind::Client).then_some(seconds),
        histogram.floe.server.operation.duration = (kind == Kind::Server).then_some(seconds),
        db.system.name = "aws.dynamodb",
        db.operation.name = operation,
        db.collection.name = table,
        "error.type" = error.map(StoreError::code),
    );
    if error.is_some_and(super::is_throttled) {
        measure!(
            monotonic_counter.floe.throttled_requests = 1_u64,
            db.operation.name = operation,
            db.collection.name = table,
        );
    }
}

/// What a request has consumed of each table.
pub(super) fn consumed(operation: &str, consumed: &[ConsumedCapacity]) {
    for cost in consumed {
        let (read, write) = (cost.read.as_f64(), cost.write.as_f64());
        measure!(
            monotonic_counter.floe.consumed_read_units = (read > 0.0).then_some(read),
            monotonic_counter.floe.consumed_write_units = (write > 0.0).then_some(write),
            db.operation.name = operation,
            db.collection.name = cost.table_name.as_str(),
        );
    }
}

/// How a transaction ended.
pub(super) fn transaction(
    label: Option<&str>,
    outcome: &str,
    error: Option<&str>,
    attempts: u32,
    seconds: f64,
) {
    measure!(
        histogram.floe.transaction.duration = seconds,
        histogram.floe.transaction.attempts = u64::from(attempts),
        floe.transaction.label = label,
        floe.transaction.outcome = outcome,
        "error.type" = error,
    );
}

/// Somebody else was faster.
pub(crate) fn conflict(table: Option<&str>, model: Option<&str>, field: Option<&str>) {
    measure!(
        monotonic_counter.floe.conflicts = 1_u64,
        db.collection.name = table,
        floe.model = model,
        floe.field = field,
    );
}

/// Events were appended to streams.
pub(crate) fn appended(table: &str, category: &str, events: u64) {
    measure!(
        monotonic_counter.floe.stream.appended_events = events,
        db.collection.name = table,
        floe.stream.category = category,
    );
}

/// What a step of an indexer has done.
pub(super) fn indexed(table: &str, indexer: &str, records: u64, events: u64, lag: Duration) {
    measure!(
        monotonic_counter.floe.indexer.records = records,
        monotonic_counter.floe.indexer.events = events,
        gauge.floe.indexer.lag = lag.as_secs_f64(),
        db.collection.name = table,
        floe.feed.indexer = indexer,
    );
}

/// How far a group is behind.
pub(super) fn feed_lag(group: &str, partition: u32, lag: &Lag) {
    measure!(
        gauge.floe.feed.lag_events = lag.events,
        gauge.floe.feed.lag = lag.age.as_secs_f64(),
        gauge.floe.feed.parked_events = lag.parked,
        floe.feed.group = group,
        floe.feed.partition = partition,
    );
}

/// A stream was parked.
pub(super) fn feed_parked(group: &str, partition: u32) {
    measure!(
        monotonic_counter.floe.feed.parked_streams = 1_u64,
        floe.feed.group = group,
        floe.feed.partition = partition,
    );
}

/// How a consumer of changes gets on.
pub(super) fn changes(consumer: &str, progress: &Progress) {
    measure!(
        gauge.floe.changes.lag = progress.lag.as_secs_f64(),
        gauge.floe.changes.waiting = progress.waiting as u64,
        floe.changes.consumer = consumer,
    );
}

/// A change was parked.
pub(super) fn change_parked(consumer: &str, table: &str) {
    measure!(
        monotonic_counter.floe.changes.parked = 1_u64,
        floe.changes.consumer = consumer,
        db.collection.name = table,
    );
}
