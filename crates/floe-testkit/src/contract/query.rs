//! Query: the items under one partition key, in the order of the sort key.

use floe_store::expr::{Condition, KeyCondition, KeyOp, Path};
use floe_store::op::{Query, Select};
use floe_store::table::KeyKind;
use floe_store::{Item, TableDef, Value};

use super::fixture::*;

fn range(op: KeyOp) -> Query {
    Query::new("Sorted", KeyCondition::partition("pk", "a").and("sk", op))
}

pub(super) async fn reads_one_partition_in_order(t: &mut Fixture) {
    t.create(sorted()).await;
    t.fill("Sorted", rows("a", [5, -1, 3])).await;
    t.fill("Sorted", rows("b", [4])).await;
    t.fill("Sorted", rows("aa", [2])).await;
    let page = t.query(partition("a")).await.unwrap();
    assert_eq!(sks(&page.items), [-1, 3, 5]);
    assert_eq!((page.count, page.scanned_count), (3, 3));
    assert_eq!(page.last_key, None);
    assert_eq!(page.consumed, None);
}

pub(super) async fn reads_backward(t: &mut Fixture) {
    t.create(sorted()).await;
    t.fill("Sorted", rows("a", [5, -1, 3])).await;
    t.fill("Sorted", rows("b", [4])).await;
    assert_eq!(t.query_sks(partition("a").backward()).await, [5, 3, -1]);
    assert_eq!(
        t.query_sks(partition("a").backward().limit(1)).await,
        [5, 3, -1]
    );
}

pub(super) async fn an_empty_partition_is_an_empty_page(t: &mut Fixture) {
    t.create(sorted()).await;
    let page = t.query(partition("nobody")).await.unwrap();
    assert_eq!(page.items, Vec::<Item>::new());
    assert_eq!((page.count, page.scanned_count), (0, 0));
    assert_eq!(page.last_key, None);
}

pub(super) async fn each_operator_of_the_sort_key(t: &mut Fixture) {
    t.create(sorted()).await;
    t.fill("Sorted", rows("a", [-2, 0, 1, 2, 10])).await;
    t.fill("Sorted", rows("b", [1])).await;
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
        assert_eq!(t.query_sks(range(op.clone())).await, expected, "{op:?}");
        let mut descending = expected.to_vec();
        descending.reverse();
        let backward = t.query_all(range(op.clone()).backward()).await;
        assert_eq!(sks(&backward), descending, "{op:?} backward");
    }
}

pub(super) async fn numbers_sort_by_value(t: &mut Fixture) {
    t.create(sorted()).await;
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
    // Put in another order than the one that is expected back.
    for text in ascending.iter().rev() {
        t.put("Sorted", row("a", number(text))).await.unwrap();
    }
    let items = t.query_all(partition("a")).await;
    let expected: Vec<Item> = ascending
        .iter()
        .map(|text| row("a", number(text)))
        .collect();
    assert_eq!(items, expected);
}

pub(super) async fn text_sorts_by_its_bytes(t: &mut Fixture) {
    t.create(sorted_by(KeyKind::S)).await;
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
    for text in ascending.iter().rev() {
        t.put("Sorted", row("a", *text)).await.unwrap();
    }
    let items = t.query_all(partition("a")).await;
    let expected: Vec<Item> = ascending.iter().map(|text| row("a", *text)).collect();
    assert_eq!(items, expected);
}

pub(super) async fn binary_sorts_as_unsigned_bytes(t: &mut Fixture) {
    t.create(sorted_by(KeyKind::B)).await;
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
    for bytes in ascending.iter().rev() {
        t.put("Sorted", row("a", *bytes)).await.unwrap();
    }
    let items = t.query_all(partition("a")).await;
    let expected: Vec<Item> = ascending.iter().map(|bytes| row("a", *bytes)).collect();
    assert_eq!(items, expected);
    let prefixed = range(KeyOp::BeginsWith(binary(&[255])));
    assert_eq!(
        t.query_all(prefixed).await,
        [row("a", binary(&[255])), row("a", binary(&[255, 0]))]
    );
}

pub(super) async fn begins_with_reads_a_prefix(t: &mut Fixture) {
    t.create(sorted_by(KeyKind::S)).await;
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
        t.put("Sorted", row("a", sk)).await.unwrap();
    }
    let items = t.query_all(range(KeyOp::BeginsWith("ab".into()))).await;
    let expected = ["ab", "ab\0", "abc", "ab\u{10FFFF}", "ab\u{10FFFF}x"];
    assert_eq!(items, expected.map(|sk| row("a", sk)));
    let none = t.query_all(range(KeyOp::BeginsWith("x".into()))).await;
    assert_eq!(none, Vec::<Item>::new());
}

pub(super) async fn numbers_and_bytes_part_too(t: &mut Fixture) {
    t.create(TableDef::builder("Numbers", "pk", KeyKind::N).sort_key("sk", KeyKind::S))
        .await;
    for pk in [1, 10, -1] {
        t.fill("Numbers", [Item::new().with("pk", pk).with("sk", "x")])
            .await;
    }
    let query = Query::new("Numbers", KeyCondition::partition("pk", number("1.0")));
    let expected = Item::new().with("pk", 1).with("sk", "x");
    assert_eq!(t.query_all(query).await, [expected]);
}

pub(super) async fn a_table_without_sort_key_can_be_queried(t: &mut Fixture) {
    t.create(plain()).await;
    t.fill("Plain", [item("a").with("v", 1), item("b")]).await;
    let query = Query::new("Plain", KeyCondition::partition("pk", "a"));
    let page = t.query(query).await.unwrap();
    assert_eq!(page.items, [item("a").with("v", 1)]);
    assert_eq!(page.last_key, None);
}

pub(super) async fn filters_after_reading(t: &mut Fixture) {
    t.create(sorted()).await;
    t.fill(
        "Sorted",
        (1..=6).map(|n| row("a", n).with("even", n % 2 == 0)),
    )
    .await;
    let even = Condition::eq(Path::from("even"), true);
    let page = t.query(partition("a").filter(even.clone())).await.unwrap();
    assert_eq!(sks(&page.items), [2, 4, 6]);
    assert_eq!((page.count, page.scanned_count), (3, 6));

    // The limit counts what is read, not what is returned.
    let page = t
        .query(partition("a").filter(even.clone()).limit(3))
        .await
        .unwrap();
    assert_eq!(sks(&page.items), [2]);
    assert_eq!((page.count, page.scanned_count), (1, 3));
    assert_eq!(
        page.last_key,
        Some(row("a", 3)),
        "the last item that was read"
    );

    // A page without hits still says where to go on.
    let nothing = Condition::attribute_exists("nothing");
    let page = t
        .query(partition("a").filter(nothing).limit(2))
        .await
        .unwrap();
    assert_eq!((page.count, page.scanned_count), (0, 2));
    assert_eq!(page.last_key, Some(row("a", 2)));
}

pub(super) async fn filters_see_more_than_the_projection(t: &mut Fixture) {
    t.create(sorted()).await;
    t.fill(
        "Sorted",
        (1..=3).map(|n| row("a", n).with("v", n).with("w", "x")),
    )
    .await;
    let mut query = partition("a").filter(condition("v > :one", &values! {"one" => 1}));
    query.projection = Some(projection("w"));
    let page = t.query(query).await.unwrap();
    assert_eq!(
        page.items,
        [Item::new().with("w", "x"), Item::new().with("w", "x")]
    );
}

pub(super) async fn filters_leave_the_key_to_the_key_condition(t: &mut Fixture) {
    t.create(sorted()).await;
    for name in ["pk", "sk"] {
        let filtered = partition("a").filter(Condition::attribute_exists(name));
        refused(
            t.query(filtered).await,
            &format!(
                "Filter Expression can only contain non-primary key attributes: Primary key attribute: {name}"
            ),
        );
    }
}

pub(super) async fn returns_only_what_was_selected(t: &mut Fixture) {
    t.create(sorted()).await;
    t.fill(
        "Sorted",
        [row("a", 1).with("v", 1), row("a", 2).with("w", 2)],
    )
    .await;
    let mut query = partition("a");
    query.projection = Some(projection("v"));
    let page = t.query(query.clone()).await.unwrap();
    assert_eq!(
        page.items,
        [Item::new().with("v", 1), Item::new()],
        "keys are not added"
    );
    query.select = Some(Select::SpecificAttributes);
    assert_eq!(t.query(query).await.unwrap().items.len(), 2);

    let mut count = partition("a").limit(1);
    count.select = Some(Select::Count);
    let page = t.query(count).await.unwrap();
    assert_eq!(page.items, Vec::<Item>::new());
    assert_eq!((page.count, page.scanned_count), (1, 1));
    assert_eq!(page.last_key, Some(row("a", 1)));

    let mut all = partition("a");
    all.select = Some(Select::AllAttributes);
    assert_eq!(
        t.query(all).await.unwrap().items[0],
        row("a", 1).with("v", 1)
    );
}

pub(super) async fn selections_must_fit(t: &mut Fixture) {
    t.create(sorted()).await;
    let select = |which, paths: Option<&str>| {
        let mut query = partition("a");
        query.select = Some(which);
        query.projection = paths.map(projection);
        query
    };
    refused(
        t.query(select(Select::SpecificAttributes, None)).await,
        "Must specify the AttributesToGet or ProjectionExpression when choosing to get SPECIFIC_ATTRIBUTES",
    );
    refused(
        t.query(select(Select::AllAttributes, Some("v"))).await,
        "Cannot specify the ProjectionExpression when choosing to get ALL_ATTRIBUTES",
    );
    refused(
        t.query(select(Select::Count, Some("v"))).await,
        "Cannot specify the ProjectionExpression when choosing to get only the Count",
    );
    refused(
        t.query(select(Select::AllProjectedAttributes, None)).await,
        "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
    );
}

pub(super) async fn key_conditions_must_fit_the_key(t: &mut Fixture) {
    t.create(sorted()).await;
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
        refused(t.query(Query::new("Sorted", condition)).await, detail);
    }
}

pub(super) async fn key_values_must_not_be_empty(t: &mut Fixture) {
    t.create(sorted_by(KeyKind::S)).await;
    refused(
        t.query(partition("")).await,
        "The AttributeValue for a key attribute cannot contain an empty string value. Key: pk",
    );
    refused(
        t.query(range(KeyOp::Eq("".into()))).await,
        "The AttributeValue for a key attribute cannot contain an empty string value. Key: sk",
    );
}

pub(super) async fn begins_with_needs_text_or_bytes(t: &mut Fixture) {
    t.create(sorted()).await;
    refused(
        t.query(range(KeyOp::BeginsWith(1.into()))).await,
        "operator or function: begins_with, operand type: N",
    );
}

pub(super) async fn bounds_must_be_in_order(t: &mut Fixture) {
    t.create(sorted()).await;
    refused(
        t.query(range(KeyOp::Between(2.into(), 1.into()))).await,
        "The BETWEEN operator requires upper bound to be greater than or equal to lower bound",
    );
}

pub(super) async fn sees_every_write_answered_before(t: &mut Fixture) {
    t.create(sorted()).await;
    for n in 0..20 {
        t.put("Sorted", row("a", n)).await.unwrap();
        let page = t.query(partition("a").consistent()).await.unwrap();
        assert_eq!(page.count, usize::try_from(n).unwrap() + 1);
    }
}

pub(super) async fn a_missing_table_or_index_is_named(t: &mut Fixture) {
    let query = Query::new("Nowhere", KeyCondition::partition("pk", "a"));
    no_table(t.query(query).await);
    t.create(sorted()).await;
    refused(
        t.query(partition("a").index("nothing")).await,
        "The table does not have the specified index: nothing",
    );
}

pub(super) async fn values_of_any_type_come_back(t: &mut Fixture) {
    t.create(sorted()).await;
    let full = every_type("a").with("sk", 1);
    t.put("Sorted", full.clone()).await.unwrap();
    assert_eq!(t.query_all(partition("a")).await, [full]);
    let text = Condition::eq(Path::from("null"), Value::Null);
    assert_eq!(t.query_all(partition("a").filter(text)).await.len(), 1);
}
