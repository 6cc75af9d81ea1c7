//! The throughput of the change router, compared with the throughput of commits.
//!
//! Writes and deliveries alternate on the same directory, so that disturbances of the machine affect both. The handler
//! tracks the count of every item, and detects missing, duplicate and reordered changes.

mod plan;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use floe::changes::{ChangeConsumer, Changed, Failure, HandlerResult, Inserted, Router, consumer};
use floe::{Db, Model};
use floe_local::{LocalEngine, Options};
use floe_store::op::PutItem;
use floe_store::{Engine, Item};

use crate::measure::{Rate, median, resident_mib};
use crate::rounds::runtime;
use crate::{Benchmark, Fallible, parsed};
use plan::{Flags, Plan};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "changes",
    about: plan::ABOUT,
    details: plan::DETAILS,
    flags: Flags::augment_args,
    prepare: |flags| {
        let plan = Plan::of(&parsed(flags)?);
        Ok(Box::new(move || run(&plan)))
    },
};

const WRITERS: u64 = 64;
/// Number of items of each writer.
const ITEMS: u64 = 50;
/// Minimum ratio of deliveries to commits.
const FLOOR_TIMES: f64 = 0.5;
/// Maximum growth of the resident memory in the second half, in MiB.
const CEILING_MIB: u64 = 32;
/// Size of the caches of the store, and of its write buffers.
const CACHE_BYTES: u64 = 8 << 20;
/// Minimum number of changes that fill the caches in the first half.
const SETTLED_RECORDS: u64 = 1_000_000;
/// Number of measurements of the memory.
const POINTS: u64 = 10;

#[derive(Model)]
#[model(table = "counters", stream)]
struct Counter {
    #[model(key)]
    id: String,
    count: u64,
    note: String,
}

fn run(plan: &Plan) -> Fallible<bool> {
    let runtime = runtime()?;
    let folder = tempfile::tempdir()?;
    // Small caches fill up soon, so that later growth has another cause.
    let options = Options::new()
        .cache_bytes(CACHE_BYTES)
        .write_buffer_bytes(CACHE_BYTES);
    let db = Db::with_engine(Arc::new(LocalEngine::open_with(folder.path(), options)?));
    runtime.block_on(run_rounds(&db, plan))
}

/// Writes and delivers in turns, until the planned number of changes is delivered.
async fn run_rounds(db: &Db, plan: &Plan) -> Fallible<bool> {
    db.ensure_tables(&[Counter::SCHEMA]).await?;
    db.ensure_tables(&consumer::SCHEMAS).await?;
    let ledger = Ledger::default();
    let consumer = ChangeConsumer::new(db, "bench", ledger.router());
    let written = Arc::new(AtomicU64::new(0));
    let (mut times, mut commits, mut deliveries) = (Vec::new(), Vec::new(), Vec::new());
    let (mut delivered, mut points) = (0, Vec::new());
    while delivered < plan.records {
        let committed = write(db, &written, plan.round).await?;
        let start = Instant::now();
        let summary = consumer.run_until_caught_up().await?;
        let rate = Rate {
            operations: summary.handled,
            elapsed: start.elapsed(),
        };
        if summary.handled != committed.operations {
            let (handled, written) = (summary.handled, committed.operations);
            return Err(format!(
                "not all changes were delivered: handled={handled} written={written}"
            )
            .into());
        }
        delivered += summary.handled;
        times.push(rate.per_second() / committed.per_second());
        commits.push(committed.per_second());
        deliveries.push(rate.per_second());
        while points.len() as u64 * plan.records < delivered * POINTS
            && points.len() as u64 <= POINTS
        {
            points.push(resident_mib());
            let (point, mib) = (points.len(), resident_mib());
            println!("bench=changes case=memory point={point} delivered={delivered} rss_mib={mib}");
        }
    }
    let half = points.get(points.len() / 2).copied().unwrap_or_default();
    let last = points.last().copied().unwrap_or_default();
    let grown = last.saturating_sub(half);
    let times = median(times);
    let ceiling = (plan.records >= SETTLED_RECORDS).then_some(CEILING_MIB);
    let is_flat = ceiling.is_none_or(|ceiling| grown <= ceiling);
    let ok = times >= FLOOR_TIMES && is_flat;
    let ceiling = ceiling.map_or_else(|| "none".to_owned(), |ceiling| ceiling.to_string());
    println!(
        "bench=changes case=deliver records={delivered} writers={WRITERS} items={} committed_per_s={:.0} \
         delivered_per_s={:.0} times={times:.2} floor_times={FLOOR_TIMES} grown_mib={grown} \
         ceiling_mib={ceiling} ok={ok}",
        WRITERS * ITEMS,
        median(commits),
        median(deliveries),
    );
    Ok(ok)
}

/// Runs all writers for a duration.
async fn write(db: &Db, written: &Arc<AtomicU64>, length: Duration) -> Fallible<Rate> {
    let is_over = Arc::new(AtomicBool::new(false));
    let round = written.fetch_add(1, Ordering::Relaxed);
    let start = Instant::now();
    let tasks: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (engine, is_over) = (db.engine().clone(), is_over.clone());
            tokio::spawn(async move { put(&*engine, writer, round, &is_over).await })
        })
        .collect();
    tokio::time::sleep(length).await;
    is_over.store(true, Ordering::Relaxed);
    let mut operations = 0;
    for task in tasks {
        operations += task.await??;
    }
    Ok(Rate {
        operations,
        elapsed: start.elapsed(),
    })
}

/// Puts the items of a writer sequentially. Counts increase within a round and from round to round.
async fn put(
    engine: &dyn Engine,
    writer: u64,
    round: u64,
    is_over: &AtomicBool,
) -> Result<u64, floe_store::Error> {
    let note = "a note of about one hundred bytes, like an attribute that a query does not need. "
        .repeat(2);
    let mut puts = 0;
    while !is_over.load(Ordering::Relaxed) {
        let item = Item::new()
            .with("_id", format!("{writer}-{}", puts % ITEMS).as_str())
            // Ascending within a round, and from round to round.
            .with("count", round * 1_000_000_000 + puts / ITEMS)
            .with("note", note.as_str());
        engine
            .write_item(PutItem::new("counters", item).into())
            .await?;
        puts += 1;
    }
    Ok(puts)
}

/// The last delivered count of each item.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<HashMap<String, u64>>>);

impl Ledger {
    fn router(&self) -> Router {
        let (inserted, changed) = (self.clone(), self.clone());
        Router::new()
            .on_inserted::<Counter>(move |a: Inserted<Counter>| {
                let handled = inserted.note(a.value, None);
                async move { handled }
            })
            .on_changed::<Counter>(move |a: Changed<Counter>| {
                let handled = changed.note(a.new, Some(a.old.count));
                async move { handled }
            })
    }

    /// Checks that a change starts at the count at which the previous one ended.
    fn note(&self, new: Counter, old: Option<u64>) -> HandlerResult {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = counts.insert(new.id, new.count);
        if last == old && !new.note.is_empty() {
            Ok(())
        } else {
            Err(Failure::permanent(format!(
                "out of order: last={last:?} old={old:?}"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_change_is_a_failure() {
        let counter = |count| Counter {
            id: "a".to_owned(),
            count,
            note: "n".to_owned(),
        };
        let ledger = Ledger::default();
        assert!(ledger.note(counter(1), None).is_ok());
        assert!(ledger.note(counter(2), Some(1)).is_ok());
        assert!(ledger.note(counter(4), Some(3)).is_err());
        assert!(ledger.note(counter(1), None).is_err());
    }

    #[tokio::test]
    async fn every_change_is_delivered() {
        let db = Db::memory().unwrap();
        let plan = Plan {
            records: 100,
            round: Duration::from_millis(20),
        };
        run_rounds(&db, &plan).await.unwrap();
    }
}
