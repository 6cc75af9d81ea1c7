//! Indexers: several, of which some have the same name, and all are told some records again and others late.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use floe::events::EventStore;
use floe_testkit::fault::{FaultEngine, FaultKind, Faults};

use super::careless;
use super::journal::Journal;
use super::setting::{self, Files, Orders, POLL, indexer_options, note, passes};
use crate::Failure;
use crate::checks::planted::Bug;
use crate::checks::role::Role;

/// The name of the role.
pub(crate) const ROLE: &str = "feed-index";

/// How many there are: two compete under one name, and with a third under another.
pub(super) const INDEXERS: u64 = 3;

/// The name under which an indexer stores how far it is.
pub(super) const fn name(number: u64) -> &'static str {
    match number {
        0 | 1 => "a",
        _ => "b",
    }
}

/// What the process is told.
#[derive(Debug, Args)]
pub(in crate::checks) struct Indexing {
    #[command(flatten)]
    orders: Orders,
}

impl Role for Indexing {
    const NAME: &str = ROLE;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure> {
        let orders = self.orders;
        setting::runtime()?.block_on(async {
            let faults = Faults::seeded(orders.seed)
                .throttle(0.01)
                .lost_after(0.005)
                .repeated_records(0.03)
                .late_records(0.1);
            let (db, engine) = orders.connect(faults).await?;
            let store = setting::store(&db);
            tokio::select! {
                failed = index(&store, &orders) => failed,
                failed = count(&engine, &orders.files) => failed,
            }
        })
    }
}

async fn index(store: &EventStore, orders: &Orders) -> Result<ExitCode, Failure> {
    loop {
        let ended = match orders.planted {
            Some(Bug::EarlyPosition) => careless::index(store, &orders.files).await,
            _ => {
                let mut indexer = store.indexer(indexer_options(name(orders.number)))?;
                indexer.run(std::future::pending()).await.map(drop)
            }
        };
        match ended {
            Err(error) if !passes(&error) => note(&orders.files, &format!("indexer: {error}"))?,
            _ => {}
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Counts the records that came again and late, as long as the process lives.
async fn count(engine: &FaultEngine, files: &Files) -> Result<ExitCode, Failure> {
    let journal = Journal::open(&files.notes())?;
    let mut told = (0, 0);
    loop {
        let faults = engine.faults();
        let count = |kind| faults.iter().filter(|fault| fault.kind == kind).count();
        let now = (
            count(FaultKind::RepeatedRecords),
            count(FaultKind::LateRecords),
        );
        if now != told {
            let new = (now.0.saturating_sub(told.0), now.1.saturating_sub(told.1));
            journal.tell(format_args!("faults {} {}", new.0, new.1))?;
            told = now;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
