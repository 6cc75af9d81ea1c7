//! `floe bench`: measures this machine in a few seconds.

mod measure;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use floe_local::LocalEngine;
use floe_store::table::KeyKind;
use floe_store::{Engine, TableDef};

use crate::{
    EVENT_INTERVAL, Failure, Output, Progress, Result, Table, grouped, multi_thread_runtime, note,
    object,
};
use measure::{Measurement, RequestKind, TABLE};

/// The directory of the benchmark's store, in the directory of `--data`.
const FOLDER: &str = "floe-bench-store";

/// Measure puts, gets, queries and transactions on this machine
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # measure the disk that will hold the data
  floe bench --data /var/lib/floe
  floe bench --data . --tasks 64 --seconds 5
  floe bench --memory --json

Creates a temporary store in the directory, fills, measures and removes it; an existing store is not touched. Every write is \
synced to disk before it is acknowledged, so the write rate grows with the number of concurrent tasks, which share syncs. Items \
have 6 attributes and about 200 bytes; a query reads 20 items; a transaction updates 2 and puts 1. The engine runs in the same \
process: a server adds the cost of HTTP.")]
pub(super) struct Bench {
    #[command(flatten)]
    target: Target,

    /// Number of concurrent tasks
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=1024))]
    tasks: u32,

    /// Duration of the measurement of each kind of request, in seconds
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,

    #[command(flatten)]
    output: Output,
}

/// The store to measure.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Target {
    /// Measure a store in this existing directory
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Measure a store in memory
    #[arg(long)]
    memory: bool,
}

impl Bench {
    pub(super) fn run(&self) -> Result {
        let runtime = multi_thread_runtime(EVENT_INTERVAL)?;
        let Some(data) = &self.target.data else {
            let engine = Arc::new(LocalEngine::memory()?);
            return runtime.block_on(Box::pin(self.measure(engine)));
        };
        let folder = store_directory(data)?;
        let engine = LocalEngine::open(&folder).map(Arc::new)?;
        let measured = runtime.block_on(Box::pin(self.measure(Arc::clone(&engine))));
        let closed = engine.close().map_err(Failure::failed);
        drop((runtime, engine));
        let removed = std::fs::remove_dir_all(&folder).map_err(|error| {
            Failure::failed(format!(
                "the benchmark's store could not be removed, {error}: path={}",
                folder.display()
            ))
        });
        measured.and(closed).and(removed)
    }

    async fn measure(&self, engine: Arc<LocalEngine>) -> Result {
        let table = TableDef::builder(TABLE, "p", KeyKind::S)
            .sort_key("s", KeyKind::N)
            .build()?;
        engine.create_table(table.into()).await?;
        let mut progress = Progress::new(!self.output.is_json());
        let mut all = Vec::new();
        for kind in RequestKind::ALL {
            progress.step(&format!("measuring {}", kind.name()));
            let span = Duration::from_secs(self.seconds);
            let measured = measure::measure(&engine, kind, self.tasks, span).await?;
            all.push((kind, measured));
        }
        progress.end();
        self.print(&all)
    }

    fn print(&self, all: &[(RequestKind, Measurement)]) -> Result {
        self.output.rows(
            all,
            |w, (kind, measured)| {
                object!(w;
                    "request": kind.name(), "tasks": self.tasks,
                    "per_second": measured.per_second(), "p50_us": measured.quantile(50),
                    "p99_us": measured.quantile(99), "count": measured.count()
                );
            },
            Table::new(["request", "per second", "p50 µs", "p99 µs"]),
            |(kind, measured)| {
                let (p50, p99) = (measured.quantile(50), measured.quantile(99));
                let [rate, p50, p99] = [measured.per_second(), p50, p99].map(grouped);
                [kind.name().to_owned(), rate, p50, p99]
            },
        )?;
        if !self.output.is_json() {
            let medium = match &self.target.data {
                Some(path) => format!("synced to disk at {}", path.display()),
                None => "in memory".to_owned(),
            };
            let (tasks, seconds) = (self.tasks, self.seconds);
            note(&format!("tasks={tasks} seconds={seconds} each, {medium}"));
        }
        Ok(())
    }
}

/// The directory of the store. Fails if it exists.
fn store_directory(data: &Path) -> Result<PathBuf> {
    if !data.is_dir() {
        return Err(Failure::failed(format!(
            "there is no such directory: path={}; create it first",
            data.display()
        )));
    }
    let folder = data.join(FOLDER);
    if folder.exists() {
        return Err(Failure::failed(format!(
            "the store of an earlier benchmark exists: path={}; remove it",
            folder.display()
        )));
    }
    Ok(folder)
}
