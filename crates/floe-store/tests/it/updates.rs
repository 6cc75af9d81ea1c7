//! UpdateItem.

use floe_store::expr::{Condition, Path, SetOperand, Update};
use floe_store::op::{AppliedWrite, ReturnValues, UpdateItem};
use floe_store::{Error, Item, Value};

use crate::{as_constraint_error, expect, id, order_key, orders, simple, text};

fn update(update: Update) -> UpdateItem {
    UpdateItem::new("Orders", order_key(), update)
}

fn invalid(message: &str) -> String {
    format!("One or more parameter values were invalid: {message}")
}

#[test]
fn all_table_name_faults_are_reported_characters_first() {
    let request = |name: &str| UpdateItem::new(name, id("a"), Update::new());
    expect(request("abc").validate(), "");
    expect(
        request("a!").validate(),
        "2 validation errors detected: Value 'a!' at 'tableName' failed to satisfy constraint: \
         Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; Value 'a!' at \
         'tableName' failed to satisfy constraint: Member must have length greater than or equal \
         to 3",
    );
    expect(
        request("").validate(),
        &as_constraint_error(
            "Value at 'TableName' failed to satisfy constraint: Member must have length greater \
             than or equal to 1",
        ),
    );
}

#[test]
fn key_is_validated_before_update_before_condition() {
    let overlap = Update::new().set("a", 1).set("a", 2);
    let condition = Condition::begins_with(Path::attribute("a"), 1);
    let clash = "Invalid UpdateExpression: Two document paths overlap with each other; must remove \
                 or rewrite one of these paths; path one: [a], path two: [a]";
    let operand = "Invalid ConditionExpression: Incorrect operand type for operator or function; \
                   operator or function: begins_with, operand type: N";
    let request = |key, change| UpdateItem::new("Orders", key, change);
    expect(
        request(Item::new().with("", 1), overlap.clone()).validate(),
        &as_constraint_error("Empty attribute name"),
    );
    expect(
        request(order_key(), overlap)
            .condition(condition.clone())
            .validate(),
        &as_constraint_error(clash),
    );
    expect(
        request(order_key(), Update::new().set("a", 1))
            .condition(condition)
            .validate(),
        &as_constraint_error(operand),
    );
}

#[test]
fn all_return_values_are_accepted() {
    use ReturnValues::{AllNew, AllOld, None, UpdatedNew, UpdatedOld};
    for which in [None, AllOld, AllNew, UpdatedOld, UpdatedNew] {
        expect(update(Update::new()).return_values(which).validate(), "");
    }
}

#[test]
fn key_attributes_cannot_be_updated() {
    let part_of_the_key = |name| {
        invalid(&format!(
            "Cannot update attribute {name}. This attribute is part of the key"
        ))
    };
    let scalar = |role: &str| {
        format!(
            "Key attributes must be scalars; list random access '[]' and map lookup '.' are not \
             allowed: {role}"
        )
    };
    let into = |name: &str| Path::attribute(name).field("x");
    for (change, expected) in [
        (Update::new().set("v", 1), String::new()),
        (
            Update::new().set("customer", "c-1"),
            part_of_the_key("customer"),
        ),
        (Update::new().remove("placed"), part_of_the_key("placed")),
        (Update::new().add("placed", 1), part_of_the_key("placed")),
        (
            Update::new().set(into("customer"), 1),
            part_of_the_key("customer"),
        ),
        (
            Update::new().set(into("product"), 1),
            scalar("IndexKey: product"),
        ),
        (
            Update::new().set("v", into("customer")),
            scalar("Key: customer"),
        ),
        (
            Update::new().set("v", SetOperand::if_not_exists(into("product"), 1)),
            scalar("IndexKey: product"),
        ),
        (
            Update::new().set("v", Path::attribute("customer")),
            String::new(),
        ),
    ] {
        expect(update(change).check(&orders()), &expected);
    }
}

const EMPTY_INDEX_KEY: &str = "One or more parameter values are not valid. The update expression \
    attempted to update a secondary index key to a value that is not supported. The AttributeValue \
    for a key attribute cannot contain an empty string value.";

#[test]
fn invalid_index_key_values_are_rejected() {
    let mismatch = |key: &str, expected: &str, actual: &str, index: &str| {
        invalid(&format!(
            "Type mismatch for Index Key {key} Expected: {expected} Actual: {actual} IndexName: \
             {index}"
        ))
    };
    // Literal values are rejected independently of the item.
    for (change, expected) in [
        (Update::new().set("product", "p"), String::new()),
        (
            Update::new().set("product", 1),
            mismatch("product", "S", "N", "by_product"),
        ),
        (Update::new().set("state", ""), EMPTY_INDEX_KEY.to_owned()),
    ] {
        expect(update(change).check(&orders()), &expected);
    }
    // Computed values are rejected when they are known.
    let old = order_key()
        .with("text", "t")
        .with("empty", "")
        .with("long", text(2049));
    let apply = |change| update(change).apply(&orders(), Some(&old));
    expect(
        apply(Update::new().add("product", 1)),
        &mismatch("product", "S", "N", "by_product"),
    );
    expect(
        apply(Update::new().set("number", Path::attribute("text"))),
        &mismatch("number", "N", "S", "by_city"),
    );
    expect(
        apply(Update::new().set("product", Path::attribute("empty"))),
        EMPTY_INDEX_KEY,
    );
    expect(
        apply(Update::new().set("product", Path::attribute("long"))),
        &invalid("Size of hashkey has exceeded the maximum size limit of2048 bytes"),
    );
}

#[test]
fn unchanged_index_keys_are_not_validated_again() {
    // Such an item exists if the index was added later.
    let old = order_key().with("product", 1);
    let applied = update(Update::new().set("v", 1))
        .apply(&orders(), Some(&old))
        .unwrap();
    assert_eq!(applied.new, Some(old.with("v", 1)));
}

#[test]
fn update_creates_an_item_unless_it_only_removes() {
    let made = |change: Update| {
        UpdateItem::new("Simple", id("a"), change)
            .apply(&simple(), None)
            .unwrap()
            .new
    };
    assert_eq!(made(Update::new()), Some(id("a")));
    assert_eq!(made(Update::new().set("v", 1)), Some(id("a").with("v", 1)));
    assert_eq!(made(Update::new().add("v", 1)), Some(id("a").with("v", 1)));
    assert_eq!(made(Update::new().remove("v")), None);
    assert_eq!(
        made(Update::new().remove(Path::attribute("v").field("x"))),
        None
    );
    assert_eq!(
        made(Update::new().remove("v").set("w", 1)),
        Some(id("a").with("w", 1))
    );
}

#[test]
fn update_returns_the_requested_attributes() {
    use ReturnValues::{AllNew, AllOld, None as Nothing, UpdatedNew, UpdatedOld};
    let old = id("a").with("v", 1).with("w", 1);
    let new = id("a").with("w", 1).with("x", 2);
    let request = || UpdateItem::new("Simple", id("a"), Update::new().set("x", 2).remove("v"));
    for (which, before, returned) in [
        (Nothing, Some(&old), None),
        (AllOld, Some(&old), Some(old.clone())),
        (AllNew, Some(&old), Some(new)),
        (UpdatedOld, Some(&old), Some(Item::new().with("v", 1))),
        (UpdatedNew, Some(&old), Some(Item::new().with("x", 2))),
        (AllOld, None, None),
        (UpdatedOld, None, None),
        (AllNew, None, Some(id("a").with("x", 2))),
        (UpdatedNew, None, Some(Item::new().with("x", 2))),
    ] {
        let applied = request()
            .return_values(which)
            .apply(&simple(), before)
            .unwrap();
        assert_eq!(applied.returned, returned, "{which:?} of {before:?}");
    }
    // No touched attribute exists: returns `None` instead of an empty item.
    let removal = UpdateItem::new("Simple", id("a"), Update::new().remove("none"));
    let applied = removal
        .return_values(UpdatedNew)
        .apply(&simple(), Some(&old));
    assert_eq!(
        applied,
        Ok(AppliedWrite {
            new: Some(old),
            returned: None
        })
    );
}

#[test]
fn condition_is_evaluated_before_the_update() {
    let old = id("a");
    let request = UpdateItem::new(
        "Simple",
        id("a"),
        Update::new().set("v", Path::attribute("missing")),
    );
    expect(
        request.apply(&simple(), Some(&old)),
        "The provided expression refers to an attribute that does not exist in the item",
    );
    let condition = Condition::attribute_exists(Path::attribute("v"));
    assert_eq!(
        request
            .condition(condition)
            .return_old_on_failure()
            .apply(&simple(), Some(&old)),
        Err(Error::ConditionalCheckFailed {
            item: Some(Box::new(old))
        })
    );
}

#[test]
fn updated_items_are_limited_to_409600_bytes() {
    let too_large = "Item size to update has exceeded the maximum allowed size";
    // The names "id", "v" and "w", and the value "a".
    let apply = |bytes: usize| {
        let old = id("a").with("v", text(bytes - 4 - 101));
        UpdateItem::new("Simple", id("a"), Update::new().set("w", text(100)))
            .apply(&simple(), Some(&old))
    };
    expect(apply(409_600), "");
    expect(apply(409_601), too_large);
}

#[test]
fn updated_items_are_limited_to_32_levels() {
    let lists = |levels: usize| (0..levels).fold(Value::from(1), |inner, _| Value::L(vec![inner]));
    let apply = |levels: usize| {
        let old = id("a").with("v", Value::L(vec![Value::L(vec![])]));
        let path = Path::attribute("v").index(0).index(0);
        UpdateItem::new("Simple", id("a"), Update::new().set(path, lists(levels)))
            .apply(&simple(), Some(&old))
    };
    expect(apply(29), "");
    expect(apply(30), "Nesting Levels have exceeded supported limits");
    let nameless = Value::M(Item::new().with("", 1));
    let change = Update::new().set("v", nameless);
    expect(
        UpdateItem::new("Simple", id("a"), change).apply(&simple(), None),
        "Empty attribute name",
    );
}

#[test]
fn update_request_size_is_limited() {
    let too_large = "Item size to update has exceeded the maximum allowed size";
    let request = |change| UpdateItem::new("Simple", id("a"), change).check(&simple());
    // 3 for the request, 19 for the clause, 1 for the name.
    expect(request(Update::new().set("v", text(409_600 - 23))), "");
    expect(
        request(Update::new().set("v", text(409_600 - 22))),
        too_large,
    );
    // A path with two more steps, if_not_exists (39), and a path operand of one step (1 + 14 + 1).
    let path = Path::attribute("v").field("ab").index(10);
    let value = |bytes| SetOperand::if_not_exists("v", text(bytes));
    let fixed = 3 + 19 + (1 + 4 + 2 + 4 + 2) + 39 + 16;
    expect(
        request(Update::new().set(path.clone(), value(409_600 - fixed))),
        "",
    );
    expect(
        request(Update::new().set(path, value(409_601 - fixed))),
        too_large,
    );
}
