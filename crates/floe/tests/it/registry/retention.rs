//! Retention: expiry, and versions exempt by pins and aliases.

use floe::ErrorKind;
use floe::registry::Status;

use super::support::{DAY, Layer, World, layer, numbers};

const GROUP: (&str, &str) = ("eu", "numpy");

async fn expiry_days(world: &World, number: u64) -> Option<u64> {
    let version = world.layers.version(GROUP, number).await.unwrap().unwrap();
    let start = floe_testkit::time::TestEnv::START.as_secs();
    version
        .expires
        .map(|expires| (expires.as_secs() - start) / 86_400)
}

#[tokio::test]
async fn expired_version_reads_as_deleted_before_the_store_removes_it() {
    let world = World::new().await;
    world.publish("eu", "numpy", 2).await;
    world.test.advance(30 * DAY);
    let deployed = world.layers.deployed_in(Layer::BY_REGION, "eu");
    assert_eq!(numbers(&deployed.await.unwrap()), [2]);
    let listed = world.index("region-status", "rgn", "eu").await;
    assert_eq!(listed.len(), 2, "the store has not removed it");
    let expired = world.layers.version(GROUP, 1).await.unwrap().unwrap();
    assert_eq!((expired.status, expired.expires), (None, None));
    assert_eq!(expired.deleted, Some(world.test.now()));
    let history = world.layers.history(GROUP).collect().await.unwrap();
    assert_eq!(history[0], expired, "the history agrees");
    // It cannot be pinned, get an alias, or become the latest again.
    let pinned = world.layers.pin(GROUP, 1).await.unwrap_err();
    assert_eq!(pinned.kind(), ErrorKind::NotFound);
    let aliased = world.layers.set_alias(GROUP, "lts", 1).await.unwrap_err();
    assert_eq!(aliased.kind(), ErrorKind::NotFound);
    world.layers.retire(GROUP, 2).await.unwrap();
    assert_eq!(world.layers.latest(GROUP).await, Ok(None));
    // It cannot be retired, because its expiry handler has yet to run.
    world.clear_records();
    assert_eq!(world.layers.retire(GROUP, 1).await, Ok(false));
    assert_eq!(world.requests(), ["BatchGetItem"]);
}

#[tokio::test]
async fn pinned_version_does_not_expire() {
    let world = World::new().await;
    world.publish("eu", "numpy", 1).await;
    assert_eq!(world.layers.pin(GROUP, 1).await, Ok(true));
    assert_eq!(world.requests(), ["BatchGetItem", "TransactWriteItems"]);
    assert_eq!(world.layers.pin(GROUP, 1).await, Ok(false));
    assert_eq!(world.requests(), ["BatchGetItem"]);
    world.publish("eu", "numpy", 2).await;
    assert_eq!(expiry_days(&world, 1).await, None);
    assert_eq!(expiry_days(&world, 2).await, Some(30));
    world.clear_records();
    assert_eq!(world.layers.pin(GROUP, 2).await, Ok(true));
    assert_eq!(world.requests(), ["BatchGetItem", "UpdateItem"]);
    assert_eq!(expiry_days(&world, 2).await, None);
    world.test.advance(100 * DAY);
    world.sweep();
    let deployed = world.layers.deployed_in(Layer::BY_REGION, "eu");
    assert_eq!(deployed.await.unwrap().len(), 3);
    // An unpinned version expires after the retention, counted from now.
    assert_eq!(world.layers.unpin(GROUP, 1).await, Ok(true));
    assert_eq!(world.layers.unpin(GROUP, 1).await, Ok(false));
    assert_eq!(expiry_days(&world, 1).await, Some(130));
    // Unpinning the latest version does not set an expiry.
    world.layers.pin(GROUP, 3).await.unwrap();
    assert!(world.layers.latest(GROUP).await.unwrap().unwrap().is_pinned);
    world.layers.unpin(GROUP, 3).await.unwrap();
    let latest = world.layers.latest(GROUP).await.unwrap().unwrap();
    assert_eq!((latest.is_pinned, latest.expires), (false, None));
    assert_eq!(expiry_days(&world, 3).await, None);
}

#[tokio::test]
async fn version_with_an_alias_does_not_expire() {
    let world = World::new().await;
    world.publish("eu", "numpy", 3).await;
    assert_eq!(world.layers.by_alias(GROUP, "lts").await, Ok(None));
    world.clear_records();
    assert_eq!(world.layers.set_alias(GROUP, "lts", 1).await, Ok(true));
    assert_eq!(world.requests(), ["BatchGetItem", "TransactWriteItems"]);
    assert_eq!(world.layers.set_alias(GROUP, "lts", 1).await, Ok(false));
    assert_eq!(world.requests(), ["BatchGetItem"]);
    let lts = world.layers.by_alias(GROUP, "lts").await.unwrap().unwrap();
    assert_eq!((lts.number, lts.aliases), (1, vec!["lts".to_owned()]));
    assert_eq!(world.requests(), ["GetItem", "GetItem"]);
    assert_eq!(expiry_days(&world, 1).await, None);
    // After the alias has moved, the previous version expires.
    world.test.advance(DAY);
    world.clear_records();
    assert_eq!(world.layers.set_alias(GROUP, "lts", 2).await, Ok(true));
    assert_eq!(
        world.requests(),
        ["BatchGetItem", "GetItem", "TransactWriteItems"]
    );
    assert_eq!(expiry_days(&world, 1).await, Some(31));
    assert_eq!(expiry_days(&world, 2).await, None);
    // Another alias or a pin keeps the version.
    world.layers.set_alias(GROUP, "stable", 2).await.unwrap();
    world.layers.pin(GROUP, 2).await.unwrap();
    assert_eq!(world.layers.remove_alias(GROUP, "lts").await, Ok(true));
    assert_eq!(world.layers.remove_alias(GROUP, "lts").await, Ok(false));
    assert_eq!(expiry_days(&world, 2).await, None);
    world.layers.unpin(GROUP, 2).await.unwrap();
    assert_eq!(expiry_days(&world, 2).await, None);
    world.layers.remove_alias(GROUP, "stable").await.unwrap();
    assert_eq!(expiry_days(&world, 2).await, Some(31));
    assert_eq!(world.layers.by_alias(GROUP, "lts").await, Ok(None));
}

#[tokio::test]
async fn alias_of_the_latest_keeps_it_when_it_is_deprecated() {
    let world = World::new().await;
    world.publish("eu", "numpy", 1).await;
    world.layers.set_alias(GROUP, "lts", 1).await.unwrap();
    world.publish("eu", "numpy", 1).await;
    let first = world.layers.version(GROUP, 1).await.unwrap().unwrap();
    assert_eq!(first.status, Some(Status::Deprecated));
    assert_eq!(
        (first.expires, first.aliases),
        (None, vec!["lts".to_owned()])
    );
    assert_eq!(
        world.layers.latest(GROUP).await.unwrap().unwrap().aliases,
        Vec::<String>::new()
    );
}

#[tokio::test]
async fn version_with_an_alias_cannot_be_retired() {
    let world = World::new().await;
    world.publish("eu", "numpy", 2).await;
    world.layers.set_alias(GROUP, "lts", 1).await.unwrap();
    let error = world.layers.retire(GROUP, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Restricted);
    assert_eq!(
        error.to_string(),
        "aliases refer to the version: move or remove them first: group=Layer(lyr#eu.numpy) version=1 \
         aliases=lts"
    );
    world.layers.set_alias(GROUP, "lts", 2).await.unwrap();
    assert_eq!(world.layers.retire(GROUP, 1).await, Ok(true));
    let error = world.layers.set_alias(GROUP, "old", 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = world.layers.set_alias(GROUP, "new", 7).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(world.layers.by_alias(GROUP, "new").await, Ok(None));
}

#[tokio::test]
async fn newest_deployed_version_becomes_the_latest_again() {
    let world = World::new().await;
    world.publish("eu", "numpy", 5).await;
    world.layers.retire(GROUP, 4).await.unwrap();
    world.layers.retire(GROUP, 2).await.unwrap();
    let latest = async || {
        let latest = world.layers.latest(GROUP).await.unwrap();
        latest.map(|latest| latest.number)
    };
    assert_eq!(latest().await, Some(5));
    world.clear_records();
    world.layers.retire(GROUP, 5).await.unwrap();
    assert_eq!(
        world.requests(),
        ["BatchGetItem", "Query", "TransactWriteItems"]
    );
    assert_eq!(latest().await, Some(3));
    assert_eq!(
        expiry_days(&world, 3).await,
        None,
        "the latest version does not expire"
    );
    let all = world.layers.latest_of_all(Layer::BY_PACKAGE, "numpy");
    assert_eq!(numbers(&all.await.unwrap()), [3]);
    assert_eq!(
        world.layers.publish(&layer("eu", "numpy", "x")).await,
        Ok(6)
    );
    assert_eq!(expiry_days(&world, 3).await, Some(30));
}

#[tokio::test]
async fn caller_can_choose_the_retention() {
    let world = World::new().await;
    let layers = world.layers.clone().retention(5 * DAY);
    for arn in ["1", "2"] {
        layers.publish(&layer("eu", "numpy", arn)).await.unwrap();
    }
    assert_eq!(expiry_days(&world, 1).await, Some(5));
}
