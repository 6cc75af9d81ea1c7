//! PutItem, GetItem and DeleteItem.

use floe_store::expr::{Condition, Path, Paths};
use floe_store::op::{Applied, DeleteItem, GetItem, PutItem, ReturnValues, WriteItem};
use floe_store::{Error, Item, Value};

use crate::{enveloped, expect, id, order_key, orders, simple, text};

/// A number inside so many lists.
fn lists(levels: usize) -> Value {
    (0..levels).fold(Value::from(1), |inner, _| Value::L(vec![inner]))
}

const TOO_DEEP: &str = "Nesting Levels have exceeded supported limits: Attributes in the item have \
                        nested levels beyond supported limit";

fn name_fault(name: &str, constraint: &str) -> String {
    enveloped(&format!(
        "Value '{name}' at 'tableName' failed to satisfy constraint: {constraint}"
    ))
}

#[test]
fn table_names() {
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
            enveloped(
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
fn put_validates_the_item_before_the_rest() {
    let put = |item| PutItem::new("Simple", item);
    expect(put(id("a")).validate(), "");
    expect(put(id("a").with("v", lists(31))).validate(), "");
    expect(
        put(id("a").with("v", lists(32))).validate(),
        &enveloped(TOO_DEEP),
    );
    // An empty name comes before a value that is too deep.
    expect(
        put(id("a").with("", 1).with("v", lists(32))).validate(),
        &enveloped("Empty attribute name"),
    );
    // A value comes before a condition.
    let condition = Condition::begins_with(Path::attribute("a"), 1);
    let operand = "Invalid ConditionExpression: Incorrect operand type for operator or function; \
                   operator or function: begins_with, operand type: N";
    expect(
        put(id("a").with("", 1))
            .condition(condition.clone())
            .validate(),
        &enveloped("Empty attribute name"),
    );
    // A condition comes before the return values, and these before the size, which is told bare.
    let large = id("a").with("v", text(409_600));
    expect(
        put(large.clone())
            .condition(condition)
            .return_values(ReturnValues::AllNew)
            .validate(),
        &enveloped(operand),
    );
    expect(
        put(large.clone())
            .return_values(ReturnValues::AllNew)
            .validate(),
        &enveloped("ReturnValues can only be ALL_OLD or NONE"),
    );
    expect(
        put(large).validate(),
        "Item size has exceeded the maximum allowed size",
    );
}

#[test]
fn an_item_may_weigh_409600_bytes() {
    // Names "id" and "v", the value "a".
    let put = |bytes: usize| PutItem::new("Simple", id("a").with("v", text(bytes - 4)));
    expect(put(409_600).validate(), "");
    expect(
        put(409_601).validate(),
        "Item size has exceeded the maximum allowed size",
    );
}

#[test]
fn put_and_delete_return_nothing_or_the_old_item() {
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
            false => enveloped("ReturnValues can only be ALL_OLD or NONE"),
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
        enveloped(&format!(
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
fn get_and_delete_validate_the_key_alone() {
    expect(
        GetItem::new("Simple", id("a").with("v", lists(32))).validate(),
        TOO_DEEP,
    );
    expect(
        DeleteItem::new("Simple", id("a").with("v", lists(32))).validate(),
        &enveloped(TOO_DEEP),
    );
    expect(
        GetItem::new("Simple", id("a").with("", 1)).validate(),
        "Empty attribute name",
    );
    // Delete finds fault with its return values before it looks at the key.
    expect(
        DeleteItem::new("Simple", id("a").with("", 1))
            .return_values(ReturnValues::AllNew)
            .validate(),
        &enveloped("ReturnValues can only be ALL_OLD or NONE"),
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
fn paths_do_not_lead_into_keys() {
    let into = |name: &str| Path::attribute(name).field("x");
    let fault = |whose: &str| {
        format!(
            "Key attributes must be scalars; list random access '[]' and map lookup '.' are not \
             allowed: {whose}"
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
fn put_replaces_and_returns_the_old_item_when_asked() {
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
            Ok(Applied {
                new: Some(new.clone()),
                returned
            })
        );
    }
}

#[test]
fn delete_removes_and_returns_the_old_item_when_asked() {
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
            Ok(Applied {
                new: None,
                returned
            })
        );
    }
}

#[test]
fn a_failed_condition_tells_the_item_when_asked() {
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
    let mut telling = put().return_old_on_failure();
    assert_eq!(
        telling.apply(&simple(), Some(&old)),
        failed(Some(old.clone()))
    );
    let delete = DeleteItem::new("Simple", id("a")).return_old_on_failure();
    let exists = Condition::attribute_exists(Path::attribute("id"));
    // There is no item to tell.
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
fn a_read_answers_what_its_projection_names() {
    let item = id("a").with("v", 1).with("w", 2);
    let get = GetItem::new("Simple", id("a"));
    assert_eq!(get.answer(item.clone()), item);
    let get = get.projection(Paths(vec![Path::attribute("v"), Path::attribute("none")]));
    assert_eq!(get.answer(item), Item::new().with("v", 1));
}
