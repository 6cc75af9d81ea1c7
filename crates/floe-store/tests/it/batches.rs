//! BatchGetItem and BatchWriteItem.

use floe_store::expr::{Path, Paths};
use floe_store::op::{BatchGetItem, BatchWrite, BatchWriteItem};
use floe_store::{Item, TableDef, Value};

use crate::{as_constraint_error, expect, expect_code, id, order_key, orders, simple, text};

fn ids(count: usize) -> impl Iterator<Item = Item> {
    (0..count).map(|n| id(&n.to_string()))
}

fn find<'t>(tables: &'t [TableDef]) -> impl Fn(&str) -> Option<&'t TableDef> {
    move |name| tables.iter().find(|table| table.name == name)
}

const DUPLICATES: &str = "Provided list of item keys contains duplicates";
const NAMES: &str = "Value at 'requestItems' failed to satisfy constraint: Map keys must satisfy \
    constraint: [Member must have length less than or equal to 255, Member must have length greater \
    than or equal to 3, Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+]";

#[test]
fn batch_get_accepts_1_to_100_keys() {
    let length = |path: &str, constraint: &str| {
        as_constraint_error(&format!(
            "Value at '{path}' failed to satisfy constraint: Member must have length {constraint}"
        ))
    };
    let read = |count| BatchGetItem::new().keys("Simple", ids(count));
    expect(
        BatchGetItem::new().validate(),
        &length("RequestItems", "greater than or equal to 1"),
    );
    expect(
        read(0).validate(),
        &length(
            "RequestItems.Simple.member.Keys",
            "greater than or equal to 1",
        ),
    );
    expect(read(1).validate(), "");
    expect(read(100).validate(), "");
    let too_many = length(
        "RequestItems.Simple.member.Keys",
        "less than or equal to 100",
    );
    expect(read(101).validate(), &too_many);
    expect(read(99).keys("Other", ids(1)).validate(), "");
    expect(
        read(99).keys("Other", ids(2)).validate(),
        "Too many items requested for the BatchGetItem call",
    );
    // Names are checked before the count.
    expect(
        read(101).keys("a!", ids(1)).validate(),
        &as_constraint_error(NAMES),
    );
}

#[test]
fn batch_get_rejects_duplicate_keys() {
    let read = |keys: Vec<Item>| BatchGetItem::new().keys("Simple", keys).validate();
    expect(read(vec![id("a"), id("b")]), "");
    expect(read(vec![id("a"), id("a")]), DUPLICATES);
    // Numbers are compared by value.
    let number = |text: &str| Item::new().with("id", Value::N(text.parse().unwrap()));
    expect(read(vec![number("1"), number("1.0")]), DUPLICATES);
    // Keys are checked before the projection, and the projection before duplicates.
    let request = BatchGetItem::new().keys("Simple", [id("a").with("", 1), id("a").with("", 1)]);
    expect(request.validate(), "Empty attribute name");
    let mut request = BatchGetItem::new().keys("Simple", [id("a"), id("a")]);
    let paths = Paths(vec![Path::attribute("v"), Path::attribute("v")]);
    request.requests.get_mut("Simple").unwrap().projection = Some(paths);
    expect(
        request.validate(),
        "Invalid ProjectionExpression: Two document paths overlap with each other; must remove or \
         rewrite one of these paths; path one: [v], path two: [v]",
    );
}

#[test]
fn batch_get_requires_existing_tables() {
    let tables = [simple(), orders()];
    let read = |table: &str, key: Item| BatchGetItem::new().keys(table, [key]);
    expect(read("Simple", id("a")).check(find(&tables)), "");
    expect_code(
        read("Missing", id("a")).check(find(&tables)),
        "ResourceNotFoundException",
        "Requested resource not found",
    );
    expect_code(
        read("Orders", id("a")).check(find(&tables)),
        "ValidationException",
        "The provided key element does not match the schema",
    );
}

#[test]
fn batch_write_accepts_1_to_25_writes() {
    let count = as_constraint_error(
        "Value at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: \
         [Member must have length less than or equal to 25, Member must have length greater than \
         or equal to 1]",
    );
    let write = |count| {
        ids(count).fold(BatchWriteItem::new(), |batch, item| {
            batch.put("Simple", item)
        })
    };
    expect(
        BatchWriteItem::new().validate(),
        "The requestItems parameter is required for BatchWriteItem",
    );
    let mut empty = BatchWriteItem::new();
    empty.requests.insert("Simple".to_owned(), Vec::new());
    expect(empty.validate(), &count);
    expect(write(25).validate(), "");
    expect(write(26).validate(), &count);
    expect(write(24).delete("Other", id("a")).validate(), "");
    expect(write(25).delete("Other", id("a")).validate(), &count);
    expect(
        write(1).put("a!", id("a")).validate(),
        &as_constraint_error(NAMES),
    );
}

#[test]
fn batch_write_limits_item_size() {
    let write =
        |bytes: usize| BatchWriteItem::new().put("Simple", id("a").with("v", text(bytes - 4)));
    expect(write(409_600).validate(), "");
    expect(
        write(409_601).validate(),
        "Item size has exceeded the maximum allowed size",
    );
    let nameless = BatchWriteItem::new().delete("Simple", id("a").with("", 1));
    expect(nameless.validate(), "Empty attribute name");
}

#[test]
fn batch_write_rejects_duplicate_keys() {
    let tables = [simple(), orders()];
    let check = |batch: &BatchWriteItem| batch.check(find(&tables));
    let put = |item| BatchWriteItem::new().put("Simple", item);
    expect(check(&put(id("a")).put("Simple", id("b"))), "");
    expect(
        check(&put(id("a")).put("Simple", id("a").with("v", 1))),
        DUPLICATES,
    );
    expect(check(&put(id("a")).delete("Simple", id("a"))), DUPLICATES);
    let delete = BatchWriteItem::new().delete("Simple", id("a"));
    expect(check(&delete.clone().delete("Simple", id("a"))), DUPLICATES);
    // The same key in another table is a different item.
    let other = Item::new().with("customer", "a").with("placed", 1);
    expect(check(&delete.delete("Orders", other)), "");
    expect_code(
        check(&BatchWriteItem::new().put("Missing", id("a"))),
        "ResourceNotFoundException",
        "Requested resource not found",
    );
    expect(
        check(&BatchWriteItem::new().put("Orders", order_key().with("product", 1))),
        "One or more parameter values were invalid: Type mismatch for Index Key product Expected: S \
         Actual: N IndexName: by_product",
    );
}

#[test]
fn batch_write_entry_has_key_and_result() {
    let item = order_key().with("v", 1);
    let (put, delete) = (
        BatchWrite::Put(item.clone()),
        BatchWrite::Delete(order_key()),
    );
    assert_eq!(put.key(&orders()), Ok(order_key()));
    assert_eq!(delete.key(&orders()), Ok(order_key()));
    assert_eq!(put.apply(), Some(item));
    assert_eq!(delete.apply(), None);
}
