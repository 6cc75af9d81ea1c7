//! What the cache knows about tables: their keys, deletion and recreation.

use floe::cache::CacheOptions;
use floe_store::op::*;
use floe_store::table::KeyKind;
use floe_store::{Engine, Error, Item, TableDef};
use floe_testkit::fault::Faults;

use super::fixture::*;

fn plain() -> CreateTable {
    let table = TableDef::builder("Plain", "id", KeyKind::S);
    CreateTable::from(table.build().unwrap())
}

#[tokio::test]
async fn table_key_is_requested_once() {
    let world = world().await;
    let put_text = |version| format!(r#"PutItem Plain {{"id": "a", "v": {version}}}"#);
    for version in [1, 2] {
        world.write(put("a", version)).await;
        let mut expected = vec![put_text(version)];
        if version == 1 {
            expected.insert(0, "DescribeTable".to_owned());
        }
        assert_eq!(world.requests(), expected);
    }
    assert_eq!(world.sees_for("a").await, (2, 0));
    // A read of the other table reveals its key.
    let read = GetItem::new("Second", key("a")).eventual();
    world.cache.get_item(read).await.unwrap();
    world.requests();
    let batch = BatchWriteItem::new().put("Second", item("a", 1));
    world.cache.batch_write_item(batch).await.unwrap();
    assert_eq!(world.requests(), ["BatchWriteItem"]);
    // So does a write that contains the key.
    world.cache.clear();
    world.write(update("a", 3)).await;
    world.requests();
    world.write(put("a", 4)).await;
    assert_eq!(world.requests(), [put_text(4)]);
}

#[tokio::test]
async fn own_writes_are_visible_without_permission_to_describe_tables() {
    let secretive = |gate: &mut super::gate::Gate| gate.is_secretive = true;
    let world = world_with(Faults::seeded(1), CacheOptions::new(), secretive).await;
    world.write(put("a", 1)).await;
    assert_eq!(world.sees_for("a").await, (1, 1));
    // The read has revealed the key.
    world.write(put("a", 2)).await;
    assert_eq!(world.sees_for("a").await, (2, 0));
}

#[tokio::test]
async fn write_to_a_missing_table_fails_and_caches_nothing() {
    let world = world().await;
    for _ in 0..2 {
        let write = PutItem::new("Missing", item("a", 1));
        let error = world.cache.write_item(write.into()).await.unwrap_err();
        assert!(matches!(error, Error::ResourceNotFound(_)));
        let write = PutItem::new("?", item("a", 1));
        let error = world
            .cache
            .write_item(write.clone().into())
            .await
            .unwrap_err();
        assert_eq!(
            error,
            world.other.write_item(write.into()).await.unwrap_err()
        );
    }
    assert_eq!(world.cache.stats().items, 0);
}

#[tokio::test]
async fn put_without_a_key_is_rejected_and_keeps_cached_items() {
    let world = world().await;
    world.write(put("a", 1)).await;
    let keyless = PutItem::new("Plain", Item::new().with("v", 1));
    assert!(world.cache.write_item(keyless.into()).await.is_err());
    assert_eq!(world.sees_for("a").await, (1, 0));
}

#[tokio::test]
async fn recreated_table_is_empty() {
    let world = world().await;
    world.write(put("a", 1)).await;
    assert_eq!(world.sees("b").await, 0);
    world.cache.delete_table("Plain".to_owned()).await.unwrap();
    let error = world.cache.get_item(get("a")).await.unwrap_err();
    assert!(matches!(error, Error::ResourceNotFound(_)));
    let error = world
        .cache
        .batch_get_item(batch(["a", "b"]))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::ResourceNotFound(_)));
    world.cache.create_table(plain()).await.unwrap();
    assert_eq!(world.sees_for("a").await, (0, 1));
    // The key is known from the creation of the table.
    world.write(put("a", 2)).await;
    assert_eq!(world.requests().len(), 1);
    assert_eq!(world.sees_for("a").await, (2, 0));
}

#[tokio::test]
async fn table_change_clears_its_cached_items() {
    let world = world().await;
    let second = PutItem::new("Second", item("a", 1));
    world.write(second).await;
    for change in ["update_table", "update_time_to_live", "none"] {
        world.write(put("a", 1)).await;
        match change {
            "update_table" => {
                let mut update = UpdateTable::new("Plain");
                update.deletion_protection = Some(true);
                world.cache.update_table(update).await.unwrap();
            }
            "update_time_to_live" => {
                let update = UpdateTimeToLive {
                    table_name: "Plain".to_owned(),
                    attribute: "until".into(),
                    enabled: true,
                };
                world.cache.update_time_to_live(update).await.unwrap();
            }
            _ => {}
        }
        let sent = usize::from(change != "none");
        assert_eq!(world.sees_for("a").await, (1, sent), "{change}");
    }
    // The other table is unaffected.
    let other = GetItem::new("Second", key("a")).eventual();
    world.cache.get_item(other).await.unwrap();
    assert!(world.requests().is_empty());
}

#[tokio::test]
async fn table_recreated_by_another_process_is_detected() {
    let world = world().await;
    world.write(put("a", 1)).await;
    world.other.delete_table("Plain".to_owned()).await.unwrap();
    let other_key = TableDef::builder("Plain", "name", KeyKind::S).build();
    let create = CreateTable::from(other_key.unwrap());
    world.other.create_table(create).await.unwrap();
    let named = |name: &str| GetItem::new("Plain", Item::new().with("name", name)).eventual();
    let sees = async |name| {
        let output = world.cache.get_item(named(name)).await.unwrap();
        version_of(output.item.as_ref())
    };
    // The item has no `id`, which was the key, so the cached key must be wrong.
    let write = |name: &str, version: i64| {
        let item = Item::new().with("name", name).with("v", version);
        PutItem::new("Plain", item)
    };
    world.write(write("x", 1)).await;
    assert!(world.cache.get_item(get("a")).await.is_err());
    assert_eq!(sees("x").await, 1);
    for version in [2, 3] {
        world.write(write("x", version)).await;
        assert_eq!(sees("x").await, version);
    }
    assert_eq!(world.cache.stats().items, 1);
}
