//! DeleteItem.

use serde_json::{Value, json};

use super::world::{World, one, with};

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
async fn members_are_told_together() {
    let world = World::new();
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
        // The older layer of validation, which reads flags written as text, tells it as it is.
        (
            with(
                &request(),
                &json!({"ReturnValues": "UPDATED_NEW", "Key": {"pk": {"BOOL": "yes"}}}),
            ),
            ONLY_OLD.to_owned(),
        ),
    ] {
        world
            .invalid("DeleteItem", &body.to_string(), &message)
            .await;
    }
}

#[tokio::test]
async fn the_key_is_checked_before_the_table() {
    let world = World::new();
    let duplicates = r#"One or more parameter values were invalid: Input collection ["a", "a"] contains duplicates."#;
    let body = with(&request(), &json!({"Key": {"pk": {"SS": ["a", "a"]}}})).to_string();
    world.invalid("DeleteItem", &body, &one(duplicates)).await;
    world.hash_table("Users").await;
    let body = with(&request(), &json!({"Key": {"pk": {"N": "1"}}})).to_string();
    let message = "The provided key element does not match the schema";
    world.invalid("DeleteItem", &body, message).await;
}

#[tokio::test]
async fn an_item_is_deleted_and_returned_if_asked() {
    let world = World::new();
    world.hash_table("Users").await;
    let item = json!({"pk": {"S": "a"}, "n": {"N": "1"}});
    let put = json!({"TableName": "Users", "Item": item});
    let all_old = json!({"ReturnValues": "ALL_OLD"});
    world.ok("PutItem", put.clone()).await;
    assert_eq!(world.ok("DeleteItem", request()).await, json!({}));
    assert_eq!(world.ok("GetItem", request()).await, json!({}));
    assert_eq!(
        world.ok("DeleteItem", with(&request(), &all_old)).await,
        json!({})
    );
    world.ok("PutItem", put).await;
    let condition =
        json!({"Expected": {"n": {"Value": {"N": "1"}}}, "ReturnConsumedCapacity": "TOTAL"});
    assert_eq!(
        world
            .ok("DeleteItem", with(&with(&request(), &all_old), &condition))
            .await,
        json!({"Attributes": item, "ConsumedCapacity": {"TableName": "Users", "CapacityUnits": 1.0}})
    );
}
