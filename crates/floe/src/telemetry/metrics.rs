//! Metrics: events of the target `floe::metrics`, whose fields the metrics layer of `tracing-opentelemetry` reads.
//!
//! A field `monotonic_counter.NAME`, `histogram.NAME` or `gauge.NAME` is a measurement, and the other fields are its attributes.
//! Fields without a value are omitted. All measurements of a metric have the same number type.

use floe_store::Error as StoreError;
use floe_store::capacity::ConsumedCapacity;
use tracing::callsite::{DefaultCallsite, Identifier};
use tracing::field::FieldSet;
use tracing::level_filters::{LevelFilter, STATIC_MAX_LEVEL};
use tracing::metadata::Kind as MetadataKind;
use tracing::{Level, Metadata};

/// The target of measurements.
pub(crate) const TARGET: &str = "floe::metrics";

static PROBE: DefaultCallsite = DefaultCallsite::new(&PROBE_METADATA);

/// A measurement like those of requests, with which subscribers are asked for their interest.
static PROBE_METADATA: Metadata<'static> = Metadata::new(
    "measurement",
    TARGET,
    Level::TRACE,
    None,
    None,
    None,
    FieldSet::new(
        &["histogram.db.client.operation.duration"],
        Identifier(&PROBE),
    ),
    MetadataKind::EVENT,
);

/// Whether a subscriber may be interested in measurements.
///
/// `tracing::enabled!` is unsuitable: it asks the filters of layers without an event following, and they would keep
/// their result for the next event.
pub(crate) fn are_enabled() -> bool {
    Level::TRACE <= STATIC_MAX_LEVEL
        && Level::TRACE <= LevelFilter::current()
        && !PROBE.interest().is_never()
}

/// Emits a measurement with its attributes.
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

/// Which side of a request is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

/// Records the duration of a request, for its client or for its server.
pub(super) fn request(
    side: Side,
    operation: &str,
    table: Option<&str>,
    error: Option<&StoreError>,
    seconds: f64,
) {
    measure!(
        histogram.db.client.operation.duration = (side == Side::Client).then_some(seconds),
        histogram.floe.server.operation.duration = (side == Side::Server).then_some(seconds),
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

/// Records what a request consumed of each table.
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

/// Records how a transaction ended.
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

/// Records a conflict with another writer.
pub(crate) fn conflict(table: Option<&str>, model: Option<&str>, field: Option<&str>) {
    measure!(
        monotonic_counter.floe.conflicts = 1_u64,
        db.collection.name = table,
        floe.model = model,
        floe.field = field,
    );
}

/// Records events appended to streams.
pub(crate) fn appended(table: &str, category: &str, events: u64) {
    measure!(
        monotonic_counter.floe.stream.appended_events = events,
        db.collection.name = table,
        floe.stream.category = category,
    );
}
