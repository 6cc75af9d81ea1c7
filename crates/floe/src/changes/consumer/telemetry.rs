//! Telemetry of the change router. Items are named by their table alone.

use tracing::{Level, Span};

use super::notice::{Notice, Progress};
use crate::telemetry::{debug_span, measure};

macro_rules! tell {
    ($level:ident, $($fields:tt)*) => {
        tracing::event!(target: "floe::changes", Level::$level, $($fields)*)
    };
}

/// Around the turn of an item.
pub(super) fn turn(consumer: &str, table: &str, changes: usize) -> Span {
    debug_span!(
        target: "floe::changes",
        "turn",
        floe.changes.consumer = consumer,
        db.collection.name = table,
        floe.changes.changes = changes,
    )
}

/// What happens while a consumer runs.
pub(super) fn noticed(consumer: &str, notice: &Notice<'_>) {
    let note = |what: &str| tell!(INFO, floe.changes.consumer = consumer, "{what}");
    match notice {
        Notice::Stored(progress) => measured(consumer, progress),
        Notice::Parked(change, _) => {
            tell!(
                WARN,
                floe.changes.consumer = consumer,
                db.collection.name = change.table(),
                "a change was parked"
            );
            measure!(
                monotonic_counter.floe.changes.parked = 1_u64,
                floe.changes.consumer = consumer,
                db.collection.name = change.table(),
            );
        }
        Notice::Retried {
            change, attempts, ..
        } => tell!(
            DEBUG,
            floe.changes.consumer = consumer,
            db.collection.name = change.table(),
            floe.changes.attempt = attempts,
            "a handler has failed"
        ),
        Notice::Failed { error, .. } => tell!(
            WARN,
            floe.changes.consumer = consumer,
            "error.type" = debug(error.kind()),
            "the consumer could not go on"
        ),
        Notice::Leads => note("this process delivers"),
        Notice::Waits => note("another process delivers"),
        Notice::Replayed(_) => note("parked changes of an item are done"),
    }
}

/// Progress of a consumer.
fn measured(consumer: &str, progress: &Progress) {
    measure!(
        gauge.floe.changes.lag = progress.lag.as_secs_f64(),
        gauge.floe.changes.waiting = progress.waiting as u64,
        floe.changes.consumer = consumer,
    );
}
