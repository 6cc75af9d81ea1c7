//! The process that meets a failing disk: one client, one operation after the other, and after the
//! first failure some more, which must fail as well.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use floe_store::Engine;

use super::super::client::{Client, Outcome, Round};
use super::super::directory::{self, Settings};
use super::super::planted::{Bug, Flawed};
use super::super::record::{Record, Reporter};
use super::super::{runtime, writer};
use crate::Failure;
use crate::checks::role::Role;

/// The name of the role.
pub(in crate::checks) const ROLE: &str = "endure";
/// How many operations follow the first that failed.
const AFTERWARDS: u64 = 6;
/// The stamp under which opening and making the table is reported.
const OPENING: u64 = 0;

/// What the process is told.
#[derive(Debug, Args)]
pub(in crate::checks) struct Enduring {
    #[arg(long)]
    folder: PathBuf,
    #[command(flatten)]
    task: Task,
    #[command(flatten)]
    settings: Settings,
}

impl Role for Enduring {
    const NAME: &str = ROLE;

    /// Runs the role. A disk that fails is reported and no failure of the process.
    fn run(self) -> Result<ExitCode, Failure> {
        let reporter = Arc::new(Reporter::new(std::io::stdout()));
        let opening = Instant::now();
        let opened = match directory::open(&self.folder, self.settings) {
            Ok(opened) => opened,
            Err(error) => {
                reporter.tell(&Record::Failed(OPENING, format!("{error:?}")))?;
                return Ok(ExitCode::SUCCESS);
            }
        };
        let micros = u64::try_from(opening.elapsed().as_micros()).unwrap_or(u64::MAX);
        reporter.tell(&Record::Opened(micros))?;
        runtime()?.block_on(endure(opened.engine(), &reporter, self.task))?;
        // Closing may fail on a broken disk; what counts is what the next opening finds.
        if let Err(error) = opened.close() {
            reporter.tell(&Record::Failed(OPENING, format!("{error:?}")))?;
        }
        reporter.tell(&Record::Done)?;
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

async fn endure(
    engine: Arc<dyn Engine>,
    reporter: &Arc<Reporter>,
    task: Task,
) -> Result<(), Failure> {
    if let Err(error) = writer::make_table(&engine).await {
        reporter.tell(&Record::Failed(OPENING, format!("{error:?}")))?;
        return Ok(());
    }
    let engine = Flawed::plant(engine, task.planted);
    let round = Arc::new(Round::new(task.round, true));
    let mut client = Client::new(engine, Arc::clone(reporter), round, 0, task.seed);
    for _ in 0..task.operations {
        if client.step().await? == Outcome::Failed {
            for _ in 0..AFTERWARDS {
                client.step().await?;
            }
            break;
        }
    }
    client.look_again().await?;
    Ok(())
}
