//! What is told of a transaction: a span around all its runs, one around each, and what stood in its way.

use floe_store::Error as StoreError;
use floe_store::env::Stopwatch;
use tracing::field::Empty;
use tracing::{Level, Span};

use super::metrics;
use crate::error::{Error, ErrorItem, ErrorKind};

macro_rules! tell {
    ($($fields:tt)*) => {
        tracing::event!(target: "floe::transaction", Level::DEBUG, $($fields)*)
    };
}

/// A transaction that is being watched.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    /// The span around all runs.
    pub(crate) span: Span,
    started: Option<Stopwatch>,
    label: Option<&'a str>,
    /// How often the body has run.
    pub(crate) attempts: u32,
    /// How many items it has written, once it is committed.
    items: Option<usize>,
    /// Why it was not committed, unless the body wanted that.
    failure: Option<ErrorKind>,
}

impl<'a> Transaction<'a> {
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
        let is_heard = !span.is_disabled() || metrics::are_heard();
        Self {
            span,
            started: is_heard.then(Stopwatch::start),
            label,
            attempts: 0,
            items: None,
            failure: None,
        }
    }

    /// The span around the next run.
    pub(crate) fn attempt(&mut self) -> Span {
        self.attempts += 1;
        debug_span!(
            target: "floe::transaction",
            "attempt",
            floe.transaction.attempt = self.attempts,
        )
    }

    /// It was committed, and has written so many items.
    pub(crate) fn committed(&mut self, items: usize) {
        self.items = Some(items);
    }

    pub(crate) fn failed(&mut self, error: &Error) {
        self.failure = Some(error.kind()).filter(|kind| *kind != ErrorKind::Aborted);
    }

    /// Tells what has become of it. One that is dropped before has no outcome.
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

/// Why a run was not committed and may be tried again.
pub(crate) fn retried(error: &Error, attempt: u32) {
    match error.store_error() {
        Some(store) if super::is_throttled(store) => tell!(
            "error.type" = store.code(),
            floe.transaction.attempt = attempt,
            "throttled"
        ),
        Some(StoreError::TransactionCanceled { .. } | StoreError::TransactionConflict) => {
            tell!(
                floe.transaction.attempt = attempt,
                "another transaction was under way"
            );
            metrics::conflict(None, None, None);
        }
        Some(store) => tell!(
            "error.type" = store.code(),
            floe.transaction.attempt = attempt,
            "the store was not ready"
        ),
        None => error.items().iter().for_each(|item| lost(item, attempt)),
    }
}

/// An item of a model was changed by somebody else.
fn lost(item: &ErrorItem, attempt: u32) {
    tell!(
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

/// What another pattern than models has written was changed by somebody else.
pub(crate) fn part_lost(tables: &[(String, &'static str)], attempt: u32) {
    let first = tables.first().map(|(table, what)| (table.as_str(), *what));
    let (table, what) = first.unzip();
    tell!(
        floe.model = what,
        db.collection.name = table,
        floe.transaction.attempt = attempt,
        "lost a race"
    );
    metrics::conflict(table, what, None);
}

/// The answer to a commit was lost, and what became of it is known by now.
pub(crate) fn settled(by: &'static str, is_applied: bool, sent: u32) {
    tell!(
        floe.settled_by = by,
        floe.applied = is_applied,
        floe.sent = sent,
        "a lost answer is settled"
    );
}
