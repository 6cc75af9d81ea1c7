//! An engine around the engine that tells of each request: a span, its duration and what it has consumed.
//!
//! While nobody listens, a request goes straight to the engine inside: nothing is asked of it besides, and nothing is
//! allocated. While somebody does, the engine is always asked what a request has consumed; who did not ask is not told.

use std::fmt;
use std::sync::Arc;

use floe_store::env::Stopwatch;
use floe_store::{BoxFuture, Engine, Result, each_operation, forward_to};
use tracing::field::Empty;
use tracing::{Instrument, Span};

use super::metrics::{self, Kind};
use super::request::{Answer, Request};

/// An engine that tells of each request. Every [`Db`](crate::Db) has one around the engine that it is given, below its
/// read cache: what the cache answers is no request.
pub struct TracedEngine {
    inner: Arc<dyn Engine>,
    kind: Kind,
}

impl TracedEngine {
    /// Tells of the requests that a client makes.
    pub fn client(inner: Arc<dyn Engine>) -> Self {
        let kind = Kind::Client;
        Self { inner, kind }
    }

    /// Tells of the requests that a server answers.
    pub fn server(inner: Arc<dyn Engine>) -> Self {
        let kind = Kind::Server;
        Self { inner, kind }
    }

    /// What is to be told of a request, if somebody listens.
    fn watch(&self, operation: &'static str, request: &impl Request) -> Option<Watch> {
        let span = request_span(self.kind, operation, request);
        if span.is_disabled() && !metrics::are_heard() {
            return None;
        }
        Some(Watch {
            span,
            kind: self.kind,
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

/// The span of a request. Its fields are looked for only if somebody listens.
fn request_span(kind: Kind, operation: &str, request: &impl Request) -> Span {
    let is_client = kind == Kind::Client;
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

/// The only one of them.
fn only<'n>(names: &[&'n str]) -> Option<&'n str> {
    let (only, others) = names.split_first()?;
    others.is_empty().then_some(*only)
}

/// A request that is being watched.
struct Watch {
    span: Span,
    kind: Kind,
    started: Stopwatch,
    operation: &'static str,
    table: Option<String>,
}

impl Watch {
    async fn follow<T: Answer>(
        self,
        is_asked: bool,
        request: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let mut answer = request.instrument(self.span.clone()).await;
        let table = self.table.as_deref();
        let error = answer.as_ref().err();
        let seconds = self.started.elapsed().as_secs_f64();
        metrics::request(self.kind, self.operation, table, error, seconds);
        match &mut answer {
            Ok(output) => {
                self.tell(output);
                if !is_asked {
                    output.forget_consumed();
                }
            }
            Err(error) => {
                self.span.record("error.type", error.code());
                if !super::is_lost_race(error) {
                    self.span.record("otel.status_code", "ERROR");
                }
            }
        }
        answer
    }

    fn tell(&self, output: &impl Answer) {
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
            let Some(watch) = self.watch(input.named($name), &input) else {
                return self.inner.$operation(input);
            };
            let is_asked = input.ask_consumed();
            let request = async move { self.inner.$operation(input).await };
            Box::pin(watch.follow(is_asked, request))
        }
    )*};
}

impl Engine for TracedEngine {
    forward_to!(self.inner; basics);
    each_operation!(traced; all);
}
