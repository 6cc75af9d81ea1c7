//! A wrapper around an engine that records each request: a span, its duration and its consumed capacity.
//!
//! Without a subscriber, a request is forwarded unchanged and without allocation. With a subscriber, the engine is always
//! asked for the consumed capacity; a caller that did not request it does not get it.

use std::fmt;
use std::sync::Arc;

use floe_store::env::Stopwatch;
use floe_store::{BoxFuture, Engine, Result, each_operation, forward_to};
use tracing::field::Empty;
use tracing::{Instrument, Span};

use super::metrics::{self, Side};
use super::request::{Request, Response};

/// An engine that emits telemetry of each request. Every [`Db`](crate::Db) wraps its engine in one, below the read cache:
/// reads served by the cache are not requests.
pub struct TracedEngine {
    inner: Arc<dyn Engine>,
    side: Side,
}

impl TracedEngine {
    /// Records the requests that a client makes.
    pub fn client(inner: Arc<dyn Engine>) -> Self {
        let side = Side::Client;
        Self { inner, side }
    }

    /// Records the requests that a server handles.
    pub fn server(inner: Arc<dyn Engine>) -> Self {
        let side = Side::Server;
        Self { inner, side }
    }

    /// Starts recording a request, if a subscriber is interested.
    fn record(&self, operation: &'static str, request: &impl Request) -> Option<Recording> {
        let span = request_span(self.side, operation, request);
        if span.is_disabled() && !metrics::are_enabled() {
            return None;
        }
        Some(Recording {
            span,
            side: self.side,
            started: Stopwatch::start(),
            operation,
            table: only(&request.tables()).map(str::to_owned),
        })
    }
}

impl fmt::Debug for TracedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TracedEngine").finish_non_exhaustive()
    }
}

/// The span of a request. Its fields are computed only if it is enabled.
fn request_span(side: Side, operation: &str, request: &impl Request) -> Span {
    let is_client = side == Side::Client;
    debug_span!(
        target: "floe::request",
        "request",
        otel.name = operation,
        otel.kind = if is_client { "client" } else { "server" },
        otel.status_code = Empty,
        db.system.name = "aws.dynamodb",
        db.operation.name = operation,
        db.collection.name = only(&request.tables()),
        aws.dynamodb.table_names = display(request.tables().join(",")),
        aws.dynamodb.index_name = request.index(),
        aws.dynamodb.consistent_read = request.is_consistent(),
        aws.dynamodb.count = Empty,
        aws.dynamodb.scanned_count = Empty,
        floe.consumed_read_units = Empty,
        floe.consumed_write_units = Empty,
        "error.type" = Empty,
    )
}

/// The only one of the names, if there is one.
fn only<'n>(names: &[&'n str]) -> Option<&'n str> {
    let (only, others) = names.split_first()?;
    others.is_empty().then_some(*only)
}

/// A request that is being recorded.
struct Recording {
    span: Span,
    side: Side,
    started: Stopwatch,
    operation: &'static str,
    table: Option<String>,
}

impl Recording {
    async fn run<T: Response>(
        self,
        is_requested: bool,
        request: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut response = request.instrument(self.span.clone()).await;
        let table = self.table.as_deref();
        let error = response.as_ref().err();
        let seconds = self.started.elapsed().as_secs_f64();
        metrics::request(self.side, self.operation, table, error, seconds);
        match &mut response {
            Ok(output) => {
                self.record_output(output);
                if !is_requested {
                    output.remove_consumed();
                }
            }
            Err(error) => {
                self.span.record("error.type", error.code());
                if !super::is_conflict(error) {
                    self.span.record("otel.status_code", "ERROR");
                }
            }
        }
        response
    }

    fn record_output(&self, output: &impl Response) {
        let consumed = output.consumed();
        metrics::consumed(self.operation, consumed);
        if self.span.is_disabled() {
            return;
        }
        let (count, scanned) = output.counts();
        self.span.record("aws.dynamodb.count", count);
        self.span.record("aws.dynamodb.scanned_count", scanned);
        if !consumed.is_empty() {
            let read: f64 = consumed.iter().map(|cost| cost.read.as_f64()).sum();
            let write: f64 = consumed.iter().map(|cost| cost.write.as_f64()).sum();
            self.span.record("floe.consumed_read_units", read);
            self.span.record("floe.consumed_write_units", write);
        }
    }
}

macro_rules! traced {
    ($($operation:ident($type:ty) -> $output:ty, $name:literal;)*) => {$(
        fn $operation(&self, mut input: $type) -> BoxFuture<'_, Result<$output>> {
            let Some(recording) = self.record(input.named($name), &input) else {
                return self.inner.$operation(input);
            };
            let is_requested = input.request_consumed();
            let request = async move { self.inner.$operation(input).await };
            Box::pin(recording.run(is_requested, request))
        }
    )*};
}

impl Engine for TracedEngine {
    forward_to!(self.inner; basics);
    each_operation!(traced; all);
}
