//! Shared by the tests of Query and Scan: DynamoDB's messages, tables with indexes, and requests as data.

use serde_json::{Value, json};

use super::test_service::TestService;

pub(crate) const SELECTS: &str =
    "[SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]";
pub(crate) const CAPACITIES: &str = "[INDEXES, TOTAL, NONE]";
pub(crate) const START_KEY: &str = "The provided starting key is invalid";

/// Returns the message of faults that are reported together.
pub(crate) fn detected(faults: &[String]) -> String {
    let plural = if faults.len() == 1 { "" } else { "s" };
    format!(
        "{} validation error{plural} detected: {}",
        faults.len(),
        faults.join("; ")
    )
}

/// Returns the fault of a displayed value (`'x'`, `null` or nothing) at a path that violates a constraint.
pub(crate) fn fault(shown: &str, path: &str, constraint: &str) -> String {
    let shown = match shown {
        "" => String::new(),
        shown => format!(" {shown}"),
    };
    format!("Value{shown} at '{path}' failed to satisfy constraint: Member must {constraint}")
}

/// Returns the fault of a number that is too small.
pub(crate) fn at_least(shown: &str, path: &str, least: i32) -> String {
    fault(
        shown,
        path,
        &format!("have value greater than or equal to {least}"),
    )
}

/// Returns the fault of a number that is too large.
pub(crate) fn at_most(shown: &str, path: &str, most: i32) -> String {
    fault(
        shown,
        path,
        &format!("have value less than or equal to {most}"),
    )
}

/// Returns the fault of an invalid enum value.
pub(crate) fn one_of(value: &str, path: &str, allowed: &str) -> String {
    fault(
        &format!("'{value}'"),
        path,
        &format!("satisfy enum value set: {allowed}"),
    )
}

/// Returns the fault of a missing table name.
pub(crate) fn no_table_name() -> String {
    fault("null", "tableName", "not be null")
}

/// Returns a validation message about a parameter.
pub(crate) fn invalid(message: &str) -> String {
    format!("One or more parameter values were invalid: {message}")
}

/// Creates a table `Members` with the key `pk` and two global indexes: `gsi` (keys only) and `gsi2` (all attributes).
pub(crate) async fn members_table(service: &TestService) {
    service
        .ok(
            "CreateTable",
            json!({
                "TableName": "Members",
                "BillingMode": "PAY_PER_REQUEST",
                "AttributeDefinitions": [
                    {"AttributeName": "pk", "AttributeType": "S"},
                    {"AttributeName": "gk", "AttributeType": "S"},
                    {"AttributeName": "gk2", "AttributeType": "S"},
                ],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "gsi",
                        "KeySchema": [{"AttributeName": "gk", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "KEYS_ONLY"},
                    },
                    {
                        "IndexName": "gsi2",
                        "KeySchema": [{"AttributeName": "gk2", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "ALL"},
                    },
                ],
            }),
        )
        .await;
}

/// Checks the error message of an operation with these members, besides the table name; an empty message means success.
/// The table name `-` omits the name.
pub(crate) async fn check(
    service: &TestService,
    operation: &str,
    table: &str,
    members: &str,
    expected: &str,
) {
    let mut body: Value = serde_json::from_str(members).unwrap();
    let body = body.as_object_mut().unwrap();
    match body.get("TableName").and_then(Value::as_str) {
        Some("-") => drop(body.remove("TableName")),
        Some(_) => {}
        None => drop(body.insert("TableName".to_owned(), table.into())),
    }
    let text = serde_json::to_string(&body).unwrap();
    let (status, response) = service.call(operation, &text).await;
    let text = |name: &str| response[name].as_str().unwrap_or_default().to_owned();
    let message = text("message") + &text("Message");
    assert_eq!(
        message, expected,
        "operation={operation} status={status} members={members}"
    );
}
