//! The Prometheus text format, version 0.0.4.

use std::fmt::{self, Write};

use super::{BUCKETS_MICROS, Metrics, OperationMetrics};

impl Metrics {
    /// Returns the metrics of all operations that were called, and the number of connections.
    pub(crate) fn text(&self, connections: usize) -> String {
        let mut text = String::with_capacity(4096);
        // Writing to a String cannot fail.
        _ = self.write(&mut text, connections);
        text
    }

    fn write(&self, text: &mut String, connections: usize) -> fmt::Result {
        let called = self.operations.iter().filter_map(|(name, _)| {
            let metrics = self.metrics(name)?;
            (metrics.count > 0).then(|| (*name, metrics.clone()))
        });
        let called: Vec<(&str, OperationMetrics)> = called.collect();
        let about = "Open connections.";
        head(text, "floe_connections", "gauge", about)?;
        writeln!(text, "floe_connections {connections}")?;
        let about = "Requests by operation and outcome: ok, or the name of the error.";
        head(text, "floe_requests_total", "counter", about)?;
        for (operation, metrics) in &called {
            for (outcome, count) in &metrics.outcomes {
                let labels = format!("operation=\"{operation}\",outcome=\"{outcome}\"");
                writeln!(text, "floe_requests_total{{{labels}}} {count}")?;
            }
        }
        let about = "Request latency, from the body to the response.";
        head(text, "floe_request_seconds", "histogram", about)?;
        for (operation, metrics) in &called {
            histogram(text, operation, metrics)?;
        }
        let about = "Canceled transactions by cancellation reason; each reason counts once.";
        head(text, "floe_canceled_transactions_total", "counter", about)?;
        for (reason, count) in &*self.canceled() {
            let labels = format!("reason=\"{reason}\"");
            writeln!(text, "floe_canceled_transactions_total{{{labels}}} {count}")?;
        }
        let about = "Capacity units consumed by requests.";
        head(text, "floe_consumed_capacity_units_total", "counter", about)?;
        for (operation, metrics) in &called {
            for (kind, units) in [("read", metrics.read), ("write", metrics.write)] {
                if units.as_f64() > 0.0 {
                    let labels = format!("{{operation=\"{operation}\",kind=\"{kind}\"}}");
                    let units = units.as_f64();
                    writeln!(text, "floe_consumed_capacity_units_total{labels} {units}")?;
                }
            }
        }
        Ok(())
    }
}

/// Writes the header of a metric.
pub fn head(text: &mut String, name: &str, kind: &str, about: &str) -> fmt::Result {
    writeln!(text, "# HELP {name} {about}\n# TYPE {name} {kind}")
}

/// Writes a histogram. Prometheus buckets are cumulative.
fn histogram(text: &mut String, operation: &str, metrics: &OperationMetrics) -> fmt::Result {
    let name = "floe_request_seconds";
    let mut below = 0;
    for (end, count) in BUCKETS_MICROS.iter().zip(metrics.buckets) {
        below += count;
        let end = std::time::Duration::from_micros(*end).as_secs_f64();
        writeln!(
            text,
            "{name}_bucket{{operation=\"{operation}\",le=\"{end}\"}} {below}"
        )?;
    }
    let (count, sum) = (metrics.count, metrics.sum.as_secs_f64());
    writeln!(
        text,
        "{name}_bucket{{operation=\"{operation}\",le=\"+Inf\"}} {count}"
    )?;
    writeln!(text, "{name}_sum{{operation=\"{operation}\"}} {sum}")?;
    writeln!(text, "{name}_count{{operation=\"{operation}\"}} {count}")
}
