//! Global indexes with several attributes per key.

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

pub(super) fn index_keys_may_have_several_attributes(t: &mut Fixture) {
    t.create_with(
        multi(),
        [
            entry("1", "eu", "shoes", 2024, "b"),
            entry("2", "eu", "shoes", 2024, "a"),
            entry("3", "eu", "shoes", 2023, "z"),
            entry("4", "eu", "hats", 2024, "a"),
            entry("5", "us", "shoes", 2024, "a"),
            // An item without one of the attributes is not in the index.
            item("6")
                .with("region", "eu")
                .with("kind", "shoes")
                .with("made", 2024),
        ],
    );
    let query = |condition| Query::new("Plain", condition).index("multi");
    let found = |query| -> Vec<String> {
        let pk = |item: &Item| item.get("pk").and_then(Value::as_s).unwrap().to_owned();
        t.query_all(query).iter().map(pk).collect()
    };
    let whole = shoes();
    assert_eq!(found(query(whole.clone())), ["3", "2", "1"]);
    assert_eq!(found(query(whole.clone()).limit(1)), ["3", "2", "1"]);
    assert_eq!(found(query(whole).backward()), ["1", "2", "3"]);
    let year = shoes().and("made", KeyOp::Eq(2024.into()));
    assert_eq!(found(query(year.clone())), ["2", "1"]);
    let since = shoes().and("made", KeyOp::Gt(2023.into()));
    assert_eq!(found(query(since)), ["2", "1"]);
    let named = year.and("label", KeyOp::BeginsWith("b".into()));
    assert_eq!(found(query(named)), ["1"]);
}

pub(super) fn conditions_on_several_attributes_must_be_contiguous(t: &mut Fixture) {
    t.create(multi());
    let query = |condition| Query::new("Plain", condition).index("multi");
    let label = |condition: KeyCondition| condition.and("label", KeyOp::Eq("a".into()));
    let ranged = shoes().and("made", KeyOp::Gt(1.into()));
    rejections! {
        t.query(query(KeyCondition::partition("region", "eu")))
            => "must have equality conditions specified in the query";
        t.query(query(label(shoes())))
            => "must have equality conditions specified in the query because a condition is present on key attribute";
        t.query(query(label(ranged)))
            => "must have equality conditions specified in the query because a condition is present on key attribute";
    }
}

pub(super) fn key_attributes_are_compared_separately(t: &mut Fixture) {
    let items = [entry("1", "a", "bc", 1, "x"), entry("2", "ab", "c", 1, "x")];
    t.create_with(multi(), items);
    let condition = KeyCondition::partition("region", "a").and("kind", KeyOp::Eq("bc".into()));
    let found = t.query_all(Query::new("Plain", condition).index("multi"));
    assert_eq!(texts(&found, "pk"), ["1"]);
}
