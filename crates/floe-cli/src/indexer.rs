//! `floe indexer`: writes the feed of an event table.

mod lambda;
mod metrics;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use floe::changes::lambda::Runtime;
use floe::events::EventStore;
use floe::events::feed::indexer::{IndexerProgress, IndexerStep};
use floe::events::feed::limits::BATCH_RECORDS_CAP;
use floe::events::feed::{
    Checkpoint, Indexer, IndexerOptions, IndexerSummary, Partition, Partitions,
};
use floe::{Error, ErrorKind};
use floe_server::ServerHandle;
use floe_store::Error as StoreError;
use floe_store::env::Stopwatch;

use self::metrics::IndexerMetrics;
use super::serve::parse_listen;
use super::telemetry::Export;
use crate::{
    EventTable, Failure, Result, Signals, block_on, describe, events_table, note, parse_duration,
    print_status, validated,
};

/// Minimum time between two log lines.
const LOG_INTERVAL: Duration = Duration::from_secs(5);

/// The pause between two attempts to reach the store.
const WAIT: Duration = Duration::from_millis(500);

/// Write the feed of an event table, from which consumers read
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe indexer --table shop --aws                 Amazon DynamoDB
  floe indexer --table shop --region eu-central-1 --profile shop --partitions 4
  floe indexer --endpoint http://127.0.0.1:8000   a table behind `floe serve`
  floe indexer --data ./orders --once             a directory; exit when caught up
  floe indexer --table shop --aws --metrics 9464  with Prometheus metrics at http://127.0.0.1:9464/metrics

The indexer waits until its server can be reached, so both can be started in any order; with --once it fails instead. \
`floe events create` creates the event table.

The index table <NAME>-index is created if it does not exist. The number of partitions is set when the feed is created and \
never changes. Any number of indexers may run for a table, with the same or different names: no event is duplicated, and none \
is lost when an indexer dies.

DynamoDB keeps change records for 24 hours. If no indexer ran for that long, some may be lost: the indexer reports it and \
exits. With --accept-trimmed it continues; missed events of a stream enter the feed with the next append to the stream.

In AWS Lambda, the program is a custom runtime: deploy it as `bootstrap`, and set the options in the environment \
(FLOE_TABLE, FLOE_TABLE_PREFIX, FLOE_PARTITIONS, FLOE_BATCH_MAX, FLOE_REPORT_BATCH_ITEM_FAILURES).

Stop with Ctrl-C. Exit codes: 0 stopped, or caught up with --once; 1 failure; 2 usage error.")]
pub(super) struct IndexerCommand {
    /// Number of partitions of the feed [default: that of the existing feed, or 1]
    #[arg(long, value_name = "N", env = "FLOE_PARTITIONS")]
    partitions: Option<NonZeroU32>,

    /// Name under which the indexer stores its positions
    #[arg(long, value_name = "NAME", default_value = "0", value_parser = parse_name)]
    name: String,

    /// Maximum number of change records per step
    #[arg(long, value_name = "N", default_value = "1000", env = "FLOE_BATCH_MAX",
          value_parser = clap::value_parser!(u32).range(1..=BATCH_RECORDS_CAP as i64))]
    batch_max: u32,

    /// Pause when there are no new change records: 500ms, 1s, 2m
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = parse_duration)]
    poll: Duration,

    /// Continue after a loss of unread change records; their events enter the feed later, or never
    #[arg(long)]
    accept_trimmed: bool,

    /// Exit when all events appended before the start are in the feed
    #[arg(long)]
    once: bool,

    /// Port, or address and port, on which to expose Prometheus metrics at /metrics: records, events, lag, epochs, failures
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    metrics: Option<SocketAddr>,

    /// In Lambda: report the first failed change instead of failing the batch; without ReportBatchItemFailures in the
    /// event source mapping, changes are lost
    #[arg(long, env = "FLOE_REPORT_BATCH_ITEM_FAILURES")]
    report_batch_item_failures: bool,

    #[command(flatten)]
    events: EventTable,
}

impl IndexerCommand {
    pub(super) fn run(&self) -> Result {
        let export = Export::begin("floe-indexer")?;
        let result = match Runtime::from_env() {
            Ok(here) => block_on(Box::pin(lambda::serve(here, self))),
            Err(_) => self.events.run(async |store| self.index(store).await),
        };
        export.end();
        result
    }

    async fn index(&self, store: &EventStore) -> Result {
        let signals = Signals::new()?;
        let options = tokio::select! {
            options = self.wait_for_store(store) => options?,
            // Nothing is in progress, so the note about it is not printed.
            () = Signals::new()?.first() => {
                note("stopped before the store could be reached");
                return Ok(());
            }
        };
        let log = ProgressLog::default();
        let metrics = IndexerMetrics::new(&self.events.table, &self.name);
        let server = self.serve_metrics(&metrics).await?;
        let indexer = store.indexer(options).map_err(Failure::usage)?;
        let mut indexer = indexer.on_progress(move |progress| {
            metrics.record(&progress);
            log.record(&progress);
        });
        let result = if self.once {
            self.catch_up(&mut indexer, signals).await
        } else {
            self.run_until_stopped(&mut indexer, signals).await
        };
        if let Some(server) = server {
            server.shutdown().await;
        }
        result
    }

    /// Prepares the tables, and waits until the store can be reached. With `--once`, fails if it cannot.
    async fn wait_for_store(&self, store: &EventStore) -> Result<IndexerOptions> {
        let mut since_logged: Option<Stopwatch> = None;
        loop {
            let message = match self.prepare(store).await {
                Err(Failure::Unreachable(message)) if !self.once => message,
                prepared => return prepared,
            };
            if since_logged.is_none_or(|since| since.elapsed() >= LOG_INTERVAL) {
                since_logged = Some(Stopwatch::start());
                note(&format!("waiting for the store: {message}"));
            }
            tokio::time::sleep(WAIT).await;
        }
    }

    /// Checks the event table, and creates the index table. Returns the options.
    async fn prepare(&self, store: &EventStore) -> Result<IndexerOptions> {
        check_stream(store, &self.events.table).await?;
        self.ensure_index(store).await?;
        self.options(store).await
    }

    /// Serves the metrics, if `--metrics` was given.
    async fn serve_metrics(&self, metrics: &IndexerMetrics) -> Result<Option<ServerHandle>> {
        let Some(listen) = self.metrics else {
            return Ok(None);
        };
        let server = metrics.serve(listen).await?;
        print_status(&format!(
            "metrics on http://{}/metrics",
            server.local_addr()
        ))?;
        Ok(Some(server))
    }

    async fn catch_up(&self, indexer: &mut Indexer, signals: Signals) -> Result {
        tokio::select! {
            indexed = indexer.run_until_caught_up() => {
                let IndexerSummary { events, records, .. } = indexed.map_err(feed_failure)?;
                print_status(&format!("caught up: events={events} records={records}"))
            }
            () = signals.stop() => {
                note("stopped before it caught up");
                Ok(())
            }
        }
    }

    async fn run_until_stopped(&self, indexer: &mut Indexer, signals: Signals) -> Result {
        let table = &self.events.table;
        print_status(&format!(
            "indexing {table} into {table}-index (name: {}, {})",
            self.name, self.events
        ))?;
        let indexed = indexer.run(signals.stop()).await.map_err(feed_failure)?;
        let (events, records) = (indexed.events, indexed.records);
        note(&format!("stopped: events={events} records={records}"));
        Ok(())
    }

    /// Creates the index table, if it does not exist.
    async fn ensure_index(&self, store: &EventStore) -> Result {
        let index = store.feed_index();
        let table = &index.options().table;
        if describe(store.db(), table).await?.is_none() {
            note(&format!("creating the index table: table={table}"));
        }
        store.ensure_feed().await.map_err(feed_failure)
    }

    /// The options of the indexer, with the number of partitions of the existing feed.
    async fn options(&self, store: &EventStore) -> Result<IndexerOptions> {
        let existing = store.feed_partitions().await.map_err(feed_failure)?;
        let partitions = match (existing, self.partitions.map(Partitions::new)) {
            (Some(existing), Some(requested)) if existing != requested => {
                return Err(Failure::usage(format!(
                    "the number of partitions of a feed cannot be changed: \
                                         partitions={} requested={}; omit --partitions",
                    existing.count(),
                    requested.count()
                )));
            }
            (existing, requested) => existing.or(requested).unwrap_or_default(),
        };
        let options = IndexerOptions::new()
            .name(self.name.as_str())
            .partitions(partitions)
            .batch_max(usize::try_from(self.batch_max).unwrap_or(usize::MAX))
            .poll(self.poll);
        Ok(if self.accept_trimmed {
            options.accept_trimmed()
        } else {
            options
        })
    }
}

/// Checks that the table is an event table with a change stream that has new images.
async fn check_stream(store: &EventStore, table: &str) -> Result {
    let described = events_table(store).await?;
    let specification = "StreamEnabled=true,StreamViewType=NEW_IMAGE";
    match described.definition.stream {
        Some(view) if view.has_new() => Ok(()),
        Some(view) => Err(Failure::failed(format!(
            "the change stream of the table has no new images: table={table} view={}; replace it by one with {specification}",
            view.as_str()
        ))),
        // Change records from before it was disabled can be read for 24 hours.
        None if described.latest_stream.is_some() => {
            note(&format!(
                "the change stream of the table is disabled: events appended now do not enter the feed: table={table}"
            ));
            Ok(())
        }
        None => Err(Failure::failed(format!(
            "the table has no change stream: table={table}; `floe events create` enables one with NEW_IMAGE"
        ))),
    }
}

/// The failure for an error of the feed, with a hint.
pub(super) fn feed_failure(error: Error) -> Failure {
    if let Some(StoreError::Unreachable(_)) = error.store_error() {
        return Failure::from(error);
    }
    let hint = match error.kind() {
        ErrorKind::MissingEvents => {
            "; `floe indexer --accept-trimmed` continues with the events that the streams still have"
        }
        ErrorKind::Table => "; `floe indexer` creates the tables of a feed",
        _ => "",
    };
    Failure::failed(format!("{error}{hint}"))
}

/// Logs the progress of an indexer, at most every [`LOG_INTERVAL`].
#[derive(Default)]
struct ProgressLog(Mutex<ProgressState>);

#[derive(Default)]
struct ProgressState {
    /// Started with the last line.
    since_logged: Option<Stopwatch>,
    indexed: IndexerSummary,
    /// The value of `indexed` in the last line.
    logged: IndexerSummary,
    checkpoints: BTreeMap<Partition, Checkpoint>,
}

impl ProgressLog {
    fn record(&self, progress: &IndexerProgress<'_>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line = match progress {
            IndexerProgress::StepCompleted(stepped) => state.step(stepped),
            IndexerProgress::Failed { error, pause } => Some(format!(
                "a step failed and is retried: pause={pause:.1?} error={error}"
            )),
            _ => None,
        };
        let Some(line) = line else { return };
        let is_due = state
            .since_logged
            .is_none_or(|since| since.elapsed() >= LOG_INTERVAL);
        if is_due {
            state.since_logged = Some(Stopwatch::start());
            state.logged = state.indexed;
            note(&line);
        }
    }
}

impl ProgressState {
    /// Records a step. Returns the log line, if anything was indexed since the last line.
    fn step(&mut self, stepped: &IndexerStep) -> Option<String> {
        self.indexed.events += stepped.indexed.events;
        self.indexed.records += stepped.indexed.records;
        self.checkpoints.extend(&stepped.checkpoints);
        let (events, records) = (self.indexed.events, self.indexed.records);
        (self.logged != self.indexed).then(|| {
            format!(
                "indexed events={events} records={records} at={} lag={}s",
                self.checkpoints_text(),
                stepped.lag.as_secs()
            )
        })
    }

    /// The checkpoints at the end of the feed: `3@12`, or with several partitions `0:3@12,1:2@7`.
    fn checkpoints_text(&self) -> String {
        let mut texts = Vec::new();
        for (partition, checkpoint) in &self.checkpoints {
            texts.push(match (self.checkpoints.len(), partition.number()) {
                (1, 0) => checkpoint.to_string(),
                _ => format!("{partition}:{checkpoint}"),
            });
        }
        texts.join(",")
    }
}

/// Parses the name of an indexer, which becomes part of the name of a stream.
fn parse_name(text: &str) -> Result<String, String> {
    let is_valid = !text.is_empty() && !text.contains(['_', ' ']);
    validated(
        text,
        is_valid,
        "a name cannot be empty or contain _ or spaces",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_cannot_be_empty_or_contain_separators() {
        assert_eq!(parse_name("eu-1"), Ok("eu-1".to_owned()));
        for text in ["", "a_b", "a b"] {
            assert!(parse_name(text).is_err(), "{text}");
        }
    }
}
