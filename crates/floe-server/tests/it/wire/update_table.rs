//! UpdateTable.

use std::time::Duration;

use floe_local::{LocalEngine, Options};
use floe_store::env::ManualClock;
use floe_store::{Env, Timestamp};
use serde_json::{Value, json};

use super::create_table::{attributes, key};
use super::test_service::TestService;

const NEITHER: &str = "One or more parameter values were invalid: Neither ReadCapacityUnits nor WriteCapacityUnits \
                       can be specified when BillingMode is PAY_PER_REQUEST";

fn invalid(message: &str) -> String {
    format!("One or more parameter values were invalid: {message}")
}

fn units(read: i64, write: i64) -> Value {
    json!({"ReadCapacityUnits": read, "WriteCapacityUnits": write})
}

fn create(name: &str) -> Value {
    json!({"Create": {"IndexName": name, "KeySchema": key(&["x"]), "Projection": {"ProjectionType": "ALL"}}})
}

fn delete(name: &str) -> Value {
    json!({"Delete": {"IndexName": name}})
}

/// Returns a request to change the table `Users`.
fn users(members: Value) -> Value {
    let mut body = json!({"TableName": "Users"});
    if let Value::Object(members) = members {
        for (name, value) in members {
            body[name] = value;
        }
    }
    body
}

/// Returns a service with the tables `Users` (on-demand billing) and `Paid` (provisioned throughput of 5 and 5).
async fn service() -> TestService {
    let service = TestService::new();
    service.table("Users").await;
    let paid = json!({
        "TableName": "Paid",
        "AttributeDefinitions": attributes(&["a", "b"]),
        "KeySchema": key(&["a"]),
        "ProvisionedThroughput": units(5, 5),
        "GlobalSecondaryIndexes": [{"IndexName": "by_b", "KeySchema": key(&["b"]),
            "Projection": {"ProjectionType": "ALL"}, "ProvisionedThroughput": units(5, 5)}],
    });
    service.ok("CreateTable", paid).await;
    service
}

async fn describe(service: &TestService, name: &str) -> Value {
    service
        .ok("DescribeTable", json!({"TableName": name}))
        .await["Table"]
        .clone()
}

#[tokio::test]
async fn member_faults_are_reported_together() {
    let service = service().await;
    let check = async |members: Value, faults: &[&str]| {
        let body = users(members).to_string();
        service.expect_faults("UpdateTable", &body, faults).await;
    };
    service
        .expect_validation_error(
            "UpdateTable",
            "{}",
            "The parameter 'TableName' is required but was not present in the request",
        )
        .await;
    let null = "failed to satisfy constraint: Member must not be null";
    let low = "failed to satisfy constraint: Member must have value greater than or equal to 1";
    check(
        json!({"TableName": "a;"}),
        &[
            "Value 'a;' at 'tableName' failed to satisfy constraint: Member must satisfy regular expression pattern: \
             [a-zA-Z0-9_.-]+",
            "Value 'a;' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 3",
        ],
    )
    .await;
    check(
        json!({"ProvisionedThroughput": {}}),
        &[
            &format!("Value null at 'provisionedThroughput.writeCapacityUnits' {null}"),
            &format!("Value null at 'provisionedThroughput.readCapacityUnits' {null}"),
        ],
    )
    .await;
    check(
        json!({"ProvisionedThroughput": units(1_000_000_000_001, -1)}),
        &[&format!(
            "Value '-1' at 'provisionedThroughput.writeCapacityUnits' {low}"
        )],
    )
    .await;
    check(
        json!({"GlobalSecondaryIndexUpdates": [
            {"Update": {"IndexName": "a", "ProvisionedThroughput": {}}},
            {"Update": {"IndexName": "abc;", "ProvisionedThroughput": units(1_000_000_000_001, 0)}},
            {"Create": {}},
        ]}),
        &[
            "Value 'a' at 'globalSecondaryIndexUpdates.1.member.update.indexName' failed to satisfy constraint: \
             Member must have length greater than or equal to 3",
            &format!(
                "Value null at 'globalSecondaryIndexUpdates.1.member.update.provisionedThroughput.writeCapacityUnits' \
                 {null}"
            ),
            &format!(
                "Value null at 'globalSecondaryIndexUpdates.1.member.update.provisionedThroughput.readCapacityUnits' \
                 {null}"
            ),
            "Value 'abc;' at 'globalSecondaryIndexUpdates.2.member.update.indexName' failed to satisfy constraint: \
             Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+",
            &format!(
                "Value '0' at 'globalSecondaryIndexUpdates.2.member.update.provisionedThroughput.writeCapacityUnits' \
                 {low}"
            ),
            &format!("Value null at 'globalSecondaryIndexUpdates.3.member.create.keySchema' {null}"),
            &format!("Value null at 'globalSecondaryIndexUpdates.3.member.create.projection' {null}"),
            &format!("Value null at 'globalSecondaryIndexUpdates.3.member.create.indexName' {null}"),
        ],
    )
    .await;
}

#[tokio::test]
async fn requests_are_checked_before_the_table_is_looked_up() {
    let service = TestService::new();
    let nothing = "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, \
        GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, \
        ReplicaTransitRoleArn, MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput \
        or TableClass is required";
    let high = 1_000_000_000_001;
    let one = "One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, \
               GlobalSecondaryIndexUpdate.Delete must not be null";
    for (members, message) in [
        (json!({}), nothing.to_owned()),
        (json!({"GlobalSecondaryIndexUpdates": []}), nothing.to_owned()),
        (json!({"AttributeDefinitions": attributes(&["x"])}), nothing.to_owned()),
        (
            json!({"BillingMode": "PAY_PER_REQUEST", "ProvisionedThroughput": units(1, 1)}),
            NEITHER.to_owned(),
        ),
        (
            json!({"BillingMode": "PROVISIONED"}),
            invalid("ProvisionedThroughput must be specified when BillingMode is PROVISIONED"),
        ),
        (
            json!({"ProvisionedThroughput": units(high, high)}),
            format!("Given value {high} for ReadCapacityUnits is out of bounds"),
        ),
        (
            json!({"ProvisionedThroughput": units(high - 1, high)}),
            format!("Given value {high} for WriteCapacityUnits is out of bounds"),
        ),
        (json!({"GlobalSecondaryIndexUpdates": [{}, {}]}), invalid(one)),
        (json!({"GlobalSecondaryIndexUpdates": [{"Dog": {}}]}), invalid(one)),
        (
            json!({"GlobalSecondaryIndexUpdates": [
                {"Create": create("abc")["Create"], "Delete": {"IndexName": "abd"}}]}),
            invalid("Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object"),
        ),
        (
            json!({"GlobalSecondaryIndexUpdates": [delete("abc"), delete("abc")]}),
            invalid("Only one global secondary index update per index is allowed simultaneously. Index: abc"),
        ),
        (
            json!({"GlobalSecondaryIndexUpdates": [
                {"Create": {"IndexName": "abc", "KeySchema": key(&["x"]), "Projection": {}}}]}),
            invalid("Unknown ProjectionType: null"),
        ),
        (
            json!({"GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": "ghost", "WarmThroughput": {}}}]}),
            invalid(
                "WarmThroughput must have at least one of ReadUnitsPerSecond or WriteUnitsPerSecond specified for \
                 index: ghost",
            ),
        ),
        (
            json!({"StreamSpecification": {"StreamEnabled": true}}),
            invalid("If stream is being enabled then UpdateViewType is required"),
        ),
        (
            json!({"StreamSpecification": {"StreamEnabled": false, "StreamViewType": "KEYS_ONLY"}}),
            invalid("If stream is being disabled, then UpdateViewType must not be specified"),
        ),
        (
            json!({"SSESpecification": {}, "DeletionProtectionEnabled": true}),
            invalid("Server-Side Encryption modification must be the only operation in the request"),
        ),
        (
            json!({"TableClass": "junk"}),
            "Invalid table-class parameter provided. Please try again with a valid table-class value: [STANDARD, \
             STANDARD_INFREQUENT_ACCESS]."
                .to_owned(),
        ),
        (
            json!({"ReplicaUpdates": [{"Create": {"RegionName": "eu-west-1"}}]}),
            "ReplicaUpdates is not supported by this server".to_owned(),
        ),
    ] {
        let body = users(members).to_string();
        service.expect_validation_error("UpdateTable", &body, &message).await;
    }
    let missing = "Requested resource not found: Table: Users not found";
    for members in [
        json!({"ProvisionedThroughput": units(1, 1)}),
        json!({"GlobalSecondaryIndexUpdates": [
            {"Update": {"IndexName": "abc", "ProvisionedThroughput": units(high, high)}}]}),
    ] {
        let body = users(members).to_string();
        service
            .expect_error("UpdateTable", &body, "ResourceNotFoundException", missing)
            .await;
    }
}

#[tokio::test]
async fn requests_are_checked_against_the_table() {
    let service = service().await;
    let x = attributes(&["x"]);
    let change = |name: &str, units: Value| json!({"GlobalSecondaryIndexUpdates": [{"Update": {"IndexName": name, "ProvisionedThroughput": units}}]});
    let blocked = "This operation cannot be performed with given input values. Please contact DynamoDB service team \
                   for more info: Action Blocked: IndexUpdate";
    let same = |of: &str, its: &str| {
        format!(
            "The provisioned throughput for the {of} will not change. The requested value equals the current value. \
             Current ReadCapacityUnits provisioned for {its}: 5. Requested ReadCapacityUnits: 5. Current \
             WriteCapacityUnits provisioned for {its}: 5. Requested WriteCapacityUnits: 5. Refer to the Amazon \
             DynamoDB Developer Guide for current limits and how to request higher limits."
        )
    };
    for (table, members, message) in [
        (
            "Users",
            json!({"ProvisionedThroughput": units(1, 1)}),
            NEITHER.to_owned(),
        ),
        (
            "Paid",
            json!({"ProvisionedThroughput": units(5, 5)}),
            same("table", "the table"),
        ),
        (
            "Paid",
            json!({"ProvisionedThroughput": units(5, 5), "BillingMode": "PROVISIONED"}),
            same("table", "the table"),
        ),
        (
            "Paid",
            change("by_b", units(5, 5)),
            same("index by_b", "index by_b"),
        ),
        (
            "Paid",
            change("abc", units(1_000_000_000_001, 1)),
            blocked.to_owned(),
        ),
        (
            "Users",
            json!({"GlobalSecondaryIndexUpdates": [create("abc")]}),
            invalid("AttributeDefinitions is not specified for index: abc"),
        ),
        (
            "Paid",
            json!({"GlobalSecondaryIndexUpdates": [create("abc")], "AttributeDefinitions": x}),
            invalid("ProvisionedThroughput is not specified for index: abc"),
        ),
        (
            "Paid",
            json!({"GlobalSecondaryIndexUpdates": [create("by_b")], "AttributeDefinitions": x}),
            "Attempting to create an index which already exists".to_owned(),
        ),
        (
            "Users",
            json!({"StreamSpecification": {"StreamEnabled": false}}),
            "Table has no stream to disable: TableName: Users".to_owned(),
        ),
        (
            "Users",
            json!({"SSESpecification": {"Enabled": false}}),
            invalid("Table is already encrypted by default"),
        ),
        (
            "Users",
            json!({"OnDemandThroughput": {"MaxReadRequestUnits": 0}}),
            invalid(
                "Requested MaxReadRequestUnits for OnDemandThroughput for table is outside of valid range",
            ),
        ),
        (
            "Paid",
            json!({"OnDemandThroughput": {"MaxWriteRequestUnits": 1}}),
            invalid(
                "MaxWriteRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode is \
                 PROVISIONED",
            ),
        ),
        (
            "Users",
            json!({"WarmThroughput": {"ReadUnitsPerSecond": 1}}),
            invalid(
                "Requested ReadUnitsPerSecond for WarmThroughput for table is lower than current WarmThroughput, \
                 decreasing WarmThroughput is not supported",
            ),
        ),
    ] {
        let mut body = users(members);
        body["TableName"] = table.into();
        service
            .expect_validation_error("UpdateTable", &body.to_string(), &message)
            .await;
    }
    let two = "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table";
    for updates in [
        json!([create("ab1"), create("ab2")]),
        json!([create("ab1"), delete("ab2")]),
    ] {
        let body =
            users(json!({"GlobalSecondaryIndexUpdates": updates, "AttributeDefinitions": x}));
        service
            .expect_error(
                "UpdateTable",
                &body.to_string(),
                "LimitExceededException",
                two,
            )
            .await;
    }
    let gone = users(json!({"GlobalSecondaryIndexUpdates": [delete("does_not_exist")]}));
    service
        .expect_error(
            "UpdateTable",
            &gone.to_string(),
            "ResourceNotFoundException",
            "Requested resource not found",
        )
        .await;
}

#[tokio::test]
async fn indexes_are_added_and_removed() {
    let options = Options::new().background(false);
    let service = TestService::on(LocalEngine::memory_with(options).unwrap());
    service.table("Users").await;
    for n in 0..3 {
        let item = json!({"pk": {"S": n.to_string()}, "sk": {"S": "s"}, "x": {"S": "x"}});
        service
            .ok("PutItem", json!({"TableName": "Users", "Item": item}))
            .await;
    }
    let update = users(json!({
        "AttributeDefinitions": attributes(&["x", "unused"]),
        "GlobalSecondaryIndexUpdates": [create("by_x")],
    }));
    let table = service.ok("UpdateTable", update).await["TableDescription"].clone();
    assert_eq!(table["TableStatus"], "UPDATING");
    let index = &table["GlobalSecondaryIndexes"][0];
    assert_eq!(
        (&index["IndexStatus"], &index["IndexName"]),
        (&json!("CREATING"), &json!("by_x"))
    );
    assert_eq!(index["Backfilling"], true);
    assert_eq!(describe(&service, "Users").await["TableStatus"], "UPDATING");
    let body = users(json!({"DeletionProtectionEnabled": true})).to_string();
    let busy = "Attempt to change a resource which is still in use: Table is being updated: Users";
    service
        .expect_error("UpdateTable", &body, "ResourceInUseException", busy)
        .await;
    let busy = "Attempt to change a resource which is still in use: Cannot delete table while indexes are being \
                created, updated, or deleted.";
    let body = json!({"TableName": "Users"}).to_string();
    service
        .expect_error("DeleteTable", &body, "ResourceInUseException", busy)
        .await;
    service.run_background();
    let table = describe(&service, "Users").await;
    assert_eq!(table["TableStatus"], "ACTIVE");
    assert_eq!(
        table["AttributeDefinitions"],
        attributes(&["pk", "sk", "x"])
    );
    let index = &table["GlobalSecondaryIndexes"][0];
    assert_eq!(
        (&index["IndexStatus"], &index["ItemCount"]),
        (&json!("ACTIVE"), &json!(3))
    );
    assert_eq!(index["Backfilling"], Value::Null);

    let update = users(json!({"GlobalSecondaryIndexUpdates": [delete("by_x")]}));
    let table = service.ok("UpdateTable", update).await["TableDescription"].clone();
    assert_eq!(table["TableStatus"], "UPDATING");
    service.run_background();
    let table = describe(&service, "Users").await;
    assert_eq!(table["GlobalSecondaryIndexes"], Value::Null);
    assert_eq!(table["AttributeDefinitions"], attributes(&["pk", "sk"]));
}

#[tokio::test]
async fn invalid_key_values_are_left_out_of_a_new_index() {
    let options = Options::new().background(false);
    let service = TestService::on(LocalEngine::memory_with(options).unwrap());
    service.table("Users").await;
    let long = |length| "x".repeat(length);
    let key = |n: usize| json!({"pk": {"S": n.to_string()}, "sk": {"S": "s"}});
    let values = [long(2048), long(2049), long(66_500), String::new()];
    for (n, value) in values.iter().enumerate() {
        let mut item = key(n);
        item["x"] = json!({"S": value});
        let body = json!({"TableName": "Users", "Item": item});
        service.ok("PutItem", body).await;
    }
    let update = users(json!({
        "AttributeDefinitions": attributes(&["x"]),
        "GlobalSecondaryIndexUpdates": [create("by_x")],
    }));
    service.ok("UpdateTable", update).await;
    service.run_background();
    let table = describe(&service, "Users").await;
    assert_eq!(table["GlobalSecondaryIndexes"][0]["ItemCount"], 1);
    for n in 0..values.len() {
        let body = json!({"TableName": "Users", "Key": key(n), "UpdateExpression": "SET y = x"});
        service.ok("UpdateItem", body).await;
        let body = json!({"TableName": "Users", "Key": key(n)});
        service.ok("DeleteItem", body).await;
    }
    let table = describe(&service, "Users").await;
    assert_eq!(table["GlobalSecondaryIndexes"][0]["ItemCount"], 0);
}

#[tokio::test]
async fn settings_change_and_are_described() {
    let service = service().await;
    let change = async |members: Value| {
        service.ok("UpdateTable", users(members)).await;
        describe(&service, "Users").await
    };
    let table = change(json!({"DeletionProtectionEnabled": true})).await;
    assert_eq!(table["DeletionProtectionEnabled"], true);
    let protected = "Resource cannot be deleted as it is currently protected against deletion. Disable deletion \
                     protection first.";
    service
        .expect_validation_error("DeleteTable", r#"{"TableName":"Users"}"#, protected)
        .await;

    let table = change(json!({"TableClass": "STANDARD"})).await;
    assert_eq!(table["TableClassSummary"], Value::Null);
    let table = change(json!({"TableClass": "STANDARD_INFREQUENT_ACCESS"})).await;
    assert_eq!(
        table["TableClassSummary"]["TableClass"],
        "STANDARD_INFREQUENT_ACCESS"
    );
    assert!(table["TableClassSummary"]["LastUpdateDateTime"].is_f64());
    let table = change(json!({"TableClass": "STANDARD"})).await;
    assert_eq!(table["TableClassSummary"]["TableClass"], "STANDARD");

    let table = change(
        json!({"OnDemandThroughput": {"MaxReadRequestUnits": 20, "MaxWriteRequestUnits": 15}}),
    )
    .await;
    assert_eq!(
        table["OnDemandThroughput"],
        json!({"MaxReadRequestUnits": 20, "MaxWriteRequestUnits": 15})
    );
    let table = change(json!({"OnDemandThroughput": {"MaxReadRequestUnits": -1}})).await;
    assert_eq!(
        table["OnDemandThroughput"],
        json!({"MaxWriteRequestUnits": 15})
    );

    let table = change(json!({"WarmThroughput": {"WriteUnitsPerSecond": 4080}})).await;
    assert_eq!(table["WarmThroughput"]["WriteUnitsPerSecond"], 4080);

    let key = json!({"Enabled": true, "SSEType": "KMS", "KMSMasterKeyId": "my-key"});
    let table = change(json!({"SSESpecification": key})).await;
    assert_eq!(
        table["SSEDescription"]["KMSMasterKeyArn"],
        "arn:aws:kms:local:000000000000:key/my-key"
    );

    let on = json!({"StreamEnabled": true, "StreamViewType": "NEW_IMAGE"});
    let table = change(json!({"StreamSpecification": on})).await;
    assert_eq!(table["StreamSpecification"], on);
    let stream = table["LatestStreamArn"].clone();
    assert!(stream.is_string());
    let table = change(json!({"StreamSpecification": {"StreamEnabled": false}})).await;
    assert_eq!(table["StreamSpecification"], Value::Null);
    assert_eq!(table["LatestStreamArn"], stream);

    let table = change(json!({"BillingMode": "PAY_PER_REQUEST"})).await;
    assert_eq!(
        table["BillingModeSummary"]["LastUpdateToPayPerRequestDateTime"],
        table["CreationDateTime"]
    );
    let table =
        change(json!({"BillingMode": "PROVISIONED", "ProvisionedThroughput": units(5, 6)})).await;
    assert_eq!(table["BillingModeSummary"]["BillingMode"], "PROVISIONED");
    assert_eq!(table["ProvisionedThroughput"]["WriteCapacityUnits"], 6);
}

#[tokio::test]
async fn throughput_change_is_described_as_in_progress() {
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_500));
    let options = Options::new().env(Env::manual(clock.clone(), 1));
    let service = TestService::on(LocalEngine::memory_with(options).unwrap());
    let paid = json!({
        "TableName": "Paid",
        "AttributeDefinitions": attributes(&["a"]),
        "KeySchema": key(&["a"]),
        "ProvisionedThroughput": units(5, 5),
    });
    service.ok("CreateTable", paid).await;
    assert_eq!(
        describe(&service, "Paid").await["BillingModeSummary"],
        Value::Null
    );
    let change = async |read, write| {
        clock.advance(Duration::from_millis(1_000));
        let body = json!({"TableName": "Paid", "ProvisionedThroughput": units(read, write)});
        let response = service.ok("UpdateTable", body).await["TableDescription"].clone();
        assert_eq!(response["TableStatus"], "UPDATING");
        let throughput = |table: &Value| table["ProvisionedThroughput"].clone();
        (
            throughput(&response),
            throughput(&describe(&service, "Paid").await),
        )
    };
    let up = 1_700_000_001.5;
    let (response, after) = change(10, 5).await;
    assert_eq!(
        response,
        json!({"LastIncreaseDateTime": up, "NumberOfDecreasesToday": 0, "ReadCapacityUnits": 5,
            "WriteCapacityUnits": 5})
    );
    assert_eq!(
        after,
        json!({"LastIncreaseDateTime": up, "NumberOfDecreasesToday": 0, "ReadCapacityUnits": 10,
            "WriteCapacityUnits": 5})
    );
    let down = 1_700_000_002.5;
    let (response, after) = change(1, 1).await;
    assert_eq!(
        response,
        json!({"LastIncreaseDateTime": up, "LastDecreaseDateTime": down, "NumberOfDecreasesToday": 0,
            "ReadCapacityUnits": 10, "WriteCapacityUnits": 5})
    );
    assert_eq!(
        after,
        json!({"LastIncreaseDateTime": up, "LastDecreaseDateTime": down, "NumberOfDecreasesToday": 1,
            "ReadCapacityUnits": 1, "WriteCapacityUnits": 1})
    );
}
