//! Changes of tables: indexes, settings and tags.

use floe_store::Error;
use floe_store::expr::KeyCondition;
use floe_store::op::{IndexUpdate, Query, Scan, UpdateTable, UpdateTags};
use floe_store::table::{Billing, KeyKind, Projection, TableClass, Throughput};

use super::fixture::*;

/// Adds the global index `by_g` and waits until it is built.
fn add_by_g(t: &Fixture, table: &str, kind: KeyKind) {
    let mut add = UpdateTable::new(table);
    add.attribute_definitions = vec![("g".into(), kind)];
    add.indexes = vec![IndexUpdate::Create(global_index("by_g", "g"))];
    t.update_table(add).unwrap();
    t.sweep();
}

pub(super) fn added_index_is_backfilled(t: &mut Fixture) {
    let items = (0..30).map(|n| {
        let item = item(&format!("k{n}")).with("n", n);
        match n % 3 {
            0 => item.with("g", "x"),
            1 => item.with("g", n),
            _ => item,
        }
    });
    t.create_with(plain(), items);
    add_by_g(t, "Plain", KeyKind::S);
    let described = t.describe("Plain");
    assert_eq!(described.definition.indexes.len(), 1);
    let query = Query::new("Plain", KeyCondition::partition("g", "x")).index("by_g");
    let found = t.query_all(query.clone());
    assert_eq!(found.len(), 10, "items of another type are left out");
    assert_eq!(t.describe("Plain").indexes[0].item_count, 10);

    t.put("Plain", item("new").with("g", "x")).unwrap();
    assert_eq!(t.query_all(query.clone()).len(), 11);
    t.reopen();
    assert_eq!(t.query_all(query).len(), 11);
}

pub(super) fn backfill_handles_many_items(t: &mut Fixture) {
    t.create(sorted());
    for start in (0..300).step_by(25) {
        let item = |n| row(&format!("p{}", n % 10), n).with("g", n % 7);
        t.fill_batch("Sorted", (start..start + 25).map(item));
    }
    add_by_g(t, "Sorted", KeyKind::N);
    let query = Query::new("Sorted", KeyCondition::partition("g", 3)).index("by_g");
    let mut found = t.query_sks(query);
    found.sort_unstable();
    assert_eq!(found, (0..300).filter(|n| n % 7 == 3).collect::<Vec<i64>>());
}

pub(super) fn index_can_be_removed_and_added_again(t: &mut Fixture) {
    t.create_with(indexed(Projection::All), [item("a").with("g", "x")]);
    let mut remove = UpdateTable::new("Plain");
    remove.indexes = vec![IndexUpdate::Delete("by_g".to_owned())];
    t.update_table(remove).unwrap();
    t.sweep();
    let scan = t.scan(Scan::new("Plain").index("by_g"));
    rejected(scan, "The table does not have the specified index: by_g");
    // Without the index, its key is an ordinary attribute.
    t.put("Plain", item("b").with("g", 5)).unwrap();
    t.put("Plain", item("c").with("g", "x")).unwrap();
    add_by_g(t, "Plain", KeyKind::S);
    let index = t.all_entries("Plain", "by_g");
    assert_eq!(texts(&index, "pk"), ["a", "c"]);
}

pub(super) fn invalid_index_changes_are_rejected(t: &mut Fixture) {
    t.create(indexed(Projection::All));
    let change = |definitions: &[&str], indexes: Vec<IndexUpdate>| {
        let mut update = UpdateTable::new("Plain");
        let definitions = definitions.iter().map(|name| ((*name).into(), KeyKind::S));
        update.attribute_definitions = definitions.collect();
        update.indexes = indexes;
        t.update_table(update)
    };
    let create = |name: &str| IndexUpdate::Create(global_index(&format!("by_{name}"), name));
    let again = change(&["g"], vec![create("g")]);
    rejected(again, "Attempting to create an index which already exists");
    invalid(change(&[], vec![create("x")]));
    table_not_found(change(&[], vec![IndexUpdate::Delete("nothing".to_owned())]));
    let two = change(&["x", "y"], vec![create("x"), create("y")]);
    assert!(matches!(two, Err(Error::LimitExceeded(_))));
    assert!(matches!(
        t.update_table(UpdateTable::new("Plain")),
        Err(Error::Validation(message)) if message.starts_with("At least one of ")
    ));
    let mut elsewhere = UpdateTable::new("Nowhere");
    elsewhere.deletion_protection = Some(true);
    let detail = "Requested resource not found: Table: Nowhere not found";
    not_found(t.update_table(elsewhere), detail);
}

pub(super) fn billing_and_table_class_can_be_changed(t: &mut Fixture) {
    t.create(plain());
    let provisioned = Billing::Provisioned(Throughput { read: 5, write: 7 });
    let mut billing = UpdateTable::new("Plain");
    billing.billing = Some(provisioned);
    t.update_table(billing).unwrap();
    let mut class = UpdateTable::new("Plain");
    class.class = Some(TableClass::StandardInfrequentAccess);
    t.update_table(class).unwrap();
    t.reopen();
    let definition = t.describe("Plain").definition;
    assert_eq!(definition.billing, provisioned);
    assert_eq!(definition.class, Some(TableClass::StandardInfrequentAccess));
}

pub(super) fn tags_can_be_added_and_removed(t: &mut Fixture) {
    t.create(plain().tag("team", "ice").tag("env", "test"));
    let add =
        [("env", "prod"), ("new", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let change = UpdateTags {
        table_name: "Plain".to_owned(),
        add: add.clone().into(),
        remove: vec!["team".to_owned(), "never-there".to_owned()],
    };
    t.update_tags(change).unwrap();
    t.reopen();
    assert_eq!(t.describe("Plain").definition.tags, add.into());
    let elsewhere = UpdateTags {
        table_name: "Nowhere".to_owned(),
        ..UpdateTags::default()
    };
    assert!(matches!(
        t.update_tags(elsewhere),
        Err(Error::ResourceNotFound(_) | Error::Validation(_))
    ));
}
