//! What the tests of Query and Scan have in common: the words of DynamoDB, tables with indexes, and requests as
//! data.

use serde_json::{Value, json};

use super::world::World;

pub(crate) const SELECTS: &str =
    "[SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]";
pub(crate) const CAPACITIES: &str = "[INDEXES, TOTAL, NONE]";
pub(crate) const START_KEY: &str = "The provided starting key is invalid";

/// Faults that are told together.
pub(crate) fn detected(faults: &[String]) -> String {
    let plural = if faults.len() == 1 { "" } else { "s" };
    format!(
        "{} validation error{plural} detected: {}",
        faults.len(),
        faults.join("; ")
    )
}

/// A value as shown (`'x'`, `null` or nothing) at a path that breaks a constraint.
pub(crate) fn fault(shown: &str, path: &str, constraint: &str) -> String {
    let shown = match shown {
        "" => String::new(),
        shown => format!(" {shown}"),
    };
    format!("Value{shown} at '{path}' failed to satisfy constraint: Member must {constraint}")
}

/// A number that is too small.
pub(crate) fn at_least(shown: &str, path: &str, least: i32) -> String {
    fault(
        shown,
        path,
        &format!("have value greater than or equal to {least}"),
    )
}

/// A number that is too great.
pub(crate) fn at_most(shown: &str, path: &str, most: i32) -> String {
    fault(
        shown,
        path,
        &format!("have value less than or equal to {most}"),
    )
}

/// A word that is none of these.
pub(crate) fn one_of(word: &str, path: &str, words: &str) -> String {
    fault(
        &format!("'{word}'"),
        path,
        &format!("satisfy enum value set: {words}"),
    )
}

/// No name of a table.
pub(crate) fn no_table_name() -> String {
    fault("null", "tableName", "not be null")
}

/// The error about a parameter.
pub(crate) fn invalid(message: &str) -> String {
    format!("One or more parameter values were invalid: {message}")
}

/// A table `Members` with the key `pk` and two global indexes: `gsi` with the keys only, `gsi2` with everything.
pub(crate) async fn members_table(world: &World) {
    world
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

/// Checks what an operation answers to these members, beside the name of a table: a message, or nothing if it
/// succeeds. The name `-` leaves the name out.
pub(crate) async fn check(
    world: &World,
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
    let (status, answer) = world.call(operation, &text).await;
    let told = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
    let message = told("message") + &told("Message");
    assert_eq!(
        message, expected,
        "operation={operation} status={status} members={members}"
    );
}
