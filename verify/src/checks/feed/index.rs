//! Indexers: several, some with the same name; all receive some records twice and some late.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use floe::events::EventStore;
use floe_testkit::fault::{FaultEngine, FaultKind, Faults};

use super::config::{self, Files, POLL, ProcessArgs, indexer_options, is_transient, note};
use super::flawed;
use super::journal::Journal;
use crate::Failure;
use crate::checks::planted::Bug;
use crate::checks::role::Role;

/// The name of the role.
pub(crate) const ROLE: &str = "feed-index";

/// Number of indexers: two compete under one name, a third has another name.
pub(super) const INDEXERS: u64 = 3;

/// The name under which an indexer stores its position.
pub(super) const fn name(number: u64) -> &'static str {
    match number {
        0 | 1 => "a",
        _ => "b",
    }
}

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct IndexerRole {
    #[command(flatten)]
    args: ProcessArgs,
}

impl Role for IndexerRole {
    const NAME: &str = ROLE;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure> {
        let args = self.args;
        config::runtime()?.block_on(async {
            let faults = Faults::seeded(args.seed)
                .throttle(0.01)
                .lost_after(0.005)
                .repeated_records(0.03)
                .late_records(0.1);
            let (db, engine) = args.connect(faults).await?;
            let store = config::store(&db);
            tokio::select! {
                failed = index(&store, &args) => failed,
                failed = count(&engine, &args.files) => failed,
            }
        })
    }
}

async fn index(store: &EventStore, args: &ProcessArgs) -> Result<ExitCode, Failure> {
    loop {
        let ended = match args.planted {
            Some(Bug::EarlyPosition) => flawed::index(store, &args.files).await,
            _ => {
                let mut indexer = store.indexer(indexer_options(name(args.number)))?;
                indexer.run(std::future::pending()).await.map(drop)
            }
        };
        match ended {
            Err(error) if !is_transient(&error) => note(&args.files, &format!("indexer: {error}"))?,
            _ => {}
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Counts repeated and late records while the process runs.
async fn count(engine: &FaultEngine, files: &Files) -> Result<ExitCode, Failure> {
    let journal = Journal::open(&files.notes())?;
    let mut recorded = (0, 0);
    loop {
        let faults = engine.faults();
        let count = |kind| faults.iter().filter(|fault| fault.kind == kind).count();
        let now = (
            count(FaultKind::RepeatedRecords),
            count(FaultKind::LateRecords),
        );
        if now != recorded {
            let new = (
                now.0.saturating_sub(recorded.0),
                now.1.saturating_sub(recorded.1),
            );
            journal.append(format_args!("faults {} {}", new.0, new.1))?;
            recorded = now;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
