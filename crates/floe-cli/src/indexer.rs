//! `floe indexer`: brings what was appended to a table of events to its feed.

mod figures;
mod lambda;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use floe::changes::lambda::Runtime;
use floe::events::EventStore;
use floe::events::feed::indexer::{Progress, Stepped};
use floe::events::feed::limits::BATCH_RECORDS_CAP;
use floe::events::feed::{Checkpoint, Indexed, Indexer, IndexerOptions, Partition, Partitions};
use floe::{Error, ErrorKind};
use floe_server::Running;
use floe_store::Error as StoreError;
use floe_store::env::Stopwatch;

use self::figures::Figures;
use super::serve::parse_listen;
use super::telemetry::Export;
use crate::{
    Failure, Place, Result, Signals, checked, describe, events_table, note, parse_duration, say,
    wait_for,
};

/// How long there is nothing to be read of it, at least.
const NOTES_APART: Duration = Duration::from_secs(5);

/// Bring what is appended to a table of events to its feed, from which consumers read
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  floe indexer --table shop                       Amazon DynamoDB, as the environment says
  floe indexer --table shop --region eu-central-1 --profile shop --partitions 4
  floe indexer --endpoint http://127.0.0.1:8000   a table behind `floe serve`
  floe indexer --data ./orders --once             a directory, up to date and no further
  floe indexer --table shop --metrics 9464        with figures for Prometheus at http://127.0.0.1:9464/metrics

The index table <NAME>-index is made if it is missing. How many partitions the feed has is said when it is begun and \
stays so. Any number of indexers may run for a table, under one name or under several: nothing is told twice, and \
nothing is lost when one dies.

DynamoDB keeps changes for a day. If no indexer ran for so long, some may be gone: the indexer says so and ends. With \
--accept-trimmed it goes on; the events of a stream that were missed are brought once something is appended to it.

In AWS Lambda the program is a custom runtime: deploy it as `bootstrap`, and give it the options in the environment \
(FLOE_TABLE, FLOE_TABLE_PREFIX, FLOE_PARTITIONS, FLOE_BATCH_MAX, FLOE_REPORT_BATCH_ITEM_FAILURES).

Ctrl-C ends it. Exit codes: 0 stopped, or caught up with --once; 1 it could not go on; 2 called wrongly.")]
pub(super) struct IndexerCommand {
    /// How many partitions the feed has [default: as it was begun, or 1]
    #[arg(long, value_name = "N", env = "FLOE_PARTITIONS")]
    partitions: Option<NonZeroU32>,

    /// What its position is stored under
    #[arg(long, value_name = "NAME", default_value = "0", value_parser = parse_name)]
    name: String,

    /// How many changes are brought to the feed at once, at most
    #[arg(long, value_name = "N", default_value = "1000", env = "FLOE_BATCH_MAX",
          value_parser = clap::value_parser!(u32).range(1..=BATCH_RECORDS_CAP as i64))]
    batch_max: u32,

    /// How long to wait where there is nothing new: 500ms, 1s, 2m
    #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = parse_duration)]
    poll: Duration,

    /// Go on where changes are gone that were not read; their events come later into the feed, or not at all
    #[arg(long)]
    accept_trimmed: bool,

    /// End when everything is in the feed that was appended before
    #[arg(long)]
    once: bool,

    /// Tell figures for Prometheus at http://ADDRESS/metrics: records, events, lag, epochs, failures; a port of this machine,
    /// or an address and a port
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    metrics: Option<SocketAddr>,

    /// In Lambda: answer with the first change that failed, instead of failing; the mapping must have
    /// ReportBatchItemFailures, or changes are lost
    #[arg(long, env = "FLOE_REPORT_BATCH_ITEM_FAILURES")]
    report_batch_item_failures: bool,

    #[command(flatten)]
    place: Place,
}

impl IndexerCommand {
    pub(super) fn run(&self) -> Result {
        let export = Export::begin("floe-indexer")?;
        let ran = match Runtime::here() {
            Ok(here) => wait_for(Box::pin(lambda::serve(here, self))),
            Err(_) => self.place.run(async |store| self.index(store).await),
        };
        export.end();
        ran
    }

    async fn index(&self, store: &EventStore) -> Result {
        let signals = Signals::new()?;
        check_stream(store, &self.place.table).await?;
        self.ensure_index(store).await?;
        let options = self.options(store).await?;
        let notes = Notes::default();
        let figures = Figures::new(&self.place.table, &self.name);
        let serving = self.serve(&figures).await?;
        let indexer = store.indexer(options).map_err(Failure::usage)?;
        let mut indexer = indexer.watched_by(move |progress| {
            figures.take(&progress);
            notes.take(&progress);
        });
        let done = match self.once {
            true => self.catch_up(&mut indexer, signals).await,
            false => self.keep_up(&mut indexer, signals).await,
        };
        if let Some(serving) = serving {
            serving.shutdown().await;
        }
        done.map_err(explained)
    }

    /// Serves figures, if that is wanted.
    async fn serve(&self, figures: &Figures) -> Result<Option<Running>> {
        let Some(listen) = self.metrics else {
            return Ok(None);
        };
        let serving = figures.serve(listen).await?;
        say(&format!(
            "figures on http://{}/metrics",
            serving.local_addr()
        ));
        Ok(Some(serving))
    }

    async fn catch_up(&self, indexer: &mut Indexer, signals: Signals) -> Result<(), Error> {
        tokio::select! {
            indexed = indexer.run_until_caught_up() => {
                let Indexed { events, records, .. } = indexed?;
                say(&format!("caught up: events={events} records={records}"));
            }
            () = signals.stop() => note("stopped before it had caught up"),
        }
        Ok(())
    }

    async fn keep_up(&self, indexer: &mut Indexer, signals: Signals) -> Result<(), Error> {
        let table = &self.place.table;
        say(&format!(
            "indexing {table} into {table}-index (name: {}, {})",
            self.name, self.place
        ));
        let indexed = indexer.run(signals.stop()).await?;
        let (events, records) = (indexed.events, indexed.records);
        note(&format!("stopped: events={events} records={records}"));
        Ok(())
    }

    /// Makes the index table, if it is missing.
    async fn ensure_index(&self, store: &EventStore) -> Result {
        let index = store.feed_index();
        let table = &index.options().table;
        if describe(store.db(), table).await?.is_none() {
            note(&format!(
                "there is no index table yet, it is made: table={table}"
            ));
        }
        store.ensure_feed().await.map_err(Failure::broken)
    }

    /// How to index, with the partitions that the feed has.
    async fn options(&self, store: &EventStore) -> Result<IndexerOptions> {
        let begun = store.feed_partitions().await.map_err(explained)?;
        let partitions = match (begun, self.partitions.map(Partitions::new)) {
            (Some(begun), Some(asked)) if begun != asked => {
                return Err(Failure::usage(format!(
                    "the feed was begun with another number of partitions, which stays: \
                     partitions={} asked={}; leave --partitions out",
                    begun.count(),
                    asked.count()
                )));
            }
            (begun, asked) => begun.or(asked).unwrap_or_default(),
        };
        let options = IndexerOptions::new()
            .name(self.name.as_str())
            .partitions(partitions)
            .batch_max(usize::try_from(self.batch_max).unwrap_or(usize::MAX))
            .poll(self.poll);
        Ok(match self.accept_trimmed {
            true => options.accept_trimmed(),
            false => options,
        })
    }
}

/// Sees that there are events, and records of their changes.
async fn check_stream(store: &EventStore, table: &str) -> Result {
    let described = events_table(store).await?;
    let switch_on = "StreamEnabled=true,StreamViewType=NEW_IMAGE";
    match described.definition.stream {
        Some(view) if view.has_new() => Ok(()),
        Some(view) => Err(Failure::broken(format!(
            "the change stream of the table has no new images: table={table} view={}; make another with {switch_on}",
            view.as_str()
        ))),
        // What was recorded before it was switched off can be read for a day.
        None if described.latest_stream.is_some() => {
            note(&format!(
                "the change stream of the table is switched off, and what is appended now is lost to the feed: \
                 table={table}"
            ));
            Ok(())
        }
        None => Err(Failure::broken(format!(
            "the table has no change stream: table={table}; switch it on with \
             aws dynamodb update-table --stream-specification {switch_on}"
        ))),
    }
}

/// A failure, with what to do about it.
pub(super) fn explained(error: Error) -> Failure {
    if let Some(StoreError::Unreachable(_)) = error.store_error() {
        return Failure::from(error);
    }
    let advice = match error.kind() {
        ErrorKind::MissingEvents => {
            "; `floe indexer --accept-trimmed` goes on, with what the streams still have"
        }
        ErrorKind::Table => "; `floe indexer` makes the tables of a feed",
        _ => "",
    };
    Failure::broken(format!("{error}{advice}"))
}

/// Notes on how far an indexer has come, some seconds apart.
#[derive(Default)]
struct Notes(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    /// Since the last note.
    since: Option<Stopwatch>,
    indexed: Indexed,
    /// What was indexed when the last note was made.
    noted: Indexed,
    checkpoints: BTreeMap<Partition, Checkpoint>,
}

impl Notes {
    fn take(&self, progress: &Progress<'_>) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line = match progress {
            Progress::Stepped(stepped) => noted.step(stepped),
            Progress::Failed { error, pause } => Some(format!(
                "a step has failed and is tried again: pause={pause:.1?} error={error}"
            )),
            _ => None,
        };
        let Some(line) = line else { return };
        let is_due = noted
            .since
            .is_none_or(|since| since.elapsed() >= NOTES_APART);
        if is_due {
            noted.since = Some(Stopwatch::start());
            noted.noted = noted.indexed;
            note(&line);
        }
    }
}

impl Noted {
    /// The note on a step, if there is anything to say since the last.
    fn step(&mut self, stepped: &Stepped) -> Option<String> {
        self.indexed.events += stepped.indexed.events;
        self.indexed.records += stepped.indexed.records;
        self.checkpoints.extend(&stepped.checkpoints);
        let (events, records) = (self.indexed.events, self.indexed.records);
        (self.noted != self.indexed).then(|| {
            format!(
                "indexed events={events} records={records} at={} lag={}s",
                self.places(),
                stepped.lag.as_secs()
            )
        })
    }

    /// Where the feed ends: `3@12`, or with several partitions `0:3@12,1:2@7`.
    fn places(&self) -> String {
        let mut places = Vec::new();
        for (partition, checkpoint) in &self.checkpoints {
            places.push(match (self.checkpoints.len(), partition.number()) {
                (1, 0) => checkpoint.to_string(),
                _ => format!("{partition}:{checkpoint}"),
            });
        }
        places.join(",")
    }
}

/// A name that a position can be stored under.
fn parse_name(text: &str) -> Result<String, String> {
    let is_fit = !text.is_empty() && !text.contains(['_', ' ']);
    checked(text, is_fit, "not a name: it has no _ and no space")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_can_be_stored() {
        assert_eq!(parse_name("eu-1"), Ok("eu-1".to_owned()));
        for text in ["", "a_b", "a b"] {
            assert!(parse_name(text).is_err(), "{text}");
        }
    }
}
