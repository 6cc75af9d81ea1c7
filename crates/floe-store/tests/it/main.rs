//! Tests of the operations through the public API: inputs with the exact errors of DynamoDB, and both sides of every
//! limit.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod batches;
mod costs;
mod create_table;
mod fingerprints;
mod items;
mod keys;
mod reads;
mod settings;
mod streams;
mod tables;
mod transactions;
mod update_table;
mod updates;

use floe_store::table::{KeyKind, Projection};
use floe_store::{Error, Item, Result, TableDef};

/// Asserts that the result is a success (if the expected text is empty) or an error with this text.
#[track_caller]
fn expect<T: std::fmt::Debug>(result: Result<T>, expected: &str) {
    match (result, expected) {
        (Ok(_), "") => {}
        (Ok(value), _) => panic!("accepted\n  {value:?}\nexpected\n  {expected}"),
        (Err(error), _) => assert_eq!(error.to_string(), expected),
    }
}

/// Asserts the code and the text of an error.
#[track_caller]
fn expect_code<T: std::fmt::Debug>(result: Result<T>, code: &str, expected: &str) {
    let error: Error = result.unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), (code, expected));
}

/// A table with only a partition key, a string.
fn simple() -> TableDef {
    TableDef::builder("Simple", "id", KeyKind::S)
        .build()
        .unwrap()
}

/// A table with a partition key, a sort key, and one index of each kind and projection.
fn orders() -> TableDef {
    TableDef::builder("Orders", "customer", KeyKind::S)
        .sort_key("placed", KeyKind::N)
        .global_index(
            "by_product",
            [("product", KeyKind::S)],
            [("placed", KeyKind::N)],
            Projection::All,
        )
        .global_index(
            "by_city",
            [("country", KeyKind::S), ("city", KeyKind::S)],
            [("street", KeyKind::S), ("number", KeyKind::N)],
            Projection::Include(vec!["name".into()]),
        )
        .global_index(
            "by_hash",
            [("hash", KeyKind::B)],
            NO_SORT,
            Projection::KeysOnly,
        )
        .local_index("by_state", "state", KeyKind::S, Projection::KeysOnly)
        .build()
        .unwrap()
}

const NO_SORT: [(&str, KeyKind); 0] = [];

/// A key of [`orders`].
fn order_key() -> Item {
    Item::new().with("customer", "c-1").with("placed", 1)
}

/// A key of [`simple`].
fn id(id: &str) -> Item {
    Item::new().with("id", id)
}

/// A string of this many bytes.
fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// The message in the constraint format of single writes.
fn as_constraint_error(message: &str) -> String {
    format!("1 validation error detected: {message}")
}
