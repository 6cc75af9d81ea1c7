//! TransactWriteItems.

use floe_store::TableDef;
use floe_store::table::{KeyKind, Projection};
use serde_json::{Value, json};

use super::test_service::TestService;

/// Returns a service with a table `Hash` with a global index, and a table `Pair` with a local index.
async fn service() -> TestService {
    let service = TestService::new();
    let none: [(&str, KeyKind); 0] = [];
    let hash = TableDef::builder("Hash", "pk", KeyKind::S).global_index(
        "by_g",
        [("g", KeyKind::S)],
        none,
        Projection::All,
    );
    service.create_table(hash.build().unwrap()).await;
    let pair = TableDef::builder("Pair", "pk", KeyKind::S)
        .sort_key("sk", KeyKind::N)
        .local_index("by_n", "n", KeyKind::N, Projection::All);
    service.create_table(pair.build().unwrap()).await;
    service
}

fn put(pk: &str) -> Value {
    json!({"Put": {"TableName": "Hash", "Item": {"pk": {"S": pk}}}})
}

/// Returns an action of each kind with these additional members.
fn actions(key: &Value, members: &Value) -> [Value; 4] {
    let extended = |mut action: Value| {
        let members = members.as_object().unwrap().clone();
        action.as_object_mut().unwrap().extend(members);
        action
    };
    let condition = "attribute_exists(pk)";
    [
        json!({"Put": extended(json!({"TableName": "Hash", "Item": key}))}),
        json!({"Delete": extended(json!({"TableName": "Hash", "Key": key}))}),
        json!({"Update": extended(json!({"TableName": "Hash", "Key": key, "UpdateExpression": "REMOVE x"}))}),
        json!({"ConditionCheck": extended(
            json!({"TableName": "Hash", "Key": key, "ConditionExpression": condition}),
        )}),
    ]
}

async fn get(service: &TestService, pk: &str) -> Value {
    let key = json!({"TableName": "Hash", "Key": {"pk": {"S": pk}}});
    service.ok("GetItem", key).await["Item"].take()
}

#[tokio::test]
async fn actions_are_applied_together() {
    let service = service().await;
    let put = json!({"Put": {"TableName": "Hash", "Item": {"pk": {"S": "a"}, "n": {"N": "1"}},
        "ConditionExpression": "attribute_not_exists(pk)"}});
    let update = json!({"Update": {"TableName": "Hash", "Key": {"pk": {"S": "b"}}, "UpdateExpression": "SET #n = :n",
        "ExpressionAttributeNames": {"#n": "n"}, "ExpressionAttributeValues": {":n": {"N": "2"}}}});
    let delete = json!({"Delete": {"TableName": "Hash", "Key": {"pk": {"S": "c"}}}});
    let check = json!({"ConditionCheck": {"TableName": "Hash", "Key": {"pk": {"S": "d"}},
        "ConditionExpression": "attribute_not_exists(pk)"}});
    let body =
        json!({"TransactItems": [put, update, delete, check], "ReturnConsumedCapacity": "INDEXES"});
    assert_eq!(
        service.ok("TransactWriteItems", body).await,
        json!({"ConsumedCapacity": [{
            "TableName": "Hash", "CapacityUnits": 8.0, "WriteCapacityUnits": 8.0,
            "Table": {"CapacityUnits": 8.0, "WriteCapacityUnits": 8.0},
        }]})
    );
    assert_eq!(
        get(&service, "a").await,
        json!({"pk": {"S": "a"}, "n": {"N": "1"}})
    );
    assert_eq!(
        get(&service, "b").await,
        json!({"pk": {"S": "b"}, "n": {"N": "2"}})
    );
}

#[tokio::test]
async fn canceled_transaction_has_a_reason_for_each_action() {
    let service = service().await;
    let put = |pk: &str| {
        json!({"Put": {"TableName": "Hash", "Item": {"pk": {"S": pk}},
        "ConditionExpression": "attribute_not_exists(pk)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}})
    };
    let body = |puts: &[Value]| json!({"TransactItems": puts}).to_string();
    let (status, _) = service.call("TransactWriteItems", &body(&[put("a")])).await;
    assert_eq!(status, 200);
    let (status, response) = service
        .call("TransactWriteItems", &body(&[put("b"), put("a")]))
        .await;
    assert_eq!(status, 400);
    assert_eq!(
        response,
        json!({
            "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
            "Message": "Transaction cancelled, please refer cancellation reasons for specific reasons \
                        [None, ConditionalCheckFailed]",
            "CancellationReasons": [
                {"Code": "None"},
                {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed",
                 "Item": {"pk": {"S": "a"}}},
            ],
        })
    );
    assert_eq!(get(&service, "b").await, Value::Null);
}

#[tokio::test]
async fn token_makes_a_transaction_idempotent() {
    let service = service().await;
    let body = |n: &str, capacity: &str| {
        let values = json!({":n": {"N": n}});
        json!({"ClientRequestToken": "t", "ReturnConsumedCapacity": capacity, "TransactItems": [{"Update": {
            "TableName": "Hash", "Key": {"pk": {"S": "a"}}, "UpdateExpression": "ADD n :n",
            "ExpressionAttributeValues": values}}]})
    };
    assert_eq!(
        service.ok("TransactWriteItems", body("1", "NONE")).await,
        json!({})
    );
    assert_eq!(
        service.ok("TransactWriteItems", body("1", "TOTAL")).await,
        json!({"ConsumedCapacity": [{"TableName": "Hash", "CapacityUnits": 2.0, "ReadCapacityUnits": 2.0}]})
    );
    assert_eq!(get(&service, "a").await["n"], json!({"N": "1"}));
    service
        .expect_error(
            "TransactWriteItems",
            &body("2", "NONE").to_string(),
            "IdempotentParameterMismatchException",
            "The request uses the same client token as a previous, but non-identical request. Do not reuse a client \
             token with different requests, unless the requests are identical",
        )
        .await;
}

const RCC: &str = "Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum \
                   value set: [INDEXES, TOTAL, NONE]";
const RICM: &str = "Value 'hi' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must satisfy enum \
                    value set: [SIZE, NONE]";

fn null(path: &str) -> String {
    format!(
        "Value null at 'transactItems{path}' failed to satisfy constraint: Member must not be null"
    )
}

fn one(fault: &str) -> String {
    format!("1 validation error detected: {fault}")
}

#[tokio::test]
async fn members_are_checked_in_dynamodb_order() {
    let service = TestService::new();
    let check = async |body: Value, message: &str| {
        service
            .expect_validation_error("TransactWriteItems", &body.to_string(), message)
            .await;
    };
    check(json!({}), &one(&null(""))).await;
    check(
        json!({"ReturnConsumedCapacity": "hi", "ReturnItemCollectionMetrics": "hi"}),
        &format!("3 validation errors detected: {}; {RCC}; {RICM}", null("")),
    )
    .await;
    check(
        json!({"TransactItems": [], "ReturnConsumedCapacity": "hi"}),
        &one("Value '[]' at 'transactItems' failed to satisfy constraint: Member must have length greater than or \
              equal to 1"),
    )
    .await;
    check(
        json!({"TransactItems": [{"Update": {}}]}),
        &format!(
            "3 validation errors detected: {}; {}; {}",
            null(".1.member.update.key"),
            null(".1.member.update.updateExpression"),
            null(".1.member.update.tableName")
        ),
    )
    .await;
    check(
        json!({"TransactItems": [{"ConditionCheck": {"TableName": "abc", "Key": {}}}]}),
        &one(&null(".1.member.conditionCheck.conditionExpression")),
    )
    .await;
    let token = "x".repeat(37);
    let token_fault = format!(
        "Value '{token}' at 'clientRequestToken' failed to satisfy constraint: Member must have length less than or \
         equal to 36"
    );
    let returned = |path: &str| {
        format!(
            "Value 'BAD' at 'transactItems.{path}.returnValuesOnConditionCheckFailure' failed to satisfy constraint: \
             Member must satisfy enum value set: [ALL_OLD, NONE]"
        )
    };
    let bad = json!({"ReturnValuesOnConditionCheckFailure": "BAD", "TableName": "b!"});
    let actions = actions(&json!({"pk": {"S": "a"}}), &bad);
    check(
        json!({"TransactItems": actions, "ClientRequestToken": token, "ReturnConsumedCapacity": "hi",
               "ReturnItemCollectionMetrics": "hi"}),
        &format!(
            "7 validation errors detected: {}; {}; {}; {}; {token_fault}; {RCC}; {RICM}",
            returned("1.member.put"),
            returned("2.member.delete"),
            returned("3.member.update"),
            returned("4.member.conditionCheck"),
        ),
    )
    .await;
}

#[tokio::test]
async fn each_item_contains_one_action() {
    let service = TestService::new();
    let check = async |body: Value, message: &str| {
        service
            .expect_validation_error("TransactWriteItems", &body.to_string(), message)
            .await;
    };
    let nameless = json!({"Put": {"TableName": "b!", "Item": {"": {"S": "a"}}}});
    check(
        json!({"TransactItems": [nameless, {}]}),
        "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
    )
    .await;
    check(
        json!({"TransactItems": [{}], "ReturnItemCollectionMetrics": "hi"}),
        &one(RICM),
    )
    .await;
    check(
        json!({"TransactItems": [{"Unknown": {}}]}),
        "Invalid Request: TransactWriteRequest should contain Delete or Put or Update request",
    )
    .await;
    let both = json!({
        "Put": {"TableName": "Hash", "Item": {"pk": {"S": "a"}}},
        "Delete": {"TableName": "Hash", "Key": {"pk": {"S": "b"}}},
    });
    check(
        json!({"TransactItems": [both]}),
        "TransactItems can only contain one of Check, Put, Update or Delete",
    )
    .await;
    let at = |path: &str| {
        format!("Value 'b!' at 'transactItems.{path}.tableName' failed to satisfy constraint:")
    };
    let short = "Member must have length greater than or equal to 3";
    let pattern = "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+";
    let actions = actions(&json!({"pk": {"S": "a"}}), &json!({"TableName": "b!"}));
    let mut faults = Vec::new();
    for path in [
        "1.member.put",
        "2.member.delete",
        "3.member.update",
        "4.member.conditionCheck",
    ] {
        faults.extend([
            format!("{} {short}", at(path)),
            format!("{} {pattern}", at(path)),
        ]);
    }
    check(
        json!({"TransactItems": actions}),
        &format!("8 validation errors detected: {}", faults.join("; ")),
    )
    .await;
    check(
        json!({"TransactItems": [nameless]}),
        &format!(
            "2 validation errors detected: {at} {short}; {at} {pattern}",
            at = at("1.member.put")
        ),
    )
    .await;
}

#[tokio::test]
async fn too_many_actions_are_repeated_in_the_error() {
    let service = TestService::new();
    let key = json!({"pk": {"S": "k"}});
    let full = json!({"ConditionExpression": "#n = :v", "ExpressionAttributeNames": {"#n": "a"},
        "ExpressionAttributeValues": {":v": {"N": "1"}}, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"});
    let [put, delete, update, check] = actions(&key, &full);
    let mut items = vec![check, delete, update, put];
    items.extend((0..97).map(|n| self::put(&n.to_string())));
    let body = json!({"TransactItems": items, "ReturnConsumedCapacity": "hi"}).to_string();
    let (_, response) = service.call("TransactWriteItems", &body).await;
    let message = response["message"].as_str().unwrap();
    let value = |s: &str, n: &str| {
        format!(
            "AttributeValue(s={s}, n={n}, b=null, iNT=null, dECIMAL=null, dOUBLE=null, sS=null, nS=null, bS=null, \
             iNTSET=null, dECIMALSET=null, dOUBLESET=null, m=null, l=null, nULL=null, bOOL=null)"
        )
    };
    let (k, v) = (value("k", "null"), value("null", "1"));
    let rest = format!(
        "tableName=Hash, conditionExpression=#n = :v, expressionAttributeNames={{#n=a}}, \
         expressionAttributeValues={{:v={v}}}, returnValuesOnConditionCheckFailure=ALL_OLD, workloadProfileName=null)"
    );
    let expected = format!(
        "1 validation error detected: Value '[TransactWriteItem(conditionCheck=ConditionCheck(key={{pk={k}}}, {rest}, \
         put=null, delete=null, update=null), TransactWriteItem(conditionCheck=null, put=null, \
         delete=Delete(key={{pk={k}}}, {rest}, update=null), TransactWriteItem(conditionCheck=null, put=null, \
         delete=null, update=Update(key={{pk={k}}}, updateExpression=REMOVE x, {rest}), \
         TransactWriteItem(conditionCheck=null, put=Put(item={{pk={k}}}, {rest}, delete=null, update=null), "
    )
    .replace("conditionExpression=attribute_exists(pk)", "conditionExpression=#n = :v");
    assert!(message.starts_with(&expected), "{message}");
    assert!(message.ends_with(
        "tableName=Hash, conditionExpression=null, expressionAttributeNames=null, expressionAttributeValues=null, \
         returnValuesOnConditionCheckFailure=null, workloadProfileName=null), delete=null, update=null)]' at \
         'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100"
    ));
}

#[tokio::test]
async fn values_and_expressions_are_checked_before_tables() {
    let service = TestService::new();
    let check = async |action: &Value, message: &str| {
        let body = json!({"TransactItems": [put("ok"), action]}).to_string();
        service
            .expect_validation_error("TransactWriteItems", &body, message)
            .await;
    };
    let key = json!({"pk": {"S": "a"}});
    let duplicates = "One or more parameter values were invalid: Input collection [b, a, b] contains duplicates.";
    for action in actions(&json!({"pk": {"SS": ["b", "a", "b"]}}), &json!({})) {
        check(&action, duplicates).await;
    }
    for action in actions(&json!({"": {"S": "a"}}), &json!({})) {
        check(&action, "Empty attribute name").await;
    }
    let with = |members: Value| actions(&key, &members);
    for action in with(json!({"ConditionExpression": "s = = :t",
                              "ExpressionAttributeValues": {":t": {"SS": ["b", "a", "b"]}}}))
    {
        let message =
            format!("ExpressionAttributeValues contains invalid value: {duplicates} for key :t");
        check(&action, &message).await;
    }
    for (values, message) in [
        (
            json!({":v": {"M": {"": {"S": "x"}}}}),
            "ExpressionAttributeValues contains invalid value: Empty attribute name for key :v",
        ),
        (
            json!({":v": {"N": "1e2147483647"}}),
            "ExpressionAttributeValues contains invalid value: Number underflow. Attempting to store a number with \
             magnitude smaller than supported range for key :v",
        ),
    ] {
        for action in
            with(json!({"ConditionExpression": "a = :v", "ExpressionAttributeValues": values}))
        {
            check(&action, message).await;
        }
    }
    let long = format!("a = {}", "b".repeat(4093));
    for (condition, message) in [
        ("", "The expression can not be empty;"),
        ("hello!", "Syntax error; token: \"!\", near: \"hello!\""),
        (
            "attribute_exists(#xyz)",
            "An expression attribute name used in the document path is not defined; attribute name: #xyz",
        ),
        (
            "pk = :xyz",
            "An expression attribute value used in expression is not defined; attribute value: :xyz",
        ),
        (
            &long,
            "Expression size has exceeded the maximum allowed size; expression size: 4097",
        ),
    ] {
        for action in with(json!({"ConditionExpression": condition})) {
            check(&action, &format!("Invalid ConditionExpression: {message}")).await;
        }
    }
    for action in with(json!({"ConditionExpression": "attribute_exists(pk)",
                              "ExpressionAttributeNames": {"#xyz": "x"}}))
    {
        check(
            &action,
            "Value provided in ExpressionAttributeNames unused in expressions: keys: {#xyz}",
        )
        .await;
    }
    for action in with(json!({"ConditionExpression": "attribute_exists(pk)",
                              "ExpressionAttributeValues": {":xyz": {"N": "7"}}}))
    {
        check(
            &action,
            "Value provided in ExpressionAttributeValues unused in expressions: keys: {:xyz}",
        )
        .await;
    }
    let update = |expression: &str| {
        json!({"Update": {"TableName": "Hash", "Key": key, "UpdateExpression": expression,
                          "ExpressionAttributeValues": {":v": {"N": "1"}}}})
    };
    for (expression, message) in [
        ("", "The expression can not be empty;"),
        (
            &*format!("SET a = {}", "b".repeat(4090)),
            "Expression size has exceeded the maximum allowed size;",
        ),
        (
            "SET a.b = :v, a = :v",
            "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: \
             [a, b], path two: [a]",
        ),
    ] {
        let message = format!("Invalid UpdateExpression: {message}");
        check(&update(expression), &message).await;
    }
    // The first invalid action is reported, and its item size before the syntax of its condition.
    let large = "Item size has exceeded the maximum allowed size";
    let item = json!({"pk": {"S": "x".repeat(409_600)}});
    let mut put = json!({"Put": {"TableName": "Hash", "Item": item}});
    check(&put, large).await;
    let body = json!({"TransactItems": [put, update("")]}).to_string();
    service
        .expect_validation_error("TransactWriteItems", &body, large)
        .await;
    put["Put"]["ConditionExpression"] = json!("hello!");
    check(&put, large).await;
}

#[tokio::test]
async fn placeholders_without_expression_are_ignored() {
    let service = service().await;
    let put = json!({"Put": {"TableName": "Hash", "Item": {"pk": {"S": "a"}},
        "ExpressionAttributeNames": {"#n": "n"}, "ExpressionAttributeValues": {":v": {"N": "1"}}}});
    service
        .ok("TransactWriteItems", json!({"TransactItems": [put]}))
        .await;
    assert_eq!(get(&service, "a").await, json!({"pk": {"S": "a"}}));
}

#[tokio::test]
async fn action_that_does_not_match_its_table_is_rejected_or_canceled() {
    let service = service().await;
    let empty = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain \
                 an empty string value. Key: pk";
    let rejected = async |action: &Value, message: &str| {
        let body = json!({"TransactItems": [put("ok"), action]}).to_string();
        service
            .expect_validation_error("TransactWriteItems", &body, message)
            .await;
    };
    for action in actions(&json!({"pk": {"S": ""}}), &json!({})) {
        rejected(&action, empty).await;
    }
    rejected(
        &put("ok"),
        "Transaction request cannot include multiple operations on one item",
    )
    .await;
    let emptied = json!({"Update": {"TableName": "Hash", "Key": {"pk": {"S": "a"}}, "UpdateExpression": "SET g = :v",
        "ExpressionAttributeValues": {":v": {"S": ""}}}});
    rejected(
        &emptied,
        "One or more parameter values are not valid. The update expression attempted to update a secondary index key \
         to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty string \
         value.",
    )
    .await;
    let canceled = async |action: &Value, message: &str| {
        let body = json!({"TransactItems": [put("ok"), action, {"Put": {"TableName": "Hash", "Item": {}}}]});
        let (_, response) = service.call("TransactWriteItems", &body.to_string()).await;
        assert_eq!(
            response["CancellationReasons"],
            json!([{"Code": "None"}, {"Code": "ValidationError", "Message": message}, {"Code": "None"}]),
            "action={action}"
        );
    };
    let invalid = |message: &str| format!("One or more parameter values were invalid: {message}");
    for (value, kind) in [(json!({"N": "5"}), "N"), (json!({"L": [{"S": "x"}]}), "L")] {
        let [put, others @ ..] = actions(&json!({"pk": value}), &json!({}));
        canceled(
            &put,
            &invalid(&format!(
                "Type mismatch for key pk expected: S actual: {kind}"
            )),
        )
        .await;
        for action in others {
            canceled(
                &action,
                "The provided key element does not match the schema",
            )
            .await;
        }
        let index = invalid(&format!(
            "Type mismatch for Index Key g Expected: S Actual: {kind} IndexName: by_g"
        ));
        let item = json!({"pk": {"S": "a"}, "g": value});
        canceled(&json!({"Put": {"TableName": "Hash", "Item": item}}), &index).await;
        let mut update = emptied.clone();
        update["Update"]["ExpressionAttributeValues"][":v"] = value;
        canceled(&update, &index).await;
    }
    let elsewhere =
        json!({"TransactItems": [put("a"), {"Put": {"TableName": "Nowhere", "Item": {}}}]});
    let (code, message) = ("ResourceNotFoundException", "Requested resource not found");
    service
        .expect_error("TransactWriteItems", &elsewhere.to_string(), code, message)
        .await;
    assert_eq!(get(&service, "ok").await, Value::Null);
}

#[tokio::test]
async fn update_size_is_checked_when_applied() {
    let service = service().await;
    let update = |bytes: usize| {
        json!({"TransactItems": [{"Update": {"TableName": "Hash", "Key": {"pk": {"S": "a"}},
            "UpdateExpression": "SET v = :v", "ExpressionAttributeValues": {":v": {"S": "x".repeat(bytes - 4)}}}}]})
    };
    let (_, response) = service
        .call("TransactWriteItems", &update(409_601).to_string())
        .await;
    assert_eq!(
        response["CancellationReasons"],
        json!([{"Code": "ValidationError",
                "Message": "Item size to update has exceeded the maximum allowed size"}])
    );
    service.ok("TransactWriteItems", update(409_600)).await;
}

#[tokio::test]
async fn transaction_is_limited_to_four_megabytes() {
    let service = service().await;
    let put = |n: usize| {
        let item = json!({"pk": {"S": n.to_string()}, "v": {"S": "x".repeat(100_000)}});
        json!({"Put": {"TableName": "Hash", "Item": item}})
    };
    let puts = |count: usize| json!({"TransactItems": (0..count).map(put).collect::<Value>()});
    let (status, response) = service
        .call("TransactWriteItems", &puts(50).to_string())
        .await;
    assert_eq!(status, 400);
    assert_eq!(
        response["message"],
        "Transaction payload size cannot exceed 4MB. Payload Size: : Transaction payload size cannot exceed 4MB. \
         Payload Size: 5000240"
    );
    service.ok("TransactWriteItems", puts(30)).await;
}

#[tokio::test]
async fn collection_sizes_are_reported_on_request() {
    let service = service().await;
    let put = |sk: &str| {
        let item = json!({"pk": {"S": "a"}, "sk": {"N": sk}, "n": {"N": "1"}});
        json!({"Put": {"TableName": "Pair", "Item": item}})
    };
    let body = json!({"TransactItems": [put("1"), put("2")], "ReturnItemCollectionMetrics": "SIZE",
                      "ReturnConsumedCapacity": "INDEXES"});
    let metrics =
        json!({"ItemCollectionKey": {"pk": {"S": "a"}}, "SizeEstimateRangeGB": [0.0, 1.0]});
    assert_eq!(
        service.ok("TransactWriteItems", body).await,
        json!({
            "ItemCollectionMetrics": {"Pair": [metrics]},
            "ConsumedCapacity": [{
                "TableName": "Pair", "CapacityUnits": 6.0, "WriteCapacityUnits": 6.0,
                "Table": {"CapacityUnits": 4.0, "WriteCapacityUnits": 4.0},
                "LocalSecondaryIndexes": {"by_n": {"CapacityUnits": 2.0, "WriteCapacityUnits": 2.0}},
            }],
        })
    );
}

#[tokio::test]
async fn wrong_type_is_rejected_with_the_type_found() {
    let service = TestService::new();
    let check = async |items: Value, message: &str| {
        let body = json!({"TransactItems": items}).to_string();
        let code = "SerializationException";
        service
            .expect_error("TransactWriteItems", &body, code, message)
            .await;
    };
    let class = "com.amazonaws.dynamodb.v20120810";
    check(json!("x"), "Unexpected field type").await;
    check(
        json!({}),
        "Start of structure or map found where not expected",
    )
    .await;
    check(json!(["x"]), "Unexpected value type in payload").await;
    check(
        json!([[]]),
        &format!("Unrecognized collection type class {class}.TransactWriteItem"),
    )
    .await;
    for kind in ["Put", "Delete", "Update", "ConditionCheck"] {
        check(json!([{kind: 1}]), "Unexpected field type").await;
        check(
            json!([{kind: []}]),
            &format!("Unrecognized collection type class {class}.{kind}"),
        )
        .await;
        check(
            json!([{kind: {"ExpressionAttributeNames": {"#n": 7}}}]),
            "NUMBER_VALUE cannot be converted to String",
        )
        .await;
    }
    check(
        json!([{"Update": {"UpdateExpression": true}}]),
        "TRUE_VALUE cannot be converted to String",
    )
    .await;
}
