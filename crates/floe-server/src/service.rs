//! Answers calls: the name of an operation and a body of JSON.

use std::sync::{Arc, OnceLock};

use floe_store::env::Stopwatch;
use floe_store::{Engine, Health};

pub use crate::answer::Answer;
use crate::failure_log::FailureLog;
use crate::metrics::{MeasuredEngine, Metrics};

/// Answers calls with an engine.
#[derive(Clone)]
pub struct Service {
    engine: Arc<dyn Engine>,
    endpoint: Arc<OnceLock<String>>,
    metrics: Option<Arc<Metrics>>,
    failures: Arc<FailureLog>,
}

impl Service {
    /// A service on this engine. What fails inside the engine is answered without details; the details go to the
    /// standard error.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self {
            engine,
            endpoint: Arc::default(),
            metrics: None,
            failures: Arc::new(FailureLog::to_stderr()),
        }
    }

    /// Whether the engine accepts writes at present.
    pub fn health(&self) -> Health {
        self.engine.health()
    }

    /// Gathers figures of what is asked of it, which a server answers to `GET /metrics`.
    #[must_use]
    pub fn with_metrics(self) -> Self {
        let metrics = Arc::new(Metrics::new());
        Self {
            engine: Arc::new(MeasuredEngine::new(self.engine, Arc::clone(&metrics))),
            metrics: Some(metrics),
            ..self
        }
    }

    /// The figures, in the text format of Prometheus; `None` if none are gathered.
    pub(crate) fn metrics(&self, connections: usize) -> Option<String> {
        let metrics = self.metrics.as_deref()?;
        Some(metrics.text(connections))
    }

    /// Sets where this service and its clones can be called: the host and port that DescribeEndpoints
    /// answers. The first one counts; without it, it is `localhost:8000`.
    pub fn set_endpoint(&self, host: impl Into<String>) {
        self.endpoint.get_or_init(|| host.into());
    }

    /// Answers a call. The target is the header `X-Amz-Target`: `DynamoDB_20120810.GetItem` and the like.
    pub async fn call(&self, target: &str, body: &[u8]) -> Answer {
        let endpoint = self.endpoint.get().map_or("localhost:8000", String::as_str);
        let call = crate::wire::answer(&*self.engine, &self.failures, endpoint, target, body);
        let Some(metrics) = self.metrics.as_deref() else {
            return call.await;
        };
        let started = Stopwatch::start();
        let answer = call.await;
        metrics.note(target, &answer, started.elapsed());
        answer
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
    async fn details_of_failures_go_to_the_log() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let printed = Arc::clone(&lines);
        let service = Service {
            failures: Arc::new(FailureLog::new(move |line| {
                printed.lock().unwrap().push(line.to_owned());
            })),
            ..Service::new(Arc::new(Failing(LocalEngine::memory().unwrap())))
        };
        let body = br#"{"TableName":"things","Key":{"p":{"S":"x"}}}"#;
        let answer = service.call("DynamoDB_20120810.GetItem", body).await;
        assert_eq!(answer.status, 500);
        assert_eq!(*lines.lock().unwrap(), ["GetItem failed: Io(/data/7.sst)"]);
    }
}
