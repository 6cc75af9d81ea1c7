//! What happens when a version has expired: the handler acts, and the tombstone is written once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use floe::changes::{Change, Expired, Failure, Handled, Inserted, Removed, Router};
use floe_store::op::{
    ChangeKind, DescribeStream, GetRecords, GetShardIterator, IteratorKind, ListStreams,
};
use floe_store::{Engine, Item};
use floe_testkit::fault::{FaultKind, Operation};

use super::support::{DAY, Layer, Notes, TABLE, World, layer, lossy, numbers};

const GROUP: (&str, &str) = ("eu", "numpy");

/// All changes of the table so far.
pub(crate) async fn changes(engine: &dyn Engine) -> Vec<Change> {
    let streams = engine.list_streams(ListStreams::default()).await.unwrap();
    let stream = streams.streams.iter().find(|one| one.table_name == TABLE);
    let stream_arn = stream.unwrap().arn.clone();
    let describe = DescribeStream {
        stream_arn: stream_arn.clone(),
        ..DescribeStream::default()
    };
    let description = engine.describe_stream(describe).await.unwrap();
    let mut changes = Vec::new();
    for shard in description.shards {
        let get = GetShardIterator {
            stream_arn: stream_arn.clone(),
            shard_id: shard.id,
            kind: IteratorKind::TrimHorizon,
        };
        let mut iterator = Some(engine.get_shard_iterator(get).await.unwrap());
        while let Some(at) = iterator {
            let get = GetRecords {
                iterator: at,
                limit: None,
            };
            let page = engine.get_records(get).await.unwrap();
            let is_end = page.records.is_empty();
            let records = page.records.into_iter();
            changes.extend(records.map(|record| Change::new(TABLE, record)));
            iterator = page.next_iterator.filter(|_| !is_end);
        }
    }
    changes
}

/// A router that notes which versions have expired.
pub(crate) fn noting(world: &World, notes: &Notes) -> Router {
    let notes = notes.clone();
    Router::new().on_expired::<Layer>(&world.db, move |expired: Expired<Layer>| {
        let notes = notes.clone();
        async move {
            let version = expired.version;
            notes.add(format!("{} {}", version.number, version.value.arn));
            Ok(())
        }
    })
}

async fn expired(count: u64) -> World {
    let world = World::new().await;
    world.publish("eu", "numpy", count + 1).await;
    world.test.advance(31 * DAY);
    world.sweep();
    world
}

fn version(number: u64) -> String {
    format!("lyrVrsn#v{number:010}")
}

#[tokio::test]
async fn the_handler_acts_and_the_tombstone_is_written() {
    let world = expired(1).await;
    assert_eq!(world.item("lyr#eu.numpy", &version(1)).await, None);
    let (notes, all) = (Notes::default(), changes(&*world.engine).await);
    world.forget();
    let delivery = noting(&world, &notes).deliver(&all).await;
    assert_eq!((delivery.handled, delivery.failures.len()), (1, 0));
    assert_eq!(notes.take(), ["1 arn:eu:numpy:0"]);
    assert_eq!(world.requests(), ["GetItem", "PutItem"]);
    let tombstone = world.layers.version(GROUP, 1).await.unwrap().unwrap();
    assert_eq!((tombstone.status, tombstone.expires), (None, None));
    assert_eq!(
        tombstone.deleted,
        Some(floe_testkit::time::TestEnv::START.plus(30 * DAY))
    );
    assert_eq!(tombstone.value, layer("eu", "numpy", "arn:eu:numpy:0"));
    let history = world.layers.history(GROUP).collect().await.unwrap();
    assert_eq!(numbers(&history), [1, 2]);
    assert_eq!(
        world.index("region-status", "rgn", "eu").await,
        [version(2)]
    );
}

#[tokio::test]
async fn changes_that_are_told_again_change_nothing() {
    let world = expired(2).await;
    let (notes, mut all) = (Notes::default(), changes(&*world.engine).await);
    let router = noting(&world, &notes);
    router.deliver(&all).await;
    assert_eq!(notes.take().len(), 2);
    let items = world.items().await;
    world.test.advance(100 * DAY);
    for _ in 0..2 {
        assert!(router.deliver(&all).await.failures.is_empty());
        all.reverse();
    }
    assert_eq!(notes.take(), [""; 0], "the tombstones are there");
    assert_eq!(world.items().await, items, "of the same date");
    // What came of it is told as well: tombstones are no versions that expire.
    let more = changes(&*world.engine).await;
    assert!(more.len() > all.len());
    assert!(router.deliver(&more).await.failures.is_empty());
    assert_eq!(notes.take(), [""; 0]);
    assert_eq!(world.items().await, items);
}

#[tokio::test]
async fn changes_in_another_order_come_to_the_same() {
    let (world, other) = (expired(5).await, expired(5).await);
    let all = changes(&*world.engine).await;
    noting(&world, &Notes::default()).deliver(&all).await;
    let mut all = changes(&*other.engine).await;
    all.reverse();
    let notes = Notes::default();
    noting(&other, &notes).deliver(&all).await;
    assert_eq!(notes.take().len(), 5);
    assert_eq!(world.items().await, other.items().await);
}

#[tokio::test]
async fn a_handler_that_fails_is_called_again_and_nothing_is_lost() {
    let world = expired(2).await;
    let (calls, notes) = (Arc::new(AtomicU32::new(0)), Notes::default());
    let (counted, noted) = (calls.clone(), notes.clone());
    let router = Router::new().on_expired::<Layer>(&world.db, move |expired: Expired<Layer>| {
        let (calls, notes) = (counted.clone(), noted.clone());
        async move {
            if calls.fetch_add(1, Ordering::SeqCst) < 3 {
                return Err(Failure::new("the cloud is away"));
            }
            notes.add(expired.version.number.to_string());
            Ok(())
        }
    });
    let all = changes(&*world.engine).await;
    let mut rounds = 0;
    loop {
        rounds += 1;
        let failures = router.deliver(&all).await.failures;
        let done = notes.0.lock().unwrap().len();
        let tombstones = [1, 2].map(|number| world.layers.version(GROUP, number));
        let mut there = 0;
        for tombstone in tombstones {
            there += usize::from(tombstone.await.unwrap().is_some());
        }
        assert_eq!(there, done, "a tombstone waits for its handler");
        if failures.is_empty() {
            break;
        }
    }
    let mut done = notes.take();
    done.sort_unstable();
    assert_eq!(done, ["1", "2"]);
    assert_eq!((rounds, calls.load(Ordering::SeqCst)), (3, 5));
}

#[tokio::test]
async fn a_version_that_is_there_again_is_left_alone() {
    let world = World::new().await;
    world.publish("eu", "numpy", 2).await;
    let before = world.item("lyr#eu.numpy", &version(1)).await.unwrap();
    world.test.advance(31 * DAY);
    world.sweep();
    let all = changes(&*world.engine).await;
    // Somebody brings it back from a backup, to stay.
    let mut back: Item = before.clone();
    back.remove("exDt");
    world.put(back.clone()).await;
    let notes = Notes::default();
    noting(&world, &notes).deliver(&all).await;
    assert_eq!(notes.take(), [""; 0], "the real thing is not deleted");
    assert_eq!(world.layers.bury(&before).await, Ok(false));
    assert_eq!(world.item("lyr#eu.numpy", &version(1)).await, Some(back));
}

#[tokio::test]
async fn only_versions_that_were_to_expire_are_buried() {
    let world = World::new().await;
    world.publish("eu", "numpy", 2).await;
    world.layers.set_alias(GROUP, "lts", 2).await.unwrap();
    world.layers.retire(GROUP, 1).await.unwrap();
    for item in world.items().await {
        assert_eq!(world.layers.bury(&item).await, Ok(false), "{item:?}");
    }
    let stranger = Item::new().with("pk", "x").with("sk", "y").with("exDt", 1);
    assert_eq!(world.layers.bury(&stranger).await, Ok(false));
}

#[tokio::test]
async fn a_lost_answer_does_not_lose_a_tombstone() {
    for (kind, written) in [(FaultKind::LostBefore, true), (FaultKind::LostAfter, false)] {
        let world = World::with(lossy()).await;
        world.publish("eu", "numpy", 2).await;
        let removed = world.item("lyr#eu.numpy", &version(1)).await.unwrap();
        world.test.advance(31 * DAY);
        world.sweep();
        world.faults.script(Operation::WriteItem, kind).unwrap();
        // The second sending finds what the first has written.
        assert_eq!(world.layers.bury(&removed).await, Ok(written));
        let tombstone = world.layers.version(GROUP, 1).await.unwrap().unwrap();
        assert!(tombstone.deleted.is_some());
    }
}

#[tokio::test]
async fn handlers_by_type_see_versions_and_nothing_else() {
    let world = World::new().await;
    let notes = Notes::default();
    let (inserted, removed) = (notes.clone(), notes.clone());
    let router = Router::new()
        .on_inserted::<Layer>(move |new: Inserted<Layer>| {
            let notes = inserted.clone();
            async move {
                notes.add(format!("new {}", new.value.arn));
                Handled::Ok(())
            }
        })
        .on_removed::<Layer>(floe::changes::Cause::Any, move |old: Removed<Layer>| {
            let notes = removed.clone();
            async move {
                notes.add(format!("gone {}", old.value.arn));
                Handled::Ok(())
            }
        })
        .on_expired::<Layer>(&world.db, async |_: Expired<Layer>| Ok(()));
    world.publish("eu", "numpy", 2).await;
    world.layers.set_alias(GROUP, "lts", 2).await.unwrap();
    world.layers.remove_alias(GROUP, "lts").await.unwrap();
    router.deliver(&changes(&*world.engine).await).await;
    world.test.advance(31 * DAY);
    world.sweep();
    router.deliver(&changes(&*world.engine).await).await;
    let mut seen = notes.take();
    seen.sort_unstable();
    assert_eq!(
        seen,
        [
            "gone arn:eu:numpy:0",
            "new arn:eu:numpy:0",
            "new arn:eu:numpy:1"
        ]
    );
    let all = changes(&*world.engine).await;
    let last = all.last().unwrap();
    assert_eq!(last.kind(), ChangeKind::Insert, "the tombstone");
    router.deliver(std::slice::from_ref(last)).await;
    assert_eq!(notes.take(), [""; 0], "a tombstone is no new version");
}
