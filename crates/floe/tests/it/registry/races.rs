//! Concurrent changes of a group, interrupted calls, and lost responses.

use std::sync::Arc;

use floe::registry::{Status, Versions};
use floe::{Db, ErrorKind, Registry};
use floe_local::LocalEngine;
use floe_store::{Capabilities, Engine, Env};
use floe_testkit::fault::{FaultEngine, FaultKind, Faults, Operation};
use floe_testkit::record::RecordingEngine;

use super::no_time::NoTime;
use super::slow::{Slow, interrupt};
use super::support::{Build, Layer, World, layer, lossy};

const GROUP: (&str, &str) = ("eu", "numpy");

/// A registry of layers on an engine that yields between any two steps.
async fn slow(
    faults: Faults,
    capabilities: Capabilities,
) -> (Versions<'static, Layer>, Arc<FaultEngine>) {
    let local: Arc<dyn Engine> = Arc::new(LocalEngine::memory().unwrap());
    let engine = Arc::new(FaultEngine::new(Arc::new(Slow(local)), faults));
    let claiming = RecordingEngine::new(engine.clone()).claiming(capabilities);
    let db = Db::with_parts(Arc::new(claiming), Env::system(), Arc::new(NoTime));
    engine.pause();
    db.ensure_registries(&[Layer::SCHEMA, Build::SCHEMA])
        .await
        .unwrap();
    (db.registry(), engine)
}

/// Checks the invariants of a group: at most one version is the latest, namely the newest deployed one, the pointer
/// refers to it, and the others are deprecated. Returns the version numbers.
pub(crate) async fn check(layers: &Versions<'_, Layer>) -> Vec<u64> {
    let history = layers.history(GROUP).collect().await.unwrap();
    let numbers: Vec<u64> = history.iter().map(|version| version.number).collect();
    let all: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, all, "each number is used once");
    let latest: Vec<_> = history
        .iter()
        .filter(|version| version.status == Some(Status::Latest))
        .collect();
    let pointer = layers.latest(GROUP).await.unwrap();
    assert_eq!(
        pointer.iter().collect::<Vec<_>>(),
        latest,
        "one latest version"
    );
    let newest = history.iter().rfind(|version| version.is_deployed());
    assert_eq!(newest, pointer.as_ref());
    for version in &history {
        let is_exempt = version.is_pinned || !version.aliases.is_empty();
        let expires = version.status == Some(Status::Deprecated) && !is_exempt;
        assert_eq!(version.expires.is_some(), expires, "{version:?}");
    }
    let mut listed = layers.deployed_in(Layer::BY_REGION, "eu").await.unwrap();
    listed.sort_by_key(|version| version.number);
    let deployed: Vec<_> = history.into_iter().filter(|v| v.is_deployed()).collect();
    assert_eq!(listed, deployed);
    numbers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_publishers_get_sixty_four_versions() {
    for capabilities in [Capabilities::all(), Capabilities::dynamodb()] {
        let (layers, _) = slow(Faults::seeded(1), capabilities).await;
        let publishers: Vec<_> = (0..64)
            .map(|at| {
                let layers = layers.clone();
                let layer = layer("eu", "numpy", &format!("arn:{at}"));
                tokio::spawn(async move { layers.publish(&layer).await.unwrap() })
            })
            .collect();
        let mut numbers = Vec::new();
        for (at, publisher) in publishers.into_iter().enumerate() {
            let number = publisher.await.unwrap();
            let version = layers.version(GROUP, number).await.unwrap().unwrap();
            assert_eq!(
                version.value.arn,
                format!("arn:{at}"),
                "the published content"
            );
            numbers.push(number);
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=64).collect::<Vec<_>>());
        assert_eq!(check(&layers).await.len(), 64);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_publishers_publish_equal_content_once() {
    let (layers, _) = slow(Faults::seeded(1), Capabilities::all()).await;
    let publishers: Vec<_> = (0..32)
        .map(|_| {
            let layers = layers.clone();
            let same = layer("eu", "numpy", "same");
            tokio::spawn(async move { layers.publish_if_changed(&same).await.unwrap() })
        })
        .collect();
    let mut new = 0;
    for publisher in publishers {
        let published = publisher.await.unwrap();
        assert_eq!(published.number(), 1);
        new += u32::from(published.is_new());
    }
    assert_eq!(new, 1);
    assert_eq!(check(&layers).await, [1]);
}

#[tokio::test]
async fn interrupted_publish_leaves_one_latest_version() {
    let (layers, _) = slow(Faults::seeded(1), Capabilities::all()).await;
    let mut outcomes = (0, 0, 0);
    for polls in 1..40 {
        let before = check(&layers).await.len();
        let layer = layer("eu", "numpy", &format!("arn:{polls}"));
        let published = interrupt(layers.publish(&layer), polls).await;
        let after = check(&layers).await.len();
        match (published, after - before) {
            (Some(number), 1) => {
                assert_eq!(number, Ok(after as u64));
                outcomes.2 += 1;
            }
            (None, 0) => outcomes.0 += 1,
            (None, 1) => outcomes.1 += 1,
            other => panic!("{other:?} after {polls} polls"),
        }
    }
    assert!(
        outcomes.0 > 0 && outcomes.1 > 0 && outcomes.2 > 0,
        "{outcomes:?}"
    );
}

#[tokio::test]
async fn interrupted_changes_leave_one_latest_version() {
    let (layers, _) = slow(Faults::seeded(1), Capabilities::all()).await;
    for polls in 1..25 {
        for _ in 0..3 {
            layers.publish(&layer("eu", "numpy", "x")).await.unwrap();
        }
        let latest = check(&layers).await.len() as u64;
        interrupt(layers.set_alias(GROUP, "lts", latest), polls).await;
        check(&layers).await;
        interrupt(layers.set_alias(GROUP, "lts", latest - 1), polls).await;
        check(&layers).await;
        interrupt(layers.pin(GROUP, latest), polls).await;
        check(&layers).await;
        interrupt(layers.remove_alias(GROUP, "lts"), polls).await;
        check(&layers).await;
        interrupt(layers.retire(GROUP, latest), polls).await;
        check(&layers).await;
    }
}

#[tokio::test]
async fn lost_response_is_reconciled_and_nothing_is_published_twice() {
    for capabilities in [lossy(), Capabilities::dynamodb()] {
        for kind in [FaultKind::LostBefore, FaultKind::LostAfter] {
            let world = World::with(capabilities.clone()).await;
            world.publish("eu", "numpy", 2).await;
            let script = |operation| world.faults.script(operation, kind).unwrap();
            script(Operation::TransactWriteItems);
            let published = world.layers.publish(&layer("eu", "numpy", "x")).await;
            assert_eq!(published, Ok(3), "{kind:?}");
            assert_eq!(check(&world.layers).await, [1, 2, 3]);
            script(Operation::TransactWriteItems);
            assert_eq!(world.layers.retire(GROUP, 3).await, Ok(true));
            assert_eq!(check(&world.layers).await, [1, 2, 3]);
            let one_write = if capabilities.write_tokens {
                Operation::WriteItem
            } else {
                Operation::TransactWriteItems
            };
            script(one_write);
            assert_eq!(world.layers.pin(GROUP, 1).await, Ok(true));
            script(one_write);
            assert_eq!(world.layers.retire(GROUP, 1).await, Ok(true));
            check(&world.layers).await;
            assert_eq!(world.faults.faults().len(), 4);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_changes_of_a_group_leave_one_latest_version() {
    for seed in 0..6 {
        let faults = Faults::seeded(seed)
            .throttle(0.02)
            .conflict(0.05)
            .lost_before(0.02)
            .lost_after(0.03)
            .partial_batches(0.2);
        let (layers, engine) = slow(faults, lossy()).await;
        layers.publish(&layer("eu", "numpy", "0")).await.unwrap();
        engine.resume();
        let tasks: Vec<_> = (0..6_u64)
            .map(|task| tokio::spawn(change(task, layers.clone())))
            .collect();
        let mut published = 1;
        for task in tasks {
            published += task.await.unwrap();
        }
        engine.pause();
        assert_eq!(check(&layers).await.len(), published, "seed={seed}");
        assert!(engine.faults().len() > 20, "{}", engine.faults().len());
    }
}

/// Publishes, retires, pins and moves an alias. Returns the number of published versions.
async fn change(task: u64, layers: Versions<'static, Layer>) -> usize {
    let mut published = 0;
    for step in 0..12 {
        let layer = layer("eu", "numpy", &format!("{task} {step}"));
        let number = layers.publish(&layer).await.unwrap();
        published += 1;
        let older = number.saturating_sub(step % 4).max(1);
        let done = match (task + step) % 4 {
            0 => layers.retire(GROUP, older).await,
            1 => layers.pin(GROUP, older).await,
            2 => layers.set_alias(GROUP, "lts", older).await,
            _ => layers.unpin(GROUP, older).await,
        };
        match done.map_err(|error| error.kind()) {
            Ok(_) | Err(ErrorKind::NotFound | ErrorKind::Restricted) => {}
            Err(kind) => panic!("{kind:?}"),
        }
    }
    published
}
