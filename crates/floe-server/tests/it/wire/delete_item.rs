//! DeleteItem.

use serde_json::{Value, json};

use super::test_service::{TestService, one, with};

const CAPACITY: &str = "Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: Member must satisfy \
                        enum value set: [INDEXES, TOTAL, NONE]";
const RETURNED: &str = "Failed to satisfy constraint: Member must satisfy enum value set: [ALL_OLD, UPDATED_OLD, \
                        ALL_NEW, UPDATE_NEW, NONE]";
const ON_FAILURE: &str = "Value 'hi' at 'returnValuesOnConditionCheckFailure' failed to satisfy constraint: Member \
                          must satisfy enum value set: [ALL_OLD, NONE]";
const ONLY_OLD: &str = "ReturnValues can only be ALL_OLD or NONE";
const NULL_KEY: &str = "Value null at 'key' failed to satisfy constraint: Member must not be null";

fn request() -> Value {
    json!({"TableName": "Users", "Key": {"pk": {"S": "a"}}})
}

#[tokio::test]
async fn member_faults_are_reported_together() {
    let service = TestService::new();
    for (body, message) in [
        (
            json!({}),
            format!(
                "2 validation errors detected: Value null at 'tableName' failed to satisfy constraint: Member must \
                 not be null; {NULL_KEY}"
            ),
        ),
        (
            with(
                &request(),
                &json!({"ReturnValues": "hi", "ReturnConsumedCapacity": "hi", "ReturnValuesOnConditionCheckFailure": "hi"}),
            ),
            format!("3 validation errors detected: {CAPACITY}; {RETURNED}; {ON_FAILURE}"),
        ),
        (
            with(
                &request(),
                &json!({"ReturnValues": "ALL_NEW", "ReturnConsumedCapacity": "hi"}),
            ),
            format!("2 validation errors detected: {CAPACITY}; {ONLY_OLD}"),
        ),
        (
            json!({"TableName": "Users", "ReturnValues": "ALL_NEW"}),
            one(NULL_KEY),
        ),
        (
            with(
                &request(),
                &json!({"ReturnValues": "UPDATED_OLD", "ConditionExpression": "a = = b"}),
            ),
            one(ONLY_OLD),
        ),
        // The older validation layer, which accepts booleans as text, does not use the constraint form.
        (
            with(
                &request(),
                &json!({"ReturnValues": "UPDATED_NEW", "Key": {"pk": {"BOOL": "yes"}}}),
            ),
            ONLY_OLD.to_owned(),
        ),
    ] {
        service
            .expect_validation_error("DeleteItem", &body.to_string(), &message)
            .await;
    }
}

#[tokio::test]
async fn key_is_checked_before_the_table() {
    let service = TestService::new();
    let duplicates = r#"One or more parameter values were invalid: Input collection ["a", "a"] contains duplicates."#;
    let body = with(&request(), &json!({"Key": {"pk": {"SS": ["a", "a"]}}})).to_string();
    service
        .expect_validation_error("DeleteItem", &body, &one(duplicates))
        .await;
    service.hash_table("Users").await;
    let body = with(&request(), &json!({"Key": {"pk": {"N": "1"}}})).to_string();
    let message = "The provided key element does not match the schema";
    service
        .expect_validation_error("DeleteItem", &body, message)
        .await;
}

#[tokio::test]
async fn item_is_deleted_and_returned_on_request() {
    let service = TestService::new();
    service.hash_table("Users").await;
    let item = json!({"pk": {"S": "a"}, "n": {"N": "1"}});
    let put = json!({"TableName": "Users", "Item": item});
    let all_old = json!({"ReturnValues": "ALL_OLD"});
    service.ok("PutItem", put.clone()).await;
    assert_eq!(service.ok("DeleteItem", request()).await, json!({}));
    assert_eq!(service.ok("GetItem", request()).await, json!({}));
    assert_eq!(
        service.ok("DeleteItem", with(&request(), &all_old)).await,
        json!({})
    );
    service.ok("PutItem", put).await;
    let condition =
        json!({"Expected": {"n": {"Value": {"N": "1"}}}, "ReturnConsumedCapacity": "TOTAL"});
    assert_eq!(
        service
            .ok("DeleteItem", with(&with(&request(), &all_old), &condition))
            .await,
        json!({"Attributes": item, "ConsumedCapacity": {"TableName": "Users", "CapacityUnits": 1.0}})
    );
}
