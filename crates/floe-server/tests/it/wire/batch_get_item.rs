//! BatchGetItem.

use floe_store::TableDef;
use floe_store::table::KeyKind;
use serde_json::{Value, json};

use super::test_service::TestService;

/// Returns a service with two tables, `Hash` with a partition key and `Pair` with a sort key too, and a few items.
async fn service() -> TestService {
    let service = TestService::new();
    let hash = TableDef::builder("Hash", "pk", KeyKind::S).build();
    let pair = TableDef::builder("Pair", "pk", KeyKind::S).sort_key("sk", KeyKind::N);
    service.create_table(hash.unwrap()).await;
    service.create_table(pair.build().unwrap()).await;
    let put = |item: Value| json!({"PutRequest": {"Item": item}});
    let items = json!({"RequestItems": {
        "Hash": [put(json!({"pk": {"S": "a"}, "n": {"N": "1"}, "m": {"M": {"x": {"S": "y"}}}})),
                 put(json!({"pk": {"S": "b"}, "n": {"N": "2"}}))],
        "Pair": [put(json!({"pk": {"S": "a"}, "sk": {"N": "1"}, "text": {"S": "t"}}))],
    }});
    service.ok("BatchWriteItem", items).await;
    service
}

#[tokio::test]
async fn items_are_returned_by_table() {
    let service = service().await;
    let check = async |body: Value, response: Value| {
        assert_eq!(service.ok("BatchGetItem", body).await, response);
    };
    check(
        json!({"RequestItems": {
            "Hash": {"Keys": [{"pk": {"S": "a"}}, {"pk": {"S": "missing"}}], "ProjectionExpression": "#n, m.x",
                     "ExpressionAttributeNames": {"#n": "n"}},
            "Pair": {"Keys": [{"pk": {"S": "a"}, "sk": {"N": "1.0"}}], "ConsistentRead": true},
        }, "ReturnConsumedCapacity": "TOTAL"}),
        json!({
            "Responses": {
                "Hash": [{"n": {"N": "1"}, "m": {"M": {"x": {"S": "y"}}}}],
                "Pair": [{"pk": {"S": "a"}, "sk": {"N": "1"}, "text": {"S": "t"}}],
            },
            "UnprocessedKeys": {},
            "ConsumedCapacity": [
                {"TableName": "Hash", "CapacityUnits": 1.0},
                {"TableName": "Pair", "CapacityUnits": 1.0},
            ],
        }),
    )
    .await;
    check(
        json!({"RequestItems": {"Hash": {"Keys": [{"pk": {"S": "x"}}], "AttributesToGet": ["n"]}}}),
        json!({"Responses": {"Hash": []}, "UnprocessedKeys": {}}),
    )
    .await;
    check(
        json!({"RequestItems": {"Hash": {"Keys": [{"pk": {"S": "a"}}], "AttributesToGet": ["n"]}},
               "ReturnConsumedCapacity": "INDEXES"}),
        json!({
            "Responses": {"Hash": [{"n": {"N": "1"}}]},
            "UnprocessedKeys": {},
            "ConsumedCapacity": [{"TableName": "Hash", "CapacityUnits": 0.5, "Table": {"CapacityUnits": 0.5}}],
        }),
    )
    .await;
}

#[tokio::test]
async fn unprocessed_keys_repeat_the_request() {
    let service = service().await;
    let text = "x".repeat(390 * 1024);
    for n in 0..44 {
        let item = json!({"pk": {"S": n.to_string()}, "data": {"S": text}});
        let put = json!({"RequestItems": {"Hash": [{"PutRequest": {"Item": item}}]}});
        service.ok("BatchWriteItem", put).await;
    }
    let keys: Vec<Value> = (0..44)
        .map(|n| json!({"pk": {"S": n.to_string()}}))
        .collect();
    let keys_and_attributes = json!({"Keys": keys, "ConsistentRead": false, "ProjectionExpression": "#p",
                       "ExpressionAttributeNames": {"#p": "pk"}});
    let response = service
        .ok(
            "BatchGetItem",
            json!({"RequestItems": {"Hash": keys_and_attributes}}),
        )
        .await;
    assert_eq!(response["Responses"]["Hash"].as_array().unwrap().len(), 42);
    assert_eq!(
        response["UnprocessedKeys"],
        json!({"Hash": {"Keys": keys[42..], "ConsistentRead": false, "ProjectionExpression": "#p",
                        "ExpressionAttributeNames": {"#p": "pk"}}})
    );
}

const RCC: &str = "Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum \
                   value set: [INDEXES, TOTAL, NONE]";
const NAMES: &str = "Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member \
                     must have length greater than or equal to 3, Member must satisfy regular expression pattern: \
                     [a-zA-Z0-9_.-]+]";

#[tokio::test]
async fn member_faults_are_reported_alone_or_together() {
    let service = TestService::new();
    let check = async |body: Value, message: &str| {
        service
            .expect_validation_error("BatchGetItem", &body.to_string(), message)
            .await;
    };
    let missing =
        "Value null at 'requestItems' failed to satisfy constraint: Member must not be null";
    check(
        json!({}),
        &format!("1 validation error detected: {missing}"),
    )
    .await;
    check(
        json!({"ReturnConsumedCapacity": "hi"}),
        &format!("2 validation errors detected: {missing}; {RCC}"),
    )
    .await;
    let at_least_1 =
        "failed to satisfy constraint: Member must have length greater than or equal to 1";
    check(
        json!({"RequestItems": {}, "ReturnConsumedCapacity": "hi"}),
        &format!("1 validation error detected: Value at 'RequestItems' {at_least_1}"),
    )
    .await;
    check(
        json!({"RequestItems": {"a!": {"Keys": []}}, "ReturnConsumedCapacity": "hi"}),
        &format!(
            "1 validation error detected: Value at 'RequestItems.a!.member.Keys' {at_least_1}"
        ),
    )
    .await;
    check(
        json!({"RequestItems": {"abc": {}}, "ReturnConsumedCapacity": "hi"}),
        &format!(
            "2 validation errors detected: Value null at 'requestItems.abc.member.keys' failed to satisfy \
             constraint: Member must not be null; {RCC}"
        ),
    )
    .await;
    let key = |pk: &str| json!({"pk": {"S": pk}});
    check(
        json!({"RequestItems": {
            "bad!name": {"Keys": [key("b")], "ProjectionExpression": "pk", "ConsistentRead": true,
                         "ExpressionAttributeNames": {"#a": "a"}},
            "Able": {"Keys": [key("a")], "AttributesToGet": ["x"]},
        }, "ReturnConsumedCapacity": "hi"}),
        &format!(
            "2 validation errors detected: Value '{{\"Able\":{{\"AttributesToGet\":[\"x\"],\"Keys\":[{{\"pk\":\
             {{\"S\":\"a\"}}}}]}},\"bad!name\":{{\"ConsistentRead\":true,\"ExpressionAttributeNames\":\
             {{\"#a\":\"a\"}},\"Keys\":[{{\"pk\":{{\"S\":\"b\"}}}}],\"ProjectionExpression\":\"pk\"}}}}' at \
             'requestItems' failed to satisfy constraint: {NAMES}; {RCC}"
        ),
    )
    .await;
    let keys = |count: usize| (0..count).map(|n| key(&n.to_string())).collect::<Value>();
    check(
        json!({"RequestItems": {"abc": {"Keys": keys(101)}}, "ReturnConsumedCapacity": "hi"}),
        "1 validation error detected: Value at 'RequestItems.abc.member.Keys' failed to satisfy constraint: Member \
         must have length less than or equal to 100",
    )
    .await;
    check(
        json!({"RequestItems": {"abc": {"Keys": keys(100)}, "abd": {"Keys": [key("x")]}}}),
        "Too many items requested for the BatchGetItem call",
    )
    .await;
    check(
        json!({"RequestItems": {"abc": {"Keys": keys(1), "AttributesToGet": []}}}),
        &format!("1 validation error detected: Value at 'RequestItems.abc.member.AttributesToGet' {at_least_1}"),
    )
    .await;
}

#[tokio::test]
async fn requests_are_checked_before_the_table() {
    let service = TestService::new();
    let check = async |table: Value, message: &str| {
        let body = json!({"RequestItems": {"abc": table}}).to_string();
        service
            .expect_validation_error("BatchGetItem", &body, message)
            .await;
    };
    let mixed = "Can not use both expression and non-expression parameters in the same request: Non-expression \
                 parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}";
    check(
        json!({"Keys": [{}], "AttributesToGet": ["a"], "ExpressionAttributeNames": {}, "ProjectionExpression": ""}),
        mixed,
    )
    .await;
    check(
        json!({"Keys": [{}], "AttributesToGet": ["a", "a"], "ExpressionAttributeNames": {}}),
        "ExpressionAttributeNames can only be specified when using expressions",
    )
    .await;
    check(
        json!({"Keys": [{}], "ExpressionAttributeNames": {}, "ProjectionExpression": ""}),
        "ExpressionAttributeNames must not be empty",
    )
    .await;
    check(
        json!({"Keys": [{}], "ExpressionAttributeNames": {"a": "a"}, "ProjectionExpression": ""}),
        "ExpressionAttributeNames contains invalid key: Syntax error; key: \"a\"",
    )
    .await;
    let key = json!({"a": {"S": "x"}, "b": {"N": "1"}});
    let empty = "Invalid ProjectionExpression: The expression can not be empty;";
    check(
        json!({"Keys": [key, key], "ProjectionExpression": ""}),
        empty,
    )
    .await;
    check(
        json!({"Keys": [{}], "ProjectionExpression": "a, a"}),
        "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or rewrite one of \
         these paths; path one: [a], path two: [a]",
    )
    .await;
    check(
        json!({"Keys": [key, key], "AttributesToGet": ["a", "a"]}),
        "One or more parameter values were invalid: Duplicate value in attribute name: a",
    )
    .await;
    check(
        json!({"Keys": [key, {"b": {"N": "1.0"}, "a": {"S": "x"}}]}),
        "Provided list of item keys contains duplicates",
    )
    .await;
    check(
        json!({"Keys": [{"": {"S": "x"}}], "AttributesToGet": ["a"], "ProjectionExpression": "b"}),
        "Empty attribute name",
    )
    .await;
    check(
        json!({"Keys": [{}], "AttributesToGet": [""]}),
        "Empty attribute name",
    )
    .await;
    // An expression for one table cannot be combined with a legacy parameter for another.
    let body = json!({"RequestItems": {
        "abc": {"Keys": [{}], "AttributesToGet": ["a"]}, "abd": {"Keys": [{}], "ProjectionExpression": "a"},
    }});
    service
        .expect_validation_error("BatchGetItem", &body.to_string(), mixed)
        .await;
}

#[tokio::test]
async fn key_faults_are_reported_by_the_newer_layer() {
    let service = TestService::new();
    let check = async |value: Value, message: &str| {
        let body = json!({"RequestItems": {"abc": {"Keys": [{"a": value}]}}}).to_string();
        service
            .expect_validation_error("BatchGetItem", &body, message)
            .await;
    };
    let invalid = |message: &str| format!("One or more parameter values were invalid: {message}");
    for value in [
        json!({}),
        json!({"a": ""}),
        json!({"M": {"a": {}}}),
        json!({"L": [{}]}),
    ] {
        check(
            value,
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        )
        .await;
    }
    check(
        json!({"S": "a", "N": "1"}),
        "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported datatypes",
    )
    .await;
    for (value, message) in [
        (
            json!({"NULL": false}),
            "Null attribute value types must have the value of true",
        ),
        (json!({"SS": []}), "An string set  may not be empty"),
        (json!({"NS": []}), "An number set  may not be empty"),
        (json!({"BS": []}), "Binary sets should not be empty"),
        (
            json!({"SS": ["b", "a", "b"]}),
            r#"Input collection ["a", "b", "b"] contains duplicates."#,
        ),
        (
            json!({"NS": ["1", "1"]}),
            "Input collection contains duplicates.",
        ),
    ] {
        check(value, &invalid(message)).await;
    }
    for (value, message) in [
        (
            json!({"N": ""}),
            "The parameter cannot be converted to a numeric value: ",
        ),
        (
            json!({"N": "b"}),
            "The parameter cannot be converted to a numeric value: b",
        ),
        (
            json!({"N": "1e126"}),
            "Number overflow. Attempting to store a number with magnitude larger than supported range",
        ),
    ] {
        check(value, message).await;
    }
}

#[tokio::test]
async fn keys_are_checked_against_their_tables() {
    let service = service().await;
    let not_found = json!({"RequestItems": {"Nowhere": {"Keys": [{}]}}}).to_string();
    service
        .expect_error(
            "BatchGetItem",
            &not_found,
            "ResourceNotFoundException",
            "Requested resource not found",
        )
        .await;
    let check = async |table: &str, key: Value, message: &str| {
        let body = json!({"RequestItems": {table: {"Keys": [key]}}}).to_string();
        service
            .expect_validation_error("BatchGetItem", &body, message)
            .await;
    };
    let mismatch = "The provided key element does not match the schema";
    for key in [
        json!({}),
        json!({"b": {"S": "a"}}),
        json!({"pk": {"S": "a"}, "b": {"S": "a"}}),
        json!({"pk": {"N": "1"}}),
        json!({"pk": {"L": []}}),
    ] {
        check("Hash", key, mismatch).await;
    }
    check("Pair", json!({"pk": {"S": "a"}}), mismatch).await;
    check(
        "Hash",
        json!({"pk": {"S": ""}}),
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty \
         string value. Key: pk",
    )
    .await;
    check(
        "Hash",
        json!({"pk": {"S": "x".repeat(2049)}}),
        "One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes",
    )
    .await;
}

#[tokio::test]
async fn empty_projection_returns_an_empty_item() {
    let service = service().await;
    let body = json!({"RequestItems": {"Hash": {"Keys": [{"pk": {"S": "a"}}], "ProjectionExpression": "nothing"}}});
    let response = service.ok("BatchGetItem", body).await;
    assert_eq!(response["Responses"], json!({"Hash": [{}]}));
}

#[tokio::test]
async fn table_arn_is_accepted_as_name() {
    let service = service().await;
    let arn = "arn:aws:dynamodb:us-east-1:123456789012:table/Hash";
    let body = json!({"RequestItems": {arn: {"Keys": [{"pk": {"S": "b"}}]}}, "ReturnConsumedCapacity": "TOTAL"});
    assert_eq!(
        service.ok("BatchGetItem", body).await,
        json!({
            "Responses": {arn: [{"pk": {"S": "b"}, "n": {"N": "2"}}]},
            "UnprocessedKeys": {},
            "ConsumedCapacity": [{"TableName": arn, "CapacityUnits": 0.5}],
        })
    );
}

#[tokio::test]
async fn wrong_type_is_rejected_with_the_type_found() {
    let service = TestService::new();
    let check = async |body: Value, message: &str| {
        let code = "SerializationException";
        service
            .expect_error("BatchGetItem", &body.to_string(), code, message)
            .await;
    };
    let cast = "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class \
                java.lang.Class (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are \
                in module java.base of loader 'bootstrap')";
    let class = "com.amazonaws.dynamodb.v20120810";
    check(json!({"RequestItems": "x"}), "Unexpected field type").await;
    check(
        json!({"RequestItems": []}),
        &format!("Unrecognized collection type java.util.Map<java.lang.String, {class}.KeysAndAttributes>"),
    )
    .await;
    let table = |table: Value| json!({"RequestItems": {"abc": table}});
    check(table(json!(23)), "Unexpected value type in payload").await;
    check(
        table(json!([])),
        &format!("Unrecognized collection type class {class}.KeysAndAttributes"),
    )
    .await;
    check(table(json!({"Keys": true})), "Unexpected field type").await;
    check(
        table(json!({"Keys": {}})),
        "Start of structure or map found where not expected",
    )
    .await;
    check(table(json!({"Keys": ["x"]})), cast).await;
    check(
        table(json!({"Keys": [[]]})),
        &format!(
            "Unrecognized collection type java.util.Map<java.lang.String, {class}.AttributeValue>"
        ),
    )
    .await;
    check(
        table(json!({"Keys": [{"a": 1}]})),
        "Unexpected value type in payload",
    )
    .await;
    check(
        table(json!({"ConsistentRead": 1})),
        "NUMBER_VALUE cannot be converted to Boolean",
    )
    .await;
}
