//! The process that creates and deletes tables, and measures what they leave behind.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use floe_local::LocalEngine;
use floe_store::env::SeededRandom;
use floe_store::op::{ListTables, PutItem, Scan};
use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{Engine, Item, TableDef};

use super::super::figures::percentile;
use super::super::planted::Bug;
use super::super::program::Resources;
use super::super::runtime;
use super::super::tree::Usage;
use crate::checks::role::Role;
use crate::{Failure, out};

/// The name of the role.
pub(crate) const ROLE: &str = "tables";

/// The figures that the process prints at the end.
pub(super) const FIGURES: [&str; 18] = [
    "disk_first",
    "disk_end",
    "journal_first",
    "journal_end",
    "fds_first",
    "fds_end",
    "files_first",
    "files_end",
    "create_us_p50",
    "create_us_p99",
    "delete_us_p50",
    "delete_us_p99",
    "reopen_ms",
    "lost",
    "tables_left",
    "empty",
    "table_bytes",
    "empty_reopen_ms",
];

/// Number of permanent tables, and of items in each.
const PERMANENT: u64 = 50;
const PERMANENT_ITEMS: u64 = 5;
/// Number of cycles before the first sample.
const FIRST_CYCLES: u64 = 100;
/// Maximum number of items in a table that has some.
const CYCLE_ITEMS_MAX: u64 = 8;
/// Size of the item in a table that the planted bug does not delete: large, so that its disk space shows.
const LEAKED_BYTES: usize = 200 << 10;
const LEAKED_DESCRIPTORS: u64 = 4;

/// Time limit for background work to end before a measurement.
const SETTLE_MAX: Duration = Duration::from_secs(15);
const SETTLE_STEP: Duration = Duration::from_millis(150);
/// Number of equal samples in a row that mean the background work has ended.
const SETTLE_SAMPLES: u32 = 3;

/// The arguments of the process.
#[derive(Debug, Args)]
pub(in crate::checks) struct TableCycleRole {
    #[arg(long)]
    folder: PathBuf,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    cycles: u64,
    #[arg(long)]
    empty: u64,
    #[arg(long)]
    planted: Option<Bug>,
}

impl Role for TableCycleRole {
    const NAME: &str = ROLE;

    /// Runs the role.
    fn run(self) -> Result<ExitCode, Failure> {
        let folder = self.folder;
        let task = Task {
            random: SeededRandom::new(self.seed),
            cycles: self.cycles,
            empty: self.empty,
            planted: self.planted,
        };
        runtime()?.block_on(async {
            let mut figures = Vec::new();
            task.cycle(&folder.join("cycled"), &mut figures).await?;
            task.fill(&folder.join("empty"), &mut figures).await?;
            let figures: Vec<_> = figures
                .into_iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            out::figures(&figures.join(" "));
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// The figures measured so far.
type MeasuredFigures = Vec<(&'static str, u64)>;

struct Task {
    random: SeededRandom,
    cycles: u64,
    empty: u64,
    planted: Option<Bug>,
}

impl Task {
    /// Creates and deletes tables next to the permanent ones.
    async fn cycle(&self, folder: &Path, figures: &mut MeasuredFigures) -> Result<(), Failure> {
        let engine = LocalEngine::open(folder)?;
        for number in 0..PERMANENT {
            make(&engine, &permanent_name(number), number).await?;
            for id in 0..PERMANENT_ITEMS {
                put(&engine, &permanent_name(number), id, 100).await?;
            }
        }
        let mut times = Times::default();
        let first = FIRST_CYCLES.min(self.cycles / 2);
        for cycle in 1..=self.cycles {
            self.cycle_once(&engine, cycle, &mut times).await?;
            if cycle == first {
                let (usage, resources) = settle(&engine, folder)?;
                figures.extend([
                    ("disk_first", usage.bytes),
                    ("journal_first", usage.journal_bytes),
                    ("fds_first", resources.descriptors),
                    ("files_first", usage.files),
                ]);
            }
            if cycle % 50 == 0 {
                out::figures(&format!("cycles={cycle} of={}", self.cycles));
            }
        }
        let (usage, resources) = settle(&engine, folder)?;
        figures.extend([
            ("disk_end", usage.bytes),
            ("journal_end", usage.journal_bytes),
            ("fds_end", resources.descriptors),
            ("files_end", usage.files),
            ("create_us_p50", percentile(&times.create_us, 50)),
            ("create_us_p99", percentile(&times.create_us, 99)),
            ("delete_us_p50", percentile(&times.delete_us, 50)),
            ("delete_us_p99", percentile(&times.delete_us, 99)),
        ]);
        let mut lost = lost_items(&engine).await?;
        let left = count_tables(&engine).await?.saturating_sub(PERMANENT);
        engine.close()?;
        drop(engine);
        let opening = Instant::now();
        let engine = LocalEngine::open(folder)?;
        figures.push(("reopen_ms", millis(opening)));
        lost += lost_items(&engine).await?;
        figures.extend([("lost", lost), ("tables_left", left)]);
        Ok(engine.close()?)
    }

    /// Creates a table, writes items to some, and deletes it.
    async fn cycle_once(
        &self,
        engine: &LocalEngine,
        cycle: u64,
        times: &mut Times,
    ) -> Result<(), Failure> {
        // Names recur, as in tests that create and delete the same table.
        let name = format!("Cycle-{}", cycle % 7);
        let started = Instant::now();
        if self.planted == Some(Bug::LeakedTables) && cycle.is_multiple_of(2) {
            let name = format!("Leaked-{cycle}");
            make(engine, &name, 0).await?;
            put(engine, &name, 0, LEAKED_BYTES).await?;
            // Simulates files left open until the process ends.
            for _ in 0..LEAKED_DESCRIPTORS {
                times.leaked.push(File::open("/dev/null")?);
            }
            return Ok(());
        }
        make(engine, &name, cycle).await?;
        times.create_us.push(micros(started));
        let items = if cycle.is_multiple_of(3) {
            1 + self.random.below(CYCLE_ITEMS_MAX)
        } else {
            0
        };
        for id in 0..items {
            put(engine, &name, id, 500).await?;
        }
        let started = Instant::now();
        engine.delete_table(name).await?;
        times.delete_us.push(micros(started));
        Ok(())
    }

    /// Creates empty tables, and measures the disk space of each.
    async fn fill(&self, folder: &Path, figures: &mut MeasuredFigures) -> Result<(), Failure> {
        let engine = LocalEngine::open(folder)?;
        let (before, _) = settle(&engine, folder)?;
        for number in 0..self.empty {
            make(&engine, &format!("Empty-{number}"), 0).await?;
        }
        let (after, _) = settle(&engine, folder)?;
        engine.close()?;
        drop(engine);
        let opening = Instant::now();
        let engine = LocalEngine::open(folder)?;
        let reopen_ms = millis(opening);
        let missing = self.empty.abs_diff(count_tables(&engine).await?);
        if missing > 0 {
            return Err(Failure::broken(format!(
                "empty tables are missing: {missing}"
            )));
        }
        let bytes = after.total_bytes().saturating_sub(before.total_bytes());
        figures.extend([
            ("empty", self.empty),
            ("table_bytes", bytes / self.empty.max(1)),
            ("empty_reopen_ms", reopen_ms),
        ]);
        Ok(engine.close()?)
    }
}

/// The durations of the requests.
#[derive(Debug, Default)]
struct Times {
    create_us: Vec<u64>,
    delete_us: Vec<u64>,
    /// Files that the planted bug keeps open.
    leaked: Vec<File>,
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

fn millis(since: Instant) -> u64 {
    micros(since) / 1000
}

fn permanent_name(number: u64) -> String {
    format!("Permanent-{number}")
}

/// Creates a table: plain, with an index, with a stream, or with both, depending on the number.
async fn make(engine: &LocalEngine, name: &str, number: u64) -> Result<(), Failure> {
    let mut table = TableDef::builder(name, "id", KeyKind::N);
    if number % 4 == 1 || number % 4 == 3 {
        let key = [("text", KeyKind::S)];
        let none: [(&str, KeyKind); 0] = [];
        table = table.global_index("by_text", key, none, Projection::All);
    }
    if number % 4 >= 2 {
        table = table.stream(StreamView::NewAndOldImages);
    }
    engine.create_table(table.build()?.into()).await?;
    Ok(())
}

async fn put(engine: &LocalEngine, table: &str, id: u64, bytes: usize) -> Result<(), Failure> {
    let put = PutItem::new(table, item(table, id, bytes));
    engine.write_item(put.into()).await?;
    Ok(())
}

fn item(table: &str, id: u64, bytes: usize) -> Item {
    let payload = "p".repeat(bytes);
    Item::new()
        .with("id", id)
        .with("text", format!("{table}-{id}"))
        .with("payload", payload)
}

/// Counts the items of permanent tables that are missing or changed.
async fn lost_items(engine: &LocalEngine) -> Result<u64, Failure> {
    let mut lost = 0;
    for number in 0..PERMANENT {
        let name = permanent_name(number);
        let page = engine.scan(Scan::new(&name)).await?;
        let expected = (0..PERMANENT_ITEMS).map(|id| item(&name, id, 100));
        lost += expected
            .filter(|item| !page.items.contains(item))
            .map(|_| 1)
            .sum::<u64>();
        lost += PERMANENT_ITEMS.abs_diff(page.items.len() as u64);
    }
    Ok(lost)
}

async fn count_tables(engine: &LocalEngine) -> Result<u64, Failure> {
    let mut input = ListTables {
        start_after: None,
        limit: None,
    };
    let mut count = 0;
    loop {
        let page = engine.list_tables(input.clone()).await?;
        count += page.table_names.len() as u64;
        if page.last_name.is_none() {
            return Ok(count);
        }
        input.start_after = page.last_name;
    }
}

/// Waits for background work to end, and measures.
fn settle(engine: &LocalEngine, folder: &Path) -> Result<(Usage, Resources), Failure> {
    let deadline = Instant::now() + SETTLE_MAX;
    while engine.run_background_once()? && Instant::now() < deadline {}
    let measure = || Ok::<_, Failure>((Usage::of(folder)?, Resources::own()?.descriptors));
    let (mut last, mut equal) = (measure()?, 1);
    while equal < SETTLE_SAMPLES && Instant::now() < deadline {
        std::thread::park_timeout(SETTLE_STEP);
        let now = measure()?;
        equal = if now == last { equal + 1 } else { 1 };
        last = now;
    }
    Ok((last.0, Resources::own()?))
}
