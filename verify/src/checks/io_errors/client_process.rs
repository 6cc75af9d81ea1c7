//! The process on a failing disk: one client that runs operations in sequence, and after the first failure a few more,
//! which must fail too.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use floe_store::Engine;

use super::super::client::{Client, Outcome, Round};
use super::super::directory::{self, Settings};
use super::super::planted::{Bug, FlawedEngine};
use super::super::record::{Record, Reporter};
use super::super::{runtime, writer};
use crate::Failure;
use crate::checks::role::Role;

/// The name of the role.
pub(in crate::checks) const ROLE: &str = "endure";
/// Number of operations after the first failed one.
const OPERATIONS_AFTER_FAILURE: u64 = 6;
/// The stamp under which opening and creating the table are reported.
const OPENING: u64 = 0;

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct FaultedClientRole {
    #[arg(long)]
    folder: PathBuf,
    #[command(flatten)]
    task: Task,
    #[command(flatten)]
    settings: Settings,
}

impl Role for FaultedClientRole {
    const NAME: &str = ROLE;

    /// Runs the role. A failing disk is reported, and is not a failure of the process.
    fn run(self) -> Result<ExitCode, Failure> {
        let reporter = Arc::new(Reporter::new(std::io::stdout()));
        let opening = Instant::now();
        let opened = match directory::open(&self.folder, self.settings) {
            Ok(opened) => opened,
            Err(error) => {
                reporter.report(&Record::Failed(OPENING, format!("{error:?}")))?;
                return Ok(ExitCode::SUCCESS);
            }
        };
        let micros = u64::try_from(opening.elapsed().as_micros()).unwrap_or(u64::MAX);
        reporter.report(&Record::Opened(micros))?;
        runtime()?.block_on(run_client(opened.engine(), &reporter, self.task))?;
        // Closing may fail on a broken disk; only the state at the next opening counts.
        if let Err(error) = opened.close() {
            reporter.report(&Record::Failed(OPENING, format!("{error:?}")))?;
        }
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
    operations: u64,
    #[arg(long)]
    planted: Option<Bug>,
}

async fn run_client(
    engine: Arc<dyn Engine>,
    reporter: &Arc<Reporter>,
    task: Task,
) -> Result<(), Failure> {
    if let Err(error) = writer::make_table(&engine).await {
        reporter.report(&Record::Failed(OPENING, format!("{error:?}")))?;
        return Ok(());
    }
    let engine = FlawedEngine::plant(engine, task.planted);
    let round = Arc::new(Round::new(task.round, true));
    let mut client = Client::new(engine, Arc::clone(reporter), round, 0, task.seed);
    for _ in 0..task.operations {
        if client.step().await? == Outcome::Failed {
            for _ in 0..OPERATIONS_AFTER_FAILURE {
                client.step().await?;
            }
            break;
        }
    }
    client.verify_own_keys().await?;
    Ok(())
}
