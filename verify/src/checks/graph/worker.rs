//! The process that changes the graph: tasks that make moves on an engine that loses responses, until the process is
//! killed.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use floe::graph::Graph;
use floe::{Db, ErrorKind};
use floe_testkit::fault::{FaultEngine, Faults, Lag};
use tokio::task::JoinSet;

use super::moves::{Move, SCOPE, schema};
use crate::Failure;
use crate::checks::directory::{self, Settings};
use crate::checks::planted::{Bug, FlawedEngine};
use crate::checks::record::{Operation, Record, Reporter};
use crate::checks::role::Role;
use crate::checks::{child, join_all, runtime};

/// The name of the role.
pub(in crate::checks) const ROLE: &str = "graph";

/// The work of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkerSpec<'a> {
    pub(super) folder: &'a Path,
    pub(super) seed: u64,
    /// The number of the first move.
    pub(super) first: u64,
    /// Number of moves to make.
    pub(super) moves: u64,
    pub(super) tasks: u64,
    pub(super) planted: Option<Bug>,
}

impl WorkerSpec<'_> {
    /// Returns the command of the process.
    pub(super) fn command(&self) -> std::io::Result<Command> {
        let mut command = child::command_on(ROLE, self.folder, self.planted)?;
        for (flag, value) in [
            ("--seed", self.seed),
            ("--first", self.first),
            ("--moves", self.moves),
            ("--tasks", self.tasks),
        ] {
            command.arg(flag).arg(value.to_string());
        }
        Ok(command)
    }
}

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct WorkerRole {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    first: u64,
    #[arg(long)]
    moves: u64,
    #[arg(long)]
    tasks: u64,
    #[arg(long)]
    planted: Option<Bug>,
}

impl Role for WorkerRole {
    const NAME: &str = ROLE;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure> {
        let Self {
            folder,
            seed,
            first,
            moves,
            tasks,
            planted,
        } = self;
        let reporter = Arc::new(Reporter::new(std::io::stdout()));
        let opened = directory::open(&folder, Settings::default())?;
        let engine = FlawedEngine::plant(opened.engine(), planted);
        let engine = Arc::new(FaultEngine::new(engine, faults(seed ^ first)));
        let db = Db::with_engine(engine).with_graph(schema());
        reporter.report(&Record::Opened(0))?;
        let next = Arc::new(AtomicU64::new(first));
        runtime()?.block_on(async {
            let mut workers = JoinSet::new();
            for _ in 0..tasks {
                let (graph, reporter, next) = (db.graph(SCOPE), reporter.clone(), next.clone());
                workers.spawn(async move {
                    make_moves(&graph, seed, &next, first + moves, &reporter).await
                });
            }
            join_all(workers).await
        })?;
        reporter.report(&Record::Done)?;
        // Like a process that dies: nothing is closed.
        std::process::exit(0)
    }
}

pub(super) fn faults(seed: u64) -> Faults {
    Faults::seeded(seed)
        .throttle(0.01)
        .conflict(0.01)
        .lost_before(0.01)
        .lost_after(0.02)
        .partial_batches(0.1)
        .index_lag(0.2, Lag::Operations(20))
        .stale_reads(0.2, Lag::Operations(20))
}

async fn make_moves(
    graph: &Graph<'_>,
    seed: u64,
    next: &AtomicU64,
    end: u64,
    reporter: &Reporter,
) -> Result<(), Failure> {
    loop {
        let number = next.fetch_add(1, Ordering::SeqCst);
        if number >= end {
            return Ok(());
        }
        let next_move = Move::of(seed, number);
        let effects = Vec::new();
        let stamp = number;
        reporter.report(&Record::Intent(Operation { stamp, effects }))?;
        let record = match next_move.make(graph, number).await {
            Ok(true) => Record::Acked(number),
            Ok(false) => Record::Refused(number),
            Err(error) => match (error.kind(), &next_move) {
                // The change may have been started; the audit completes it.
                (ErrorKind::TransactionFailed, Move::Delete(_) | Move::DeleteHub(_))
                | (ErrorKind::OutcomeUnknown, _) => continue,
                (
                    ErrorKind::NotFound
                    | ErrorKind::Restricted
                    | ErrorKind::AlreadyExists
                    | ErrorKind::TransactionFailed,
                    _,
                )
                // The list had other objects at that time.
                | (ErrorKind::InvalidUse, Move::Reorder(_)) => Record::Refused(number),
                _ => Record::Broken(format!("{next_move:?}: {error}")),
            },
        };
        reporter.report(&record)?;
    }
}
