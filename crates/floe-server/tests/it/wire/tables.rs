//! DescribeTable, DeleteTable, ListTables, DescribeLimits, DescribeEndpoints and DescribeContinuousBackups.

use serde_json::{Value, json};

use super::create_table::{attributes, key};
use super::test_service::TestService;

const ARN: &str = "arn:aws:dynamodb:local:000000000000:table/Users";

/// The operations whose only member is a table name.
const BY_NAME: [&str; 4] = [
    "DescribeTable",
    "DeleteTable",
    "DescribeTimeToLive",
    "DescribeContinuousBackups",
];

#[tokio::test]
async fn table_names_are_checked_uniformly() {
    let service = TestService::new();
    let pattern = "failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+";
    let short = "failed to satisfy constraint: Member must have length greater than or equal to 3";
    for operation in BY_NAME {
        service
            .expect_validation_error(
                operation,
                "{}",
                "The parameter 'TableName' is required but was not present in the request",
            )
            .await;
        let name = "a".repeat(256);
        for (name, faults) in [
            (
                "",
                vec![
                    format!("Value '' at 'tableName' {pattern}"),
                    format!("Value '' at 'tableName' {short}"),
                ],
            ),
            (
                "a;",
                vec![
                    format!("Value 'a;' at 'tableName' {pattern}"),
                    format!("Value 'a;' at 'tableName' {short}"),
                ],
            ),
            (
                "abc;",
                vec![format!("Value 'abc;' at 'tableName' {pattern}")],
            ),
            (
                &name,
                vec![format!(
                    "Value '{name}' at 'tableName' failed to satisfy constraint: Member must have length less than or \
                     equal to 255"
                )],
            ),
        ] {
            let faults: Vec<&str> = faults.iter().map(String::as_str).collect();
            let body = json!({"TableName": name}).to_string();
            service.expect_faults(operation, &body, &faults).await;
        }
        let (code, missing) = match operation {
            "DescribeContinuousBackups" => ("TableNotFoundException", "Table not found: Nowhere"),
            _ => (
                "ResourceNotFoundException",
                "Requested resource not found: Table: Nowhere not found",
            ),
        };
        service
            .expect_error(operation, r#"{"TableName":"Nowhere"}"#, code, missing)
            .await;
    }
}

#[tokio::test]
async fn table_arn_is_accepted_as_name() {
    let service = TestService::new();
    service.table("Users").await;
    let named = |arn: &str| json!({"TableName": arn});
    for operation in [
        "DescribeTable",
        "DescribeTimeToLive",
        "DescribeContinuousBackups",
    ] {
        service.ok(operation, named(ARN)).await;
    }
    let table = service.ok("DescribeTable", named(ARN)).await;
    assert_eq!(table["Table"]["TableName"], "Users");
    let elsewhere = ARN.replace("local", "eu-west-1");
    service
        .expect_validation_error(
            "DescribeTable",
            &named(&elsewhere).to_string(),
            &format!("1 validation error detected: Invalid AWS region in '{elsewhere}'"),
        )
        .await;
    let foreign = ARN.replace("000000000000", "123456789012");
    service
        .expect_error(
            "DescribeTable",
            &named(&foreign).to_string(),
            "AccessDeniedException",
            "Access is denied",
        )
        .await;
    service.ok("DeleteTable", named(ARN)).await;
}

#[tokio::test]
async fn description_contains_sizes_and_counts() {
    let service = TestService::new();
    let body = json!({
        "TableName": "Users",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": attributes(&["pk", "x"]),
        "KeySchema": key(&["pk"]),
        "GlobalSecondaryIndexes": [
            {"IndexName": "by_x", "KeySchema": key(&["x"]), "Projection": {"ProjectionType": "KEYS_ONLY"}}],
    });
    service.ok("CreateTable", body).await;
    let item = json!({"pk": {"S": "1"}, "x": {"S": "xy"}, "data": {"S": "0123456789"}});
    service
        .ok("PutItem", json!({"TableName": "Users", "Item": item}))
        .await;
    let mut table = service
        .ok("DescribeTable", json!({"TableName": "Users"}))
        .await["Table"]
        .clone();
    let created = table["CreationDateTime"].take();
    table["TableId"].take();
    let none =
        json!({"NumberOfDecreasesToday": 0, "ReadCapacityUnits": 0, "WriteCapacityUnits": 0});
    let warm =
        json!({"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 4000, "Status": "ACTIVE"});
    let expected = json!({
        "AttributeDefinitions": attributes(&["pk", "x"]),
        "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST", "LastUpdateToPayPerRequestDateTime": created},
        "CreationDateTime": null,
        "DeletionProtectionEnabled": false,
        "GlobalSecondaryIndexes": [{
            "IndexArn": format!("{ARN}/index/by_x"),
            "IndexName": "by_x",
            "IndexSizeBytes": 6,
            "IndexStatus": "ACTIVE",
            "ItemCount": 1,
            "KeySchema": key(&["x"]),
            "Projection": {"ProjectionType": "KEYS_ONLY"},
            "ProvisionedThroughput": none,
            "WarmThroughput": warm,
        }],
        "ItemCount": 1,
        "KeySchema": key(&["pk"]),
        "ProvisionedThroughput": none,
        "TableArn": ARN,
        "TableId": null,
        "TableName": "Users",
        "TableSizeBytes": 20,
        "TableStatus": "ACTIVE",
        "TableThroughputModeSummary":
            {"TableThroughputMode": "PAY_PER_REQUEST", "LastUpdateToPayPerRequestDateTime": created},
        "WarmThroughput": warm,
    });
    assert_eq!(table, expected);
}

#[tokio::test]
async fn description_of_a_deleted_table_has_no_key() {
    let service = TestService::new();
    service.table("Users").await;
    let name = json!({"TableName": "Users"});
    let described = service.ok("DescribeTable", name.clone()).await["Table"].clone();
    let removed = service.ok("DeleteTable", name).await["TableDescription"].clone();
    let expected = json!({
        "BillingModeSummary": described["BillingModeSummary"],
        "DeletionProtectionEnabled": false,
        "ItemCount": 0,
        "ProvisionedThroughput": described["ProvisionedThroughput"],
        "TableArn": ARN,
        "TableId": described["TableId"],
        "TableName": "Users",
        "TableSizeBytes": 0,
        "TableStatus": "DELETING",
        "TableThroughputModeSummary": described["TableThroughputModeSummary"],
    });
    assert_eq!(removed, expected);
}

#[tokio::test]
async fn tables_are_listed_in_pages() {
    let service = TestService::new();
    for name in ["Bob", "ann", "Ann", "Cid"] {
        service.table(name).await;
    }
    for (body, expected) in [
        (
            json!({}),
            json!({"TableNames": ["Ann", "Bob", "Cid", "ann"]}),
        ),
        (
            json!({"Limit": 2}),
            json!({"TableNames": ["Ann", "Bob"], "LastEvaluatedTableName": "Bob"}),
        ),
        (
            json!({"Limit": 2, "ExclusiveStartTableName": "Bob"}),
            json!({"TableNames": ["Cid", "ann"]}),
        ),
        (
            json!({"ExclusiveStartTableName": "zzz"}),
            json!({"TableNames": []}),
        ),
        (
            json!({"Limit": 4, "ExclusiveStartTableName": null, "Unknown": {}}),
            json!({"TableNames": ["Ann", "Bob", "Cid", "ann"]}),
        ),
    ] {
        assert_eq!(service.ok("ListTables", body).await, expected);
    }
    let high = "Value '500' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 100";
    let low = "failed to satisfy constraint: Member must have value greater than or equal to 1";
    let start = "at 'exclusiveStartTableName' failed to satisfy constraint: Member must";
    for (body, faults) in [
        (
            json!({"ExclusiveStartTableName": "a;", "Limit": 500}),
            vec![
                high.to_owned(),
                format!("Value 'a;' {start} satisfy regular expression pattern: [a-zA-Z0-9_.-]+"),
                format!("Value 'a;' {start} have length greater than or equal to 3"),
            ],
        ),
        (
            json!({"Limit": 0}),
            vec![format!("Value '0' at 'limit' {low}")],
        ),
        (
            json!({"Limit": -3}),
            vec![format!("Value '-3' at 'limit' {low}")],
        ),
    ] {
        let faults: Vec<&str> = faults.iter().map(String::as_str).collect();
        service
            .expect_faults("ListTables", &body.to_string(), &faults)
            .await;
    }
}

#[tokio::test]
async fn limits_and_endpoints_are_described() {
    let service = TestService::new();
    let limits = service.ok("DescribeLimits", json!({})).await;
    let expected = json!({
        "AccountMaxReadCapacityUnits": 80000,
        "AccountMaxWriteCapacityUnits": 80000,
        "TableMaxReadCapacityUnits": 40000,
        "TableMaxWriteCapacityUnits": 40000,
    });
    assert_eq!(limits, expected);
    let endpoints = service.ok("DescribeEndpoints", json!({})).await;
    let expected =
        json!({"Endpoints": [{"Address": "localhost:8000", "CachePeriodInMinutes": 1440}]});
    assert_eq!(endpoints, expected);
}

#[tokio::test]
async fn continuous_backups_are_disabled() {
    let service = TestService::new();
    service.table("Users").await;
    let off = json!({
        "ContinuousBackupsDescription": {
            "ContinuousBackupsStatus": "ENABLED",
            "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "DISABLED"},
        },
    });
    let described = service
        .ok("DescribeContinuousBackups", json!({"TableName": "Users"}))
        .await;
    assert_eq!(described, off);
    let switch = |on: Value| json!({"TableName": "Users", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": on}});
    assert_eq!(
        service
            .ok("UpdateContinuousBackups", switch(false.into()))
            .await,
        off
    );
    for (on, message) in [
        (
            json!(true),
            "PointInTimeRecoverySpecification is not supported by this server",
        ),
        (
            Value::Null,
            "1 validation error detected: Value null at \
             'pointInTimeRecoverySpecification.pointInTimeRecoveryEnabled' failed to satisfy constraint: Member must \
             not be null",
        ),
    ] {
        service
            .expect_validation_error("UpdateContinuousBackups", &switch(on).to_string(), message)
            .await;
    }
}
