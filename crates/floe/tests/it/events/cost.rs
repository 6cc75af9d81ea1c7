//! The cost of appends and loads: requests and capacity units.

use std::time::Duration;

use floe::events::{Caching, EventData, EventStore, Expected, Load};
use floe_store::capacity::Units;

use super::support::{Strategy, World, append, name, note, noted, notes, stream, world};

/// Checks the requests since the last call and their cost, in half read units and whole write units.
fn check(world: &World, requests: &[&str], read_halves: u64, write: u64) {
    assert_eq!(world.operations(), requests);
    let cost = world.probe.take_cost();
    assert_eq!(
        cost,
        (Units::halves(read_halves), Units::whole(write)),
        "{requests:?}"
    );
}

fn reset(world: &World) {
    world.sent();
    world.probe.take_cost();
}

/// An event with a body of this size.
fn event_of_size(bytes: usize) -> EventData {
    EventData::new("Large", vec![b'x'; bytes])
}

#[tokio::test]
async fn append_is_one_write_of_the_tip() {
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
        .append(&at, Expected::Exact(2), [event_of_size(5_000)])
        .await
        .unwrap();
    check(&world, &["GetItem", "UpdateItem"], 2, 6);
    // Each append writes and reads the whole Tip.
    store
        .append(&at, Expected::Exact(3), noted([2]))
        .await
        .unwrap();
    check(&world, &["GetItem", "UpdateItem"], 4, 6);
}

#[tokio::test]
async fn calving_is_one_transaction_and_makes_appends_cheap_again() {
    let world = world().await;
    let store = world.calving(1);
    append(&store, "a", [event_of_size(5_000)]).await;
    reset(&world);
    append(&store, "a", noted([1])).await;
    // The calf and the previous Tip, 5 units each, doubled in a transaction.
    check(&world, &["GetItem", "TransactWriteItems"], 4, 20);
    append(&world.store(), "a", noted([2])).await;
    check(&world, &["GetItem", "UpdateItem"], 2, 1);
}

/// A stream of this many batches of 5 KB, with or without a snapshot in the Tip.
async fn batches(world: &World, count: u32, strategy: Strategy) -> EventStore {
    let store = world.calving(1);
    for _ in 0..count {
        append(&store, "a", [event_of_size(5_000)]).await;
    }
    note(&stream(&store, "a", strategy), 1).await.unwrap();
    reset(world);
    store
}

#[tokio::test]
async fn load_with_a_snapshot_is_one_get_for_any_length() {
    for count in [1, 10] {
        let world = world().await;
        let store = batches(&world, count, Strategy::Snapshot).await;
        let snapshot = stream(&store, "a", Strategy::Snapshot);
        notes(&snapshot).await;
        check(&world, &["GetItem"], 1, 0);
        notes(&snapshot.load(Load::RequireLeader)).await;
        check(&world, &["GetItem"], 2, 0);
    }
}

#[tokio::test]
async fn load_without_a_snapshot_reads_each_batch_once() {
    let world = world().await;
    let store = batches(&world, 10, Strategy::Unoptimized).await;
    // 10 items of 5.1 KB take 13 units, or half of that for an eventually consistent read.
    notes(&stream(&store, "a", Strategy::Unoptimized)).await;
    check(&world, &["Query"], 13, 0);
    notes(&stream(&store, "a", Strategy::Snapshot)).await;
    check(&world, &["GetItem", "Query"], 14, 0);
    notes(&stream(&store, "a", Strategy::Unoptimized).load(Load::RequireLeader)).await;
    check(&world, &["Query"], 26, 0);
}

#[tokio::test]
async fn cached_state_costs_one_get_and_a_decision_one_write() {
    let world = world().await;
    let store = batches(&world, 10, Strategy::Unoptimized).await;
    let store = store.cached(Caching::Sliding(Duration::from_secs(60)), 1 << 20);
    let all = stream(&store, "a", Strategy::Unoptimized);
    notes(&all).await;
    check(&world, &["Query"], 13, 0);
    notes(&all).await;
    check(&world, &["GetItem"], 1, 0);
    let any = stream(&store, "a", Strategy::Unoptimized).load(Load::AnyCached);
    notes(&any).await;
    check(&world, &[], 0, 0);
    // The position after an own write is known, so nothing is read.
    for _ in 0..2 {
        note(&any, 2).await.unwrap();
        check(&world, &["TransactWriteItems"], 0, 4);
    }
}
