//! Concurrent reads and writes, in an order that the test determines.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use floe::cache::{CacheEngine, CacheOptions};
use floe_store::op::*;
use floe_store::table::KeyKind;
use floe_store::{BoxFuture, Engine, Item, TableDef};
use floe_testkit::fault::Faults;
use tokio::task::JoinHandle;

use super::fixture::*;
use super::gate::{Gate, Held, Side};

/// Starts a read whose response is held.
async fn slow_read(world: &World, id: &'static str) -> (Held, JoinHandle<i64>) {
    let mut held = world.gate.hold("get_item", Side::After);
    let cache = world.cache.clone();
    let read = tokio::spawn(async move { eventual(&*cache, id).await });
    held.arrived().await;
    (held, read)
}

/// Starts a batch read whose response is held.
async fn slow_batch(world: &World, id: &'static str) -> (Held, JoinHandle<i64>) {
    let mut held = world.gate.hold("batch_get_item", Side::After);
    let cache = world.cache.clone();
    let read = tokio::spawn(async move {
        let output = cache.batch_get_item(batch([id])).await.unwrap();
        version_of(output.items["Plain"].first())
    });
    held.arrived().await;
    (held, read)
}

/// Starts a write that is held.
async fn slow_write(
    world: &World,
    write: impl Into<WriteItem>,
    side: Side,
) -> (Held, JoinHandle<()>) {
    let (mut held, write) = (world.gate.hold("write_item", side), write.into());
    let cache = world.cache.clone();
    let writing = tokio::spawn(async move {
        cache.write_item(write).await.unwrap();
    });
    held.arrived().await;
    (held, writing)
}

/// Starts a request and drops it while it is held.
async fn cancelled<T>(world: &World, operation: &'static str, side: Side, request: Request<T>) {
    let mut held = world.gate.hold(operation, side);
    let mut request = pin!(request(world.cache.clone()));
    let mut arrived = pin!(held.arrived());
    std::future::poll_fn(|context| {
        assert!(request.as_mut().poll(context).is_pending());
        arrived.as_mut().poll(context)
    })
    .await;
}

type Request<T> = Box<dyn FnOnce(Arc<CacheEngine>) -> BoxFuture<'static, T>>;

fn writes(write: impl Into<WriteItem>) -> Request<()> {
    let write = write.into();
    Box::new(|cache| Box::pin(async move { drop(cache.write_item(write).await) }))
}

#[tokio::test]
async fn read_started_before_a_write_does_not_restore_the_old_item() {
    let world = world().await;
    world.write_elsewhere(put("a", 1)).await;
    let (one, first) = slow_read(&world, "a").await;
    let (two, second) = slow_batch(&world, "a").await;
    world.write(put("a", 2)).await;
    assert_eq!(world.sees_for("a").await, (2, 0));
    one.open();
    two.open();
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (1, 1));
    assert_eq!(world.sees_for("a").await, (2, 0));
    // The same if the write leaves nothing in the cache.
    world.cache.clear();
    let (one, first) = slow_read(&world, "a").await;
    let (two, second) = slow_batch(&world, "a").await;
    let write = update("a", 3).return_values(ReturnValues::AllOld);
    world.write(write).await;
    one.open();
    two.open();
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (2, 2));
    assert_eq!(world.sees_for("a").await, (3, 1));
    assert_eq!(world.sees_for("a").await, (3, 0));
}

#[tokio::test]
async fn read_started_during_a_write_fills_nothing() {
    let world = world().await;
    world.write(put("a", 1)).await;
    let (write, writing) = slow_write(&world, put("a", 2), Side::Before).await;
    // Its response arrives before that of the write.
    assert_eq!(world.sees_for("a").await, (1, 1));
    assert_eq!(world.sees_for("a").await, (1, 1));
    // Its response arrives after that of the write.
    let (read, reading) = slow_read(&world, "a").await;
    write.open();
    writing.await.unwrap();
    read.open();
    assert_eq!(reading.await.unwrap(), 1);
    assert_eq!(world.sees_for("a").await, (2, 0));
}

#[tokio::test]
async fn overlapping_writes_do_not_leave_the_older_item() {
    let world = world().await;
    world.write(put("a", 1)).await;
    // The first is applied first, and its response arrives last.
    let (first, writing) = slow_write(&world, put("a", 2), Side::After).await;
    world.write(put("a", 3)).await;
    first.open();
    writing.await.unwrap();
    assert_eq!(world.sees_for("a").await, (3, 1));
    // The first to start is applied last, and its response arrives first.
    let (first, writing_first) = slow_write(&world, put("a", 4), Side::Before).await;
    let (second, writing_second) = slow_write(&world, put("a", 5), Side::After).await;
    first.open();
    writing_first.await.unwrap();
    second.open();
    writing_second.await.unwrap();
    assert_eq!(world.sees_for("a").await, (4, 1));
    // Writes that do not overlap are cached.
    world.write(put("a", 6)).await;
    assert_eq!(world.sees_for("a").await, (6, 0));
}

#[tokio::test]
async fn batches_and_transactions_overlap_with_writes() {
    let world = world().await;
    for operation in ["batch_write_item", "transact_write_items"] {
        world.write(put("a", 1)).await;
        let mut held = world.gate.hold(operation, Side::After);
        let cache = world.cache.clone();
        let writing = tokio::spawn(async move {
            if operation == "batch_write_item" {
                let batch = BatchWriteItem::new().put("Plain", item("a", 2));
                let batch = batch.put("Plain", item("b", 2));
                cache.batch_write_item(batch).await.map(drop)
            } else {
                let puts = [put("a", 2).into(), put("b", 2).into()];
                let request = TransactWriteItems::new(puts);
                cache.transact_write_items(request).await.map(drop)
            }
        });
        held.arrived().await;
        world.write(put("a", 3)).await;
        held.open();
        writing.await.unwrap().unwrap();
        assert_eq!(world.sees_for("a").await, (3, 1), "{operation}");
        assert_eq!(world.sees_for("b").await, (2, 0), "{operation}");
    }
}

#[tokio::test]
async fn cancelled_write_caches_nothing_and_is_not_pending() {
    for (side, expected) in [(Side::Before, 1), (Side::After, 2)] {
        let world = world().await;
        world.write(put("a", 1)).await;
        cancelled(&world, "write_item", side, writes(put("a", 2))).await;
        let (read, reading) = slow_read(&world, "a").await;
        // A read that started before fills nothing.
        cancelled(&world, "write_item", side, writes(put("a", 2))).await;
        read.open();
        assert_eq!(reading.await.unwrap(), expected);
        assert_eq!(world.sees_for("a").await, (expected, 1), "{side:?}");
        assert_eq!(world.sees_for("a").await, (expected, 0), "{side:?}");
        // No write counts as pending: the next write is cached.
        world.write(put("a", 3)).await;
        assert_eq!(world.sees_for("a").await, (3, 0), "{side:?}");
    }
}

#[tokio::test]
async fn batches_and_transactions_can_be_cancelled() {
    for side in [Side::Before, Side::After] {
        for operation in ["batch_write_item", "transact_write_items"] {
            let world = world().await;
            world.write(put("a", 1)).await;
            let request: Request<()> = match operation {
                "batch_write_item" => Box::new(|cache| {
                    let batch = BatchWriteItem::new().put("Plain", item("a", 2));
                    Box::pin(async move { drop(cache.batch_write_item(batch).await) })
                }),
                _ => Box::new(|cache| {
                    let request = TransactWriteItems::new([put("a", 2).into()]);
                    Box::pin(async move { drop(cache.transact_write_items(request).await) })
                }),
            };
            cancelled(&world, operation, side, request).await;
            let expected = if side == Side::After { 2 } else { 1 };
            assert_eq!(world.sees_for("a").await, (expected, 1));
            world.write(put("a", 3)).await;
            assert_eq!(world.sees_for("a").await, (3, 0));
        }
    }
}

#[tokio::test]
async fn cancelled_read_caches_nothing() {
    let world = world().await;
    world.write_elsewhere(put("a", 1)).await;
    let request: Request<()> =
        Box::new(|cache| Box::pin(async move { drop(cache.get_item(get("a")).await) }));
    cancelled(&world, "get_item", Side::After, request).await;
    assert_eq!(world.cache.stats().items, 0);
    assert_eq!(world.sees_for("a").await, (1, 1));
}

#[tokio::test]
async fn deletion_of_a_table_discards_reads_and_writes_in_flight() {
    for is_cancelled in [false, true] {
        let world = world().await;
        world.write(put("a", 1)).await;
        world.write_elsewhere(put("b", 1)).await;
        let (read, reading) = slow_read(&world, "b").await;
        let (write, writing) = slow_write(&world, put("a", 2), Side::After).await;
        if is_cancelled {
            let request: Request<()> = Box::new(|cache| {
                let name = "Plain".to_owned();
                Box::pin(async move { drop(cache.delete_table(name).await) })
            });
            cancelled(&world, "delete_table", Side::After, request).await;
        } else {
            let name = "Plain".to_owned();
            world.cache.delete_table(name).await.unwrap();
        }
        read.open();
        write.open();
        assert_eq!(reading.await.unwrap(), 1);
        writing.await.unwrap();
        assert_eq!(world.cache.stats().items, 0);
        assert!(world.cache.get_item(get("a")).await.is_err());
        assert!(world.cache.get_item(get("b")).await.is_err());
    }
}

#[tokio::test]
async fn read_during_the_deletion_of_a_table_is_not_cached() {
    let world = world().await;
    world.write_elsewhere(put("a", 1)).await;
    let mut held = world.gate.hold("delete_table", Side::Before);
    let cache = world.cache.clone();
    let deleting = tokio::spawn(async move { cache.delete_table("Plain".to_owned()).await });
    held.arrived().await;
    assert_eq!(world.sees("a").await, 1);
    held.open();
    deleting.await.unwrap().unwrap();
    assert!(world.cache.get_item(get("a")).await.is_err());
}

/// The key of the put is unknown, so it may write any item of the table.
#[tokio::test]
async fn put_with_unknown_key_blocks_older_reads() {
    for is_cancelled in [false, true] {
        let secretive = |gate: &mut Gate| gate.is_secretive = true;
        let world = world_with(Faults::seeded(1), CacheOptions::new(), secretive).await;
        world.write_elsewhere(put("a", 1)).await;
        let (before, reading_before) = slow_read(&world, "a").await;
        if is_cancelled {
            cancelled(&world, "write_item", Side::After, writes(put("a", 2))).await;
        } else {
            let (write, writing) = slow_write(&world, put("a", 2), Side::Before).await;
            // Another request reveals the key, too late for the put.
            assert_eq!(world.sees("a").await, 1);
            write.open();
            writing.await.unwrap();
        }
        before.open();
        assert_eq!(reading_before.await.unwrap(), 1);
        assert_eq!(world.sees("a").await, 2, "{is_cancelled}");
    }
}

/// While the put is in flight, a read reveals that the table was recreated with another key.
#[tokio::test]
async fn put_under_an_outdated_key_caches_nothing() {
    let world = world().await;
    world.write(put("a", 1)).await;
    world.other.delete_table("Plain".to_owned()).await.unwrap();
    let table = TableDef::builder("Plain", "name", KeyKind::S).build();
    let create = CreateTable::from(table.unwrap());
    world.other.create_table(create).await.unwrap();
    let named = |version| PutItem::new("Plain", item("a", version).with("name", "x"));
    world.write_elsewhere(named(1)).await;
    let (write, writing) = slow_write(&world, named(2), Side::Before).await;
    let read = || GetItem::new("Plain", Item::new().with("name", "x")).eventual();
    for (version, write) in [(1, None), (1, None), (2, Some((write, writing)))] {
        if let Some((write, writing)) = write {
            write.open();
            writing.await.unwrap();
        }
        let output = world.cache.get_item(read()).await.unwrap();
        assert_eq!(version_of(output.item.as_ref()), version);
    }
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_poll() {
    let world = world().await;
    let write = world.cache.write_item(put("a", 1).into());
    drop(write);
    let mut read = world.cache.get_item(get("a"));
    assert!(world.requests().is_empty());
    let first = std::future::poll_fn(|context| Poll::Ready(read.as_mut().poll(context))).await;
    assert!(first.is_ready(), "the embedded engine reads immediately");
}
