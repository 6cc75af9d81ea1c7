//! PutItem, GetItem and DeleteItem.

use floe_store::expr::{Condition, Path, Paths};
use floe_store::op::{AppliedWrite, DeleteItem, GetItem, PutItem, ReturnValues, WriteItem};
use floe_store::{Error, Item, Value};

use crate::{as_constraint_error, expect, id, order_key, orders, simple, text};

/// A number inside this many lists.
fn lists(levels: usize) -> Value {
    (0..levels).fold(Value::from(1), |inner, _| Value::L(vec![inner]))
}

const TOO_DEEP: &str = "Nesting Levels have exceeded supported limits: Attributes in the item have \
                        nested levels beyond supported limit";

fn name_fault(name: &str, constraint: &str) -> String {
    as_constraint_error(&format!(
        "Value '{name}' at 'tableName' failed to satisfy constraint: {constraint}"
    ))
}

#[test]
fn table_names_are_validated() {
    let short = "Member must have length greater than or equal to 3";
    let long = "Member must have length less than or equal to 255";
    let pattern = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+";
    for (name, expected) in [
        ("abc", String::new()),
        (&text(255), String::new()),
        ("ab", name_fault("ab", short)),
        ("a!", name_fault("a!", short)),
        (&text(256), name_fault(&text(256), long)),
        ("a b c", name_fault("a b c", pattern)),
        (
            "",
            as_constraint_error(
                "Value at 'TableName' failed to satisfy constraint: Member must have length \
                 greater than or equal to 1",
            ),
        ),
    ] {
        expect(PutItem::new(name, id("a")).validate(), &expected);
        expect(GetItem::new(name, id("a")).validate(), &expected);
        expect(DeleteItem::new(name, id("a")).validate(), &expected);
    }
}

#[test]
fn put_validates_the_item_first() {
    let put = |item| PutItem::new("Simple", item);
    expect(put(id("a")).validate(), "");
    expect(put(id("a").with("v", lists(31))).validate(), "");
    expect(
        put(id("a").with("v", lists(32))).validate(),
        &as_constraint_error(TOO_DEEP),
    );
    // An empty name is reported before excessive nesting.
    expect(
        put(id("a").with("", 1).with("v", lists(32))).validate(),
        &as_constraint_error("Empty attribute name"),
    );
    // Values are checked before conditions.
    let condition = Condition::begins_with(Path::attribute("a"), 1);
    let operand = "Invalid ConditionExpression: Incorrect operand type for operator or function; \
                   operator or function: begins_with, operand type: N";
    expect(
        put(id("a").with("", 1))
            .condition(condition.clone())
            .validate(),
        &as_constraint_error("Empty attribute name"),
    );
    // Conditions are checked before the return values, and these before the size, which is reported without the prefix.
    let large = id("a").with("v", text(409_600));
    expect(
        put(large.clone())
            .condition(condition)
            .return_values(ReturnValues::AllNew)
            .validate(),
        &as_constraint_error(operand),
    );
    expect(
        put(large.clone())
            .return_values(ReturnValues::AllNew)
            .validate(),
        &as_constraint_error("ReturnValues can only be ALL_OLD or NONE"),
    );
    expect(
        put(large).validate(),
        "Item size has exceeded the maximum allowed size",
    );
}

#[test]
fn items_are_limited_to_409600_bytes() {
    // The names "id" and "v", and the value "a".
    let put = |bytes: usize| PutItem::new("Simple", id("a").with("v", text(bytes - 4)));
    expect(put(409_600).validate(), "");
    expect(
        put(409_601).validate(),
        "Item size has exceeded the maximum allowed size",
    );
}

#[test]
fn put_and_delete_accept_only_none_and_all_old() {
    use ReturnValues::{AllNew, AllOld, None, UpdatedNew, UpdatedOld};
    for (which, allowed) in [
        (None, true),
        (AllOld, true),
        (AllNew, false),
        (UpdatedOld, false),
        (UpdatedNew, false),
    ] {
        let expected = match allowed {
            true => String::new(),
            false => as_constraint_error("ReturnValues can only be ALL_OLD or NONE"),
        };
        let put = PutItem::new("Simple", id("a")).return_values(which);
        expect(put.validate(), &expected);
        let delete = DeleteItem::new("Simple", id("a")).return_values(which);
        expect(delete.validate(), &expected);
    }
}

#[test]
fn tokens_have_1_to_36_characters() {
    let fault = |token: &str, constraint: &str| {
        as_constraint_error(&format!(
            "Value '{token}' at 'clientRequestToken' failed to satisfy constraint: Member must \
             have length {constraint}"
        ))
    };
    for (token, expected) in [
        (text(1), String::new()),
        (text(36), String::new()),
        (text(0), fault("", "greater than or equal to 1")),
        (text(37), fault(&text(37), "less than or equal to 36")),
    ] {
        let put = PutItem::new("Simple", id("a")).token(token.clone());
        expect(put.validate(), &expected);
        let delete = DeleteItem::new("Simple", id("a")).token(token);
        expect(WriteItem::from(delete).validate(), &expected);
    }
}

#[test]
fn get_and_delete_validate_the_key() {
    expect(
        GetItem::new("Simple", id("a").with("v", lists(32))).validate(),
        TOO_DEEP,
    );
    expect(
        DeleteItem::new("Simple", id("a").with("v", lists(32))).validate(),
        &as_constraint_error(TOO_DEEP),
    );
    expect(
        GetItem::new("Simple", id("a").with("", 1)).validate(),
        "Empty attribute name",
    );
    // DeleteItem checks its return values before the key.
    expect(
        DeleteItem::new("Simple", id("a").with("", 1))
            .return_values(ReturnValues::AllNew)
            .validate(),
        &as_constraint_error("ReturnValues can only be ALL_OLD or NONE"),
    );
    let overlapping = Paths(vec![Path::attribute("a"), Path::attribute("a").field("b")]);
    expect(
        GetItem::new("Simple", id("a"))
            .projection(overlapping)
            .validate(),
        "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or \
         rewrite one of these paths; path one: [a], path two: [a, b]",
    );
}

#[test]
fn paths_into_key_attributes_are_rejected() {
    let into = |name: &str| Path::attribute(name).field("x");
    let fault = |role: &str| {
        format!(
            "Key attributes must be scalars; list random access '[]' and map lookup '.' are not \
             allowed: {role}"
        )
    };
    for (path, expected) in [
        (into("v"), String::new()),
        (Path::attribute("customer"), String::new()),
        (into("customer"), fault("Key: customer")),
        (Path::attribute("placed").index(0), fault("Key: placed")),
        (into("product"), fault("IndexKey: product")),
    ] {
        let condition = Condition::attribute_exists(path.clone());
        expect(
            PutItem::new("Orders", order_key())
                .condition(condition.clone())
                .check(&orders()),
            &expected,
        );
        expect(
            DeleteItem::new("Orders", order_key())
                .condition(condition)
                .check(&orders()),
            &expected,
        );
        expect(
            GetItem::new("Orders", order_key())
                .projection(Paths(vec![path]))
                .check(&orders()),
            &expected,
        );
    }
}

#[test]
fn put_replaces_the_item_and_returns_the_old_one_on_request() {
    let (old, new) = (id("a").with("v", 1), id("a").with("v", 2));
    let put = || PutItem::new("Simple", new.clone());
    let with_old = put().return_values(ReturnValues::AllOld);
    for (mut write, before, returned) in [
        (put(), Some(&old), None),
        (put(), None, None),
        (with_old.clone(), Some(&old), Some(old.clone())),
        (with_old, None, None),
    ] {
        assert_eq!(
            write.apply(&simple(), before),
            Ok(AppliedWrite {
                new: Some(new.clone()),
                returned
            })
        );
    }
}

#[test]
fn delete_removes_the_item_and_returns_it_on_request() {
    let old = id("a").with("v", 1);
    let delete = || DeleteItem::new("Simple", id("a"));
    let with_old = delete().return_values(ReturnValues::AllOld);
    for (write, before, returned) in [
        (delete(), Some(&old), None),
        (with_old.clone(), Some(&old), Some(old.clone())),
        (with_old, None, None),
    ] {
        assert_eq!(
            write.apply(&simple(), before),
            Ok(AppliedWrite {
                new: None,
                returned
            })
        );
    }
}

#[test]
fn failed_condition_returns_the_item_on_request() {
    let old = id("a").with("v", 1);
    let absent = || Condition::attribute_not_exists(Path::attribute("id"));
    let put = || PutItem::new("Simple", id("a")).condition(absent());
    let failed = |item: Option<Item>| {
        Err(Error::ConditionalCheckFailed {
            item: item.map(Box::new),
        })
    };
    assert!(put().apply(&simple(), None).is_ok());
    assert_eq!(put().apply(&simple(), Some(&old)), failed(None));
    let mut write = put().return_old_on_failure();
    assert_eq!(
        write.apply(&simple(), Some(&old)),
        failed(Some(old.clone()))
    );
    let delete = DeleteItem::new("Simple", id("a")).return_old_on_failure();
    let exists = Condition::attribute_exists(Path::attribute("id"));
    // There is no item to return.
    assert_eq!(
        delete.condition(exists).apply(&simple(), None),
        failed(None)
    );
    assert_eq!(
        put().apply(&simple(), Some(&old)).unwrap_err().to_string(),
        "The conditional request failed"
    );
}

#[test]
fn get_returns_only_projected_attributes() {
    let item = id("a").with("v", 1).with("w", 2);
    let get = GetItem::new("Simple", id("a"));
    assert_eq!(get.response_item(item.clone()), item);
    let get = get.projection(Paths(vec![Path::attribute("v"), Path::attribute("none")]));
    assert_eq!(get.response_item(item), Item::new().with("v", 1));
}
