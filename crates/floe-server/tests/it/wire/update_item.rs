//! UpdateItem.

use serde_json::{Value, json};

use super::test_service::{TestService, one, with};

const CAPACITY: &str = "Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy \
                        enum value set: [INDEXES, TOTAL, NONE]";
const COLLECTION: &str = "Value 'hi' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must \
                          satisfy enum value set: [SIZE, NONE]";
const RETURNED: &str = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, \
                        ALL_NEW, UPDATE_NEW, NONE]";
const OLDER_RETURNED: &str = "Value 'hi' at 'returnValues' failed to satisfy constraint: Member must satisfy enum \
                              value set: [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]";
const ON_FAILURE: &str = "Value 'hi' at 'returnValuesOnConditionCheckFailure' failed to satisfy constraint: Member \
                          must satisfy enum value set: [ALL_OLD, NONE]";
const NULL_TABLE: &str =
    "Value null at 'tableName' failed to satisfy constraint: Member must not be null";
const NULL_KEY: &str = "Value null at 'key' failed to satisfy constraint: Member must not be null";
const INVALID: &str = "One or more parameter values were invalid: ";

fn request() -> Value {
    json!({"TableName": "Users", "Key": {"pk": {"S": "a"}}})
}

fn name_fault(name: &str, constraint: &str) -> String {
    format!("Value '{name}' at 'tableName' failed to satisfy constraint: Member must {constraint}")
}

fn joined(faults: &[&str]) -> String {
    format!(
        "{} validation errors detected: {}",
        faults.len(),
        faults.join("; ")
    )
}

#[tokio::test]
async fn member_faults_are_reported_one_by_one() {
    let service = TestService::new();
    let short = "have length greater than or equal to 3";
    let pattern = "satisfy regular expression pattern: [a-zA-Z0-9_.-]+";
    let wrong = json!({"ReturnConsumedCapacity": "hi", "ReturnItemCollectionMetrics": "hi"});
    for (body, message) in [
        (
            json!({"TableName": "", "Key": {}, "ReturnConsumedCapacity": "hi"}),
            one(
                "Value at 'TableName' failed to satisfy constraint: Member must have length greater than or equal to 1",
            ),
        ),
        (
            with(
                &request(),
                &json!({"TableName": "ab", "ReturnConsumedCapacity": "hi"}),
            ),
            one(&name_fault("ab", short)),
        ),
        (
            with(
                &request(),
                &json!({"TableName": "a!", "ReturnConsumedCapacity": "hi"}),
            ),
            joined(&[&name_fault("a!", pattern), &name_fault("a!", short)]),
        ),
        (
            with(
                &with(&request(), &wrong),
                &json!({"ReturnValues": "hi", "ReturnValuesOnConditionCheckFailure": "hi"}),
            ),
            one(RETURNED),
        ),
        (
            with(
                &with(&request(), &wrong),
                &json!({"ReturnValuesOnConditionCheckFailure": "hi"}),
            ),
            ON_FAILURE.to_owned(),
        ),
        (with(&request(), &wrong), one(COLLECTION)),
        (
            with(
                &request(),
                &json!({"ReturnConsumedCapacity": "hi", "ConditionalOperator": "hi"}),
            ),
            CAPACITY.to_owned(),
        ),
        (json!({}), joined(&[NULL_TABLE, NULL_KEY])),
        (
            json!({"TableName": "", "ReturnConsumedCapacity": "hi", "ReturnValues": "hi"}),
            joined(&[
                CAPACITY,
                &name_fault("", "have length greater than or equal to 1"),
                OLDER_RETURNED,
                NULL_KEY,
            ]),
        ),
        (
            json!({"TableName": "Users", "ConditionalOperator": "XOR"}),
            joined(&[
                "Value 'XOR' at 'conditionalOperator' failed to satisfy constraint: Member must satisfy enum value \
                 set: [OR, AND]",
                NULL_KEY,
            ]),
        ),
        (
            json!({"Key": {}, "ReturnValues": "hi"}),
            joined(&[NULL_TABLE, OLDER_RETURNED]),
        ),
        (
            with(
                &wrong,
                &json!({"TableName": "a!", "ReturnValues": "hi", "ReturnValuesOnConditionCheckFailure": "hi"}),
            ),
            joined(&[CAPACITY, OLDER_RETURNED, ON_FAILURE, COLLECTION, NULL_KEY]),
        ),
        (wrong, joined(&[CAPACITY, NULL_TABLE, COLLECTION, NULL_KEY])),
    ] {
        service
            .expect_validation_error("UpdateItem", &body.to_string(), &message)
            .await;
    }
}

#[tokio::test]
async fn expressions_are_checked_before_the_table() {
    let service = TestService::new();
    let values = json!({"ExpressionAttributeValues": {":v": {"S": "x"}, ":n": {"N": "1"}}});
    let mixed = "Can not use both expression and non-expression parameters in the same request: ";
    for (parameters, message) in [
        (
            json!({"AttributeUpdates": {"a": {}}, "Expected": {"a": {}}, "UpdateExpression": "", "ConditionExpression": ""}),
            format!(
                "{mixed}Non-expression parameters: {{AttributeUpdates, Expected}} Expression parameters: \
                 {{UpdateExpression, ConditionExpression}}"
            ),
        ),
        (
            json!({"ConditionalOperator": "hi", "UpdateExpression": "SET a = :v"}),
            format!(
                "{mixed}Non-expression parameters: {{ConditionalOperator}} Expression parameters: {{UpdateExpression}}"
            ),
        ),
        (
            json!({"UpdateExpression": "", "ConditionExpression": ""}),
            "Invalid ConditionExpression: The expression can not be empty;".to_owned(),
        ),
        (
            json!({"UpdateExpression": "", "ConditionExpression": "a ="}),
            "Invalid UpdateExpression: The expression can not be empty;".to_owned(),
        ),
        (
            json!({"UpdateExpression": "INVALID SYNTAX HERE", "ConditionExpression": "a ="}),
            r#"Invalid UpdateExpression: Syntax error; token: "INVALID", near: "INVALID SYNTAX""#.to_owned(),
        ),
        (
            json!({"UpdateExpression": "SET a = :v", "ConditionExpression": "a ="}),
            r#"Invalid ConditionExpression: Syntax error; token: "<EOF>", near: "=""#.to_owned(),
        ),
        (
            json!({"UpdateExpression": "SET a = :w"}),
            "Invalid UpdateExpression: An expression attribute value used in expression is not defined; attribute \
             value: :w"
                .to_owned(),
        ),
        (
            json!({"UpdateExpression": "ADD a :v"}),
            "Invalid UpdateExpression: Incorrect operand type for operator or function; operator: ADD, operand type: \
             STRING, typeSet: ALLOWED_FOR_ADD_OPERAND"
                .to_owned(),
        ),
        (
            json!({"UpdateExpression": "SET a = a + :v"}),
            "Invalid UpdateExpression: Incorrect operand type for operator or function; operator or function: +, \
             operand type: S"
                .to_owned(),
        ),
        (
            json!({"UpdateExpression": "SET a = :v, a.b = :n"}),
            "Invalid UpdateExpression: Two document paths overlap with each other; must remove or rewrite one of \
             these paths; path one: [a], path two: [a, b]"
                .to_owned(),
        ),
        (
            json!({"UpdateExpression": "SET a = :v"}),
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:n}".to_owned(),
        ),
    ] {
        let body = with(&with(&request(), &values), &parameters).to_string();
        service.expect_validation_error("UpdateItem", &body, &one(&message)).await;
    }
}

#[tokio::test]
async fn attribute_updates_are_checked_before_the_table() {
    let service = TestService::new();
    for (update, message) in [
        (
            json!({"Action": "put", "Value": {"S": "x"}}),
            one("Member must satisfy enum value set: [ADD, DELETE, PUT]' for Action"),
        ),
        (
            json!({"Action": "PUT"}),
            format!("{INVALID}Only DELETE action is allowed when no attribute value is specified"),
        ),
        (
            json!({}),
            format!("{INVALID}Only DELETE action is allowed when no attribute value is specified"),
        ),
        (
            json!({"Action": "DELETE", "Value": {"S": "x"}}),
            format!("{INVALID}DELETE action with value is not supported for the type S"),
        ),
        (
            json!({"Action": "ADD", "Value": {"M": {}}}),
            format!("{INVALID}ADD action is not supported for the type M"),
        ),
        (
            json!({"Action": "hi", "Value": {"NULL": false}}),
            one(&format!(
                "{INVALID}Null attribute value types must have the value of true"
            )),
        ),
        (
            json!({"Value": {"SS": ["b", "a", "b"]}}),
            one(&format!(
                r#"{INVALID}Input collection ["a", "b", "b"] contains duplicates."#
            )),
        ),
    ] {
        let body = with(&request(), &json!({"AttributeUpdates": {"a": update}})).to_string();
        service
            .expect_validation_error("UpdateItem", &body, &message)
            .await;
    }
    let empty = json!({"AttributeUpdates": {"": {"Value": {"S": "x"}}}});
    let body = with(&request(), &empty).to_string();
    service
        .expect_validation_error("UpdateItem", &body, &one("Empty attribute name"))
        .await;
}

/// Checks the result of an update of an item, or its error.
async fn check(item: Value, parameters: Value, expected: Result<Value, &str>) {
    let service = TestService::new();
    service.hash_table("Users").await;
    let key = json!({"pk": {"S": "a"}});
    if !item.is_null() {
        let item = with(&key, &item);
        service
            .ok("PutItem", json!({"TableName": "Users", "Item": item}))
            .await;
    }
    let update = with(&request(), &parameters);
    match expected {
        Err(message) => {
            service
                .expect_validation_error("UpdateItem", &update.to_string(), message)
                .await;
        }
        Ok(after) => {
            service.ok("UpdateItem", update).await;
            let response = service.ok("GetItem", request()).await;
            let after = match after {
                Value::Null => Value::Null,
                after => with(&key, &after),
            };
            assert_eq!(response["Item"], after, "parameters={parameters}");
        }
    }
}

#[tokio::test]
async fn attribute_updates_are_applied() {
    let mismatch = "Type mismatch for attribute to update";
    for (item, action, value, after) in [
        (json!(null), None, json!({"N": "1"}), Ok(json!({"N": "1"}))),
        (
            json!({"S": "x"}),
            Some("PUT"),
            json!({"L": []}),
            Ok(json!({"L": []})),
        ),
        (
            json!({"N": "7"}),
            Some("ADD"),
            json!({"N": "-3.5"}),
            Ok(json!({"N": "3.5"})),
        ),
        (
            json!(null),
            Some("ADD"),
            json!({"N": "2"}),
            Ok(json!({"N": "2"})),
        ),
        (
            json!({"NS": ["1"]}),
            Some("ADD"),
            json!({"NS": ["2", "1"]}),
            Ok(json!({"NS": ["1", "2"]})),
        ),
        (
            json!(null),
            Some("ADD"),
            json!({"SS": ["x"]}),
            Ok(json!({"SS": ["x"]})),
        ),
        (
            json!({"L": [{"N": "1"}]}),
            Some("ADD"),
            json!({"L": [{"S": "x"}]}),
            Ok(json!({"L": [{"N": "1"}, {"S": "x"}]})),
        ),
        (
            json!(null),
            Some("ADD"),
            json!({"L": [{"N": "1"}]}),
            Ok(json!({"L": [{"N": "1"}]})),
        ),
        (
            json!({"SS": ["x"]}),
            Some("ADD"),
            json!({"N": "1"}),
            Err(mismatch),
        ),
        (
            json!({"SS": ["x"]}),
            Some("ADD"),
            json!({"L": []}),
            Err(mismatch),
        ),
        (
            json!({"L": []}),
            Some("ADD"),
            json!({"N": "1"}),
            Err(mismatch),
        ),
        (
            json!({"S": "x"}),
            Some("DELETE"),
            json!(null),
            Ok(json!(null)),
        ),
        (json!(null), Some("DELETE"), json!(null), Ok(json!(null))),
        (
            json!({"SS": ["a", "b"]}),
            Some("DELETE"),
            json!({"SS": ["b", "c"]}),
            Ok(json!({"SS": ["a"]})),
        ),
        (
            json!({"SS": ["a"]}),
            Some("DELETE"),
            json!({"SS": ["a"]}),
            Ok(json!(null)),
        ),
        (
            json!({"SS": ["a"]}),
            Some("DELETE"),
            json!({"NS": ["1"]}),
            Err(mismatch),
        ),
    ] {
        let attribute = |value: &Value| match value {
            Value::Null => json!({}),
            value => json!({"v": value}),
        };
        let mut update = json!({});
        if let Some(action) = action {
            update["Action"] = json!(action);
        }
        if !value.is_null() {
            update["Value"] = value;
        }
        let after = after.map(|after| attribute(&after));
        check(
            attribute(&item),
            json!({"AttributeUpdates": {"v": update}}),
            after,
        )
        .await;
    }
    let gone = json!({"AttributeUpdates": {"v": {"Action": "DELETE"}}});
    check(Value::Null, gone, Ok(Value::Null)).await;
    let nothing = json!({"AttributeUpdates": {}});
    check(Value::Null, nothing, Ok(json!({}))).await;
    check(Value::Null, json!({}), Ok(json!({}))).await;
    let key = json!({"AttributeUpdates": {"pk": {"Value": {"S": "b"}}}});
    let message = format!("{INVALID}Cannot update attribute pk. This attribute is part of the key");
    check(Value::Null, key, Err(&message)).await;
}

#[tokio::test]
async fn updates_that_do_not_match_the_item_are_rejected() {
    let operand = "An operand in the update expression has an incorrect data type";
    let missing = "The provided expression refers to an attribute that does not exist in the item";
    let path = "The document path provided in the update expression is invalid for update";
    for (expression, message) in [
        ("SET s = s + :n", operand),
        ("ADD s :n", operand),
        ("SET a = b", missing),
        ("SET a = b + :n", missing),
        ("SET a.b = :n", path),
        ("SET s[0] = :n", path),
        (
            "SET pk = :n",
            "One or more parameter values were invalid: Cannot update attribute pk. This attribute is \
                         part of the key",
        ),
        (
            "REMOVE pk",
            "One or more parameter values were invalid: Cannot update attribute pk. This attribute is part \
                       of the key",
        ),
    ] {
        let mut parameters = json!({"UpdateExpression": expression});
        if expression.contains(":n") {
            parameters["ExpressionAttributeValues"] = json!({":n": {"N": "1"}});
        }
        check(json!({"s": {"S": "x"}}), parameters, Err(message)).await;
    }
    let deep = (0..32).fold(json!({"N": "1"}), |inner, _| json!({"L": [inner]}));
    let parameters = json!({
        "UpdateExpression": "SET m.a = :v",
        "ExpressionAttributeValues": {":v": deep["L"][0]},
    });
    let message = "Nesting Levels have exceeded supported limits";
    check(json!({"m": {"M": {}}}), parameters, Err(message)).await;
}

#[tokio::test]
async fn attributes_are_returned_on_request() {
    let service = TestService::new();
    service.hash_table("Users").await;
    let item = json!({
        "pk": {"S": "a"},
        "a": {"M": {"b": {"S": "dog"}, "c": {"L": [{"N": "1"}, {"N": "2"}, {"N": "3"}]}}},
        "d": {"S": "cat"},
    });
    let list = |numbers: &[&str]| {
        let numbers: Vec<_> = numbers.iter().map(|number| json!({"N": number})).collect();
        json!({"a": {"M": {"c": {"L": numbers}}}})
    };
    for (expression, returned, attributes) in [
        ("SET d = :v", "NONE", Value::Null),
        ("SET d = :v", "ALL_OLD", item.clone()),
        (
            "SET d = :v, e = :v",
            "UPDATED_OLD",
            json!({"d": {"S": "cat"}}),
        ),
        ("SET e = :v", "UPDATED_OLD", Value::Null),
        (
            "SET d = :v, e = :v",
            "UPDATED_NEW",
            json!({"d": {"N": "9"}, "e": {"N": "9"}}),
        ),
        ("REMOVE d", "UPDATED_OLD", json!({"d": {"S": "cat"}})),
        ("REMOVE d", "UPDATED_NEW", Value::Null),
        (
            "REMOVE d",
            "ALL_NEW",
            json!({"pk": {"S": "a"}, "a": item["a"]}),
        ),
        (
            "SET a.b = :v",
            "UPDATED_OLD",
            json!({"a": {"M": {"b": {"S": "dog"}}}}),
        ),
        ("SET a.c[1] = :v", "UPDATED_OLD", list(&["2"])),
        ("SET a.c[1] = :v", "UPDATED_NEW", list(&["9"])),
        // An element set past the end is not found at its path; after a removal, the path refers to the element that moved up.
        ("SET a.c[100] = :v", "UPDATED_NEW", Value::Null),
        ("REMOVE a.c[1]", "UPDATED_NEW", list(&["3"])),
        ("REMOVE a.c[1], a.c[3]", "UPDATED_OLD", list(&["2"])),
    ] {
        service
            .ok("PutItem", json!({"TableName": "Users", "Item": item}))
            .await;
        let mut parameters = json!({"UpdateExpression": expression, "ReturnValues": returned});
        if expression.contains(":v") {
            parameters["ExpressionAttributeValues"] = json!({":v": {"N": "9"}});
        }
        let response = service
            .ok("UpdateItem", with(&request(), &parameters))
            .await;
        assert_eq!(
            response["Attributes"], attributes,
            "expression={expression} returned={returned}"
        );
    }
    let new = |returned: &str| {
        let key = json!({"pk": {"S": "new"}});
        json!({"TableName": "Users", "Key": key, "AttributeUpdates": {}, "ReturnValues": returned})
    };
    assert_eq!(
        service.ok("UpdateItem", new("UPDATED_NEW")).await,
        json!({})
    );
    assert_eq!(
        service.ok("UpdateItem", new("ALL_NEW")).await,
        json!({"Attributes": {"pk": {"S": "new"}}})
    );
}

#[tokio::test]
async fn size_of_the_request_counts_for_expressions_only() {
    let text = |bytes: usize| json!({"S": "x".repeat(bytes)});
    let too_large = "Item size to update has exceeded the maximum allowed size";
    let updates = |bytes: usize| json!({"AttributeUpdates": {"b": {"Value": text(bytes)}}});
    let expression = |bytes: usize| json!({"UpdateExpression": "SET b = :v", "ExpressionAttributeValues": {":v": text(bytes)}});
    // The key takes 3 bytes, the name of the attribute 1, and the statement 22.
    check(
        Value::Null,
        updates(409_596),
        Ok(json!({"b": text(409_596)})),
    )
    .await;
    check(Value::Null, updates(409_597), Err(too_large)).await;
    check(
        Value::Null,
        expression(409_577),
        Ok(json!({"b": text(409_577)})),
    )
    .await;
    check(Value::Null, expression(409_578), Err(too_large)).await;
}
