//! Concurrent tasks on an engine that loses responses and reads from lagging replicas: each task always sees its own
//! acknowledged writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use floe::cache::CacheOptions;
use floe_store::Engine;
use floe_store::env::SeededRandom;
use floe_store::expr::Update;
use floe_store::op::*;
use floe_testkit::fault::{Faults, Lag};

use super::fixture::*;

const TASKS: usize = 6;
const ROUNDS: i64 = 300;

/// Writes a version of an item with one of the write operations. Returns whether it succeeded.
async fn write(engine: &dyn Engine, how: u64, id: &str, version: i64) -> bool {
    let single = |write: WriteItem| async { engine.write_item(write).await.is_ok() };
    match how {
        0 => single(put(id, version).into()).await,
        1 => single(update(id, version).into()).await,
        2 => {
            single(
                update(id, version)
                    .return_values(ReturnValues::AllOld)
                    .into(),
            )
            .await
        }
        3 => single(put(id, version).token(format!("{id} {version}")).into()).await,
        4 => {
            let batch = BatchWriteItem::new().put("Plain", item(id, version));
            let batch = batch.put("Second", item(id, version));
            let output = engine.batch_write_item(batch).await;
            output.is_ok_and(|output| !output.unprocessed.contains_key("Plain"))
        }
        _ => {
            let action = match how {
                5 => put(id, version).into(),
                _ => update(id, version).into(),
            };
            let other = PutItem::new("Second", item(id, version));
            let request = TransactWriteItems::new([action, other.into()]);
            engine.transact_write_items(request).await.is_ok()
        }
    }
}

/// Reads the version of an item with one of the read operations that the cache answers.
async fn read(engine: &dyn Engine, how: u64, id: &str) -> Option<i64> {
    if how == 0 {
        let output = engine.get_item(get(id)).await.ok()?;
        return Some(version_of(output.item.as_ref()));
    }
    let output = engine.batch_get_item(batch([id, "other"])).await.ok()?;
    let is_left = |left: &KeysAndAttributes| left.keys.contains(&key(id));
    if output.unprocessed.values().any(is_left) {
        return None;
    }
    let found = output.items["Plain"].iter();
    let found = found
        .clone()
        .find(|item| item.get("id") == key(id).get("id"));
    Some(version_of(found))
}

/// One task: writes and reads its own item, and increments and reads the item that all tasks share.
async fn run(engine: Arc<dyn Engine>, task: usize, shared: Arc<AtomicI64>) -> u64 {
    let random = SeededRandom::new(task as u64);
    let own = format!("own {task}");
    let (mut acknowledged, mut reads) = (0, 0);
    for version in 1..=ROUNDS {
        if write(&*engine, random.below(7), &own, version).await {
            acknowledged = version;
        }
        for _ in 0..2 {
            if let Some(seen) = read(&*engine, random.below(2), &own).await {
                assert!(seen >= acknowledged, "own={own} {seen} < {acknowledged}");
                reads += 1;
            }
        }
        let add = UpdateItem::new("Plain", key("shared"), Update::new().add("v", 1));
        let add = match random.below(3) {
            0 => add,
            1 => add.return_values(ReturnValues::UpdatedNew),
            _ => add.return_values(ReturnValues::AllNew),
        };
        if let Ok(output) = engine.write_item(add.into()).await {
            shared.fetch_max(version_of(output.attributes.as_ref()), Ordering::SeqCst);
        }
        let before = shared.load(Ordering::SeqCst);
        if let Some(seen) = read(&*engine, random.below(2), "shared").await {
            assert!(seen >= before, "shared {seen} < {before}");
        }
        // Items of other tasks are read too, so that reads and writes are concurrent.
        let other = format!("own {}", random.below(TASKS as u64));
        read(&*engine, random.below(2), &other).await;
    }
    reads
}

async fn check(faults: Faults, options: CacheOptions) -> floe::cache::CacheStats {
    let world = world_with(faults, options, |_| {}).await;
    let shared = Arc::new(AtomicI64::new(0));
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| tokio::spawn(run(world.cache.clone(), task, shared.clone())))
        .collect();
    let mut reads = 0;
    for task in tasks {
        reads += task.await.unwrap();
    }
    assert!(reads > ROUNDS as u64 * TASKS as u64);
    world.cache.stats()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_task_sees_its_own_writes() {
    let faults = Faults::seeded(1)
        .stale_reads(0.5, Lag::Operations(200))
        .lost_before(0.05)
        .lost_after(0.05)
        .throttle(0.05)
        .partial_batches(0.1);
    let stats = check(faults, CacheOptions::new()).await;
    assert!(stats.hits > 1000, "{stats:?}");
}

/// Items are evicted all the time. The store has no lagging replicas here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_task_sees_its_own_writes_in_a_small_cache() {
    let faults = Faults::seeded(2).lost_before(0.05).lost_after(0.05);
    let options = CacheOptions::new().bytes_max(8 * 300);
    let stats = check(faults, options).await;
    assert!(stats.bytes <= 8 * 300 && stats.hits > 100, "{stats:?}");
}
