//! Global indexes: their entries, order and projections.

use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::op::{PutItem, Query, Scan, Select};
use floe_store::table::{KeyKind, Projection, TableBuilder};
use floe_store::{Item, Value};

use super::fixture::*;

/// A table with a global index on `g` (S) and `h` (N).
fn with_global(projection: Projection) -> TableBuilder {
    ranged(sorted(), KeyKind::N, projection)
}

fn by_g(g: &str) -> Query {
    Query::new("Sorted", KeyCondition::partition("g", g)).index("by_g")
}

pub(super) fn global_index_has_its_own_partitions_and_order(t: &mut Fixture) {
    t.create_with(
        with_global(Projection::All),
        [
            row("a", 1).with("g", "x").with("h", 30),
            row("b", 2).with("g", "x").with("h", -10),
            row("c", 3).with("g", "x").with("h", 20),
            row("a", 4).with("g", "y").with("h", 1),
        ],
    );
    let items = t.query_all(by_g("x"));
    assert_eq!(sks(&items), [2, 3, 1]);
    assert_eq!(items[0], row("b", 2).with("g", "x").with("h", -10));
    assert_eq!(t.query_sks(by_g("x").backward()), [1, 3, 2]);
    assert_eq!(t.query_sks(by_g("y")), [4]);
    let ranged = KeyCondition::partition("g", "x").and("h", KeyOp::Ge(20.into()));
    let ranged = Query::new("Sorted", ranged).index("by_g");
    assert_eq!(t.query_sks(ranged), [3, 1]);
}

pub(super) fn indexes_are_sparse(t: &mut Fixture) {
    t.create_with(
        with_global(Projection::All),
        [
            row("a", 1).with("g", "x").with("h", 1),
            row("a", 2).with("g", "x"),
            row("a", 3).with("h", 1),
            row("a", 4),
        ],
    );
    assert_eq!(t.query_sks(by_g("x")), [1]);
    assert_eq!(sks(&t.all_entries("Sorted", "by_g")), [1]);
    assert_eq!(t.all_items("Sorted").len(), 4);
}

pub(super) fn index_entries_follow_their_items(t: &mut Fixture) {
    t.create(with_global(Projection::All));
    let change = |text: &str, values: Values| update_item("Sorted", row("a", 1), text, &values);
    t.fill("Sorted", [row("a", 1).with("g", "x").with("h", 1)]);
    // Change of another attribute.
    t.write(change("SET v = :v", values! {"v" => 1})).unwrap();
    let entry = row("a", 1).with("g", "x").with("h", 1).with("v", 1);
    assert_eq!(t.query_all(by_g("x")), [entry]);
    // Change of the sort key.
    t.write(change("SET h = :h", values! {"h" => 2})).unwrap();
    assert_eq!(t.query_all(by_g("x")).len(), 1);
    // Change of the partition.
    t.write(change("SET g = :g", values! {"g" => "y"})).unwrap();
    assert_eq!(t.query_all(by_g("x")), Vec::<Item>::new());
    assert_eq!(t.query_sks(by_g("y")), [1]);
    // Removal from the index, and addition.
    t.write(change("REMOVE h", values! {})).unwrap();
    assert_eq!(t.query_all(by_g("y")), Vec::<Item>::new());
    t.write(change("SET h = :h", values! {"h" => 5})).unwrap();
    assert_eq!(t.query_sks(by_g("y")), [1]);
    // Replacement of the item.
    t.fill("Sorted", [row("a", 1).with("g", "z").with("h", 5)]);
    assert_eq!(t.query_all(by_g("y")), Vec::<Item>::new());
    assert_eq!(t.query_sks(by_g("z")), [1]);
    // Deletion.
    t.delete("Sorted", row("a", 1));
    assert_eq!(t.query_all(by_g("z")), Vec::<Item>::new());
    assert_eq!(t.all_entries("Sorted", "by_g"), Vec::<Item>::new());
}

pub(super) fn failed_write_does_not_change_the_index(t: &mut Fixture) {
    let stored = row("a", 1).with("g", "x").with("h", 1);
    t.create_with(with_global(Projection::All), [stored]);
    let put = PutItem::new("Sorted", row("a", 1).with("g", "y").with("h", 1))
        .condition(bare_condition("attribute_not_exists(pk)"));
    condition_failed(t.write(put));
    assert_eq!(t.query_all(by_g("x")).len(), 1);
    assert_eq!(t.query_all(by_g("y")).len(), 0);
}

pub(super) fn index_projections_select_attributes(t: &mut Fixture) {
    let full = row("a", 1)
        .with("g", "x")
        .with("h", 1)
        .with("v", 1)
        .with("w", map([("k", 2)]));
    let keys = row("a", 1).with("g", "x").with("h", 1);
    let cases = [
        (Projection::All, full.clone()),
        (Projection::KeysOnly, keys.clone()),
        (including("w"), keys.with("w", map([("k", 2)]))),
    ];
    for (projection, expected) in cases {
        t.create(with_global(projection.clone()));
        t.put("Sorted", full.clone()).unwrap();
        let expected = [expected];
        assert_eq!(t.query_all(by_g("x")), expected, "{projection:?}");
        let scanned = t.all_entries("Sorted", "by_g");
        assert_eq!(scanned, expected, "{projection:?}");
        t.delete_table("Sorted").unwrap();
    }
}

pub(super) fn projected_attributes_follow_their_item(t: &mut Fixture) {
    t.create(with_global(including("v")));
    let keys = row("a", 1).with("g", "x").with("h", 1);
    t.fill("Sorted", [keys.clone().with("v", 1).with("w", 1)]);
    let set = |text: &str| update_item("Sorted", row("a", 1), text, &values! {"n" => 2});
    t.write(set("SET v = :n")).unwrap();
    assert_eq!(t.query_all(by_g("x")), [keys.clone().with("v", 2)]);
    t.write(set("SET w = :n")).unwrap();
    assert_eq!(t.query_all(by_g("x")), [keys.clone().with("v", 2)]);
    let remove = update_item("Sorted", row("a", 1), "REMOVE v", &values! {});
    t.write(remove).unwrap();
    assert_eq!(t.query_all(by_g("x")), [keys]);
}

pub(super) fn global_index_returns_only_projected_attributes(t: &mut Fixture) {
    t.create(with_global(Projection::KeysOnly));
    rejections! {
        t.query(by_g("x").selecting(Select::AllAttributes))
            => "Select type ALL_ATTRIBUTES is not supported for global secondary index by_g \
                because its projection type is not ALL";
        t.query(by_g("x").projecting("g, v")) => "Global secondary index by_g does not project [v]";
    }
    let projected = by_g("x").selecting(Select::AllProjectedAttributes);
    assert!(t.query(projected).is_ok());
}

pub(super) fn global_index_rejects_consistent_reads(t: &mut Fixture) {
    t.create(with_global(Projection::All));
    let detail = "Consistent reads are not supported on global secondary indexes";
    rejected(t.query(by_g("x").consistent()), detail);
    let scan = Scan::new("Sorted").index("by_g").consistent();
    rejected(t.scan(scan), detail);
}

pub(super) fn items_may_share_an_index_key(t: &mut Fixture) {
    let items = (0..10).map(|n| row(&format!("p{n}"), n).with("g", "x").with("h", 1));
    t.create_with(with_global(Projection::All), items);
    t.fill("Sorted", [row("late", 99).with("g", "x").with("h", 2)]);
    let whole = t.query_all(by_g("x"));
    assert_eq!(whole.len(), 11);
    assert_eq!(sks(&whole).last(), Some(&99));
    for limit in [1, 3, 10] {
        assert_eq!(t.query_all(by_g("x").limit(limit)), whole, "limit={limit}");
        let mut backward = t.query_all(by_g("x").backward().limit(limit));
        backward.reverse();
        assert_eq!(backward, whole, "limit={limit} backward");
    }
}

pub(super) fn last_key_of_an_index_page_contains_both_keys(t: &mut Fixture) {
    let table = with_global(Projection::KeysOnly);
    let table = table.local_index("by_v", "v", KeyKind::S, Projection::All);
    let items = (1..=3).map(|n| row("a", n).with("g", "x").with("h", n).with("v", "same"));
    t.create_with(table, items);
    let page = t.query(by_g("x").limit(2)).unwrap();
    assert_eq!(page.last_key, Some(row("a", 2).with("g", "x").with("h", 2)));
    let rest = t.query(by_g("x").start_key(page.last_key)).unwrap();
    assert_eq!(sks(&rest.items), [3]);
    let local = partition("a").index("by_v").limit(1);
    let page = t.query(local).unwrap();
    assert_eq!(page.last_key, Some(row("a", 1).with("v", "same")));
    let scan = t.scan(Scan::new("Sorted").index("by_g").limit(1)).unwrap();
    let key = scan.last_key.unwrap();
    let names: Vec<&str> = key.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["g", "h", "pk", "sk"]);
}

pub(super) fn start_key_of_an_index_page_must_contain_both_keys(t: &mut Fixture) {
    t.create(with_global(Projection::All));
    let keys = [
        row("a", 1),
        Item::new().with("g", "x").with("h", 1),
        row("a", 1).with("g", "x"),
        row("a", 1).with("g", "x").with("h", "text"),
        row("a", 1).with("g", "x").with("h", 1).with("v", 1),
    ];
    for key in keys {
        let query = by_g("x").start_key(Some(key));
        rejected(t.query(query), WRONG_START);
    }
    let other = by_g("x").start_key(Some(row("a", 1).with("g", "y").with("h", 1)));
    let outside =
        "The provided starting key is outside query boundaries based on provided conditions";
    rejected(t.query(other), outside);
}

pub(super) fn global_index_may_have_no_sort_key(t: &mut Fixture) {
    t.create(plain().global_index("by_g", [("g", KeyKind::N)], NO_SORT, Projection::All));
    let items = ["a", "b", "c"].map(|pk| item(pk).with("g", 1));
    t.fill("Plain", items);
    t.fill("Plain", [item("d").with("g", 2)]);
    let query = Query::new("Plain", KeyCondition::partition("g", 1)).index("by_g");
    let found = t.query_all(query.clone());
    assert_eq!(texts(&found, "pk"), ["a", "b", "c"]);
    assert_eq!(t.query_all(query.limit(1)), found);
}

pub(super) fn index_may_use_table_key_attributes(t: &mut Fixture) {
    t.create_with(
        sorted().global_index(
            "turned",
            [("sk", KeyKind::N)],
            [("pk", KeyKind::S)],
            Projection::KeysOnly,
        ),
        [row("b", 1), row("a", 1), row("a", 2)],
    );
    let query = Query::new("Sorted", KeyCondition::partition("sk", 1)).index("turned");
    assert_eq!(t.query_all(query), [row("a", 1), row("b", 1)]);
}

pub(super) fn index_key_types_are_validated(t: &mut Fixture) {
    t.create(with_global(Projection::All));
    let set = update_item("Sorted", row("a", 1), "SET g = :v", &values! {"v" => true});
    rejections! {
        t.put("Sorted", row("a", 1).with("g", 5))
            => "Type mismatch for Index Key g Expected: S Actual: N IndexName: by_g";
        t.put("Sorted", row("a", 1).with("g", "x").with("h", Value::Null))
            => "Type mismatch for Index Key h Expected: N Actual: NULL IndexName: by_g";
        t.write(set) => "Type mismatch for Index Key g Expected: S Actual: BOOL IndexName: by_g";
    }
    assert_eq!(t.get("Sorted", row("a", 1)), None);
}

pub(super) fn index_keys_must_not_be_empty(t: &mut Fixture) {
    t.create(with_global(Projection::All));
    let set = update_item("Sorted", row("a", 1), "SET g = :v", &values! {"v" => ""});
    rejections! {
        t.put("Sorted", row("a", 1).with("g", ""))
            => "A value specified for a secondary index key is not supported. The AttributeValue for a key \
                attribute cannot contain an empty string value. IndexName: by_g, IndexKey: g";
        t.write(set)
            => "The update expression attempted to update a secondary index key to a value that is not \
                supported. The AttributeValue for a key attribute cannot contain an empty string value.";
    }
}

pub(super) fn filters_and_projections_work_on_indexes(t: &mut Fixture) {
    let items = (1..=4).map(|n| row("a", n).with("g", "x").with("h", n).with("v", n % 2));
    t.create_with(with_global(Projection::All), items);
    let odd = condition("v = :one", &values! {"one" => 1});
    let query = by_g("x").filter(odd).projecting("sk");
    let page = t.query(query).unwrap();
    assert_eq!(page.items, [1, 3].map(|sk| Item::new().with("sk", sk)));
    assert_eq!((page.count, page.scanned_count), (2, 4));
}

pub(super) fn indexes_survive_reopening(t: &mut Fixture) {
    let table = with_global(Projection::All);
    let table = table.local_index("by_h", "h", KeyKind::N, Projection::KeysOnly);
    let items = (1..=3).map(|n| row("a", n).with("g", "x").with("h", -n));
    t.create_with(table, items);
    t.delete("Sorted", row("a", 2));
    t.reopen();
    assert_eq!(t.query_sks(by_g("x")), [3, 1]);
    assert_eq!(t.query_sks(partition("a").index("by_h")), [3, 1]);
}

pub(super) fn segments_partition_an_index(t: &mut Fixture) {
    let items = (0..30).map(|n| row("a", n).with("g", format!("g{}", n % 9)).with("h", n));
    t.create_with(with_global(Projection::KeysOnly), items);
    let mut found = Vec::new();
    for index in 0..4 {
        let scan = Scan::new("Sorted").index("by_g").segment(index, 4).limit(3);
        found.extend(sks(&t.scan_all(scan)));
    }
    found.sort_unstable();
    assert_eq!(found, (0..30).collect::<Vec<i64>>());
}
