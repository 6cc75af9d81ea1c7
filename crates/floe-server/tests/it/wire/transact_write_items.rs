//! TransactWriteItems.

use floe_store::TableDef;
use floe_store::table::{KeyKind, Projection};
use serde_json::{Value, json};

use super::world::World;

/// A table `Hash` with a global index, and a table `Pair` with a local index.
async fn world() -> World {
    let world = World::new();
    let none: [(&str, KeyKind); 0] = [];
    let hash = TableDef::builder("Hash", "pk", KeyKind::S).global_index(
        "by_g",
        [("g", KeyKind::S)],
        none,
        Projection::All,
    );
    world.make(hash.build().unwrap()).await;
    let pair = TableDef::builder("Pair", "pk", KeyKind::S)
        .sort_key("sk", KeyKind::N)
        .local_index("by_n", "n", KeyKind::N, Projection::All);
    world.make(pair.build().unwrap()).await;
    world
}

fn put(pk: &str) -> Value {
    json!({"Put": {"TableName": "Hash", "Item": {"pk": {"S": pk}}}})
}

/// An action of each kind with these members besides.
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

async fn get(world: &World, pk: &str) -> Value {
    let key = json!({"TableName": "Hash", "Key": {"pk": {"S": pk}}});
    world.ok("GetItem", key).await["Item"].take()
}

#[tokio::test]
async fn actions_are_applied_together() {
    let world = world().await;
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
        world.ok("TransactWriteItems", body).await,
        json!({"ConsumedCapacity": [{
            "TableName": "Hash", "CapacityUnits": 8.0, "WriteCapacityUnits": 8.0,
            "Table": {"CapacityUnits": 8.0, "WriteCapacityUnits": 8.0},
        }]})
    );
    assert_eq!(
        get(&world, "a").await,
        json!({"pk": {"S": "a"}, "n": {"N": "1"}})
    );
    assert_eq!(
        get(&world, "b").await,
        json!({"pk": {"S": "b"}, "n": {"N": "2"}})
    );
}

#[tokio::test]
async fn a_cancelled_transaction_tells_the_reason_of_each_action() {
    let world = world().await;
    let put = |pk: &str| {
        json!({"Put": {"TableName": "Hash", "Item": {"pk": {"S": pk}},
        "ConditionExpression": "attribute_not_exists(pk)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}})
    };
    let body = |puts: &[Value]| json!({"TransactItems": puts}).to_string();
    let (status, _) = world.call("TransactWriteItems", &body(&[put("a")])).await;
    assert_eq!(status, 200);
    let (status, answer) = world
        .call("TransactWriteItems", &body(&[put("b"), put("a")]))
        .await;
    assert_eq!(status, 400);
    assert_eq!(
        answer,
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
    assert_eq!(get(&world, "b").await, Value::Null);
}

#[tokio::test]
async fn a_token_applies_a_transaction_once() {
    let world = world().await;
    let body = |n: &str, capacity: &str| {
        let values = json!({":n": {"N": n}});
        json!({"ClientRequestToken": "t", "ReturnConsumedCapacity": capacity, "TransactItems": [{"Update": {
            "TableName": "Hash", "Key": {"pk": {"S": "a"}}, "UpdateExpression": "ADD n :n",
            "ExpressionAttributeValues": values}}]})
    };
    assert_eq!(
        world.ok("TransactWriteItems", body("1", "NONE")).await,
        json!({})
    );
    assert_eq!(
        world.ok("TransactWriteItems", body("1", "TOTAL")).await,
        json!({"ConsumedCapacity": [{"TableName": "Hash", "CapacityUnits": 2.0, "ReadCapacityUnits": 2.0}]})
    );
    assert_eq!(get(&world, "a").await["n"], json!({"N": "1"}));
    world
        .refused(
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
async fn members_are_checked_first_in_dynamodbs_order() {
    let world = World::new();
    let check = async |body: Value, message: &str| {
        world
            .invalid("TransactWriteItems", &body.to_string(), message)
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
async fn each_item_holds_one_action_and_then_names_of_tables_are_checked() {
    let world = World::new();
    let check = async |body: Value, message: &str| {
        world
            .invalid("TransactWriteItems", &body.to_string(), message)
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
async fn too_many_actions_are_repeated() {
    let world = World::new();
    let key = json!({"pk": {"S": "k"}});
    let full = json!({"ConditionExpression": "#n = :v", "ExpressionAttributeNames": {"#n": "a"},
        "ExpressionAttributeValues": {":v": {"N": "1"}}, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"});
    let [put, delete, update, check] = actions(&key, &full);
    let mut items = vec![check, delete, update, put];
    items.extend((0..97).map(|n| self::put(&n.to_string())));
    let body = json!({"TransactItems": items, "ReturnConsumedCapacity": "hi"}).to_string();
    let (_, answer) = world.call("TransactWriteItems", &body).await;
    let message = answer["message"].as_str().unwrap();
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
async fn values_and_expressions_are_told_bare_before_tables_are_looked_for() {
    let world = World::new();
    let check = async |action: &Value, message: &str| {
        let body = json!({"TransactItems": [put("ok"), action]}).to_string();
        world.invalid("TransactWriteItems", &body, message).await;
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
    // The first action that is refused is told, and its size comes before the syntax of its condition.
    let large = "Item size has exceeded the maximum allowed size";
    let item = json!({"pk": {"S": "x".repeat(409_600)}});
    let mut put = json!({"Put": {"TableName": "Hash", "Item": item}});
    check(&put, large).await;
    let body = json!({"TransactItems": [put, update("")]}).to_string();
    world.invalid("TransactWriteItems", &body, large).await;
    put["Put"]["ConditionExpression"] = json!("hello!");
    check(&put, large).await;
}

#[tokio::test]
async fn placeholders_without_an_expression_are_passed_over() {
    let world = world().await;
    let put = json!({"Put": {"TableName": "Hash", "Item": {"pk": {"S": "a"}},
        "ExpressionAttributeNames": {"#n": "n"}, "ExpressionAttributeValues": {":v": {"N": "1"}}}});
    world
        .ok("TransactWriteItems", json!({"TransactItems": [put]}))
        .await;
    assert_eq!(get(&world, "a").await, json!({"pk": {"S": "a"}}));
}

#[tokio::test]
async fn what_is_wrong_for_a_table_refuses_or_cancels() {
    let world = world().await;
    let empty = "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain \
                 an empty string value. Key: pk";
    let refused = async |action: &Value, message: &str| {
        let body = json!({"TransactItems": [put("ok"), action]}).to_string();
        world.invalid("TransactWriteItems", &body, message).await;
    };
    for action in actions(&json!({"pk": {"S": ""}}), &json!({})) {
        refused(&action, empty).await;
    }
    refused(
        &put("ok"),
        "Transaction request cannot include multiple operations on one item",
    )
    .await;
    let emptied = json!({"Update": {"TableName": "Hash", "Key": {"pk": {"S": "a"}}, "UpdateExpression": "SET g = :v",
        "ExpressionAttributeValues": {":v": {"S": ""}}}});
    refused(
        &emptied,
        "One or more parameter values are not valid. The update expression attempted to update a secondary index key \
         to a value that is not supported. The AttributeValue for a key attribute cannot contain an empty string \
         value.",
    )
    .await;
    let canceled = async |action: &Value, message: &str| {
        let body = json!({"TransactItems": [put("ok"), action, {"Put": {"TableName": "Hash", "Item": {}}}]});
        let (_, answer) = world.call("TransactWriteItems", &body.to_string()).await;
        assert_eq!(
            answer["CancellationReasons"],
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
    world
        .refused("TransactWriteItems", &elsewhere.to_string(), code, message)
        .await;
    assert_eq!(get(&world, "ok").await, Value::Null);
}

#[tokio::test]
async fn an_update_is_weighed_when_it_is_applied() {
    let world = world().await;
    let update = |bytes: usize| {
        json!({"TransactItems": [{"Update": {"TableName": "Hash", "Key": {"pk": {"S": "a"}},
            "UpdateExpression": "SET v = :v", "ExpressionAttributeValues": {":v": {"S": "x".repeat(bytes - 4)}}}}]})
    };
    let (_, answer) = world
        .call("TransactWriteItems", &update(409_601).to_string())
        .await;
    assert_eq!(
        answer["CancellationReasons"],
        json!([{"Code": "ValidationError",
                "Message": "Item size to update has exceeded the maximum allowed size"}])
    );
    world.ok("TransactWriteItems", update(409_600)).await;
}

#[tokio::test]
async fn a_transaction_carries_four_megabytes() {
    let world = world().await;
    let put = |n: usize| {
        let item = json!({"pk": {"S": n.to_string()}, "v": {"S": "x".repeat(100_000)}});
        json!({"Put": {"TableName": "Hash", "Item": item}})
    };
    let puts = |count: usize| json!({"TransactItems": (0..count).map(put).collect::<Value>()});
    let (status, answer) = world
        .call("TransactWriteItems", &puts(50).to_string())
        .await;
    assert_eq!(status, 400);
    assert_eq!(
        answer["message"],
        "Transaction payload size cannot exceed 4MB. Payload Size: : Transaction payload size cannot exceed 4MB. \
         Payload Size: 5000240"
    );
    world.ok("TransactWriteItems", puts(30)).await;
}

#[tokio::test]
async fn collections_are_told_if_asked() {
    let world = world().await;
    let put = |sk: &str| {
        let item = json!({"pk": {"S": "a"}, "sk": {"N": sk}, "n": {"N": "1"}});
        json!({"Put": {"TableName": "Pair", "Item": item}})
    };
    let body = json!({"TransactItems": [put("1"), put("2")], "ReturnItemCollectionMetrics": "SIZE",
                      "ReturnConsumedCapacity": "INDEXES"});
    let metrics =
        json!({"ItemCollectionKey": {"pk": {"S": "a"}}, "SizeEstimateRangeGB": [0.0, 1.0]});
    assert_eq!(
        world.ok("TransactWriteItems", body).await,
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
async fn what_is_of_another_type_is_refused_with_what_was_found() {
    let world = World::new();
    let check = async |items: Value, message: &str| {
        let body = json!({"TransactItems": items}).to_string();
        let code = "SerializationException";
        world
            .refused("TransactWriteItems", &body, code, message)
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
