//! Query: the items of a partition in the order of the sort key.

use floe_store::expr::{Condition, KeyCondition, KeyOp, Path};
use floe_store::op::{Query, Select};
use floe_store::table::KeyKind;
use floe_store::{Item, TableDef, Value};

use super::fixture::*;

pub(super) fn reads_one_partition_in_order(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", [5, -1, 3]));
    t.fill("Sorted", rows("b", [4]));
    t.fill("Sorted", rows("aa", [2]));
    let page = t.query(partition("a")).unwrap();
    assert_eq!(sks(&page.items), [-1, 3, 5]);
    assert_eq!((page.count, page.scanned_count), (3, 3));
    assert_eq!(page.last_key, None);
    assert_eq!(page.consumed, None);
}

pub(super) fn reads_backward(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", [5, -1, 3]));
    t.fill("Sorted", rows("b", [4]));
    assert_eq!(t.query_sks(partition("a").backward()), [5, 3, -1]);
    assert_eq!(t.query_sks(partition("a").backward().limit(1)), [5, 3, -1]);
}

pub(super) fn empty_partition_returns_an_empty_page(t: &mut Fixture) {
    t.create(sorted());
    let page = t.query(partition("missing")).unwrap();
    assert_eq!(page.items, Vec::<Item>::new());
    assert_eq!((page.count, page.scanned_count), (0, 0));
    assert_eq!(page.last_key, None);
}

pub(super) fn sort_key_supports_every_operator(t: &mut Fixture) {
    t.create_with(sorted(), rows("a", [-2, 0, 1, 2, 10]));
    t.fill("Sorted", rows("b", [1]));
    let cases: [(KeyOp, &[i64]); 9] = [
        (KeyOp::Eq(1.into()), &[1]),
        (KeyOp::Eq(5.into()), &[]),
        (KeyOp::Lt(1.into()), &[-2, 0]),
        (KeyOp::Le(1.into()), &[-2, 0, 1]),
        (KeyOp::Gt(1.into()), &[2, 10]),
        (KeyOp::Ge(1.into()), &[1, 2, 10]),
        (KeyOp::Between(0.into(), 2.into()), &[0, 1, 2]),
        (KeyOp::Between(1.into(), 1.into()), &[1]),
        (KeyOp::Gt(10.into()), &[]),
    ];
    for (op, expected) in cases {
        assert_eq!(
            t.query_sks(partition_where("a", op.clone())),
            expected,
            "{op:?}"
        );
        let mut descending = expected.to_vec();
        descending.reverse();
        let backward = t.query_all(partition_where("a", op.clone()).backward());
        assert_eq!(sks(&backward), descending, "{op:?} backward");
    }
}

/// Checks that items with these sort keys are returned in this order, after they were put in reverse order.
#[track_caller]
fn assert_sorted<const LEN: usize>(t: &Fixture, ascending: [impl Into<Value>; LEN]) {
    let expected = ascending.map(|sk| row("a", sk));
    t.fill("Sorted", expected.iter().rev().cloned());
    assert_eq!(t.query_all(partition("a")), expected);
}

pub(super) fn numbers_are_sorted_by_value(t: &mut Fixture) {
    t.create(sorted());
    let ascending = [
        "-9.99E+125",
        "-1000",
        "-10.5",
        "-10",
        "-1",
        "-0.001",
        "-1E-130",
        "0",
        "1E-130",
        "0.5",
        "1",
        "9",
        "10",
        "99.99",
        "100",
        "12345678901234567890",
        "12345678901234567891",
        "1E+125",
    ];
    assert_sorted(t, ascending.map(number));
}

pub(super) fn strings_are_sorted_by_utf8_bytes(t: &mut Fixture) {
    t.create(sorted_by(KeyKind::S));
    let ascending = [
        "A",
        "B",
        "a",
        "a\0",
        "a\0b",
        "a!",
        "aa",
        "b",
        "z",
        "é",
        "\u{FFFD}",
        "\u{1F9CA}",
    ];
    assert_sorted(t, ascending);
}

pub(super) fn binary_is_sorted_as_unsigned_bytes(t: &mut Fixture) {
    t.create(sorted_by(KeyKind::B));
    let ascending: [&[u8]; 8] = [
        &[0],
        &[0, 0],
        &[0, 1],
        &[1],
        &[127],
        &[128],
        &[255],
        &[255, 0],
    ];
    assert_sorted(t, ascending);
    let prefixed = partition_where("a", KeyOp::BeginsWith(binary(&[255])));
    let expected = [binary(&[255]), binary(&[255, 0])].map(|sk| row("a", sk));
    assert_eq!(t.query_all(prefixed), expected);
}

pub(super) fn begins_with_selects_a_prefix(t: &mut Fixture) {
    t.create(sorted_by(KeyKind::S));
    for sk in [
        "a",
        "ab",
        "ab\0",
        "abc",
        "ac",
        "b",
        "ab\u{10FFFF}",
        "ab\u{10FFFF}x",
    ] {
        t.put("Sorted", row("a", sk)).unwrap();
    }
    let items = t.query_all(partition_where("a", KeyOp::BeginsWith("ab".into())));
    let expected = ["ab", "ab\0", "abc", "ab\u{10FFFF}", "ab\u{10FFFF}x"];
    assert_eq!(items, expected.map(|sk| row("a", sk)));
    let none = t.query_all(partition_where("a", KeyOp::BeginsWith("x".into())));
    assert_eq!(none, Vec::<Item>::new());
}

pub(super) fn number_partition_keys_are_compared_by_value(t: &mut Fixture) {
    t.create(TableDef::builder("Numbers", "pk", KeyKind::N).sort_key("sk", KeyKind::S));
    for pk in [1, 10, -1] {
        t.fill("Numbers", [Item::new().with("pk", pk).with("sk", "x")]);
    }
    let query = Query::new("Numbers", KeyCondition::partition("pk", number("1.0")));
    let expected = Item::new().with("pk", 1).with("sk", "x");
    assert_eq!(t.query_all(query), [expected]);
}

pub(super) fn table_without_sort_key_can_be_queried(t: &mut Fixture) {
    t.create_with(plain(), [item("a").with("v", 1), item("b")]);
    let query = Query::new("Plain", KeyCondition::partition("pk", "a"));
    let page = t.query(query).unwrap();
    assert_eq!(page.items, [item("a").with("v", 1)]);
    assert_eq!(page.last_key, None);
}

pub(super) fn filter_is_applied_after_reading(t: &mut Fixture) {
    let items = (1..=6).map(|n| row("a", n).with("even", n % 2 == 0));
    t.create_with(sorted(), items);
    let even = Condition::eq(Path::from("even"), true);
    let page = t.query(partition("a").filter(even.clone())).unwrap();
    assert_eq!(sks(&page.items), [2, 4, 6]);
    assert_eq!((page.count, page.scanned_count), (3, 6));

    // The limit counts the items read, not the items returned.
    let page = t.query(partition("a").filter(even).limit(3)).unwrap();
    assert_eq!(sks(&page.items), [2]);
    assert_eq!((page.count, page.scanned_count), (1, 3));
    let last_read = Some(row("a", 3));
    assert_eq!(page.last_key, last_read, "the last item that was read");

    // A page without results still has a last key.
    let nothing = Condition::attribute_exists("nothing");
    let page = t.query(partition("a").filter(nothing).limit(2)).unwrap();
    assert_eq!((page.count, page.scanned_count), (0, 2));
    assert_eq!(page.last_key, Some(row("a", 2)));
}

pub(super) fn filter_may_use_attributes_outside_the_projection(t: &mut Fixture) {
    let items = (1..=3).map(|n| row("a", n).with("v", n).with("w", "x"));
    t.create_with(sorted(), items);
    let query = partition("a")
        .filter(condition("v > :one", &values! {"one" => 1}))
        .projecting("w");
    let page = t.query(query).unwrap();
    let projected = Item::new().with("w", "x");
    assert_eq!(page.items, [projected.clone(), projected]);
}

pub(super) fn filter_must_not_use_key_attributes(t: &mut Fixture) {
    t.create(sorted());
    for name in ["pk", "sk"] {
        let filtered = partition("a").filter(Condition::attribute_exists(name));
        let detail =
            "Filter Expression can only contain non-primary key attributes: Primary key attribute";
        rejected(t.query(filtered), &format!("{detail}: {name}"));
    }
}

pub(super) fn returns_only_selected_attributes(t: &mut Fixture) {
    let items = [row("a", 1).with("v", 1), row("a", 2).with("w", 2)];
    t.create_with(sorted(), items);
    let mut query = partition("a").projecting("v");
    let page = t.query(query.clone()).unwrap();
    let projected = [Item::new().with("v", 1), Item::new()];
    assert_eq!(page.items, projected, "keys are not added");
    query.select = Some(Select::SpecificAttributes);
    assert_eq!(t.query(query).unwrap().items.len(), 2);

    let count = partition("a").limit(1).selecting(Select::Count);
    let page = t.query(count).unwrap();
    assert_eq!(page.items, Vec::<Item>::new());
    assert_eq!((page.count, page.scanned_count), (1, 1));
    assert_eq!(page.last_key, Some(row("a", 1)));

    let all = partition("a").selecting(Select::AllAttributes);
    assert_eq!(t.query(all).unwrap().items[0], row("a", 1).with("v", 1));
}

pub(super) fn select_must_match_the_request(t: &mut Fixture) {
    t.create(sorted());
    let select = |which| partition("a").selecting(which);
    rejections! {
        t.query(select(Select::SpecificAttributes))
            => "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES";
        t.query(select(Select::AllAttributes).projecting("v"))
            => "Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES";
        t.query(select(Select::Count).projecting("v"))
            => "Cannot specify the ProjectionExpression when choosing to get only the Count";
        t.query(select(Select::AllProjectedAttributes))
            => "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName";
    }
}

pub(super) fn key_condition_must_match_the_key_schema(t: &mut Fixture) {
    t.create(sorted());
    let a = || KeyCondition::partition("pk", "a");
    let one = || KeyOp::Eq(1.into());
    let ranged = KeyCondition {
        terms: vec![("pk".into(), KeyOp::Gt("a".into()))],
    };
    let missed_pk = "Query condition missed key schema element: pk";
    let missed_sk = "Query condition missed key schema element: sk";
    let mistyped = "Condition parameter type does not match schema type";
    let twice = "KeyConditionExpressions must only contain one condition per key";
    let cases = [
        (KeyCondition::partition("sk", 1), missed_pk),
        (a().and("other", one()), missed_sk),
        (KeyCondition::partition("pk", 1), mistyped),
        (a().and("sk", KeyOp::Lt("x".into())), mistyped),
        (ranged, "Query key condition not supported"),
        (a().and("sk", one()).and("sk", KeyOp::Gt(0.into())), twice),
    ];
    for (condition, detail) in cases {
        rejected(t.query(Query::new("Sorted", condition)), detail);
    }
}

pub(super) fn key_values_must_not_be_empty(t: &mut Fixture) {
    t.create(sorted_by(KeyKind::S));
    rejections! {
        t.query(partition(""))
            => "The AttributeValue for a key attribute cannot contain an empty string value. Key: pk";
        t.query(partition_where("a", KeyOp::Eq("".into())))
            => "The AttributeValue for a key attribute cannot contain an empty string value. Key: sk";
    }
}

pub(super) fn begins_with_rejects_numbers(t: &mut Fixture) {
    t.create(sorted());
    let query = partition_where("a", KeyOp::BeginsWith(1.into()));
    rejected(
        t.query(query),
        "operator or function: begins_with, operand type: N",
    );
}

pub(super) fn between_bounds_must_be_in_order(t: &mut Fixture) {
    t.create(sorted());
    let query = partition_where("a", KeyOp::Between(2.into(), 1.into()));
    let detail =
        "The BETWEEN operator requires upper bound to be greater than or equal to lower bound";
    rejected(t.query(query), detail);
}

pub(super) fn consistent_reads_see_completed_writes(t: &mut Fixture) {
    t.create(sorted());
    for n in 0..20 {
        t.put("Sorted", row("a", n)).unwrap();
        let page = t.query(partition("a").consistent()).unwrap();
        assert_eq!(page.count, usize::try_from(n).unwrap() + 1);
    }
}

pub(super) fn missing_table_or_index_is_reported(t: &mut Fixture) {
    let query = Query::new("Nowhere", KeyCondition::partition("pk", "a"));
    table_not_found(t.query(query));
    t.create(sorted());
    let query = partition("a").index("nothing");
    rejected(
        t.query(query),
        "The table does not have the specified index: nothing",
    );
}

pub(super) fn values_of_every_type_are_returned(t: &mut Fixture) {
    t.create(sorted());
    let full = every_type("a").with("sk", 1);
    t.put("Sorted", full.clone()).unwrap();
    assert_eq!(t.query_all(partition("a")), [full]);
    let text = Condition::eq(Path::from("null"), Value::Null);
    assert_eq!(t.query_all(partition("a").filter(text)).len(), 1);
}
