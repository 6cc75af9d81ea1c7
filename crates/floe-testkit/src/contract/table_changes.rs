//! Changes of tables: indexes added and removed, settings, tags.

use floe_store::Error;
use floe_store::expr::KeyCondition;
use floe_store::op::{IndexUpdate, Query, Scan, UpdateTable, UpdateTags};
use floe_store::table::{Billing, KeyKind, Projection, TableClass, Throughput};

use super::fixture::*;

/// Adds the global index `by_g`, and lets it be filled.
async fn add_by_g(t: &Fixture, table: &str, kind: KeyKind) {
    let mut add = UpdateTable::new(table);
    add.attribute_definitions = vec![("g".into(), kind)];
    add.indexes = vec![IndexUpdate::Create(global_index("by_g", "g"))];
    t.update_table(add).await.unwrap();
    t.sweep().await;
}

pub(super) async fn an_index_added_later_is_filled(t: &mut Fixture) {
    t.create(plain()).await;
    t.fill(
        "Plain",
        (0..30).map(|n| {
            let item = item(&format!("k{n}")).with("n", n);
            match n % 3 {
                0 => item.with("g", "x"),
                1 => item.with("g", n),
                _ => item,
            }
        }),
    )
    .await;
    add_by_g(t, "Plain", KeyKind::S).await;
    let described = t.describe("Plain").await;
    assert_eq!(described.definition.indexes.len(), 1);
    let query = Query::new("Plain", KeyCondition::partition("g", "x")).index("by_g");
    assert_eq!(
        t.query_all(query.clone()).await.len(),
        10,
        "items of another type are left out"
    );
    assert_eq!(t.describe("Plain").await.indexes[0].item_count, 10);

    t.put("Plain", item("new").with("g", "x")).await.unwrap();
    assert_eq!(t.query_all(query.clone()).await.len(), 11);
    t.reopen().await;
    assert_eq!(t.query_all(query).await.len(), 11);
}

pub(super) async fn an_index_may_be_filled_with_many_items(t: &mut Fixture) {
    t.create(sorted()).await;
    for start in (0..300).step_by(25) {
        let batch = (start..start + 25).fold(floe_store::op::BatchWriteItem::new(), |batch, n| {
            batch.put("Sorted", row(&format!("p{}", n % 10), n).with("g", n % 7))
        });
        t.batch_write_item(batch).await.unwrap();
    }
    add_by_g(t, "Sorted", KeyKind::N).await;
    let query = Query::new("Sorted", KeyCondition::partition("g", 3)).index("by_g");
    let mut found = t.query_sks(query).await;
    found.sort_unstable();
    assert_eq!(found, (0..300).filter(|n| n % 7 == 3).collect::<Vec<i64>>());
}

pub(super) async fn an_index_can_be_removed_and_added_again(t: &mut Fixture) {
    t.create(indexed(Projection::All)).await;
    t.fill("Plain", [item("a").with("g", "x")]).await;
    let mut remove = UpdateTable::new("Plain");
    remove.indexes = vec![IndexUpdate::Delete("by_g".to_owned())];
    t.update_table(remove).await.unwrap();
    t.sweep().await;
    refused(
        t.scan(Scan::new("Plain").index("by_g")).await,
        "The table does not have the specified index: by_g",
    );
    // Without the index its key is an attribute like any other.
    t.put("Plain", item("b").with("g", 5)).await.unwrap();
    t.put("Plain", item("c").with("g", "x")).await.unwrap();
    add_by_g(t, "Plain", KeyKind::S).await;
    let index = t.scan_all(Scan::new("Plain").index("by_g")).await;
    assert_eq!(texts(&index, "pk"), ["a", "c"]);
}

pub(super) async fn index_changes_must_make_sense(t: &mut Fixture) {
    t.create(indexed(Projection::All)).await;
    let change = |definitions: Vec<(&str, KeyKind)>, indexes: Vec<IndexUpdate>| {
        let mut update = UpdateTable::new("Plain");
        update.attribute_definitions = definitions
            .into_iter()
            .map(|(name, kind)| (name.into(), kind))
            .collect();
        update.indexes = indexes;
        update
    };
    let again = change(
        vec![("g", KeyKind::S)],
        vec![IndexUpdate::Create(global_index("by_g", "g"))],
    );
    refused(
        t.update_table(again).await,
        "Attempting to create an index which already exists",
    );
    let undefined = change(vec![], vec![IndexUpdate::Create(global_index("by_x", "x"))]);
    invalid(t.update_table(undefined).await);
    let unknown = change(vec![], vec![IndexUpdate::Delete("nothing".to_owned())]);
    no_table(t.update_table(unknown).await);
    let two = change(
        vec![("x", KeyKind::S), ("y", KeyKind::S)],
        vec![
            IndexUpdate::Create(global_index("by_x", "x")),
            IndexUpdate::Create(global_index("by_y", "y")),
        ],
    );
    assert!(matches!(
        t.update_table(two).await,
        Err(Error::LimitExceeded(_))
    ));
    assert!(matches!(
        t.update_table(UpdateTable::new("Plain")).await,
        Err(Error::Validation(message)) if message.starts_with("At least one of ")
    ));
    not_found(
        t.update_table({
            let mut update = UpdateTable::new("Nowhere");
            update.deletion_protection = Some(true);
            update
        })
        .await,
        "Requested resource not found: Table: Nowhere not found",
    );
}

pub(super) async fn settings_change(t: &mut Fixture) {
    t.create(plain()).await;
    let mut billing = UpdateTable::new("Plain");
    billing.billing = Some(Billing::Provisioned(Throughput { read: 5, write: 7 }));
    t.update_table(billing).await.unwrap();
    let mut class = UpdateTable::new("Plain");
    class.class = Some(TableClass::StandardInfrequentAccess);
    t.update_table(class).await.unwrap();
    t.reopen().await;
    let definition = t.describe("Plain").await.definition;
    assert_eq!(
        definition.billing,
        Billing::Provisioned(Throughput { read: 5, write: 7 })
    );
    assert_eq!(definition.class, Some(TableClass::StandardInfrequentAccess));
}

pub(super) async fn tags_come_and_go(t: &mut Fixture) {
    t.create(plain().tag("team", "ice").tag("env", "test"))
        .await;
    let change = UpdateTags {
        table_name: "Plain".to_owned(),
        add: [
            ("env".to_owned(), "prod".to_owned()),
            ("new".to_owned(), String::new()),
        ]
        .into(),
        remove: vec!["team".to_owned(), "never-there".to_owned()],
    };
    t.update_tags(change).await.unwrap();
    t.reopen().await;
    let tags = t.describe("Plain").await.definition.tags;
    let expected = [
        ("env".to_owned(), "prod".to_owned()),
        ("new".to_owned(), String::new()),
    ];
    assert_eq!(tags, expected.into());
    let elsewhere = UpdateTags {
        table_name: "Nowhere".to_owned(),
        ..UpdateTags::default()
    };
    assert!(matches!(
        t.update_tags(elsewhere).await,
        Err(Error::ResourceNotFound(_) | Error::Validation(_))
    ));
}
