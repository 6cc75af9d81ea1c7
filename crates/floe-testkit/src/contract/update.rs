//! UpdateItem: changes parts of an item.

use floe_store::op::{ReturnValues, UpdateItem};
use floe_store::{Error, Item, Result, Value};

use super::fixture::*;

const NO_ATTRIBUTE: &str =
    "The provided expression refers to an attribute that does not exist in the item";
const WRONG_OPERAND: &str = "An operand in the update expression has an incorrect data type";
const INVALID_PATH: &str =
    "The document path provided in the update expression is invalid for update";

/// A case of an update: the attributes other than the key, before and after, or the error message.
struct UpdateCase<'a> {
    before: Item,
    update: &'a str,
    values: Values,
    after: Result<Item, &'a str>,
}

fn check(t: &Fixture, effect: UpdateCase<'_>) {
    let case = format!("{} on {:?}", effect.update, effect.before);
    let before = effect.before.with("pk", "a");
    t.fill("Plain", [before.clone()]);
    let write = update_item("Plain", item("a"), effect.update, &effect.values);
    let response = t.write(write.return_values(ReturnValues::AllNew));
    let stored = t.get("Plain", item("a"));
    match effect.after {
        Ok(after) => {
            let response = response.unwrap_or_else(|error| panic!("{case}: {error}"));
            let after = Some(after.with("pk", "a"));
            assert_eq!(response.attributes, after, "{case}");
            assert_eq!(stored, after, "{case}");
        }
        Err(message) => {
            assert_eq!(response, Err(Error::validation(message)), "{case}");
            assert_eq!(stored, Some(before), "a rejected update changes nothing");
        }
    }
}

/// Checks rows of `before, update, values => after`.
macro_rules! update_cases {
    ($t:ident; $($before:expr, $update:literal, {$($name:literal => $value:expr),*} => $after:expr;)*) => {
        $t.create(plain());
        $(check($t, UpdateCase {
            before: $before,
            update: $update,
            values: values! {$($name => $value),*},
            after: $after,
        });)*
    };
}

fn none() -> Item {
    Item::new()
}

pub(super) fn set_adds_and_replaces_attributes(t: &mut Fixture) {
    update_cases! { t;
        none(), "SET x = :v", {"v" => 1} => Ok(none().with("x", 1));
        none().with("x", 1), "SET x = :v", {"v" => "two"} => Ok(none().with("x", "two"));
        none().with("x", 1), "SET y = :v, z = :w", {"v" => true, "w" => Value::Null}
            => Ok(none().with("x", 1).with("y", true).with("z", Value::Null));
        none().with("x", 1), "SET x = :v", {"v" => 1} => Ok(none().with("x", 1));
        none(), "SET x = :v", {"v" => strings(["a"])} => Ok(none().with("x", strings(["a"])));
        none(), "SET x = :v", {"v" => ""} => Ok(none().with("x", ""));
    }
}

pub(super) fn set_copies_values_from_before_the_update(t: &mut Fixture) {
    update_cases! { t;
        none().with("x", 1), "SET y = x", {} => Ok(none().with("x", 1).with("y", 1));
        // All right-hand sides read the item before the update.
        none().with("x", 1).with("y", 2), "SET x = y, y = x", {}
            => Ok(none().with("x", 2).with("y", 1));
        none().with("x", 1), "SET y = x REMOVE x", {} => Ok(none().with("y", 1));
        none().with("m", map([("k", 7)])), "SET y = m.k", {}
            => Ok(none().with("m", map([("k", 7)])).with("y", 7));
        none(), "SET y = x", {} => Err(NO_ATTRIBUTE);
        none().with("m", map([("k", 7)])), "SET y = m.another", {} => Err(NO_ATTRIBUTE);
        none().with("l", list([1])), "SET y = l[1]", {} => Err(NO_ATTRIBUTE);
    }
}

pub(super) fn set_computes_sums_and_differences(t: &mut Fixture) {
    update_cases! { t;
        none().with("n", 5), "SET n = n + :v", {"v" => 3} => Ok(none().with("n", 8));
        none().with("n", 5), "SET n = n - :v", {"v" => 8} => Ok(none().with("n", -3));
        none().with("n", 5), "SET m = :v - n", {"v" => 8} => Ok(none().with("n", 5).with("m", 3));
        none().with("n", 5).with("o", 6), "SET n = n + o", {} => Ok(none().with("n", 11).with("o", 6));
        none().with("n", number("0.1")), "SET n = n + :v", {"v" => number("0.2")}
            => Ok(none().with("n", number("0.3")));
        none().with("n", number("99999999999999999999999999999999999999")), "SET n = n - :v", {"v" => 1}
            => Ok(none().with("n", number("99999999999999999999999999999999999998")));
        none().with("n", 5), "SET n = n - n", {} => Ok(none().with("n", 0));
        none(), "SET n = n + :v", {"v" => 1} => Err(NO_ATTRIBUTE);
        none().with("n", "5"), "SET n = n + :v", {"v" => 1} => Err(WRONG_OPERAND);
        none().with("n", numbers([1])), "SET n = n + :v", {"v" => 1} => Err(WRONG_OPERAND);
    }
}

pub(super) fn number_overflow_is_rejected(t: &mut Fixture) {
    update_cases! { t;
        none().with("n", number("9.9999999999999999999999999999999999999E+125")),
            "SET n = n + :v", {"v" => number("9.9999999999999999999999999999999999999E+125")}
            => Err("Number overflow. Attempting to store a number with magnitude larger than supported range");
    }
}

pub(super) fn if_not_exists_uses_the_existing_value(t: &mut Fixture) {
    update_cases! { t;
        none(), "SET x = if_not_exists(x, :v)", {"v" => 1} => Ok(none().with("x", 1));
        none().with("x", 5), "SET x = if_not_exists(x, :v)", {"v" => 1} => Ok(none().with("x", 5));
        none().with("x", Value::Null), "SET x = if_not_exists(x, :v)", {"v" => 1}
            => Ok(none().with("x", Value::Null));
        none(), "SET n = if_not_exists(n, :zero) + :one", {"zero" => 0, "one" => 1}
            => Ok(none().with("n", 1));
        none().with("y", 2), "SET x = if_not_exists(x, y)", {} => Ok(none().with("x", 2).with("y", 2));
        none(), "SET x = if_not_exists(x, y)", {} => Err(NO_ATTRIBUTE);
        // The path may have missing parents.
        none(), "SET x = if_not_exists(m.a.b, :v)", {"v" => 1} => Ok(none().with("x", 1));
    }
}

pub(super) fn list_append_accepts_lists_in_either_order(t: &mut Fixture) {
    update_cases! { t;
        none().with("l", list([1])), "SET l = list_append(l, :v)", {"v" => list([2, 3])}
            => Ok(none().with("l", list([1, 2, 3])));
        none().with("l", list([1])), "SET l = list_append(:v, l)", {"v" => list([2, 3])}
            => Ok(none().with("l", list([2, 3, 1])));
        none().with("l", list([1])), "SET l = list_append(l, l)", {} => Ok(none().with("l", list([1, 1])));
        none(), "SET l = list_append(if_not_exists(l, :none), :v)",
            {"none" => Vec::<Value>::new(), "v" => list([1])} => Ok(none().with("l", list([1])));
        none(), "SET l = list_append(l, :v)", {"v" => list([1])} => Err(NO_ATTRIBUTE);
        none().with("l", "text"), "SET l = list_append(l, :v)", {"v" => list([1])} => Err(WRONG_OPERAND);
        none().with("l", numbers([1])), "SET l = list_append(l, :v)", {"v" => list([1])}
            => Err(WRONG_OPERAND);
    }
}

pub(super) fn set_changes_nested_values(t: &mut Fixture) {
    let document = || none().with("m", map([("x", list([1, 2]))]));
    update_cases! { t;
        document(), "SET m.y = :v", {"v" => 3}
            => Ok(none().with("m", map([("x", list([1, 2])), ("y", 3.into())])));
        document(), "SET m.x[0] = :v", {"v" => 9} => Ok(none().with("m", map([("x", list([9, 2]))])));
        // An element beyond the end is appended, without gaps.
        document(), "SET m.x[7] = :v", {"v" => 9} => Ok(none().with("m", map([("x", list([1, 2, 9]))])));
        document(), "SET m.x[9] = :w, m.x[5] = :v", {"v" => 3, "w" => 4}
            => Ok(none().with("m", map([("x", list([1, 2, 3, 4]))])));
        // Parents are not created.
        none(), "SET m.y = :v", {"v" => 3} => Err(INVALID_PATH);
        none(), "SET l[0] = :v", {"v" => 3} => Err(INVALID_PATH);
        document(), "SET m.z.y = :v", {"v" => 3} => Err(INVALID_PATH);
        document(), "SET m[0] = :v", {"v" => 3} => Err(INVALID_PATH);
        document(), "SET m.x.y = :v", {"v" => 3} => Err(INVALID_PATH);
        none().with("s", "scalar"), "SET s.y = :v", {"v" => 3} => Err(INVALID_PATH);
    }
}

pub(super) fn remove_deletes_attributes_and_list_elements(t: &mut Fixture) {
    update_cases! { t;
        none().with("x", 1).with("y", 2), "REMOVE x", {} => Ok(none().with("y", 2));
        none().with("y", 2), "REMOVE x", {} => Ok(none().with("y", 2));
        none().with("x", 1).with("y", 2), "REMOVE x, y", {} => Ok(none());
        none().with("m", map([("a", 1), ("b", 2)])), "REMOVE m.a", {} => Ok(none().with("m", map([("b", 2)])));
        none().with("m", map([("b", 2)])), "REMOVE m.a", {} => Ok(none().with("m", map([("b", 2)])));
        // All indexes refer to the list before the update.
        none().with("l", list([0, 1, 2, 3])), "REMOVE l[0], l[2]", {} => Ok(none().with("l", list([1, 3])));
        none().with("l", list([0, 1])), "REMOVE l[5]", {} => Ok(none().with("l", list([0, 1])));
        none().with("l", list([0])), "REMOVE l[0]", {} => Ok(none().with("l", Vec::<Value>::new()));
        none(), "REMOVE m.a", {} => Err(INVALID_PATH);
        none().with("l", list([0])), "REMOVE l.a", {} => Err(INVALID_PATH);
        none().with("m", map([("a", 1)])), "REMOVE m[0]", {} => Err(INVALID_PATH);
    }
}

pub(super) fn set_and_remove_use_list_positions_from_before_the_update(t: &mut Fixture) {
    update_cases! { t;
        none().with("l", list([0, 1, 2])), "SET l[2] = :v REMOVE l[0]", {"v" => 9}
            => Ok(none().with("l", list([1, 9])));
        none().with("l", list([0, 1])), "SET l[9] = :v REMOVE l[0]", {"v" => 9}
            => Ok(none().with("l", list([1, 9])));
    }
}

pub(super) fn add_increments_numbers_and_extends_sets(t: &mut Fixture) {
    update_cases! { t;
        none(), "ADD n :v", {"v" => 5} => Ok(none().with("n", 5));
        none().with("n", 5), "ADD n :v", {"v" => -7} => Ok(none().with("n", -2));
        none(), "ADD s :v", {"v" => strings(["a"])} => Ok(none().with("s", strings(["a"])));
        none().with("s", strings(["a", "b"])), "ADD s :v", {"v" => strings(["b", "c"])}
            => Ok(none().with("s", strings(["a", "b", "c"])));
        none().with("s", numbers([1])), "ADD s :v", {"v" => numbers([2])}
            => Ok(none().with("s", numbers([1, 2])));
        none().with("s", binaries([b"x"])), "ADD s :v", {"v" => binaries([b"y"])}
            => Ok(none().with("s", binaries([b"x", b"y"])));
        none().with("m", map([("n", 1)])), "ADD m.n :v", {"v" => 1} => Ok(none().with("m", map([("n", 2)])));
        none().with("m", Item::new()), "ADD m.n :v", {"v" => 1} => Ok(none().with("m", map([("n", 1)])));
        none().with("s", strings(["a"])), "ADD s :v", {"v" => numbers([1])} => Err(WRONG_OPERAND);
        none().with("s", "text"), "ADD s :v", {"v" => 1} => Err(WRONG_OPERAND);
        none().with("n", 1), "ADD n :v", {"v" => numbers([1])} => Err(WRONG_OPERAND);
        none(), "ADD m.n :v", {"v" => 1} => Err(INVALID_PATH);
    }
}

pub(super) fn delete_removes_elements_from_sets(t: &mut Fixture) {
    update_cases! { t;
        none().with("s", strings(["a", "b", "c"])), "DELETE s :v", {"v" => strings(["b", "x"])}
            => Ok(none().with("s", strings(["a", "c"])));
        // An attribute without set elements is removed.
        none().with("s", numbers([1, 2])), "DELETE s :v", {"v" => numbers([1, 2])} => Ok(none());
        none().with("x", 1), "DELETE s :v", {"v" => strings(["a"])} => Ok(none().with("x", 1));
        none().with("s", strings(["a"])), "DELETE s :v", {"v" => numbers([1])} => Err(WRONG_OPERAND);
        none().with("s", 1), "DELETE s :v", {"v" => numbers([1])} => Err(WRONG_OPERAND);
    }
}

pub(super) fn clauses_can_be_combined(t: &mut Fixture) {
    update_cases! { t;
        none().with("gone", 1).with("n", 1).with("s", strings(["a", "b"])),
            "SET x = :x REMOVE gone ADD n :one DELETE s :a",
            {"x" => "new", "one" => 1, "a" => strings(["a"])}
            => Ok(none().with("x", "new").with("n", 2).with("s", strings(["b"])));
        none().with("n", 1),
            "ADD n :one SET x = n", {"one" => 1} => Ok(none().with("n", 2).with("x", 1));
    }
}

pub(super) fn creates_a_missing_item(t: &mut Fixture) {
    t.create(sorted());
    let set = update_item(
        "Sorted",
        row("a", 1),
        "SET x = :v ADD n :v",
        &values! {"v" => 1},
    );
    t.write(set).unwrap();
    t.assert_item("Sorted", row("a", 1).with("x", 1).with("n", 1));
}

pub(super) fn empty_update_creates_an_item_with_its_key(t: &mut Fixture) {
    t.create(plain());
    let touch = UpdateItem::new("Plain", item("a"), floe_store::expr::Update::new());
    t.write(touch.clone()).unwrap();
    t.assert_item("Plain", item("a"));
    t.put("Plain", item("a").with("v", 1)).unwrap();
    t.write(touch).unwrap();
    t.assert_item("Plain", item("a").with("v", 1));
}

pub(super) fn removing_from_a_missing_item_does_not_create_it(t: &mut Fixture) {
    t.create(plain());
    for text in ["REMOVE x", "REMOVE x.y", "REMOVE x[0]"] {
        let remove =
            update_item("Plain", item("a"), text, &values! {}).return_values(ReturnValues::AllNew);
        assert_eq!(t.write(remove).unwrap().attributes, None, "{text}");
        assert_eq!(t.get("Plain", item("a")), None, "{text}");
    }
    let values = values! {"v" => strings(["a"])};
    let delete = update_item("Plain", item("a"), "DELETE s :v", &values);
    t.write(delete).unwrap();
    assert_eq!(t.get("Plain", item("a")), None);
}

pub(super) fn key_attributes_cannot_be_changed(t: &mut Fixture) {
    t.create_with(sorted(), [row("a", 1)]);
    let texts = [
        ("SET pk = :s", "pk"),
        ("SET sk = :n", "sk"),
        ("SET x = :n, sk = :n", "sk"),
        ("REMOVE sk", "sk"),
        ("ADD sk :n", "sk"),
    ];
    for (text, name) in texts {
        let tree = update(text, &values! {"s" => "a", "n" => 1});
        let write = t.write(UpdateItem::new("Sorted", row("a", 1), tree));
        let detail = format!("Cannot update attribute {name}. This attribute is part of the key");
        rejected(write, &detail);
    }
    t.assert_item("Sorted", row("a", 1));
}

pub(super) fn writes_only_if_the_condition_is_met(t: &mut Fixture) {
    t.create(plain());
    let bump = |expected: i32| {
        update_item("Plain", item("a"), "ADD n :one", &values! {"one" => 1})
            .condition(condition("n = :n", &values! {"n" => expected}))
            .return_old_on_failure()
    };
    assert_eq!(condition_failed(t.write(bump(0))), None);
    let made = t.get("Plain", item("a"));
    assert_eq!(made, None, "a failed update does not create the item");
    t.put("Plain", item("a").with("n", 0)).unwrap();
    t.write(bump(0)).unwrap();
    let found = condition_failed(t.write(bump(0)));
    assert_eq!(found, Some(item("a").with("n", 1)));
    t.assert_item("Plain", item("a").with("n", 1));
}

pub(super) fn condition_is_checked_before_the_update_is_applied(t: &mut Fixture) {
    t.create(plain());
    let values = values! {"one" => 1};
    let impossible = update_item("Plain", item("a"), "SET n = n + :one", &values)
        .condition(bare_condition("attribute_exists(pk)"));
    condition_failed(t.write(impossible.clone()));
    t.put("Plain", item("a")).unwrap();
    rejected(t.write(impossible), NO_ATTRIBUTE);
}

pub(super) fn paths_must_not_overlap_or_conflict(t: &mut Fixture) {
    t.create(plain());
    use floe_store::expr::{Path, Update};
    let x = || Path::attribute("x");
    let (x_y, first) = (|| x().field("y"), || x().index(0));
    let trees = [
        (Update::new().set(x(), 1).set(x(), 2), OVERLAP),
        (Update::new().set(x(), 1).remove(x_y()), OVERLAP),
        (
            Update::new().remove(x_y().field("z")).add(x_y(), 1),
            OVERLAP,
        ),
        (Update::new().set(first(), 1).remove(first()), OVERLAP),
        (Update::new().set(x_y(), 1).set(first(), 1), CONFLICT),
    ];
    for (tree, detail) in trees {
        let write = UpdateItem::new("Plain", item("a"), tree);
        rejected(t.write(write), detail);
    }
}

pub(super) fn operands_are_validated_before_the_table_is_looked_up(t: &mut Fixture) {
    use floe_store::expr::{SetOperand, Update};
    let trees = [
        Update::new().set_sum("n", 1, "text"),
        Update::new().set("l", SetOperand::list_append("l", vec![Value::Null])),
        Update::new().add("s", "text"),
        Update::new().add("s", Item::new()),
        Update::new().delete("s", 1),
    ];
    for tree in trees {
        let response = t.write(UpdateItem::new("Nowhere", item("a"), tree.clone()));
        let detail = "Incorrect operand type for operator or function";
        let is_rejected = matches!(&response, Err(Error::Validation(m)) if m.contains(detail));
        assert!(is_rejected, "{tree:?}: {response:?}");
    }
}

pub(super) fn key_must_match_the_key_schema(t: &mut Fixture) {
    t.create(sorted());
    for key in wrong_keys() {
        let write = update_item("Sorted", key, "SET x = :v", &values! {"v" => 1});
        rejected(t.write(write), WRONG_KEY);
    }
}
