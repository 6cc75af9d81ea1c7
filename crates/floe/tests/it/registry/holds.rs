//! What retention takes and what holds a version: expiry, pins and aliases.

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
async fn what_has_expired_is_gone_before_the_store_removes_it() {
    let world = World::new().await;
    world.publish("eu", "numpy", 2).await;
    world.test.advance(30 * DAY);
    let deployed = world.layers.deployed_in(Layer::BY_REGION, "eu");
    assert_eq!(numbers(&deployed.await.unwrap()), [2]);
    let listed = world.index("region-status", "rgn", "eu").await;
    assert_eq!(listed.len(), 2, "the store still has it");
    let expired = world.layers.version(GROUP, 1).await.unwrap().unwrap();
    assert_eq!((expired.status, expired.expires), (None, None));
    assert_eq!(expired.deleted, Some(world.test.now()));
    let history = world.layers.history(GROUP).collect().await.unwrap();
    assert_eq!(history[0], expired, "as history says");
    // It cannot be held any more, and is not the latest again.
    let pinned = world.layers.pin(GROUP, 1).await.unwrap_err();
    assert_eq!(pinned.kind(), ErrorKind::NotFound);
    let aliased = world.layers.set_alias(GROUP, "lts", 1).await.unwrap_err();
    assert_eq!(aliased.kind(), ErrorKind::NotFound);
    world.layers.retire(GROUP, 2).await.unwrap();
    assert_eq!(world.layers.latest(GROUP).await, Ok(None));
    // It cannot be retired either: then nobody would be told that it has expired.
    world.forget();
    assert_eq!(world.layers.retire(GROUP, 1).await, Ok(false));
    assert_eq!(world.requests(), ["BatchGetItem"]);
}

#[tokio::test]
async fn what_is_pinned_does_not_expire() {
    let world = World::new().await;
    world.publish("eu", "numpy", 1).await;
    assert_eq!(world.layers.pin(GROUP, 1).await, Ok(true));
    assert_eq!(world.requests(), ["BatchGetItem", "TransactWriteItems"]);
    assert_eq!(world.layers.pin(GROUP, 1).await, Ok(false));
    assert_eq!(world.requests(), ["BatchGetItem"]);
    world.publish("eu", "numpy", 2).await;
    assert_eq!(expiry_days(&world, 1).await, None);
    assert_eq!(expiry_days(&world, 2).await, Some(30));
    world.forget();
    assert_eq!(world.layers.pin(GROUP, 2).await, Ok(true));
    assert_eq!(world.requests(), ["BatchGetItem", "UpdateItem"]);
    assert_eq!(expiry_days(&world, 2).await, None);
    world.test.advance(100 * DAY);
    world.sweep();
    let deployed = world.layers.deployed_in(Layer::BY_REGION, "eu");
    assert_eq!(deployed.await.unwrap().len(), 3);
    // Let go, it stays for the retention from now on.
    assert_eq!(world.layers.unpin(GROUP, 1).await, Ok(true));
    assert_eq!(world.layers.unpin(GROUP, 1).await, Ok(false));
    assert_eq!(expiry_days(&world, 1).await, Some(130));
    // To let the latest go does not make it expire.
    world.layers.pin(GROUP, 3).await.unwrap();
    assert!(world.layers.latest(GROUP).await.unwrap().unwrap().is_pinned);
    world.layers.unpin(GROUP, 3).await.unwrap();
    let latest = world.layers.latest(GROUP).await.unwrap().unwrap();
    assert_eq!((latest.is_pinned, latest.expires), (false, None));
    assert_eq!(expiry_days(&world, 3).await, None);
}

#[tokio::test]
async fn what_an_alias_leads_to_does_not_expire() {
    let world = World::new().await;
    world.publish("eu", "numpy", 3).await;
    assert_eq!(world.layers.by_alias(GROUP, "lts").await, Ok(None));
    world.forget();
    assert_eq!(world.layers.set_alias(GROUP, "lts", 1).await, Ok(true));
    assert_eq!(world.requests(), ["BatchGetItem", "TransactWriteItems"]);
    assert_eq!(world.layers.set_alias(GROUP, "lts", 1).await, Ok(false));
    assert_eq!(world.requests(), ["BatchGetItem"]);
    let lts = world.layers.by_alias(GROUP, "lts").await.unwrap().unwrap();
    assert_eq!((lts.number, lts.aliases), (1, vec!["lts".to_owned()]));
    assert_eq!(world.requests(), ["GetItem", "GetItem"]);
    assert_eq!(expiry_days(&world, 1).await, None);
    // It moves, and lets the one it led to go.
    world.test.advance(DAY);
    world.forget();
    assert_eq!(world.layers.set_alias(GROUP, "lts", 2).await, Ok(true));
    assert_eq!(
        world.requests(),
        ["BatchGetItem", "GetItem", "TransactWriteItems"]
    );
    assert_eq!(expiry_days(&world, 1).await, Some(31));
    assert_eq!(expiry_days(&world, 2).await, None);
    // While something else holds it, it stays.
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
async fn an_alias_of_the_latest_holds_it_when_it_is_deprecated() {
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
async fn what_an_alias_leads_to_is_not_retired() {
    let world = World::new().await;
    world.publish("eu", "numpy", 2).await;
    world.layers.set_alias(GROUP, "lts", 1).await.unwrap();
    let error = world.layers.retire(GROUP, 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Restricted);
    assert_eq!(
        error.to_string(),
        "aliases lead to the version; move or remove them first: group=Layer(lyr#eu.numpy) version=1 \
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
async fn the_newest_that_is_deployed_is_the_latest_again() {
    let world = World::new().await;
    world.publish("eu", "numpy", 5).await;
    world.layers.retire(GROUP, 4).await.unwrap();
    world.layers.retire(GROUP, 2).await.unwrap();
    let latest = async || {
        let latest = world.layers.latest(GROUP).await.unwrap();
        latest.map(|latest| latest.number)
    };
    assert_eq!(latest().await, Some(5));
    world.forget();
    world.layers.retire(GROUP, 5).await.unwrap();
    assert_eq!(
        world.requests(),
        ["BatchGetItem", "Query", "TransactWriteItems"]
    );
    assert_eq!(latest().await, Some(3));
    assert_eq!(expiry_days(&world, 3).await, None, "the latest stays");
    let all = world.layers.latest_of_all(Layer::BY_PACKAGE, "numpy");
    assert_eq!(numbers(&all.await.unwrap()), [3]);
    assert_eq!(
        world.layers.publish(&layer("eu", "numpy", "x")).await,
        Ok(6)
    );
    assert_eq!(expiry_days(&world, 3).await, Some(30));
}

#[tokio::test]
async fn retention_can_be_chosen_by_the_caller() {
    let world = World::new().await;
    let layers = world.layers.clone().retention(5 * DAY);
    for arn in ["1", "2"] {
        layers.publish(&layer("eu", "numpy", arn)).await.unwrap();
    }
    assert_eq!(expiry_days(&world, 1).await, Some(5));
}
