//! Tables: made, described, changed, listed and removed.

use floe_store::op::{
    CreateIndex, CreateTable, IndexUpdate, KeyRole, KeySchemaElement, ListTables, Query, Scan,
    UpdateTable, UpdateTags,
};
use floe_store::expr::KeyCondition;
use floe_store::size::item_size;
use floe_store::table::{
    Billing, IndexKind, KeyKind, Projection, StreamView, TableClass, TableStatus, Throughput,
};
use floe_store::{Error, Item, TableDef, Value};

use super::fixture::*;

fn named(name: &str) -> CreateTable {
    TableDef::builder(name, "pk", KeyKind::S).build().expect("a good table").into()
}

fn element(name: &str, role: KeyRole) -> KeySchemaElement {
    KeySchemaElement { name: name.into(), role }
}

fn global(name: &str, attribute: &str) -> CreateIndex {
    CreateIndex {
        name: name.to_owned(),
        kind: IndexKind::Global,
        key_schema: vec![element(attribute, KeyRole::Hash)],
        projection: Projection::All,
        throughput: None,
    }
}

pub(super) async fn a_new_table_is_described(t: &mut Fixture) {
    let table = sorted()
        .global_index("by_g", [("g", KeyKind::S)], [("h", KeyKind::N)], Projection::KeysOnly)
        .local_index("by_v", "v", KeyKind::B, Projection::Include(vec!["w".into()]))
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
    let indexes: Vec<_> = described.indexes.iter().map(|index| index.name.as_str()).collect();
    assert_eq!(indexes, definition.indexes.iter().map(|i| i.name.as_str()).collect::<Vec<_>>());
    for index in &described.indexes {
        assert_eq!(index.status, TableStatus::Active);
        assert!(!index.backfilling);
        assert!(index.arn.ends_with(&format!("table/Sorted/index/{}", index.name)), "{}", index.arn);
    }
    let stream = described.latest_stream.expect("the stream is on");
    assert!(stream.arn.contains("table/Sorted/stream/"), "{}", stream.arn);
    assert!(stream.arn.ends_with(&stream.label), "{}", stream.arn);
}

pub(super) async fn descriptions_count_items_and_bytes(t: &mut Fixture) {
    let none: [(&str, KeyKind); 0] = [];
    t.create(plain().global_index("by_g", [("g", KeyKind::S)], none, Projection::KeysOnly)).await;
    let items = [
        item("a").with("g", "x").with("v", "some text"),
        item("b").with("v", number("12.5")),
        item("c").with("g", "y").with("l", list([1, 2])),
    ];
    t.fill("Plain", items.clone()).await;
    let described = t.describe("Plain").await;
    assert_eq!(described.item_count, 3);
    assert_eq!(described.size_bytes, items.iter().map(item_size).sum::<usize>() as u64);
    assert_eq!(described.indexes[0].item_count, 2);
    assert_eq!(described.indexes[0].size_bytes, 2 * (2 + 1 + 1 + 1));

    t.put("Plain", item("a").with("v", 1)).await.unwrap();
    t.write(floe_store::op::DeleteItem::new("Plain", item("b"))).await.unwrap();
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
        t.engine().create_table(named("Plain")).await,
        Err(Error::ResourceInUse("Table already exists: Plain".to_owned()))
    );
    t.engine().delete_table("Plain".to_owned()).await.unwrap();
    let second = t.create(plain()).await;
    assert_ne!(first.id, second.id, "a table made anew is another table");
}

pub(super) async fn a_deleted_table_is_gone_with_its_items(t: &mut Fixture) {
    let none: [(&str, KeyKind); 0] = [];
    let table = || plain().global_index("by_g", [("g", KeyKind::S)], none, Projection::All);
    t.create(table()).await;
    t.fill("Plain", (0..20).map(|n| item(&format!("k{n}")).with("g", "x"))).await;
    let deleted = t.engine().delete_table("Plain".to_owned()).await.unwrap();
    assert_eq!(deleted.definition.name, "Plain");
    not_found(t.put("Plain", item("a")).await, "Requested resource not found");
    not_found(
        t.engine().describe_table("Plain".to_owned()).await,
        "Requested resource not found: Table: Plain not found",
    );
    not_found(
        t.engine().delete_table("Plain".to_owned()).await,
        "Requested resource not found: Table: Plain not found",
    );
    t.create(table()).await;
    assert_eq!(t.scan_all(Scan::new("Plain")).await, Vec::<Item>::new());
    assert_eq!(t.scan_all(Scan::new("Plain").index("by_g")).await, Vec::<Item>::new());
    assert_eq!(t.describe("Plain").await.item_count, 0);
}

pub(super) async fn protected_tables_are_not_deleted(t: &mut Fixture) {
    let mut table = named("Plain");
    table.deletion_protection = true;
    t.engine().create_table(table).await.unwrap();
    refused(
        t.engine().delete_table("Plain".to_owned()).await,
        "Resource cannot be deleted as it is currently protected against deletion. \
         Disable deletion protection first.",
    );
    let mut lift = UpdateTable::new("Plain");
    lift.deletion_protection = Some(false);
    t.engine().update_table(lift).await.unwrap();
    t.engine().delete_table("Plain".to_owned()).await.unwrap();
}

pub(super) async fn tables_are_listed_in_order_by_pages(t: &mut Fixture) {
    for name in ["zebra", "apple", "Mango", "mango", "app-le"] {
        t.engine().create_table(named(name)).await.unwrap();
    }
    let list = |start: Option<&str>, limit| {
        let input = ListTables { start_after: start.map(str::to_owned), limit };
        let engine = t.engine();
        async move { engine.list_tables(input).await.unwrap() }
    };
    let all = list(None, None).await;
    assert_eq!(all.table_names, ["Mango", "app-le", "apple", "mango", "zebra"]);
    assert_eq!(all.last_name, None);
    let page = list(None, Some(2)).await;
    assert_eq!(page.table_names, ["Mango", "app-le"]);
    assert_eq!(page.last_name.as_deref(), Some("app-le"));
    let page = list(Some("app-le"), Some(3)).await;
    assert_eq!(page.table_names, ["apple", "mango", "zebra"]);
    assert_eq!(page.last_name, None, "nothing is left");
    let page = list(Some("lemon"), None).await;
    assert_eq!(page.table_names, ["mango", "zebra"], "the name need not exist");
}

pub(super) async fn listings_have_1_to_100_names(t: &mut Fixture) {
    let list = |limit| ListTables { start_after: None, limit: Some(limit) };
    refused(t.engine().list_tables(list(0)).await, "greater than or equal to 1");
    refused(t.engine().list_tables(list(101)).await, "less than or equal to 100");
    assert!(t.engine().list_tables(list(100)).await.is_ok());
}

pub(super) async fn an_index_added_later_is_filled(t: &mut Fixture) {
    t.create(plain()).await;
    t.fill("Plain", (0..30).map(|n| {
        let item = item(&format!("k{n}")).with("n", n);
        match n % 3 {
            0 => item.with("g", "x"),
            1 => item.with("g", n),
            _ => item,
        }
    })).await;
    let mut add = UpdateTable::new("Plain");
    add.attribute_definitions = vec![("g".into(), KeyKind::S)];
    add.indexes = vec![IndexUpdate::Create(global("by_g", "g"))];
    t.engine().update_table(add).await.unwrap();
    t.sweep().await;
    let described = t.describe("Plain").await;
    assert_eq!(described.definition.indexes.len(), 1);
    let query = Query::new("Plain", KeyCondition::partition("g", "x")).index("by_g");
    assert_eq!(t.query_all(query.clone()).await.len(), 10, "items of another type are left out");
    assert_eq!(t.describe("Plain").await.indexes[0].item_count, 10);

    t.put("Plain", item("new").with("g", "x")).await.unwrap();
    assert_eq!(t.query_all(query.clone()).await.len(), 11);
    t.reopen().await;
    assert_eq!(t.query_all(query).await.len(), 11);
}

pub(super) async fn an_index_can_be_removed_and_added_again(t: &mut Fixture) {
    let none: [(&str, KeyKind); 0] = [];
    t.create(plain().global_index("by_g", [("g", KeyKind::S)], none, Projection::All)).await;
    t.fill("Plain", [item("a").with("g", "x")]).await;
    let mut remove = UpdateTable::new("Plain");
    remove.indexes = vec![IndexUpdate::Delete("by_g".to_owned())];
    t.engine().update_table(remove).await.unwrap();
    t.sweep().await;
    refused(
        t.scan(Scan::new("Plain").index("by_g")).await,
        "The table does not have the specified index: by_g",
    );
    // Without the index its key is an attribute like any other.
    t.put("Plain", item("b").with("g", 5)).await.unwrap();
    t.put("Plain", item("c").with("g", "x")).await.unwrap();
    let mut add = UpdateTable::new("Plain");
    add.attribute_definitions = vec![("g".into(), KeyKind::S)];
    add.indexes = vec![IndexUpdate::Create(global("by_g", "g"))];
    t.engine().update_table(add).await.unwrap();
    t.sweep().await;
    let index = t.scan_all(Scan::new("Plain").index("by_g")).await;
    assert_eq!(texts(&index, "pk"), ["a", "c"]);
}

pub(super) async fn index_changes_must_make_sense(t: &mut Fixture) {
    let none: [(&str, KeyKind); 0] = [];
    t.create(plain().global_index("by_g", [("g", KeyKind::S)], none, Projection::All)).await;
    let change = |definitions: Vec<(&str, KeyKind)>, indexes: Vec<IndexUpdate>| {
        let mut update = UpdateTable::new("Plain");
        update.attribute_definitions =
            definitions.into_iter().map(|(name, kind)| (name.into(), kind)).collect();
        update.indexes = indexes;
        update
    };
    let again = change(vec![("g", KeyKind::S)], vec![IndexUpdate::Create(global("by_g", "g"))]);
    refused(t.engine().update_table(again).await, "Attempting to create an index which already exists");
    let undefined = change(vec![], vec![IndexUpdate::Create(global("by_x", "x"))]);
    assert!(matches!(t.engine().update_table(undefined).await, Err(Error::Validation(_))));
    let unknown = change(vec![], vec![IndexUpdate::Delete("nothing".to_owned())]);
    not_found(t.engine().update_table(unknown).await, "Requested resource not found");
    let two = change(
        vec![("x", KeyKind::S), ("y", KeyKind::S)],
        vec![
            IndexUpdate::Create(global("by_x", "x")),
            IndexUpdate::Create(global("by_y", "y")),
        ],
    );
    assert!(matches!(t.engine().update_table(two).await, Err(Error::LimitExceeded(_))));
    assert!(matches!(
        t.engine().update_table(UpdateTable::new("Plain")).await,
        Err(Error::Validation(message)) if message.starts_with("At least one of ")
    ));
    not_found(
        t.engine().update_table({
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
    t.engine().update_table(billing).await.unwrap();
    let mut class = UpdateTable::new("Plain");
    class.class = Some(TableClass::StandardInfrequentAccess);
    t.engine().update_table(class).await.unwrap();
    t.reopen().await;
    let definition = t.describe("Plain").await.definition;
    assert_eq!(definition.billing, Billing::Provisioned(Throughput { read: 5, write: 7 }));
    assert_eq!(definition.class, TableClass::StandardInfrequentAccess);
}

pub(super) async fn tags_come_and_go(t: &mut Fixture) {
    t.create(plain().tag("team", "ice").tag("env", "test")).await;
    let change = UpdateTags {
        table_name: "Plain".to_owned(),
        add: [("env".to_owned(), "prod".to_owned()), ("new".to_owned(), String::new())].into(),
        remove: vec!["team".to_owned(), "never-there".to_owned()],
    };
    t.engine().update_tags(change).await.unwrap();
    t.reopen().await;
    let tags = t.describe("Plain").await.definition.tags;
    let expected = [("env".to_owned(), "prod".to_owned()), ("new".to_owned(), String::new())];
    assert_eq!(tags, expected.into());
    let elsewhere = UpdateTags { table_name: "Nowhere".to_owned(), ..UpdateTags::default() };
    assert!(matches!(
        t.engine().update_tags(elsewhere).await,
        Err(Error::ResourceNotFound(_) | Error::Validation(_))
    ));
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
        assert!(t.engine().create_table(named_unchecked(good)).await.is_ok(), "{good}");
    }
    for bad in ["", "ab", &"x".repeat(256), "with space", "slash/ed", "ümlaut"] {
        let answer = t.engine().create_table(named_unchecked(bad)).await;
        assert!(matches!(answer, Err(Error::Validation(_))), "{bad}: {answer:?}");
    }
}

/// A request for a table with one partition key, whatever the name.
fn named_unchecked(name: &str) -> CreateTable {
    CreateTable { table_name: name.to_owned(), ..named("Plain") }
}

pub(super) async fn keys_must_be_well_formed(t: &mut Fixture) {
    use KeyRole::{Hash, Range};
    let with = |definitions: &[&str], elements: &[(&str, KeyRole)]| CreateTable {
        attribute_definitions: definitions.iter().map(|name| ((*name).into(), KeyKind::S)).collect(),
        key_schema: elements.iter().map(|(name, role)| element(name, *role)).collect(),
        ..named("Plain")
    };
    let cases = [
        (with(&["a"], &[("a", Range)]), "The first KeySchemaElement is not a HASH key type"),
        (
            with(&["a", "b"], &[("a", Hash), ("b", Hash)]),
            "The second KeySchemaElement is not a RANGE key type",
        ),
        (
            with(&["a"], &[("a", Hash), ("a", Range)]),
            "Both the Hash Key and the Range Key element in the KeySchema have the same name",
        ),
        (with(&["a", "b"], &[("a", Hash), ("c", Range)]), "Some index key attribute"),
        (
            with(&["a", "b"], &[("a", Hash)]),
            "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions",
        ),
        (with(&["a"], &[]), "keySchema"),
    ];
    for (request, detail) in cases {
        refused(t.engine().create_table(request).await, detail);
    }
}

pub(super) async fn indexes_must_be_well_formed(t: &mut Fixture) {
    use KeyRole::{Hash, Range};
    let base = named("Plain");
    let with = |definitions: &[&str], sort: bool, indexes: Vec<CreateIndex>| {
        let mut table = base.clone();
        table.attribute_definitions.extend(definitions.iter().map(|name| ((*name).into(), KeyKind::S)));
        if sort {
            table.key_schema.push(element("sk", Range));
        }
        table.indexes = indexes;
        table
    };
    let local = |name: &str, elements: &[(&str, KeyRole)]| CreateIndex {
        name: name.to_owned(),
        kind: IndexKind::Local,
        key_schema: elements.iter().map(|(name, role)| element(name, *role)).collect(),
        projection: Projection::All,
        throughput: None,
    };
    let cases = [
        (
            with(&["v"], false, vec![local("by_v", &[("pk", Hash), ("v", Range)])]),
            "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex",
        ),
        (
            with(&["sk"], true, vec![local("by_v", &[("pk", Hash)])]),
            "Index KeySchema does not have a range key for index: by_v",
        ),
        (
            with(&["sk", "v"], true, vec![local("by_v", &[("v", Hash), ("sk", Range)])]),
            "Index KeySchema does not have the same leading hash key as table KeySchema for index: by_v. \
             index hash key: v, table hash key: pk",
        ),
        (
            with(&["g"], false, vec![global("by_g", "g"), global("by_g", "g")]),
            "Duplicate index name: by_g",
        ),
        (
            with(&[], false, vec![global("by_g", "g")]),
            "Some index key attributes are not defined in AttributeDefinitions",
        ),
        (
            with(&["unused", "g"], false, vec![global("by_g", "g")]),
            "Some AttributeDefinitions are not used",
        ),
    ];
    for (request, detail) in cases {
        refused(t.engine().create_table(request).await, detail);
    }
    assert!(t.engine().list_tables(ListTables::default()).await.unwrap().table_names.is_empty());
}

pub(super) async fn a_table_has_at_most_so_many_indexes(t: &mut Fixture) {
    let request = |globals: usize, locals: usize| {
        let mut table: CreateTable = sorted().build().unwrap().into();
        for n in 0..globals {
            table.attribute_definitions.push((format!("g{n}").into(), KeyKind::S));
            table.indexes.push(global(&format!("global{n}"), &format!("g{n}")));
        }
        for n in 0..locals {
            table.attribute_definitions.push((format!("l{n}").into(), KeyKind::S));
            table.indexes.push(CreateIndex {
                name: format!("local{n}"),
                kind: IndexKind::Local,
                key_schema: vec![
                    element("pk", KeyRole::Hash),
                    element(&format!("l{n}"), KeyRole::Range),
                ],
                projection: Projection::KeysOnly,
                throughput: None,
            });
        }
        table
    };
    refused(
        t.engine().create_table(request(21, 0)).await,
        "GlobalSecondaryIndex count exceeds the per-table limit of 20",
    );
    refused(
        t.engine().create_table(request(0, 6)).await,
        "Number of LocalSecondaryIndexes exceeds per-table limit of 5",
    );
    t.engine().create_table(request(20, 5)).await.unwrap();
    let wide = (0..20).fold(row("a", 1), |item, n| item.with(format!("g{n}"), "x"));
    let wide = (0..5).fold(wide, |item, n| item.with(format!("l{n}"), "x"));
    t.put("Sorted", wide.clone()).await.unwrap();
    for index in ["global0", "global19", "local4"] {
        assert_eq!(t.scan_all(Scan::new("Sorted").index(index)).await.len(), 1, "{index}");
    }
}

pub(super) async fn missing_tables_are_named(t: &mut Fixture) {
    let detail = "Requested resource not found: Table: Nowhere not found";
    not_found(t.engine().describe_table("Nowhere".to_owned()).await, detail);
    not_found(t.engine().delete_table("Nowhere".to_owned()).await, detail);
}

pub(super) async fn an_index_may_be_filled_with_many_items(t: &mut Fixture) {
    t.create(sorted()).await;
    for start in (0..300).step_by(25) {
        let batch = (start..start + 25).fold(floe_store::op::BatchWriteItem::new(), |batch, n| {
            batch.put("Sorted", row(&format!("p{}", n % 10), n).with("g", Value::from(n % 7)))
        });
        t.engine().batch_write_item(batch).await.unwrap();
    }
    let mut add = UpdateTable::new("Sorted");
    add.attribute_definitions = vec![("g".into(), KeyKind::N)];
    add.indexes = vec![IndexUpdate::Create(global("by_g", "g"))];
    t.engine().update_table(add).await.unwrap();
    t.sweep().await;
    let query = Query::new("Sorted", KeyCondition::partition("g", 3)).index("by_g");
    let mut found = sks(&t.query_all(query).await);
    found.sort_unstable();
    assert_eq!(found, (0..300).filter(|n| n % 7 == 3).collect::<Vec<i64>>());
}
