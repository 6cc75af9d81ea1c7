//! Expired versions: the handler is called, and the tombstone is written once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use floe::changes::{Change, Expired, Failure, HandlerResult, Inserted, Removed, Router};
use floe_store::op::{
    ChangeKind, DescribeStream, GetRecords, GetShardIterator, IteratorKind, ListStreams,
};
use floe_store::{Engine, Item};
use floe_testkit::fault::{FaultKind, Operation};

use super::support::{CallLog, DAY, Layer, TABLE, World, layer, lossy, numbers};

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

/// A router that records expired versions.
pub(crate) fn recording_router(world: &World, notes: &CallLog) -> Router {
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
async fn expired_version_is_handled_and_gets_a_tombstone() {
    let world = expired(1).await;
    assert_eq!(world.item("lyr#eu.numpy", &version(1)).await, None);
    let (notes, all) = (CallLog::default(), changes(&*world.engine).await);
    world.clear_records();
    let delivery = recording_router(&world, &notes).deliver(&all).await;
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
async fn redelivered_changes_have_no_effect() {
    let world = expired(2).await;
    let (notes, mut all) = (CallLog::default(), changes(&*world.engine).await);
    let router = recording_router(&world, &notes);
    router.deliver(&all).await;
    assert_eq!(notes.take().len(), 2);
    let items = world.items().await;
    world.test.advance(100 * DAY);
    for _ in 0..2 {
        assert!(router.deliver(&all).await.failures.is_empty());
        all.reverse();
    }
    assert_eq!(notes.take(), [""; 0], "the tombstones exist");
    assert_eq!(
        world.items().await,
        items,
        "the times of deletion are unchanged"
    );
    // The tombstones themselves are delivered too: they are not versions with an expiry.
    let more = changes(&*world.engine).await;
    assert!(more.len() > all.len());
    assert!(router.deliver(&more).await.failures.is_empty());
    assert_eq!(notes.take(), [""; 0]);
    assert_eq!(world.items().await, items);
}

#[tokio::test]
async fn order_of_changes_does_not_affect_the_result() {
    let (world, other) = (expired(5).await, expired(5).await);
    let all = changes(&*world.engine).await;
    recording_router(&world, &CallLog::default())
        .deliver(&all)
        .await;
    let mut all = changes(&*other.engine).await;
    all.reverse();
    let notes = CallLog::default();
    recording_router(&other, &notes).deliver(&all).await;
    assert_eq!(notes.take().len(), 5);
    assert_eq!(world.items().await, other.items().await);
}

#[tokio::test]
async fn failed_handler_is_called_again_before_the_tombstone() {
    let world = expired(2).await;
    let (calls, notes) = (Arc::new(AtomicU32::new(0)), CallLog::default());
    let (counted, noted) = (calls.clone(), notes.clone());
    let router = Router::new().on_expired::<Layer>(&world.db, move |expired: Expired<Layer>| {
        let (calls, notes) = (counted.clone(), noted.clone());
        async move {
            if calls.fetch_add(1, Ordering::SeqCst) < 3 {
                return Err(Failure::new("unavailable"));
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
        let finished = notes.0.lock().unwrap().len();
        let tombstones = [1, 2].map(|number| world.layers.version(GROUP, number));
        let mut written = 0;
        for tombstone in tombstones {
            written += usize::from(tombstone.await.unwrap().is_some());
        }
        assert_eq!(
            written, finished,
            "a tombstone is written after its handler"
        );
        if failures.is_empty() {
            break;
        }
    }
    let mut finished = notes.take();
    finished.sort_unstable();
    assert_eq!(finished, ["1", "2"]);
    assert_eq!((rounds, calls.load(Ordering::SeqCst)), (3, 5));
}

#[tokio::test]
async fn restored_version_gets_no_tombstone() {
    let world = World::new().await;
    world.publish("eu", "numpy", 2).await;
    let before = world.item("lyr#eu.numpy", &version(1)).await.unwrap();
    world.test.advance(31 * DAY);
    world.sweep();
    let all = changes(&*world.engine).await;
    // The version is restored from a backup, without an expiry.
    let mut back: Item = before.clone();
    back.remove("exDt");
    world.put(back.clone()).await;
    let notes = CallLog::default();
    recording_router(&world, &notes).deliver(&all).await;
    assert_eq!(notes.take(), [""; 0], "the handler is not called");
    assert_eq!(world.layers.write_tombstone(&before).await, Ok(false));
    assert_eq!(world.item("lyr#eu.numpy", &version(1)).await, Some(back));
}

#[tokio::test]
async fn tombstones_are_written_for_versions_with_expiry_only() {
    let world = World::new().await;
    world.publish("eu", "numpy", 2).await;
    world.layers.set_alias(GROUP, "lts", 2).await.unwrap();
    world.layers.retire(GROUP, 1).await.unwrap();
    for item in world.items().await {
        assert_eq!(
            world.layers.write_tombstone(&item).await,
            Ok(false),
            "{item:?}"
        );
    }
    let stranger = Item::new().with("pk", "x").with("sk", "y").with("exDt", 1);
    assert_eq!(world.layers.write_tombstone(&stranger).await, Ok(false));
}

#[tokio::test]
async fn tombstone_survives_a_lost_response() {
    for (kind, written) in [(FaultKind::LostBefore, true), (FaultKind::LostAfter, false)] {
        let world = World::with(lossy()).await;
        world.publish("eu", "numpy", 2).await;
        let removed = world.item("lyr#eu.numpy", &version(1)).await.unwrap();
        world.test.advance(31 * DAY);
        world.sweep();
        world.faults.script(Operation::WriteItem, kind).unwrap();
        // The retry finds the tombstone of the first request.
        assert_eq!(world.layers.write_tombstone(&removed).await, Ok(written));
        let tombstone = world.layers.version(GROUP, 1).await.unwrap().unwrap();
        assert!(tombstone.deleted.is_some());
    }
}

#[tokio::test]
async fn typed_handlers_receive_versions_only() {
    let world = World::new().await;
    let notes = CallLog::default();
    let (inserted, removed) = (notes.clone(), notes.clone());
    let router = Router::new()
        .on_inserted::<Layer>(move |new: Inserted<Layer>| {
            let notes = inserted.clone();
            async move {
                notes.add(format!("new {}", new.value.arn));
                HandlerResult::Ok(())
            }
        })
        .on_removed::<Layer>(floe::changes::Cause::Any, move |old: Removed<Layer>| {
            let notes = removed.clone();
            async move {
                notes.add(format!("gone {}", old.value.arn));
                HandlerResult::Ok(())
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
    assert_eq!(notes.take(), [""; 0], "a tombstone is not a new version");
}
