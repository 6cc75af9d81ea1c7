//! PutItem.

use serde_json::{Value, json};

use super::test_service::{TestService, one, with};

const CAPACITY: &str = "Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy \
                        enum value set: [INDEXES, TOTAL, NONE]";
const COLLECTION: &str = "Value 'hi' at 'returnItemCollectionMetrics' failed to satisfy constraint: Member must \
                          satisfy enum value set: [SIZE, NONE]";
const RETURNED: &str = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, \
                        ALL_NEW, UPDATE_NEW, NONE]";
const ON_FAILURE: &str = "Value 'hi' at 'returnValuesOnConditionCheckFailure' failed to satisfy constraint: Member \
                          must satisfy enum value set: [ALL_OLD, NONE]";
const SHORT: &str = "Value 'ab' at 'tableName' failed to satisfy constraint: Member must have length greater than or \
                     equal to 3";

fn request() -> Value {
    json!({"TableName": "Users", "Item": {"pk": {"S": "a"}}})
}

#[tokio::test]
async fn member_faults_are_reported_together() {
    let service = TestService::new();
    for (body, message) in [
        (
            json!({}),
            "2 validation errors detected: Value null at 'tableName' failed to satisfy constraint: Member must not be \
             null; Value null at 'item' failed to satisfy constraint: Member must not be null"
                .to_owned(),
        ),
        (
            json!({"TableName": "", "ReturnValues": "hi"}),
            one("Value at 'TableName' failed to satisfy constraint: Member must have length greater than or equal to 1"),
        ),
        (
            with(&request(), &json!({"TableName": "ab", "ReturnValues": "hi"})),
            format!("2 validation errors detected: {SHORT}; {RETURNED}"),
        ),
        (
            with(
                &request(),
                &json!({
                    "ReturnValuesOnConditionCheckFailure": "hi",
                    "ReturnItemCollectionMetrics": "hi",
                    "ReturnValues": "hi",
                    "ReturnConsumedCapacity": "hi",
                    "ConditionalOperator": "hi",
                }),
            ),
            format!("4 validation errors detected: {CAPACITY}; {RETURNED}; {COLLECTION}; {ON_FAILURE}"),
        ),
        (
            with(&request(), &json!({"ReturnValues": "all_old"})),
            one(RETURNED),
        ),
    ] {
        service.expect_validation_error("PutItem", &body.to_string(), &message).await;
    }
    // The older layer has other messages.
    let body = with(
        &request(),
        &json!({"ReturnValues": "hi", "Item": {"pk": {"S": "a", "N": "1"}}}),
    );
    service
        .expect_validation_error(
            "PutItem",
            &body.to_string(),
            &one(
                "Value 'hi' at 'returnValues' failed to satisfy constraint: Member must satisfy enum value set: \
                 [ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]",
            ),
        )
        .await;
}

#[tokio::test]
async fn item_is_checked_before_expected() {
    let service = TestService::new();
    let only_old = one("ReturnValues can only be ALL_OLD or NONE");
    for word in ["UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"] {
        let body = with(&request(), &json!({"ReturnValues": word})).to_string();
        service
            .expect_validation_error("PutItem", &body, &only_old)
            .await;
    }
    let large = "Item size has exceeded the maximum allowed size";
    let item =
        |bytes: usize| json!({"Item": {"pk": {"S": "a"}, "b": {"S": "x".repeat(bytes - 4)}}});
    let expected = json!({"Expected": {"a": {}}});
    let body = with(&with(&request(), &item(409_601)), &expected).to_string();
    service
        .expect_validation_error("PutItem", &body, large)
        .await;
    let body = with(&request(), &item(409_600)).to_string();
    service
        .expect_error(
            "PutItem",
            &body,
            "ResourceNotFoundException",
            "Requested resource not found",
        )
        .await;
}

#[tokio::test]
async fn keys_of_the_table_and_its_indexes_are_checked() {
    let service = TestService::new();
    let table = json!({
        "TableName": "Users",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "name", "AttributeType": "S"},
        ],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "GlobalSecondaryIndexes": [{
            "IndexName": "by_name",
            "KeySchema": [{"AttributeName": "name", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }],
    });
    service.ok("CreateTable", table).await;
    let invalid = "One or more parameter values were invalid: ";
    for (item, message) in [
        (json!({}), format!("{invalid}Missing the key pk in the item")),
        (
            json!({"pk": {"N": "1"}}),
            format!("{invalid}Type mismatch for key pk expected: S actual: N"),
        ),
        (
            json!({"pk": {"S": ""}}),
            "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an \
             empty string value. Key: pk"
                .to_owned(),
        ),
        (
            json!({"pk": {"S": "a"}, "name": {"N": "1"}}),
            format!("{invalid}Type mismatch for Index Key name Expected: S Actual: N IndexName: by_name"),
        ),
        (
            json!({"pk": {"S": "a"}, "name": {"S": ""}}),
            "One or more parameter values are not valid. A value specified for a secondary index key is not \
             supported. The AttributeValue for a key attribute cannot contain an empty string value. IndexName: \
             by_name, IndexKey: name"
                .to_owned(),
        ),
    ] {
        let body = with(&request(), &json!({"Item": item})).to_string();
        service.expect_validation_error("PutItem", &body, &message).await;
    }
}

#[tokio::test]
async fn old_item_is_returned_on_request() {
    let service = TestService::new();
    service.hash_table("Users").await;
    let all_old = json!({"ReturnValues": "ALL_OLD"});
    assert_eq!(
        service.ok("PutItem", with(&request(), &all_old)).await,
        json!({})
    );
    let again = with(
        &request(),
        &json!({"Item": {"pk": {"S": "a"}, "n": {"N": "1"}}}),
    );
    assert_eq!(
        service.ok("PutItem", with(&again, &all_old)).await,
        json!({"Attributes": {"pk": {"S": "a"}}})
    );
    let none = json!({"ReturnValues": "NONE"});
    assert_eq!(
        service.ok("PutItem", with(&request(), &none)).await,
        json!({})
    );
    assert_eq!(service.ok("PutItem", request()).await, json!({}));
}

#[tokio::test]
async fn capacity_is_that_of_the_larger_item() {
    let service = TestService::new();
    service.hash_table("Users").await;
    for (bytes, units) in [
        (1, 1.0),
        (1019, 1.0),
        (1020, 2.0),
        (2500, 3.0),
        (1, 3.0),
        (1, 1.0),
    ] {
        let item = json!({"Item": {"pk": {"S": "ab"}, "v": {"S": "x".repeat(bytes)}}});
        let request = with(
            &with(&request(), &item),
            &json!({"ReturnConsumedCapacity": "INDEXES"}),
        );
        assert_eq!(
            service.ok("PutItem", request).await["ConsumedCapacity"],
            json!({"TableName": "Users", "CapacityUnits": units, "Table": {"CapacityUnits": units}}),
            "bytes={bytes}"
        );
    }
}
