//! The configuration shared by all processes of the check: paths, and the settings of the store.

use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use floe::db::ConnectOptions;
use floe::events::feed::{EpochLimits, FeedConsumer, IndexerOptions, Partition, Partitions};
use floe::events::{EventStore, EventStoreOptions, StreamName};
use floe::{Db, ErrorKind};
use floe_testkit::fault::{FaultEngine, Faults};

use super::journal::Journal;
use crate::Failure;
use crate::checks::child;
use crate::checks::planted::Bug;

/// The partitions of the feed.
pub(super) const PARTITIONS: Partitions = Partitions::new(NonZeroU32::MIN.saturating_add(3));

/// The group that receives events at least once.
pub(super) const GROUP: &str = "group";
/// The group that maintains the exact view.
pub(super) const VIEW: &str = "view";

/// The pause between polls.
pub(super) const POLL: Duration = Duration::from_millis(20);

/// The paths of a run.
#[derive(Clone, Debug)]
pub(super) struct Files(pub(super) PathBuf);

impl Files {
    /// The directory of the server's store.
    pub(super) fn data(&self) -> PathBuf {
        self.0.join("data")
    }

    /// The records of the writers.
    pub(super) fn written(&self) -> PathBuf {
        self.0.join("written")
    }

    /// The events of a partition that were delivered to the group.
    pub(super) fn delivered(&self, partition: Partition) -> PathBuf {
        self.0.join(format!("delivered-{partition}"))
    }

    /// Errors and counts that the processes reported.
    pub(super) fn notes(&self) -> PathBuf {
        self.0.join("notes")
    }

    /// The standard error of the processes.
    pub(super) fn stderr(&self) -> PathBuf {
        self.0.join("stderr")
    }

    /// The position of an indexer that stores it too early.
    pub(super) fn early_position(&self) -> PathBuf {
        self.0.join("early-position")
    }
}

impl From<OsString> for Files {
    fn from(folder: OsString) -> Self {
        Self(folder.into())
    }
}

/// The arguments of every client process.
#[derive(Clone, Debug, Args)]
pub(super) struct ProcessArgs {
    #[arg(long = "folder")]
    pub(super) files: Files,
    #[arg(long)]
    pub(super) address: String,
    #[arg(long)]
    pub(super) seed: u64,
    /// The number of the process among those of its role.
    #[arg(long)]
    pub(super) number: u64,
    #[arg(long)]
    pub(super) planted: Option<Bug>,
}

impl ProcessArgs {
    /// Returns the command that starts the process in a role.
    pub(super) fn command(&self, role: &str) -> std::io::Result<Command> {
        let mut command = child::command_on(role, &self.files.0, self.planted)?;
        command.arg("--address").arg(&self.address);
        command.arg("--seed").arg(self.seed.to_string());
        command.arg("--number").arg(self.number.to_string());
        Ok(command)
    }

    /// Connects to the server through a fault engine.
    pub(super) async fn connect(&self, faults: Faults) -> Result<(Db, Arc<FaultEngine>), Failure> {
        let url = format!("http://{}", self.address);
        let db = Db::connect(ConnectOptions::local(url)).await?;
        let engine = Arc::new(FaultEngine::new(Arc::clone(db.engine()), faults));
        Ok((Db::with_engine(engine.clone()), engine))
    }
}

/// The event store, with Tips so small that they calve constantly.
pub(super) fn store(db: &Db) -> EventStore {
    db.event_store(EventStoreOptions::default().tip_events_max(8))
}

/// Options of an indexer that polls often and closes epochs early.
pub(super) fn indexer_options(name: &str) -> IndexerOptions {
    IndexerOptions::new()
        .name(name)
        .partitions(PARTITIONS)
        .limits(epoch_limits())
        .batch_max(250)
        .poll(POLL)
        // All processes run on one machine.
        .clock_skew_max(Duration::from_secs(1))
}

pub(super) fn epoch_limits() -> EpochLimits {
    let mut limits = EpochLimits::default();
    limits.bytes_max = 16 << 10;
    limits.version_max = 40;
    limits
}

/// Maximum number of events per handler call.
pub(super) const EVENTS_MAX: usize = 20;

pub(super) fn consumer(store: &EventStore, group: &str, partition: Partition) -> FeedConsumer {
    FeedConsumer::new(store.clone(), group, partition).events_max(EVENTS_MAX)
}

/// Whether events of a stream are pruned after they were delivered.
pub(super) fn is_pruned(stream: &StreamName) -> bool {
    stream.id().ends_with('7') && !stream.id().starts_with('p')
}

/// Whether a retry may succeed: the server is restarting, or the attempts ended in conflicts.
pub(super) fn is_transient(error: &floe::Error) -> bool {
    let kinds = [
        ErrorKind::OutcomeUnknown,
        ErrorKind::MaxResyncsExhausted,
        ErrorKind::TransactionFailed,
        ErrorKind::VersionConflict,
    ];
    let store = error.store_error();
    kinds.contains(&error.kind()) || store.is_some_and(floe_store::Error::is_retryable)
}

/// Records an error.
pub(super) fn note(files: &Files, what: &str) -> Result<(), Failure> {
    let what: String = what.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(Journal::open(&files.notes())?.append(format_args!("broken {what}"))?)
}

/// The runtime of a client process.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(2).enable_all().build()?)
}

/// Creates the tables.
pub(super) async fn make_tables(db: &Db) -> Result<(), Failure> {
    db.ensure_tables(&[<super::entry::Tally as floe::Model>::SCHEMA])
        .await?;
    store(db).ensure_table().await?;
    Ok(store(db).ensure_feed().await?)
}
