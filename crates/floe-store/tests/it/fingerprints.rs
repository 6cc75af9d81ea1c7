//! Fingerprints distinguish requests by everything that they write, and by nothing else.

use std::collections::HashMap;

use floe_store::capacity::ReturnConsumedCapacity;
use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::op::{
    ConditionCheck, DeleteItem, PutItem, ReturnValues, TransactWrite, TransactWriteItems,
    UpdateItem, WriteItem,
};
use floe_store::{Item, Number, Set, Value, ValueType};

use crate::id;

/// Asserts that all writes have different fingerprints.
fn expect_distinct(writes: Vec<WriteItem>) {
    let mut seen: HashMap<u128, WriteItem> = HashMap::new();
    for write in writes {
        let single = write.fingerprint();
        let action = match write.clone() {
            WriteItem::Put(put) => TransactWrite::Put(put),
            WriteItem::Update(update) => TransactWrite::Update(update),
            WriteItem::Delete(delete) => TransactWrite::Delete(delete),
        };
        // A transaction of one action differs from the single write.
        let transaction = TransactWriteItems::new([action]).fingerprint();
        for fingerprint in [single, transaction] {
            if let Some(other) = seen.insert(fingerprint, write.clone()) {
                panic!("the same fingerprint for\n  {write:?}\n  {other:?}");
            }
        }
    }
}

fn put(item: Item) -> PutItem {
    PutItem::new("Simple", item)
}

fn a() -> Path {
    Path::attribute("a")
}

#[test]
fn different_values_have_different_fingerprints() {
    let number = |text: &str| Value::N(text.parse().unwrap());
    let strings = |elements: &[&str]| Set::new(elements.iter().map(|e| (*e).to_owned())).unwrap();
    let values = vec![
        Value::from(""),
        Value::from("1"),
        Value::from("12"),
        number("1"),
        number("12"),
        number("-1"),
        number("1e100"),
        Value::from(b"1".to_vec()),
        Value::from(Vec::<u8>::new()),
        Value::from(true),
        Value::from(false),
        Value::Null,
        Value::M(Item::new()),
        Value::M(Item::new().with("a", 1)),
        Value::M(Item::new().with("a", 1).with("b", 1)),
        Value::M(Item::new().with("a", Value::M(Item::new().with("b", 1)))),
        Value::L(vec![]),
        Value::L(vec![Value::from(1)]),
        Value::L(vec![Value::from(1), Value::from(2)]),
        Value::L(vec![Value::from(12)]),
        Value::L(vec![Value::L(vec![Value::from(1)]), Value::from(2)]),
        Value::L(vec![Value::L(vec![Value::from(1), Value::from(2)])]),
        Value::from(strings(&["a", "b"])),
        Value::from(strings(&["ab"])),
        Value::from(Set::new([Number::from(1), Number::from(2)]).unwrap()),
        Value::from(Set::new([Number::from(12)]).unwrap()),
        Value::from(Set::new([b"a".to_vec(), b"b".to_vec()]).unwrap()),
    ];
    expect_distinct(
        values
            .into_iter()
            .map(|value| put(id("x").with("v", value)).into())
            .collect(),
    );
}

#[test]
fn equal_values_have_equal_fingerprints() {
    let of = |text: &str| {
        let value = Value::N(text.parse().unwrap());
        WriteItem::from(put(id("x").with("v", value))).fingerprint()
    };
    assert_eq!(of("1"), of("1.00"));
    assert_eq!(of("1000"), of("1e3"));
}

#[test]
fn different_conditions_have_different_fingerprints() {
    let eq = |value: i32| Condition::eq(a(), value);
    let b = || Path::attribute("b");
    let conditions = vec![
        eq(1),
        eq(2),
        Condition::eq(b(), 1),
        Condition::eq(1, a()),
        Condition::ne(a(), 1),
        Condition::lt(a(), 1),
        Condition::le(a(), 1),
        Condition::gt(a(), 1),
        Condition::ge(a(), 1),
        Condition::between(a(), 1, 2),
        Condition::between(a(), 2, 1),
        Condition::is_in(a(), [1, 2]),
        Condition::is_in(a(), [1]),
        eq(1).and(eq(2)),
        eq(2).and(eq(1)),
        eq(1).or(eq(2)),
        eq(1).and(eq(2)).or(eq(3)),
        eq(1).and(eq(2).or(eq(3))),
        eq(1).not(),
        Condition::attribute_exists(a()),
        Condition::attribute_exists(a().field("b")),
        Condition::attribute_exists(a().index(1)),
        Condition::attribute_exists(a().field("1")),
        Condition::attribute_not_exists(a()),
        Condition::attribute_type(a(), ValueType::S),
        Condition::attribute_type(a(), ValueType::N),
        Condition::begins_with(a(), "x"),
        Condition::contains(a(), "x"),
        Condition::eq(floe_store::expr::Operand::Size(a()), 1),
    ];
    let mut writes: Vec<WriteItem> = vec![put(id("x")).into()];
    for condition in conditions {
        writes.push(put(id("x")).condition(condition.clone()).into());
        writes.push(
            DeleteItem::new("Simple", id("x"))
                .condition(condition)
                .into(),
        );
    }
    expect_distinct(writes);
}

#[test]
fn different_updates_have_different_fingerprints() {
    let b = || Path::attribute("b");
    let updates = vec![
        Update::new(),
        Update::new().set("a", 1),
        Update::new().set("a", 2),
        Update::new().set("b", 1),
        Update::new().set("a", b()),
        Update::new().set_sum("a", b(), 1),
        Update::new().set_difference("a", b(), 1),
        Update::new().set_sum("a", 1, b()),
        Update::new().set("a", SetOperand::if_not_exists(b(), 1)),
        Update::new().set("a", SetOperand::list_append(b(), a())),
        Update::new().set("a", SetOperand::list_append(a(), b())),
        Update::new().remove("a"),
        Update::new().remove("a").remove("b"),
        Update::new().remove("b").remove("a"),
        Update::new().add("a", 1),
        Update::new().delete("a", Set::new(["x".to_owned()]).unwrap()),
        Update::new().add("a", Set::new(["x".to_owned()]).unwrap()),
        Update::new().set("a", 1).remove("b"),
    ];
    let update = |update| UpdateItem::new("Simple", id("x"), update).into();
    expect_distinct(updates.into_iter().map(update).collect());
}

#[test]
fn different_writes_have_different_fingerprints() {
    let exists = || Condition::attribute_exists(a());
    expect_distinct(vec![
        put(id("x")).into(),
        put(id("y")).into(),
        put(id("x").with("id2", "x")).into(),
        PutItem::new("Other", id("x")).into(),
        put(id("x")).condition(exists()).into(),
        put(id("x"))
            .condition(exists())
            .return_old_on_failure()
            .into(),
        DeleteItem::new("Simple", id("x")).into(),
        DeleteItem::new("Simple", id("y")).into(),
        UpdateItem::new("Simple", id("x"), Update::new()).into(),
        UpdateItem::new("Simple", id("x"), Update::new())
            .condition(exists())
            .into(),
    ]);
}

#[test]
fn return_options_do_not_affect_the_fingerprint() {
    let plain = WriteItem::from(put(id("x"))).fingerprint();
    let mut write = put(id("x")).return_values(ReturnValues::AllOld).token("t");
    write.return_capacity = ReturnConsumedCapacity::Total;
    write.return_collection = true;
    assert_eq!(WriteItem::from(write).fingerprint(), plain);

    let transaction = || TransactWriteItems::new([put(id("x")).into()]);
    let mut write = transaction().token("t");
    write.return_capacity = ReturnConsumedCapacity::Indexes;
    write.return_collection = true;
    assert_eq!(write.fingerprint(), transaction().fingerprint());
}

#[test]
fn order_of_actions_affects_the_fingerprint() {
    let check = |value: i32| {
        let condition = Condition::eq(a(), value);
        TransactWrite::from(ConditionCheck::new("Simple", id("c"), condition))
    };
    let (x, y) = (
        || TransactWrite::from(put(id("x"))),
        || TransactWrite::from(put(id("y"))),
    );
    let all = [
        vec![x()],
        vec![y()],
        vec![x(), y()],
        vec![y(), x()],
        vec![x(), check(1)],
        vec![x(), check(2)],
        vec![check(1), x()],
    ];
    let fingerprints: std::collections::HashSet<u128> = all
        .iter()
        .map(|actions| TransactWriteItems::new(actions.clone()).fingerprint())
        .collect();
    assert_eq!(fingerprints.len(), all.len());
}

#[test]
fn fingerprints_are_stable_across_builds() {
    // Users have these numbers on disk: they must never change.
    let write = WriteItem::from(
        put(id("x")
            .with("n", 12)
            .with("l", Value::L(vec![Value::Null, Value::from(true)])))
        .condition(Condition::attribute_not_exists(a())),
    );
    assert_eq!(
        format!("{:032x}", write.fingerprint()),
        "9906b15cb982b4bdeb77512dcde97f7c"
    );
    let update = Update::new().set_sum("a", a(), 1).remove(a().index(3));
    let transaction = TransactWriteItems::new([
        UpdateItem::new("Simple", id("x"), update).into(),
        ConditionCheck::new("Simple", id("y"), Condition::ge(a(), 2)).into(),
    ]);
    assert_eq!(
        format!("{:032x}", transaction.fingerprint()),
        "4f76d049eaa58f36172987bbb394d97e"
    );
}
