//! Tests of applying updates.

use crate::error::{Error, Result};
use crate::expr::parse::Parser;
use crate::expr::tests::{Random, list, numbers, path, strings};
use crate::expr::update::{SetOperand, Update};
use crate::item::Item;
use crate::number::Number;
use crate::value::Value;

const PATH: &str = "The document path provided in the update expression is invalid for update";
const TYPE: &str = "An operand in the update expression has an incorrect data type";
const MISSING: &str =
    "The provided expression refers to an attribute that does not exist in the item";

/// Parses an update, in which `values` are `:0`, `:1` and so on.
#[track_caller]
fn update(text: &str, values: &[Value]) -> Update {
    let values: std::collections::BTreeMap<_, _> = values
        .iter()
        .enumerate()
        .map(|(n, value)| (format!(":{n}"), value.clone()))
        .collect();
    let given = (!values.is_empty()).then_some(&values);
    match Parser::new(None, given).update(text) {
        Ok(update) => update,
        Err(error) => panic!("the test case does not parse: text={text} error={error}"),
    }
}

/// Applies the update to an item, packed and unpacked, and compares the results byte by byte.
#[track_caller]
fn apply(update: &Update, before: &Item) -> Result<Item> {
    let bytes = |item: &Item| {
        let mut bytes = Vec::new();
        item.pack_into(&mut bytes);
        bytes
    };
    let after = update.apply(before);
    let packed = Item::from_packed(&bytes(before)).expect("test items are not too deep");
    let after_packed = update.apply(&packed);
    assert_eq!(after_packed, after, "update={update:?} item={before:?}");
    if let (Ok(one), Ok(other)) = (&after, &after_packed) {
        assert_eq!(
            bytes(one),
            bytes(other),
            "update={update:?} item={before:?}"
        );
    }
    after
}

#[track_caller]
fn check(before: &Item, text: &str, values: &[Value], after: &Item) {
    let result = apply(&update(text, values), before);
    assert_eq!(result.as_ref(), Ok(after), "text={text}");
}

#[track_caller]
fn rejected(before: &Item, text: &str, values: &[Value], message: &str) {
    let result = apply(&update(text, values), before);
    assert_eq!(result, Err(Error::validation(message)), "text={text}");
}

fn number(text: &str) -> Value {
    Value::N(text.parse::<Number>().unwrap())
}

#[test]
fn set_replaces_and_adds_attributes() {
    let item = Item::new().with("a", 1).with("b", "x");
    check(
        &item,
        "SET a = :0",
        &["y".into()],
        &item.clone().with("a", "y"),
    );
    check(
        &item,
        "SET c = :0",
        &[list([1])],
        &item.clone().with("c", list([1])),
    );
    check(
        &item,
        "SET a = b, b = a",
        &[],
        &Item::new().with("a", "x").with("b", 1),
    );
    check(
        &item,
        "SET c = b REMOVE b",
        &[],
        &Item::new().with("a", 1).with("c", "x"),
    );
    check(
        &item,
        "REMOVE b SET c = b",
        &[],
        &Item::new().with("a", 1).with("c", "x"),
    );
    check(&item, "SET a = a", &[], &item);
    check(
        &Item::new(),
        "SET a = :0",
        &[1.into()],
        &Item::new().with("a", 1),
    );
    rejected(&item, "SET c = d", &[], MISSING);
    rejected(&item, "SET c = :0, d = c", &[1.into()], MISSING);
    rejected(&item, "SET c = a.b", &[], MISSING);
    rejected(&Item::new(), "SET a = b", &[], MISSING);
}

#[test]
fn set_changes_nested_values() {
    let inner = Item::new().with("x", 1).with("l", list([1, 2]));
    let item = Item::new().with("m", inner.clone()).with("s", "x");
    let with = |inner: Item| item.clone().with("m", inner);
    check(
        &item,
        "SET m.x = :0",
        &[2.into()],
        &with(inner.clone().with("x", 2)),
    );
    check(
        &item,
        "SET m.y = :0",
        &[2.into()],
        &with(inner.clone().with("y", 2)),
    );
    check(
        &item,
        "SET m.l[1] = :0",
        &[9.into()],
        &with(inner.with("l", list([1, 9]))),
    );
    check(
        &item,
        "SET m.z = m.l[0], m.x = s REMOVE m.l",
        &[],
        &with(Item::new().with("x", "x").with("z", 1)),
    );
    for target in [
        "s.x", "s[0]", "m[0]", "m.l.x", "nil.x", "nil[0]", "m.y.z", "m.l[2].x", "m.x.y",
    ] {
        rejected(&item, &format!("SET {target} = :0"), &[1.into()], PATH);
        rejected(&item, &format!("REMOVE {target}"), &[], PATH);
        rejected(&item, &format!("ADD {target} :0"), &[1.into()], PATH);
        rejected(
            &item,
            &format!("DELETE {target} :0"),
            &[strings(["x"])],
            PATH,
        );
        rejected(
            &Item::new(),
            &format!("SET {target} = :0"),
            &[1.into()],
            PATH,
        );
    }
}

#[test]
fn indexes_past_the_end_append_in_order() {
    let item = Item::new().with("l", list([1, 2, 3]));
    let after = |numbers: &[i32]| {
        let list: Vec<Value> = numbers.iter().map(|&n| n.into()).collect();
        Item::new().with("l", list)
    };
    check(&item, "SET l[3] = :0", &[4.into()], &after(&[1, 2, 3, 4]));
    check(&item, "SET l[7] = :0", &[4.into()], &after(&[1, 2, 3, 4]));
    check(
        &item,
        "SET l[84] = :0, l[37] = :1, l[1] = :2, l[50] = :3",
        &[84.into(), 37.into(), 20.into(), 50.into()],
        &after(&[1, 20, 3, 37, 50, 84]),
    );
    check(
        &item,
        "SET l[9] = :0 ADD l[5] :1",
        &[9.into(), 5.into()],
        &after(&[1, 2, 3, 5, 9]),
    );
    check(
        &item,
        "ADD l[4] :0 SET l[3] = :1",
        &[4.into(), 3.into()],
        &after(&[1, 2, 3, 3, 4]),
    );
    // No clause sees the effects of another.
    check(
        &item,
        "SET l[9] = :0 REMOVE l[3]",
        &[9.into()],
        &after(&[1, 2, 3, 9]),
    );
    check(
        &item,
        "SET l[9] = :0 DELETE l[3] :0",
        &[numbers([9])],
        &Item::new().with("l", vec![1.into(), 2.into(), 3.into(), numbers([9])]),
    );
    rejected(
        &item,
        "SET l[9] = :0, l[3].x = :0",
        &[Item::new().into()],
        PATH,
    );
    rejected(
        &item,
        "SET l[9] = :0 REMOVE l[3].x",
        &[Item::new().into()],
        PATH,
    );
    let empty = Item::new().with("l", list([]));
    check(
        &empty,
        "SET l[5] = :0, l[2] = :1",
        &[5.into(), 2.into()],
        &after(&[2, 5]),
    );
}

#[test]
fn remove_refers_to_indexes_of_the_old_list() {
    let item = Item::new().with("l", list([0, 1, 2, 3, 4, 5]));
    let after = |numbers: &[i32]| {
        let list: Vec<Value> = numbers.iter().map(|&n| n.into()).collect();
        Item::new().with("l", list)
    };
    check(&item, "REMOVE l[0]", &[], &after(&[1, 2, 3, 4, 5]));
    check(&item, "REMOVE l[0], l[1], l[5]", &[], &after(&[2, 3, 4]));
    check(&item, "REMOVE l[5], l[1], l[0]", &[], &after(&[2, 3, 4]));
    check(
        &item,
        "REMOVE l[1] SET l[3] = :0",
        &[30.into()],
        &after(&[0, 2, 30, 4, 5]),
    );
    check(
        &item,
        "SET l[3] = :0, l[9] = :0 REMOVE l[1], l[9999]",
        &[30.into()],
        &after(&[0, 2, 30, 4, 5, 30]),
    );
    check(&item, "REMOVE l[17], m", &[], &item);
    let all: Vec<_> = (0..6).map(|n| format!("l[{n}]")).collect();
    check(
        &item,
        &format!("REMOVE {}", all.join(", ")),
        &[],
        &after(&[]),
    );

    let nested = Item::new().with("l", vec![list([1, 2]), list([3]), list([4, 5])]);
    check(
        &nested,
        "REMOVE l[0][1], l[1], l[2][0]",
        &[],
        &Item::new().with("l", vec![list([1]), list([5])]),
    );
    let map = Item::new().with("m", Item::new().with("x", 1));
    check(&map, "REMOVE m.x", &[], &Item::new().with("m", Item::new()));
    check(&map, "REMOVE m.y", &[], &map);
    check(&map, "REMOVE m", &[], &Item::new());
    check(&Item::new(), "REMOVE m", &[], &Item::new());
}

#[test]
fn sums_are_exact() {
    let item = Item::new()
        .with("n", 10)
        .with("s", "x")
        .with("tenth", number("0.1"));
    check(
        &item,
        "SET n = n + :0",
        &[5.into()],
        &item.clone().with("n", 15),
    );
    check(
        &item,
        "SET n = :0 - n",
        &[5.into()],
        &item.clone().with("n", -5),
    );
    check(&item, "SET n = n - n", &[], &item.clone().with("n", 0));
    check(
        &item,
        "SET d = tenth + :0",
        &[number("0.2")],
        &item.clone().with("d", number("0.3")),
    );
    check(
        &item,
        "SET v = if_not_exists(v, :0) + :1",
        &[0.into(), 1.into()],
        &item.clone().with("v", 1),
    );
    rejected(&item, "SET n = n + s", &[], TYPE);
    rejected(&item, "SET n = s - :0", &[1.into()], TYPE);
    rejected(&item, "SET n = x + :0", &[1.into()], MISSING);
    rejected(&item, "SET n = if_not_exists(x, s) + :0", &[1.into()], TYPE);
    let overflow =
        "Number overflow. Attempting to store a number with magnitude larger than supported range";
    let most = number("9.9E125");
    rejected(
        &item,
        "SET n = :0 + :0",
        std::slice::from_ref(&most),
        overflow,
    );
    let full = Item::new().with("n", most.clone());
    rejected(&full, "ADD n :0", std::slice::from_ref(&most), overflow);
    rejected(&full, "SET n = :0 - n", &[number("-9.9E125")], overflow);
}

#[test]
fn list_append_concatenates() {
    let item = Item::new().with("l", list([1])).with("s", "x");
    let append = |text: &str, expected: Value| {
        check(
            &item,
            &format!("SET l = {text}"),
            &[list([2, 3])],
            &item.clone().with("l", expected),
        );
    };
    append("list_append(l, :0)", list([1, 2, 3]));
    append("list_append(:0, l)", list([2, 3, 1]));
    append("list_append(:0, :0)", list([2, 3, 2, 3]));
    append("list_append(l, l)", list([1, 1]));
    append("list_append(if_not_exists(nil, :0), l)", list([2, 3, 1]));
    append("if_not_exists(nil, list_append(l, :0))", list([1, 2, 3]));
    rejected(&item, "SET l = list_append(nil, :0)", &[list([])], MISSING);
    rejected(&item, "SET l = list_append(:0, nil)", &[list([])], MISSING);
    rejected(&item, "SET l = list_append(s, :0)", &[list([])], TYPE);
    rejected(&item, "SET l = list_append(:0, s)", &[list([])], TYPE);
    rejected(
        &item,
        "SET l = list_append(l, if_not_exists(nil, :0))",
        &["x".into()],
        TYPE,
    );
}

#[test]
fn if_not_exists_prefers_the_existing_value() {
    let item = Item::new().with("a", 1).with("nul", Value::Null);
    check(&item, "SET a = if_not_exists(a, :0)", &[2.into()], &item);
    check(
        &item,
        "SET b = if_not_exists(b, :0)",
        &[2.into()],
        &item.clone().with("b", 2),
    );
    check(
        &item,
        "SET b = if_not_exists(nul, :0)",
        &[2.into()],
        &item.clone().with("b", Value::Null),
    );
    check(
        &item,
        "SET b = if_not_exists(x.y[1], :0)",
        &[2.into()],
        &item.clone().with("b", 2),
    );
    check(
        &item,
        "SET b = if_not_exists(x, if_not_exists(y, a))",
        &[],
        &item.clone().with("b", 1),
    );
    rejected(&item, "SET b = if_not_exists(x, y)", &[], MISSING);
}

#[test]
fn add_sums_numbers_and_unites_sets() {
    let item = Item::new()
        .with("n", 3)
        .with("s", "x")
        .with("ss", strings(["a", "b"]))
        .with("ns", numbers([1]))
        .with("l", vec![Value::from(1), strings(["a"])])
        .with("m", Item::new());
    check(&item, "ADD n :0", &[4.into()], &item.clone().with("n", 7));
    check(
        &item,
        "ADD n :0",
        &[(-4).into()],
        &item.clone().with("n", -1),
    );
    check(&item, "ADD x :0", &[4.into()], &item.clone().with("x", 4));
    check(
        &item,
        "ADD ss :0",
        &[strings(["b", "c"])],
        &item.clone().with("ss", strings(["a", "b", "c"])),
    );
    check(
        &item,
        "ADD x :0",
        &[strings(["b"])],
        &item.clone().with("x", strings(["b"])),
    );
    check(
        &item,
        "ADD m.x :0",
        &[4.into()],
        &item.clone().with("m", Item::new().with("x", 4)),
    );
    check(
        &item,
        "ADD l[0] :0, l[1] :1",
        &[4.into(), strings(["b"])],
        &item
            .clone()
            .with("l", vec![Value::from(5), strings(["a", "b"])]),
    );
    for (name, value) in [
        ("s", 1.into()),
        ("n", numbers([1])),
        ("ss", numbers([1])),
        ("ns", 1.into()),
        ("l", strings(["a"])),
        ("m", 1.into()),
        ("l[1]", 1.into()),
    ] {
        rejected(&item, &format!("ADD {name} :0"), &[value], TYPE);
    }
    // Types are checked before paths, in all clauses.
    rejected(&item, "SET nil.x = :0 ADD s :0", &[1.into()], TYPE);
    rejected(&item, "REMOVE nil.x DELETE n :0", &[numbers([1])], TYPE);
    check(
        &Item::new(),
        "ADD x :0",
        &[1.into()],
        &Item::new().with("x", 1),
    );
}

#[test]
fn delete_removes_set_elements() {
    let item = Item::new()
        .with("ss", strings(["a", "b", "c"]))
        .with("ns", numbers([1, 2]))
        .with(
            "l",
            vec![strings(["a"]), strings(["a", "b"]), Value::from(1)],
        )
        .with("m", Item::new().with("s", strings(["a"])))
        .with("n", 1);
    check(
        &item,
        "DELETE ss :0",
        &[strings(["b", "x"])],
        &item.clone().with("ss", strings(["a", "c"])),
    );
    check(&item, "DELETE ss :0", &[strings(["x"])], &item);
    check(&item, "DELETE nil :0", &[strings(["x"])], &item);
    check(&item, "DELETE m.nil :0, l[9] :0", &[strings(["x"])], &item);
    let mut without = item.clone();
    without.remove("ns");
    check(&item, "DELETE ns :0", &[numbers([1, 2, 3])], &without);
    check(
        &item,
        "DELETE m.s :0",
        &[strings(["a"])],
        &item.clone().with("m", Item::new()),
    );
    // An emptied element is removed after the other elements were changed.
    check(
        &item,
        "DELETE l[0] :0, l[1] :0 SET l[2] = :1",
        &[strings(["a"]), 9.into()],
        &item.clone().with("l", vec![strings(["b"]), Value::from(9)]),
    );
    check(
        &item,
        "DELETE l[0] :0 REMOVE l[2]",
        &[strings(["a"])],
        &item.clone().with("l", vec![strings(["a", "b"])]),
    );
    rejected(&item, "DELETE n :0", &[numbers([1])], TYPE);
    rejected(&item, "DELETE ss :0", &[numbers([1])], TYPE);
    rejected(&item, "DELETE l :0", &[strings(["a"])], TYPE);
}

#[test]
fn unchecked_update_is_rejected_by_operand_types() {
    let update = Update::new().add("x", "text");
    assert_eq!(update.apply(&Item::new()), Err(Error::validation(TYPE)));
    let update = Update::new().delete("x", 1);
    assert_eq!(update.apply(&Item::new()), Err(Error::validation(TYPE)));
    let nested = SetOperand::list_append(list([1]), SetOperand::list_append(list([2]), list([3])));
    let update = Update::new().set("x", nested);
    assert_eq!(
        update.apply(&Item::new()),
        Ok(Item::new().with("x", list([1, 2, 3])))
    );
}

#[test]
fn touched_returns_only_updated_parts() {
    let before = Item::new()
        .with("id", "k")
        .with(
            "a",
            Item::new()
                .with("b", 1)
                .with("c", list([1, 2, 3]))
                .with("d", 4),
        )
        .with("gone", true);
    let update = update(
        "SET a.b = :0, a.c[1] = :0, fresh = :0, a.c[100] = :0 REMOVE gone, nil",
        &[9.into()],
    );
    let after = update.apply(&before).unwrap();
    assert_eq!(
        update.touched(&before),
        Item::new()
            .with("a", Item::new().with("b", 1).with("c", list([2])))
            .with("gone", true)
    );
    assert_eq!(
        update.touched(&after),
        Item::new()
            .with("a", Item::new().with("b", 9).with("c", list([9])))
            .with("fresh", 9)
    );
    // The element that moved to the index of a removed one counts as touched.
    let update = Update::new().remove(path("a.c[0]"));
    let after = update.apply(&before).unwrap();
    assert_eq!(
        update.touched(&after),
        Item::new().with("a", Item::new().with("c", list([2])))
    );
    assert_eq!(Update::new().touched(&before), Item::new());
}

#[test]
fn random_updates_change_only_their_targets() {
    let mut random = Random::new(17);
    let (mut applied, mut checked) = (0, 0);
    for _ in 0..8_000 {
        let (update, item) = (random.update(), random.item(3));
        if update.check().is_err() {
            // Applying an unchecked update does not panic.
            let _ = update.apply(&item);
            continue;
        }
        let result = apply(&update, &item);
        checked += 1;
        let Ok(after) = result else { continue };
        applied += 1;
        // Attributes that no path starts with are unchanged.
        let is_target = |name: &str| update.paths().any(|path| path.root() == name);
        for (name, value) in &attributes(&item) {
            assert!(
                is_target(name) || after.get(name) == Some(value),
                "update={update:?}"
            );
        }
        for (name, _) in &attributes(&after) {
            assert!(is_target(name) || item.contains(name), "update={update:?}");
        }
        // Set paths have a value, unless removals or appends shifted indexes.
        if update.remove.is_empty() && update.delete.is_empty() {
            for (path, _) in &update.set {
                if path.resolve(&item).is_some() {
                    assert!(
                        path.resolve(&after).is_some(),
                        "update={update:?} item={item:?}"
                    );
                }
            }
        }
    }
    assert!(
        checked > 1_000 && applied > 500,
        "checked={checked} applied={applied}"
    );
}

fn attributes(item: &Item) -> Vec<(String, Value)> {
    item.iter()
        .map(|(name, value)| (name.to_string(), value.clone()))
        .collect()
}
