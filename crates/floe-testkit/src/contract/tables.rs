//! Tables: created, described, listed and deleted.

use floe_store::op::{CreateIndex, CreateTable, KeyRole, ListTables, UpdateTable};
use floe_store::size::item_size;
use floe_store::table::{
    IndexDescription, IndexKind, KeyKind, Projection, StreamHandle, StreamView, TableStatus,
};
use floe_store::{Error, Item, Name, TableDef};

use super::fixture::*;

fn named(name: &str) -> CreateTable {
    TableDef::builder(name, "pk", KeyKind::S)
        .build()
        .expect("the table definition is valid")
        .into()
}

pub(super) fn new_table_is_described(t: &mut Fixture) {
    let table = ranged(sorted(), KeyKind::N, Projection::KeysOnly)
        .local_index("by_v", "v", KeyKind::B, including("w"))
        .stream(StreamView::NewImage)
        .tag("team", "ice");
    let definition = table.clone().build().unwrap();
    let created = t.create(table);
    let described = t.describe("Sorted");
    assert_eq!(created.definition, definition);
    assert_eq!(described.definition, definition);
    assert_eq!(described.status, TableStatus::Active);
    assert_eq!((described.item_count, described.size_bytes), (0, 0));
    assert_eq!(described.created, created.created);
    assert_eq!(described.id, created.id);
    assert!(described.arn.ends_with("table/Sorted"), "{}", described.arn);
    assert_eq!(described.indexes.len(), definition.indexes.len());
    for (index, defined) in described.indexes.iter().zip(&definition.indexes) {
        let IndexDescription { name, arn, .. } = index;
        assert_eq!(*name, defined.name);
        assert_eq!(index.status, TableStatus::Active);
        assert!(!index.backfilling);
        assert!(
            arn.ends_with(&format!("table/Sorted/index/{name}")),
            "{arn}"
        );
    }
    let StreamHandle { arn, label } = described.latest_stream.expect("the stream is enabled");
    assert!(arn.contains("table/Sorted/stream/"), "{arn}");
    assert!(arn.ends_with(&label), "{arn}");
}

pub(super) fn descriptions_count_items_and_bytes(t: &mut Fixture) {
    t.create(indexed(Projection::KeysOnly));
    let items = [
        item("a").with("g", "x").with("v", "some text"),
        item("b").with("v", number("12.5")),
        item("c").with("g", "y").with("l", list([1, 2])),
    ];
    t.fill("Plain", items.clone());
    let described = t.describe("Plain");
    assert_eq!(described.item_count, 3);
    let bytes: usize = items.iter().map(item_size).sum();
    assert_eq!(described.size_bytes, bytes as u64);
    assert_eq!(described.indexes[0].item_count, 2);
    assert_eq!(described.indexes[0].size_bytes, 2 * (2 + 1 + 1 + 1));

    t.put("Plain", item("a").with("v", 1)).unwrap();
    t.delete("Plain", item("b"));
    t.reopen();
    let described = t.describe("Plain");
    assert_eq!(described.item_count, 2);
    let remaining = item_size(&item("a").with("v", 1)) + item_size(&items[2]);
    assert_eq!(described.size_bytes, remaining as u64);
    assert_eq!(described.indexes[0].item_count, 1);
}

pub(super) fn table_names_are_unique(t: &mut Fixture) {
    let first = t.create(plain());
    let taken = Error::ResourceInUse("Table already exists: Plain".to_owned());
    assert_eq!(t.create_table(named("Plain")), Err(taken));
    t.delete_table("Plain").unwrap();
    let second = t.create(plain());
    assert_ne!(
        first.id, second.id,
        "a new table of the same name has another id"
    );
}

pub(super) fn deleting_a_table_deletes_its_items(t: &mut Fixture) {
    let items = (0..20).map(|n| item(&format!("k{n}")).with("g", "x"));
    t.create_with(indexed(Projection::All), items);
    let deleted = t.delete_table("Plain").unwrap();
    assert_eq!(deleted.definition.name, "Plain");
    table_not_found(t.put("Plain", item("a")));
    let detail = "Requested resource not found: Table: Plain not found";
    not_found(t.describe_table("Plain".to_owned()), detail);
    not_found(t.delete_table("Plain"), detail);
    t.create(indexed(Projection::All));
    assert_eq!(t.all_items("Plain"), Vec::<Item>::new());
    assert_eq!(t.all_entries("Plain", "by_g"), Vec::<Item>::new());
    assert_eq!(t.describe("Plain").item_count, 0);
}

pub(super) fn protected_tables_cannot_be_deleted(t: &mut Fixture) {
    let mut table = named("Plain");
    table.deletion_protection = true;
    t.create_table(table).unwrap();
    rejected(
        t.delete_table("Plain"),
        "Resource cannot be deleted as it is currently protected against deletion. \
         Disable deletion protection first.",
    );
    let mut lift = UpdateTable::new("Plain");
    lift.deletion_protection = Some(false);
    t.update_table(lift).unwrap();
    t.delete_table("Plain").unwrap();
}

pub(super) fn tables_are_listed_in_order_and_pages(t: &mut Fixture) {
    for name in ["zebra", "apple", "Mango", "mango", "app-le"] {
        t.create_table(named(name)).unwrap();
    }
    let t = &*t;
    let list = |start: Option<&str>, limit| {
        let start_after = start.map(str::to_owned);
        t.list_tables(ListTables { start_after, limit }).unwrap()
    };
    let all = list(None, None);
    let names = ["Mango", "app-le", "apple", "mango", "zebra"];
    assert_eq!(all.table_names, names);
    assert_eq!(all.last_name, None);
    let page = list(None, Some(2));
    assert_eq!(page.table_names, ["Mango", "app-le"]);
    assert_eq!(page.last_name.as_deref(), Some("app-le"));
    let page = list(Some("app-le"), Some(3));
    assert_eq!(page.table_names, ["apple", "mango", "zebra"]);
    assert_eq!(page.last_name, None, "this is the last page");
    let page = list(Some("lemon"), None);
    assert_eq!(
        page.table_names,
        ["mango", "zebra"],
        "the name need not exist"
    );
}

pub(super) fn table_listing_limit_is_1_to_100(t: &mut Fixture) {
    let list = |limit| ListTables {
        start_after: None,
        limit: Some(limit),
    };
    rejected(t.list_tables(list(0)), "greater than or equal to 1");
    rejected(t.list_tables(list(101)), "less than or equal to 100");
    assert!(t.list_tables(list(100)).is_ok());
}

pub(super) fn tables_survive_reopening(t: &mut Fixture) {
    let created = t.create(sorted().stream(StreamView::KeysOnly));
    t.fill("Sorted", rows("a", 1..=3));
    t.reopen();
    let described = t.describe("Sorted");
    assert_eq!(described.definition, created.definition);
    assert_eq!(described.id, created.id);
    assert_eq!(described.created, created.created);
    assert_eq!(described.latest_stream, created.latest_stream);
    assert_eq!(described.item_count, 3);
    assert_eq!(t.all_items("Sorted").len(), 3);
}

pub(super) fn names_have_3_to_255_characters(t: &mut Fixture) {
    for good in ["abc", "a.b-c_D9", &"x".repeat(255)] {
        assert!(t.create_table(named_unchecked(good)).is_ok(), "{good}");
    }
    let long = "x".repeat(256);
    for bad in ["", "ab", &long, "with space", "slash/ed", "ümlaut"] {
        invalid(t.create_table(named_unchecked(bad)));
    }
}

/// Definitions of string attributes.
fn string_attributes(names: &[&str]) -> Vec<(Name, KeyKind)> {
    let defined = names.iter().map(|name| ((*name).into(), KeyKind::S));
    defined.collect()
}

/// A request for a table with a partition key and any name.
fn named_unchecked(name: &str) -> CreateTable {
    CreateTable {
        table_name: name.to_owned(),
        ..named("Plain")
    }
}

pub(super) fn keys_must_be_well_formed(t: &mut Fixture) {
    use KeyRole::{Hash, Range};
    let create = |definitions: &[&str], key: &[(&str, KeyRole)]| {
        t.create_table(CreateTable {
            attribute_definitions: string_attributes(definitions),
            key_schema: elements(key),
            ..named("Plain")
        })
    };
    rejections! {
        create(&["a"], &[("a", Range)]) => "The first KeySchemaElement is not a HASH key type";
        create(&["a", "b"], &[("a", Hash), ("b", Hash)])
            => "The second KeySchemaElement is not a RANGE key type";
        create(&["a", "b"], &[("a", Hash), ("a", Range)])
            => "Both the Hash Key and the Range Key element in the KeySchema have the same name";
        create(&["a", "b"], &[("a", Hash), ("c", Range)]) => "Some index key attribute";
        create(&["a", "b"], &[("a", Hash)])
            => "Number of attributes in KeySchema does not exactly match number of attributes defined in AttributeDefinitions";
        create(&["a"], &[]) => "keySchema";
    }
}

pub(super) fn indexes_must_be_well_formed(t: &mut Fixture) {
    use KeyRole::{Hash, Range};
    let create = |definitions: &[&str], sort: bool, indexes: Vec<CreateIndex>| {
        let mut table = named("Plain");
        let definitions = string_attributes(definitions);
        table.attribute_definitions.extend(definitions);
        if sort {
            table.key_schema.extend(elements(&[("sk", Range)]));
        }
        table.indexes = indexes;
        t.create_table(table)
    };
    let local = |key: &[(&str, KeyRole)]| vec![index("by_v", IndexKind::Local, key)];
    let by_g = || global_index("by_g", "g");
    rejections! {
        create(&["v"], false, local(&[("pk", Hash), ("v", Range)]))
            => "Table KeySchema does not have a range key, which is required when specifying a LocalSecondaryIndex";
        create(&["sk"], true, local(&[("pk", Hash)]))
            => "Index KeySchema does not have a range key for index: by_v";
        create(&["sk", "v"], true, local(&[("v", Hash), ("sk", Range)]))
            => "Index KeySchema does not have the same leading hash key as table KeySchema for index: by_v. \
                index hash key: v, table hash key: pk";
        create(&["g"], false, vec![by_g(), by_g()]) => "Duplicate index name: by_g";
        create(&[], false, vec![by_g()])
            => "Some index key attributes are not defined in AttributeDefinitions";
        create(&["unused", "g"], false, vec![by_g()]) => "Some AttributeDefinitions are not used";
    }
    let listed = t.list_tables(ListTables::default()).unwrap();
    assert!(listed.table_names.is_empty());
}

pub(super) fn number_of_indexes_is_limited(t: &mut Fixture) {
    let request = |globals: usize, locals: usize| {
        let mut table: CreateTable = sorted().build().unwrap().into();
        for n in 0..globals {
            let attribute = format!("g{n}");
            let index = global_index(&format!("global{n}"), &attribute);
            table.indexes.push(index);
            table
                .attribute_definitions
                .extend(string_attributes(&[&attribute]));
        }
        for n in 0..locals {
            let attribute = format!("l{n}");
            let key = [("pk", KeyRole::Hash), (&*attribute, KeyRole::Range)];
            let index = index(&format!("local{n}"), IndexKind::Local, &key);
            table.indexes.push(index);
            table
                .attribute_definitions
                .extend(string_attributes(&[&attribute]));
        }
        table
    };
    rejections! {
        t.create_table(request(21, 0))
            => "GlobalSecondaryIndex count exceeds the per-table limit of 20";
        t.create_table(request(0, 6))
            => "Number of LocalSecondaryIndexes exceeds per-table limit of 5";
    }
    t.create_table(request(20, 5)).unwrap();
    let wide = (0..20).fold(row("a", 1), |item, n| item.with(format!("g{n}"), "x"));
    let wide = (0..5).fold(wide, |item, n| item.with(format!("l{n}"), "x"));
    t.put("Sorted", wide).unwrap();
    for index in ["global0", "global19", "local4"] {
        assert_eq!(t.all_entries("Sorted", index).len(), 1, "{index}");
    }
}

pub(super) fn missing_tables_are_reported(t: &mut Fixture) {
    let detail = "Requested resource not found: Table: Nowhere not found";
    not_found(t.describe_table("Nowhere".to_owned()), detail);
    not_found(t.delete_table("Nowhere"), detail);
}
