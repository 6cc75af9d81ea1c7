//! Global indexes with several attributes in their keys.

use floe_store::expr::{KeyCondition, KeyOp};
use floe_store::op::Query;
use floe_store::table::{KeyKind, Projection, TableBuilder};
use floe_store::{Item, Value};

use super::fixture::*;

fn multi() -> TableBuilder {
    plain().global_index(
        "multi",
        [("region", KeyKind::S), ("kind", KeyKind::S)],
        [("made", KeyKind::N), ("label", KeyKind::S)],
        Projection::All,
    )
}

fn entry(pk: &str, region: &str, kind: &str, made: i32, label: &str) -> Item {
    item(pk)
        .with("region", region)
        .with("kind", kind)
        .with("made", made)
        .with("label", label)
}

fn shoes() -> KeyCondition {
    KeyCondition::partition("region", "eu").and("kind", KeyOp::Eq("shoes".into()))
}

pub(super) async fn several_attributes_may_form_an_index_key(t: &mut Fixture) {
    t.create(multi()).await;
    t.fill(
        "Plain",
        [
            entry("1", "eu", "shoes", 2024, "b"),
            entry("2", "eu", "shoes", 2024, "a"),
            entry("3", "eu", "shoes", 2023, "z"),
            entry("4", "eu", "hats", 2024, "a"),
            entry("5", "us", "shoes", 2024, "a"),
            // Without one of the attributes an item is not in the index.
            item("6")
                .with("region", "eu")
                .with("kind", "shoes")
                .with("made", 2024),
        ],
    )
    .await;
    let query = |condition| Query::new("Plain", condition).index("multi");
    let ordered = |items: &[Item]| -> Vec<String> {
        items
            .iter()
            .map(|i| i.get("pk").and_then(Value::as_s).unwrap().to_owned())
            .collect()
    };
    let whole = shoes();
    assert_eq!(
        ordered(&t.query_all(query(whole.clone())).await),
        ["3", "2", "1"]
    );
    assert_eq!(
        ordered(&t.query_all(query(whole.clone()).limit(1)).await),
        ["3", "2", "1"]
    );
    assert_eq!(
        ordered(&t.query_all(query(whole).backward()).await),
        ["1", "2", "3"]
    );
    let year = shoes().and("made", KeyOp::Eq(2024.into()));
    assert_eq!(ordered(&t.query_all(query(year.clone())).await), ["2", "1"]);
    let since = shoes().and("made", KeyOp::Gt(2023.into()));
    assert_eq!(ordered(&t.query_all(query(since)).await), ["2", "1"]);
    let named = year.and("label", KeyOp::BeginsWith("b".into()));
    assert_eq!(ordered(&t.query_all(query(named)).await), ["1"]);
}

pub(super) async fn conditions_on_several_attributes_go_left_to_right(t: &mut Fixture) {
    t.create(multi()).await;
    let query = |condition| Query::new("Plain", condition).index("multi");
    refused(
        t.query(query(KeyCondition::partition("region", "eu")))
            .await,
        "must have equality conditions specified in the query",
    );
    refused(
        t.query(query(shoes().and("label", KeyOp::Eq("a".into()))))
            .await,
        "must have equality conditions specified in the query because a condition is present on key attribute",
    );
    let ranged_twice = shoes()
        .and("made", KeyOp::Gt(1.into()))
        .and("label", KeyOp::Eq("a".into()));
    refused(
        t.query(query(ranged_twice)).await,
        "must have equality conditions specified in the query because a condition is present on key attribute",
    );
}

pub(super) async fn attributes_of_a_key_do_not_run_into_each_other(t: &mut Fixture) {
    t.create(multi()).await;
    t.fill(
        "Plain",
        [entry("1", "a", "bc", 1, "x"), entry("2", "ab", "c", 1, "x")],
    )
    .await;
    let condition = KeyCondition::partition("region", "a").and("kind", KeyOp::Eq("bc".into()));
    let found = t
        .query_all(Query::new("Plain", condition).index("multi"))
        .await;
    assert_eq!(texts(&found, "pk"), ["1"]);
}
