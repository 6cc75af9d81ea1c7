//! GetItem.

use serde_json::{Value, json};

use super::test_service::{TestService, one, with};

const NULL_KEY: &str = "Value null at 'key' failed to satisfy constraint: Member must not be null";
const NULL_TABLE: &str =
    "Value null at 'tableName' failed to satisfy constraint: Member must not be null";
const CAPACITY: &str = "Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy \
                        enum value set: [INDEXES, TOTAL, NONE]";

fn request() -> Value {
    json!({"TableName": "Users", "Key": {"pk": {"S": "a"}}})
}

#[tokio::test]
async fn members_are_checked_before_the_table() {
    let service = TestService::new();
    let long = "x".repeat(256);
    let short = |name: &str| {
        format!(
            "Value '{name}' at 'tableName' failed to satisfy constraint: Member must have length greater than or \
             equal to 3"
        )
    };
    let empty = one(
        "Value at 'TableName' failed to satisfy constraint: Member must have length greater than or equal to 1",
    );
    for (body, message) in [
        (
            json!({}),
            format!("2 validation errors detected: {NULL_KEY}; {NULL_TABLE}"),
        ),
        (
            json!({"TableName": "", "ReturnConsumedCapacity": "hi"}),
            empty,
        ),
        (
            with(
                &request(),
                &json!({"TableName": "a!", "ReturnConsumedCapacity": "hi"}),
            ),
            format!("2 validation errors detected: {}; {CAPACITY}", short("a!")),
        ),
        (
            with(&request(), &json!({"TableName": long})),
            one(&format!(
                "Value '{long}' at 'tableName' failed to satisfy constraint: Member must have length less than or \
                 equal to 255"
            )),
        ),
        (
            with(&request(), &json!({"TableName": "bad!name"})),
            one(
                "Value 'bad!name' at 'tableName' failed to satisfy constraint: Member must satisfy regular \
                 expression pattern: [a-zA-Z0-9_.-]+",
            ),
        ),
        (
            with(&request(), &json!({"AttributesToGet": []})),
            one(
                "Value '[]' at 'attributesToGet' failed to satisfy constraint: Member must have length greater than \
                 or equal to 1",
            ),
        ),
        (
            with(
                &request(),
                &json!({"TableName": "arn:aws:dynamodb:eu-west-1:1:table/Users/index/by_name"}),
            ),
            one(
                "Value 'arn:aws:dynamodb:eu-west-1:1:table/Users/index/by_name' at 'tableName' failed to satisfy \
                 constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
            ),
        ),
    ] {
        service
            .expect_validation_error("GetItem", &body.to_string(), &message)
            .await;
    }
}

#[tokio::test]
async fn parameters_are_checked_before_the_table() {
    let service = TestService::new();
    let bad_key = json!({"Key": {"pk": {}}});
    for (parameters, message) in [
        (
            with(
                &bad_key,
                &json!({"AttributesToGet": ["a", "a"], "ProjectionExpression": "", "ExpressionAttributeNames": {}}),
            ),
            "Can not use both expression and non-expression parameters in the same request: Non-expression \
             parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}",
        ),
        (
            with(&bad_key, &json!({"ExpressionAttributeNames": {}})),
            "ExpressionAttributeNames can only be specified when using expressions",
        ),
        (
            with(&bad_key, &json!({"AttributesToGet": ["a", "a"]})),
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        ),
        (
            json!({"AttributesToGet": ["a", "b", "a"]}),
            "One or more parameter values were invalid: Duplicate value in attribute name: a",
        ),
        (
            json!({"AttributesToGet": ["a", ""]}),
            "Empty attribute name",
        ),
        (
            json!({"ProjectionExpression": "", "ExpressionAttributeNames": {}}),
            "ExpressionAttributeNames must not be empty",
        ),
        (
            json!({"ProjectionExpression": ""}),
            "Invalid ProjectionExpression: The expression can not be empty;",
        ),
        (
            json!({"ProjectionExpression": "!!! INVALID !!!"}),
            r#"Invalid ProjectionExpression: Syntax error; token: "!", near: "!!""#,
        ),
        (
            json!({"ProjectionExpression": "a, a.b"}),
            "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of \
             these paths; path one: [a], path two: [a, b]",
        ),
        (
            json!({"ProjectionExpression": "#a"}),
            "Invalid ProjectionExpression: An expression attribute name used in the document path is not defined; \
             attribute name: #a",
        ),
        (
            json!({"ProjectionExpression": "a", "ExpressionAttributeNames": {"#b": "b"}}),
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#b}",
        ),
    ] {
        let body = with(&request(), &parameters).to_string();
        service
            .expect_validation_error("GetItem", &body, message)
            .await;
    }
    let long = json!({"AttributesToGet": ["x".repeat(65_536)]});
    let message = "One or more parameter values were invalid: Attribute name is too large, must be less than 65536 \
                   bytes";
    let body = with(&request(), &long).to_string();
    service
        .expect_validation_error("GetItem", &body, message)
        .await;
}

#[tokio::test]
async fn key_must_match_the_table() {
    let service = TestService::new();
    service
        .expect_error(
            "GetItem",
            &request().to_string(),
            "ResourceNotFoundException",
            "Requested resource not found",
        )
        .await;
    service.hash_table("Users").await;
    let schema = "The provided key element does not match the schema";
    for (key, message) in [
        (json!({}), schema),
        (json!({"id": {"S": "a"}}), schema),
        (json!({"pk": {"N": "1"}}), schema),
        (json!({"pk": {"S": "a"}, "sk": {"S": "a"}}), schema),
        (
            json!({"pk": {"S": ""}}),
            "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an \
             empty string value. Key: pk",
        ),
        (
            json!({"pk": {"S": "x".repeat(2049)}}),
            "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 \
             bytes",
        ),
    ] {
        let body = with(&request(), &json!({"Key": key})).to_string();
        service
            .expect_validation_error("GetItem", &body, message)
            .await;
    }
}

#[tokio::test]
async fn projection_returns_parts_of_the_item() {
    let service = TestService::new();
    service.hash_table("Users").await;
    let item = json!({
        "pk": {"S": "a"},
        "m": {"M": {"x": {"N": "1"}, "y": {"N": "2"}}},
        "l": {"L": [{"S": "0"}, {"S": "1"}, {"S": "2"}]},
    });
    assert_eq!(service.ok("GetItem", request()).await, json!({}));
    service
        .ok("PutItem", json!({"TableName": "Users", "Item": item}))
        .await;
    assert_eq!(
        service.ok("GetItem", request()).await,
        json!({"Item": item})
    );
    for (parameters, returned) in [
        (
            json!({"AttributesToGet": ["l", "none"]}),
            json!({"l": item["l"]}),
        ),
        (json!({"AttributesToGet": ["none"]}), json!({})),
        (json!({"ProjectionExpression": "nope"}), json!({})),
        (
            json!({"ProjectionExpression": "l[2], #l[0], m.x", "ExpressionAttributeNames": {"#l": "l"}}),
            json!({"l": {"L": [{"S": "0"}, {"S": "2"}]}, "m": {"M": {"x": {"N": "1"}}}}),
        ),
        (
            json!({"ProjectionExpression": "m.z, l[9], pk"}),
            json!({"pk": {"S": "a"}}),
        ),
    ] {
        let response = service.ok("GetItem", with(&request(), &parameters)).await;
        assert_eq!(
            response,
            json!({"Item": returned}),
            "parameters={parameters}"
        );
    }
}

#[tokio::test]
async fn capacity_is_reported_on_request() {
    let service = TestService::new();
    service.hash_table("Users").await;
    let cost = |units: f64| json!({"TableName": "Users", "CapacityUnits": units});
    let by_index =
        json!({"TableName": "Users", "CapacityUnits": 1.0, "Table": {"CapacityUnits": 1.0}});
    for (parameters, consumed) in [
        (json!({"ReturnConsumedCapacity": "NONE"}), Value::Null),
        (json!({"ReturnConsumedCapacity": "TOTAL"}), cost(0.5)),
        (
            json!({"ReturnConsumedCapacity": "TOTAL", "ConsistentRead": true}),
            cost(1.0),
        ),
        (
            json!({"ReturnConsumedCapacity": "TOTAL", "ConsistentRead": "yes"}),
            cost(1.0),
        ),
        (
            json!({"ReturnConsumedCapacity": "INDEXES", "ConsistentRead": true}),
            by_index,
        ),
    ] {
        let response = service.ok("GetItem", with(&request(), &parameters)).await;
        assert_eq!(
            response["ConsumedCapacity"], consumed,
            "parameters={parameters}"
        );
    }
    let large = json!({"pk": {"S": "a"}, "v": {"S": "x".repeat(4096)}});
    service
        .ok("PutItem", json!({"TableName": "Users", "Item": large}))
        .await;
    let parts = json!({"ReturnConsumedCapacity": "TOTAL", "ProjectionExpression": "pk"});
    let response = service.ok("GetItem", with(&request(), &parts)).await;
    assert_eq!(response["ConsumedCapacity"], cost(1.0));
}
