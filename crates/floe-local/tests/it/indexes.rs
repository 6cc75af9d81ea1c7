//! Adding indexes to tables with items and removing them, across restarts and during writes.

use floe_store::expr::{KeyCondition, Update};
use floe_store::op::{
    CreateIndex, IndexUpdate, KeyRole, KeySchemaElement, Query, UpdateItem, UpdateTable,
};
use floe_store::table::{IndexKind, KeyKind, Projection, Scaling, TableDescription, TableStatus};
use floe_store::{Engine, Error, Item, TableDef};

use crate::common::{TestStore, memory, open};

fn orders() -> TableDef {
    let orders = TableDef::builder("Orders", "id", KeyKind::N);
    orders.build().unwrap()
}

fn order(id: i64) -> Item {
    let order = Item::new().with("id", id).with("note", "x".repeat(100));
    match id % 3 {
        // Two thirds have the attribute of the index's partition key, half of them with the wrong type.
        0 => order.with("state", "open"),
        1 => order.with("state", 7),
        _ => order,
    }
}

fn add_index(projection: Projection) -> UpdateTable {
    let element = |name: &str, role| KeySchemaElement {
        name: name.into(),
        role,
    };
    UpdateTable {
        attribute_definitions: vec![("state".into(), KeyKind::S), ("id".into(), KeyKind::N)],
        indexes: vec![IndexUpdate::Create(CreateIndex {
            name: "by_state".to_owned(),
            kind: IndexKind::Global,
            key_schema: vec![
                element("state", KeyRole::Hash),
                element("id", KeyRole::Range),
            ],
            projection,
            throughput: None,
            scaling: Scaling::default(),
        })],
        ..UpdateTable::new("Orders")
    }
}

fn remove_index() -> UpdateTable {
    UpdateTable {
        indexes: vec![IndexUpdate::Delete("by_state".to_owned())],
        ..UpdateTable::new("Orders")
    }
}

async fn describe(store: &TestStore) -> TableDescription {
    store.engine.describe_table("Orders".into()).await.unwrap()
}

async fn open_orders(store: &TestStore) -> Result<Vec<i64>, Error> {
    let condition = KeyCondition::partition("state", "open");
    let query = Query::new("Orders", condition).index("by_state");
    let page = store.engine.query(query).await?;
    let id = |item: &Item| item.get("id").unwrap().as_n().unwrap().to_i64().unwrap();
    Ok(page.items.iter().map(id).collect())
}

#[tokio::test]
async fn new_index_is_filled_from_existing_items() {
    let store = memory();
    store.create(orders()).await;
    for id in 0..2000 {
        store.put("Orders", order(id)).await;
    }
    let described = store
        .engine
        .update_table(add_index(Projection::KeysOnly))
        .await
        .unwrap();
    assert_eq!(described.status, TableStatus::Updating);
    assert_eq!(described.indexes[0].status, TableStatus::Creating);
    assert!(described.indexes[0].backfilling);
    let error = open_orders(&store).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "Cannot read from backfilling global secondary index: by_state"
    );

    // Writes during the job: ahead of its cursor, behind it, and to items that are not in the index.
    assert!(store.engine.run_background_once().unwrap());
    store.delete("Orders", Item::new().with("id", 0)).await;
    store.delete("Orders", Item::new().with("id", 1998)).await;
    store.put("Orders", order(2001)).await;
    let close = UpdateItem::new(
        "Orders",
        Item::new().with("id", 3),
        Update::new().set("state", "closed"),
    );
    store.engine.write_item(close.into()).await.unwrap();
    store.run_background();

    let expected: Vec<i64> = (0..2002)
        .step_by(3)
        .filter(|id| ![0, 3, 1998].contains(id))
        .collect();
    assert_eq!(open_orders(&store).await.unwrap(), expected);
    let described = describe(&store).await;
    assert_eq!(described.status, TableStatus::Active);
    assert_eq!(described.indexes[0].status, TableStatus::Active);
    assert_eq!(described.indexes[0].item_count, expected.len() as u64 + 1);
    let entries = store.entries("Orders", "by_state").await;
    let bytes: usize = entries.iter().map(floe_store::size::item_size).sum();
    assert_eq!(described.indexes[0].size_bytes, bytes as u64);
}

#[tokio::test]
async fn filling_and_removing_continue_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.create(orders()).await;
    for chunk in 0..60 {
        let mut batch = floe_store::op::BatchWriteItem::new();
        for id in chunk * 25..(chunk + 1) * 25 {
            batch = batch.put("Orders", order(id));
        }
        store.engine.batch_write_item(batch).await.unwrap();
    }
    store
        .engine
        .update_table(add_index(Projection::All))
        .await
        .unwrap();
    store.engine.run_background_once().unwrap();
    drop(store);

    let store = open(dir.path());
    assert!(open_orders(&store).await.is_err());
    store.run_background();
    assert_eq!(open_orders(&store).await.unwrap().len(), 500);
    assert_eq!(describe(&store).await.indexes[0].item_count, 500);

    let described = store.engine.update_table(remove_index()).await.unwrap();
    assert_eq!(described.indexes[0].status, TableStatus::Deleting);
    assert!(matches!(
        open_orders(&store).await,
        Err(Error::Validation(_))
    ));
    drop(store);

    let store = open(dir.path());
    let busy = store.engine.update_table(add_index(Projection::All)).await;
    assert!(matches!(busy, Err(Error::ResourceInUse(_))), "{busy:?}");
    store.run_background();
    assert!(describe(&store).await.indexes.is_empty());
    store
        .engine
        .update_table(add_index(Projection::All))
        .await
        .unwrap();
    store.run_background();
    assert_eq!(open_orders(&store).await.unwrap().len(), 500);
}

#[tokio::test]
async fn index_on_an_empty_table_is_active_immediately() {
    let store = memory();
    store.create(orders()).await;
    let described = store
        .engine
        .update_table(add_index(Projection::All))
        .await
        .unwrap();
    assert_eq!(described.indexes[0].status, TableStatus::Active);
    store.put("Orders", order(3)).await;
    assert_eq!(open_orders(&store).await.unwrap(), [3]);
}

#[tokio::test]
async fn table_with_an_index_being_filled_cannot_be_deleted() {
    let store = memory();
    store.create(orders()).await;
    store.put("Orders", order(3)).await;
    store
        .engine
        .update_table(add_index(Projection::All))
        .await
        .unwrap();
    let rejected = store
        .engine
        .delete_table("Orders".into())
        .await
        .unwrap_err();
    assert_eq!(
        rejected.to_string(),
        "Attempt to change a resource which is still in use: Cannot delete table while indexes are \
         being created, updated, or deleted."
    );
    store.run_background();
    store.engine.delete_table("Orders".into()).await.unwrap();
}
