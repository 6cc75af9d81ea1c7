//! TransactGetItems.

use floe_store::TableDef;
use floe_store::table::KeyKind;
use serde_json::{Value, json};

use super::test_service::TestService;

/// Returns a service with a table `Hash` and an item.
async fn service() -> TestService {
    let service = TestService::new();
    let hash = TableDef::builder("Hash", "pk", KeyKind::S).build();
    service.create_table(hash.unwrap()).await;
    let item = json!({"pk": {"S": "a"}, "n": {"N": "1"}, "m": {"M": {"x": {"S": "y"}}}});
    let put = json!({"RequestItems": {"Hash": [{"PutRequest": {"Item": item}}]}});
    service.ok("BatchWriteItem", put).await;
    service
}

#[tokio::test]
async fn items_are_returned_in_request_order() {
    let service = service().await;
    let get = |pk: &str| json!({"Get": {"TableName": "Hash", "Key": {"pk": {"S": pk}}, "ProjectionExpression": "n"}});
    let body = json!({"TransactItems": [get("x"), get("a")], "ReturnConsumedCapacity": "INDEXES"});
    assert_eq!(
        service.ok("TransactGetItems", body).await,
        json!({
            "Responses": [{}, {"Item": {"n": {"N": "1"}}}],
            "ConsumedCapacity": [{
                "TableName": "Hash", "CapacityUnits": 4.0, "ReadCapacityUnits": 4.0,
                "Table": {"CapacityUnits": 4.0, "ReadCapacityUnits": 4.0},
            }],
        })
    );
}

const RCC: &str = "Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum \
                   value set: [INDEXES, TOTAL, NONE]";

#[tokio::test]
async fn members_are_checked_in_dynamodb_order() {
    let service = TestService::new();
    let check = async |body: Value, message: &str| {
        service
            .expect_validation_error("TransactGetItems", &body.to_string(), message)
            .await;
    };
    let null = |path: &str| {
        format!(
            "Value null at 'transactItems{path}' failed to satisfy constraint: Member must not be null"
        )
    };
    check(
        json!({}),
        &format!("1 validation error detected: {}", null("")),
    )
    .await;
    check(
        json!({"TransactItems": [], "ReturnConsumedCapacity": "hi"}),
        "1 validation error detected: Value '[]' at 'transactItems' failed to satisfy constraint: Member must have \
         length greater than or equal to 1",
    )
    .await;
    let bad = json!({"Get": {"TableName": "bad!name", "Key": {"pk": {"S": "a"}}}});
    check(
        json!({"TransactItems": [{}, bad], "ReturnConsumedCapacity": "hi"}),
        &format!(
            "2 validation errors detected: {}; {RCC}",
            null(".1.member.get")
        ),
    )
    .await;
    check(
        json!({"TransactItems": [bad, {"Get": null}]}),
        &format!("1 validation error detected: {}", null(".2.member.get")),
    )
    .await;
    check(
        json!({"TransactItems": [{"Get": {}}]}),
        &format!(
            "2 validation errors detected: {}; {}",
            null(".1.member.get.key"),
            null(".1.member.get.tableName")
        ),
    )
    .await;
    check(
        json!({"TransactItems": [bad], "ReturnConsumedCapacity": "hi"}),
        &format!("1 validation error detected: {RCC}"),
    )
    .await;
    let good = json!({"Get": {"TableName": "Nowhere", "Key": {"pk": {"SS": []}}, "ProjectionExpression": "!!!"}});
    check(
        json!({"TransactItems": [good, bad]}),
        "1 validation error detected: Value 'bad!name' at 'transactItems.2.member.get.tableName' failed to satisfy \
         constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
    )
    .await;
}

#[tokio::test]
async fn too_many_items_are_repeated_in_the_error() {
    let service = TestService::new();
    let first = json!({"Get": {"TableName": "abc", "Key": {"pk": {"S": "k"}}, "ProjectionExpression": "#n",
                               "ExpressionAttributeNames": {"#n": "a"}}});
    let rest = (0..100).map(|_| json!({"Get": {"TableName": "abc", "Key": {"n": {"N": "1"}}}}));
    let items: Vec<Value> = std::iter::once(first).chain(rest).collect();
    let body = json!({"TransactItems": items, "ReturnConsumedCapacity": "hi"}).to_string();
    let (_, response) = service.call("TransactGetItems", &body).await;
    let message = response["message"].as_str().unwrap();
    assert!(message.starts_with(
        "1 validation error detected: Value '[TransactGetItem(get=Get(key={pk=AttributeValue(s=k, n=null, b=null, \
         iNT=null, dECIMAL=null, dOUBLE=null, sS=null, nS=null, bS=null, iNTSET=null, dECIMALSET=null, \
         dOUBLESET=null, m=null, l=null, nULL=null, bOOL=null)}, tableName=abc, projectionExpression=#n, \
         expressionAttributeNames={#n=a}, workloadProfileName=null)), TransactGetItem(get=Get(key={n=AttributeValue("
    ));
    assert!(message.ends_with(
        "tableName=abc, projectionExpression=null, expressionAttributeNames=null, workloadProfileName=null))]' at \
         'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100"
    ));
}

#[tokio::test]
async fn keys_and_projections_are_checked_by_the_older_layer() {
    let service = TestService::new();
    let check = async |get: Value, message: &str| {
        let mut bad = json!({"TableName": "Nowhere", "Key": {"pk": {"S": "a"}}});
        bad.as_object_mut()
            .unwrap()
            .extend(get.as_object().unwrap().clone());
        let good = json!({"Get": {"TableName": "Nowhere", "Key": {"pk": {"S": "b"}}}});
        let body = json!({"TransactItems": [good, {"Get": bad}]}).to_string();
        service
            .expect_validation_error("TransactGetItems", &body, message)
            .await;
    };
    check(json!({"Key": {"": {"S": "a"}}}), "Empty attribute name").await;
    check(
        json!({"Key": {"pk": {"NS": ["2", "1", "2"]}}, "ProjectionExpression": ""}),
        "Input collection contains duplicates",
    )
    .await;
    check(
        json!({"Key": {"pk": {"SS": ["b", "a", "b"]}}}),
        "One or more parameter values were invalid: Input collection [b, a, b] contains duplicates.",
    )
    .await;
    check(
        json!({"ProjectionExpression": "!!!"}),
        "Invalid ProjectionExpression: Syntax error; token: \"!\", near: \"!!\"",
    )
    .await;
    check(
        json!({"ProjectionExpression": ""}),
        "Invalid ProjectionExpression: The expression can not be empty;",
    )
    .await;
    check(
        json!({"ProjectionExpression": "#x,#z", "ExpressionAttributeNames": {"#x": "x"}}),
        "Invalid ProjectionExpression: An expression attribute name used in the document path is not defined; \
         attribute name: #z",
    )
    .await;
    check(
        json!({"ProjectionExpression": "#x", "ExpressionAttributeNames": {"#x": "x", "#q": "q"}}),
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#q}",
    )
    .await;
    check(
        json!({"ExpressionAttributeNames": {"#x": ""}, "ProjectionExpression": "#x"}),
        "ExpressionAttributeNames contains invalid value: Empty attribute name for key #x",
    )
    .await;
}

#[tokio::test]
async fn key_that_does_not_match_the_table_cancels_the_transaction() {
    let service = service().await;
    let get = |key: Value| json!({"Get": {"TableName": "Hash", "Key": key}});
    let check = async |gets: Value, codes: &str, reasons: Value| {
        let body = json!({"TransactItems": gets}).to_string();
        let (status, response) = service.call("TransactGetItems", &body).await;
        assert_eq!(status, 400);
        assert_eq!(
            response,
            json!({
                "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
                "Message": format!(
                    "Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
                ),
                "CancellationReasons": reasons,
            })
        );
    };
    let mismatch = json!({"Code": "ValidationError",
                          "Message": "The provided key element does not match the schema"});
    check(
        json!([get(json!({}))]),
        "ValidationError",
        json!([mismatch]),
    )
    .await;
    check(
        json!([
            get(json!({"pk": {"S": "a"}})),
            get(json!({"pk": {"N": "1"}}))
        ]),
        "None, ValidationError",
        json!([{"Code": "None"}, mismatch]),
    )
    .await;
    let empty = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain \
                 an empty string value. Key: pk";
    check(
        json!([get(json!({"pk": {"S": ""}}))]),
        "ValidationError",
        json!([{"Code": "ValidationError", "Message": empty}]),
    )
    .await;
    let twice =
        json!({"TransactItems": [get(json!({"pk": {"S": "a"}})), get(json!({"pk": {"S": "a"}}))]});
    service
        .expect_validation_error(
            "TransactGetItems",
            &twice.to_string(),
            "Transaction request cannot include multiple operations on one item",
        )
        .await;
    let elsewhere =
        json!({"TransactItems": [{"Get": {"TableName": "Nowhere", "Key": {"pk": {"S": "a"}}}}]});
    service
        .expect_error(
            "TransactGetItems",
            &elsewhere.to_string(),
            "ResourceNotFoundException",
            "Requested resource not found",
        )
        .await;
}

#[tokio::test]
async fn item_with_empty_projection_is_omitted() {
    let service = service().await;
    let get = |projection: &str| json!({"Get": {"TableName": "Hash", "Key": {"pk": {"S": "a"}}, "ProjectionExpression": projection}});
    let body = json!({"TransactItems": [get("nothing, m.y")]});
    let response = service.ok("TransactGetItems", body).await;
    assert_eq!(response, json!({"Responses": [{}]}));
    let body = json!({"TransactItems": [get("m.x")]});
    let response = service.ok("TransactGetItems", body).await;
    assert_eq!(
        response,
        json!({"Responses": [{"Item": {"m": {"M": {"x": {"S": "y"}}}}}]})
    );
}

#[tokio::test]
async fn number_sets_have_java_order() {
    let service = service().await;
    let item = json!({"pk": {"S": "set"}, "n": {"NS": ["100", "-1", "9", "25"]}});
    let put = json!({"RequestItems": {"Hash": [{"PutRequest": {"Item": item}}]}});
    service.ok("BatchWriteItem", put).await;
    let key = json!({"pk": {"S": "set"}});
    let body = json!({"TransactItems": [{"Get": {"TableName": "Hash", "Key": key}}]});
    let response = service.ok("TransactGetItems", body).await;
    assert_eq!(
        response["Responses"][0]["Item"]["n"],
        json!({"NS": ["9", "25", "100", "-1"]})
    );
    let body = json!({"RequestItems": {"Hash": {"Keys": [key]}}});
    let response = service.ok("BatchGetItem", body).await;
    assert_eq!(
        response["Responses"]["Hash"][0]["n"],
        json!({"NS": ["-1", "9", "25", "100"]})
    );
}

#[tokio::test]
async fn table_arn_is_accepted_as_name() {
    let service = service().await;
    let arn = "arn:aws:dynamodb:us-east-1:123456789012:table/Hash";
    let get =
        json!({"Get": {"TableName": arn, "Key": {"pk": {"S": "a"}}, "ProjectionExpression": "n"}});
    let body = json!({"TransactItems": [get], "ReturnConsumedCapacity": "TOTAL"});
    assert_eq!(
        service.ok("TransactGetItems", body).await,
        json!({
            "Responses": [{"Item": {"n": {"N": "1"}}}],
            "ConsumedCapacity": [{"TableName": arn, "CapacityUnits": 2.0, "ReadCapacityUnits": 2.0}],
        })
    );
}
