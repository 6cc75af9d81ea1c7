//! What all processes of the check agree on: where things are, and how the store is kept.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use floe::db::ConnectOptions;
use floe::events::feed::{Consumer, EpochLimits, IndexerOptions, Partition, Partitions};
use floe::events::{EventStore, EventStoreOptions, StreamName};
use floe::{Db, ErrorKind};
use floe_testkit::fault::{FaultEngine, Faults};

use super::journal::Journal;
use crate::Failure;
use crate::checks::child;
use crate::checks::planted::Bug;

/// The chains of epochs.
pub(super) const PARTITIONS: Partitions = Partitions::new(NonZeroU32::MIN.saturating_add(3));

/// The group that is told events at least once.
pub(super) const GROUP: &str = "group";
/// The group whose view is exact.
pub(super) const VIEW: &str = "view";

/// How long a process waits where there is nothing to do.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// The files of a run.
#[derive(Clone, Debug)]
pub(super) struct Files(pub(super) PathBuf);

impl Files {
    /// What the server keeps.
    pub(super) fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// What writers did.
    pub(super) fn written(&self) -> PathBuf {
        self.0.join("written")
    }

    /// What was delivered of a partition to the group.
    pub(super) fn delivered(&self, partition: Partition) -> PathBuf {
        self.0.join(format!("delivered-{partition}"))
    }

    /// What a process saw that must not be, or wants counted.
    pub(super) fn notes(&self) -> PathBuf {
        self.0.join("notes")
    }

    /// What the processes say on their standard error.
    pub(super) fn stderr(&self) -> PathBuf {
        self.0.join("stderr")
    }

    /// How far an indexer has come that stores it too early.
    pub(super) fn early_position(&self) -> PathBuf {
        self.0.join("early-position")
    }
}

impl From<OsString> for Files {
    fn from(folder: OsString) -> Self {
        Self(folder.into())
    }
}

/// What a process is told when it is started.
#[derive(Clone, Debug, Args)]
pub(super) struct Orders {
    #[arg(long = "folder")]
    pub(super) files: Files,
    #[arg(long)]
    pub(super) address: String,
    #[arg(long)]
    pub(super) seed: u64,
    /// Which of several in the same role.
    #[arg(long)]
    pub(super) number: u64,
    #[arg(long)]
    pub(super) planted: Option<Bug>,
}

impl Orders {
    /// The process, in a role.
    pub(super) fn command(&self, role: &str) -> std::io::Result<Command> {
        let mut command = child::command_on(role, &self.files.0, self.planted)?;
        command.arg("--address").arg(&self.address);
        command.arg("--seed").arg(self.seed.to_string());
        command.arg("--number").arg(self.number.to_string());
        Ok(command)
    }

    /// The database that the server serves, behind faults.
    pub(super) async fn connect(&self, faults: Faults) -> Result<(Db, Arc<FaultEngine>), Failure> {
        let url = format!("http://{}", self.address);
        let db = Db::connect(ConnectOptions::local(url)).await?;
        let engine = Arc::new(FaultEngine::new(Arc::clone(db.engine()), faults));
        Ok((Db::with_engine(engine.clone()), engine))
    }
}

/// The streams, in Tips so small that they calve all the time.
pub(super) fn store(db: &Db) -> EventStore {
    db.event_store(EventStoreOptions::default().tip_events_max(8))
}

/// An indexer that is quick and closes epochs soon.
pub(super) fn indexer_options(name: &str) -> IndexerOptions {
    IndexerOptions::new()
        .name(name)
        .partitions(PARTITIONS)
        .limits(epoch_limits())
        .batch_max(250)
        .poll(POLL)
        // All run on one machine.
        .clock_skew_max(Duration::from_secs(1))
}

pub(super) fn epoch_limits() -> EpochLimits {
    let mut limits = EpochLimits::default();
    limits.bytes_max = 16 << 10;
    limits.version_max = 40;
    limits
}

/// How many events a handler is given at once.
pub(super) const EVENTS_MAX: usize = 20;

pub(super) fn consumer(store: &EventStore, group: &str, partition: Partition) -> Consumer {
    Consumer::new(store.clone(), group, partition).events_max(EVENTS_MAX)
}

/// Whether events of a stream are pruned once they are delivered.
pub(super) fn is_pruned(stream: &StreamName) -> bool {
    stream.id().ends_with('7') && !stream.id().starts_with('p')
}

/// Whether it may go better the next time: the server is being started again, or others were faster.
pub(super) fn passes(error: &floe::Error) -> bool {
    let kinds = [
        ErrorKind::OutcomeUnknown,
        ErrorKind::MaxResyncsExhausted,
        ErrorKind::TransactionFailed,
        ErrorKind::VersionConflict,
    ];
    let store = error.store_error();
    kinds.contains(&error.kind()) || store.is_some_and(floe_store::Error::is_retryable)
}

/// Takes note of what must not be.
pub(super) fn note(files: &Files, what: &str) -> Result<(), Failure> {
    let what: String = what.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Journal::open(&files.notes())?.tell(format_args!("broken {what}"))?)
}

/// The runtime of a process that talks to a server.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(2).enable_all().build()?)
}

/// Makes the tables.
pub(super) async fn make_tables(db: &Db) -> Result<(), Failure> {
    db.ensure_tables(&[<super::entry::Tally as floe::Model>::SCHEMA])
        .await?;
    store(db).ensure_table().await?;
    Ok(store(db).ensure_feed().await?)
}
