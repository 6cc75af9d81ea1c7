//! TransactWriteItems: which of several faults is reported.
//!
//! Actions are validated one after the other, so that a fault of an earlier action is reported before one of a later
//! action. No table exists: all of these checks come before the table lookup.

use serde_json::{Value, json};

use super::test_service::{TestService, with};

const NESTED: &str = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond \
                      supported limit";
const NAMELESS: &str = "Empty attribute name";
const SYNTAX: &str = "Invalid ConditionExpression: Syntax error; token: \"=\", near: \"= = b\"";
const UNUSED: &str =
    "Value provided in ExpressionAttributeValues unused in expressions: keys: {:u}";

/// Returns a text nested in this many maps.
fn deep(levels: usize) -> Value {
    (0..levels).fold(json!({"S": "leaf"}), |inner, _| json!({"M": {"n": inner}}))
}

fn key(pk: &Value) -> Value {
    json!({"pk": pk, "sk": {"S": "1"}})
}

fn plain() -> Value {
    key(&json!({"S": "a"}))
}

fn action(kind: &str, attributes: &Value, members: Value) -> Value {
    let of = match kind {
        "Put" => "Item",
        _ => "Key",
    };
    let mut action = json!({"TableName": "Absent", of: attributes});
    let Value::Object(members) = members else {
        return Value::Null;
    };
    action.as_object_mut().unwrap().extend(members);
    json!({kind: action})
}

fn put(more: &Value) -> Value {
    let mut item = plain();
    item.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    action("Put", &item, json!({}))
}

async fn check(actions: &[Value], message: &str) {
    let body = json!({"TransactItems": actions}).to_string();
    TestService::new()
        .expect_validation_error("TransactWriteItems", &body, message)
        .await;
}

#[tokio::test]
async fn earlier_action_is_reported_first() {
    let nameless = || put(&json!({"": {"S": "x"}}));
    let named = |kind: &str, expression: &str, levels| {
        let values = json!({expression: match expression {
            "UpdateExpression" => "SET d = :deep",
            _ => "d = :deep",
        }, "ExpressionAttributeValues": {":deep": deep(levels)}});
        action(kind, &plain(), values)
    };
    let wrong = || action("Put", &plain(), json!({"ConditionExpression": "a = = b"}));
    let unused = || {
        let values = json!({":v": {"S": "x"}, ":u": {"S": "y"}});
        action(
            "Update",
            &plain(),
            json!({"UpdateExpression": "SET a = :v", "ExpressionAttributeValues": values}),
        )
    };
    let deep_key = |kind: &str, levels| {
        let condition = json!({"ConditionExpression": "attribute_exists(a)"});
        action(kind, &key(&deep(levels)), condition)
    };
    let placeholder =
        format!("ExpressionAttributeValues contains invalid value: {NESTED} for key :deep");
    let value = |kind, expression| named(kind, expression, 40);
    check(&[put(&json!({"d": deep(40)})), nameless()], NESTED).await;
    check(&[nameless(), put(&json!({"d": deep(100)}))], NAMELESS).await;
    check(
        &[value("ConditionCheck", "ConditionExpression"), nameless()],
        &placeholder,
    )
    .await;
    check(
        &[
            nameless(),
            named("ConditionCheck", "ConditionExpression", 100),
        ],
        NAMELESS,
    )
    .await;
    check(
        &[value("Update", "UpdateExpression"), nameless()],
        &placeholder,
    )
    .await;
    check(&[deep_key("Delete", 40), wrong()], NESTED).await;
    check(&[wrong(), deep_key("Delete", 100)], SYNTAX).await;
    check(&[deep_key("ConditionCheck", 40), unused()], NESTED).await;
    check(&[unused(), deep_key("ConditionCheck", 100)], UNUSED).await;
}

/// Whether a value can be stored is checked when the update is applied; conditions have no such check.
#[tokio::test]
async fn values_one_level_too_deep_can_be_compared_but_not_stored() {
    let service = TestService::new();
    service.table("Absent").await;
    let compare = json!({"ConditionExpression": "d = :deep"});
    let store = json!({"UpdateExpression": "SET d = :deep"});
    let compare_first = with(&compare, &json!({"UpdateExpression": "SET z = pk"}));
    for (kind, expressions, reason) in [
        ("Update", store, "ValidationError"),
        ("Update", compare_first, "ConditionalCheckFailed"),
        ("ConditionCheck", compare.clone(), "ConditionalCheckFailed"),
        ("Delete", compare, "ConditionalCheckFailed"),
    ] {
        let values = json!({"ExpressionAttributeValues": {":deep": deep(32)}});
        let action = action(kind, &plain(), with(&expressions, &values));
        let body = json!({"TransactItems": [action]}).to_string();
        let (_, response) = service.call("TransactWriteItems", &body).await;
        let code = &response["CancellationReasons"][0]["Code"];
        assert_eq!(code, reason, "{kind}: {response}");
    }
}

#[tokio::test]
async fn empty_attribute_names_are_reported_before_depth_and_nested_ones_after() {
    check(&[put(&json!({"": {"S": "x"}, "d": deep(100)}))], NAMELESS).await;
    check(&[put(&json!({"d": deep(100), "": {"S": "x"}}))], NAMELESS).await;
    let inside = json!({"M": {"": {"S": "x"}}});
    check(&[put(&json!({"m": inside, "d": deep(40)}))], NESTED).await;
    check(&[put(&json!({"d": deep(40), "m": inside}))], NESTED).await;
    check(&[put(&json!({"m": inside}))], NAMELESS).await;
}

#[tokio::test]
async fn expressions_are_checked_before_the_depth_of_a_key() {
    let long = format!("a = :v{}", " AND a = :v".repeat(373));
    let too_long = "Invalid ConditionExpression: Expression size has exceeded the maximum allowed size; expression \
                    size: 4109";
    for kind in ["Delete", "ConditionCheck"] {
        let with = |members| action(kind, &key(&deep(100)), members);
        check(&[with(json!({"ConditionExpression": "a = = b"}))], SYNTAX).await;
        let values = json!({":v": {"S": "x"}});
        let members = json!({"ConditionExpression": long, "ExpressionAttributeValues": values});
        check(&[with(members)], too_long).await;
        check(&[with(json!({"ConditionExpression": "a = b"}))], NESTED).await;
    }
}
