//! Creating and updating the tables of models on an engine.

use std::time::Duration;

use floe_store::expr::KeyCondition;
use floe_store::op::{CreateTable, IndexUpdate, PutItem, Query, UpdateTable, WriteItem};
use floe_store::table::{Billing, KeyKind, Projection, StreamView, TableStatus, Throughput};
use floe_store::{Error as StoreError, Item, TableDef};

use super::super::{TableChange, table_definitions};
use super::wrapper::{Fate, SlowEngine, slow_db};
use super::*;
use crate::db::Db;
use crate::error::ErrorKind;
use crate::tables::difference::{differences, missing};

fn created() -> TableChange {
    TableChange::Created {
        table: "Order".to_owned(),
    }
}

fn index_added(index: &str) -> TableChange {
    TableChange::IndexAdded {
        table: "Order".to_owned(),
        index: index.to_owned(),
    }
}

fn expiry_enabled() -> TableChange {
    TableChange::ExpiryEnabled {
        table: "Order".to_owned(),
        attribute: "until".to_owned(),
    }
}

fn stream_enabled() -> TableChange {
    TableChange::StreamEnabled {
        table: "Order".to_owned(),
    }
}

fn unchanged() -> TableChange {
    TableChange::Unchanged {
        table: "Order".to_owned(),
    }
}

async fn create(db: &Db, table: TableDef) {
    let request = CreateTable::from(table);
    db.engine().create_table(request).await.unwrap();
}

async fn definition(db: &Db) -> TableDef {
    let description = db
        .engine()
        .describe_table("Order".to_owned())
        .await
        .unwrap();
    assert_eq!(description.status, TableStatus::Active);
    assert!(
        description
            .indexes
            .iter()
            .all(|index| index.status == TableStatus::Active)
    );
    description.definition
}

#[track_caller]
fn assert_error(result: crate::Result<Vec<TableChange>>, kind: ErrorKind, message: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.to_string(), message);
    assert_eq!(error.kind(), kind);
}

#[tokio::test]
async fn missing_tables_are_created_once() {
    let db = Db::memory().unwrap();
    let other = Schema {
        table: "Customer",
        ..model("Customer", &[ID])
    };
    let customer = || "Customer".to_owned();
    let changes = db.ensure_tables(&[&FULL]).await.unwrap();
    assert_eq!(changes, [created()]);
    let changes = db.ensure_tables(&[&FULL, &other]).await.unwrap();
    assert_eq!(
        changes,
        [TableChange::Created { table: customer() }, unchanged()]
    );
    let changes = db.ensure_tables(&[&FULL, &other]).await.unwrap();
    assert_eq!(
        changes,
        [TableChange::Unchanged { table: customer() }, unchanged()]
    );
    assert_eq!(
        definition(&db).await,
        table_definitions(&[&FULL]).unwrap()[0]
    );
    assert_eq!(db.ensure_tables(&[]).await.unwrap(), []);
}

#[tokio::test]
async fn indexes_and_expiry_are_added_to_an_existing_table() {
    let db = Db::memory().unwrap();
    assert_eq!(db.ensure_tables(&[&PLAIN]).await.unwrap(), [created()]);
    for n in 0..50 {
        let item = Item::new()
            .with("_id", format!("o-{n:02}"))
            .with("product", "skis");
        let put = PutItem::new("Order", item.with("price", n));
        db.engine().write_item(WriteItem::Put(put)).await.unwrap();
    }
    let changes = db.ensure_tables(&[&FULL]).await.unwrap();
    assert_eq!(
        changes,
        [
            index_added("by_product"),
            index_added("by_price"),
            expiry_enabled()
        ]
    );
    let skis = KeyCondition::partition("product", "skis");
    let query = Query::new("Order", skis).index("by_product").backward();
    let page = db.engine().query(query).await.unwrap();
    assert_eq!(page.count, 50);
    assert_eq!(page.items[0].get("_id"), Some(&"o-49".into()));
    assert_eq!(db.ensure_tables(&[&FULL]).await.unwrap(), [unchanged()]);
    assert_eq!(
        definition(&db).await,
        table_definitions(&[&FULL]).unwrap()[0]
    );
}

#[tokio::test]
async fn table_is_created_with_its_stream() {
    let db = Db::memory().unwrap();
    let changes = db.ensure_tables(&[&STREAMED]).await.unwrap();
    assert_eq!(changes, [created()]);
    let expected = table_definitions(&[&STREAMED]).unwrap();
    assert_eq!(definition(&db).await, expected[0]);
    assert_eq!(db.ensure_tables(&[&STREAMED]).await.unwrap(), [unchanged()]);
}

#[tokio::test]
async fn stream_is_enabled_before_indexes_are_built() {
    let (db, engine, _timer) = slow_db(SlowEngine::new(2));
    db.ensure_tables(&[&PLAIN]).await.unwrap();
    let order = Schema {
        stream: true,
        indexes: &[BY_PRICE],
        ..PLAIN
    };
    assert_eq!(
        db.ensure_tables(&[&order]).await.unwrap(),
        [stream_enabled(), index_added("by_price")]
    );
    assert_eq!(engine.changes(), 3);
    assert_eq!(db.ensure_tables(&[&PLAIN]).await.unwrap(), [unchanged()]);
    let expected = table_definitions(&[&order]).unwrap();
    assert_eq!(definition(&db).await, expected[0]);
}

#[tokio::test]
async fn stream_with_another_view_is_rejected() {
    let db = Db::memory().unwrap();
    let table = TableDef::builder("Order", "_id", KeyKind::S).stream(StreamView::KeysOnly);
    create(&db, table.build().unwrap()).await;
    assert_error(
        db.ensure_tables(&[&STREAMED]).await,
        ErrorKind::Table,
        "the table differs from its models: table=Order \
         stream expected=(NEW_AND_OLD_IMAGES) actual=(KEYS_ONLY)",
    );
}

#[tokio::test]
async fn removed_indexes_and_expiry_are_kept() {
    let db = Db::memory().unwrap();
    db.ensure_tables(&[&FULL]).await.unwrap();
    assert_eq!(db.ensure_tables(&[&PLAIN]).await.unwrap(), [unchanged()]);
    assert_eq!(
        definition(&db).await,
        table_definitions(&[&FULL]).unwrap()[0]
    );
}

#[tokio::test]
async fn different_key_is_rejected_and_no_table_is_changed() {
    let db = Db::memory().unwrap();
    let table = TableDef::builder("Order", "id", KeyKind::N).sort_key("_sk", KeyKind::S);
    create(&db, table.build().unwrap()).await;
    let other = Schema {
        table: "Customer",
        ..model("Customer", &[ID])
    };
    assert_error(
        db.ensure_tables(&[&FULL, &other]).await,
        ErrorKind::Table,
        "the table differs from its models: table=Order key expected=(_id:S) actual=(id:N, _sk:S)",
    );
    let missing = db.engine().describe_table("Customer".to_owned()).await;
    assert!(matches!(missing, Err(StoreError::ResourceNotFound(_))));
}

#[tokio::test]
async fn no_table_is_changed_before_all_are_described() {
    let (db, engine, _timer) = slow_db(SlowEngine::new(0));
    create(
        &db,
        TableDef::builder("Order", "_id", KeyKind::N)
            .build()
            .unwrap(),
    )
    .await;
    let other = Schema {
        table: "Customer",
        ..model("Customer", &[ID])
    };
    // Tables are described in the order of their names: the missing one first.
    engine.fail_describes([None, Some(StoreError::Throttling("too fast".to_owned()))]);
    assert_error(
        db.ensure_tables(&[&PLAIN, &other]).await,
        ErrorKind::Table,
        "the table differs from its models: table=Order key expected=(_id:S) actual=(_id:N)",
    );
    let missing = db.engine().describe_table("Customer".to_owned()).await;
    assert!(matches!(missing, Err(StoreError::ResourceNotFound(_))));
}

#[tokio::test]
async fn deleting_index_is_missing_and_not_different() {
    const OTHER: IndexSchema = index("by_price", &["price"], &[], IndexProjection::All);
    let db = Db::memory().unwrap();
    let before = Schema {
        indexes: &[OTHER],
        ..PLAIN
    };
    let after = Schema {
        indexes: &[BY_PRICE],
        ..PLAIN
    };
    db.ensure_tables(&[&before]).await.unwrap();
    let expected = &table_definitions(&[&after]).unwrap()[0];
    let mut actual = db
        .engine()
        .describe_table("Order".to_owned())
        .await
        .unwrap();
    assert_eq!(differences(expected, &actual).len(), 1);
    actual.indexes[0].status = TableStatus::Deleting;
    assert_eq!(differences(expected, &actual), [""; 0]);
    assert_eq!(
        missing(expected, Some(&actual)),
        ["index by_price is DELETING"]
    );
}

#[tokio::test]
async fn all_differences_are_reported_together() {
    let db = Db::memory().unwrap();
    let table = TableDef::builder("Order", "_id", KeyKind::S)
        .global_index(
            "by_product",
            [("product", KeyKind::S)],
            [("price", KeyKind::S)],
            Projection::Include(vec!["b".into(), "a".into()]),
        )
        .ttl("expires");
    create(&db, table.build().unwrap()).await;
    assert_error(
        db.ensure_tables(&[&FULL]).await,
        ErrorKind::Table,
        "the table differs from its models: table=Order \
         index by_product expected=(key(product:S) sort(price:N) project(all)) \
         actual=(key(product:S) sort(price:S) project(include(a, b))); \
         attribute price of index by_price expected=(N) actual=(S); \
         expiry expected=(until) actual=(expires)",
    );
}

#[tokio::test]
async fn local_index_does_not_replace_a_global_index() {
    let db = Db::memory().unwrap();
    let table = TableDef::builder("Order", "_id", KeyKind::S)
        .sort_key("_sk", KeyKind::S)
        .local_index("by_price", "price", KeyKind::N, Projection::All);
    create(&db, table.build().unwrap()).await;
    let sorted = Schema {
        sort_constant: Some("order"),
        indexes: &[BY_PRICE],
        ..PLAIN
    };
    assert_error(
        db.ensure_tables(&[&sorted]).await,
        ErrorKind::Table,
        "the table differs from its models: table=Order \
         index by_price expected=(key(price:N, product:S) project(keys)) \
         actual=(local key(_id:S) sort(price:N) project(all))",
    );
}

#[tokio::test]
async fn order_of_projected_attributes_is_ignored() {
    let db = Db::memory().unwrap();
    let copied = Projection::Include(vec!["until".into(), "price".into()]);
    let by_product = TableDef::builder("Order", "_id", KeyKind::S).global_index(
        "by_product",
        [("product", KeyKind::S)],
        [("", KeyKind::S); 0],
        copied,
    );
    create(&db, by_product.build().unwrap()).await;
    const INDEX: IndexSchema = index(
        "by_product",
        &["product"],
        &[],
        IndexProjection::Include(&["price", "until"]),
    );
    let order = Schema {
        indexes: &[INDEX],
        ..PLAIN
    };
    assert_eq!(db.ensure_tables(&[&order]).await.unwrap(), [unchanged()]);
}

#[tokio::test]
async fn index_gets_the_provisioned_throughput_of_its_table() {
    let db = Db::memory().unwrap();
    let throughput = Throughput { read: 3, write: 2 };
    let table = TableDef::builder("Order", "_id", KeyKind::S);
    create(
        &db,
        table
            .billing(Billing::Provisioned(throughput))
            .build()
            .unwrap(),
    )
    .await;
    let order = Schema {
        indexes: &[BY_PRICE],
        ..PLAIN
    };
    assert_eq!(
        db.ensure_tables(&[&order]).await.unwrap(),
        [index_added("by_price")]
    );
    assert_eq!(
        definition(&db).await.indexes[0].throughput,
        Some(throughput)
    );
    assert_eq!(db.ensure_tables(&[&order]).await.unwrap(), [unchanged()]);
}

#[tokio::test]
async fn slow_change_is_requested_once_and_awaited() {
    let (db, engine, timer) = slow_db(SlowEngine::new(4));
    assert_eq!(db.ensure_tables(&[&PLAIN]).await.unwrap(), [created()]);
    assert_eq!(engine.changes(), 1);
    let pauses: Vec<_> = timer.pauses().iter().map(Duration::as_millis).collect();
    assert_eq!(pauses, [20, 40, 80, 160, 320]);
    db.ensure_tables(&[&FULL]).await.unwrap();
    assert_eq!(engine.changes(), 4);
    assert_eq!(definition(&db).await.indexes.len(), 2);
}

#[tokio::test]
async fn deadline_error_lists_missing_parts() {
    let (db, _engine, timer) = slow_db(SlowEngine::new(u32::MAX));
    let deadline = Duration::from_secs(30);
    assert_error(
        db.ensure_tables_within(&[&PLAIN], deadline).await,
        ErrorKind::Deadline,
        "the tables were not ready before the deadline: deadline_ms=30000 Order=(the table is UPDATING)",
    );
    assert!(timer.pauses().iter().sum::<Duration>() <= deadline);
    assert_error(
        db.ensure_tables_within(&[&FULL], deadline).await,
        ErrorKind::Deadline,
        "the tables were not ready before the deadline: deadline_ms=30000 \
         Order=(the table is UPDATING, index by_product, index by_price, expiry)",
    );
    assert_error(
        db.ensure_tables_within(&[&STREAMED], deadline).await,
        ErrorKind::Deadline,
        "the tables were not ready before the deadline: deadline_ms=30000 Order=(the table is UPDATING, stream)",
    );
}

#[tokio::test]
async fn deadline_error_contains_the_store_error() {
    let (db, engine, _timer) = slow_db(SlowEngine::new(0));
    engine.fail_describes(std::iter::repeat_n(
        Some(StoreError::Throttling("too fast".to_owned())),
        1000,
    ));
    let result = db
        .ensure_tables_within(&[&PLAIN], Duration::from_secs(1))
        .await;
    assert!(result.as_ref().unwrap_err().store_error().is_some());
    assert_error(
        result,
        ErrorKind::Deadline,
        "the tables were not ready before the deadline: deadline_ms=1000 Order=(the table) store_error=(too fast)",
    );
    assert_eq!(
        engine.changes(),
        0,
        "nothing is changed before the table was described"
    );
}

#[tokio::test]
async fn lost_responses_and_busy_tables_are_resolved_by_describing_again() {
    let (db, engine, _timer) = slow_db(SlowEngine::new(0));
    let lost = || StoreError::OutcomeUnknown("lost".to_owned());
    engine.fail_describes([Some(StoreError::Internal("once".to_owned()))]);
    engine.fates([
        Fate::Refused(lost()),
        Fate::Lost(lost()),
        Fate::Refused(StoreError::LimitExceeded("one index at a time".to_owned())),
    ]);
    let changes = db.ensure_tables(&[&PLAIN]).await.unwrap();
    assert_eq!(
        changes,
        [unchanged()],
        "the second request created it, but its response was lost"
    );
    let order = Schema {
        indexes: &[BY_PRICE],
        ..PLAIN
    };
    assert_eq!(
        db.ensure_tables(&[&order]).await.unwrap(),
        [index_added("by_price")]
    );
    assert_eq!(engine.changes(), 4);
}

#[tokio::test]
async fn index_added_by_another_process_is_not_an_error() {
    let (db, engine, _timer) = slow_db(SlowEngine::new(0));
    db.ensure_tables(&[&PLAIN]).await.unwrap();
    let exists = "Attempting to create an index which already exists".to_owned();
    engine.fates([Fate::Lost(StoreError::Validation(exists))]);
    let order = Schema {
        indexes: &[BY_PRICE],
        ..PLAIN
    };
    assert_eq!(db.ensure_tables(&[&order]).await.unwrap(), [unchanged()]);
}

#[tokio::test]
async fn error_of_the_store_is_returned() {
    let (db, engine, _timer) = slow_db(SlowEngine::new(0));
    engine.fates([Fate::Refused(StoreError::Validation("never".to_owned()))]);
    assert_error(
        db.ensure_tables(&[&PLAIN]).await,
        ErrorKind::Table,
        "never: table=Order missing=(the table)",
    );
    engine.fates([Fate::Refused(StoreError::Storage("disk".to_owned()))]);
    assert_error(db.ensure_tables(&[&PLAIN]).await, ErrorKind::Store, "disk");
    engine.fail_describes([Some(StoreError::Storage("disk".to_owned()))]);
    assert_error(db.ensure_tables(&[&PLAIN]).await, ErrorKind::Store, "disk");
}

#[tokio::test]
async fn deleting_index_is_created_again() {
    let db = Db::memory().unwrap();
    let order = Schema {
        indexes: &[BY_PRICE],
        ..PLAIN
    };
    db.ensure_tables(&[&order]).await.unwrap();
    let remove = UpdateTable {
        indexes: vec![IndexUpdate::Delete("by_price".to_owned())],
        ..UpdateTable::new("Order")
    };
    db.engine().update_table(remove).await.unwrap();
    assert_eq!(
        db.ensure_tables(&[&order]).await.unwrap(),
        [index_added("by_price")]
    );
}

#[tokio::test]
async fn unsupported_features_are_rejected_before_any_change() {
    let engine = SlowEngine::new(0).with_capabilities(|capabilities| capabilities.expiry = false);
    let (db, engine, _timer) = slow_db(engine);
    assert_error(
        db.ensure_tables(&[&FULL]).await,
        ErrorKind::Unsupported,
        "the engine cannot expire items: table=Order attribute=until",
    );
    assert_eq!(engine.changes(), 0);
    let engine = SlowEngine::new(0).with_capabilities(|c| c.multi_attribute_keys = false);
    let (db, _engine, _timer) = slow_db(engine);
    assert_error(
        db.ensure_tables(&[&FULL]).await,
        ErrorKind::Unsupported,
        "the engine cannot index by several attributes: table=Order index=by_price",
    );
    let engine = SlowEngine::new(0).with_capabilities(|c| c.streams = false);
    let (db, _engine, _timer) = slow_db(engine);
    assert_error(
        db.ensure_tables(&[&STREAMED]).await,
        ErrorKind::Unsupported,
        "the engine cannot keep a change stream: table=Order",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_calls_create_everything_once() {
    for busy_describes in [0, 3] {
        let (db, _engine, _timer) = slow_db(SlowEngine::new(busy_describes));
        let mut changes = Vec::new();
        for schema in [&PLAIN, &FULL] {
            let tasks: Vec<_> = (0..8)
                .map(|_| {
                    let db = db.clone();
                    tokio::spawn(async move { db.ensure_tables(&[schema]).await })
                })
                .collect();
            for task in tasks {
                changes.extend(task.await.unwrap().unwrap());
            }
        }
        changes.retain(|change| *change != unchanged());
        let wanted = [
            created(),
            index_added("by_product"),
            index_added("by_price"),
            expiry_enabled(),
        ];
        assert_eq!(changes.len(), wanted.len(), "{changes:?}");
        assert!(
            wanted.iter().all(|change| changes.contains(change)),
            "{changes:?}"
        );
        assert_eq!(
            definition(&db).await,
            table_definitions(&[&FULL]).unwrap()[0]
        );
    }
}

#[test]
fn changes_are_displayed_as_lines() {
    let lines = [
        created(),
        index_added("by_price"),
        expiry_enabled(),
        stream_enabled(),
        unchanged(),
    ];
    assert_eq!(
        lines.map(|change| change.to_string()),
        [
            "created: table=Order",
            "index added: table=Order index=by_price",
            "expiry enabled: table=Order attribute=until",
            "stream enabled: table=Order",
            "unchanged: table=Order",
        ]
    );
}
