//! The embedded engine.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use floe_local::{Durability, LocalEngine, Options};
use floe_store::expr::{Condition, KeyCondition, KeyOp, Path as AttributePath};
use floe_store::op::{BatchWriteItem, GetItem, PutItem, Query, TransactWriteItems};
use floe_store::table::{KeyKind, Projection, StreamView};
use floe_store::{Engine, Item, TableDef, Value};
use tokio::runtime::Runtime;

use super::data::{self, PARTITION, Picker};
use super::{Decoding, Fallible, Subject};
use crate::measure::Rate;
use crate::rounds;

const TABLE: &str = "Customers";

pub(crate) struct Floe {
    engine: Arc<LocalEngine>,
    runtime: Runtime,
}

impl Floe {
    pub(super) fn load(folder: &Path, items: u64) -> Fallible<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()?;
        // Only the measured engine must be durable.
        let options = Options::new().durability(Durability::Relaxed);
        let loader = LocalEngine::open_with(folder, options)?;
        runtime.block_on(fill(&loader, items))?;
        loader.close()?;
        drop(loader);
        let engine = Arc::new(LocalEngine::open(folder)?);
        Ok(Self { engine, runtime })
    }
}

async fn fill(engine: &LocalEngine, items: u64) -> Fallible<()> {
    let table = TableDef::builder(TABLE, "pk", KeyKind::S)
        .sort_key("sk", KeyKind::N)
        .global_index(
            "by_owner",
            [("owner", KeyKind::S)],
            [("sk", KeyKind::N)],
            Projection::All,
        )
        .stream(StreamView::NewAndOldImages)
        .build()?;
    engine.create_table(table.into()).await?;
    let mut n = 0;
    while n < items {
        // Concurrent batches share a commit.
        let batches = (n..items.min(n + 500)).collect::<Vec<_>>();
        let mut results = Vec::new();
        for chunk in batches.chunks(25) {
            let batch = chunk.iter().fold(BatchWriteItem::new(), |batch, &n| {
                batch.put(TABLE, data::item(n, 0))
            });
            results.push(engine.batch_write_item(batch));
        }
        for result in results {
            result.await?;
        }
        n += batches.len() as u64;
    }
    Ok(())
}

fn put(n: u64, score: u64) -> PutItem {
    PutItem::new(TABLE, data::item(n, score))
        .condition(Condition::attribute_exists(AttributePath::attribute("pk")))
}

fn use_item(item: &Item, decoding: Decoding) {
    if decoding == Decoding::Full {
        item.iter().for_each(|attribute| {
            black_box(attribute);
        });
    }
    black_box(item);
}

/// Repeats a step in one task until the duration has passed.
async fn repeat<F: Future<Output = Fallible<u64>>>(
    duration: Duration,
    mut step: impl FnMut() -> F,
) -> Fallible<Rate> {
    let start = Instant::now();
    let mut operations = 0;
    loop {
        operations += step().await?;
        let elapsed = start.elapsed();
        if elapsed >= duration {
            return Ok(Rate {
                operations,
                elapsed,
            });
        }
    }
}

impl Subject for Floe {
    fn get(&self, picker: &mut Picker, decoding: Decoding, duration: Duration) -> Fallible<Rate> {
        let picker = &*picker;
        self.runtime.block_on(repeat(duration, || async {
            for _ in 0..100 {
                let get = GetItem::new(TABLE, data::key(picker.item()));
                let output = self.engine.get_item(get).await?;
                use_item(&output.item.ok_or("an item is missing")?, decoding);
            }
            Ok(100)
        }))
    }

    fn query(
        &self,
        picker: &mut Picker,
        count: usize,
        decoding: Decoding,
        duration: Duration,
    ) -> Fallible<Rate> {
        let picker = &*picker;
        self.runtime.block_on(repeat(duration, || async {
            let start = picker.start_of(count);
            let partition = data::partition_key(start / PARTITION);
            let from = KeyOp::Ge(Value::from(start % PARTITION));
            let condition = KeyCondition::partition("pk", partition).and("sk", from);
            let query = Query::new(TABLE, condition).limit(count).consistent();
            let page = self.engine.query(query).await?;
            page.items.iter().for_each(|item| use_item(item, decoding));
            if page.items.len() == count {
                Ok(1)
            } else {
                Err("a query returned too few items".into())
            }
        }))
    }

    fn put(&self, picker: &mut Picker, writers: usize, duration: Duration) -> Fallible<Rate> {
        if writers == 1 {
            let picker = &*picker;
            return self.runtime.block_on(repeat(duration, || async {
                self.engine
                    .write_item(put(picker.item(), picker.score()).into())
                    .await?;
                Ok(1)
            }));
        }
        self.runtime
            .block_on(put_concurrently(&self.engine, picker, writers, duration))
    }

    fn transact(&self, picker: &mut Picker, duration: Duration) -> Fallible<Rate> {
        let picker = &*picker;
        self.runtime.block_on(repeat(duration, || async {
            let puts = picker.three().map(|n| put(n, picker.score()).into());
            self.engine
                .transact_write_items(TransactWriteItems::new(puts))
                .await?;
            Ok(1)
        }))
    }
}

async fn put_concurrently(
    engine: &Arc<LocalEngine>,
    picker: &Picker,
    writers: usize,
    duration: Duration,
) -> Fallible<Rate> {
    let rate = rounds::run_tasks(duration, 0..writers, |_, round| {
        let own = Picker::new(picker.score() + picker.item(), picker.items());
        let engine = engine.clone();
        async move {
            let mut done = 0;
            while !round.is_over() {
                let write = put(own.item(), own.score()).into();
                engine.write_item(write).await?;
                done += 1;
            }
            Ok(done)
        }
    });
    Ok(rate.await.map_err(|error| error.0)?)
}
