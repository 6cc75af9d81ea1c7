//! Appends that meet a prune, or an equal event of somebody else, at the worst moment.

use std::sync::Arc;
use std::time::Duration;

use floe::events::{Caching, Decider, Event, EventData, Expected, Load, StreamName};
use floe::{Error, ErrorKind, Result};
use floe_store::Capabilities;
use floe_testkit::fault::{FaultKind, Operation};

use super::streams::World;
use super::{gate, streams};

struct Count;

#[derive(Clone, Debug)]
struct Added;

impl Event for Added {
    fn event_type(&self) -> &'static str {
        "Added"
    }

    fn encode(&self) -> Result<Vec<u8>> {
        Ok(vec![])
    }

    fn decode(t: &str, _: &[u8]) -> Result<Option<Self>> {
        Ok((t == "Added").then_some(Added))
    }
}

impl Decider for Count {
    const CATEGORY: &'static str = "Count";
    type Id = str;
    type Event = Added;
    type State = u64;

    fn initial() -> u64 {
        0
    }

    fn evolve(s: u64, _: &Added) -> u64 {
        s + 1
    }
}

#[tokio::test]
async fn an_append_notices_that_the_tip_was_pruned() {
    let world = World::new(Capabilities::all()).await;
    let store = world
        .store
        .clone()
        .cached(Caching::Sliding(Duration::from_secs(1000)), 1 << 20);
    let count = store.stream::<Count>("a").load(Load::AnyCached);
    let add = |_: &u64| Ok::<_, Error>(vec![Added]);
    let name = StreamName::new("Count", "a").unwrap();
    for _ in 0..5 {
        count.transact(add).await.unwrap();
    }
    // A batch 0..3 and a Tip 3..5, of which another process deletes the first four events.
    let pruned = world.other.prune(&name, 4).await.unwrap();
    // The version is what it was. This one is appended to the Tip, and the next one calves it.
    count.transact(add).await.unwrap();
    count.transact(add).await.unwrap();
    let read = world.other.read(&name).collect().await.unwrap();
    let indexes: Vec<_> = read.iter().map(|read| read.index).collect();
    assert_eq!((pruned.lowest, indexes), (4, vec![4, 5, 6]));
}

#[tokio::test]
async fn an_append_whose_answer_was_lost_is_not_made_again_over_a_prune() {
    let world = Arc::new(World::new(Capabilities::dynamodb()).await);
    let name = streams::stream();
    world.append(&name, 0..1).await;
    let mut again = world.gate.hold("write_item", gate::Side::Before);
    let mut resend = world.gate.hold("write_item", gate::Side::Before);
    let there = world.clone();
    let task = tokio::spawn(async move {
        there
            .store
            .append(
                &streams::stream(),
                Expected::Any,
                [EventData::new("Once", "")],
            )
            .await
    });
    again.arrived().await;
    world
        .faults
        .script(Operation::WriteItem, FaultKind::LostAfter)
        .unwrap();
    again.open();
    resend.arrived().await;
    let pruned = world.other.prune(&name, 2).await.unwrap();
    assert_eq!(pruned.deleted, 2);
    resend.open();
    let told = task.await.unwrap();
    assert_eq!(told.unwrap_err().kind(), ErrorKind::OutcomeUnknown);
    assert_eq!(world.other.version(&name).await.unwrap(), 2);
}

#[tokio::test]
async fn an_equal_event_of_another_is_not_taken_for_ours() {
    let world = Arc::new(World::new(Capabilities::dynamodb()).await);
    let name = streams::stream();
    world.append(&name, 0..1).await;
    let mut first = world.gate.hold("write_item", gate::Side::Before);
    let mut resend = world.gate.hold("write_item", gate::Side::Before);
    let there = world.clone();
    let task = tokio::spawn(async move {
        there
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
    // The same event in the same millisecond, by another process.
    world
        .other
        .append(&name, Expected::Any, [EventData::new("Tick", "")])
        .await
        .unwrap();
    resend.open();
    assert_eq!(task.await.unwrap(), Ok(3));
    assert_eq!(world.other.version(&name).await.unwrap(), 3);
}
