//! BatchWriteItem.

use floe_store::TableDef;
use floe_store::table::{KeyKind, Projection};
use serde_json::{Value, json};

use super::test_service::TestService;

/// Returns a service with a table `Pair` with a local index, and a table `Hash`.
async fn service() -> TestService {
    let service = TestService::new();
    let hash = TableDef::builder("Hash", "pk", KeyKind::S).build();
    let pair = TableDef::builder("Pair", "pk", KeyKind::S)
        .sort_key("sk", KeyKind::N)
        .local_index("by_n", "n", KeyKind::N, Projection::All);
    service.create_table(hash.unwrap()).await;
    service.create_table(pair.build().unwrap()).await;
    service
}

#[tokio::test]
async fn items_are_put_and_deleted() {
    let service = service().await;
    let check = async |body: Value, response: Value| {
        assert_eq!(service.ok("BatchWriteItem", body).await, response);
    };
    let put = |sk: &str| json!({"PutRequest": {"Item": {"pk": {"S": "a"}, "sk": {"N": sk}, "n": {"N": "7"}}}});
    let metrics =
        json!({"ItemCollectionKey": {"pk": {"S": "a"}}, "SizeEstimateRangeGB": [0.0, 1.0]});
    check(
        json!({"RequestItems": {"Pair": [put("1"), put("2")], "Hash": [{"DeleteRequest": {"Key": {"pk": {"S": "x"}}}}]},
               "ReturnConsumedCapacity": "INDEXES", "ReturnItemCollectionMetrics": "SIZE"}),
        json!({
            "UnprocessedItems": {},
            "ItemCollectionMetrics": {"Pair": [metrics]},
            "ConsumedCapacity": [
                {"TableName": "Hash", "CapacityUnits": 1.0, "Table": {"CapacityUnits": 1.0}},
                {"TableName": "Pair", "CapacityUnits": 4.0, "Table": {"CapacityUnits": 2.0},
                 "LocalSecondaryIndexes": {"by_n": {"CapacityUnits": 2.0}}},
            ],
        }),
    )
    .await;
    check(
        json!({"RequestItems": {"Pair": [{"DeleteRequest": {"Key": {"pk": {"S": "a"}, "sk": {"N": "1"}}}}]}}),
        json!({"UnprocessedItems": {}}),
    )
    .await;
    let keys = json!([{"pk": {"S": "a"}, "sk": {"N": "1"}}, {"pk": {"S": "a"}, "sk": {"N": "2"}}]);
    let read = json!({"RequestItems": {"Pair": {"Keys": keys}}});
    let left = &service.ok("BatchGetItem", read).await["Responses"]["Pair"];
    assert_eq!(
        *left,
        json!([{"pk": {"S": "a"}, "sk": {"N": "2"}, "n": {"N": "7"}}])
    );
}

const RCC: &str = "Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy enum \
                   value set: [INDEXES, TOTAL, NONE]";
const RICM: &str = "Value 'hi' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must satisfy enum \
                    value set: [SIZE, NONE]";
const NAMES: &str = "Map keys must satisfy constraint: [Member must have length less than or equal to 255, Member \
                     must have length greater than or equal to 3, Member must satisfy regular expression pattern: \
                     [a-zA-Z0-9_.-]+]";
const WRITES: &str = "Map value must satisfy constraint: [Member must have length less than or equal to 25, Member \
                      must have length greater than or equal to 1]";

/// Returns a text as DynamoDB repeats it.
fn shown(text: &str) -> String {
    format!(
        "AttributeValue(s={text}, n=null, b=null, iNT=null, dECIMAL=null, dOUBLE=null, sS=null, nS=null, bS=null, \
         iNTSET=null, dECIMALSET=null, dOUBLESET=null, m=null, l=null, nULL=null, bOOL=null)"
    )
}

#[tokio::test]
async fn members_are_checked_before_table_names() {
    let service = TestService::new();
    let check = async |body: Value, message: &str| {
        service
            .expect_validation_error("BatchWriteItem", &body.to_string(), message)
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
        json!({"ReturnConsumedCapacity": "hi", "ReturnItemCollectionMetrics": "hi"}),
        &format!("3 validation errors detected: {missing}; {RCC}; {RICM}"),
    )
    .await;
    check(
        json!({"RequestItems": {}, "ReturnConsumedCapacity": "hi"}),
        "The requestItems parameter is required for BatchWriteItem",
    )
    .await;
    check(
        json!({"RequestItems": {"a!": []}, "ReturnConsumedCapacity": "hi", "ReturnItemCollectionMetrics": "hi"}),
        &format!(
            "3 validation errors detected: Value '{{a!=[]}}' at 'requestItems' failed to satisfy constraint: \
             {WRITES}; {RCC}; {RICM}"
        ),
    )
    .await;
    let put = json!({"PutRequest": {"Item": {"pk": {"S": "x"}}}});
    let delete = json!({"DeleteRequest": {"Key": {"pk": {"S": "y"}}}});
    check(
        json!({"RequestItems": {"a!": [put]}, "ReturnConsumedCapacity": "hi"}),
        &format!("1 validation error detected: {RCC}"),
    )
    .await;
    check(
        json!({"RequestItems": {"a!": [put, delete], "Able": [delete]}}),
        &format!(
            "1 validation error detected: Value '{{Able=[WriteRequest(putRequest=null, \
             deleteRequest=DeleteRequest(key={{pk={y}}}, workloadProfileName=null))], \
             a!=[WriteRequest(putRequest=PutRequest(item={{pk={x}}}, workloadProfileName=null), deleteRequest=null), \
             WriteRequest(putRequest=null, deleteRequest=DeleteRequest(key={{pk={y}}}, \
             workloadProfileName=null))]}}' at 'requestItems' failed to satisfy constraint: {NAMES}",
            x = shown("x"),
            y = shown("y"),
        ),
    )
    .await;
    check(
        json!({"RequestItems": {"abc": [{"PutRequest": {}}, {"DeleteRequest": {}}]}}),
        "2 validation errors detected: Value null at 'requestItems.abc.member.1.member.putRequest.item' failed to \
         satisfy constraint: Member must not be null; Value null at \
         'requestItems.abc.member.2.member.deleteRequest.key' failed to satisfy constraint: Member must not be null",
    )
    .await;
}

#[tokio::test]
async fn batch_is_limited_to_25_items_over_all_tables() {
    let service = TestService::new();
    let puts = |count: usize| {
        let put = |n: usize| json!({"PutRequest": {"Item": {"pk": {"S": n.to_string()}}}});
        (0..count).map(put).collect::<Value>()
    };
    for tables in [
        json!({"abc": puts(26)}),
        json!({"abc": puts(20), "abd": puts(6)}),
    ] {
        let body = json!({"RequestItems": tables}).to_string();
        let (status, response) = service.call("BatchWriteItem", &body).await;
        let message = response["message"].as_str().unwrap();
        assert_eq!(status, 400);
        assert!(message.starts_with("1 validation error detected: Value '{abc=[WriteRequest("));
        assert!(message.ends_with(&format!(
            "]}}' at 'requestItems' failed to satisfy constraint: {WRITES}"
        )));
    }
    let body = json!({"RequestItems": {"abc": puts(25)}}).to_string();
    let not_found = "ResourceNotFoundException";
    service
        .expect_error(
            "BatchWriteItem",
            &body,
            not_found,
            "Requested resource not found",
        )
        .await;
}

#[tokio::test]
async fn item_faults_are_reported_by_the_older_layer() {
    let service = TestService::new();
    let check = async |writes: Value, message: &str| {
        let body = json!({"RequestItems": {"abc": writes}}).to_string();
        service
            .expect_validation_error("BatchWriteItem", &body, message)
            .await;
    };
    let several = "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the \
                   supported datatypes";
    let put = |value: Value| json!({"PutRequest": {"Item": {"a": value}}});
    let delete = |value: Value| json!({"DeleteRequest": {"Key": {"a": value}}});
    check(json!([{}]), several).await;
    let both = json!({"PutRequest": {"Item": {}}, "DeleteRequest": {"Key": {}}});
    check(json!([both]), several).await;
    check(json!([put(json!({"S": "a", "N": "1"}))]), several).await;
    let nameless = json!({"DeleteRequest": {"Key": {"": {"S": "x"}}}});
    check(
        json!([put(json!({"SS": []})), nameless]),
        "Empty attribute name",
    )
    .await;
    let invalid = |message: &str| format!("One or more parameter values were invalid: {message}");
    for (value, message) in [
        (json!({"NULL": false}), invalid("Null attribute value types must have the value of true")),
        (json!({"SS": []}), invalid("An string set  may not be empty")),
        (json!({"SS": ["b", "a", "b"]}), invalid("Input collection [b, a, b] contains duplicates.")),
        (
            json!({"BS": ["Yg==", "Yg=="]}),
            invalid("Input collection [Yg==, Yg==]of type BS contains duplicates."),
        ),
        (json!({"NS": ["1", "1"]}), "Input collection contains duplicates".to_owned()),
        (json!({"N": ""}), "The parameter cannot be converted to a numeric value".to_owned()),
        (
            json!({"N": "1e2147483647"}),
            "Number underflow. Attempting to store a number with magnitude smaller than supported range".to_owned(),
        ),
    ] {
        check(json!([put(value.clone())]), &message).await;
        check(json!([delete(value)]), &message).await;
    }
    check(
        json!([
            put(json!({"S": "x".repeat(409_600)})),
            put(json!({"SS": []}))
        ]),
        "Item size has exceeded the maximum allowed size",
    )
    .await;
    let deep = (0..32).fold(json!({"S": "x"}), |value, _| json!({"M": {"n": value}}));
    check(
        json!([put(deep)]),
        "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported \
         limit",
    )
    .await;
}

#[tokio::test]
async fn all_items_are_checked_before_any_is_written() {
    let service = service().await;
    let check = async |table: &str, write: Value, message: &str| {
        let good = json!({"PutRequest": {"Item": {"pk": {"S": "good"}}}});
        let writes = match table {
            "Hash" => json!({"Hash": [good, write]}),
            _ => json!({"Hash": [good], table: [write]}),
        };
        let body = json!({"RequestItems": writes}).to_string();
        service
            .expect_validation_error("BatchWriteItem", &body, message)
            .await;
    };
    let put = |item: Value| json!({"PutRequest": {"Item": item}});
    let delete = |key: Value| json!({"DeleteRequest": {"Key": key}});
    let mismatch = "The provided key element does not match the schema";
    for item in [
        json!({}),
        json!({"b": {"S": "a"}}),
        json!({"pk": {"N": "1"}}),
        json!({"pk": {"L": [{"S": "x"}]}}),
    ] {
        check("Hash", put(item.clone()), mismatch).await;
        check("Hash", delete(item), mismatch).await;
    }
    check(
        "Hash",
        delete(json!({"pk": {"S": "a"}, "x": {"S": "b"}})),
        mismatch,
    )
    .await;
    check("Pair", put(json!({"pk": {"S": "a"}})), mismatch).await;
    check(
        "Hash",
        put(json!({"pk": {"S": ""}})),
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty \
         string value. Key: pk",
    )
    .await;
    check(
        "Pair",
        put(json!({"pk": {"S": "a"}, "sk": {"N": "1"}, "n": {"S": "x"}})),
        "One or more parameter values were invalid: Type mismatch for Index Key n Expected: N Actual: S IndexName: \
         by_n",
    )
    .await;
    let duplicates = "Provided list of item keys contains duplicates";
    check(
        "Hash",
        put(json!({"pk": {"S": "good"}, "v": {"N": "1"}})),
        duplicates,
    )
    .await;
    check("Hash", delete(json!({"pk": {"S": "good"}})), duplicates).await;
    let read = json!({"RequestItems": {"Hash": {"Keys": [{"pk": {"S": "good"}}]}}});
    assert_eq!(
        service.ok("BatchGetItem", read).await["Responses"],
        json!({"Hash": []})
    );
}

#[tokio::test]
async fn table_arn_is_accepted_as_name() {
    let service = service().await;
    let arn = "arn:aws:dynamodb:us-east-1:123456789012:table/Pair";
    let item = json!({"pk": {"S": "a"}, "sk": {"N": "1"}});
    let body = json!({"RequestItems": {arn: [{"PutRequest": {"Item": item}}]},
                      "ReturnConsumedCapacity": "TOTAL", "ReturnItemCollectionMetrics": "SIZE"});
    let metrics =
        json!({"ItemCollectionKey": {"pk": {"S": "a"}}, "SizeEstimateRangeGB": [0.0, 1.0]});
    assert_eq!(
        service.ok("BatchWriteItem", body).await,
        json!({
            "UnprocessedItems": {},
            "ItemCollectionMetrics": {arn: [metrics]},
            "ConsumedCapacity": [{"TableName": arn, "CapacityUnits": 1.0}],
        })
    );
    let delete =
        |sk: &str| json!([{"DeleteRequest": {"Key": {"pk": {"S": "a"}, "sk": {"N": sk}}}}]);
    let both = json!({"RequestItems": {arn: delete("1"), "Pair": delete("2")}});
    service.ok("BatchWriteItem", both).await;
    let both = json!({"RequestItems": {arn: delete("1"), "Pair": delete("1")}}).to_string();
    let message = "Provided list of item keys contains duplicates";
    service
        .expect_validation_error("BatchWriteItem", &both, message)
        .await;
}

#[tokio::test]
async fn wrong_type_is_rejected_with_the_type_found() {
    let service = TestService::new();
    let check = async |writes: Value, message: &str| {
        let body = json!({"RequestItems": {"abc": writes}}).to_string();
        let code = "SerializationException";
        service
            .expect_error("BatchWriteItem", &body, code, message)
            .await;
    };
    let class = "com.amazonaws.dynamodb.v20120810";
    check(
        json!("x"),
        "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class \
         (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base of \
         loader 'bootstrap')",
    )
    .await;
    check(
        json!({}),
        "Start of structure or map found where not expected",
    )
    .await;
    check(json!([23]), "Unexpected value type in payload").await;
    check(
        json!([[]]),
        &format!("Unrecognized collection type class {class}.WriteRequest"),
    )
    .await;
    check(json!([{"PutRequest": "x"}]), "Unexpected field type").await;
    check(
        json!([{"DeleteRequest": []}]),
        &format!("Unrecognized collection type class {class}.DeleteRequest"),
    )
    .await;
    check(
        json!([{"PutRequest": {"Item": 1}}]),
        "Unexpected field type",
    )
    .await;
    let body = json!({"RequestItems": []}).to_string();
    let message = format!(
        "Unrecognized collection type java.util.Map<java.lang.String, java.util.List<{class}.WriteRequest>>"
    );
    service
        .expect_error("BatchWriteItem", &body, "SerializationException", &message)
        .await;
}
