//! Idempotency tokens: a repeated request is applied once.

use std::time::Duration;

use floe_store::engine::WRITE_TOKEN_RETENTION;
use floe_store::op::{DeleteItem, PutItem, ReturnValues, TransactWriteItems, WriteItemOutput};
use floe_store::{Error, Result};

use super::fixture::*;

const MISMATCH: Result<WriteItemOutput> = Err(Error::IdempotentParameterMismatch);

pub(super) fn put_with_token_is_applied_once(t: &mut Fixture) {
    t.create(plain());
    let put = |v: i32| PutItem::new("Plain", item("a").with("v", v)).token("token-1");
    t.write(put(1)).unwrap();
    t.put("Plain", item("a").with("v", 2)).unwrap();
    t.write(put(1)).unwrap();
    t.assert_item("Plain", item("a").with("v", 2));

    assert_eq!(t.write(put(3)), MISMATCH);
    t.assert_item("Plain", item("a").with("v", 2));
}

pub(super) fn update_with_token_is_applied_once(t: &mut Fixture) {
    t.create(plain());
    let add =
        |v: i32| update_item("Plain", item("a"), "ADD n :v", &values! {"v" => v}).token("token-1");
    t.write(add(1)).unwrap();
    t.write(add(1)).unwrap();
    t.assert_item("Plain", item("a").with("n", 1));
    assert_eq!(t.write(add(2)), MISMATCH);
}

pub(super) fn delete_with_token_is_applied_once(t: &mut Fixture) {
    t.create_with(plain(), [item("a")]);
    let delete = |pk: &str| DeleteItem::new("Plain", item(pk)).token("token-1");
    t.write(delete("a")).unwrap();
    t.put("Plain", item("a").with("v", 2)).unwrap();
    t.write(delete("a")).unwrap();
    t.assert_item("Plain", item("a").with("v", 2));
    assert_eq!(t.write(delete("b")), MISMATCH);
}

pub(super) fn repeated_write_returns_the_same_response(t: &mut Fixture) {
    t.create_with(plain(), [item("a").with("v", 1)]);
    let put = PutItem::new("Plain", item("a").with("v", 2))
        .return_values(ReturnValues::AllOld)
        .token("token-1");
    for _ in 0..2 {
        let old = t.write(put.clone()).unwrap().attributes;
        assert_eq!(old, Some(item("a").with("v", 1)));
    }
}

pub(super) fn write_tokens_expire_after_half_a_minute(t: &mut Fixture) {
    t.create(plain());
    let put = |v: i32| PutItem::new("Plain", item("a").with("v", v)).token("token-1");
    t.write(put(1)).unwrap();
    t.advance(WRITE_TOKEN_RETENTION - Duration::from_secs(1));
    assert_eq!(t.write(put(2)), MISMATCH);
    t.advance(Duration::from_secs(1));
    t.write(put(2)).unwrap();
    t.assert_item("Plain", item("a").with("v", 2));
}

pub(super) fn failed_write_does_not_consume_its_token(t: &mut Fixture) {
    t.create(plain());
    let text = "attribute_not_exists(pk) OR ready = :yes";
    let ready = condition(text, &values! {"yes" => true});
    let put = PutItem::new("Plain", item("a").with("v", 1))
        .condition(ready)
        .token("token-1");
    t.fill("Plain", [item("a").with("ready", false)]);
    condition_failed(t.write(put.clone()));
    t.put("Plain", item("a").with("ready", true)).unwrap();
    t.write(put).unwrap();
    t.assert_item("Plain", item("a").with("v", 1));
}

pub(super) fn transaction_with_token_is_applied_once(t: &mut Fixture) {
    t.create(plain());
    let transaction = |n: i32| TransactWriteItems::new([add("a", n), add("b", n)]).token("token-1");
    t.transact_write_items(transaction(1)).unwrap();
    t.transact_write_items(transaction(1)).unwrap();
    t.assert_item("Plain", item("a").with("n", 1));

    let other = t.transact_write_items(transaction(2));
    assert_eq!(other, Err(Error::IdempotentParameterMismatch));
    t.assert_item("Plain", item("b").with("n", 1));

    // The requested details of the response are not part of the fingerprint.
    let asking = transaction(1).costing(floe_store::capacity::ReturnConsumedCapacity::Total);
    t.transact_write_items(asking).unwrap();
    t.assert_item("Plain", item("a").with("n", 1));

    t.reopen();
    t.transact_write_items(transaction(1)).unwrap();
    let once = Some(item("a").with("n", 1));
    assert_eq!(
        t.get("Plain", item("a")),
        once,
        "the token survives reopening"
    );
}

pub(super) fn transaction_tokens_expire_after_ten_minutes(t: &mut Fixture) {
    t.create(plain());
    let transaction = || TransactWriteItems::new([add("a", 1)]).token("token-1");
    t.transact_write_items(transaction()).unwrap();
    t.advance(Duration::from_secs(9 * 60 + 59));
    t.transact_write_items(transaction()).unwrap();
    t.assert_item("Plain", item("a").with("n", 1));
    t.advance(Duration::from_secs(60));
    t.transact_write_items(transaction()).unwrap();
    t.assert_item("Plain", item("a").with("n", 2));
}

pub(super) fn canceled_transaction_does_not_consume_its_token(t: &mut Fixture) {
    t.create(plain());
    let transaction = |n: i32| {
        TransactWriteItems::new([add("a", n), check("b", "attribute_exists(pk)")]).token("token-1")
    };
    canceled(t.transact_write_items(transaction(1)));
    t.put("Plain", item("b")).unwrap();
    t.transact_write_items(transaction(2)).unwrap();
    t.assert_item("Plain", item("a").with("n", 2));
}

pub(super) fn tokens_have_1_to_36_characters(t: &mut Fixture) {
    t.create(plain());
    let with = |token: &str| TransactWriteItems::new([put(item("a"))]).token(token);
    t.transact_write_items(with(&"x".repeat(36))).unwrap();
    let long = t.transact_write_items(with(&"x".repeat(37)));
    rejected(long, "Member must have length less than or equal to 36");
    rejected(t.transact_write_items(with("")), EMPTY_LIST);
}
