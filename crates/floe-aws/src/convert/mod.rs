//! Between Floe's words and the SDK's: the only place where types of the SDK appear.
//!
//! [`Client`] takes an operation of `floe-store`, sends it as a request of the SDK, and answers in Floe's words
//! again, once per call: whether to send it again is decided elsewhere ([`retry`](crate::retry)). Prefixes are
//! put on table names here on their way out, and taken off on their way in.
//!
//! | module | what it converts |
//! |---|---|
//! | `client` | settings to the clients of the SDK |
//! | `value` | items and values |
//! | `expression` | trees to texts with placeholders |
//! | `item` | get, put, update, delete |
//! | `batch`, `transact` | requests about several items |
//! | `page` | query and scan |
//! | `table`, `description` | requests about tables, and what is said of them |
//! | `stream` | change streams |
//! | `bus` | entries of an event bus |
//! | `capacity` | costs and sizes of item collections |
//! | `error` | what went wrong, and whether it can have been applied |

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

/// Sends a request to the service of tables, or to that of streams, and takes the answer about these tables.
macro_rules! sent {
    ($client:ident.tables, $request:expr, $tables:expr) => {
        sent!($client.tables, aws_sdk_dynamodb, $request, $tables)
    };
    ($client:ident.streams, $request:expr, $tables:expr) => {
        sent!($client.streams, aws_sdk_dynamodbstreams, $request, $tables)
    };
    ($client:ident.$service:ident, $sdk:ident, $request:expr, $tables:expr) => {{
        let answer = $request.send_with(&$client.$service).await;
        $client.answered::<$sdk::Error, _, _>(answer, $tables)
    }};
}
use sent;

/// A part of a request, all of whose required members are given.
fn built<T>(part: Result<T, BuildError>) -> Result<T> {
    part.map_err(|error| Error::Validation(error.to_string()))
}

/// An answer that says something that no store says.
fn unreadable(what: impl std::fmt::Display) -> Error {
    Error::Internal(format!("the answer of the store cannot be read: {what}"))
}

/// A part of an answer that is always there.
fn required<T>(part: Option<T>, name: &str) -> Result<T> {
    part.ok_or_else(|| unreadable(format_args!("missing={name}")))
}

/// A part of an answer that is one of a few words, which both sides have from DynamoDB.
fn named<T>(
    word: Option<&impl AsRef<str>>,
    from_name: fn(&str) -> Option<T>,
    unknown: &str,
) -> Result<T> {
    let named = word.and_then(|word| from_name(word.as_ref()));
    named.ok_or_else(|| unreadable(unknown))
}

/// The images in the records of a stream.
fn view(answer: Option<&impl AsRef<str>>) -> Result<StreamView> {
    named(
        answer,
        StreamView::from_name,
        "a stream with an unknown view",
    )
}

/// What an answer tells table by table, under the names that tables have here.
fn by_table<A, T>(
    answer: Option<HashMap<String, A>>,
    names: &Names,
    read: impl Fn(A) -> Result<T>,
) -> Result<BTreeMap<String, T>> {
    let answer = answer.unwrap_or_default().into_iter();
    answer
        .map(|(table, told)| Ok((names.own(table), read(told)?)))
        .collect()
}

/// A list that is left out when it is empty.
fn some<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

/// A number in the size that requests have for it. A larger one is as good as none.
fn number(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX)
}

/// A count, of which answers know the sign as well.
fn count(number: Option<i64>) -> u64 {
    number.unwrap_or_default().try_into().unwrap_or_default()
}

/// A moment in an answer, to the millisecond. It comes as a fraction of seconds, a little beside what it stands for.
fn moment(answer: Option<DateTime>) -> Timestamp {
    const NANOS: i128 = 1_000_000;
    let nanos = answer.map_or(0, |moment| moment.as_nanos());
    let millis = (nanos + NANOS / 2).div_euclid(NANOS);
    Timestamp::from_millis(u64::try_from(millis).unwrap_or_default())
}

/// A limit in the size that requests have for it. A larger one is as good as none.
fn limit(items: Option<usize>) -> Option<i32> {
    items.map(|items| i32::try_from(items).unwrap_or(i32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_not_a_millisecond_early() {
        for millis in [0, 1_735_695_660_918, 1_735_695_660_919, 1_735_695_660_999] {
            let sent = DateTime::from_secs_f64(millis as f64 / 1000.0);
            assert_eq!(moment(Some(sent)), Timestamp::from_millis(millis));
        }
        assert_eq!(moment(None), Timestamp::default());
        assert_eq!(moment(Some(DateTime::from_secs(-5))), Timestamp::default());
    }
}
