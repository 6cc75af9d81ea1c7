//! Answers calls: the name of an operation and a body of JSON.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use floe_store::Engine;
use floe_store::env::Stopwatch;

use crate::metrics::{MeasuredEngine, Metrics};

/// An answer to a call, to be sent as `application/x-amz-json-1.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status of HTTP: 200, 400 for what the caller did wrong, 500 for what went wrong here.
    pub status: u16,
    /// The JSON.
    pub body: Bytes,
}

/// Answers calls with an engine.
#[derive(Clone)]
pub struct Service {
    engine: Arc<dyn Engine>,
    endpoint: Arc<OnceLock<String>>,
    metrics: Option<Arc<Metrics>>,
}

impl Service {
    /// A service on this engine.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        Self {
            engine,
            endpoint: Arc::default(),
            metrics: None,
        }
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

    /// Tells this service and its clones where they can be called: the host and port that DescribeEndpoints
    /// answers. The first one counts; without it, it is `localhost:8000`.
    pub fn set_endpoint(&self, host: impl Into<String>) {
        self.endpoint.get_or_init(|| host.into());
    }

    /// Answers a call. The target is the header `X-Amz-Target`: `DynamoDB_20120810.GetItem` and the like.
    pub async fn call(&self, target: &str, body: &[u8]) -> Answer {
        let endpoint = self.endpoint.get().map_or("localhost:8000", String::as_str);
        let Some(metrics) = self.metrics.as_deref() else {
            return crate::wire::answer(&*self.engine, endpoint, target, body).await;
        };
        let started = Stopwatch::start();
        let answer = crate::wire::answer(&*self.engine, endpoint, target, body).await;
        metrics.note(target, &answer, started.elapsed());
        answer
    }
}
