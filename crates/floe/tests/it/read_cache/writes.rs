//! What writes leave in the cache: the written item if it is certain, otherwise nothing.

use floe::cache::CacheOptions;
use floe_store::expr::{Condition, Path, Update};
use floe_store::op::*;
use floe_store::{Engine, Error};
use floe_testkit::fault::{FaultKind, Faults, Lag, Operation};

use super::fixture::*;

#[tokio::test]
async fn single_write_caches_the_written_item() {
    let world = world().await;
    world.write(put("a", 1)).await;
    assert_eq!(world.sees_for("a").await, (1, 0));
    world.write(update("a", 2)).await;
    assert_eq!(world.sees_for("a").await, (2, 0));
    world.write(update("b", 3)).await;
    assert_eq!(world.sees_for("b").await, (3, 0));
    world.write(delete("a")).await;
    assert_eq!(world.sees_for("a").await, (0, 0));
    // The whole item, not only the changed attributes.
    world
        .write(PutItem::new("Plain", item("c", 1).with("w", "kept")))
        .await;
    world.write(update("c", 2)).await;
    let found = world.cache.get_item(get("c")).await.unwrap().item;
    assert_eq!(found, Some(item("c", 2).with("w", "kept")));
    assert!(world.cache.stats().misses == 0);
}

#[tokio::test]
async fn update_returns_the_requested_values() {
    use ReturnValues::*;
    for (returns, requests) in [
        (None, 0),
        (AllNew, 0),
        (AllOld, 1),
        (UpdatedNew, 1),
        (UpdatedOld, 1),
    ] {
        let (world, plain) = (world().await, world().await);
        for version in [1, 2] {
            let write = || WriteItem::from(update("a", version).return_values(returns));
            let output = world.cache.write_item(write()).await.unwrap();
            assert_eq!(output, plain.other.write_item(write()).await.unwrap());
            assert_eq!(
                world.sees_for("a").await,
                (version, requests),
                "{returns:?}"
            );
        }
    }
}

#[tokio::test]
async fn update_that_creates_no_item_caches_none() {
    let world = world().await;
    let remove = Update::new().remove("v");
    world
        .write(UpdateItem::new("Plain", key("a"), remove))
        .await;
    assert_eq!(world.cache.get_item(get("a")).await.unwrap().item, None);
}

#[tokio::test]
async fn batch_caches_processed_items_only() {
    let world = world().await;
    world.write(put("d", 1)).await;
    let batch = || {
        let batch = BatchWriteItem::new().put("Plain", item("a", 2));
        let batch = batch.put("Plain", item("b", 2)).delete("Plain", key("d"));
        batch.put("Second", item("a", 9))
    };
    world.cache.batch_write_item(batch()).await.unwrap();
    for (id, version) in [("a", 2), ("b", 2), ("d", 0)] {
        assert_eq!(world.sees_for(id).await, (version, 0));
    }
    let other = GetItem::new("Second", key("a")).eventual();
    let other = world.cache.get_item(other).await.unwrap().item;
    assert_eq!(version_of(other.as_ref()), 9);
    assert!(world.requests().is_empty());

    let fault = FaultKind::PartialBatch;
    world
        .faults
        .script(Operation::BatchWriteItem, fault)
        .unwrap();
    let again = BatchWriteItem::new().put("Plain", item("a", 3));
    let again = again.put("Plain", item("b", 3)).put("Plain", item("d", 3));
    let output = world.cache.batch_write_item(again).await.unwrap();
    let left = &output.unprocessed["Plain"];
    assert!(!left.is_empty());
    for (id, old) in [("a", 2), ("b", 2), ("d", 0)] {
        let is_left = left.iter().any(|write| *write.key_item() == item(id, 3));
        let expected = if is_left { (old, 1) } else { (3, 0) };
        assert_eq!(world.sees_for(id).await, expected);
    }
}

#[tokio::test]
async fn transaction_caches_puts_and_deletes_but_not_updates() {
    let world = world().await;
    for id in ["a", "b", "c", "d"] {
        world.write(put(id, 1)).await;
    }
    let exists = Condition::attribute_exists(Path::attribute("id"));
    world
        .transact([
            put("a", 2).into(),
            delete("b").into(),
            update("c", 2).into(),
            ConditionCheck::new("Plain", key("d"), exists).into(),
        ])
        .await;
    for (id, expected) in [("a", (2, 0)), ("b", (0, 0)), ("c", (2, 1)), ("d", (1, 0))] {
        assert_eq!(world.sees_for(id).await, expected, "{id}");
    }
}

#[tokio::test]
async fn repeated_token_does_not_cache_outdated_items() {
    let world = world().await;
    let first = || put("a", 1).token("first");
    world.write(first()).await;
    assert_eq!(world.sees_for("a").await, (1, 1));
    world.write(put("a", 2)).await;
    world.write(first()).await;
    assert_eq!(world.sees("a").await, 2);
    world.write(delete("b").token("second")).await;
    world.write(put("b", 1)).await;
    world.write(delete("b").token("second")).await;
    assert_eq!(world.sees("b").await, 1);
    let write = update("c", 1).token("third");
    let transaction = || TransactWriteItems::new([put("d", 1).into()]).token("fourth");
    world.write(write.clone()).await;
    world
        .cache
        .transact_write_items(transaction())
        .await
        .unwrap();
    world.write(put("c", 2)).await;
    world.write(put("d", 2)).await;
    world.write(write).await;
    world
        .cache
        .transact_write_items(transaction())
        .await
        .unwrap();
    assert_eq!((world.sees("c").await, world.sees("d").await), (2, 2));
    let shown = update("e", 1).token("fifth");
    let shown = shown.return_values(ReturnValues::AllNew);
    world.write(shown.clone()).await;
    world.write(put("e", 2)).await;
    world.write(shown).await;
    assert_eq!(world.sees("e").await, 2);
}

#[tokio::test]
async fn failed_condition_removes_the_cached_item() {
    let world = world().await;
    let at_one = || Condition::eq(Path::attribute("v"), 1);
    for id in ["a", "b", "c"] {
        world.write(put(id, 1)).await;
        world.write_elsewhere(put(id, 2)).await;
        assert_eq!(world.sees(id).await, 1);
    }
    let refused = world
        .cache
        .write_item(put("a", 3).condition(at_one()).into());
    let error = refused.await.unwrap_err();
    assert!(matches!(error, Error::ConditionalCheckFailed { .. }));
    assert_eq!(world.sees_for("a").await, (2, 1));
    // In a transaction, both for checks and for writes.
    let check = ConditionCheck::new("Plain", key("b"), at_one());
    let request = TransactWriteItems::new([check.into(), update("c", 3).into()]);
    let error = world.cache.transact_write_items(request).await.unwrap_err();
    assert!(matches!(error, Error::TransactionCanceled { .. }));
    assert_eq!(world.sees_for("b").await, (2, 1));
    assert_eq!(world.sees_for("c").await, (2, 1));
}

#[tokio::test]
async fn item_is_read_again_after_a_lost_response() {
    let world = world().await;
    for (kind, expected) in [(FaultKind::LostBefore, 1), (FaultKind::LostAfter, 2)] {
        for (operation, id) in [
            (Operation::WriteItem, "a"),
            (Operation::BatchWriteItem, "b"),
            (Operation::TransactWriteItems, "c"),
        ] {
            world.write(put(id, 1)).await;
            assert_eq!(world.sees_for(id).await, (1, 0));
            world.faults.script(operation, kind).unwrap();
            let error = match id {
                "a" => world.cache.write_item(put(id, 2).into()).await.err(),
                "b" => {
                    let batch = BatchWriteItem::new().put("Plain", item(id, 2));
                    world.cache.batch_write_item(batch).await.err()
                }
                _ => {
                    let request = TransactWriteItems::new([put(id, 2).into()]);
                    world.cache.transact_write_items(request).await.err()
                }
            };
            assert!(error.unwrap().may_have_applied());
            assert_eq!(
                world.sees_for(id).await,
                (expected, 1),
                "{operation} {kind}"
            );
        }
    }
}

/// Every eventual read comes from a replica without any of the writes.
#[tokio::test]
async fn own_writes_are_visible_although_the_replica_lags() {
    let faults = Faults::seeded(1).stale_reads(1.0, Lag::Operations(1_000_000));
    let world = world_with(faults, CacheOptions::new(), |_| {}).await;
    let mut versions = 1..;
    let mut next = || versions.next().unwrap();
    for _ in 0..5 {
        let version = next();
        world.write(put("a", version)).await;
        assert_eq!(world.sees("a").await, version);
        for returns in [
            ReturnValues::None,
            ReturnValues::AllOld,
            ReturnValues::UpdatedNew,
        ] {
            let version = next();
            world
                .write(update("a", version).return_values(returns))
                .await;
            // A read with consumed capacity is sent unchanged, and does not cache an outdated item.
            let mut costly = get("a");
            costly.return_capacity = floe_store::capacity::ReturnConsumedCapacity::Total;
            let behind = world.cache.get_item(costly).await.unwrap().item;
            assert!(version_of(behind.as_ref()) < version);
            assert_eq!(world.sees("a").await, version, "{returns:?}");
        }
        let version = next();
        world.transact([update("a", version).into()]).await;
        let output = world.cache.batch_get_item(batch(["a", "b"])).await.unwrap();
        assert_eq!(output.items["Plain"], [item("a", version)]);
        world.write(delete("a")).await;
        assert_eq!(world.sees("a").await, 0);
    }
    assert!(world.faults.faults().len() >= 15);
}
