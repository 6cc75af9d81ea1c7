//! Converts between types of Floe and of the SDK. Only this module uses the SDK.
//!
//! [`Client`] sends an operation of `floe-store` as one request of the SDK and converts the response. Retries are
//! decided elsewhere ([`retry`](crate::retry)). Table name prefixes are added to requests and removed from responses
//! here.
//!
//! | module | what it converts |
//! |---|---|
//! | `client` | options, to SDK clients |
//! | `value` | items and values |
//! | `expression` | expression trees, to text with placeholders |
//! | `item` | get, put, update, delete |
//! | `batch`, `transact` | requests about several items |
//! | `page` | queries and scans |
//! | `table`, `description` | table requests and descriptions |
//! | `stream` | change streams |
//! | `bus` | events of an event bus |
//! | `capacity` | consumed capacity, item collection sizes |
//! | `error` | errors, and whether the request may have been applied |

mod batch;
#[cfg(feature = "eventbridge")]
mod bus;
mod capacity;
mod client;
mod description;
mod error;
mod expression;
mod item;
mod page;
mod settings;
mod stream;
mod table;
mod transact;
mod value;

#[cfg(feature = "eventbridge")]
pub(crate) use bus::BusClient;
pub(crate) use client::Client;

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::primitives::DateTime;
use floe_store::table::StreamView;
use floe_store::{Error, Result, Timestamp};

use crate::names::Names;

/// Sends a request to the table or stream service, and converts its error in terms of these tables.
macro_rules! send {
    ($client:ident.tables, $request:expr, $tables:expr) => {
        send!($client.tables, aws_sdk_dynamodb, $request, $tables)
    };
    ($client:ident.streams, $request:expr, $tables:expr) => {
        send!($client.streams, aws_sdk_dynamodbstreams, $request, $tables)
    };
    ($client:ident.$service:ident, $sdk:ident, $request:expr, $tables:expr) => {{
        let response = $request.send_with(&$client.$service).await;
        $client.convert_response::<$sdk::Error, _, _>(response, $tables)
    }};
}
use send;

/// Builds a part of a request. All required members are set.
fn built<T>(part: Result<T, BuildError>) -> Result<T> {
    part.map_err(|error| Error::Validation(error.to_string()))
}

/// Returns the error for an invalid response.
fn invalid_response(what: impl std::fmt::Display) -> Error {
    Error::Internal(format!("the store returned an invalid response: {what}"))
}

/// Returns a required part of a response.
fn required<T>(part: Option<T>, name: &str) -> Result<T> {
    part.ok_or_else(|| invalid_response(format_args!("missing={name}")))
}

/// Converts an enum value in a response. Both sides use DynamoDB's names.
fn parse_enum<T>(
    value: Option<&impl AsRef<str>>,
    from_name: fn(&str) -> Option<T>,
    unknown: &str,
) -> Result<T> {
    let named = value.and_then(|value| from_name(value.as_ref()));
    named.ok_or_else(|| invalid_response(unknown))
}

/// Converts the view type of a stream.
fn view(response: Option<&impl AsRef<str>>) -> Result<StreamView> {
    parse_enum(
        response,
        StreamView::from_name,
        "a stream with an unknown view",
    )
}

/// Converts the parts of a response by table, with the prefix removed from table names.
fn by_table<A, T>(
    response: Option<HashMap<String, A>>,
    names: &Names,
    read: impl Fn(A) -> Result<T>,
) -> Result<BTreeMap<String, T>> {
    let response = response.unwrap_or_default().into_iter();
    response
        .map(|(table, part)| Ok((names.remove_prefix(table), read(part)?)))
        .collect()
}

/// Returns `None` for an empty list.
fn non_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

/// Converts a number for a request. Larger ones are equivalent to no limit.
fn number(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

/// Converts a count, which is signed in responses.
fn count(number: Option<i64>) -> u64 {
    number.unwrap_or_default().try_into().unwrap_or_default()
}

/// Converts a time to milliseconds, rounding the inexact fraction of seconds in responses.
fn timestamp(response: Option<DateTime>) -> Timestamp {
    const NANOS: i128 = 1_000_000;
    let nanos = response.map_or(0, |timestamp| timestamp.as_nanos());
    let millis = (nanos + NANOS / 2).div_euclid(NANOS);
    Timestamp::from_millis(u64::try_from(millis).unwrap_or_default())
}

/// Converts a limit for a request. Larger ones are equivalent to no limit.
fn limit(items: Option<usize>) -> Option<i32> {
    items.map(|items| i32::try_from(items).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_to_milliseconds() {
        for millis in [0, 1_735_695_660_918, 1_735_695_660_919, 1_735_695_660_999] {
            let sent = DateTime::from_secs_f64(millis as f64 / 1000.0);
            assert_eq!(timestamp(Some(sent)), Timestamp::from_millis(millis));
        }
        assert_eq!(timestamp(None), Timestamp::default());
        assert_eq!(
            timestamp(Some(DateTime::from_secs(-5))),
            Timestamp::default()
        );
    }
}
