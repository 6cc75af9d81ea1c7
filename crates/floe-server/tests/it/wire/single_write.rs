//! Common behaviour of PutItem, UpdateItem and DeleteItem.

use serde_json::{Value, json};

use super::test_service::{TestService, one, with};

const INVALID: &str = "One or more parameter values were invalid: ";

/// Returns a request of each operation for the item `a` of a table that does not exist, so that errors other than the
/// missing table are found before the table is looked up.
fn requests() -> [(&'static str, Value); 3] {
    let key = json!({"pk": {"S": "a"}});
    [
        ("PutItem", json!({"TableName": "Absent", "Item": key})),
        ("UpdateItem", json!({"TableName": "Absent", "Key": key})),
        ("DeleteItem", json!({"TableName": "Absent", "Key": key})),
    ]
}

/// Checks that all three operations reject these parameters.
async fn check(parameters: Value, message: &str) {
    let service = TestService::new();
    for (operation, request) in requests() {
        let body = with(&request, &parameters).to_string();
        service
            .expect_validation_error(operation, &body, message)
            .await;
    }
}

#[tokio::test]
async fn parameters_cannot_be_combined() {
    let mixed = "Can not use both expression and non-expression parameters in the same request: ";
    for (parameters, message) in [
        (
            json!({"Expected": {"a": {}}, "ConditionExpression": "", "ExpressionAttributeNames": {}}),
            one(&format!(
                "{mixed}Non-expression parameters: {{Expected}} Expression parameters: {{ConditionExpression}}"
            )),
        ),
        (
            json!({"Expected": {"a": {}}, "ConditionalOperator": "OR", "ConditionExpression": ""}),
            one(&format!(
                "{mixed}Non-expression parameters: {{Expected, ConditionalOperator}} Expression parameters: \
                 {{ConditionExpression}}"
            )),
        ),
        (
            json!({"ExpressionAttributeNames": {}, "ExpressionAttributeValues": {}}),
            one("ExpressionAttributeNames can only be specified when using expressions"),
        ),
        (
            json!({"ExpressionAttributeValues": {":v": {}}}),
            one("ExpressionAttributeValues can only be specified when using expressions"),
        ),
    ] {
        check(parameters, &message).await;
    }
}

#[tokio::test]
async fn placeholders_are_checked_before_expressions() {
    let condition = json!({"ConditionExpression": "attribute_exists(a)"});
    for (parameters, message) in [
        (
            json!({"ExpressionAttributeValues": {}}),
            "ExpressionAttributeValues must not be empty",
        ),
        (
            json!({"ExpressionAttributeNames": {}, "ExpressionAttributeValues": {":v": {"NULL": false}}}),
            "ExpressionAttributeNames must not be empty",
        ),
        (
            json!({"ExpressionAttributeNames": {"a": "a"}, "ExpressionAttributeValues": {":v": {"N": "x"}}}),
            "ExpressionAttributeNames contains invalid key: Syntax error; key: \"a\"",
        ),
        (
            json!({"ExpressionAttributeNames": {"#a": ""}}),
            "ExpressionAttributeNames contains invalid value: Empty attribute name for key #a",
        ),
        (
            json!({"ExpressionAttributeValues": {"v": {"N": "x"}}}),
            "ExpressionAttributeValues contains invalid key: Syntax error; key: \"v\"",
        ),
        (
            json!({"ExpressionAttributeValues": {":v\u{e9}": {"S": "x"}}}),
            "ExpressionAttributeValues contains invalid key: Syntax error; key: \":v\u{e9}\"",
        ),
        (
            json!({"ExpressionAttributeNames": {"#b": "b", "#a": "a"}}),
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a, #b}",
        ),
        (
            json!({"ExpressionAttributeValues": {":v": {"S": "x"}}}),
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:v}",
        ),
    ] {
        check(with(&condition, &parameters), &one(message)).await;
    }
    let name = "x".repeat(65_536);
    check(
        with(&condition, &json!({"ExpressionAttributeNames": {"#a": name}})),
        &one(
            "ExpressionAttributeNames contains invalid value: Attribute name is too large, must be less than 65536 \
             bytes for key #a",
        ),
    )
    .await;
}

#[tokio::test]
async fn conditions_are_checked_before_the_table() {
    for (condition, message) in [
        ("", "The expression can not be empty;"),
        ("   ", r#"Syntax error; token: "<EOF>", near: "   ""#),
        ("a = = :v", r#"Syntax error; token: "=", near: "= = :v""#),
        (
            "a = :w",
            "An expression attribute value used in expression is not defined; attribute value: :w",
        ),
        ("((a = :v))", "The expression has redundant parentheses;"),
        (
            "size = :v",
            "Attribute name is a reserved keyword; reserved keyword: size",
        ),
    ] {
        let parameters = json!({
            "ConditionExpression": condition,
            "ExpressionAttributeValues": {":v": {"S": "x"}},
        });
        let message = one(&format!("Invalid ConditionExpression: {message}"));
        check(parameters, &message).await;
    }
    let parameters = json!({"ConditionExpression": format!("a{}= b", " ".repeat(4100))});
    check(
        parameters,
        &one(
            "Invalid ConditionExpression: Expression size has exceeded the maximum allowed size; expression size: 4104",
        ),
    )
    .await;
}

#[tokio::test]
async fn expected_is_checked_before_the_table() {
    let listed = json!([{"S": "x"}]);
    for (expected, message) in [
        (
            json!({}),
            format!("{INVALID}Value must be provided when Exists is null for Attribute: a"),
        ),
        (
            json!({"Exists": true}),
            format!("{INVALID}Value must be provided when Exists is true for Attribute: a"),
        ),
        (
            json!({"Exists": false, "Value": {"S": "x"}}),
            format!("{INVALID}Value cannot be used when Exists is false for Attribute: a"),
        ),
        (
            json!({"Exists": true, "ComparisonOperator": "LT"}),
            format!("{INVALID}Exists and ComparisonOperator cannot be used together for Attribute: a"),
        ),
        (
            json!({"Value": {"S": "x"}, "ComparisonOperator": "EQ", "AttributeValueList": listed}),
            format!("{INVALID}Value and AttributeValueList cannot be used together for Attribute: a"),
        ),
        (
            json!({"AttributeValueList": listed}),
            format!("{INVALID}AttributeValueList can only be used with a ComparisonOperator for Attribute: a"),
        ),
        (
            json!({"Exists": true, "AttributeValueList": listed}),
            format!("{INVALID}AttributeValueList can only be used with a ComparisonOperator for Attribute: a"),
        ),
        (
            json!({"ComparisonOperator": "LT"}),
            format!("{INVALID}Value or AttributeValueList must be used with ComparisonOperator: LT for Attribute: a"),
        ),
        (
            json!({"ComparisonOperator": "eq", "AttributeValueList": listed}),
            format!("{INVALID}Invalid comparison operator"),
        ),
        (
            json!({"ComparisonOperator": "EQ", "AttributeValueList": []}),
            format!("{INVALID}Invalid number of argument(s) for the EQ ComparisonOperator"),
        ),
        (
            json!({"ComparisonOperator": "NULL", "Value": {"S": "x"}}),
            format!("{INVALID}Invalid number of argument(s) for the NULL ComparisonOperator"),
        ),
        (
            json!({"ComparisonOperator": "BETWEEN", "AttributeValueList": listed}),
            format!("{INVALID}Invalid number of argument(s) for the BETWEEN ComparisonOperator"),
        ),
        (
            json!({"ComparisonOperator": "IN", "AttributeValueList": [{"S": "x"}, {"L": []}]}),
            format!("{INVALID}ComparisonOperator IN is not valid for L AttributeValue type"),
        ),
        (
            json!({"ComparisonOperator": "IN", "AttributeValueList": [{"S": "x"}, {"N": "1"}]}),
            format!("{INVALID}AttributeValues inside AttributeValueList must be of same type"),
        ),
        (
            json!({"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"N": "1"}]}),
            format!("{INVALID}ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type"),
        ),
        (
            json!({"ComparisonOperator": "CONTAINS", "Value": {"L": []}}),
            format!("{INVALID}ComparisonOperator CONTAINS is not valid for L AttributeValue type"),
        ),
        (
            json!({"ComparisonOperator": "BETWEEN", "AttributeValueList": [{"S": "y"}, {"S": "x"}]}),
            "The BETWEEN condition was provided a range where the lower bound is greater than the upper bound"
                .to_owned(),
        ),
        (
            json!({"Value": {"NULL": false}}),
            format!("{INVALID}Null attribute value types must have the value of true"),
        ),
        (
            json!({"Value": {"SS": []}}),
            format!("{INVALID}An string set  may not be empty"),
        ),
        (
            json!({"ComparisonOperator": "EQ", "AttributeValueList": [{"N": ""}]}),
            "The parameter cannot be converted to a numeric value: ".to_owned(),
        ),
        (
            json!({"Value": {"M": {"": {"S": "x"}}}}),
            "Empty attribute name".to_owned(),
        ),
    ] {
        check(json!({"Expected": {"a": expected}}), &one(&message)).await;
    }
    check(
        json!({"Expected": {"a": {"Value": {}}}}),
        "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
    )
    .await;
    check(
        json!({"Expected": {"": {"Exists": false}}}),
        &one("Empty attribute name"),
    )
    .await;
    // A boolean sent as text is handled by the older validation layer.
    check(
        json!({"Expected": {"a": {"Exists": "yes"}}}),
        &format!("{INVALID}Value must be provided when Exists is true for Attribute: a"),
    )
    .await;
}

#[tokio::test]
async fn conditional_operator_joins_conditions() {
    let expected = |count: usize| {
        let conditions = ["a", "b"].into_iter().take(count);
        let conditions: serde_json::Map<_, _> = conditions
            .map(|name| (name.to_owned(), json!({"Exists": false})))
            .collect();
        json!({"Expected": conditions, "ConditionalOperator": "XOR"})
    };
    for (parameters, message) in [
        (
            json!({"ConditionalOperator": "AND"}),
            "ConditionalOperator cannot be used without Filter or Expected",
        ),
        (
            expected(0),
            "ConditionalOperator cannot be used without Filter or Expected",
        ),
        (
            expected(1),
            "ConditionalOperator can only be used when Filter or Expected has two or more elements",
        ),
        (
            expected(2),
            "Failed to satisfy constraint: Member must satisfy enum value set: [ALL, OR]",
        ),
    ] {
        check(parameters, &one(message)).await;
    }
}

#[tokio::test]
async fn older_layer_reports_the_conditional_operator_with_other_members() {
    let deep = (0..100).fold(json!({"S": "x"}), |inner, _| json!({"M": {"n": inner}}));
    check(
        json!({
            "Expected": {"a": {"Value": deep}, "b": {"Exists": false}},
            "ConditionalOperator": "XOR",
        }),
        &one(
            "Value 'XOR' at 'conditionalOperator' failed to satisfy constraint: Member must satisfy enum value set: \
             [OR, AND]",
        ),
    )
    .await;
}

/// Each operator is tested with an expected value that matches.
#[tokio::test]
async fn expected_operators_match() {
    let service = TestService::new();
    service.hash_table("Users").await;
    let item = json!({"pk": {"S": "a"}, "s": {"S": "hello"}, "n": {"N": "5"}, "b": {"B": "aGk="},
        "ns": {"NS": ["1", "2"]}, "l": {"L": [{"N": "1"}, {"S": "x"}]}, "z": {"NULL": true}});
    let put = json!({"TableName": "Users", "Item": item});
    let holds = async |name: &str, operator: &str, values: Value, holds: bool| {
        let condition = json!({"ComparisonOperator": operator, "AttributeValueList": values});
        let request = with(&put, &json!({"Expected": {name: condition}}));
        let (status, response) = service.call("PutItem", &request.to_string()).await;
        let expected = if holds { 200 } else { 400 };
        assert_eq!(
            status, expected,
            "name={name} operator={operator} values={values} response={response}"
        );
    };
    service.ok("PutItem", put.clone()).await;
    for (name, operator, values, expected) in [
        ("n", "EQ", json!([{"N": "5.0"}]), true),
        ("n", "EQ", json!([{"S": "5"}]), false),
        ("ns", "EQ", json!([{"NS": ["2", "1"]}]), true),
        ("n", "NE", json!([{"N": "6"}]), true),
        ("n", "NE", json!([{"S": "5"}]), true),
        ("none", "NE", json!([{"N": "5"}]), true),
        ("n", "NE", json!([{"N": "5"}]), false),
        ("n", "LE", json!([{"N": "5"}]), true),
        ("n", "LT", json!([{"N": "5"}]), false),
        ("s", "LT", json!([{"S": "help"}]), true),
        ("b", "GE", json!([{"B": "aGg="}]), true),
        ("b", "GT", json!([{"B": "aGk="}]), false),
        ("n", "GT", json!([{"S": "1"}]), false),
        ("none", "LT", json!([{"N": "1"}]), false),
        ("z", "NOT_NULL", json!([]), true),
        ("none", "NOT_NULL", json!([]), false),
        ("z", "NULL", json!([]), false),
        ("none", "NULL", json!([]), true),
        ("s", "CONTAINS", json!([{"S": "ell"}]), true),
        ("s", "CONTAINS", json!([{"N": "1"}]), false),
        ("b", "CONTAINS", json!([{"B": "aQ=="}]), true),
        ("ns", "CONTAINS", json!([{"N": "2"}]), true),
        ("l", "CONTAINS", json!([{"S": "x"}]), true),
        ("none", "CONTAINS", json!([{"S": "x"}]), false),
        ("s", "NOT_CONTAINS", json!([{"S": "dog"}]), true),
        ("s", "NOT_CONTAINS", json!([{"N": "1"}]), true),
        ("l", "NOT_CONTAINS", json!([{"N": "1"}]), false),
        ("none", "NOT_CONTAINS", json!([{"N": "1"}]), false),
        ("s", "BEGINS_WITH", json!([{"S": "hell"}]), true),
        ("b", "BEGINS_WITH", json!([{"B": "aA=="}]), true),
        ("n", "BEGINS_WITH", json!([{"S": "5"}]), false),
        ("n", "IN", json!([{"N": "4"}, {"N": "5"}]), true),
        ("ns", "IN", json!([{"N": "1"}, {"N": "2"}]), false),
        ("n", "BETWEEN", json!([{"N": "5"}, {"N": "6"}]), true),
        ("n", "BETWEEN", json!([{"S": "5"}, {"S": "6"}]), false),
        ("none", "BETWEEN", json!([{"N": "0"}, {"N": "9"}]), false),
    ] {
        holds(name, operator, values, expected).await;
    }
}

#[tokio::test]
async fn expected_conditions_are_joined() {
    let service = TestService::new();
    service.hash_table("Users").await;
    let item = json!({"pk": {"S": "a"}, "a": {"N": "1"}, "b": {"N": "2"}});
    let put = json!({"TableName": "Users", "Item": item});
    service.ok("PutItem", put.clone()).await;
    for (operator, a, holds) in [
        (None, "1", true),
        (Some("AND"), "1", true),
        (Some("AND"), "9", false),
        (Some("OR"), "9", true),
        (None, "9", false),
    ] {
        let mut request = with(
            &put,
            &json!({"Expected": {
                "a": {"Exists": true, "Value": {"N": a}},
                "b": {"Value": {"N": "2"}},
            }}),
        );
        if let Some(operator) = operator {
            request["ConditionalOperator"] = json!(operator);
        }
        let (status, _) = service.call("PutItem", &request.to_string()).await;
        let expected = if holds { 200 } else { 400 };
        assert_eq!(status, expected, "operator={operator:?} a={a}");
    }
    let empty = with(&put, &json!({"Expected": {}}));
    service.ok("PutItem", empty).await;
}

#[tokio::test]
async fn failed_condition_returns_the_item_on_request() {
    let service = TestService::new();
    service.hash_table("Users").await;
    let failed = |item: Option<Value>| {
        let mut body = json!({
            "__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
            "message": "The conditional request failed",
        });
        if let Some(item) = item {
            body["Item"] = item;
        }
        (400, body)
    };
    let fails = json!({
        "TableName": "Users",
        "ConditionExpression": "s = :v",
        "ExpressionAttributeValues": {":v": {"S": "dog"}},
    });
    let item = json!({"pk": {"S": "a"}, "s": {"S": "cat"}});
    for (operation, request) in requests() {
        let request = with(&request, &fails);
        let all = with(
            &request,
            &json!({"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}),
        );
        let none = with(
            &request,
            &json!({"ReturnValuesOnConditionCheckFailure": "NONE"}),
        );
        let delete = json!({"TableName": "Users", "Key": {"pk": {"S": "a"}}});
        service.ok("DeleteItem", delete).await;
        assert_eq!(
            service.call(operation, &all.to_string()).await,
            failed(None)
        );
        service
            .ok("PutItem", json!({"TableName": "Users", "Item": item}))
            .await;
        assert_eq!(
            service.call(operation, &all.to_string()).await,
            failed(Some(item.clone()))
        );
        assert_eq!(
            service.call(operation, &none.to_string()).await,
            failed(None)
        );
        assert_eq!(
            service.call(operation, &request.to_string()).await,
            failed(None)
        );
    }
}

#[tokio::test]
async fn table_arn_is_accepted_as_name() {
    let service = TestService::new();
    service.hash_table("Users").await;
    let arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/Users";
    for (operation, request) in requests() {
        let parameters = json!({"TableName": arn, "ReturnConsumedCapacity": "TOTAL"});
        let response = service.ok(operation, with(&request, &parameters)).await;
        assert_eq!(
            response,
            json!({"ConsumedCapacity": {"TableName": arn, "CapacityUnits": 1.0}})
        );
    }
    let request = json!({"TableName": arn, "Key": {"pk": {"S": "a"}}});
    assert_eq!(service.ok("GetItem", request).await, json!({}));
}

#[tokio::test]
async fn collection_sizes_are_reported_with_local_indexes() {
    let service = TestService::new();
    service.hash_table("Plain").await;
    let local = json!({
        "TableName": "Local",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "S"},
            {"AttributeName": "date", "AttributeType": "S"},
        ],
        "KeySchema": [
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        "LocalSecondaryIndexes": [{
            "IndexName": "by_date",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "date", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }],
    });
    service.ok("CreateTable", local).await;
    let size = json!({"ReturnItemCollectionMetrics": "SIZE"});
    for (operation, request) in requests() {
        let request = with(&request, &size);
        let plain = with(&request, &json!({"TableName": "Plain"}));
        assert_eq!(service.ok(operation, plain).await, json!({}));

        let mut request = with(&request, &json!({"TableName": "Local"}));
        let member = if operation == "PutItem" {
            "Item"
        } else {
            "Key"
        };
        request[member]["sk"] = json!({"S": "b"});
        assert_eq!(
            service.ok(operation, request).await,
            json!({"ItemCollectionMetrics": {
                "ItemCollectionKey": {"pk": {"S": "a"}},
                "SizeEstimateRangeGB": [0.0, 1.0],
            }})
        );
    }
}
