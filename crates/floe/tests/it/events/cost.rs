//! What appending and loading cost: requests, and units of capacity.

use std::time::Duration;

use floe::events::{Caching, EventData, EventStore, Expected, Load};
use floe_store::capacity::Units;

use super::support::{Way, World, append, name, note, noted, notes, stream, world};

/// What was sent since the last time, and what it cost: whole units of writing, half units of reading.
fn check(world: &World, requests: &[&str], read_halves: u64, write: u64) {
    assert_eq!(world.kinds(), requests);
    let cost = world.probe.take_cost();
    assert_eq!(
        cost,
        (Units::halves(read_halves), Units::whole(write)),
        "{requests:?}"
    );
}

fn forget(world: &World) {
    world.sent();
    world.probe.take_cost();
}

/// An event that says so many bytes.
fn of_bytes(bytes: usize) -> EventData {
    EventData::new("Large", vec![b'x'; bytes])
}

#[tokio::test]
async fn an_append_is_one_write_of_the_tip() {
    let world = world().await;
    let store = world.store();
    let at = name("a");
    store.append(&at, Expected::New, noted([0])).await.unwrap();
    check(&world, &["PutItem"], 0, 1);
    store
        .append(&at, Expected::Exact(1), noted([1]))
        .await
        .unwrap();
    check(&world, &["GetItem", "UpdateItem"], 2, 1);
    store
        .append(&at, Expected::Exact(2), [of_bytes(5_000)])
        .await
        .unwrap();
    check(&world, &["GetItem", "UpdateItem"], 2, 6);
    // Each append pays for the whole Tip, and for reading it.
    store
        .append(&at, Expected::Exact(3), noted([2]))
        .await
        .unwrap();
    check(&world, &["GetItem", "UpdateItem"], 4, 6);
}

#[tokio::test]
async fn a_calve_is_one_transaction_and_then_appends_are_cheap_again() {
    let world = world().await;
    let store = world.calving(1);
    append(&store, "a", [of_bytes(5_000)]).await;
    forget(&world);
    append(&store, "a", noted([1])).await;
    // The calf and the Tip as it was, 5 units each, and twice that for a transaction.
    check(&world, &["GetItem", "TransactWriteItems"], 4, 20);
    append(&world.store(), "a", noted([2])).await;
    check(&world, &["GetItem", "UpdateItem"], 2, 1);
}

/// A stream of so many batches of 5 KB, with a snapshot in the Tip or without.
async fn batches(world: &World, count: u32, way: Way) -> EventStore {
    let store = world.calving(1);
    for _ in 0..count {
        append(&store, "a", [of_bytes(5_000)]).await;
    }
    note(&stream(&store, "a", way), 1).await.unwrap();
    forget(world);
    store
}

#[tokio::test]
async fn a_load_with_a_snapshot_is_one_get_however_long_the_stream() {
    for count in [1, 10] {
        let world = world().await;
        let store = batches(&world, count, Way::Snapshot).await;
        let snapshot = stream(&store, "a", Way::Snapshot);
        notes(&snapshot).await;
        check(&world, &["GetItem"], 1, 0);
        notes(&snapshot.load(Load::RequireLeader)).await;
        check(&world, &["GetItem"], 2, 0);
    }
}

#[tokio::test]
async fn a_load_without_a_snapshot_reads_all_batches_once() {
    let world = world().await;
    let store = batches(&world, 10, Way::Unoptimized).await;
    // 10 items of some 5.1 KB together take 13 whole units, and half of that for a read that may be behind.
    notes(&stream(&store, "a", Way::Unoptimized)).await;
    check(&world, &["Query"], 13, 0);
    notes(&stream(&store, "a", Way::Snapshot)).await;
    check(&world, &["GetItem", "Query"], 14, 0);
    notes(&stream(&store, "a", Way::Unoptimized).load(Load::RequireLeader)).await;
    check(&world, &["Query"], 26, 0);
}

#[tokio::test]
async fn a_state_that_is_kept_costs_one_get_of_the_tip_and_a_decision_one_write_more() {
    let world = world().await;
    let store = batches(&world, 10, Way::Unoptimized).await;
    let store = store.cached(Caching::Sliding(Duration::from_secs(60)), 1 << 20);
    let all = stream(&store, "a", Way::Unoptimized);
    notes(&all).await;
    check(&world, &["Query"], 13, 0);
    notes(&all).await;
    check(&world, &["GetItem"], 1, 0);
    let any = stream(&store, "a", Way::Unoptimized).load(Load::AnyCached);
    notes(&any).await;
    check(&world, &[], 0, 0);
    // What it wrote is known, so that it is not read.
    for _ in 0..2 {
        note(&any, 2).await.unwrap();
        check(&world, &["TransactWriteItems"], 0, 4);
    }
}
