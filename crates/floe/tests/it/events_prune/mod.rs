//! Pruning, item by item and request by request.

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

/// The streams here have so many events: three batches of three, and two in the Tip.
const VERSION: u64 = 11;
/// Where the Tip begins.
const BASE: u64 = 9;

async fn world(capabilities: Capabilities, options: EventStoreOptions) -> World {
    let world = World::with(capabilities, options).await;
    world.append(&stream(), 0..VERSION).await;
    world
}

/// What the events of these indexes weigh.
fn weight(indexes: std::ops::Range<u64>) -> u64 {
    let bytes = indexes.map(|index| "Noted".len() + event(index).data.len() + 40);
    bytes.sum::<usize>() as u64
}

fn parts(pruned: Pruned) -> (u64, u64, u64) {
    (pruned.deleted, pruned.deferred, pruned.lowest)
}

/// What `prune` must tell of a stream that has events from an index on.
fn told(lowest: u64, before: u64) -> (u64, u64, u64) {
    let before = before.min(VERSION);
    let whole = match before {
        0..BASE => before / 3 * 3,
        _ => before,
    };
    let left = lowest.max(whole);
    (left - lowest, before.saturating_sub(left), left)
}

fn index_of(item: &Item) -> u64 {
    item.get("i")
        .and_then(Value::as_n)
        .unwrap()
        .to_u64()
        .unwrap()
}

/// What must be stored of a stream after it was pruned, without the etag.
fn left_of(items: &[Item], lowest: u64) -> Vec<Item> {
    let (tip, batches) = items.split_last().unwrap();
    let batches = batches.iter().filter(|item| index_of(item) >= lowest);
    let mut tip = tip.clone();
    let trimmed = usize::try_from(lowest.saturating_sub(BASE)).unwrap();
    for name in ["e", "c"] {
        let list = tip.get(name).and_then(Value::as_l).unwrap();
        let kept = list[trimmed..].to_vec();
        tip.insert(name, Value::L(kept));
    }
    if lowest > 0 {
        tip.insert("a", 0);
        tip.insert("b", weight(lowest.min(BASE)..BASE));
    }
    batches.cloned().chain([tip]).map(without_etag).collect()
}

fn without_etag(mut item: Item) -> Item {
    item.remove("etag");
    item
}

fn etag(items: &[Item]) -> String {
    let etag = items.last().and_then(|tip| tip.get("etag"));
    etag.and_then(Value::as_s).unwrap().to_owned()
}

/// Holds a stream against what must be left.
async fn check_left(world: &World, items: &[Item], lowest: u64, place: &str) {
    let now = world.items(&stream()).await;
    assert_eq!(etag(&now) == etag(items), lowest == 0, "{place}");
    let now: Vec<_> = now.into_iter().map(without_etag).collect();
    assert_eq!(now, left_of(items, lowest), "{place}");
}

#[tokio::test]
async fn a_stream_is_pruned_at_every_index() {
    for page_items in [1, 2, 32] {
        for before in 0..=VERSION + 2 {
            let place = format!("page_items={page_items} before={before}");
            let world = world(Capabilities::all(), options().page_items(page_items)).await;
            let items = world.items(&stream()).await;
            assert_eq!(items.len(), 4);
            let pruned = world.store.prune(&stream(), before).await.unwrap();
            assert_eq!(parts(pruned), told(0, before), "{place}");
            check_left(&world, &items, pruned.lowest, &place).await;

            let events = world.other.read(&stream()).collect().await.unwrap();
            let indexes: Vec<_> = events.iter().map(|event| event.index).collect();
            assert_eq!(
                indexes,
                (pruned.lowest..VERSION).collect::<Vec<_>>(),
                "{place}"
            );
            for read in events {
                assert_eq!(read.event, event(read.index), "{place}");
            }
        }
    }
}

#[tokio::test]
async fn a_stream_is_pruned_again() {
    for before in 0..=VERSION {
        for again in 0..=VERSION {
            let place = format!("before={before} again={again}");
            let world = world(Capabilities::all(), options()).await;
            let items = world.items(&stream()).await;
            let lowest = world.store.prune(&stream(), before).await.unwrap().lowest;
            let stood = world.items(&stream()).await;
            world.recording.take();
            let pruned = world.store.prune(&stream(), again).await.unwrap();
            assert_eq!(parts(pruned), told(lowest, again), "{place}");
            check_left(&world, &items, pruned.lowest, &place).await;
            if pruned.deleted == 0 {
                assert_eq!(world.items(&stream()).await, stood, "{place}");
                let sent = world.recording.take();
                let is_read = |line: &String| line.starts_with("GetItem") || line == "Query";
                assert!(sent.iter().all(is_read), "{place}: {sent:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_prune_sends_what_it_must_and_no_more() {
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
        let short: Vec<_> = sent.iter().map(|line| shortened(line)).collect();
        assert_eq!(short, expected, "before={before}");
        if let Some(update) = sent.iter().find(|line| line.starts_with("UpdateItem")) {
            let etag = etag(&world.items(&stream()).await);
            let bytes = weight(told(0, before).2.min(BASE)..BASE);
            let trimmed = match before {
                10 => {
                    let tip = world.items(&stream()).await.pop().unwrap();
                    let list = |name| format!("{:?}", tip.get(name).unwrap());
                    format!(", e = {}, c = {}", list("e"), list("c"))
                }
                _ => String::new(),
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
    assert_eq!(parts(pruned), (0, 0, 0), "there is no stream");
    assert_eq!(world.recording.take().len(), 1);
    world.append(&stream(), 0..2).await;
    world.store.prune(&stream(), 0).await.unwrap();
    assert_eq!(world.recording.take().len(), 1, "there are no batches");
}

/// The operation and the item of a request.
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
async fn answers_that_are_lost_do_no_harm() {
    for capabilities in [Capabilities::dynamodb(), Capabilities::all()] {
        let tokens = capabilities.write_tokens;
        for kind in [FaultKind::LostBefore, FaultKind::LostAfter] {
            for before in [4, 7, 9, 10, 11] {
                let place = format!("tokens={tokens} {kind} before={before}");
                let mut capabilities = capabilities.clone();
                capabilities.loses_responses = true;
                let world = world(capabilities, options()).await;
                let items = world.items(&stream()).await;
                // Every write loses an answer once.
                for _ in 0..4 {
                    world.faults.script(Operation::WriteItem, kind).unwrap();
                }
                let pruned = world.store.prune(&stream(), before).await.unwrap();
                assert_eq!(parts(pruned), told(0, before), "{place}");
                check_left(&world, &items, pruned.lowest, &place).await;
            }
        }
    }
}

#[tokio::test]
async fn half_of_all_answers_are_lost() {
    for seed in 0..20 {
        let world = world(Capabilities::dynamodb(), options()).await;
        let items = world.items(&stream()).await;
        let faults = Faults::seeded(seed).lost_before(0.25).lost_after(0.25);
        world
            .faults
            .set_faults(faults.only_on([Operation::WriteItem]));
        for before in [4, 5, 8, 10] {
            let lowest = world.store.prune(&stream(), before).await.unwrap().lowest;
            check_left(
                &world,
                &items,
                lowest,
                &format!("seed={seed} before={before}"),
            )
            .await;
        }
    }
}

/// The answer to the write of the Tip is lost, and before it is sent again somebody else appends.
#[tokio::test]
async fn the_tip_is_right_when_nobody_knows_whether_it_was_written() {
    for kind in [FaultKind::LostBefore, FaultKind::LostAfter] {
        for before in [5, 9, 10, 11] {
            for appended in 1..=4 {
                let place = format!("{kind} before={before} appended={appended}");
                let world = Arc::new(world(Capabilities::dynamodb(), options()).await);
                let deletes = (before.min(BASE) / 3) as usize;
                let task = held_write(&world, deletes, before, Some(kind)).await;
                let (mut held, task) = task;
                held.arrived().await;
                world.append(&stream(), VERSION..VERSION + appended).await;
                held.open();
                let pruned = task.await.unwrap().unwrap();
                check_sound(&world, VERSION + appended, pruned, before, &place).await;
            }
        }
    }
}

/// Begins to prune, and holds it after so many writes before the next, whose first answer may be lost.
async fn held_write(
    world: &Arc<World>,
    writes: usize,
    before: u64,
    lost: Option<FaultKind>,
) -> (gate::Held, tokio::task::JoinHandle<Result<Pruned>>) {
    let mut passed: Vec<_> = (0..writes)
        .map(|_| world.gate.hold("write_item", Side::Before))
        .collect();
    let lost = lost.map(|kind| (kind, world.gate.hold("write_item", Side::Before)));
    let held = world.gate.hold("write_item", Side::Before);
    let there = Arc::clone(world);
    let task = tokio::spawn(async move { there.store.prune(&stream(), before).await });
    for mut door in passed.drain(..) {
        door.arrived().await;
        door.open();
    }
    if let Some((kind, mut door)) = lost {
        door.arrived().await;
        world.faults.script(Operation::WriteItem, kind).unwrap();
        door.open();
    }
    (held, task)
}

/// Whatever happened beside it, what is left has no gap, and the Tip knows what is left.
async fn check_sound(world: &World, version: u64, pruned: Pruned, before: u64, place: &str) {
    let items = world.items(&stream()).await;
    let (tip, batches) = items.split_last().unwrap();
    let number = |item: &Item, name: &str| item.get(name).and_then(Value::as_n).unwrap().to_u64();
    assert_eq!(number(tip, "n"), Some(version), "{place}");
    let events = world.other.read(&stream()).collect().await.unwrap();
    let indexes: Vec<_> = events.iter().map(|event| event.index).collect();
    assert_eq!(
        indexes,
        (pruned.lowest..version).collect::<Vec<_>>(),
        "{place}"
    );
    for read in events {
        assert_eq!(read.event, event(read.index), "{place}");
    }
    let calved = batches.iter().map(|item| {
        let (start, end) = (index_of(item), number(item, "n").unwrap());
        weight(start..end)
    });
    assert_eq!(number(tip, "b"), Some(calved.sum()), "{place}");
    let missed = before.min(version).saturating_sub(pruned.lowest);
    assert_eq!(pruned.deferred, missed, "{place}");
    assert_eq!(pruned.deleted, pruned.lowest, "{place}");
}

/// Somebody else appends before each write of a prune.
#[tokio::test]
async fn a_writer_may_come_between_anywhere() {
    for before in [1, 3, 5, 9, 10, 11, 12, 14] {
        for at in 0..4 {
            for appended in 1..=4 {
                let place = format!("before={before} at={at} appended={appended}");
                let world = Arc::new(world(Capabilities::all(), options()).await);
                let (_, _, lowest) = told(0, before);
                let writes = (lowest.min(BASE) / 3) as usize + usize::from(lowest > 0);
                if at >= writes {
                    continue;
                }
                let (mut held, task) = held_write(&world, at, before, None).await;
                held.arrived().await;
                world.append(&stream(), VERSION..VERSION + appended).await;
                held.open();
                let pruned = task.await.unwrap().unwrap();
                check_sound(&world, VERSION + appended, pruned, before, &place).await;
            }
        }
    }
}

/// A prune that ends anywhere, before or after a request was applied, is done again.
#[tokio::test]
async fn a_prune_may_end_anywhere_and_be_done_again() {
    for side in [Side::Before, Side::After] {
        for before in [3, 7, 9, 10, 11] {
            let (_, _, lowest) = told(0, before);
            let writes = (lowest.min(BASE) / 3) as usize + 1;
            for at in 0..writes {
                let place = format!("{side:?} before={before} at={at}");
                let world = Arc::new(world(Capabilities::all(), options()).await);
                let items = world.items(&stream()).await;
                let mut doors: Vec<_> = (0..=at)
                    .map(|n| {
                        let side = if n < at { Side::Before } else { side };
                        world.gate.hold("write_item", side)
                    })
                    .collect();
                let mut last = doors.pop().unwrap();
                let there = Arc::clone(&world);
                let task = tokio::spawn(async move { there.store.prune(&stream(), before).await });
                for mut door in doors {
                    door.arrived().await;
                    door.open();
                }
                last.arrived().await;
                task.abort();
                assert!(task.await.unwrap_err().is_cancelled());

                let pruned = world.store.prune(&stream(), before).await.unwrap();
                assert_eq!(
                    (pruned.deferred, pruned.lowest),
                    (told(0, before).1, lowest)
                );
                let mut now = world.items(&stream()).await;
                let mut expected = left_of(&items, lowest);
                if lowest < BASE {
                    // What was deleted before the end is still in `b`, and only there.
                    for item in now.iter_mut().chain(&mut expected) {
                        item.remove("b");
                        item.remove("a");
                    }
                }
                let now: Vec<_> = now.into_iter().map(without_etag).collect();
                assert_eq!(now, expected, "{place}");

                world.store.prune(&stream(), VERSION).await.unwrap();
                check_left(&world, &items, VERSION, &place).await;
            }
        }
    }
}

#[tokio::test]
async fn prunes_beside_writers_leave_no_gap() {
    let world = Arc::new(World::new(Capabilities::all()).await);
    let writers = (0..4).map(|_| {
        let world = Arc::clone(&world);
        tokio::spawn(async move {
            for _ in 0..40 {
                let stream = stream();
                // Without time to wait others may be faster for long.
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

// A decider whose state is told from events, or from a snapshot beside them.

struct Count;

#[derive(Clone, Debug)]
enum Counted {
    Added,
    Was(u64),
}

impl Event for Counted {
    fn event_type(&self) -> &'static str {
        match self {
            Self::Added => "Added",
            Self::Was(_) => "Was",
        }
    }

    fn encode(&self) -> Result<Vec<u8>> {
        Ok(match self {
            Self::Added => Vec::new(),
            Self::Was(count) => count.to_string().into_bytes(),
        })
    }

    fn decode(event_type: &str, data: &[u8]) -> Result<Option<Self>> {
        Ok(match event_type {
            "Added" => Some(Self::Added),
            "Was" => Some(Self::Was(
                std::str::from_utf8(data).unwrap().parse().unwrap(),
            )),
            _ => None,
        })
    }
}

impl Decider for Count {
    const CATEGORY: &'static str = "Count";
    type Id = str;
    type Event = Counted;
    type State = u64;

    fn initial() -> u64 {
        0
    }

    fn evolve(state: u64, event: &Counted) -> u64 {
        match event {
            Counted::Added => state + 1,
            Counted::Was(count) => *count,
        }
    }

    fn access() -> Access<Self> {
        Access::Snapshot {
            is_origin: |event| matches!(event, Counted::Was(_)),
            to_snapshot: |state| Counted::Was(*state),
        }
    }

    fn unknown() -> Unknown {
        Unknown::Refuse
    }
}

#[tokio::test]
async fn a_snapshot_tells_the_state_of_a_stream_whose_events_are_gone() {
    let name = StreamName::new("Count", "a").unwrap();
    for before in 1..=VERSION {
        let world = World::new(Capabilities::all()).await;
        let count = world.store.stream::<Count>("a").load(Load::RequireLeader);
        let add = |_: &u64| Ok::<_, Error>(vec![Counted::Added]);
        for _ in 0..VERSION {
            count.transact(add).await.unwrap();
        }
        let unfolds = |items: Vec<Item>| items.last().unwrap().get("u").unwrap().clone();
        let kept = unfolds(world.items(&name).await);
        let pruned = world.store.prune(&name, before).await.unwrap();
        assert_eq!(unfolds(world.items(&name).await), kept, "before={before}");
        world.recording.take();
        assert_eq!(count.query(|count| *count).await.unwrap(), VERSION);
        let sent = world.recording.take();
        assert_eq!(sent.len(), 1, "before={before}: {sent:?}");

        let unoptimized = world.store.stream::<Count>("a").access(Access::Unoptimized);
        let counted = unoptimized.query(|count| *count).await;
        match pruned.lowest {
            0 => assert_eq!(counted.unwrap(), VERSION),
            _ => assert_eq!(counted.unwrap_err().kind(), ErrorKind::MissingEvents),
        }
        count.transact(add).await.unwrap();
        assert_eq!(count.query(|count| *count).await.unwrap(), VERSION + 1);
    }
}

#[tokio::test]
async fn an_archive_tells_the_state_of_a_stream_whose_events_are_gone() {
    let name = StreamName::new("Count", "a").unwrap();
    for before in 1..=VERSION {
        let world = World::with(Capabilities::all(), options().archive("archive")).await;
        let archive = EventStoreOptions::new("archive");
        let archive = world.other.db().event_store(archive);
        archive.ensure_table().await.unwrap();
        let count = world.store.stream::<Count>("a").access(Access::Unoptimized);
        let add = |_: &u64| Ok::<_, Error>(vec![Counted::Added]);
        for _ in 0..VERSION {
            count.transact(add).await.unwrap();
        }
        // In two steps, and beside one who appends.
        for before in [before / 2, before] {
            world.store.archive(&name, before).await.unwrap();
            count.transact(add).await.unwrap();
        }
        let counted = count.query(|count| *count).await.unwrap();
        assert_eq!(counted, VERSION + 2, "before={before}");
    }
}
