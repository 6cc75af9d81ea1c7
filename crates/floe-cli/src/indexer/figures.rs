//! Figures of an indexer for Prometheus, served by a server of their own with the guard that `floe serve` has.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use floe::events::feed::indexer::{Progress, Stepped};
use floe::events::feed::{Checkpoint, Indexed, Partition};
use floe_server::{Answer, Handler, Options, Running, Server, metrics_head};

use crate::{Failure, Result};

const RECORDS: &str = "Change records that were read.";
const EVENTS: &str = "Events that were new in the feed.";
const STEPS: &str = "Steps that are done.";
const FAILURES: &str = "Steps that have failed, and were tried again.";
const LAG: &str = "How old the last change is that the last step has read.";
const LAST: &str =
    "Change records that the last step has read: as many as --batch-max, if more wait.";

/// What an indexer has done.
#[derive(Clone)]
pub(super) struct Figures {
    /// The labels of all figures.
    labels: String,
    counted: Arc<Mutex<Counted>>,
}

#[derive(Default)]
struct Counted {
    steps: u64,
    failures: u64,
    indexed: Indexed,
    /// How many records the last step has read.
    last: u64,
    lag: Duration,
    checkpoints: BTreeMap<Partition, Checkpoint>,
}

impl Figures {
    pub(super) fn new(table: &str, name: &str) -> Self {
        Self {
            labels: format!("table=\"{table}\",indexer=\"{}\"", escaped(name)),
            counted: Arc::default(),
        }
    }

    pub(super) fn take(&self, progress: &Progress<'_>) {
        let mut counted = self.lock();
        match progress {
            Progress::Stepped(stepped) => counted.step(stepped),
            Progress::Failed { .. } => counted.failures += 1,
            _ => {}
        }
    }

    /// Serves the figures there.
    pub(super) async fn serve(&self, listen: SocketAddr) -> Result<Running> {
        // There is nothing to be had but figures, so nobody has to sign.
        let options = Options::new().listen(listen).insecure(true);
        let server = Server::bind(options, self.clone()).await;
        let server = server
            .map_err(|error| Failure::broken(format!("{error}; choose another with --metrics")))?;
        Ok(server.spawn())
    }

    fn text(&self) -> String {
        let mut text = String::with_capacity(2048);
        // Writing to text does not fail.
        _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        let (counted, labels) = (self.lock(), &self.labels);
        let (records, events) = (counted.indexed.records, counted.indexed.events);
        let figures: [(_, _, _, &dyn fmt::Display); 6] = [
            ("records_total", "counter", RECORDS, &records),
            ("events_total", "counter", EVENTS, &events),
            ("steps_total", "counter", STEPS, &counted.steps),
            ("failures_total", "counter", FAILURES, &counted.failures),
            ("lag_seconds", "gauge", LAG, &counted.lag.as_secs_f64()),
            ("last_step_records", "gauge", LAST, &counted.last),
        ];
        for (name, kind, about, value) in figures {
            let name = format!("floe_indexer_{name}");
            metrics_head(text, &name, kind, about)?;
            writeln!(text, "{name}{{{labels}}} {value}")?;
        }
        let about = "The epoch of a partition that is written to.";
        metrics_head(text, "floe_indexer_epoch", "gauge", about)?;
        for (partition, checkpoint) in &counted.checkpoints {
            let epoch = checkpoint.epoch();
            let labels = format!("{labels},partition=\"{partition}\"");
            writeln!(text, "floe_indexer_epoch{{{labels}}} {epoch}")?;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counted {
    fn step(&mut self, stepped: &Stepped) {
        self.steps += 1;
        self.indexed.records += stepped.indexed.records;
        self.indexed.events += stepped.indexed.events;
        self.last = stepped.indexed.records;
        self.lag = stepped.lag;
        self.checkpoints.extend(&stepped.checkpoints);
    }
}

impl Handler for Figures {
    async fn call(&self, _target: &str, _body: &[u8]) -> Answer {
        Answer::refusal("UnknownOperationException", "there are figures here alone")
    }

    fn refuse(&self, _target: &str, _body: &[u8]) -> Option<Answer> {
        None
    }

    fn metrics(&self, _connections: usize) -> Option<String> {
        Some(self.text())
    }
}

/// The text of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\")
        .replace('"', "\\\"")
        .replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_make_up_figures() {
        let figures = Figures::new("shop", "a\"} 1\nevil{x=\"");
        let text = figures.text();
        let line = r#"floe_indexer_records_total{table="shop",indexer="a\"} 1\nevil{x=\""} 0"#;
        assert!(text.lines().any(|known| known == line), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("evil")), "{text}");
    }
}
