//! Measures one kind of request, sent by concurrent tasks for a fixed time.

use std::sync::Arc;
use std::time::Duration;

use floe_local::LocalEngine;
use floe_store::env::{SeededRandom, Stopwatch};
use floe_store::expr::{KeyCondition, Update};
use floe_store::op::{GetItem, PutItem, Query, TransactWrite, TransactWriteItems, UpdateItem};
use floe_store::{Engine, Item};

use crate::{Failure, Result};

/// The table of the benchmark.
pub(super) const TABLE: &str = "bench";

/// The number of partitions, and of items per partition that are read.
const PARTITIONS: u64 = 256;
const SORTS: u64 = 64;
const QUERY_ITEMS: usize = 20;

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Put,
    Get,
    Query,
    Transaction,
}

/// The latencies of one kind of request.
#[derive(Debug, Default)]
pub(super) struct Measurement {
    /// Latencies in microseconds, ascending.
    micros: Vec<u64>,
    span: Duration,
}

impl RequestKind {
    pub(super) const ALL: [Self; 4] = [Self::Put, Self::Get, Self::Query, Self::Transaction];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Put => "put",
            Self::Get => "get",
            Self::Query => "query of 20",
            Self::Transaction => "transaction of 3",
        }
    }

    async fn send(self, engine: &LocalEngine, random: &SeededRandom) -> floe_store::Result<()> {
        let (p, s) = (random.below(PARTITIONS), random.below(SORTS));
        match self {
            Self::Put => {
                let put = PutItem::new(TABLE, item(p, s));
                engine.write_item(put.into()).await.map(drop)
            }
            Self::Get => engine
                .get_item(GetItem::new(TABLE, key(p, s)))
                .await
                .map(drop),
            Self::Query => {
                let condition = KeyCondition::partition("p", partition(p));
                let query = Query::new(TABLE, condition).limit(QUERY_ITEMS);
                engine.query(query).await.map(drop)
            }
            Self::Transaction => {
                let other = (p + 1 + random.below(PARTITIONS - 1)) % PARTITIONS;
                let update = |p| -> TransactWrite {
                    let one = Update::new().add("count", 1);
                    UpdateItem::new(TABLE, key(p, s), one).into()
                };
                let put = PutItem::new(TABLE, item(p, SORTS + random.below(1 << 40)));
                let writes = [update(p), update(other), put.into()];
                let sent = engine.transact_write_items(TransactWriteItems::new(writes));
                sent.await.map(drop)
            }
        }
    }
}

impl Measurement {
    pub(super) fn count(&self) -> u64 {
        u64::try_from(self.micros.len()).unwrap_or(u64::MAX)
    }

    pub(super) fn per_second(&self) -> u64 {
        let micros = u64::try_from(self.span.as_micros())
            .unwrap_or(u64::MAX)
            .max(1);
        u64::try_from(u128::from(self.count()) * 1_000_000 / u128::from(micros)).unwrap_or(u64::MAX)
    }

    /// The latency in microseconds within which this percentage of requests completed.
    pub(super) fn quantile(&self, percent: usize) -> u64 {
        let at = (self.micros.len() * percent / 100).min(self.micros.len().saturating_sub(1));
        self.micros.get(at).copied().unwrap_or(0)
    }
}

/// Sends requests of one kind from concurrent tasks. Each task waits for a response before its next request.
pub(super) async fn measure(
    engine: &Arc<LocalEngine>,
    kind: RequestKind,
    tasks: u32,
    span: Duration,
) -> Result<Measurement> {
    if kind == RequestKind::Get {
        fill(engine).await?;
    }
    let watch = Stopwatch::start();
    let running: Vec<_> = (0..tasks)
        .map(|task| {
            let engine = Arc::clone(engine);
            tokio::spawn(async move { one_task(&engine, kind, u64::from(task), watch, span).await })
        })
        .collect();
    let mut measured = Measurement::default();
    for task in running {
        let ended = task.await;
        let micros = ended.map_err(|error| Failure::failed(format!("a task failed: {error}")))?;
        measured.micros.extend(micros?);
    }
    measured.span = watch.elapsed();
    measured.micros.sort_unstable();
    Ok(measured)
}

async fn one_task(
    engine: &LocalEngine,
    kind: RequestKind,
    seed: u64,
    since: Stopwatch,
    span: Duration,
) -> floe_store::Result<Vec<u64>> {
    let random = SeededRandom::new(seed);
    let mut micros = Vec::new();
    while since.elapsed() < span {
        let watch = Stopwatch::start();
        kind.send(engine, &random).await?;
        micros.push(u64::try_from(watch.elapsed().as_micros()).unwrap_or(u64::MAX));
        // Reads never wait, so without a yield the task would occupy its thread.
        tokio::task::yield_now().await;
    }
    Ok(micros)
}

/// Puts every item that is read.
async fn fill(engine: &LocalEngine) -> floe_store::Result<()> {
    for p in 0..PARTITIONS {
        let writes =
            (0..SORTS).map(|s| -> TransactWrite { PutItem::new(TABLE, item(p, s)).into() });
        engine
            .transact_write_items(TransactWriteItems::new(writes))
            .await?;
    }
    Ok(())
}

fn partition(p: u64) -> String {
    format!("partition-{p:04}")
}

fn key(p: u64, s: u64) -> Item {
    Item::new().with("p", partition(p).as_str()).with("s", s)
}

fn item(p: u64, s: u64) -> Item {
    key(p, s)
        .with("name", "a name of some length, as names are")
        .with("count", 1)
        .with("flag", true)
        .with("body", "x".repeat(96).as_str())
}
