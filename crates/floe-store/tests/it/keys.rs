//! Keys of tables and indexes, in all operations that take one.

use floe_store::expr::Update;
use floe_store::op::{BatchWrite, DeleteItem, GetItem, PutItem, UpdateItem};
use floe_store::table::{KeyKind, Projection};
use floe_store::{Item, TableDef, Value};

use crate::{NO_SORT, expect, order_key, orders, text};

const MISMATCH: &str = "The provided key element does not match the schema";
const HASH_TOO_LONG: &str = "One or more parameter values were invalid: Size of hashkey has \
                             exceeded the maximum size limit of2048 bytes";
const RANGE_TOO_LONG: &str = "One or more parameter values were invalid: Aggregated size of all \
                              range keys has exceeded the size limit of 1024 bytes";

fn empty(kind: &str, name: &str) -> String {
    format!(
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot \
         contain an empty {kind} value. Key: {name}"
    )
}

/// A table whose keys are binary.
fn binary() -> TableDef {
    TableDef::builder("Binary", "b", KeyKind::B)
        .sort_key("s", KeyKind::B)
        .build()
        .unwrap()
}

/// Checks a key with all operations that take one; all give the same result.
#[track_caller]
fn expect_key(table: &TableDef, key: &Item, expected: &str) {
    let name = &table.name;
    expect(GetItem::new(name, key.clone()).check(table), expected);
    expect(DeleteItem::new(name, key.clone()).check(table), expected);
    expect(
        UpdateItem::new(name, key.clone(), Update::new()).check(table),
        expected,
    );
    expect(BatchWrite::Delete(key.clone()).check(table), expected);
}

#[test]
fn key_must_have_exactly_the_attributes_of_the_schema() {
    let orders = orders();
    for (key, expected) in [
        (order_key(), ""),
        (Item::new(), MISMATCH),
        (Item::new().with("customer", "c-1"), MISMATCH),
        (order_key().with("more", 1), MISMATCH),
        (
            Item::new().with("customer", "c-1").with("other", 1),
            MISMATCH,
        ),
        (Item::new().with("customer", 1).with("placed", 1), MISMATCH),
        (
            Item::new().with("customer", "c-1").with("placed", "1"),
            MISMATCH,
        ),
        (
            Item::new().with("customer", Value::Null).with("placed", 1),
            MISMATCH,
        ),
        (
            Item::new().with("customer", "").with("placed", 1),
            &empty("string", "customer"),
        ),
    ] {
        expect_key(&orders, &key, expected);
    }
}

#[test]
fn key_length_is_limited() {
    let key = |b: usize, s: usize| Item::new().with("b", vec![0; b]).with("s", vec![0; s]);
    for (key, expected) in [
        (key(2048, 1024), ""),
        (key(2049, 1024), HASH_TOO_LONG),
        (key(2048, 1025), RANGE_TOO_LONG),
        (key(0, 1), &empty("binary", "b")),
        (key(1, 0), &empty("binary", "s")),
    ] {
        expect_key(&binary(), &key, expected);
        expect(PutItem::new("Binary", key).check(&binary()), expected);
    }
    // Bytes are counted, not characters.
    let text_key = |bytes: usize| {
        Item::new()
            .with("customer", "ß".repeat(bytes / 2))
            .with("placed", 1)
    };
    expect_key(&orders(), &text_key(2048), "");
    expect_key(&orders(), &text_key(2050), HASH_TOO_LONG);
}

#[test]
fn put_reports_the_faulty_key_attribute() {
    let invalid = |message: &str| format!("One or more parameter values were invalid: {message}");
    let orders = orders();
    for (item, expected) in [
        (order_key().with("more", 1), String::new()),
        (
            Item::new().with("placed", 1),
            invalid("Missing the key customer in the item"),
        ),
        (
            Item::new().with("customer", "c-1"),
            invalid("Missing the key placed in the item"),
        ),
        (
            Item::new().with("customer", 1).with("placed", 1),
            invalid("Type mismatch for key customer expected: S actual: N"),
        ),
        (
            Item::new()
                .with("customer", "c-1")
                .with("placed", Value::Bool(true)),
            invalid("Type mismatch for key placed expected: N actual: BOOL"),
        ),
        (
            Item::new().with("customer", "").with("placed", 1),
            empty("string", "customer"),
        ),
    ] {
        expect(
            PutItem::new("Orders", item.clone()).check(&orders),
            &expected,
        );
        // A batch has less specific messages.
        let in_batch = match expected.as_str() {
            message if message.contains("Missing the key") || message.contains("Type mismatch") => {
                MISMATCH
            }
            other => other,
        };
        expect(BatchWrite::Put(item).check(&orders), in_batch);
    }
}

#[test]
fn existing_index_key_attributes_are_validated() {
    let mismatch = |key: &str, expected: &str, actual: &str, index: &str| {
        format!(
            "One or more parameter values were invalid: Type mismatch for Index Key {key} \
             Expected: {expected} Actual: {actual} IndexName: {index}"
        )
    };
    let empty = |kind: &str, index: &str, key: &str| {
        format!(
            "One or more parameter values are not valid. A value specified for a secondary index \
             key is not supported. The AttributeValue for a key attribute cannot contain an empty \
             {kind} value. IndexName: {index}, IndexKey: {key}"
        )
    };
    let item = order_key;
    for (item, expected) in [
        (item(), String::new()),
        (
            item().with("product", "p").with("country", "c"),
            String::new(),
        ),
        (
            item().with("product", 1),
            mismatch("product", "S", "N", "by_product"),
        ),
        (
            item().with("product", Value::Null),
            mismatch("product", "S", "NULL", "by_product"),
        ),
        (
            item().with("state", 1),
            mismatch("state", "S", "N", "by_state"),
        ),
        (
            item().with("number", "1"),
            mismatch("number", "N", "S", "by_city"),
        ),
        (
            item().with("product", ""),
            empty("string", "by_product", "product"),
        ),
        (
            item().with("hash", Vec::<u8>::new()),
            empty("binary", "by_hash", "hash"),
        ),
        // The index that comes first by name is reported.
        (
            item().with("product", 1).with("city", 1),
            mismatch("city", "S", "N", "by_city"),
        ),
        (item().with("product", text(2048)), String::new()),
        (item().with("product", text(2049)), HASH_TOO_LONG.to_owned()),
        (item().with("state", text(1024)), String::new()),
        (item().with("state", text(1025)), RANGE_TOO_LONG.to_owned()),
        // Several attributes count together.
        (
            item().with("country", text(1024)).with("city", text(1024)),
            String::new(),
        ),
        (
            item().with("country", text(1024)).with("city", text(1025)),
            HASH_TOO_LONG.to_owned(),
        ),
    ] {
        expect(
            PutItem::new("Orders", item.clone()).check(&orders()),
            &expected,
        );
        expect(BatchWrite::Put(item).check(&orders()), &expected);
    }
}

#[test]
fn table_key_faults_take_precedence_over_index_key_faults() {
    let table = TableDef::builder("Pairs", "a", KeyKind::S)
        .sort_key("b", KeyKind::S)
        .global_index(
            "reverse",
            [("b", KeyKind::S)],
            [("a", KeyKind::S)],
            Projection::All,
        )
        .global_index("alone", [("b", KeyKind::S)], NO_SORT, Projection::All)
        .build()
        .unwrap();
    expect(
        PutItem::new("Pairs", Item::new().with("a", "x").with("b", "")).check(&table),
        &empty("string", "b"),
    );
    expect(
        PutItem::new("Pairs", Item::new().with("a", "x").with("b", 1)).check(&table),
        "One or more parameter values were invalid: Type mismatch for key b expected: S actual: N",
    );
}
