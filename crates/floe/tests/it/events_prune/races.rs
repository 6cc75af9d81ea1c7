//! Appends that race with a prune, or with an equal event of another writer.

use std::sync::Arc;
use std::time::Duration;

use floe::events::{Caching, Decider, Event, EventData, Expected, Load, StreamName};
use floe::{Error, ErrorKind, Result};
use floe_store::Capabilities;
use floe_testkit::fault::{FaultKind, Operation};

use super::streams::World;
use super::{gate, streams};

struct Counter;

#[derive(Clone, Debug)]
struct Added;

impl Event for Added {
    fn event_type(&self) -> &'static str {
        "Added"
    }

    fn encode(&self) -> Result<Vec<u8>> {
        Ok(vec![])
    }

    fn decode(event_type: &str, _: &[u8]) -> Result<Option<Self>> {
        Ok((event_type == "Added").then_some(Added))
    }
}

impl Decider for Counter {
    const CATEGORY: &'static str = "Count";
    type Id = str;
    type Event = Added;
    type State = u64;

    fn initial() -> u64 {
        0
    }

    fn evolve(state: u64, _: &Added) -> u64 {
        state + 1
    }
}

#[tokio::test]
async fn append_notices_that_the_tip_was_pruned() {
    let world = World::new(Capabilities::all()).await;
    let store = world
        .store
        .clone()
        .cached(Caching::Sliding(Duration::from_secs(1000)), 1 << 20);
    let count = store.stream::<Counter>("a").load(Load::AnyCached);
    let add = |_: &u64| Ok::<_, Error>(vec![Added]);
    let name = StreamName::new("Count", "a").unwrap();
    for _ in 0..5 {
        count.transact(add).await.unwrap();
    }
    // There are a calf 0..3 and a Tip 3..5. Another process prunes the first four events.
    let pruned = world.other.prune(&name, 4).await.unwrap();
    // The version is unchanged. The first append extends the Tip, and the second calves it.
    count.transact(add).await.unwrap();
    count.transact(add).await.unwrap();
    let read = world.other.read(&name).collect().await.unwrap();
    let indexes: Vec<_> = read.iter().map(|event| event.index).collect();
    assert_eq!((pruned.lowest, indexes), (4, vec![4, 5, 6]));
}

#[tokio::test]
async fn append_with_lost_response_is_not_repeated_after_a_prune() {
    let world = Arc::new(World::new(Capabilities::dynamodb()).await);
    let name = streams::stream();
    world.append(&name, 0..1).await;
    let mut first = world.gate.hold("write_item", gate::Side::Before);
    let mut resend = world.gate.hold("write_item", gate::Side::Before);
    let appending = world.clone();
    let task = tokio::spawn(async move {
        appending
            .store
            .append(
                &streams::stream(),
                Expected::Any,
                [EventData::new("Once", "")],
            )
            .await
    });
    first.arrived().await;
    world
        .faults
        .script(Operation::WriteItem, FaultKind::LostAfter)
        .unwrap();
    first.open();
    resend.arrived().await;
    let pruned = world.other.prune(&name, 2).await.unwrap();
    assert_eq!(pruned.deleted, 2);
    resend.open();
    let appended = task.await.unwrap();
    assert_eq!(appended.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(world.other.version(&name).await.unwrap(), 2);
}

#[tokio::test]
async fn equal_event_of_another_writer_is_not_mistaken_for_the_own() {
    let world = Arc::new(World::new(Capabilities::dynamodb()).await);
    let name = streams::stream();
    world.append(&name, 0..1).await;
    let mut first = world.gate.hold("write_item", gate::Side::Before);
    let mut resend = world.gate.hold("write_item", gate::Side::Before);
    let appending = world.clone();
    let task = tokio::spawn(async move {
        appending
            .store
            .append(
                &streams::stream(),
                Expected::Any,
                [EventData::new("Tick", "")],
            )
            .await
    });
    first.arrived().await;
    world
        .faults
        .script(Operation::WriteItem, FaultKind::LostBefore)
        .unwrap();
    first.open();
    resend.arrived().await;
    // Another process appends the same event in the same millisecond.
    world
        .other
        .append(&name, Expected::Any, [EventData::new("Tick", "")])
        .await
        .unwrap();
    resend.open();
    assert_eq!(task.await.unwrap(), Ok(3));
    assert_eq!(world.other.version(&name).await.unwrap(), 3);
}
