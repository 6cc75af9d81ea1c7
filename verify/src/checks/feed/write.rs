//! Writers: tasks that append to streams in all the ways there are, and take note of what was acknowledged.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use clap::Args;
use floe::ErrorKind;
use floe::events::{EventStore, Expected, StreamName};
use floe_store::env::SeededRandom;
use floe_testkit::fault::Faults;
use tokio::task::JoinSet;

use super::entry::{Account, Entry, beside_key, custom, folded, snapshot, tally};
use super::journal::{Journal, Run};
use super::prune::Pruner;
use super::setting::{self, Files, Orders, is_pruned, runtime};
use crate::Failure;
use crate::checks::join_all;
use crate::checks::role::Role;
use crate::checks::stage::mixed;

/// The name of the role.
pub(crate) const ROLE: &str = "feed-write";

/// How many tasks a process has.
const TASKS: u64 = 12;
/// The most events of an append.
const EVENTS_MAX: u64 = 9;

/// What the process is told.
#[derive(Debug, Args)]
pub(in crate::checks) struct Writing {
    #[command(flatten)]
    orders: Orders,
    #[arg(long)]
    streams: u64,
    #[arg(long)]
    events: i64,
}

impl Role for Writing {
    const NAME: &str = ROLE;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure> {
        let Self {
            orders,
            streams,
            events,
        } = self;
        runtime()?.block_on(async {
            let faults = Faults::seeded(orders.seed)
                .throttle(0.01)
                .lost_before(0.005)
                .lost_after(0.01);
            let (db, _) = orders.connect(faults).await?;
            let store = setting::store(&db);
            let left = Arc::new(AtomicI64::new(events));
            let mut tasks = JoinSet::new();
            for task in 0..TASKS {
                let number = orders.number * TASKS + task;
                let writer = Writer {
                    store: store.clone(),
                    files: orders.files.clone(),
                    journal: Journal::open(&orders.files.written())?,
                    random: SeededRandom::new(mixed(orders.seed ^ number)),
                    streams,
                    next: (number + 1) << 32,
                };
                tasks.spawn(writer.run(Arc::clone(&left)));
            }
            let pruner = Pruner::new(store, &orders)?;
            let pruning = tokio::spawn(pruner.run());
            join_all(tasks).await?;
            pruning.abort();
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// A task.
struct Writer {
    store: EventStore,
    files: Files,
    journal: Journal,
    random: SeededRandom,
    streams: u64,
    /// The next number that nobody else has.
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

    /// Appends somewhere, and tells how many events were acknowledged.
    async fn step(&mut self) -> Result<u64, Failure> {
        let count = 1 + self.random.below(EVENTS_MAX);
        let numbers: Vec<u64> = (self.next..self.next + count).collect();
        self.next += count;
        // Some streams are longer than others.
        let place = self.random.below(self.streams);
        let place = place.min(self.random.below(self.streams)).to_string();
        match self.random.below(8) {
            0..=2 => self.append(&place, numbers).await,
            3..=5 => self.decide(&place, numbers).await,
            6 => self.touch(&place).await,
            _ => self.append_beside(&format!("p{place}"), numbers).await,
        }
    }

    /// Without a decider: at whatever version, or at the one that was just read.
    async fn append(&self, id: &str, numbers: Vec<u64>) -> Result<u64, Failure> {
        let stream = StreamName::new("Raw", id)?;
        let is_exact = self.random.below(3) == 0;
        let appended = async {
            let expected = match is_exact {
                true => Expected::Exact(self.store.version(&stream).await?),
                false => Expected::Any,
            };
            let start = match expected {
                Expected::Exact(version) => Some(version),
                _ => None,
            };
            let events = (0..).zip(&numbers).map(|(place, number)| {
                let index = start.map(|start| start + place);
                Entry::noted(&stream, index, *number).data()
            });
            let events = events.collect::<floe::Result<Vec<_>>>()?;
            let version = self.store.append(&stream, expected, events).await?;
            Ok(version - numbers.len() as u64)
        };
        let appended = appended.await;
        self.ended(&stream, numbers, appended)
    }

    /// Upon the state, which is found in one way or another.
    async fn decide(&self, id: &str, numbers: Vec<u64>) -> Result<u64, Failure> {
        let name = StreamName::new("Account", id)?;
        let stream = self.store.stream::<Account>(id);
        let stream = match self.random.below(3) {
            0 => stream.access(snapshot()),
            // Of events that are gone there is only the snapshot.
            1 if !is_pruned(&name) => stream,
            _ => stream.access(custom()),
        };
        let decided = stream.transact_versioned(|fold| {
            let noted = (fold.entries..).zip(&numbers);
            let noted = noted.map(|(index, number)| Entry::noted(&name, Some(index), *number));
            Ok::<_, floe::Error>(noted.collect::<Vec<_>>())
        });
        let decided = decided.await;
        let start = decided.map(|((), version)| version - numbers.len() as u64);
        self.ended(&name, numbers, start)
    }

    /// Writes a snapshot and no event.
    async fn touch(&self, id: &str) -> Result<u64, Failure> {
        let stream = self.store.stream::<Account>(id).access(custom());
        let touched = stream.transact(|fold| {
            let is_there = fold.entries > 0;
            Ok::<_, floe::Error>(is_there.then(|| folded(fold)))
        });
        match touched.await {
            Err(error) if !setting::passes(&error) => self.note(&error)?,
            _ => {}
        }
        Ok(0)
    }

    /// In a transaction with a model.
    async fn append_beside(&self, id: &str, numbers: Vec<u64>) -> Result<u64, Failure> {
        let name = StreamName::new("Account", id)?;
        let (store, noted) = (&self.store, &numbers);
        let committed = store.db().transact(async |tx| {
            let mut stream = tx.stream_in::<Account>(store, id).await?;
            let start = stream.state().entries;
            let events = (start..).zip(noted);
            stream
                .append(events.map(|(index, number)| Entry::noted(&name, Some(index), *number)))?;
            tally(tx, beside_key(&name), noted).await?;
            Ok::<_, floe::Error>(start)
        });
        let committed = committed.await;
        self.ended(&name, numbers, committed)
    }

    /// Takes note of how an append ended.
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
                self.journal.tell(format_args!("acked {}", run(start)))?;
                return Ok(count);
            }
            Err(error) if error.kind() == ErrorKind::OutcomeUnknown => {
                self.journal.tell(format_args!("unknown {}", run(0)))?;
            }
            Err(error) if setting::passes(&error) => {
                self.journal.tell(format_args!("refused {}", run(0)))?;
            }
            Err(error) => self.note(&error)?,
        }
        Ok(0)
    }

    fn note(&self, error: &floe::Error) -> Result<(), Failure> {
        setting::note(&self.files, &format!("writer: {error}"))
    }
}
