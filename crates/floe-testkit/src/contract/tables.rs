//! Tables: made, described, listed and removed.

use floe_store::op::{CreateIndex, CreateTable, KeyRole, ListTables, Scan, UpdateTable};
use floe_store::size::item_size;
use floe_store::table::{IndexKind, KeyKind, Projection, StreamView, TableStatus};
use floe_store::{Error, Item, TableDef};

use super::fixture::*;

fn named(name: &str) -> CreateTable {
    TableDef::builder(name, "pk", KeyKind::S)
        .build()
        .expect("a good table")
        .into()
}

pub(super) async fn a_new_table_is_described(t: &mut Fixture) {
    let table = ranged(sorted(), KeyKind::N, Projection::KeysOnly)
        .local_index(
            "by_v",
            "v",
            KeyKind::B,
            Projection::Include(vec!["w".into()]),
        )
        .stream(StreamView::NewImage)
        .tag("team", "ice");
    let definition = table.clone().build().unwrap();
    let created = t.create(table).await;
    let described = t.describe("Sorted").await;
    assert_eq!(created.definition, definition);
    assert_eq!(described.definition, definition);
    assert_eq!(described.status, TableStatus::Active);
    assert_eq!((described.item_count, described.size_bytes), (0, 0));
    assert_eq!(described.created, created.created);
    assert_eq!(described.id, created.id);
    assert!(described.arn.ends_with("table/Sorted"), "{}", described.arn);
    let indexes: Vec<_> = described
        .indexes
        .iter()
        .map(|index| index.name.as_str())
        .collect();
    assert_eq!(
        indexes,
        definition
            .indexes
            .iter()
            .map(|i| i.name.as_str())
            .collect::<Vec<_>>()
    );
    for index in &described.indexes {
        assert_eq!(index.status, TableStatus::Active);
        assert!(!index.backfilling);
        assert!(
            index
                .arn
                .ends_with(&format!("table/Sorted/index/{}", index.name)),
            "{}",
            index.arn
        );
    }
    let stream = described.latest_stream.expect("the stream is on");
    assert!(
        stream.arn.contains("table/Sorted/stream/"),
        "{}",
        stream.arn
    );
    assert!(stream.arn.ends_with(&stream.label), "{}", stream.arn);
}

pub(super) async fn descriptions_count_items_and_bytes(t: &mut Fixture) {
    t.create(indexed(Projection::KeysOnly)).await;
    let items = [
        item("a").with("g", "x").with("v", "some text"),
        item("b").with("v", number("12.5")),
        item("c").with("g", "y").with("l", list([1, 2])),
    ];
    t.fill("Plain", items.clone()).await;
    let described = t.describe("Plain").await;
    assert_eq!(described.item_count, 3);
    assert_eq!(
        described.size_bytes,
        items.iter().map(item_size).sum::<usize>() as u64
    );
    assert_eq!(described.indexes[0].item_count, 2);
    assert_eq!(described.indexes[0].size_bytes, 2 * (2 + 1 + 1 + 1));

    t.put("Plain", item("a").with("v", 1)).await.unwrap();
    t.delete("Plain", item("b")).await;
    t.reopen().await;
    let described = t.describe("Plain").await;
    assert_eq!(described.item_count, 2);
    let left = item_size(&item("a").with("v", 1)) + item_size(&items[2]);
    assert_eq!(described.size_bytes, left as u64);
    assert_eq!(described.indexes[0].item_count, 1);
}

pub(super) async fn a_name_is_taken_once(t: &mut Fixture) {
    let first = t.create(plain()).await;
    assert_eq!(
        t.create_table(named("Plain")).await,
        Err(Error::ResourceInUse(
            "Table already exists: Plain".to_owned()
        ))
    );
    t.delete_table("Plain").await.unwrap();
    let second = t.create(plain()).await;
    assert_ne!(first.id, second.id, "a table made anew is another table");
}

pub(super) async fn a_deleted_table_is_gone_with_its_items(t: &mut Fixture) {
    let table = || indexed(Projection::All);
    t.create(table()).await;
    t.fill(
        "Plain",
        (0..20).map(|n| item(&format!("k{n}")).with("g", "x")),
    )
    .await;
    let deleted = t.delete_table("Plain").await.unwrap();
    assert_eq!(deleted.definition.name, "Plain");
    no_table(t.put("Plain", item("a")).await);
    not_found(
        t.describe_table("Plain".to_owned()).await,
        "Requested resource not found: Table: Plain not found",
    );
    not_found(
        t.delete_table("Plain").await,
        "Requested resource not found: Table: Plain not found",
    );
    t.create(table()).await;
    assert_eq!(t.scan_all(Scan::new("Plain")).await, Vec::<Item>::new());
    assert_eq!(
        t.scan_all(Scan::new("Plain").index("by_g")).await,
        Vec::<Item>::new()
    );
    assert_eq!(t.describe("Plain").await.item_count, 0);
}

pub(super) async fn protected_tables_are_not_deleted(t: &mut Fixture) {
    let mut table = named("Plain");
    table.deletion_protection = true;
    t.create_table(table).await.unwrap();
    refused(
        t.delete_table("Plain").await,
        "Resource cannot be deleted as it is currently protected against deletion. \
         Disable deletion protection first.",
    );
    let mut lift = UpdateTable::new("Plain");
    lift.deletion_protection = Some(false);
    t.update_table(lift).await.unwrap();
    t.delete_table("Plain").await.unwrap();
}

pub(super) async fn tables_are_listed_in_order_by_pages(t: &mut Fixture) {
    for name in ["zebra", "apple", "Mango", "mango", "app-le"] {
        t.create_table(named(name)).await.unwrap();
    }
    let t = &*t;
    let list = |start: Option<&str>, limit| {
        let input = ListTables {
            start_after: start.map(str::to_owned),
            limit,
        };
        async move { t.list_tables(input).await.unwrap() }
    };
    let all = list(None, None).await;
    assert_eq!(
        all.table_names,
        ["Mango", "app-le", "apple", "mango", "zebra"]
    );
    assert_eq!(all.last_name, None);
    let page = list(None, Some(2)).await;
    assert_eq!(page.table_names, ["Mango", "app-le"]);
    assert_eq!(page.last_name.as_deref(), Some("app-le"));
    let page = list(Some("app-le"), Some(3)).await;
    assert_eq!(page.table_names, ["apple", "mango", "zebra"]);
    assert_eq!(page.last_name, None, "nothing is left");
    let page = list(Some("lemon"), None).await;
    assert_eq!(
        page.table_names,
        ["mango", "zebra"],
        "the name need not exist"
    );
}

pub(super) async fn listings_have_1_to_100_names(t: &mut Fixture) {
    let list = |limit| ListTables {
        start_after: None,
        limit: Some(limit),
    };
    refused(t.list_tables(list(0)).await, "greater than or equal to 1");
    refused(t.list_tables(list(101)).await, "less than or equal to 100");
    assert!(t.list_tables(list(100)).await.is_ok());
}

pub(super) async fn tables_survive_reopening(t: &mut Fixture) {
    let created = t.create(sorted().stream(StreamView::KeysOnly)).await;
    t.fill("Sorted", rows("a", 1..=3)).await;
    t.reopen().await;
    let described = t.describe("Sorted").await;
    assert_eq!(described.definition, created.definition);
    assert_eq!(described.id, created.id);
    assert_eq!(described.created, created.created);
    assert_eq!(described.latest_stream, created.latest_stream);
    assert_eq!(described.item_count, 3);
    assert_eq!(t.scan_all(Scan::new("Sorted")).await.len(), 3);
}

pub(super) async fn names_have_3_to_255_characters(t: &mut Fixture) {
    for good in ["abc", "a.b-c_D9", &"x".repeat(255)] {
        assert!(
            t.create_table(named_unchecked(good)).await.is_ok(),
            "{good}"
        );
    }
    for bad in [
        "",
        "ab",
        &"x".repeat(256),
        "with space",
        "slash/ed",
        "ümlaut",
    ] {
        let answer = t.create_table(named_unchecked(bad)).await;
        assert!(
            matches!(answer, Err(Error::Validation(_))),
            "{bad}: {answer:?}"
        );
    }
}

/// A request for a table with one partition key, whatever the name.
fn named_unchecked(name: &str) -> CreateTable {
    CreateTable {
        table_name: name.to_owned(),
        ..named("Plain")
    }
}

pub(super) async fn keys_must_be_well_formed(t: &mut Fixture) {
    use KeyRole::{Hash, Range};
    let with = |definitions: &[&str], key: &[(&str, KeyRole)]| CreateTable {
        attribute_definitions: definitions
            .iter()
            .map(|name| ((*name).into(), KeyKind::S))
            .collect(),
        key_schema: elements(key),
        ..named("Plain")
    };
    let cases = [
        (
            with(&["a"], &[("a", Range)]),
            "The first KeySchemaElement is not a HASH key type",
        ),
        (
            with(&["a", "b"], &[("a", Hash), ("b", Hash)]),
            "The second KeySchemaElement is not a RANGE key type",
        ),
        (
            with(&["a", "b"], &[("a", Hash), ("a", Range)]),
            "Both the Hash Key and the Range Key element in the KeySchema have the same name",
        ),
        (
            with(&["a", "b"], &[("a", Hash), ("c", Range)]),
            "Some index key attribute",
        ),
        (
            with(&["a", "b"], &[("a", Hash)]),
            "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions",
        ),
        (with(&["a"], &[]), "keySchema"),
    ];
    for (request, detail) in cases {
        refused(t.create_table(request).await, detail);
    }
}

pub(super) async fn indexes_must_be_well_formed(t: &mut Fixture) {
    use KeyRole::{Hash, Range};
    let base = named("Plain");
    let with = |definitions: &[&str], sort: bool, indexes: Vec<CreateIndex>| {
        let mut table = base.clone();
        table
            .attribute_definitions
            .extend(definitions.iter().map(|name| ((*name).into(), KeyKind::S)));
        if sort {
            table.key_schema.extend(elements(&[("sk", Range)]));
        }
        table.indexes = indexes;
        table
    };
    let local = |key: &[(&str, KeyRole)]| vec![index("by_v", IndexKind::Local, key)];
    let cases = [
        (
            with(&["v"], false, local(&[("pk", Hash), ("v", Range)])),
            "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
        ),
        (
            with(&["sk"], true, local(&[("pk", Hash)])),
            "Index KeySchema does not have a range key for index: by_v",
        ),
        (
            with(&["sk", "v"], true, local(&[("v", Hash), ("sk", Range)])),
            "Index KeySchema does not have the same leading hash key as table KeySchema for index: by_v. \
             index hash key: v, table hash key: pk",
        ),
        (
            with(
                &["g"],
                false,
                vec![global_index("by_g", "g"), global_index("by_g", "g")],
            ),
            "Duplicate index name: by_g",
        ),
        (
            with(&[], false, vec![global_index("by_g", "g")]),
            "Some index key attributes are not defined in AttributeDefinitions",
        ),
        (
            with(&["unused", "g"], false, vec![global_index("by_g", "g")]),
            "Some AttributeDefinitions are not used",
        ),
    ];
    for (request, detail) in cases {
        refused(t.create_table(request).await, detail);
    }
    assert!(
        t.list_tables(ListTables::default())
            .await
            .unwrap()
            .table_names
            .is_empty()
    );
}

pub(super) async fn a_table_has_at_most_so_many_indexes(t: &mut Fixture) {
    let request = |globals: usize, locals: usize| {
        let mut table: CreateTable = sorted().build().unwrap().into();
        for n in 0..globals {
            table
                .attribute_definitions
                .push((format!("g{n}").into(), KeyKind::S));
            table
                .indexes
                .push(global_index(&format!("global{n}"), &format!("g{n}")));
        }
        for n in 0..locals {
            table
                .attribute_definitions
                .push((format!("l{n}").into(), KeyKind::S));
            let attribute = format!("l{n}");
            let key = [("pk", KeyRole::Hash), (&*attribute, KeyRole::Range)];
            table
                .indexes
                .push(index(&format!("local{n}"), IndexKind::Local, &key));
        }
        table
    };
    refused(
        t.create_table(request(21, 0)).await,
        "GlobalSecondaryIndex count exceeds the per-table limit of 20",
    );
    refused(
        t.create_table(request(0, 6)).await,
        "Number of LocalSecondaryIndexes exceeds per-table limit of 5",
    );
    t.create_table(request(20, 5)).await.unwrap();
    let wide = (0..20).fold(row("a", 1), |item, n| item.with(format!("g{n}"), "x"));
    let wide = (0..5).fold(wide, |item, n| item.with(format!("l{n}"), "x"));
    t.put("Sorted", wide.clone()).await.unwrap();
    for index in ["global0", "global19", "local4"] {
        assert_eq!(
            t.scan_all(Scan::new("Sorted").index(index)).await.len(),
            1,
            "{index}"
        );
    }
}

pub(super) async fn missing_tables_are_named(t: &mut Fixture) {
    let detail = "Requested resource not found: Table: Nowhere not found";
    not_found(t.describe_table("Nowhere".to_owned()).await, detail);
    not_found(t.delete_table("Nowhere").await, detail);
}
