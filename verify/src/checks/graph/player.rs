//! The process that changes the graph: tasks that make one move after the other, on an engine that loses answers, until
//! it is killed.

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
use crate::checks::planted::{Bug, Flawed};
use crate::checks::record::{Operation, Record, Reporter};
use crate::checks::role::Role;
use crate::checks::{child, join_all, runtime};

/// The name of the role.
pub(in crate::checks) const ROLE: &str = "graph";

/// What to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Player<'a> {
    pub(super) folder: &'a Path,
    pub(super) seed: u64,
    /// The number of the first move.
    pub(super) first: u64,
    /// How many moves to make.
    pub(super) moves: u64,
    pub(super) tasks: u64,
    pub(super) planted: Option<Bug>,
}

impl Player<'_> {
    /// The process.
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

/// What the process is told.
#[derive(Debug, Args)]
pub(in crate::checks) struct Playing {
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

impl Role for Playing {
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
        let engine = Flawed::plant(opened.engine(), planted);
        let engine = Arc::new(FaultEngine::new(engine, faults(seed ^ first)));
        let db = Db::with_engine(engine).with_graph(schema());
        reporter.tell(&Record::Opened(0))?;
        let next = Arc::new(AtomicU64::new(first));
        runtime()?.block_on(async {
            let mut playing = JoinSet::new();
            for _ in 0..tasks {
                let (graph, reporter, next) = (db.graph(SCOPE), reporter.clone(), next.clone());
                playing.spawn(
                    async move { play(&graph, seed, &next, first + moves, &reporter).await },
                );
            }
            join_all(playing).await
        })?;
        reporter.tell(&Record::Done)?;
        // As a process that dies: nothing is closed.
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

async fn play(
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
        let made = Move::of(seed, number);
        let effects = Vec::new();
        let stamp = number;
        reporter.tell(&Record::Intent(Operation { stamp, effects }))?;
        let record = match made.make(graph, number).await {
            Ok(true) => Record::Acked(number),
            Ok(false) => Record::Refused(number),
            Err(error) => match (error.kind(), &made) {
                // It may have been begun; what is left is ended by whoever looks.
                (ErrorKind::TransactionFailed, Move::Delete(_) | Move::Scatter(_))
                | (ErrorKind::OutcomeUnknown, _) => continue,
                (
                    ErrorKind::NotFound
                    | ErrorKind::Restricted
                    | ErrorKind::AlreadyExists
                    | ErrorKind::TransactionFailed,
                    _,
                )
                // The list had other objects by then.
                | (ErrorKind::InvalidUse, Move::Shuffle(_)) => Record::Refused(number),
                _ => Record::Broken(format!("{made:?}: {error}")),
            },
        };
        reporter.tell(&record)?;
    }
}
