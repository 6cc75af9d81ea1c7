//! `floe bench`: what this machine does, measured in a few seconds.

mod measure;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use floe_local::LocalEngine;
use floe_store::table::KeyKind;
use floe_store::{Engine, TableDef};

use crate::{
    EVENT_INTERVAL, Failure, Output, Progress, Result, Table, grouped, note, object, threads,
};
use measure::{Kind, Measured, TABLE};

/// The store of the benchmark, in the directory that was given.
const FOLDER: &str = "floe-bench-store";

/// Measure puts, gets, queries and transactions on this machine
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # on the disk that will hold the data
  floe bench --data /var/lib/floe
  floe bench --data . --tasks 64 --seconds 5
  floe bench --memory --json

A store of its own is made in the directory, filled, measured and removed; a store that is there is not touched. Every write \
is answered when it is on the disk, so the rate of writes grows with the number of tasks that write at once, which share the \
cost of a sync. Items have 6 attributes and about 200 bytes; a query reads 20 of them; a transaction updates 2 and puts 1. \
The numbers are those of this machine, this disk and this moment, in the same process: a server adds the way over HTTP.")]
pub(super) struct Bench {
    #[command(flatten)]
    target: Target,

    /// How many tasks ask at once
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=1024))]
    tasks: u32,

    /// How many seconds each kind of request is measured
    #[arg(long, value_name = "N", default_value = "2", value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,

    #[command(flatten)]
    output: Output,
}

/// What is measured.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Target {
    /// On the disk of this directory, which must be there
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// In memory
    #[arg(long)]
    memory: bool,
}

impl Bench {
    pub(super) fn run(&self) -> Result {
        let runtime = threads(EVENT_INTERVAL)?;
        let Some(data) = &self.target.data else {
            let engine = Arc::new(LocalEngine::memory()?);
            return runtime.block_on(Box::pin(self.measure(engine)));
        };
        let folder = folder_in(data)?;
        let engine = LocalEngine::open(&folder).map(Arc::new)?;
        let measured = runtime.block_on(Box::pin(self.measure(Arc::clone(&engine))));
        let closed = engine.close().map_err(Failure::broken);
        drop((runtime, engine));
        let removed = std::fs::remove_dir_all(&folder).map_err(|error| {
            Failure::broken(format!(
                "the store of the benchmark is left, {error}: path={}",
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
        let mut progress = Progress::new(!self.output.json);
        let mut all = Vec::new();
        for kind in Kind::ALL {
            progress.step(&format!("measuring {}", kind.name()));
            let span = Duration::from_secs(self.seconds);
            let measured = measure::measure(&engine, kind, self.tasks, span).await?;
            all.push((kind, measured));
        }
        progress.end();
        self.print(&all);
        Ok(())
    }

    fn print(&self, all: &[(Kind, Measured)]) {
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
        );
        if !self.output.json {
            let place = match &self.target.data {
                Some(path) => format!("synced to the disk of {}", path.display()),
                None => "in memory".to_owned(),
            };
            let (tasks, seconds) = (self.tasks, self.seconds);
            note(&format!("tasks={tasks} seconds={seconds} each, {place}"));
        }
    }
}

/// A folder for the store, which is not there yet.
fn folder_in(data: &Path) -> Result<PathBuf> {
    if !data.is_dir() {
        return Err(Failure::broken(format!(
            "there is no such directory: path={}; make it first, or name another",
            data.display()
        )));
    }
    let folder = data.join(FOLDER);
    match folder.exists() {
        false => Ok(folder),
        true => Err(Failure::broken(format!(
            "the store of an earlier benchmark is there: path={}; remove it",
            folder.display()
        ))),
    }
}
