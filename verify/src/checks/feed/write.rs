//! Writers: tasks that append to streams with every method of the API, and record the outcomes.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use clap::Args;
use floe::ErrorKind;
use floe::events::{EventStore, Expected, StreamName};
use floe_store::env::SeededRandom;
use floe_testkit::fault::Faults;
use tokio::task::JoinSet;

use super::config::{self, Files, ProcessArgs, is_pruned, runtime};
use super::entry::{Account, Entry, custom, folded, snapshot, tally, transaction_key};
use super::journal::{Journal, Run};
use super::prune::Pruner;
use crate::Failure;
use crate::checks::join_all;
use crate::checks::role::Role;
use crate::checks::test_table::splitmix64;

/// The name of the role.
pub(crate) const ROLE: &str = "feed-write";

/// Number of tasks of a process.
const TASKS: u64 = 12;
/// Maximum number of events of an append.
const EVENTS_MAX: u64 = 9;

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct WriterRole {
    #[command(flatten)]
    args: ProcessArgs,
    #[arg(long)]
    streams: u64,
    #[arg(long)]
    events: i64,
}

impl Role for WriterRole {
    const NAME: &str = ROLE;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure> {
        let Self {
            args,
            streams,
            events,
        } = self;
        runtime()?.block_on(async {
            let faults = Faults::seeded(args.seed)
                .throttle(0.01)
                .lost_before(0.005)
                .lost_after(0.01);
            let (db, _) = args.connect(faults).await?;
            let store = config::store(&db);
            let left = Arc::new(AtomicI64::new(events));
            let mut tasks = JoinSet::new();
            for task in 0..TASKS {
                let number = args.number * TASKS + task;
                let writer = Writer {
                    store: store.clone(),
                    files: args.files.clone(),
                    journal: Journal::open(&args.files.written())?,
                    random: SeededRandom::new(splitmix64(args.seed ^ number)),
                    streams,
                    next: (number + 1) << 32,
                };
                tasks.spawn(writer.run(Arc::clone(&left)));
            }
            let pruner = Pruner::new(store, &args)?;
            let pruning = tokio::spawn(pruner.run());
            join_all(tasks).await?;
            pruning.abort();
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// A writer task.
struct Writer {
    store: EventStore,
    files: Files,
    journal: Journal,
    random: SeededRandom,
    streams: u64,
    /// The next unused number; each task has its own range.
    next: u64,
}

impl Writer {
    async fn run(mut self, left: Arc<AtomicI64>) -> Result<(), Failure> {
        while left.load(Ordering::Relaxed) > 0 {
            let acked = self.step().await?;
            left.fetch_sub(i64::try_from(acked).unwrap_or(i64::MAX), Ordering::Relaxed);
        }
        Ok(())
    }

    /// Appends to a random stream. Returns the number of acknowledged events.
    async fn step(&mut self) -> Result<u64, Failure> {
        let count = 1 + self.random.below(EVENTS_MAX);
        let numbers: Vec<u64> = (self.next..self.next + count).collect();
        self.next += count;
        // Streams have different lengths.
        let stream = self.random.below(self.streams);
        let stream = stream.min(self.random.below(self.streams)).to_string();
        match self.random.below(8) {
            0..=2 => self.append(&stream, numbers).await,
            3..=5 => self.decide(&stream, numbers).await,
            6 => self.write_snapshot(&stream).await,
            _ => {
                self.append_in_transaction(&format!("p{stream}"), numbers)
                    .await
            }
        }
    }

    /// Appends without a decider: at any version, or at the version just read.
    async fn append(&self, id: &str, numbers: Vec<u64>) -> Result<u64, Failure> {
        let stream = StreamName::new("Raw", id)?;
        let is_exact = self.random.below(3) == 0;
        let appended = async {
            let expected = if is_exact {
                Expected::Exact(self.store.version(&stream).await?)
            } else {
                Expected::Any
            };
            let start = match expected {
                Expected::Exact(version) => Some(version),
                _ => None,
            };
            let events = (0..).zip(&numbers).map(|(offset, number)| {
                let index = start.map(|start| start + offset);
                Entry::noted(&stream, index, *number).data()
            });
            let events = events.collect::<floe::Result<Vec<_>>>()?;
            let version = self.store.append(&stream, expected, events).await?;
            Ok(version - numbers.len() as u64)
        };
        let appended = appended.await;
        self.ended(&stream, numbers, appended)
    }

    /// Appends by a decision, with one of the access strategies.
    async fn decide(&self, id: &str, numbers: Vec<u64>) -> Result<u64, Failure> {
        let name = StreamName::new("Account", id)?;
        let stream = self.store.stream::<Account>(id);
        let stream = match self.random.below(3) {
            0 => stream.access(snapshot()),
            // The state of a pruned stream is only in its snapshot.
            1 if !is_pruned(&name) => stream,
            _ => stream.access(custom()),
        };
        let decided = stream.transact_versioned(|digest| {
            let noted = (digest.entries..).zip(&numbers);
            let noted = noted.map(|(index, number)| Entry::noted(&name, Some(index), *number));
            Ok::<_, floe::Error>(noted.collect::<Vec<_>>())
        });
        let decided = decided.await;
        let start = decided.map(|((), version)| version - numbers.len() as u64);
        self.ended(&name, numbers, start)
    }

    /// Writes a snapshot without an event.
    async fn write_snapshot(&self, id: &str) -> Result<u64, Failure> {
        let stream = self.store.stream::<Account>(id).access(custom());
        let written = stream.transact(|digest| {
            let is_there = digest.entries > 0;
            Ok::<_, floe::Error>(is_there.then(|| folded(digest)))
        });
        match written.await {
            Err(error) if !config::is_transient(&error) => self.note(&error)?,
            _ => {}
        }
        Ok(0)
    }

    /// Appends in a transaction that also writes a model.
    async fn append_in_transaction(&self, id: &str, numbers: Vec<u64>) -> Result<u64, Failure> {
        let name = StreamName::new("Account", id)?;
        let (store, noted) = (&self.store, &numbers);
        let committed = store.db().transact(async |tx| {
            let mut stream = tx.stream_in::<Account>(store, id).await?;
            let start = stream.state().entries;
            let events = (start..).zip(noted);
            stream
                .append(events.map(|(index, number)| Entry::noted(&name, Some(index), *number)))?;
            tally(tx, transaction_key(&name), noted).await?;
            Ok::<_, floe::Error>(start)
        });
        let committed = committed.await;
        self.ended(&name, numbers, committed)
    }

    /// Records the outcome of an append.
    fn ended(
        &self,
        stream: &StreamName,
        numbers: Vec<u64>,
        start: floe::Result<u64>,
    ) -> Result<u64, Failure> {
        let count = numbers.len() as u64;
        let run = |start| Run {
            stream: stream.to_string(),
            start,
            numbers,
        };
        match start {
            Ok(start) => {
                self.journal.append(format_args!("acked {}", run(start)))?;
                return Ok(count);
            }
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {
                self.journal.append(format_args!("unknown {}", run(0)))?;
            }
            Err(error) if config::is_transient(&error) => {
                self.journal.append(format_args!("refused {}", run(0)))?;
            }
            Err(error) => self.note(&error)?,
        }
        Ok(0)
    }

    fn note(&self, error: &floe::Error) -> Result<(), Failure> {
        config::note(&self.files, &format!("writer: {error}"))
    }
}
