//! Prometheus metrics of an indexer, on a server of their own with the same request guard as `floe serve`.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use floe::events::feed::indexer::{IndexerProgress, IndexerStep};
use floe::events::feed::{Checkpoint, IndexerSummary, Partition};
use floe_server::{ApiResponse, Handler, Options, Server, ServerHandle, metrics_head};

use crate::{Failure, Result};

const RECORDS: &str = "Change records read.";
const EVENTS: &str = "Events added to the feed.";
const STEPS: &str = "Completed steps.";
const FAILURES: &str = "Failed steps, which were retried.";
const LAG: &str = "Age of the last change record read by the last step.";
const LAST: &str = "Change records read by the last step: --batch-max if more are waiting.";

/// The metrics of an indexer.
#[derive(Clone)]
pub(super) struct IndexerMetrics {
    /// The labels of all metrics.
    labels: String,
    counters: Arc<Mutex<Counters>>,
}

#[derive(Default)]
struct Counters {
    steps: u64,
    failures: u64,
    indexed: IndexerSummary,
    /// Number of records read by the last step.
    last_step_records: u64,
    lag: Duration,
    checkpoints: BTreeMap<Partition, Checkpoint>,
}

impl IndexerMetrics {
    pub(super) fn new(table: &str, name: &str) -> Self {
        Self {
            labels: format!("table=\"{table}\",indexer=\"{}\"", escaped(name)),
            counters: Arc::default(),
        }
    }

    pub(super) fn record(&self, progress: &IndexerProgress<'_>) {
        let mut counters = self.lock();
        match progress {
            IndexerProgress::StepCompleted(stepped) => counters.step(stepped),
            IndexerProgress::Failed { .. } => counters.failures += 1,
            _ => {}
        }
    }

    /// Serves the metrics on this address.
    pub(super) async fn serve(&self, listen: SocketAddr) -> Result<ServerHandle> {
        // Requests need no signature: the server exposes nothing but metrics.
        let options = Options::new().listen(listen).insecure(true);
        let server = Server::bind(options, self.clone()).await;
        let server = server
            .map_err(|error| Failure::failed(format!("{error}; choose another with --metrics")))?;
        Ok(server.spawn())
    }

    fn text(&self) -> String {
        let mut text = String::with_capacity(2048);
        // Writing to a string cannot fail.
        _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        let (counters, labels) = (self.lock(), &self.labels);
        let (records, events) = (counters.indexed.records, counters.indexed.events);
        let metrics: [(_, _, _, &dyn fmt::Display); 6] = [
            ("records_total", "counter", RECORDS, &records),
            ("events_total", "counter", EVENTS, &events),
            ("steps_total", "counter", STEPS, &counters.steps),
            ("failures_total", "counter", FAILURES, &counters.failures),
            ("lag_seconds", "gauge", LAG, &counters.lag.as_secs_f64()),
            (
                "last_step_records",
                "gauge",
                LAST,
                &counters.last_step_records,
            ),
        ];
        for (name, kind, about, value) in metrics {
            let name = format!("floe_indexer_{name}");
            metrics_head(text, &name, kind, about)?;
            writeln!(text, "{name}{{{labels}}} {value}")?;
        }
        let about = "Epoch to which a partition is written.";
        metrics_head(text, "floe_indexer_epoch", "gauge", about)?;
        for (partition, checkpoint) in &counters.checkpoints {
            let epoch = checkpoint.epoch();
            let labels = format!("{labels},partition=\"{partition}\"");
            writeln!(text, "floe_indexer_epoch{{{labels}}} {epoch}")?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counters {
    fn step(&mut self, stepped: &IndexerStep) {
        self.steps += 1;
        self.indexed.records += stepped.indexed.records;
        self.indexed.events += stepped.indexed.events;
        self.last_step_records = stepped.indexed.records;
        self.lag = stepped.lag;
        self.checkpoints.extend(&stepped.checkpoints);
    }
}

impl Handler for IndexerMetrics {
    async fn call(&self, _target: &str, _body: &[u8]) -> ApiResponse {
        ApiResponse::error(
            "UnknownOperationException",
            "this server exposes metrics only",
        )
    }

    fn precheck(&self, _target: &str, _body: &[u8]) -> Option<ApiResponse> {
        None
    }

    fn metrics(&self, _connections: usize) -> Option<String> {
        Some(self.text())
    }
}

/// Escapes the value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_value_cannot_inject_metrics() {
        let metrics = IndexerMetrics::new("shop", "a\"} 1\nevil{x=\"");
        let text = metrics.text();
        let line = r#"floe_indexer_records_total{table="shop",indexer="a\"} 1\nevil{x=\""} 0"#;
        assert!(text.lines().any(|printed| printed == line), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("evil")), "{text}");
    }
}
