//! Verifies that both servers respond with the same content, otherwise they are not comparable.
//!
//! Before the measurement, both servers receive the same calls, and their responses are compared as JSON, with sets and
//! the items of a batch sorted, because DynamoDB does not define their order.

use serde_json::Value;

use super::client::Connection;
use super::data::{self, Call, Operation, Picker};
use super::request::http;
use crate::Fallible;

/// Number of compared calls of each operation.
const CALLS: usize = 50;

/// Creates the table and puts all items.
pub(super) async fn load(connection: &mut Connection) -> Fallible<()> {
    for call in std::iter::once(data::create()).chain(data::load()) {
        let response = send(connection, &call).await?;
        let left = response.get("UnprocessedItems").and_then(Value::as_object);
        if left.is_some_and(|left| !left.is_empty()) {
            return Err("a server did not process a whole batch".into());
        }
    }
    Ok(())
}

/// Makes the same calls to both servers, and fails at the first difference.
pub(super) async fn check(connections: &mut [Connection]) -> Fallible<()> {
    let picker = Picker::new(7);
    let calls = |operation: Operation| {
        let picker = &picker;
        (0..CALLS).map(move |_| operation.call(picker))
    };
    let operations = Operation::ALL.into_iter().flat_map(calls);
    for call in operations.chain(data::sweep()) {
        let mut expected = None;
        for connection in &mut *connections {
            let response = ordered(send(connection, &call).await?);
            if *expected.get_or_insert_with(|| response.clone()) != response {
                return Err(difference(&call, expected.as_ref(), &response).into());
            }
        }
    }
    Ok(())
}

fn difference(call: &Call, one: Option<&Value>, other: &Value) -> String {
    let one = one.map(Value::to_string).unwrap_or_default();
    format!(
        "the servers differ: operation={} request={} one={one} other={other}",
        call.operation, call.body
    )
}

async fn send(connection: &mut Connection, call: &Call) -> Fallible<Value> {
    let response = connection.call(&http(call)).await?;
    if response.status == 200 {
        return Ok(serde_json::from_slice(response.body)?);
    }
    let (status, body) = (response.status, String::from_utf8_lossy(response.body));
    Err(format!(
        "the server rejected a request: operation={} status={status} body={body}",
        call.operation
    )
    .into())
}

/// Sorts everything whose order is undefined.
fn ordered(response: Value) -> Value {
    match response {
        Value::Object(members) => {
            let members = members.into_iter().map(|(name, value)| {
                let is_loose = ["SS", "NS", "BS", data::TABLE].contains(&name.as_str());
                (name, sorted(ordered(value), is_loose))
            });
            members.collect()
        }
        Value::Array(values) => values.into_iter().map(ordered).collect(),
        other => other,
    }
}

fn sorted(value: Value, is_loose: bool) -> Value {
    match value {
        Value::Array(mut values) if is_loose => {
            values.sort_by_cached_key(Value::to_string);
            Value::Array(values)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(one: &str, other: &str, expected: bool) {
        let [one, other] = [one, other].map(|text| ordered(serde_json::from_str(text).unwrap()));
        assert_eq!(one == other, expected, "{one} {other}");
    }

    #[test]
    fn only_undefined_orders_are_sorted() {
        check(r#"{"SS":["a","b"]}"#, r#"{"SS":["b","a"]}"#, true);
        check(r#"{"SS":["a","b"]}"#, r#"{"SS":["b","c"]}"#, false);
        check(r#"{"L":["a","b"]}"#, r#"{"L":["b","a"]}"#, false);
        check(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, true);
        check(
            r#"{"Responses":{"Customers":[{"SS":["a","b"]},{"N":"1"}]}}"#,
            r#"{"Responses":{"Customers":[{"N":"1"},{"SS":["b","a"]}]}}"#,
            true,
        );
        check(r#"{"Items":[1,2]}"#, r#"{"Items":[2,1]}"#, false);
    }
}
