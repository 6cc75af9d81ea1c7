//! Pruning of streams: the remaining items, the requests, lost responses, and concurrent writers.

mod races;

use std::sync::Arc;

use floe::events::{
    Access, Decider, Event, EventStoreOptions, Expected, Load, Pruned, StreamName, Unknown,
};
use floe::{Error, ErrorKind, Result};
use floe_store::{Capabilities, Item, Value};
use floe_testkit::fault::{FaultKind, Faults, Operation};

use crate::support::{gate, streams};
use gate::Side;
use streams::{World, event, options, stream};

/// Number of events of a stream in these tests: three calves of three events, and two events in the Tip.
const VERSION: u64 = 11;
/// The index of the first event in the Tip.
const BASE: u64 = 9;

async fn world(capabilities: Capabilities, options: EventStoreOptions) -> World {
    let world = World::with(capabilities, options).await;
    world.append(&stream(), 0..VERSION).await;
    world
}

/// Size of the events with these indexes.
fn event_bytes(indexes: std::ops::Range<u64>) -> u64 {
    let bytes = indexes.map(|index| "Noted".len() + event(index).data.len() + 40);
    bytes.sum::<usize>() as u64
}

/// Deleted events, deferred events, and the lowest remaining index.
fn counts(pruned: Pruned) -> (u64, u64, u64) {
    (pruned.deleted, pruned.deferred, pruned.lowest)
}

/// The expected result of pruning a stream whose first remaining event has this index.
fn expected_counts(lowest: u64, before: u64) -> (u64, u64, u64) {
    let before = before.min(VERSION);
    // A calf is deleted as a whole; single events are removed from the Tip only.
    let deletable = if before < BASE {
        before / 3 * 3
    } else {
        before
    };
    let after = lowest.max(deletable);
    (after - lowest, before.saturating_sub(after), after)
}

fn index_of(item: &Item) -> u64 {
    item.get("i")
        .and_then(Value::as_n)
        .unwrap()
        .to_u64()
        .unwrap()
}

/// The expected items of a pruned stream, without the etag, given the items before.
fn expected_items(items: &[Item], lowest: u64) -> Vec<Item> {
    let (tip, calves) = items.split_last().unwrap();
    let calves = calves.iter().filter(|item| index_of(item) >= lowest);
    let mut tip = tip.clone();
    let trimmed = usize::try_from(lowest.saturating_sub(BASE)).unwrap();
    for name in ["e", "c"] {
        let list = tip.get(name).and_then(Value::as_l).unwrap();
        let kept = list[trimmed..].to_vec();
        tip.insert(name, Value::L(kept));
    }
    if lowest > 0 {
        tip.insert("a", 0);
        tip.insert("b", event_bytes(lowest.min(BASE)..BASE));
    }
    calves.cloned().chain([tip]).map(without_etag).collect()
}

fn without_etag(mut item: Item) -> Item {
    item.remove("etag");
    item
}

fn etag(items: &[Item]) -> String {
    let etag = items.last().and_then(|tip| tip.get("etag"));
    etag.and_then(Value::as_s).unwrap().to_owned()
}

/// Checks the items of a pruned stream, given the items before.
async fn check_items(world: &World, items: &[Item], lowest: u64, case: &str) {
    let now = world.items(&stream()).await;
    assert_eq!(etag(&now) == etag(items), lowest == 0, "{case}");
    let now: Vec<_> = now.into_iter().map(without_etag).collect();
    assert_eq!(now, expected_items(items, lowest), "{case}");
}

#[tokio::test]
async fn stream_can_be_pruned_at_every_index() {
    for page_items in [1, 2, 32] {
        for before in 0..=VERSION + 2 {
            let case = format!("page_items={page_items} before={before}");
            let world = world(Capabilities::all(), options().page_items(page_items)).await;
            let items = world.items(&stream()).await;
            assert_eq!(items.len(), 4);
            let pruned = world.store.prune(&stream(), before).await.unwrap();
            assert_eq!(counts(pruned), expected_counts(0, before), "{case}");
            check_items(&world, &items, pruned.lowest, &case).await;

            let events = world.other.read(&stream()).collect().await.unwrap();
            let indexes: Vec<_> = events.iter().map(|event| event.index).collect();
            assert_eq!(
                indexes,
                (pruned.lowest..VERSION).collect::<Vec<_>>(),
                "{case}"
            );
            for read in events {
                assert_eq!(read.event, event(read.index), "{case}");
            }
        }
    }
}

#[tokio::test]
async fn stream_can_be_pruned_repeatedly() {
    for before in 0..=VERSION {
        for again in 0..=VERSION {
            let case = format!("before={before} again={again}");
            let world = world(Capabilities::all(), options()).await;
            let items = world.items(&stream()).await;
            let lowest = world.store.prune(&stream(), before).await.unwrap().lowest;
            let pruned_items = world.items(&stream()).await;
            world.recording.take();
            let pruned = world.store.prune(&stream(), again).await.unwrap();
            assert_eq!(counts(pruned), expected_counts(lowest, again), "{case}");
            check_items(&world, &items, pruned.lowest, &case).await;
            if pruned.deleted == 0 {
                assert_eq!(world.items(&stream()).await, pruned_items, "{case}");
                let sent = world.recording.take();
                let is_read = |line: &String| line.starts_with("GetItem") || line == "Query";
                assert!(sent.iter().all(is_read), "{case}: {sent:?}");
            }
        }
    }
}

#[tokio::test]
async fn prune_sends_only_necessary_requests() {
    let cases: [(u64, &[&str]); 5] = [
        (0, &["GetItem Tip", "Query"]),
        (2, &["GetItem Tip", "Query"]),
        (
            4,
            &["GetItem Tip", "Query", "DeleteItem 0", "UpdateItem Tip"],
        ),
        (
            9,
            &[
                "GetItem Tip",
                "Query",
                "DeleteItem 0",
                "DeleteItem 3",
                "DeleteItem 6",
                "UpdateItem Tip",
            ],
        ),
        (
            10,
            &[
                "GetItem Tip",
                "Query",
                "DeleteItem 0",
                "DeleteItem 3",
                "DeleteItem 6",
                "UpdateItem Tip",
            ],
        ),
    ];
    for (before, expected) in cases {
        let world = world(Capabilities::all(), options()).await;
        let etag_before = etag(&world.items(&stream()).await);
        world.store.prune(&stream(), before).await.unwrap();
        let sent = world.recording.take();
        let requests: Vec<_> = sent.iter().map(|line| shortened(line)).collect();
        assert_eq!(requests, expected, "before={before}");
        if let Some(update) = sent.iter().find(|line| line.starts_with("UpdateItem")) {
            let etag = etag(&world.items(&stream()).await);
            let bytes = event_bytes(expected_counts(0, before).2.min(BASE)..BASE);
            let trimmed = if before > BASE {
                let tip = world.items(&stream()).await.pop().unwrap();
                let list = |name| format!("{:?}", tip.get(name).unwrap());
                format!(", e = {}, c = {}", list("e"), list("c"))
            } else {
                String::new()
            };
            let key = r#"{"i": 2147483647, "p": "Log-a"}"#;
            let expected = format!(
                r#"UpdateItem events {key} SET a = 0, b = {bytes}, etag = "{etag}"{trimmed} IF etag = "{etag_before}""#
            );
            assert_eq!(*update, expected, "before={before}");
        }
    }
    let world = World::new(Capabilities::all()).await;
    let pruned = world.store.prune(&stream(), 5).await.unwrap();
    assert_eq!(counts(pruned), (0, 0, 0), "there is no stream");
    assert_eq!(world.recording.take().len(), 1);
    world.append(&stream(), 0..2).await;
    world.store.prune(&stream(), 0).await.unwrap();
    assert_eq!(world.recording.take().len(), 1, "there are no calves");
}

/// The operation of a request, and the index of its item.
fn shortened(line: &str) -> String {
    let operation = line.split(' ').next().unwrap();
    let index = line.split(r#""i": "#).nth(1);
    let index = index.map(|rest| rest.split([',', '}']).next().unwrap());
    match index {
        Some("2147483647") => format!("{operation} Tip"),
        Some(index) => format!("{operation} {index}"),
        None => operation.to_owned(),
    }
}

#[tokio::test]
async fn prune_is_exact_when_each_write_loses_a_response() {
    for capabilities in [Capabilities::dynamodb(), Capabilities::all()] {
        let tokens = capabilities.write_tokens;
        for kind in [FaultKind::LostBefore, FaultKind::LostAfter] {
            for before in [4, 7, 9, 10, 11] {
                let case = format!("tokens={tokens} {kind} before={before}");
                let mut capabilities = capabilities.clone();
                capabilities.loses_responses = true;
                let world = world(capabilities, options()).await;
                let items = world.items(&stream()).await;
                // Each write loses one response.
                for _ in 0..4 {
                    world.faults.script(Operation::WriteItem, kind).unwrap();
                }
                let pruned = world.store.prune(&stream(), before).await.unwrap();
                assert_eq!(counts(pruned), expected_counts(0, before), "{case}");
                check_items(&world, &items, pruned.lowest, &case).await;
            }
        }
    }
}

#[tokio::test]
async fn prune_is_exact_when_half_of_all_responses_are_lost() {
    for seed in 0..20 {
        let world = world(Capabilities::dynamodb(), options()).await;
        let items = world.items(&stream()).await;
        let faults = Faults::seeded(seed).lost_before(0.25).lost_after(0.25);
        world
            .faults
            .set_faults(faults.only_on([Operation::WriteItem]));
        for before in [4, 5, 8, 10] {
            let lowest = world.store.prune(&stream(), before).await.unwrap().lowest;
            check_items(
                &world,
                &items,
                lowest,
                &format!("seed={seed} before={before}"),
            )
            .await;
        }
    }
}

/// The response to the write of the Tip is lost, and another writer appends before the request is repeated.
#[tokio::test]
async fn tip_is_correct_when_the_response_to_its_write_was_lost() {
    for kind in [FaultKind::LostBefore, FaultKind::LostAfter] {
        for before in [5, 9, 10, 11] {
            for appended in 1..=4 {
                let case = format!("{kind} before={before} appended={appended}");
                let world = Arc::new(world(Capabilities::dynamodb(), options()).await);
                let deletes = (before.min(BASE) / 3) as usize;
                let (mut held, task) = prune_and_hold(&world, deletes, before, Some(kind)).await;
                held.arrived().await;
                world.append(&stream(), VERSION..VERSION + appended).await;
                held.open();
                let pruned = task.await.unwrap().unwrap();
                check_consistent(&world, VERSION + appended, pruned, before, &case).await;
            }
        }
    }
}

/// Starts a prune, and holds it after a number of writes, before the next one. With a fault, that write is sent, its
/// response is lost, and its repetition is held.
async fn prune_and_hold(
    world: &Arc<World>,
    writes: usize,
    before: u64,
    lost: Option<FaultKind>,
) -> (gate::Held, tokio::task::JoinHandle<Result<Pruned>>) {
    let mut gates: Vec<_> = (0..writes)
        .map(|_| world.gate.hold("write_item", Side::Before))
        .collect();
    let lost = lost.map(|kind| (kind, world.gate.hold("write_item", Side::Before)));
    let held = world.gate.hold("write_item", Side::Before);
    let pruning = Arc::clone(world);
    let task = tokio::spawn(async move { pruning.store.prune(&stream(), before).await });
    for mut gate in gates.drain(..) {
        gate.arrived().await;
        gate.open();
    }
    if let Some((kind, mut gate)) = lost {
        gate.arrived().await;
        world.faults.script(Operation::WriteItem, kind).unwrap();
        gate.open();
    }
    (held, task)
}

/// Checks that the remaining events have no gap, and that the Tip and the result of the prune agree with them.
async fn check_consistent(world: &World, version: u64, pruned: Pruned, before: u64, case: &str) {
    let items = world.items(&stream()).await;
    let (tip, calves) = items.split_last().unwrap();
    let number = |item: &Item, name: &str| item.get(name).and_then(Value::as_n).unwrap().to_u64();
    assert_eq!(number(tip, "n"), Some(version), "{case}");
    let events = world.other.read(&stream()).collect().await.unwrap();
    let indexes: Vec<_> = events.iter().map(|event| event.index).collect();
    assert_eq!(
        indexes,
        (pruned.lowest..version).collect::<Vec<_>>(),
        "{case}"
    );
    for read in events {
        assert_eq!(read.event, event(read.index), "{case}");
    }
    let calved_bytes = calves.iter().map(|item| {
        let (start, end) = (index_of(item), number(item, "n").unwrap());
        event_bytes(start..end)
    });
    assert_eq!(number(tip, "b"), Some(calved_bytes.sum()), "{case}");
    let deferred = before.min(version).saturating_sub(pruned.lowest);
    assert_eq!(pruned.deferred, deferred, "{case}");
    assert_eq!(pruned.deleted, pruned.lowest, "{case}");
}

/// Another writer appends before each write of a prune.
#[tokio::test]
async fn prune_is_consistent_with_an_append_before_any_write() {
    for before in [1, 3, 5, 9, 10, 11, 12, 14] {
        for write in 0..4 {
            for appended in 1..=4 {
                let case = format!("before={before} write={write} appended={appended}");
                let world = Arc::new(world(Capabilities::all(), options()).await);
                let (_, _, lowest) = expected_counts(0, before);
                let writes = (lowest.min(BASE) / 3) as usize + usize::from(lowest > 0);
                if write >= writes {
                    continue;
                }
                let (mut held, task) = prune_and_hold(&world, write, before, None).await;
                held.arrived().await;
                world.append(&stream(), VERSION..VERSION + appended).await;
                held.open();
                let pruned = task.await.unwrap().unwrap();
                check_consistent(&world, VERSION + appended, pruned, before, &case).await;
            }
        }
    }
}

/// A prune is canceled before or after any of its writes, and repeated.
#[tokio::test]
async fn canceled_prune_can_be_repeated() {
    for side in [Side::Before, Side::After] {
        for before in [3, 7, 9, 10, 11] {
            let (_, _, lowest) = expected_counts(0, before);
            let writes = (lowest.min(BASE) / 3) as usize + 1;
            for write in 0..writes {
                let case = format!("{side:?} before={before} write={write}");
                let world = Arc::new(world(Capabilities::all(), options()).await);
                let items = world.items(&stream()).await;
                let mut gates: Vec<_> = (0..=write)
                    .map(|n| {
                        let side = if n < write { Side::Before } else { side };
                        world.gate.hold("write_item", side)
                    })
                    .collect();
                let mut last = gates.pop().unwrap();
                let pruning = Arc::clone(&world);
                let task =
                    tokio::spawn(async move { pruning.store.prune(&stream(), before).await });
                for mut gate in gates {
                    gate.arrived().await;
                    gate.open();
                }
                last.arrived().await;
                task.abort();
                assert!(task.await.unwrap_err().is_cancelled());

                let pruned = world.store.prune(&stream(), before).await.unwrap();
                assert_eq!(
                    (pruned.deferred, pruned.lowest),
                    (expected_counts(0, before).1, lowest)
                );
                let mut now = world.items(&stream()).await;
                let mut expected = expected_items(&items, lowest);
                if lowest < BASE {
                    // `b` still includes the bytes of calves that were deleted before the cancellation.
                    for item in now.iter_mut().chain(&mut expected) {
                        item.remove("b");
                        item.remove("a");
                    }
                }
                let now: Vec<_> = now.into_iter().map(without_etag).collect();
                assert_eq!(now, expected, "{case}");

                world.store.prune(&stream(), VERSION).await.unwrap();
                check_items(&world, &items, VERSION, &case).await;
            }
        }
    }
}

#[tokio::test]
async fn prunes_with_concurrent_writers_leave_no_gap() {
    let world = Arc::new(World::new(Capabilities::all()).await);
    let writers = (0..4).map(|_| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            for _ in 0..40 {
                let stream = stream();
                // The timer does not wait between retries, so a writer may conflict repeatedly.
                while let Err(error) = world.other.append(&stream, Expected::Any, [event(1)]).await
                {
                    assert_eq!(error.kind(), ErrorKind::MaxResyncsExhausted);
                }
                tokio::task::yield_now().await;
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let mut lowest = 0;
    while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
        let version = world.other.version(&stream()).await.unwrap();
        match world
            .store
            .prune(&stream(), version.saturating_sub(4))
            .await
        {
            Ok(pruned) => {
                assert!(pruned.lowest >= lowest, "{lowest} {pruned:?}");
                lowest = pruned.lowest;
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::MaxResyncsExhausted),
        }
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let events = world.other.read(&stream()).collect().await.unwrap();
    let indexes: Vec<_> = events.iter().map(|event| event.index).collect();
    assert_eq!(indexes.last(), Some(&159));
    assert_eq!(indexes, (indexes[0]..160).collect::<Vec<_>>());
    assert!(lowest > 0);
    let pruned = world.store.prune(&stream(), 160).await.unwrap();
    assert_eq!((pruned.deferred, pruned.lowest), (0, 160));
    assert_eq!(world.items(&stream()).await.len(), 1);
}

/// A decider whose state is loaded from events, or from a snapshot stored with them.
struct Counter;

#[derive(Clone, Debug)]
enum CounterEvent {
    Added,
    Snapshot(u64),
}

impl Event for CounterEvent {
    fn event_type(&self) -> &'static str {
        match self {
            Self::Added => "Added",
            Self::Snapshot(_) => "Snapshot",
        }
    }

    fn encode(&self) -> Result<Vec<u8>> {
        Ok(match self {
            Self::Added => Vec::new(),
            Self::Snapshot(count) => count.to_string().into_bytes(),
        })
    }

    fn decode(event_type: &str, data: &[u8]) -> Result<Option<Self>> {
        Ok(match event_type {
            "Added" => Some(Self::Added),
            "Snapshot" => Some(Self::Snapshot(
                std::str::from_utf8(data).unwrap().parse().unwrap(),
            )),
            _ => None,
        })
    }
}

impl Decider for Counter {
    const CATEGORY: &'static str = "Count";
    type Id = str;
    type Event = CounterEvent;
    type State = u64;

    fn initial() -> u64 {
        0
    }

    fn evolve(state: u64, event: &CounterEvent) -> u64 {
        match event {
            CounterEvent::Added => state + 1,
            CounterEvent::Snapshot(count) => *count,
        }
    }

    fn access() -> Access<Self> {
        Access::Snapshot {
            is_origin: |event| matches!(event, CounterEvent::Snapshot(_)),
            to_snapshot: |state| CounterEvent::Snapshot(*state),
        }
    }

    fn unknown() -> Unknown {
        Unknown::Refuse
    }
}

#[tokio::test]
async fn state_of_a_pruned_stream_is_loaded_from_its_snapshot() {
    let name = StreamName::new("Count", "a").unwrap();
    for before in 1..=VERSION {
        let world = World::new(Capabilities::all()).await;
        let count = world.store.stream::<Counter>("a").load(Load::RequireLeader);
        let add = |_: &u64| Ok::<_, Error>(vec![CounterEvent::Added]);
        for _ in 0..VERSION {
            count.transact(add).await.unwrap();
        }
        let unfolds = |items: Vec<Item>| items.last().unwrap().get("u").unwrap().clone();
        let before_prune = unfolds(world.items(&name).await);
        let pruned = world.store.prune(&name, before).await.unwrap();
        assert_eq!(
            unfolds(world.items(&name).await),
            before_prune,
            "before={before}"
        );
        world.recording.take();
        assert_eq!(count.query(|count| *count).await.unwrap(), VERSION);
        let sent = world.recording.take();
        assert_eq!(sent.len(), 1, "before={before}: {sent:?}");

        let unoptimized = world
            .store
            .stream::<Counter>("a")
            .access(Access::Unoptimized);
        let counted = unoptimized.query(|count| *count).await;
        if pruned.lowest == 0 {
            assert_eq!(counted.unwrap(), VERSION);
        } else {
            assert_eq!(counted.unwrap_err().kind(), ErrorKind::MissingEvents);
        }
        count.transact(add).await.unwrap();
        assert_eq!(count.query(|count| *count).await.unwrap(), VERSION + 1);
    }
}

#[tokio::test]
async fn state_of_an_archived_stream_is_loaded_from_the_archive() {
    let name = StreamName::new("Count", "a").unwrap();
    for before in 1..=VERSION {
        let world = World::with(Capabilities::all(), options().archive("archive")).await;
        let archive = EventStoreOptions::new("archive");
        let archive = world.other.db().event_store(archive);
        archive.ensure_table().await.unwrap();
        let count = world
            .store
            .stream::<Counter>("a")
            .access(Access::Unoptimized);
        let add = |_: &u64| Ok::<_, Error>(vec![CounterEvent::Added]);
        for _ in 0..VERSION {
            count.transact(add).await.unwrap();
        }
        // In two steps, with appends in between.
        for before in [before / 2, before] {
            world.store.archive(&name, before).await.unwrap();
            count.transact(add).await.unwrap();
        }
        let counted = count.query(|count| *count).await.unwrap();
        assert_eq!(counted, VERSION + 2, "before={before}");
    }
}
