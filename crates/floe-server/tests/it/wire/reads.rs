//! Results of Query and Scan: items, counts, last keys and consumed capacity.

use serde_json::{Value, json};

use super::test_service::TestService;

/// Returns a service with a table `Reads`: keys `pk` (text) and `sk` (number), local indexes `by_text` on `text` (keys
/// only) and `by_kind` on `kind` (including `n`), and a global index `kinds` on `kind` (all attributes).
async fn service() -> TestService {
    let service = TestService::new();
    let key = |names: &[(&str, &str)]| -> Vec<Value> {
        let elements = names.iter();
        elements
            .map(|(name, kind)| json!({"AttributeName": name, "KeyType": kind}))
            .collect()
    };
    let local = |name: &str, sort: &str, projection: Value| {
        json!({
            "IndexName": name,
            "KeySchema": key(&[("pk", "HASH"), (sort, "RANGE")]),
            "Projection": projection,
        })
    };
    let include = json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": ["n"]});
    let table = json!({
        "TableName": "Reads",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
            {"AttributeName": "text", "AttributeType": "S"},
            {"AttributeName": "kind", "AttributeType": "S"},
        ],
        "KeySchema": key(&[("pk", "HASH"), ("sk", "RANGE")]),
        "LocalSecondaryIndexes": [
            local("by_text", "text", json!({"ProjectionType": "KEYS_ONLY"})),
            local("by_kind", "kind", include),
        ],
        "GlobalSecondaryIndexes": [{
            "IndexName": "kinds",
            "KeySchema": key(&[("kind", "HASH")]),
            "Projection": {"ProjectionType": "ALL"},
        }],
    });
    service.ok("CreateTable", table).await;
    for item in items() {
        let put = json!({"TableName": "Reads", "Item": item});
        service.ok("PutItem", put).await;
    }
    service
}

/// Returns four items with the partition key `a`, one of them without `kind` and with a list, and one with `b`.
fn items() -> [Value; 5] {
    [
        json!({"pk": {"S": "a"}, "sk": {"N": "1"}, "text": {"S": "delta"}, "kind": {"S": "x"}, "n": {"N": "5"}}),
        json!({"pk": {"S": "a"}, "sk": {"N": "2"}, "text": {"S": "gamma"}, "kind": {"S": "y"}, "n": {"N": "7"}}),
        json!({"pk": {"S": "a"}, "sk": {"N": "10"}, "text": {"S": "beta"}, "l": {"L": [{"N": "7"}, {"S": "b"}]}}),
        json!({"pk": {"S": "a"}, "sk": {"N": "20"}, "text": {"S": "alpha"}, "kind": {"S": "x"}, "n": {"N": "9"}}),
        json!({"pk": {"S": "b"}, "sk": {"N": "1"}, "text": {"S": "beta"}, "kind": {"S": "x"}, "n": {"N": "1"}}),
    ]
}

/// Returns a query of all items with the partition key `a`, with further members.
fn query(members: Value) -> Value {
    let mut body = json!({
        "TableName": "Reads",
        "KeyConditions": {"pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}},
    });
    add(&mut body, members);
    body
}

fn scan(members: Value) -> Value {
    let mut body = json!({"TableName": "Reads"});
    add(&mut body, members);
    body
}

fn add(body: &mut Value, members: Value) {
    let Value::Object(members) = members else {
        return;
    };
    for (name, value) in members {
        body[name] = value;
    }
}

/// Returns the sort keys of the items in a response.
fn sks(response: &Value) -> Vec<&str> {
    let items = response["Items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["sk"]["N"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn responses_contain_the_requested_attributes() {
    let service = service().await;
    let [one, two, ten, twenty, _] = items();
    let last = |sk: &str| json!({"pk": {"S": "a"}, "sk": {"N": sk}});
    for (members, expected) in [
        (
            json!({}),
            json!({"Count": 4, "ScannedCount": 4, "Items": [one, two, ten, twenty]}),
        ),
        (
            json!({"ScanIndexForward": false, "Limit": 2}),
            json!({"Count": 2, "ScannedCount": 2, "Items": [twenty, ten], "LastEvaluatedKey": last("10")}),
        ),
        (
            json!({"Limit": 4, "Select": "COUNT"}),
            json!({"Count": 4, "ScannedCount": 4, "LastEvaluatedKey": last("20")}),
        ),
        (
            json!({"Limit": 5, "Select": "COUNT"}),
            json!({"Count": 4, "ScannedCount": 4}),
        ),
        (
            json!({"ExclusiveStartKey": last("3"), "Select": "ALL_ATTRIBUTES"}),
            json!({"Count": 2, "ScannedCount": 2, "Items": [ten, twenty]}),
        ),
        (
            json!({"ExclusiveStartKey": last("10"), "ScanIndexForward": "no", "AttributesToGet": ["n", "none"]}),
            json!({"Count": 2, "ScannedCount": 2, "Items": [{"n": {"N": "7"}}, {"n": {"N": "5"}}]}),
        ),
        (
            json!({"ProjectionExpression": "l[1], sk", "FilterExpression": "attribute_exists(l)"}),
            json!({"Count": 1, "ScannedCount": 4, "Items": [{"sk": {"N": "10"}, "l": {"L": [{"S": "b"}]}}]}),
        ),
        (
            json!({"QueryFilter": {"n": {"ComparisonOperator": "GT", "AttributeValueList": [{"N": "6"}]}}, "Limit": 3}),
            json!({"Count": 1, "ScannedCount": 3, "Items": [two], "LastEvaluatedKey": last("10")}),
        ),
    ] {
        let response = service.ok("Query", query(members.clone())).await;
        assert_eq!(response, expected, "members={members}");
    }
}

#[tokio::test]
async fn legacy_conditions_filter() {
    let service = service().await;
    let check = async |filter: Value, expected: &[&str]| {
        let response = service
            .ok("Query", query(json!({"QueryFilter": filter})))
            .await;
        assert_eq!(sks(&response), expected, "filter={filter}");
        assert_eq!(response["ScannedCount"], 4);
        let mut filter = filter.clone();
        filter["pk"] = json!({"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]});
        let response = service
            .ok("Scan", scan(json!({"ScanFilter": filter})))
            .await;
        assert_eq!(sks(&response), expected, "filter={filter}");
        assert_eq!(response["ScannedCount"], 5);
    };
    let on = |name: &str, operator: &str, values: Value| json!({name: {"ComparisonOperator": operator, "AttributeValueList": values}});
    let number = |n: &str| json!([{"N": n}]);
    check(on("n", "EQ", number("7.0")), &["2"]).await;
    check(on("n", "NE", number("7")), &["1", "10", "20"]).await;
    check(on("n", "LE", number("7")), &["1", "2"]).await;
    check(on("n", "LT", number("7")), &["1"]).await;
    check(on("n", "GE", number("7")), &["2", "20"]).await;
    check(on("n", "GT", number("7")), &["20"]).await;
    check(
        on("n", "BETWEEN", json!([{"N": "6"}, {"N": "9"}])),
        &["2", "20"],
    )
    .await;
    check(on("n", "IN", json!([{"N": "5"}, {"N": "9"}])), &["1", "20"]).await;
    check(on("n", "NULL", json!([])), &["10"]).await;
    check(
        json!({"n": {"ComparisonOperator": "NOT_NULL"}}),
        &["1", "2", "20"],
    )
    .await;
    check(on("text", "BEGINS_WITH", json!([{"S": "be"}])), &["10"]).await;
    check(on("text", "CONTAINS", json!([{"S": "mm"}])), &["2"]).await;
    check(on("l", "CONTAINS", number("7")), &["10"]).await;
    // Both are false for a missing attribute.
    check(on("l", "NOT_CONTAINS", number("7")), &[]).await;
    check(on("l", "NOT_CONTAINS", number("8")), &["10"]).await;
    check(
        json!({
            "n": {"ComparisonOperator": "GT", "AttributeValueList": [{"N": "5"}]},
            "kind": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "x"}]},
        }),
        &["20"],
    )
    .await;
    let either = query(json!({
        "ConditionalOperator": "OR",
        "QueryFilter": {
            "n": {"ComparisonOperator": "EQ", "AttributeValueList": [{"N": "7"}]},
            "l": {"ComparisonOperator": "NOT_NULL"},
        },
    }));
    let response = service.ok("Query", either).await;
    assert_eq!(sks(&response), ["2", "10"]);
}

#[tokio::test]
async fn key_conditions_select_a_range() {
    let service = service().await;
    let check = async |operator: &str, values: Value, expression: &str, expected: &[&str]| {
        let mut body = query(json!({}));
        body["KeyConditions"]["sk"] =
            json!({"ComparisonOperator": operator, "AttributeValueList": values});
        let response = service.ok("Query", body).await;
        assert_eq!(sks(&response), expected, "operator={operator}");
        let body = scan(json!({
            "KeyConditionExpression": format!("{expression} AND pk = :p"),
            "ExpressionAttributeValues": match values.get(1) {
                Some(high) => json!({":p": {"S": "a"}, ":a": values[0], ":b": high}),
                None => json!({":p": {"S": "a"}, ":a": values[0]}),
            },
        }));
        let response = service.ok("Query", body).await;
        assert_eq!(sks(&response), expected, "expression={expression}");
    };
    let number = |n: &str| json!([{"N": n}]);
    check("EQ", number("2"), ":a = sk", &["2"]).await;
    check("LT", number("10"), "sk < :a", &["1", "2"]).await;
    check("LE", number("10"), ":a >= sk", &["1", "2", "10"]).await;
    check("GT", number("2"), ":a < sk", &["10", "20"]).await;
    check("GE", number("2"), "(sk >= :a)", &["2", "10", "20"]).await;
    check(
        "BETWEEN",
        json!([{"N": "2"}, {"N": "10"}]),
        "sk BeTwEeN :a aNd :b",
        &["2", "10"],
    )
    .await;
    let begins = query(json!({
        "IndexName": "by_text",
        "KeyConditions": {
            "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]},
            "text": {"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "a"}]},
        },
    }));
    assert_eq!(sks(&service.ok("Query", begins).await), ["20"]);
}

#[tokio::test]
async fn pages_continue_at_the_last_key() {
    let service = service().await;
    for (operation, body, expected, keys) in [
        ("Query", query(json!({})), vec!["1", "2", "10", "20"], 2),
        (
            "Query",
            query(json!({"IndexName": "by_text", "ScanIndexForward": false})),
            vec!["2", "1", "10", "20"],
            3,
        ),
        (
            "Query",
            json!({
                "TableName": "Reads",
                "IndexName": "kinds",
                "KeyConditionExpression": "kind = :x",
                "ExpressionAttributeValues": {":x": {"S": "x"}},
            }),
            vec!["1", "1", "20"],
            3,
        ),
        ("Scan", scan(json!({})), vec!["1", "1", "10", "2", "20"], 2),
        (
            "Scan",
            scan(json!({"IndexName": "by_kind"})),
            vec!["1", "1", "2", "20"],
            3,
        ),
    ] {
        let mut body = body;
        body["Limit"] = json!(1);
        let mut found = Vec::new();
        loop {
            let response = service.ok(operation, body.clone()).await;
            found.extend(sks(&response).iter().map(ToString::to_string));
            let Some(last) = response.get("LastEvaluatedKey") else {
                assert_eq!(response["Count"], 0);
                break;
            };
            assert_eq!(last.as_object().unwrap().len(), keys, "body={body}");
            body["ExclusiveStartKey"] = last.clone();
        }
        if expected.is_sorted() {
            found.sort();
        }
        assert_eq!(found, expected, "body={body}");
    }
}

#[tokio::test]
async fn number_sets_are_sorted_by_value_or_java_hash() {
    let service = TestService::new();
    service.table("Sets").await;
    let item = |numbers: Value| json!({"pk": {"S": "a"}, "sk": {"S": "b"}, "n": {"NS": numbers}});
    let put = json!({"TableName": "Sets", "Item": item(json!(["100", "17", "3", "-1"]))});
    service.ok("PutItem", put).await;
    let query = json!({
        "TableName": "Sets",
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "a"}},
    });
    let queried = service.ok("Query", query).await;
    assert_eq!(
        queried["Items"],
        json!([item(json!(["-1", "3", "17", "100"]))])
    );
    let scanned = service.ok("Scan", json!({"TableName": "Sets"})).await;
    let numbers = scanned["Items"][0]["n"]["NS"].as_array().unwrap();
    assert_ne!(numbers, queried["Items"][0]["n"]["NS"].as_array().unwrap());
    assert_eq!(numbers.len(), 4);
}

#[tokio::test]
async fn every_item_is_in_exactly_one_segment() {
    let service = service().await;
    for total in [1, 2, 3, 1000] {
        let mut found = 0;
        for segment in 0..total {
            let body = scan(json!({"Segment": segment, "TotalSegments": total}));
            found += service.ok("Scan", body).await["Count"].as_i64().unwrap();
        }
        assert_eq!(found, 5, "total={total}");
    }
    let foreign = scan(json!({
        "Segment": 0,
        "TotalSegments": 1_000_000,
        "ExclusiveStartKey": {"pk": {"S": "a"}, "sk": {"N": "1"}},
    }));
    let message = "The provided starting key is invalid: Invalid ExclusiveStartKey. Please use ExclusiveStartKey with \
                   correct Segment. TotalSegments: 1000000 Segment: 0";
    service
        .expect_validation_error("Scan", &foreign.to_string(), message)
        .await;
}

#[tokio::test]
async fn capacity_is_reported_for_table_and_index() {
    let service = service().await;
    let of_table = |units: f64| json!({"TableName": "Reads", "CapacityUnits": units});
    let shares = |units: f64, table: f64, indexes: Value| {
        let mut consumed = json!({
            "TableName": "Reads",
            "CapacityUnits": units,
            "Table": {"CapacityUnits": table},
        });
        add(&mut consumed, indexes);
        consumed
    };
    let local =
        |name: &str, units: f64| json!({"LocalSecondaryIndexes": {name: {"CapacityUnits": units}}});
    let global =
        |units: f64| json!({"GlobalSecondaryIndexes": {"kinds": {"CapacityUnits": units}}});
    let kinds = |members: Value| {
        let mut body = json!({
            "TableName": "Reads",
            "IndexName": "kinds",
            "KeyConditionExpression": "kind = :x",
            "ExpressionAttributeValues": {":x": {"S": "x"}},
        });
        add(&mut body, members);
        body
    };
    for (operation, body, expected) in [
        (
            "Query",
            query(json!({"ReturnConsumedCapacity": "NONE"})),
            Value::Null,
        ),
        (
            "Query",
            query(json!({"ReturnConsumedCapacity": "TOTAL"})),
            of_table(0.5),
        ),
        (
            "Query",
            query(json!({"ReturnConsumedCapacity": "TOTAL", "ConsistentRead": true})),
            of_table(1.0),
        ),
        (
            "Query",
            query(json!({"ReturnConsumedCapacity": "INDEXES", "ConsistentRead": "yes"})),
            shares(1.0, 1.0, json!({})),
        ),
        (
            "Query",
            query(json!({"ReturnConsumedCapacity": "INDEXES", "IndexName": "by_text"})),
            shares(0.5, 0.0, local("by_text", 0.5)),
        ),
        // Attributes missing in the index are fetched from the table for each item.
        (
            "Query",
            query(json!({
                "ReturnConsumedCapacity": "INDEXES",
                "IndexName": "by_text",
                "Select": "ALL_ATTRIBUTES",
                "ConsistentRead": true,
            })),
            shares(5.0, 4.0, local("by_text", 1.0)),
        ),
        (
            "Query",
            query(json!({
                "ReturnConsumedCapacity": "INDEXES",
                "IndexName": "by_kind",
                "AttributesToGet": ["n"],
            })),
            shares(0.5, 0.0, local("by_kind", 0.5)),
        ),
        (
            "Query",
            kinds(json!({"ReturnConsumedCapacity": "INDEXES"})),
            shares(0.5, 0.0, global(0.5)),
        ),
        (
            "Query",
            kinds(json!({"ReturnConsumedCapacity": "TOTAL"})),
            of_table(0.5),
        ),
        (
            "Scan",
            scan(json!({"ReturnConsumedCapacity": "TOTAL"})),
            of_table(0.5),
        ),
        (
            "Scan",
            scan(json!({"ReturnConsumedCapacity": "INDEXES", "ConsistentRead": true})),
            shares(1.0, 1.0, json!({})),
        ),
        (
            "Scan",
            scan(json!({"ReturnConsumedCapacity": "INDEXES", "IndexName": "kinds"})),
            shares(0.5, 0.0, global(0.5)),
        ),
    ] {
        let response = service.ok(operation, body.clone()).await;
        assert_eq!(
            response["ConsumedCapacity"], expected,
            "operation={operation} body={body}"
        );
    }
    // The table has the name used in the request.
    let arn = "arn:aws:dynamodb:eu-west-2:123456789012:table/Reads";
    let body = json!({"TableName": arn, "ReturnConsumedCapacity": "TOTAL"});
    let response = service.ok("Scan", body).await;
    assert_eq!(response["ConsumedCapacity"]["TableName"], arn);
    assert_eq!(response["Count"], 5);
}

#[tokio::test]
async fn index_returns_its_projection() {
    let service = service().await;
    let [_, two, ..] = items();
    let keys = |item: &Value| json!({"pk": item["pk"], "sk": item["sk"], "text": item["text"]});
    let of_two = |members: Value| {
        let mut body = query(json!({"IndexName": "by_text"}));
        body["KeyConditions"]["text"] =
            json!({"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "gamma"}]});
        add(&mut body, members);
        body
    };
    for (members, expected) in [
        (json!({}), keys(&two)),
        (json!({"Select": "ALL_PROJECTED_ATTRIBUTES"}), keys(&two)),
        (json!({"Select": "ALL_ATTRIBUTES"}), two.clone()),
        (json!({"AttributesToGet": ["n"]}), json!({"n": two["n"]})),
    ] {
        let response = service.ok("Query", of_two(members.clone())).await;
        assert_eq!(response["Items"], json!([expected]), "members={members}");
    }
}
