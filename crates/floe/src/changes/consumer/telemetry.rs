//! Telemetry of the change router. Items are identified by their table only.

use tracing::{Level, Span};

use super::notice::{ConsumerNotice, ConsumerProgress};
use crate::telemetry::{debug_span, measure};

macro_rules! emit {
    ($level:ident, $($fields:tt)*) => {
        tracing::event!(target: "floe::changes", Level::$level, $($fields)*)
    };
}

/// The span of an item's turn.
pub(super) fn turn(consumer: &str, table: &str, changes: usize) -> Span {
    debug_span!(
        target: "floe::changes",
        "turn",
        floe.changes.consumer = consumer,
        db.collection.name = table,
        floe.changes.changes = changes,
    )
}

/// Emits a notice as telemetry.
pub(super) fn emit_notice(consumer: &str, notice: &ConsumerNotice<'_>) {
    let note = |what: &str| emit!(INFO, floe.changes.consumer = consumer, "{what}");
    match notice {
        ConsumerNotice::Stored(progress) => record_progress(consumer, progress),
        ConsumerNotice::DeadLetter(change, _) => {
            emit!(
                WARN,
                floe.changes.consumer = consumer,
                db.collection.name = change.table(),
                "a change became a dead letter"
            );
            measure!(
                monotonic_counter.floe.changes.parked = 1_u64,
                floe.changes.consumer = consumer,
                db.collection.name = change.table(),
            );
        }
        ConsumerNotice::Retried {
            change, attempts, ..
        } => emit!(
            DEBUG,
            floe.changes.consumer = consumer,
            db.collection.name = change.table(),
            floe.changes.attempt = attempts,
            "a handler has failed"
        ),
        ConsumerNotice::Failed { error, .. } => emit!(
            WARN,
            floe.changes.consumer = consumer,
            "error.type" = debug(error.kind()),
            "the consumer failed; it retries"
        ),
        ConsumerNotice::LeaseAcquired => note("this process delivers"),
        ConsumerNotice::Waiting => note("another process delivers"),
        ConsumerNotice::Replayed(_) => note("a dead letter was replayed"),
    }
}

/// Records the progress of a consumer.
fn record_progress(consumer: &str, progress: &ConsumerProgress) {
    measure!(
        gauge.floe.changes.lag = progress.lag.as_secs_f64(),
        gauge.floe.changes.waiting = progress.waiting as u64,
        floe.changes.consumer = consumer,
    );
}
