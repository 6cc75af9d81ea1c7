//! The writing process: many concurrent clients on one directory, until it is killed or has done all its operations.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Args;
use floe_store::{Engine, Error};
use tokio::task::JoinSet;

use super::client::{Client, Round};
use super::directory::{self, Settings};
use super::planted::{Bug, FlawedEngine};
use super::record::{Record, Reporter};
use super::{child, join_all, runtime, test_table};
use crate::Failure;
use crate::checks::role::Role;

/// The name of the role.
pub(super) const ROLE: &str = "write";

/// The work of a writing process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writer<'a> {
    /// The directory.
    pub(super) folder: &'a Path,
    pub(super) seed: u64,
    /// The number of the [`Round`].
    pub(super) round: u64,
    pub(super) clients: u64,
    /// Whether items are large.
    pub(super) is_bulky: bool,
    /// Number of operations; unlimited if absent.
    pub(super) operations: Option<u64>,
    /// Whether to close the directory at the end, or to exit like a process that dies.
    pub(super) is_closed: bool,
    /// The file for the records, instead of standard output.
    pub(super) marks: Option<&'a Path>,
    pub(super) planted: Option<Bug>,
    pub(super) settings: Settings,
}

impl Writer<'_> {
    /// Returns the command of the process.
    pub(super) fn command(&self) -> std::io::Result<Command> {
        let mut command = child::command_on(ROLE, self.folder, self.planted)?;
        command.arg("--seed").arg(self.seed.to_string());
        command.arg("--round").arg(self.round.to_string());
        command.arg("--clients").arg(self.clients.to_string());
        if let Some(operations) = self.operations {
            command.arg("--operations").arg(operations.to_string());
        }
        if self.is_bulky {
            command.arg("--bulky");
        }
        if self.is_closed {
            command.arg("--closed");
        }
        if let Some(marks) = self.marks {
            command.arg("--marks").arg(marks);
        }
        command.args(self.settings.flags());
        Ok(command)
    }
}

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct WriterRole {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    marks: Option<PathBuf>,
    #[command(flatten)]
    task: Task,
    #[arg(long)]
    closed: bool,
    #[command(flatten)]
    settings: Settings,
}

impl Role for WriterRole {
    const NAME: &str = ROLE;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure> {
        let reporter = Arc::new(match self.marks {
            Some(marks) => Reporter::new(OpenOptions::new().append(true).create(true).open(marks)?),
            None => Reporter::new(std::io::stdout()),
        });
        let opening = Instant::now();
        let opened = directory::open(&self.folder, self.settings)?;
        let micros = u64::try_from(opening.elapsed().as_micros()).unwrap_or(u64::MAX);
        reporter.report(&Record::Opened(micros))?;
        runtime()?.block_on(write(opened.engine(), &reporter, self.task))?;
        if !self.closed {
            std::process::exit(0);
        }
        opened.close()?;
        reporter.report(&Record::Done)?;
        Ok(ExitCode::SUCCESS)
    }
}

#[derive(Clone, Copy, Debug, Args)]
struct Task {
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    round: u64,
    #[arg(long)]
    clients: u64,
    #[arg(long, default_value_t = u64::MAX)]
    operations: u64,
    #[arg(long = "bulky")]
    is_bulky: bool,
    #[arg(long)]
    planted: Option<Bug>,
}

async fn write(
    engine: Arc<dyn Engine>,
    reporter: &Arc<Reporter>,
    task: Task,
) -> Result<(), Failure> {
    make_table(&engine).await?;
    let engine = FlawedEngine::plant(engine, task.planted);
    let round = Arc::new(Round::new(task.round, task.is_bulky));
    let left = Arc::new(AtomicU64::new(task.operations));
    let mut clients = JoinSet::new();
    for number in 0..task.clients {
        let (engine, reporter) = (Arc::clone(&engine), Arc::clone(reporter));
        let mut client = Client::new(engine, reporter, Arc::clone(&round), number, task.seed);
        client.acks_early = task.planted == Some(Bug::EarlyAck);
        let left = Arc::clone(&left);
        clients.spawn(async move {
            let take_one = |left: u64| left.checked_sub(1);
            while left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take_one)
                .is_ok()
            {
                client.step().await?;
            }
            Ok::<(), std::io::Error>(())
        });
    }
    join_all(clients).await
}

/// Creates the test table if it does not exist.
pub(super) async fn make_table(engine: &Arc<dyn Engine>) -> floe_store::Result<()> {
    match engine.create_table(test_table::table()?.into()).await {
        Ok(_) | Err(Error::ResourceInUse(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
