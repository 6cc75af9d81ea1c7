//! Measurements: events of the target `floe::metrics`, whose fields the metrics layer of `tracing-opentelemetry` reads.
//!
//! A field `monotonic_counter.NAME`, `histogram.NAME` or `gauge.NAME` is a measurement, and the other fields are its attributes.
//! Fields without a value are left out. All measurements of a name have one type of number.

use floe_store::Error as StoreError;
use floe_store::capacity::ConsumedCapacity;
use tracing::callsite::{DefaultCallsite, Identifier};
use tracing::field::FieldSet;
use tracing::level_filters::{LevelFilter, STATIC_MAX_LEVEL};
use tracing::metadata::Kind as MetadataKind;
use tracing::{Level, Metadata};

/// Where measurements are told.
pub(crate) const TARGET: &str = "floe::metrics";

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
pub(crate) fn are_heard() -> bool {
    Level::TRACE <= STATIC_MAX_LEVEL
        && Level::TRACE <= LevelFilter::current()
        && !HEARD.interest().is_never()
}

/// A measurement: its fields, and its attributes.
macro_rules! measure {
    ($($fields:tt)*) => {
        tracing::event!(
            target: $crate::telemetry::metrics::TARGET,
            tracing::Level::TRACE,
            $($fields)*
        )
    };
}
pub(crate) use measure;

/// Whose requests are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Client,
    Server,
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
