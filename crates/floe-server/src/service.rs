//! Executes API calls: an operation name and a JSON body.

use std::sync::{Arc, OnceLock};

use floe_store::env::Stopwatch;
use floe_store::{Engine, Health};

pub use crate::api_response::ApiResponse;
use crate::failure_log::FailureLog;
use crate::metrics::{MeasuredEngine, Metrics};

/// Executes API calls on an engine.
#[derive(Clone)]
pub struct Service {
    engine: Arc<dyn Engine>,
    endpoint: Arc<OnceLock<String>>,
    metrics: Option<Arc<Metrics>>,
    failures: Arc<FailureLog>,
}

impl Service {
    /// Returns a service on this engine. Failures inside the engine are reported to clients without details; the
    /// details are logged to stderr.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self {
            engine,
            endpoint: Arc::default(),
            metrics: None,
            failures: Arc::new(FailureLog::to_stderr()),
        }
    }

    /// Returns whether the engine currently accepts writes.
    pub fn health(&self) -> Health {
        self.engine.health()
    }

    /// Collects metrics, which a server returns for `GET /metrics`.
    #[must_use]
    pub fn with_metrics(self) -> Self {
        let metrics = Arc::new(Metrics::new());
        Self {
            engine: Arc::new(MeasuredEngine::new(self.engine, Arc::clone(&metrics))),
            metrics: Some(metrics),
            ..self
        }
    }

    /// Returns the metrics in the Prometheus text format; `None` if they are not collected.
    pub(crate) fn metrics(&self, connections: usize) -> Option<String> {
        let metrics = self.metrics.as_deref()?;
        Some(metrics.text(connections))
    }

    /// Sets the host and port that DescribeEndpoints returns, for this service and its clones. Only the first call has
    /// an effect. Default: `localhost:8000`.
    pub fn set_endpoint(&self, host: impl Into<String>) {
        self.endpoint.get_or_init(|| host.into());
    }

    /// Executes a call. The target is the header `X-Amz-Target`, for example `DynamoDB_20120810.GetItem`.
    pub async fn call(&self, target: &str, body: &[u8]) -> ApiResponse {
        let endpoint = self.endpoint.get().map_or("localhost:8000", String::as_str);
        let call = crate::wire::handle(&*self.engine, &self.failures, endpoint, target, body);
        let Some(metrics) = self.metrics.as_deref() else {
            return call.await;
        };
        let started = Stopwatch::start();
        let response = call.await;
        metrics.record(target, &response, started.elapsed());
        response
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use floe_local::LocalEngine;
    use floe_store::op::{GetItem, GetItemOutput};
    use floe_store::{BoxFuture, Error, Result, forward_to};

    use super::*;

    /// An engine whose reads fail.
    struct Failing(LocalEngine);

    impl Engine for Failing {
        fn get_item(&self, _: GetItem) -> BoxFuture<'_, Result<GetItemOutput>> {
            Box::pin(async { Err(Error::Storage("Io(/data/7.sst)".to_owned())) })
        }

        forward_to!(self.0; basics, tables, streams);
        forward_to!(self.0; batch_get_item, transact_get_items, query, scan);
        forward_to!(self.0; write_item, batch_write_item, transact_write_items);
    }

    #[tokio::test]
    async fn failure_details_go_to_the_log() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let printed = Arc::clone(&lines);
        let service = Service {
            failures: Arc::new(FailureLog::new(move |line| {
                printed.lock().unwrap().push(line.to_owned());
            })),
            ..Service::new(Arc::new(Failing(LocalEngine::memory().unwrap())))
        };
        let body = br#"{"TableName":"things","Key":{"p":{"S":"x"}}}"#;
        let response = service.call("DynamoDB_20120810.GetItem", body).await;
        assert_eq!(response.status, 500);
        assert_eq!(*lines.lock().unwrap(), ["GetItem failed: Io(/data/7.sst)"]);
    }
}
