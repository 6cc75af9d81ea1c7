//! The figures in the text format of Prometheus, version 0.0.4.

use std::fmt::{self, Write};

use super::{BUCKETS_MICROS, Figures, Metrics};

impl Metrics {
    /// All figures of operations that were asked for, and how many connections there are.
    pub(crate) fn text(&self, connections: usize) -> String {
        let mut text = String::with_capacity(4096);
        // Writing to text does not fail.
        _ = self.write(&mut text, connections);
        text
    }

    fn write(&self, text: &mut String, connections: usize) -> fmt::Result {
        let asked = self.operations.iter().filter_map(|(name, _)| {
            let figures = self.figures(name)?;
            (figures.count > 0).then(|| (*name, figures.clone()))
        });
        let asked: Vec<(&str, Figures)> = asked.collect();
        let about = "Connections that are open.";
        head(text, "floe_connections", "gauge", about)?;
        writeln!(text, "floe_connections {connections}")?;
        let about =
            "Requests by operation, and by what came of them: ok, or the name of the error.";
        head(text, "floe_requests_total", "counter", about)?;
        for (operation, figures) in &asked {
            for (outcome, count) in &figures.outcomes {
                let labels = format!("operation=\"{operation}\",outcome=\"{outcome}\"");
                writeln!(text, "floe_requests_total{{{labels}}} {count}")?;
            }
        }
        let about = "How long requests took, from the body to the answer.";
        head(text, "floe_request_seconds", "histogram", about)?;
        for (operation, figures) in &asked {
            histogram(text, operation, figures)?;
        }
        let about = "Transactions that were canceled, by the reasons of their items; each reason counts once.";
        head(text, "floe_canceled_transactions_total", "counter", about)?;
        for (reason, count) in &*self.canceled() {
            let labels = format!("reason=\"{reason}\"");
            writeln!(text, "floe_canceled_transactions_total{{{labels}}} {count}")?;
        }
        let about = "Capacity units that requests have consumed.";
        head(text, "floe_consumed_capacity_units_total", "counter", about)?;
        for (operation, figures) in &asked {
            for (kind, units) in [("read", figures.read), ("write", figures.write)] {
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

/// What goes before the lines of a figure.
pub fn head(text: &mut String, name: &str, kind: &str, about: &str) -> fmt::Result {
    writeln!(text, "# HELP {name} {about}\n# TYPE {name} {kind}")
}

/// The buckets of Prometheus hold what the smaller ones hold too.
fn histogram(text: &mut String, operation: &str, figures: &Figures) -> fmt::Result {
    let name = "floe_request_seconds";
    let mut below = 0;
    for (end, count) in BUCKETS_MICROS.iter().zip(figures.buckets) {
        below += count;
        let end = std::time::Duration::from_micros(*end).as_secs_f64();
        writeln!(
            text,
            "{name}_bucket{{operation=\"{operation}\",le=\"{end}\"}} {below}"
        )?;
    }
    let (count, sum) = (figures.count, figures.sum.as_secs_f64());
    writeln!(
        text,
        "{name}_bucket{{operation=\"{operation}\",le=\"+Inf\"}} {count}"
    )?;
    writeln!(text, "{name}_sum{{operation=\"{operation}\"}} {sum}")?;
    writeln!(text, "{name}_count{{operation=\"{operation}\"}} {count}")
}
