//! Telemetry of transactions: a span of the transaction, one of each attempt, and the reasons for retries.

use floe_store::Error as StoreError;
use floe_store::env::Stopwatch;
use tracing::field::Empty;
use tracing::{Level, Span};

use super::metrics;
use crate::error::{Error, ErrorItem, ErrorKind};

macro_rules! emit {
    ($($fields:tt)*) => {
        tracing::event!(target: "floe::transaction", Level::DEBUG, $($fields)*)
    };
}

/// Records the span and the metrics of a transaction.
#[derive(Debug)]
pub(crate) struct TransactionTelemetry<'a> {
    /// The span around all attempts.
    pub(crate) span: Span,
    started: Option<Stopwatch>,
    label: Option<&'a str>,
    /// How often the body has run so far.
    pub(crate) attempts: u32,
    /// The number of items written, once committed.
    items: Option<usize>,
    /// Why it was not committed; `None` if the body aborted it.
    failure: Option<ErrorKind>,
}

impl<'a> TransactionTelemetry<'a> {
    pub(crate) fn begin(label: Option<&'a str>, is_read_only: bool) -> Self {
        let span = debug_span!(
            target: "floe::transaction",
            "transaction",
            floe.transaction.label = label,
            floe.transaction.read_only = is_read_only,
            floe.transaction.attempts = Empty,
            floe.transaction.outcome = Empty,
            floe.transaction.items_written = Empty,
            "error.type" = Empty,
            otel.status_code = Empty,
        );
        let is_enabled = !span.is_disabled() || metrics::are_enabled();
        Self {
            span,
            started: is_enabled.then(Stopwatch::start),
            label,
            attempts: 0,
            items: None,
            failure: None,
        }
    }

    /// Starts the span of the next attempt.
    pub(crate) fn attempt(&mut self) -> Span {
        self.attempts += 1;
        debug_span!(
            target: "floe::transaction",
            "attempt",
            floe.transaction.attempt = self.attempts,
        )
    }

    /// Records the commit and the number of items written.
    pub(crate) fn committed(&mut self, items: usize) {
        self.items = Some(items);
    }

    pub(crate) fn failed(&mut self, error: &Error) {
        self.failure = Some(error.kind()).filter(|kind| *kind != ErrorKind::Aborted);
    }

    /// Records the outcome. A transaction that is dropped before has none.
    pub(crate) fn end(&self) {
        let Some(started) = self.started else { return };
        let seconds = started.elapsed().as_secs_f64();
        let outcome = match (self.items, self.failure) {
            (Some(_), _) => "committed",
            (None, Some(_)) => "failed",
            (None, None) => "aborted",
        };
        let error = self.failure.map(|kind| format!("{kind:?}"));
        let error = error.as_deref();
        let status = error.map(|_| "ERROR");
        self.span.record("floe.transaction.attempts", self.attempts);
        self.span.record("floe.transaction.outcome", outcome);
        self.span
            .record("floe.transaction.items_written", self.items);
        self.span.record("error.type", error);
        self.span.record("otel.status_code", status);
        metrics::transaction(self.label, outcome, error, self.attempts, seconds);
    }
}

/// Records why an attempt was not committed and may be retried.
pub(crate) fn retried(error: &Error, attempt: u32) {
    match error.store_error() {
        Some(store) if super::is_throttled(store) => emit!(
            "error.type" = store.code(),
            floe.transaction.attempt = attempt,
            "throttled"
        ),
        Some(StoreError::TransactionCanceled { .. } | StoreError::TransactionConflict) => {
            emit!(
                floe.transaction.attempt = attempt,
                "another transaction was under way"
            );
            metrics::conflict(None, None, None);
        }
        Some(store) => emit!(
            "error.type" = store.code(),
            floe.transaction.attempt = attempt,
            "the store was not ready"
        ),
        None => error
            .items()
            .iter()
            .for_each(|item| model_conflict(item, attempt)),
    }
}

/// Records that another writer changed an item of a model.
fn model_conflict(item: &ErrorItem, attempt: u32) {
    emit!(
        floe.model = item.model,
        floe.fields = display(item.fields.join(",")),
        floe.transaction.attempt = attempt,
        "lost a race"
    );
    if item.fields.is_empty() {
        metrics::conflict(None, Some(item.model), None);
    }
    for field in &item.fields {
        metrics::conflict(None, Some(item.model), Some(field));
    }
}

/// Records that another writer changed something that a part of another pattern than models depends on.
pub(crate) fn part_conflict(tables: &[(String, &'static str)], attempt: u32) {
    let first = tables.first().map(|(table, what)| (table.as_str(), *what));
    let (table, what) = first.unzip();
    emit!(
        floe.model = what,
        db.collection.name = table,
        floe.transaction.attempt = attempt,
        "lost a race"
    );
    metrics::conflict(table, what, None);
}

/// Records that a hook panicked. The message of the panic may contain values, so it is not recorded.
pub(crate) fn hook_panicked() {
    tracing::event!(target: "floe::transaction", Level::ERROR, "a hook panicked");
}

/// Records that the outcome of a commit whose response was lost is known.
pub(crate) fn reconciled(by: &'static str, is_applied: bool, sent: u32) {
    emit!(
        floe.settled_by = by,
        floe.applied = is_applied,
        floe.sent = sent,
        "a lost answer is settled"
    );
}
