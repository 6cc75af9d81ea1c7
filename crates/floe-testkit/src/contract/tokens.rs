//! Tokens: a request that is sent again is applied once.

use std::time::Duration;

use floe_store::Error;
use floe_store::engine::WRITE_TOKEN_RETENTION;
use floe_store::op::{DeleteItem, PutItem, ReturnValues, TransactWriteItems};

use super::fixture::*;

pub(super) async fn a_put_applies_once(t: &mut Fixture) {
    t.create(plain()).await;
    let put = |v: i32| PutItem::new("Plain", item("a").with("v", v)).token("token-1");
    t.write(put(1)).await.unwrap();
    t.put("Plain", item("a").with("v", 2)).await.unwrap();
    t.write(put(1)).await.unwrap();
    t.assert_item("Plain", item("a").with("v", 2)).await;

    assert_eq!(
        t.write(put(3)).await,
        Err(Error::IdempotentParameterMismatch)
    );
    t.assert_item("Plain", item("a").with("v", 2)).await;
}

pub(super) async fn an_update_applies_once(t: &mut Fixture) {
    t.create(plain()).await;
    let add =
        |v: i32| update_item("Plain", item("a"), "ADD n :v", &values! {"v" => v}).token("token-1");
    t.write(add(1)).await.unwrap();
    t.write(add(1)).await.unwrap();
    t.assert_item("Plain", item("a").with("n", 1)).await;
    assert_eq!(
        t.write(add(2)).await,
        Err(Error::IdempotentParameterMismatch)
    );
}

pub(super) async fn a_delete_applies_once(t: &mut Fixture) {
    t.create(plain()).await;
    t.put("Plain", item("a")).await.unwrap();
    let delete = |pk: &str| DeleteItem::new("Plain", item(pk)).token("token-1");
    t.write(delete("a")).await.unwrap();
    t.put("Plain", item("a").with("v", 2)).await.unwrap();
    t.write(delete("a")).await.unwrap();
    t.assert_item("Plain", item("a").with("v", 2)).await;
    assert_eq!(
        t.write(delete("b")).await,
        Err(Error::IdempotentParameterMismatch)
    );
}

pub(super) async fn a_write_is_answered_as_before(t: &mut Fixture) {
    t.create(plain()).await;
    t.put("Plain", item("a").with("v", 1)).await.unwrap();
    let put = PutItem::new("Plain", item("a").with("v", 2))
        .return_values(ReturnValues::AllOld)
        .token("token-1");
    for _ in 0..2 {
        let old = t.write(put.clone()).await.unwrap().attributes;
        assert_eq!(old, Some(item("a").with("v", 1)));
    }
}

pub(super) async fn tokens_of_writes_are_forgotten_after_half_a_minute(t: &mut Fixture) {
    t.create(plain()).await;
    let put = |v: i32| PutItem::new("Plain", item("a").with("v", v)).token("token-1");
    t.write(put(1)).await.unwrap();
    t.advance(WRITE_TOKEN_RETENTION - Duration::from_secs(1));
    assert_eq!(
        t.write(put(2)).await,
        Err(Error::IdempotentParameterMismatch)
    );
    t.advance(Duration::from_secs(1));
    t.write(put(2)).await.unwrap();
    t.assert_item("Plain", item("a").with("v", 2)).await;
}

pub(super) async fn a_failed_write_does_not_use_up_its_token(t: &mut Fixture) {
    t.create(plain()).await;
    let put = PutItem::new("Plain", item("a").with("v", 1))
        .condition(condition(
            "attribute_not_exists(pk) OR ready = :yes",
            &values! {"yes" => true},
        ))
        .token("token-1");
    t.fill("Plain", [item("a").with("ready", false)]).await;
    condition_failed(t.write(put.clone()).await);
    t.put("Plain", item("a").with("ready", true)).await.unwrap();
    t.write(put).await.unwrap();
    t.assert_item("Plain", item("a").with("v", 1)).await;
}

pub(super) async fn a_transaction_applies_once(t: &mut Fixture) {
    t.create(plain()).await;
    let transaction = |n: i32| TransactWriteItems::new([add("a", n), add("b", n)]).token("token-1");
    t.transact_write_items(transaction(1)).await.unwrap();
    t.transact_write_items(transaction(1)).await.unwrap();
    t.assert_item("Plain", item("a").with("n", 1)).await;

    let other = t.transact_write_items(transaction(2)).await;
    assert_eq!(other, Err(Error::IdempotentParameterMismatch));
    t.assert_item("Plain", item("b").with("n", 1)).await;

    // What the answer shall tell is not part of what is applied.
    let mut asking = transaction(1);
    asking.return_capacity = floe_store::capacity::ReturnConsumedCapacity::Total;
    t.transact_write_items(asking).await.unwrap();
    t.assert_item("Plain", item("a").with("n", 1)).await;

    t.reopen().await;
    t.transact_write_items(transaction(1)).await.unwrap();
    assert_eq!(
        t.get("Plain", item("a")).await,
        Some(item("a").with("n", 1)),
        "also after reopening"
    );
}

pub(super) async fn tokens_of_transactions_are_forgotten_after_ten_minutes(t: &mut Fixture) {
    t.create(plain()).await;
    let transaction = || TransactWriteItems::new([add("a", 1)]).token("token-1");
    t.transact_write_items(transaction()).await.unwrap();
    t.advance(Duration::from_secs(9 * 60 + 59));
    t.transact_write_items(transaction()).await.unwrap();
    t.assert_item("Plain", item("a").with("n", 1)).await;
    t.advance(Duration::from_secs(60));
    t.transact_write_items(transaction()).await.unwrap();
    t.assert_item("Plain", item("a").with("n", 2)).await;
}

pub(super) async fn a_canceled_transaction_does_not_use_up_its_token(t: &mut Fixture) {
    t.create(plain()).await;
    let transaction = |n: i32| {
        TransactWriteItems::new([add("a", n), check("b", "attribute_exists(pk)")]).token("token-1")
    };
    canceled(t.transact_write_items(transaction(1)).await);
    t.put("Plain", item("b")).await.unwrap();
    t.transact_write_items(transaction(2)).await.unwrap();
    t.assert_item("Plain", item("a").with("n", 2)).await;
}

pub(super) async fn tokens_have_1_to_36_characters(t: &mut Fixture) {
    t.create(plain()).await;
    let with = |token: &str| TransactWriteItems::new([put(item("a"))]).token(token);
    t.transact_write_items(with(&"x".repeat(36))).await.unwrap();
    refused(
        t.transact_write_items(with(&"x".repeat(37))).await,
        "Member must have length less than or equal to 36",
    );
    refused(t.transact_write_items(with("")).await, EMPTY_LIST);
}
